//! `sabir bench` against the real server, and against one that talks nonsense.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::SABIR;
use crate::server_fixture::ServerFixture;

fn bench(url: &str, arguments: &[&str]) -> Output {
    let mut command = Command::new(SABIR);
    command.args(["bench", url]).args(arguments).stdin(Stdio::null());
    command.output().expect("the program runs")
}

/// How a measurement ends that this machine was too busy for: some need everybody to be there while a task is quiet for a moment.
const TOO_BUSY: [&str; 4] = [
    "; use fewer",
    "a message to a task that works was not taken",
    "a task ended although a message waited for it",
    "nothing was measured; give it more time",
];

/// Measures, and again where the machine was too busy.
fn measure(url: &str, arguments: &[&str]) -> Output {
    for _ in 0..5 {
        let output = bench(url, arguments);
        let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
        if !TOO_BUSY.iter().any(|words| complaint.contains(words)) {
            return output;
        }
    }
    bench(url, arguments)
}

#[test]
fn every_workload_in_every_dialect_that_has_it() {
    let fixture = ServerFixture::new();
    let url = format!("http://{}", fixture.server.address);
    let pid = fixture.server.pid().to_string();
    for arguments in [
        "--workload send --seconds 0.5",
        "--workload send --count 40 --dialect 0.3",
        "--workload send --count 40 --dialect 0.1",
        "--workload send --count 40 --dialect rest",
        "--workload send --count 40 --dialect gateway",
        "--workload get --count 40",
        "--workload get-live --count 40 --dialect 0.3",
        "--workload list --count 40",
        "--workload list --count 40 --dialect rest",
        "--workload list-newest --count 40",
        "--workload list-newest --count 40 --dialect rest",
        "--workload stream --count 40 --chunks 20",
        "--workload stream --count 8 --chunks 300 --dialect 0.3",
        "--workload stream --count 8 --chunks 300 --dialect 0.1",
        "--workload stream --count 8 --chunks 300 --dialect rest",
        "--workload fanout --readers 20 --chunks 300 --seconds 0.1",
        "--workload open-streams --connections 30",
        "--workload list-running --count 40 --chunks 300",
        "--workload list-running --count 40 --chunks 300 --dialect rest",
        "--workload stalled --readers 20 --chunks 3000",
        "--workload http2 --connections 120",
        "--workload http2 --connections 30 --dialect 0.3",
        "--workload send --count 40 --dialect 1.0-http2",
        "--workload stream --count 8 --chunks 300 --dialect 1.0-http2",
        "--workload send --count 40 --dialect grpc",
        "--workload stream --count 40 --chunks 20 --dialect grpc",
        "--workload stream --count 8 --chunks 300 --dialect grpc",
        "--workload http2 --connections 120 --dialect grpc",
    ] {
        let words: Vec<&str> = arguments.split(' ').chain(["--pid", &pid]).collect();
        let output = measure(&url, &words);
        let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(0), "{arguments}: {complaint}");
        assert_eq!(complaint, "", "{arguments}");
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(report["wrong"], 0, "{arguments}: {report}");
        assert_eq!(report["notices"], serde_json::json!([]), "{arguments}: {report}");
        let operations = report["operations"].as_u64().unwrap();
        let expected = match arguments {
            _ if arguments.contains("stream --count 40 --chunks 20") => 40 * 23,
            _ if arguments.contains("stream --count 8 --chunks 300") => 8 * 303,
            _ if arguments.contains("--count 40") => 40,
            _ if arguments.contains("--connections 30") => 30,
            _ if arguments.contains("--connections 120") => 120,
            _ if arguments.contains("stalled") => 3002,
            // Who joins before the task begins to work gets that event too.
            _ if arguments.contains("fanout") => operations.clamp(20 * 301, 20 * 302),
            _ => operations.max(1),
        };
        assert_eq!(operations, expected, "{arguments}: {report}");
        assert!(report["server"]["rss"].as_u64().unwrap() > 1_000_000, "{arguments}: {report}");
    }
}

