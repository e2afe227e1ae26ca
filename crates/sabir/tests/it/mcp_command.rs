//! `sabir mcp`: MCP on standard input and output, in front of a running server, or of one in the same process.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use sabir_testkit::process::SabirOptions;
use serde_json::{Value, json};

use crate::SABIR;

const LIMIT: Duration = Duration::from_secs(30);

struct Host {
    program: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Host {
    fn start(folder: &Path, words: &[&str]) -> Self {
        Self::start_with(folder, words, &[])
    }

    fn start_with(folder: &Path, words: &[&str], variables: &[(&str, &str)]) -> Self {
        let mut command = command(folder);
        command.args(words).envs(variables.iter().copied());
        let mut program = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let (input, output) = (program.stdin.take(), BufReader::new(program.stdout.take().unwrap()));
        Self { program, input, output }
    }

    fn write(&mut self, message: &Value) {
        writeln!(self.input.as_mut().unwrap(), "{message}").unwrap();
    }

    fn read(&mut self) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|_| panic!("{line:?}"))
    }

    fn ask(&mut self, method: &str, params: Value) -> Value {
        self.write(&json!({"jsonrpc": "2.0", "id": method, "method": method, "params": params}));
        loop {
            let message = self.read();
            if message["id"] == method {
                return message;
            }
        }
    }

    /// The text of what a tool answers.
    fn tool(&mut self, name: &str, arguments: Value) -> String {
        let answer = self.ask("tools/call", json!({"name": name, "arguments": arguments}));
        answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
    }

    /// Starts a task, and returns its id.
    fn begin(&mut self, message: &str) -> String {
        let arguments = json!({"message": message, "wait_seconds": 0});
        let answer = self.ask("tools/call", json!({"name": "ask_agent", "arguments": arguments}));
        answer["result"]["structuredContent"]["task"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
    }

    /// Closes its input; how the program ends. It has said nothing that was not a message.
    fn end(mut self) -> i32 {
        self.input = None;
        let mut rest = String::new();
        self.output.read_to_string(&mut rest).unwrap();
        for line in rest.lines() {
            assert_eq!(serde_json::from_str::<Value>(line).unwrap()["jsonrpc"], "2.0", "{line}");
        }
        self.program.wait().unwrap().code().unwrap()
    }

    fn kill(mut self) {
        self.program.kill().unwrap();
        self.program.wait().unwrap();
    }
}

fn command(folder: &Path) -> Command {
    let mut command = Command::new(SABIR);
    command.arg("mcp").current_dir(folder).env_clear().env("SABIR_STORE", "sqlite:sabir.db");
    // Nothing listens there, and a server in this process does not either.
    command.env("SABIR_LISTEN", "127.0.0.1:1");
    command
}

/// What the server with the store of this folder says of itself, once it is ready.
fn address_file(folder: &Path) -> Option<Value> {
    serde_json::from_str(&fs::read_to_string(folder.join("sabir.db.server.json")).ok()?).ok()
}

/// The state of a task, as the server that runs with the store of this folder shows it.
fn state(host: &mut Host, task: &str) -> String {
    let answer = host.ask("tools/call", json!({"name": "get_task", "arguments": {"task": task}}));
    answer["result"]["structuredContent"]["state"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
}

fn call(message: &str) -> Value {
    json!({"name": "ask_agent", "arguments": {"message": message}})
}

#[test]
fn a_host_reaches_the_agents_of_the_server_that_runs_here() {
    let folder = tempfile::tempdir().unwrap();
    let server = SabirOptions::new(SABIR, folder.path()).start();
    let url = format!("http://{}", server.address);
    for words in [&[][..], &["--url", url.as_str()]] {
        let mut host = Host::start(folder.path(), words);
        let params = json!({"protocolVersion": "2025-11-25", "capabilities": {"elicitation": {}}, "clientInfo": {}});
        assert_eq!(host.ask("initialize", params)["result"]["protocolVersion"], "2025-11-25");
        host.write(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        let answer = host.ask("tools/call", call("hello"));
        assert_eq!(answer["result"]["content"][0]["text"], "echo: hello");
        // What `initialize` said is known of later messages: a question comes as a form.
        host.write(&json!({"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": call("ask which day?")}));
        let asked = host.read();
        assert_eq!(asked["method"], "elicitation/create", "{asked}");
        let content = json!({"answer": "Monday"});
        host.write(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"action": "accept", "content": content}}));
        let answer = host.read();
        assert_eq!((&answer["id"], &answer["result"]["content"][0]["text"]), (&json!(9), &json!("echo: Monday")));
        // A second call is answered while the first one waits, which then is taken back.
        host.write(&json!({"jsonrpc": "2.0", "id": 10, "method": "tools/call", "params": call("slow 600")}));
        assert!(host.ask("tools/list", json!({}))["result"]["tools"].is_array());
        host.write(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 10}}));
        host.write(&json!({"jsonrpc": "2.0", "id": 11, "method": "nope"}));
        assert_eq!(host.read()["error"]["code"], -32601);
        host.write(&json!([1]));
        assert_eq!(host.read()["error"]["code"], -32600);
        assert_eq!(host.end(), 0);
    }
}

