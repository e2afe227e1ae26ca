//! A model server with a script, and a server of ours in front of it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::ops::Deref;
use std::sync::{Arc, Mutex};
use std::thread;

use sabir_testkit::process::{SabirOptions, SabirProcess};
use sabir_testkit::sse;
use serde_json::{Value, json};

use crate::SABIR;
use crate::program_fixture::wait_for;

/// What the model server does with one request.
#[derive(Clone)]
pub enum Reply {
    /// Events of a stream, each as its data; then the connection is closed.
    Stream(Vec<String>),
    /// The same, and then nothing, until the other side is gone.
    StreamThenSilence(Vec<String>),
    /// A whole response: status, more headers, body.
    Whole(u16, &'static str, String),
    /// The request is read, and the connection closed.
    HangUp,
}

/// One request as it came.
#[derive(Clone)]
pub struct Asked {
    pub path: String,
    /// Lower case, one per line.
    pub head: String,
    pub body: Value,
}

pub struct Model {
    pub url: String,
    asked: Arc<Mutex<Vec<Asked>>>,
    closed: Arc<Mutex<usize>>,
    script: Arc<Mutex<Vec<Reply>>>,
}

impl Model {
    /// Answers one request after the other; the last answer is repeated.
    pub fn new(script: Vec<Reply>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let (asked, closed) = (Arc::default(), Arc::default());
        let model = Self { url, asked, closed, script: Arc::new(Mutex::new(script)) };
        let (asked, closed, script) = (model.asked.clone(), model.closed.clone(), model.script.clone());
        thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                let (asked, closed, script) = (asked.clone(), closed.clone(), script.clone());
                thread::spawn(move || serve(connection, &asked, &closed, &script));
            }
        });
        model
    }

    pub fn answers_next(&self, script: Vec<Reply>) {
        *self.script.lock().unwrap() = script;
    }

    pub fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }

    /// The messages of the last request, as `role: content` in one line each.
    pub fn last_messages(&self) -> Vec<String> {
        let asked = self.asked();
        let messages = asked.last().expect("it was asked").body["messages"].as_array().unwrap().clone();
        let say = |message: Value| {
            let role = message["role"].as_str().unwrap_or_default().to_owned();
            match &message["content"] {
                Value::String(text) => format!("{role}: {text}"),
                other => format!("{role}: {other}"),
            }
        };
        messages.into_iter().map(say).collect()
    }

    pub fn wait_until_asked(&self, times: usize) {
        wait_for("a request to the model", || self.asked().len() >= times);
    }

    /// Waits until the other side has closed a connection that was silent.
    pub fn wait_until_closed(&self) {
        wait_for("the end of the connection", || *self.closed.lock().unwrap() > 0);
    }
}

fn serve(connection: TcpStream, asked: &Mutex<Vec<Asked>>, closed: &Mutex<usize>, script: &Mutex<Vec<Reply>>) {
    let mut reader = BufReader::new(connection.try_clone().unwrap());
    let mut writer = connection;
    let (mut first, mut head) = (String::new(), String::new());
    if reader.read_line(&mut first).unwrap_or(0) == 0 {
        return;
    }
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap_or(0) == 0 || line.trim().is_empty() {
            break;
        }
        head.push_str(&line.to_lowercase());
    }
    let length = head.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    let path = first.split(' ').nth(1).unwrap_or_default().to_owned();
    let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
    asked.lock().unwrap().push(Asked { path, head, body });
    let reply = {
        let mut script = script.lock().unwrap();
        if script.len() > 1 { script.remove(0) } else { script[0].clone() }
    };
    let stream_head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    let write_events = |writer: &mut TcpStream, events: &[String]| {
        writer.write_all(stream_head.as_bytes())?;
        events.iter().try_for_each(|event| writer.write_all(format!("data: {event}\n\n").as_bytes()))
    };
    let _ = match reply {
        Reply::HangUp => Ok(()),
        Reply::Stream(events) => write_events(&mut writer, &events),
        Reply::StreamThenSilence(events) => {
            let written = write_events(&mut writer, &events);
            // Ends when the other side has gone, one way or the other.
            while reader.read(&mut [0; 1]).is_ok_and(|count| count > 0) {}
            *closed.lock().unwrap() += 1;
            written
        }
        Reply::Whole(status, headers, body) => {
            let length = body.len();
            let head = format!("HTTP/1.1 {status} X\r\ncontent-length: {length}\r\nconnection: close\r\n{headers}\r\n");
            writer.write_all((head + &body).as_bytes())
        }
    };
}