#[test]
fn a_second_reader_is_timed_at_another_server() {
    let fixture = ServerFixture::new();
    let url = format!("http://{}", fixture.server.address);
    let words = ["--workload", "wake-up", "--connections", "3", "--chunks", "5", "--seconds", "0.1"];
    let output = bench(&url, &words);
    let complaint = "sabir: wake-up needs another server on the same store: --other URL\n";
    assert_eq!(String::from_utf8_lossy(&output.stderr), complaint);

    // The same server will do where only the counting is tested. All chunks and the last status, of three tasks; what came before
    // the second reader joined is not counted. On a busy machine it joins a task before it works, or when it has sent a chunk.
    for attempt in 1.. {
        let output = bench(&url, &[&words[..], &["--other", &url]].concat());
        let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
        let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        if report["operations"] == 3 * 6 {
            assert_eq!((complaint.as_str(), &report["wrong"]), ("", &Value::from(0)), "{report}");
            assert!(report["latency_us"]["p50"].is_number(), "{report}");
            return;
        }
        assert!(attempt < 10, "{complaint}{report}");
    }
}

#[test]
fn what_is_not_measured_over_http2_says_so() {
    let fixture = ServerFixture::new();
    let url = format!("http://{}", fixture.server.address);
    for (workload, dialect) in [("get", "grpc"), ("list", "grpc"), ("fanout", "1.0-http2"), ("webhook", "grpc")] {
        let output = bench(&url, &["--workload", workload, "--dialect", dialect]);
        let expected =
            format!("sabir: {workload} is not measured in the dialect {dialect}; send, stream and http2 are\n");
        assert_eq!(String::from_utf8_lossy(&output.stderr), expected);
        assert_eq!(output.status.code(), Some(1));
    }
}

#[test]
fn a_server_that_is_not_a2a_is_reported_in_one_line() {
    let nonsense = answers(|_| "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello".to_owned());
    let card = r#"{"name":"x","url":"/"}"#;
    let stubborn = answers(move |request| {
        let (status, body) = if request.starts_with("GET") { ("200 OK", card) } else { ("500 Oops", "{}") };
        format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n\r\n{body}", body.len())
    });
    let nobody = format!("http://{}", TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap());
    for (url, code, expected) in [
        (nonsense.as_str(), 1, "is not an A2A server: /.well-known/agent-card.json is no card but 200 hello"),
        (stubborn.as_str(), 1, "the server refuses a message of the dialect 1.0: 500 {}"),
        (nobody.as_str(), 1, "is the server running there?"),
        ("https://127.0.0.1:1", 1, "https is not measured"),
        ("ftp://127.0.0.1:1", 1, "is no address of a server; write http://HOST:PORT"),
    ] {
        let output = bench(url, &["--seconds", "0.2"]);
        let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{url}: {complaint}");
        assert!(complaint.starts_with("sabir: ") && complaint.contains(expected), "{url}: {complaint}");
        assert_eq!(complaint.lines().count(), 1, "{complaint}");
        assert!(output.stdout.is_empty(), "{url}");
    }
}

#[test]
fn wrong_replies_are_counted_and_the_first_is_shown() {
    // The first message is answered well, and then always with the same echo.
    let answer = r#"{"result":{"task":{"id":"t","status":{"state":"TASK_STATE_COMPLETED"},
        "artifacts":[{"parts":[{"text":"echo: bench 000000000000"}]}]}}}"#;
    let url = answers(move |request| {
        let body = if request.starts_with("GET") { r#"{"name":"x","url":"/"}"# } else { answer };
        format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len())
    });
    let output = bench(&url, &["--count", "10", "--connections", "1"]);
    let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{complaint}");
    assert!(complaint.contains("replies were wrong, the first: the echo is another: 200"), "{complaint}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(report["wrong"].as_u64().unwrap() > 0 && report["operations"] == 0, "{report}");
}

/// A server that answers every request by this function.
fn answers(answer: impl Fn(&str) -> String + Send + Clone + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for connection in listener.incoming() {
            let (mut connection, answer) = (connection.unwrap(), answer.clone());
            std::thread::spawn(move || {
                // A request of ours is one small write.
                let mut buffer = [0; 4096];
                while let Ok(count @ 1..) = connection.read(&mut buffer) {
                    let request = String::from_utf8_lossy(&buffer[..count]).into_owned();
                    if connection.write_all(answer(&request).as_bytes()).is_err() {
                        return;
                    }
                }
            });
        }
    });
    url
}
