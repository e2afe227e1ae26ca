//! A client of each dialect and binding: how it sends requests and reads responses.

use std::sync::atomic::{AtomicU64, Ordering};

use sabir_testkit::grpc::{self, GrpcReply, GrpcStream};
use sabir_testkit::http::HttpReply;
use sabir_testkit::sse::{self, Events};

use serde_json::{Value, json};

use super::exact_json::{ExactJson, object, quoted};
use super::json_format::JsonFormat;
use super::neutral_task::{Event, Message, Task};
use crate::server_fixture::ServerFixture;

pub struct DialectClient {
    pub name: &'static str,
    binding: Binding,
    path: &'static str,
    version: &'static str,
    pub format: JsonFormat,
    /// The error code of a cancel of a finished task: a JSON-RPC code or an HTTP status.
    pub not_cancelable: i64,
}

/// The response to a send.
pub struct SendResponse {
    pub id: String,
    pub task: Option<Task>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Binding {
    JsonRpc,
    HttpJson,
    Grpc,
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

/// The first one loses nothing; the gateway has no streams, and those of gRPC hold less than JSON.
#[rustfmt::skip]
pub static DIALECTS: [DialectClient; 10] = [
    DialectClient { name: "1.0", binding: Binding::JsonRpc, path: "/a2a/v1", version: "1.0", format: JsonFormat::V1, not_cancelable: -32002 },
    DialectClient { name: "1.0 HTTP+JSON", binding: Binding::HttpJson, path: "/a2a/rest", version: "1.0", format: JsonFormat::V1, not_cancelable: 400 },
    DialectClient { name: "unversioned HTTP+JSON", binding: Binding::HttpJson, path: "/a2a/rest", version: "", format: JsonFormat::V1, not_cancelable: 409 },
    DialectClient { name: "0.3", binding: Binding::JsonRpc, path: "/a2a/v0.3", version: "", format: JsonFormat::Kind, not_cancelable: -32002 },
    DialectClient { name: "0.3 HTTP+JSON", binding: Binding::HttpJson, path: "/a2a/rest/v1", version: "", format: JsonFormat::Proto, not_cancelable: 409 },
    DialectClient { name: "0.2", binding: Binding::JsonRpc, path: "/", version: "0.2", format: JsonFormat::Kind, not_cancelable: -32002 },
    DialectClient { name: "0.1", binding: Binding::JsonRpc, path: "/a2a/v0.1", version: "", format: JsonFormat::Type, not_cancelable: -32002 },
    DialectClient { name: "the gateway", binding: Binding::Gateway, path: "/v1/a2a/agents/demo", version: "", format: JsonFormat::Gateway, not_cancelable: 400 },
    DialectClient { name: "1.0 gRPC", binding: Binding::Grpc, path: grpc::V1, version: "1.0", format: JsonFormat::V1, not_cancelable: 9 },
    DialectClient { name: "0.3 gRPC", binding: Binding::Grpc, path: grpc::V03, version: "", format: JsonFormat::Proto, not_cancelable: 9 },
];

/// All that carry JSON as it is.
pub static JSON_DIALECTS: &[DialectClient] = DIALECTS.first_chunk::<8>().expect("there are more").as_slice();

pub static REFERENCE: &DialectClient = &DIALECTS[0];

impl DialectClient {
    /// Sends and waits as long as the dialect does. The gateway does not wait, and only says which task it is.
    pub fn send(
        &self,
        fixture: &ServerFixture,
        message: &Message,
        task: Option<&str>,
        metadata: Option<&str>,
    ) -> SendResponse {
        let task = self.named(task);
        let params = self.format.send(message, task.as_deref(), metadata);
        let reply = self.ask(fixture, Operation::Send, task.as_deref(), &params);
        let answer = self.read(&reply).unwrap_or_else(|code| self.fail(code, &reply));
        let task = match self.format {
            JsonFormat::V1 | JsonFormat::Proto => self.format.read_task(answer.at("task")),
            JsonFormat::Kind | JsonFormat::Type => self.format.read_task(answer),
            JsonFormat::Gateway => return SendResponse { id: answer.at("taskId").string(), task: None },
        };
        SendResponse { id: task.id.clone(), task: Some(task) }
    }

    /// Sends and watches.
    pub fn stream(&self, fixture: &ServerFixture, message: &Message, task: Option<&str>) -> EventStream {
        let task = self.named(task);
        let params = self.format.send(message, task.as_deref(), None);
        self.open(fixture, Operation::Stream, task.as_deref(), &params, None)
    }

    /// Sends without waiting for the end: whoever can watch hangs up after the first frame.
    pub fn start(&self, fixture: &ServerFixture, message: &Message) -> String {
        if !self.can_stream() {
            return self.send(fixture, message, None, None).id;
        }
        match self.stream(fixture, message, None).next() {
            Some((1, Event::Task(task))) => task.id,
            Some((1, Event::Status { task, .. })) => task,
            other => panic!("{} begins with {other:?}", self.name),
        }
    }

    pub fn get(&self, fixture: &ServerFixture, id: &str) -> Task {
        let reply = self.ask(fixture, Operation::Get, Some(id), &by_id(id));
        self.format.read_task(self.read(&reply).unwrap_or_else(|code| self.fail(code, &reply)))
    }

    /// The task, or how it was refused. The gateway only says that it heard.
    pub fn cancel(&self, fixture: &ServerFixture, id: &str) -> Result<Option<Task>, i64> {
        let reply = self.ask(fixture, Operation::Cancel, Some(id), &by_id(id));
        let answer = self.read(&reply)?;
        if self.binding == Binding::Gateway {
            assert_eq!((reply.status, answer.at("status").string()), (202, "cancel_requested".to_owned()));
            return Ok(None);
        }
        Ok(Some(self.format.read_task(answer)))
    }

    /// Watches a task, from after this event on.
    pub fn subscribe(&self, fixture: &ServerFixture, id: &str, after: Option<u64>) -> EventStream {
        self.open(fixture, Operation::Subscribe, Some(id), &by_id(id), after)
    }

    /// The task, as far as this client can be told of it.
    pub fn reduce_task(&self, task: &Task) -> Task {
        let reduced = self.format.reduce_task(task);
        if self.binding == Binding::Grpc { reduced.with_sorted_json() } else { reduced }
    }

    /// One event of a task that became like `whole`.
    pub fn reduce_event(&self, event: &Event, whole: &Task) -> Event {
        let reduced = self.format.reduce_event(event, whole);
        if self.binding == Binding::Grpc { reduced.with_sorted_json() } else { reduced }
    }

    pub fn can_stream(&self) -> bool {
        self.binding != Binding::Gateway
    }

    /// In 0.1 clients name their tasks, also by what does not fit into a path as it is.
    fn named(&self, task: Option<&str>) -> Option<String> {
        static COUNT: AtomicU64 = AtomicU64::new(1);
        match (task, self.format) {
            (None, JsonFormat::Type) => {
                Some(format!("named/by its client? {}%", COUNT.fetch_add(1, Ordering::Relaxed)))
            }
            _ => task.map(str::to_owned),
        }
    }

    fn ask(&self, fixture: &ServerFixture, operation: Operation, id: Option<&str>, params: &str) -> HttpReply {
        if self.binding == Binding::Grpc {
            let (method, message) = self.grpc_request(operation, id, params);
            return as_http(&grpc::call(fixture.server.address, &method, &self.metadata(None), &message));
        }
        let (verb, path, body) = self.request(operation, id, params);
        let version = [("A2A-Version", self.version)];
        fixture.server.http().exchange(verb, &path, &version, body.as_bytes()).expect("it answers")
    }

    fn open(
        &self,
        fixture: &ServerFixture,
        operation: Operation,
        id: Option<&str>,
        params: &str,
        after: Option<u64>,
    ) -> EventStream {
        let after = after.map(|number| number.to_string());
        if self.binding == Binding::Grpc {
            let (method, message) = self.grpc_request(operation, id, params);
            let opened = grpc::open(fixture.server.address, &method, &self.metadata(after.as_deref()), &message);
            let stream = opened.unwrap_or_else(|reply| panic!("no stream of {}: {reply:?}", self.name));
            let number = stream.first_event_id;
            return EventStream { format: self.format, binding: self.binding, events: Frames::Grpc { stream, number } };
        }
        let (verb, path, body) = self.request(operation, id, params);
        let mut headers = vec![("A2A-Version", self.version)];
        headers.extend(after.as_deref().map(|number| ("Last-Event-ID", number)));
        let opened = sse::open(fixture.server.address, verb, &path, &headers, body.as_bytes()).expect("it answers");
        let events = opened.unwrap_or_else(|reply| panic!("no stream of {}: {}", self.name, reply.text()));
        EventStream { format: self.format, binding: self.binding, events: Frames::Sse(events) }
    }

    fn metadata<'a>(&'a self, after: Option<&'a str>) -> Vec<(&'a str, &'a str)> {
        let version = Some(self.version).filter(|version| !version.is_empty()).map(|version| ("a2a-version", version));
        version.into_iter().chain(after.map(|number| ("last-event-id", number))).collect()
    }

    /// The method, and its message as ProtoJSON.
    fn grpc_request(&self, operation: Operation, id: Option<&str>, params: &str) -> (String, Value) {
        let is_v1 = self.format == JsonFormat::V1;
        let name = match operation {
            Operation::Send => "SendMessage",
            Operation::Stream => "SendStreamingMessage",
            Operation::Get => "GetTask",
            Operation::Cancel => "CancelTask",
            Operation::Subscribe if is_v1 => "SubscribeToTask",
            Operation::Subscribe => "TaskSubscription",
        };
        let mut message: Value = serde_json::from_str(params).expect("it is JSON");
        match operation {
            Operation::Send | Operation::Stream if !is_v1 => {
                message["request"] = message["message"].take();
                message.as_object_mut().expect("an object").remove("message");
            }
            Operation::Get | Operation::Cancel | Operation::Subscribe if !is_v1 => {
                message = json!({"name": format!("tasks/{}", id.expect("it is about a task"))});
            }
            _ => {}
        }
        (format!("{}/{name}", self.path), message)
    }

    fn request(&self, operation: Operation, id: Option<&str>, params: &str) -> (&'static str, String, String) {
        if self.binding == Binding::JsonRpc {
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
        match (self.format, operation) {
            (JsonFormat::V1, Operation::Send) => "SendMessage",
            (JsonFormat::V1, Operation::Stream) => "SendStreamingMessage",
            (JsonFormat::V1, Operation::Get) => "GetTask",
            (JsonFormat::V1, Operation::Cancel) => "CancelTask",
            (JsonFormat::V1, Operation::Subscribe) => "SubscribeToTask",
            (JsonFormat::Type, Operation::Send) => "tasks/send",
            (JsonFormat::Type, Operation::Stream) => "tasks/sendSubscribe",
            (_, Operation::Send) => "message/send",
            (_, Operation::Stream) => "message/stream",
            (_, Operation::Get) => "tasks/get",
            (_, Operation::Cancel) => "tasks/cancel",
            (_, Operation::Subscribe) => "tasks/resubscribe",
        }
    }

    /// What is in an answer, or the error: a code of JSON-RPC, or a status of HTTP.
    fn read<'a>(&self, reply: &'a HttpReply) -> Result<ExactJson<'a>, i64> {
        let answer = ExactJson::of(std::str::from_utf8(&reply.body).expect("answers are text"));
        match self.binding {
            Binding::JsonRpc => answer.get("result").ok_or_else(|| {
                let code = answer.at("error").at("code").raw();
                code.parse().expect("a code is a number")
            }),
            Binding::Grpc if reply.status != 200 => Err(reply.status.into()),
            _ if reply.status >= 400 => Err(reply.status.into()),
            _ => Ok(answer),
        }
    }