pub fn piece(text: &str) -> String {
    json!({"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": null}]}).to_string()
}

pub fn end(finish: &str) -> String {
    json!({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]}).to_string()
}

pub fn usage(input: u64, output: u64) -> String {
    json!({"choices": [], "usage": {"prompt_tokens": input, "completion_tokens": output}}).to_string()
}

/// A complete answer in words.
pub fn says(text: &str) -> Reply {
    let mut events: Vec<String> = text.split_inclusive(' ').map(piece).collect();
    events.extend([end("stop"), usage(12, 3), "[DONE]".to_owned()]);
    Reply::Stream(events)
}

/// A complete answer that calls a tool.
pub fn calls(tool: &str, arguments: &Value) -> Reply {
    let call = json!([{"index": 0, "id": "c1", "type": "function",
        "function": {"name": tool, "arguments": arguments.to_string()}}]);
    let delta = json!({"choices": [{"index": 0, "delta": {"tool_calls": call}, "finish_reason": null}]}).to_string();
    Reply::Stream(vec![delta, end("tool_calls"), usage(20, 5), "[DONE]".to_owned()])
}

pub fn refuses(status: u16, message: &str) -> Reply {
    Reply::Whole(status, "content-type: application/json\r\n", json!({"error": {"message": message}}).to_string())
}

/// A folder with a configuration, which several servers may use one after the other.
pub struct Front {
    pub folder: tempfile::TempDir,
}

impl Front {
    /// `more` are further settings of the agent.
    pub fn new(model: &Model, more: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let url = &model.url;
        let toml = format!(
            "[[agent]]\nid = \"chat\"\nkind = \"openai\"\nbase_url = {url:?}\nmodel = \"little\"\n\
             system_prompt = \"Be brief.\"\n{more}\n"
        );
        std::fs::write(folder.path().join("sabir.toml"), toml).unwrap();
        Self { folder }
    }

    pub fn options(&self) -> SabirOptions {
        SabirOptions::new(SABIR, self.folder.path())
    }

    pub fn start(&self) -> SabirProcess {
        self.options().start()
    }

    /// A server that is started once.
    pub fn serve(self) -> Served {
        Served { server: self.start(), _front: self }
    }
}

/// A server with its folder, which lasts as long.
pub struct Served {
    server: SabirProcess,
    _front: Front,
}

impl Deref for Served {
    type Target = SabirProcess;

    fn deref(&self) -> &SabirProcess {
        &self.server
    }
}

/// A send within a context.
pub fn within(context: &str, mut params: Value) -> Value {
    params["message"]["contextId"] = json!(context);
    params
}

/// A send whose answer does not wait.
pub fn at_once(mut params: Value) -> Value {
    params["configuration"] = json!({"returnImmediately": true});
    params
}

pub fn task(server: &SabirProcess, id: &Value) -> Value {
    server.rpc("GetTask", json!({"id": id}))["result"].take()
}

pub fn until(server: &SabirProcess, id: &Value, wanted: &str) -> Value {
    server.until(wanted, |server| {
        let task = task(server, id);
        let state = crate::program_fixture::state(&task);
        assert!(
            state == wanted || !["COMPLETED", "FAILED", "CANCELED", "REJECTED"].contains(&state),
            "{wanted} expected: {task}"
        );
        (state == wanted).then_some(task)
    })
}

/// All frames of a stream, as text.
pub fn frames(server: &SabirProcess, params: &Value) -> String {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "SendStreamingMessage", "params": params}).to_string();
    let headers = [("A2A-Version", "1.0")];
    let opened = sse::open(server.address, "POST", "/", &headers, body.as_bytes()).unwrap();
    let mut events = opened.unwrap_or_else(|reply| panic!("{}", reply.text()));
    events.rest().unwrap().iter().map(|frame| frame.data.clone() + "\n").collect()
}