#[test]
fn without_a_server_the_host_is_told_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let mut host = Host::start(folder.path(), &["--url", "http://127.0.0.1:1"]);
    let answer = host.ask("tools/list", json!({}));
    assert!(answer["error"]["message"].as_str().unwrap().contains("start one with `sabir serve`"), "{answer}");
    assert_eq!(host.end(), 0);
}

#[test]
fn a_credential_that_is_missing_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let server = SabirOptions::new(SABIR, folder.path()).variable("SABIR_AUTH_TOKENS", "alice:secret-of-alice").start();
    let url = format!("http://{}", server.address);
    let mut host = Host::start(folder.path(), &["--url", &url]);
    let answer = host.ask("tools/list", json!({}));
    assert!(answer["error"]["message"].as_str().unwrap().contains("SABIR_TOKEN"), "{answer}");
    let mut host = Host::start(folder.path(), &["--url", &url, "--token", "secret-of-alice"]);
    assert!(host.ask("tools/list", json!({}))["result"]["tools"].is_array());
}

#[test]
fn without_a_server_it_hosts_the_agents_itself() {
    let folder = tempfile::tempdir().unwrap();
    let mut host = Host::start(folder.path(), &[]);
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {}});
    assert_eq!(host.ask("initialize", params)["result"]["protocolVersion"], "2025-11-25");
    assert_eq!(host.tool("ask_agent", json!({"message": "hello"})), "echo: hello");
    let task = host.begin("stream 2 0");
    let address = address_file(folder.path()).expect("others find it");
    assert_eq!((&address["command"], &address["pid"]), (&json!("mcp"), &json!(host.program.id())));
    assert!(address["url"].as_str().unwrap().starts_with("http://127.0.0.1:"), "{address}");

    // A second one attaches, and knows the same tasks.
    let mut second = Host::start(folder.path(), &[]);
    assert!(!second.tool("wait_task", json!({"task": task})).is_empty());
    assert_eq!(second.end(), 0);
    assert_eq!(address_file(folder.path()).as_ref(), Some(&address));

    // So does whatever else asks for the server of this store; a server of its own is refused.
    let serve = SabirOptions::new(SABIR, folder.path()).command().stderr(Stdio::piped()).output().unwrap();
    let errors = String::from_utf8(serve.stderr).unwrap();
    assert_eq!(serve.status.code(), Some(1));
    let expected =
        ["`sabir mcp` hosts the agents of this store", "start this server first", "is in use by another Sabir"];
    assert!(expected.iter().all(|words| errors.contains(words)), "{errors}");

    assert_eq!(host.tool("ask_agent", json!({"message": "still"})), "echo: still");
    assert_eq!(host.end(), 0);
    assert_eq!(address_file(folder.path()), None);
    // What was stored is there for the next one, whoever that is.
    let mut host = Host::start(folder.path(), &[]);
    assert_eq!(state(&mut host, &task), "completed");
    assert_eq!(host.end(), 0);
    let server = SabirOptions::new(SABIR, folder.path()).start();
    assert_eq!(server.rpc("GetTask", json!({"id": task}))["result"]["status"]["state"], "TASK_STATE_COMPLETED");
}

