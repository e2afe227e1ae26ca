//! Connections that break, readers who leave, and Ctrl-C without a terminal.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use serde_json::{Value, json};

use super::fixture::{ClientFixture, Outcome};
use crate::SABIR;

/// `sabir` in a pipe, as a process that runs.
fn started(client: &ClientFixture, words: &[&str]) -> Child {
    Command::new(SABIR)
        .args(words)
        .current_dir(client.folder.path())
        .env_clear()
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Its output up to the line that has this text.
fn read_until(child: &mut Child, text: &str) -> Vec<Value> {
    let mut lines = Vec::new();
    let mut reader = BufReader::new(child.stdout.as_mut().unwrap());
    loop {
        let mut line = String::new();
        assert_ne!(reader.read_line(&mut line).unwrap(), 0, "no {text} in {lines:?}");
        lines.push(serde_json::from_str(&line).unwrap());
        if line.contains(text) {
            return lines;
        }
    }
}

#[test]
fn ctrl_c_without_a_terminal_leaves_the_task_and_says_how_to_watch_it() {
    let client = ClientFixture::new();
    let url = client.url();
    let mut child = started(&client, &["send", &url, "slow 600 x"]);
    let lines = read_until(&mut child, "WORKING");
    let task = lines[0]["statusUpdate"]["taskId"].as_str().unwrap().to_owned();
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let outcome = Outcome::of(child.wait_with_output().unwrap());
    assert_eq!((outcome.code, &outcome.last()["error"]["code"]), (130, &json!("SABIR_ERR_INTERRUPTED")));
    let command = format!("to watch it: sabir watch {url} {task}\n");
    assert!(outcome.errors.ends_with(&command), "{}", outcome.errors);
    assert_eq!(client.state(&task), "TASK_STATE_WORKING");
}

#[test]
fn a_reader_who_has_seen_enough_ends_the_command() {
    let client = ClientFixture::new();
    let url = client.url();
    let mut child = started(&client, &["send", &url, "stream 1000000 1"]);
    let lines = read_until(&mut child, "chunk 1");
    drop(child.stdout.take());
    let status = child.wait().unwrap();
    let mut errors = String::new();
    child.stderr.unwrap().read_to_string(&mut errors).unwrap();
    assert_eq!((status.code(), errors.as_str()), (Some(0), ""));
    client.run("cancel", &[lines[0]["statusUpdate"]["taskId"].as_str().unwrap()]);
}

/// Passes bytes on to a server. The first streams are cut after so many bytes of their answer.
fn cutting_proxy(server: SocketAddr, cuts: &'static [usize]) -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let streams = Arc::new(AtomicUsize::new(0));
    let counted = streams.clone();
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let streams = counted.clone();
            thread::spawn(move || drop(pass_on(client, server, cuts, &streams)));
        }
    });
    (address, streams)
}

/// One request for each connection: the answer is passed on until it ends or is cut.
fn pass_on(mut client: TcpStream, server: SocketAddr, cuts: &[usize], streams: &AtomicUsize) -> std::io::Result<()> {
    let mut upstream = TcpStream::connect(server)?;
    let mut buffer = vec![0; 64 * 1024];
    let count = client.read(&mut buffer)?;
    let is_stream = String::from_utf8_lossy(&buffer[..count]).contains("text/event-stream");
    upstream.write_all(&buffer[..count])?;
    let limit = match is_stream {
        true => cuts.get(streams.fetch_add(1, Ordering::SeqCst)).copied(),
        false => None,
    };
    let (mut requests, mut more) = (client.try_clone()?, upstream.try_clone()?);
    thread::spawn(move || std::io::copy(&mut requests, &mut more));
    let passed = std::io::copy(&mut (&upstream).take(limit.unwrap_or(usize::MAX) as u64), &mut client);
    client.shutdown(std::net::Shutdown::Both)?;
    passed.map(drop)
}

#[test]
fn a_stream_that_breaks_is_resumed_and_nothing_is_shown_twice() {
    let client = ClientFixture::new();
    // In the middle of frames.
    let (proxy, streams) = cutting_proxy(client.fixture.server.address, &[1500, 900, 1300]);
    let endpoint = format!("http://{proxy}/");
    let expected: String = (1..=20).map(|number| format!("chunk {number}\n")).collect();
    for version in ["1.0", "0.3"] {
        let before = streams.swap(0, Ordering::SeqCst);
        let words = ["stream 20 20", "--endpoint", &endpoint, "--a2a-version", version, "--transport", "jsonrpc"];
        let outcome = client.run("send", &words);
        assert_eq!((outcome.code, outcome.answer()), (0, expected.as_str()), "{version} {before}: {}", outcome.errors);
        let updates =
            outcome.lines.iter().filter_map(|line| line["artifactUpdate"]["artifact"]["parts"][0]["text"].as_str());
        assert_eq!(updates.collect::<String>(), expected, "{version}");
        assert!(streams.load(Ordering::SeqCst) >= 2, "{version}: it was cut and resumed");
    }
}

#[test]
fn a_server_that_goes_away_is_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let options = sabir_testkit::process::SabirOptions::new(SABIR, folder.path());
    let server = options.start();
    let address = server.address;
    let listen = address.to_string();
    let client = ClientFixture::new();
    let url = format!("http://{address}");
    let mut child = started(&client, &["send", &url, "slow 600 x", "--a2a-version", "1.0"]);
    read_until(&mut child, "WORKING");
    server.kill();
    let mut errors = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    errors.read_line(&mut line).unwrap();
    assert!(line.starts_with("sabir: the connection is lost, it is opened again ("), "{line}");
    // The next one finds the task, and settles it: nobody works on it any more.
    let mut second = Command::new(SABIR);
    second.args(["serve", "--listen", &listen, "--store", &options.store]).current_dir(folder.path());
    let mut second = second.stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
    let outcome = Outcome::of(child.wait_with_output().unwrap());
    second.kill().unwrap();
    second.wait().unwrap();
    let state = &outcome.last()["task"]["status"]["state"];
    assert_eq!((outcome.code, state), (1, &json!("TASK_STATE_FAILED")), "{}", outcome.text);
}
