//! The dialects and bindings, and how a client of each asks.

use std::sync::atomic::{AtomicU64, Ordering};

use sabir_testkit::http::Reply;
use sabir_testkit::sse::{self, Events};

use super::exact::{Exact, object, quoted};
use super::neutral::{Event, Message, Task};
use super::spelling::Spelling;
use crate::desk::Desk;

pub struct Tongue {
    pub name: &'static str,
    carried: Carried,
    path: &'static str,
    version: &'static str,
    pub spelling: Spelling,
    /// What a cancel of a finished task is answered with: a code of JSON-RPC, or a status of HTTP.
    pub not_cancelable: i64,
}

/// What a send is answered with.
pub struct Sent {
    pub id: String,
    pub task: Option<Task>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Carried {
    JsonRpc,
    HttpJson,
    Gateway,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Operation {
    Send,
    Stream,
    Get,
    Cancel,
    Subscribe,
}

/// The first one loses nothing; the last one cannot watch.
#[rustfmt::skip]
pub static TONGUES: [Tongue; 8] = [
    Tongue { name: "1.0", carried: Carried::JsonRpc, path: "/a2a/v1", version: "1.0", spelling: Spelling::V1, not_cancelable: -32002 },
    Tongue { name: "1.0 HTTP+JSON", carried: Carried::HttpJson, path: "/a2a/rest", version: "1.0", spelling: Spelling::V1, not_cancelable: 400 },
    Tongue { name: "unversioned HTTP+JSON", carried: Carried::HttpJson, path: "/a2a/rest", version: "", spelling: Spelling::V1, not_cancelable: 409 },
    Tongue { name: "0.3", carried: Carried::JsonRpc, path: "/a2a/v0.3", version: "", spelling: Spelling::Kind, not_cancelable: -32002 },
    Tongue { name: "0.3 HTTP+JSON", carried: Carried::HttpJson, path: "/a2a/rest/v1", version: "", spelling: Spelling::Proto, not_cancelable: 409 },
    Tongue { name: "0.2", carried: Carried::JsonRpc, path: "/", version: "0.2", spelling: Spelling::Kind, not_cancelable: -32002 },
    Tongue { name: "0.1", carried: Carried::JsonRpc, path: "/a2a/v0.1", version: "", spelling: Spelling::Type, not_cancelable: -32002 },
    Tongue { name: "the gateway", carried: Carried::Gateway, path: "/v1/a2a/agents/demo", version: "", spelling: Spelling::Gateway, not_cancelable: 400 },
];

pub static REFERENCE: &Tongue = &TONGUES[0];

/// All but the last one.
pub fn watching() -> &'static [Tongue] {
    &TONGUES[..7]
}

impl Tongue {
    /// Sends and waits as long as the dialect does. The gateway does not wait, and only says which task it is.
    pub fn send(&self, desk: &Desk, message: &Message, task: Option<&str>, metadata: Option<&str>) -> Sent {
        let task = self.named(task);
        let params = self.spelling.send(message, task.as_deref(), metadata);
        let reply = self.ask(desk, Operation::Send, task.as_deref(), &params);
        let answer = self.read(&reply).unwrap_or_else(|code| self.fail(code, &reply));
        let task = match self.spelling {
            Spelling::V1 | Spelling::Proto => self.spelling.read_task(answer.at("task")),
            Spelling::Kind | Spelling::Type => self.spelling.read_task(answer),
            Spelling::Gateway => return Sent { id: answer.at("taskId").string(), task: None },
        };
        Sent { id: task.id.clone(), task: Some(task) }
    }

    /// Sends and watches.
    pub fn stream(&self, desk: &Desk, message: &Message, task: Option<&str>) -> Watch {
        let task = self.named(task);
        let params = self.spelling.send(message, task.as_deref(), None);
        self.open(desk, Operation::Stream, task.as_deref(), &params, None)
    }

    /// Sends without waiting for the end: whoever can watch hangs up after the first frame.
    pub fn start(&self, desk: &Desk, message: &Message) -> String {
        if !self.can_watch() {
            return self.send(desk, message, None, None).id;
        }
        match self.stream(desk, message, None).next() {
            Some((1, Event::Task(task))) => task.id,
            Some((1, Event::Status { task, .. })) => task,
            other => panic!("{} begins with {other:?}", self.name),
        }
    }

    pub fn get(&self, desk: &Desk, id: &str) -> Task {
        let reply = self.ask(desk, Operation::Get, Some(id), &by_id(id));
        self.spelling.read_task(self.read(&reply).unwrap_or_else(|code| self.fail(code, &reply)))
    }

    /// The task, or how it was refused. The gateway only says that it heard.
    pub fn cancel(&self, desk: &Desk, id: &str) -> Result<Option<Task>, i64> {
        let reply = self.ask(desk, Operation::Cancel, Some(id), &by_id(id));
        let answer = self.read(&reply)?;
        if self.carried == Carried::Gateway {
            assert_eq!((reply.status, answer.at("status").string()), (202, "cancel_requested".to_owned()));
            return Ok(None);
        }
        Ok(Some(self.spelling.read_task(answer)))
    }

    /// Watches a task, from after this event on.
    pub fn subscribe(&self, desk: &Desk, id: &str, after: Option<u64>) -> Watch {
        self.open(desk, Operation::Subscribe, Some(id), &by_id(id), after)
    }