#[test]
fn a_host_that_ends_in_the_middle_of_a_task_ends_it_as_a_stop_of_the_server_does() {
    let folder = tempfile::tempdir().unwrap();
    for is_killed in [false, true] {
        let mut host = Host::start_with(folder.path(), &[], &[("SABIR_SERVER_GRACE", "1s")]);
        let task = host.begin("slow 600");
        host.write(&json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "wait_task", "arguments": {"task": task}}}));
        match is_killed {
            true => host.kill(),
            false => assert_eq!(host.end(), 0),
        }
        let mut host = Host::start(folder.path(), &[]);
        // What a killed server has left is taken up beside the first calls.
        let start = Instant::now();
        while state(&mut host, &task) != "failed" {
            assert!(start.elapsed() < LIMIT, "killed: {is_killed}");
            thread::sleep(Duration::from_millis(20));
        }
        assert_eq!(host.end(), 0);
    }
}

#[test]
fn when_the_one_that_hosts_has_gone_another_one_takes_over() {
    let folder = tempfile::tempdir().unwrap();
    let mut first = Host::start(folder.path(), &[]);
    let task = first.begin("hello");
    assert!(!first.tool("wait_task", json!({"task": task})).is_empty());
    let mut others: Vec<Host> = (0..3).map(|_| Host::start(folder.path(), &[])).collect();
    for host in &mut others {
        let params = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {}});
        assert_eq!(host.ask("initialize", params)["result"]["protocolVersion"], "2025-06-18");
    }
    first.kill();
    // All ask at once, and one of them becomes the host.
    let asked = others.into_iter().map(|mut host| {
        let task = task.clone();
        thread::spawn(move || {
            assert_eq!(state(&mut host, &task), "completed");
            host
        })
    });
    let others: Vec<Host> = asked.collect::<Vec<_>>().into_iter().map(|asked| asked.join().unwrap()).collect();
    let pid = address_file(folder.path()).expect("one of them hosts")["pid"].clone();
    assert_eq!(others.iter().filter(|host| json!(host.program.id()) == pid).count(), 1);
    for host in others {
        assert_eq!(host.end(), 0);
    }
}

#[test]
fn a_call_that_is_taken_back_does_not_stop_a_takeover() {
    let folder = tempfile::tempdir().unwrap();
    let first = Host::start(folder.path(), &[]);
    let mut second = Host::start(folder.path(), &[]);
    assert!(second.ask("tools/list", json!({}))["result"]["tools"].is_array());
    first.kill();
    for id in 0..5 {
        second.write(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": call("hello")}));
        second.write(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}));
    }
    assert_eq!(second.tool("ask_agent", json!({"message": "still here"})), "echo: still here");
    assert_eq!(address_file(folder.path()).unwrap()["pid"], json!(second.program.id()));
    assert_eq!(second.tool("ask_agent", json!({"message": "and now"})), "echo: and now");
    assert_eq!(second.end(), 0);
}

#[test]
fn hosts_that_start_at_the_same_time_share_one_server() {
    let folder = tempfile::tempdir().unwrap();
    let mut hosts: Vec<Host> = (0..4).map(|_| Host::start(folder.path(), &[])).collect();
    for host in &mut hosts {
        assert_eq!(host.tool("ask_agent", json!({"message": "hello"})), "echo: hello");
    }
    let pid = address_file(folder.path()).unwrap()["pid"].clone();
    assert_eq!(hosts.iter().filter(|host| json!(host.program.id()) == pid).count(), 1);
    for host in hosts {
        assert_eq!(host.end(), 0);
    }
}

#[test]
fn the_store_is_left_to_a_server_that_is_started_again() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = SabirOptions::new(SABIR, folder.path()).start();
    let mut host = Host::start(folder.path(), &[]);
    let task = host.begin("hello");
    server.terminate();
    assert!(server.wait(Duration::from_secs(20)).success());
    let refused = host.ask("tools/list", json!({}));
    assert!(refused["error"]["message"].as_str().unwrap().contains("start one with `sabir serve`"), "{refused}");
    assert_eq!(address_file(folder.path()), None);
    // The next one is found, at whatever address it listens.
    let _server = SabirOptions::new(SABIR, folder.path()).start();
    assert_eq!(state(&mut host, &task), "completed");
    assert_eq!(host.end(), 0);
}

