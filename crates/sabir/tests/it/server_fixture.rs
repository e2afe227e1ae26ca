//! The real program with an empty store, and short ways to send it requests.

use sabir_testkit::http::HttpReply;
use sabir_testkit::process::{SabirOptions, SabirProcess};
use sabir_testkit::sse;
use serde_json::{Value, json};

use crate::SABIR;

pub struct ServerFixture {
    pub server: SabirProcess,
    _folder: tempfile::TempDir,
}

impl ServerFixture {
    /// With no configuration at all.
    pub fn new() -> Self {
        Self::with(|options| options)
    }

    pub fn with(change: impl FnOnce(SabirOptions) -> SabirOptions) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let server = change(SabirOptions::new(SABIR, folder.path())).start();
        Self { server, _folder: folder }
    }

    /// With this `sabir.toml`.
    pub fn configured(toml: &str) -> Self {
        Self::with(|options| {
            std::fs::write(options.folder.join("sabir.toml"), toml).unwrap();
            options
        })
    }

    /// With demo agents of these ids.
    pub fn with_agents(ids: &[&str]) -> Self {
        let agents = ids.iter().map(|id| format!("[[agent]]\nid = \"{id}\"\nkind = \"demo\"\n"));
        Self::configured(&agents.collect::<String>())
    }

    pub fn ask(&self, verb: &str, path: &str, headers: &[(&str, &str)], body: &Value) -> HttpReply {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        self.server.http().exchange(verb, path, headers, body.as_bytes()).expect("it answers")
    }

    pub fn get(&self, path: &str) -> HttpReply {
        self.ask("GET", path, &[], &Value::Null)
    }

    pub fn post(&self, path: &str, body: Value) -> HttpReply {
        self.ask("POST", path, &[], &body)
    }

    /// A JSON-RPC call without a version header; the whole answer.
    pub fn rpc(&self, path: &str, method: &str, params: Value) -> Value {
        let body = json!({"jsonrpc": "2.0", "id": "r", "method": method, "params": params});
        self.ask("POST", path, &[], &body).json()
    }

    /// The frames of a stream to its end.
    pub fn stream(&self, path: &str, headers: &[(&str, &str)], body: &Value) -> Vec<sse::SseFrame> {
        self.open(path, headers, body).rest().unwrap()
    }

    /// A stream to be read frame by frame.
    pub fn open(&self, path: &str, headers: &[(&str, &str)], body: &Value) -> sse::Events {
        let opened = sse::open(self.server.address, "POST", path, headers, body.to_string().as_bytes()).unwrap();
        opened.unwrap_or_else(|reply| panic!("{}", reply.text()))
    }

    /// What the frames of a JSON-RPC stream hold, to its end.
    pub fn stream_rpc(&self, path: &str, method: &str, params: Value) -> Vec<Value> {
        let body = json!({"jsonrpc": "2.0", "id": "r", "method": method, "params": params});
        self.stream(path, &[], &body).iter().map(sse::SseFrame::payload).collect()
    }

    /// A body as it is, JSON or not.
    pub fn post_text(&self, path: &str, body: &str) -> HttpReply {
        self.server.http().exchange("POST", path, &[], body.as_bytes()).expect("it answers")
    }

    /// What is sent with this text and ends, waits or is answered: the result of a 0.3 send.
    pub fn send(&self, text: &str) -> Value {
        self.rpc("/a2a/jsonrpc", "message/send", v03_message(text))["result"].take()
    }

    /// A task that is working now, and its stream after the frame that said so.
    pub fn working(&self, text: &str) -> (String, sse::Events) {
        let body = json!({"jsonrpc": "2.0", "id": "r", "method": "message/stream", "params": v03_message(text)});
        let mut events = self.open("/a2a/jsonrpc", &[], &body);
        loop {
            let event = events.next_frame().unwrap().expect("it begins to work").payload();
            if event["status"]["state"] == "working" {
                return (event["taskId"].as_str().unwrap().to_owned(), events);
            }
        }
    }

    /// The task as 0.3 shows it now.
    pub fn task(&self, id: &str) -> Value {
        self.rpc("/a2a/jsonrpc", "tasks/get", json!({"id": id}))["result"].take()
    }
}

pub fn v1_message(text: &str) -> Value {
    json!({"message": {"messageId": text, "role": "ROLE_USER", "parts": [{"text": text}]}})
}

pub fn v03_message(text: &str) -> Value {
    json!({"message": {"kind": "message", "messageId": text, "role": "user", "parts": [{"kind": "text", "text": text}]}})
}
