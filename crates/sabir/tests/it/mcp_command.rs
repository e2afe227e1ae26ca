//! `sabir mcp`: MCP on standard input and output, in front of a running server.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use sabir_testkit::process::SabirOptions;
use serde_json::{Value, json};

use crate::SABIR;

struct Host {
    program: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Host {
    fn start(folder: &Path, words: &[&str]) -> Self {
        let mut command = Command::new(SABIR);
        command.arg("mcp").args(words).current_dir(folder).env_clear().env("SABIR_STORE", "sqlite:sabir.db");
        command.env("SABIR_LISTEN", "127.0.0.1:1");
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

    /// Closes its input; how the program ends.
    fn end(mut self) -> i32 {
        self.input = None;
        self.program.wait().unwrap().code().unwrap()
    }
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