#[test]
fn a_signal_stops_the_server_and_the_command() {
    let folder = tempfile::tempdir().unwrap();
    let mut host = Host::start(folder.path(), &[]);
    assert!(host.ask("tools/list", json!({}))["result"]["tools"].is_array());
    let status = Command::new("kill").args(["-TERM", &host.program.id().to_string()]).status().unwrap();
    assert!(status.success());
    // Its input is still open.
    assert_eq!(host.program.wait().unwrap().code(), Some(0));
    assert_eq!(address_file(folder.path()), None);
}

#[test]
fn a_host_that_reads_nothing_more_does_not_keep_the_store() {
    let folder = tempfile::tempdir().unwrap();
    let mut host = Host::start(folder.path(), &[]);
    let longest = host.ask("tools/list", json!({})).to_string().len();
    assert!(address_file(folder.path()).is_some());
    // More than a pipe holds.
    for id in 0..(1 << 20) / longest {
        host.write(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/list"}));
    }
    host.input = None;
    let deadline = Instant::now() + LIMIT;
    let ended = loop {
        match host.program.try_wait().unwrap() {
            Some(status) => break status.code(),
            None if Instant::now() > deadline => break None,
            None => thread::sleep(Duration::from_millis(20)),
        }
    };
    if ended.is_none() {
        host.program.kill().unwrap();
    }
    assert_eq!((ended, address_file(folder.path())), (Some(0), None));
}

/// A server that answers its first request with these bytes, some of them many times, and closes the connection.
fn answer_once(start: &'static str, piece: &'static [u8], times: usize) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        let mut stream = BufReader::new(listener.accept().unwrap().0);
        let mut line = String::new();
        while stream.read_line(&mut line).unwrap() > 2 {
            line.clear();
        }
        let stream = stream.get_mut();
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n").unwrap();
        stream.write_all(start.as_bytes()).unwrap();
        // It may be hung up on.
        let _ = (0..times).try_for_each(|_| stream.write_all(piece));
    });
    url
}

#[test]
fn a_request_is_answered_although_the_stream_of_the_server_breaks_off() {
    static MANY: [u8; 1 << 16] = [b'x'; 1 << 16];
    let progress = "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{}}\n\n";
    let ended = "ended its answer before it was complete";
    for (start, piece, times, expected) in [
        ("", &b""[..], 0, ended),
        (progress, b"", 0, ended),
        ("data: {\"jsonrpc\":\"2.0\",\"id\":\"tools/list\",\"result\":", b"", 0, ended),
        ("data: ", &MANY, 1 << 15, "a message of more than 64 MiB"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let mut host = Host::start(folder.path(), &["--url", &answer_once(start, piece, times)]);
        let answer = host.ask("tools/list", json!({}));
        assert!(answer["error"]["message"].as_str().unwrap().contains(expected), "{answer}");
        assert_eq!(host.end(), 0);
    }
}

#[test]
fn what_keeps_it_from_hosting_is_said_on_the_standard_error() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("ca.pem"), "x").unwrap();
    for (configuration, code, expected) in [
        ("[mcp]\nenabled = false\n", 1, "mcp.enabled"),
        ("[server]\ntls_client_ca = 'ca.pem'\n", 1, "server.tls_client_ca"),
        ("[auth]\nrequired = true\n", 2, "sabir token new"),
        ("[nonsense]\n", 2, "nonsense"),
    ] {
        fs::write(folder.path().join("sabir.toml"), configuration).unwrap();
        let output = command(folder.path()).stdin(Stdio::null()).output().unwrap();
        let errors = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), output.stdout.len()), (Some(code), 0), "{configuration}: {errors}");
        assert!(errors.contains(expected), "{configuration}: {errors}");
    }
}