    fn fail(&self, code: i64, reply: &HttpReply) -> ! {
        panic!("{code} in {}: {}", self.name, reply.text())
    }
}

/// With the status that the matrix compares: that of gRPC where the call failed.
fn as_http(reply: &GrpcReply) -> HttpReply {
    let body = reply.messages.first().map_or(Value::Null, as_carried).to_string();
    let status = match reply.code() {
        Some(0) => 200,
        // Codes below 400 are told apart from HTTP by their size.
        Some(code) => u16::from(code),
        None => panic!("{reply:?}"),
    };
    HttpReply { status, headers: Vec::new(), body: body.into_bytes() }
}

/// Whole numbers and times as Sabir's JSON writes them: protobuf has doubles only, and ProtoJSON leaves out a fraction of
/// nothing.
fn as_carried(value: &Value) -> Value {
    match value {
        Value::Number(number) => match number.as_f64() {
            Some(double) if double.fract() == 0.0 && double.abs() < 1e18 => json!(double as i64),
            _ => value.clone(),
        },
        Value::Array(list) => list.iter().map(as_carried).collect(),
        Value::Object(members) => {
            let member = |(name, value): (&String, &Value)| match value {
                Value::String(time) if name == "timestamp" && !time.contains('.') => {
                    (name.clone(), json!(time.replace('Z', ".000Z")))
                }
                _ => (name.clone(), as_carried(value)),
            };
            members.iter().map(member).collect()
        }
        other => other.clone(),
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
pub struct EventStream {
    format: JsonFormat,
    binding: Binding,
    events: Frames,
}

enum Frames {
    Sse(Events),
    /// `number` is that of the next message.
    Grpc {
        stream: GrpcStream,
        number: u64,
    },
}

impl EventStream {
    /// The next event and its number; `None` at the proper end.
    pub fn next(&mut self) -> Option<(u64, Event)> {
        let events = match &mut self.events {
            Frames::Sse(events) => events,
            Frames::Grpc { stream, number } => {
                let text = as_carried(&stream.next_message()?).to_string();
                *number += 1;
                return Some((*number - 1, self.format.read_event(ExactJson::of(&text))));
            }
        };
        let frame = events.next_frame().expect("the stream does not break")?;
        let json = ExactJson::of(&frame.data);
        let json = match self.binding {
            Binding::JsonRpc => {
                assert_eq!(json.at("id").raw(), "7", "{}", frame.data);
                json.get("result").unwrap_or_else(|| panic!("{}", frame.data))
            }
            _ => json,
        };
        Some((frame.id.expect("events have numbers"), self.format.read_event(json)))
    }

    /// All events up to the proper end.
    pub fn rest(&mut self) -> Vec<(u64, Event)> {
        std::iter::from_fn(|| self.next()).collect()
    }
}
