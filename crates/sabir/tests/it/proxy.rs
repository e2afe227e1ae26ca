//! `sabir proxy URL`: a server with one agent, which stands for another one.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use sabir_testkit::process::{SabirOptions, SabirProcess};
use sabir_testkit::remote::{CardFault, Faults, RemoteAgent, RemoteProtocol, TasksAfterDeath};
use serde_json::{Value, json};

use crate::SABIR;
use crate::server_fixture::{v1_message, v03_message};

fn name_on_card(server: &SabirProcess) -> String {
    server.get("/.well-known/agent-card.json").json()["name"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn one_line_puts_every_version_in_front_of_an_old_agent() {
    for protocol in [RemoteProtocol::V01JsonRpc, RemoteProtocol::V03JsonRpc, RemoteProtocol::V1HttpJson] {
        let folder = tempfile::tempdir().unwrap();
        let remote = RemoteAgent::builder(protocol).with_bearer("t").start();
        let options =
            SabirOptions::new(SABIR, folder.path()).proxy(&remote.url()).variable("SABIR_UPSTREAM_TOKEN", "t");
        let mut server = options.start();
        server.until("its card is known", |server| (name_on_card(server) == "Remote agent").then_some(()));

        let v1 = server.rpc("SendMessage", v1_message("one"));
        assert_eq!(v1["result"]["task"]["artifacts"][0]["parts"][0]["text"], "echo: one", "{protocol:?} {v1}");
        let body =
            json!({"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": v03_message("two")}).to_string();
        let v03 = server.http().exchange("POST", "/agents/remote", &[], body.as_bytes()).unwrap().json();
        assert_eq!(v03["result"]["artifacts"][0]["parts"][0]["text"], "echo: two", "{protocol:?} {v03}");

        server.terminate();
        assert!(server.wait(Duration::from_secs(20)).success());
        // What the remote agent has forgotten by now is still here.
        remote.die(TasksAfterDeath::Lost);
        let server = options.start();
        let task = v1["result"]["task"]["id"].clone();
        let kept = server.rpc("GetTask", json!({"id": task}));
        assert_eq!(kept["result"]["artifacts"][0]["parts"][0]["text"], "echo: one", "{protocol:?} {kept}");
    }
}

#[test]
fn flags_say_what_a_wrong_card_does_not() {
    let folder = tempfile::tempdir().unwrap();
    let remote = RemoteAgent::builder(RemoteProtocol::V03JsonRpc).mounted_at("/deep").start();
    remote.set_faults(Faults { card: vec![CardFault::Missing], ..Faults::default() });
    let options = SabirOptions::new(SABIR, folder.path()).proxy(&format!("http://{}", remote.address()));
    let options = ["--endpoint", &format!("{}/", remote.url()), "--a2a-version", "0.3", "--transport", "jsonrpc"]
        .into_iter()
        .chain(["--api-key", "X-Key: k", "--header", "X-Team: ships"])
        .fold(options, |options, word| options.argument(word));
    let server = options.start();
    let done = server.rpc("SendMessage", v1_message("hello"));
    assert_eq!(done["result"]["task"]["artifacts"][0]["parts"][0]["text"], "echo: hello", "{done}");
    let call = remote.requests().into_iter().find(|request| request.method == "POST").unwrap();
    assert_eq!((call.header("x-key"), call.header("x-team")), (Some("k"), Some("ships")));
}

#[test]
fn an_agent_that_is_not_there_yet_is_tried_again() {
    let folder = tempfile::tempdir().unwrap();
    let remote = RemoteAgent::start(RemoteProtocol::V1JsonRpc);
    remote.die(TasksAfterDeath::Lost);
    let server = SabirOptions::new(SABIR, folder.path()).proxy(&remote.url()).start();
    assert_ne!(name_on_card(&server), "Remote agent");
    remote.come_back();
    server.until("its card is known", |server| (name_on_card(server) == "Remote agent").then_some(()));
}

/// A server with the default database, and what it printed.
struct Started {
    server: Child,
    store: String,
}

impl Started {
    fn new(folder: &Path, data: &Path, words: &[&str]) -> Result<Self, String> {
        let mut server = Command::new(SABIR)
            .args(words)
            .args(["--port", "0"])
            .current_dir(folder)
            .env_clear()
            .env("XDG_DATA_HOME", data)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(server.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let Ok(ready) = serde_json::from_str::<Value>(&line) else {
            let mut errors = String::new();
            server.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
            return Err(format!("{:?} {errors}", server.wait().unwrap().code()));
        };
        Ok(Started { server, store: ready["store"].as_str().unwrap().to_owned() })
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

#[test]
fn it_runs_beside_serve_and_beside_other_proxies() {
    let (data, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (one, two) = (RemoteAgent::start(RemoteProtocol::V1JsonRpc), RemoteAgent::start(RemoteProtocol::V1JsonRpc));
    let start = |words: &[&str]| Started::new(folder.path(), data.path(), words);
    let own = start(&["serve"]).unwrap();
    let first = start(&["proxy", &one.url()]).unwrap();
    let second = start(&["proxy", &two.url()]).unwrap();
    let database = |remote: &RemoteAgent| {
        format!("{}/sabir/proxies/127.0.0.1-{}.db", data.path().display(), remote.address().port())
    };
    assert_eq!((&first.store, &second.store), (&database(&one), &database(&two)));
    assert_ne!(own.store, first.store);
    // Two that would mix their tasks are told apart, or stopped.
    let again = start(&["proxy", &one.url()]).err().unwrap();
    assert!(
        again.starts_with("Some(1) ") && again.contains("is in use by another Sabir; stop it, or choose"),
        "{again}"
    );
    let named = start(&["proxy", &one.url(), "--store", "sqlite:other.db"]).unwrap();
    assert!(named.store.ends_with("/other.db"), "{}", named.store);
}

#[test]
fn a_wrong_command_line_exits_with_2_and_shows_no_secret() {
    let (data, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    for (words, expected) in [
        (&["proxy", "agents.example.com"][..], "sabir: URL is \"agents.example.com\"; expected an absolute address"),
        (&["proxy", "https://me:hush@a.example"], "sabir: URL does not fit; expected an absolute address"),
        (&["proxy", "https://a.example", "--api-key", "hush"], "sabir: --api-key does not fit; expected NAME:VALUE"),
        (&["proxy", "https://a.example", "--bearer", "hush hush"], "sabir: --bearer must be the token alone"),
        (&["proxy", "https://a.example", "--agent", "demo"], "cannot be used with"),
    ] {
        let refused = Started::new(folder.path(), data.path(), words).err().unwrap();
        assert!(refused.starts_with("Some(2) ") && refused.contains(expected), "{words:?}: {refused}");
        assert!(!refused.contains("hush"), "{refused}");
    }
}