#[test]
fn a_server_in_the_same_process_asks_for_credentials_too() {
    let folder = tempfile::tempdir().unwrap();
    let auth = [("SABIR_AUTH_TOKENS", "alice:secret-of-alice,bob:secret-of-bob")];
    let mut host = Host::start_with(folder.path(), &[], &auth);
    let answer = host.ask("tools/list", json!({}));
    assert!(answer["error"]["message"].as_str().unwrap().contains("SABIR_TOKEN"), "{answer}");
    let mut alice = Host::start_with(folder.path(), &["--token", "secret-of-alice"], &auth);
    let task = alice.begin("hello");
    let mut bob = Host::start_with(folder.path(), &["--token", "secret-of-bob"], &auth);
    assert!(bob.tool("get_task", json!({"task": task})).contains("does not exist"));
    for host in [alice, bob, host] {
        assert_eq!(host.end(), 0);
    }
}

#[test]
fn the_oldest_version_is_spoken_on_standard_input_alone() {
    let folder = tempfile::tempdir().unwrap();
    let mut host = Host::start(folder.path(), &[]);
    let params = json!({"protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": {}});
    assert_eq!(host.ask("initialize", params)["result"]["protocolVersion"], "2024-11-05");
    host.write(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    let result = host.ask("tools/call", call("hello"))["result"].clone();
    assert_eq!(result["content"][0]["text"], "echo: hello");
    assert!(result.get("structuredContent").is_none(), "{result}");
    let tools = host.ask("tools/list", json!({}))["result"]["tools"].clone();
    assert!(tools[0].get("annotations").is_none() && tools[0]["inputSchema"].is_object(), "{tools}");
    assert_eq!(host.end(), 0);
}

#[test]
fn what_is_wrong_with_a_line_is_answered_and_the_next_one_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let mut host = Host::start(folder.path(), &[]);
    let long_id = format!(r#"{{"jsonrpc":"2.0","id":"{}","method":"ping"}}"#, "x".repeat(5000));
    let lines: [(&[u8], i64); 9] = [
        (long_id.as_bytes(), -32600),
        (b"{", -32700),
        (b"\xff\xfe", -32700),
        (b"null", -32600),
        (b"{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"ping\"}", -32600),
        (b"{\"jsonrpc\":\"2.0\",\"id\":{\"a\":1},\"method\":\"ping\"}", -32600),
        (b"{\"jsonrpc\":\"2.0\",\"id\":1.5,\"method\":\"ping\"}", -32600),
        (b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":[]}", -32600),
        (b"{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"ping\"}", -32600),
    ];
    for (line, code) in lines {
        let input = host.input.as_mut().unwrap();
        input.write_all(line).and_then(|()| input.write_all(b"\n")).unwrap();
        let answer = host.read();
        assert_eq!(answer["error"]["code"], code, "{}: {answer}", String::from_utf8_lossy(line));
    }
    // What nobody asked for can be taken back, whatever it is called.
    for id in [json!(99), json!("x"), json!(null), json!({"a": [1]})] {
        host.write(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}));
    }
    host.write(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled"}));
    // Many wait at the same time, and each gets its own answer.
    let task = host.begin("slow 1");
    for id in 0..50 {
        let params = json!({"name": "wait_task", "arguments": {"task": task}});
        host.write(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}));
    }
    let mut answered: Vec<i64> = (0..50).map(|_| host.read()["id"].as_i64().unwrap()).collect();
    answered.sort_unstable();
    assert_eq!(answered, (0..50).collect::<Vec<i64>>());
    assert_eq!(host.end(), 0);
}

#[test]
fn a_message_that_is_too_large_is_refused_with_its_id_and_starts_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let mut host = Host::start_with(folder.path(), &[], &[("SABIR_SERVER_BODY_LIMIT", "64KiB")]);
    let huge = "x".repeat(200 * 1024);
    for method in ["tools/call", "initialize", "nope"] {
        let answer = host.ask(method, call(&huge));
        let words = answer["error"]["message"].as_str().unwrap_or_else(|| panic!("{answer}"));
        assert!(words.contains("413") && words.len() < 2000, "{words}");
    }
    assert_eq!(host.tool("ask_agent", json!({"message": "hello"})), "echo: hello");
    assert_eq!(host.end(), 0);
    let server = SabirOptions::new(SABIR, folder.path()).start();
    assert_eq!(server.rpc("ListTasks", json!({}))["result"]["totalSize"], 1);
}