    pub fn can_watch(&self) -> bool {
        self.carried != Carried::Gateway
    }

    /// In 0.1 clients name their tasks, also by what does not fit into a path as it is.
    fn named(&self, task: Option<&str>) -> Option<String> {
        static COUNT: AtomicU64 = AtomicU64::new(1);
        match (task, self.spelling) {
            (None, Spelling::Type) => Some(format!("named/by its client? {}%", COUNT.fetch_add(1, Ordering::Relaxed))),
            _ => task.map(str::to_owned),
        }
    }

    fn ask(&self, desk: &Desk, operation: Operation, id: Option<&str>, params: &str) -> Reply {
        let (verb, path, body) = self.request(operation, id, params);
        let version = [("A2A-Version", self.version)];
        desk.server.http().exchange(verb, &path, &version, body.as_bytes()).expect("it answers")
    }

    fn open(&self, desk: &Desk, operation: Operation, id: Option<&str>, params: &str, after: Option<u64>) -> Watch {
        let (verb, path, body) = self.request(operation, id, params);
        let after = after.map(|number| number.to_string());
        let mut headers = vec![("A2A-Version", self.version)];
        headers.extend(after.as_deref().map(|number| ("Last-Event-ID", number)));
        let opened = sse::open(desk.server.address, verb, &path, &headers, body.as_bytes()).expect("it answers");
        let events = opened.unwrap_or_else(|reply| panic!("no stream of {}: {}", self.name, reply.text()));
        Watch { spelling: self.spelling, carried: self.carried, events }
    }

    fn request(&self, operation: Operation, id: Option<&str>, params: &str) -> (&'static str, String, String) {
        if self.carried == Carried::JsonRpc {
            let method = Some(quoted(self.method(operation)));
            let version = Some(quoted("2.0"));
            let params = Some(params.to_owned());
            let members = [("jsonrpc", version), ("id", Some("7".to_owned())), ("method", method), ("params", params)];
            return ("POST", self.path.to_owned(), object(&members));
        }
        let task = || format!("{}/tasks/{}", self.path, segment(id.expect("it is about a task")));
        match operation {
            Operation::Send => ("POST", format!("{}/message:send", self.path), params.to_owned()),
            Operation::Stream => ("POST", format!("{}/message:stream", self.path), params.to_owned()),
            Operation::Get => ("GET", task(), String::new()),
            Operation::Cancel => ("POST", task() + ":cancel", String::new()),
            Operation::Subscribe => ("POST", task() + ":subscribe", String::new()),
        }
    }

    fn method(&self, operation: Operation) -> &'static str {
        match (self.spelling, operation) {
            (Spelling::V1, Operation::Send) => "SendMessage",
            (Spelling::V1, Operation::Stream) => "SendStreamingMessage",
            (Spelling::V1, Operation::Get) => "GetTask",
            (Spelling::V1, Operation::Cancel) => "CancelTask",
            (Spelling::V1, Operation::Subscribe) => "SubscribeToTask",
            (Spelling::Type, Operation::Send) => "tasks/send",
            (Spelling::Type, Operation::Stream) => "tasks/sendSubscribe",
            (_, Operation::Send) => "message/send",
            (_, Operation::Stream) => "message/stream",
            (_, Operation::Get) => "tasks/get",
            (_, Operation::Cancel) => "tasks/cancel",
            (_, Operation::Subscribe) => "tasks/resubscribe",
        }
    }

    /// What is in an answer, or the error: a code of JSON-RPC, or a status of HTTP.
    fn read<'a>(&self, reply: &'a Reply) -> Result<Exact<'a>, i64> {
        let answer = Exact::of(std::str::from_utf8(&reply.body).expect("answers are text"));
        match self.carried {
            Carried::JsonRpc => answer.get("result").ok_or_else(|| {
                let code = answer.at("error").at("code").raw();
                code.parse().expect("a code is a number")
            }),
            _ if reply.status >= 400 => Err(reply.status.into()),
            _ => Ok(answer),
        }
    }

    fn fail(&self, code: i64, reply: &Reply) -> ! {
        panic!("{code} in {}: {}", self.name, reply.text())
    }
}

fn by_id(id: &str) -> String {
    object(&[("id", Some(quoted(id)))])
}

/// An id as a path has it.
fn segment(id: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    id.bytes().map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}

/// A stream that is read event by event.
pub struct Watch {
    spelling: Spelling,
    carried: Carried,
    events: Events,
}

impl Watch {
    /// The next event and its number; `None` at the proper end.
    pub fn next(&mut self) -> Option<(u64, Event)> {
        let frame = self.events.next_frame().expect("the stream does not break")?;
        let json = Exact::of(&frame.data);
        let json = match self.carried {
            Carried::JsonRpc => {
                assert_eq!(json.at("id").raw(), "7", "{}", frame.data);
                json.get("result").unwrap_or_else(|| panic!("{}", frame.data))
            }
            _ => json,
        };
        Some((frame.id.expect("events have numbers"), self.spelling.read_event(json)))
    }

    /// All events up to the proper end.
    pub fn rest(&mut self) -> Vec<(u64, Event)> {
        std::iter::from_fn(|| self.next()).collect()
    }
}
