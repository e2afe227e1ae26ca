//! The dialects and bindings: how a client of each asks, and what it reads of the answers.
//!
//! Only what the promises need is read: ids, states, texts. States are 0.3's words.

use serde_json::{Value, json};

use sabir_testkit::http::Reply;
use sabir_testkit::sse::Frame;

pub struct Tongue {
    pub name: &'static str,
    carried: Carried,
    path: &'static str,
    version: &'static str,
    pub spelling: Spelling,
    /// What a cancel of a finished task is refused with: a code of JSON-RPC, or a status of HTTP.
    pub not_cancelable: i64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Carried {
    JsonRpc,
    HttpJson,
    Gateway,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spelling {
    V1,
    /// 0.2 and 0.3 as JSON-RPC has them.
    Kind,
    /// 0.3 as HTTP+JSON has it.
    Proto,
    /// 0.1.
    Type,
    Gateway,
}

#[rustfmt::skip]
pub static TONGUES: [Tongue; 8] = [
    Tongue { name: "1.0 JSON-RPC", carried: Carried::JsonRpc, path: "/a2a/v1", version: "1.0", spelling: Spelling::V1, not_cancelable: -32002 },
    Tongue { name: "1.0 HTTP+JSON", carried: Carried::HttpJson, path: "/a2a/rest", version: "1.0", spelling: Spelling::V1, not_cancelable: 400 },
    Tongue { name: "unversioned HTTP+JSON", carried: Carried::HttpJson, path: "/a2a/rest", version: "", spelling: Spelling::V1, not_cancelable: 409 },
    Tongue { name: "0.3 JSON-RPC", carried: Carried::JsonRpc, path: "/a2a/v0.3", version: "", spelling: Spelling::Kind, not_cancelable: -32002 },
    Tongue { name: "0.3 HTTP+JSON", carried: Carried::HttpJson, path: "/a2a/rest/v1", version: "", spelling: Spelling::Proto, not_cancelable: 409 },
    Tongue { name: "0.2", carried: Carried::JsonRpc, path: "/", version: "0.2", spelling: Spelling::Kind, not_cancelable: -32002 },
    Tongue { name: "0.1", carried: Carried::JsonRpc, path: "/a2a/v0.1", version: "", spelling: Spelling::Type, not_cancelable: -32002 },
    Tongue { name: "the gateway", carried: Carried::Gateway, path: "/v1/a2a/agents/demo", version: "", spelling: Spelling::Gateway, not_cancelable: 400 },
];

/// The one that loses nothing.
pub static REFERENCE: &Tongue = &TONGUES[0];

/// The two that can list.
pub static LISTING: &[Tongue] = TONGUES.split_at(2).0;

/// All but the gateway.
pub static WATCHING: &[Tongue] = TONGUES.split_at(7).0;

/// A message to be sent.
#[derive(Clone, Copy)]
pub struct Wish<'a> {
    /// Unique, for dialects that name messages; and the name of the task where clients name it.
    pub name: &'a str,
    pub text: &'a str,
    pub context: Option<&'a str>,
    /// The task that it continues.
    pub task: Option<&'a str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivery {
    WhenSettled,
    Immediately,
    Stream,
}

pub enum Operation<'a> {
    Send(Wish<'a>, Delivery),
    Get(&'a str),
    Cancel(&'a str),
    Subscribe(&'a str),
    /// A page of the list: filters and token as 1.0 names them.
    List(&'a [(&'a str, &'a str)]),
}

pub struct Request {
    pub method: &'static str,
    pub path: String,
    pub body: String,
}

/// A task as an answer tells it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Told {
    pub id: String,
    pub state: String,
    /// The texts of all artifacts, joined; the gateway tells the last one, of what is completed.
    pub made: Option<String>,
}

/// One event as a frame tells it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    Task(Told),
    Status { task: String, state: String, words: Option<String>, time: String },
    Artifact { task: String, text: String, append: bool, last: bool },
}

impl Event {
    pub fn task(&self) -> &str {
        match self {
            Event::Task(told) => &told.id,
            Event::Status { task, .. } | Event::Artifact { task, .. } => task,
        }
    }

    pub fn state(&self) -> Option<&str> {
        match self {
            Event::Task(told) => Some(&told.state),
            Event::Status { state, .. } => Some(state),
            Event::Artifact { .. } => None,
        }
    }
}

pub fn is_terminal(state: &str) -> bool {
    matches!(state, "completed" | "failed" | "rejected" | "canceled")
}

pub fn is_at_rest(state: &str) -> bool {
    is_terminal(state) || matches!(state, "input-required" | "auth-required")
}

impl Tongue {
    /// Its place among all of them.
    pub fn place(&self) -> usize {
        TONGUES.iter().position(|other| other.name == self.name).expect("it is one of them")
    }

    pub fn can_watch(&self) -> bool {
        self.carried != Carried::Gateway
    }

    /// In which deliveries it can send. 0.1 always waits, the gateway never.
    pub fn deliveries(&self) -> &'static [Delivery] {
        match self.spelling {
            Spelling::V1 | Spelling::Kind | Spelling::Proto => {
                &[Delivery::WhenSettled, Delivery::Immediately, Delivery::Stream]
            }
            Spelling::Type => &[Delivery::WhenSettled, Delivery::Stream],
            Spelling::Gateway => &[Delivery::Immediately],
        }
    }

    /// What this dialect calls a state; some have fewer words.
    pub fn word_for<'a>(&self, state: &'a str) -> &'a str {
        match (self.spelling, state) {
            (Spelling::Type, "rejected") => "failed",
            (Spelling::Type | Spelling::Gateway, "auth-required") => "input-required",
            (_, state) => state,
        }
    }

    pub fn headers<'a>(&self, more: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
        let version = (!self.version.is_empty()).then_some(("A2A-Version", self.version));
        version.into_iter().chain(more.iter().copied()).collect()
    }

    pub fn request(&self, operation: &Operation<'_>) -> Request {
        if self.carried == Carried::JsonRpc {
            // Always the same id, so that frames can be compared byte for byte.
            let body =
                json!({"jsonrpc": "2.0", "id": 7, "method": self.method(operation), "params": self.params(operation)});
            return Request { method: "POST", path: self.path.to_owned(), body: body.to_string() };
        }
        let task = |id: &str| format!("{}/tasks/{id}", self.path);
        let (method, path, body) = match operation {
            Operation::Send(_, Delivery::Stream) => {
                ("POST", format!("{}/message:stream", self.path), self.params(operation).to_string())
            }
            Operation::Send(..) => ("POST", format!("{}/message:send", self.path), self.params(operation).to_string()),
            Operation::Get(id) => ("GET", task(id), String::new()),
            Operation::Cancel(id) => ("POST", task(id) + ":cancel", String::new()),
            Operation::Subscribe(id) => ("POST", task(id) + ":subscribe", String::new()),
            Operation::List(filters) => {
                let query: Vec<String> = filters.iter().map(|(name, value)| format!("{name}={value}")).collect();
                ("GET", format!("{}/tasks?{}", self.path, query.join("&")), String::new())
            }
        };
        Request { method, path, body }
    }

    fn method(&self, operation: &Operation<'_>) -> &'static str {
        match (self.spelling, operation) {
            (Spelling::V1, Operation::Send(_, Delivery::Stream)) => "SendStreamingMessage",
            (Spelling::V1, Operation::Send(..)) => "SendMessage",
            (Spelling::V1, Operation::Get(_)) => "GetTask",
            (Spelling::V1, Operation::Cancel(_)) => "CancelTask",
            (Spelling::V1, Operation::Subscribe(_)) => "SubscribeToTask",
            (_, Operation::List(_)) => "ListTasks",
            (Spelling::Type, Operation::Send(_, Delivery::Stream)) => "tasks/sendSubscribe",
            (Spelling::Type, Operation::Send(..)) => "tasks/send",
            (_, Operation::Send(_, Delivery::Stream)) => "message/stream",
            (_, Operation::Send(..)) => "message/send",
            (_, Operation::Get(_)) => "tasks/get",
            (_, Operation::Cancel(_)) => "tasks/cancel",
            (_, Operation::Subscribe(_)) => "tasks/resubscribe",
        }
    }

    fn params(&self, operation: &Operation<'_>) -> Value {
        match operation {
            Operation::Send(wish, delivery) => self.send(wish, *delivery),
            Operation::Get(id) | Operation::Cancel(id) | Operation::Subscribe(id) => json!({ "id": id }),
            Operation::List(filters) => {
                let value = |text: &str| text.parse::<u64>().map_or(json!(text), |number| json!(number));
                filters.iter().map(|(name, text)| ((*name).to_owned(), value(text))).collect()
            }
        }
    }

    fn send(&self, wish: &Wish<'_>, delivery: Delivery) -> Value {
        let Wish { name, text, context, task } = *wish;
        let waits = delivery == Delivery::WhenSettled;
        let params = match self.spelling {
            Spelling::V1 => json!({
                "message": {"messageId": name, "role": "ROLE_USER", "parts": [{"text": text}], "contextId": context, "taskId": task},
                "configuration": {"returnImmediately": !waits},
            }),
            Spelling::Kind => json!({
                "message": {"kind": "message", "messageId": name, "role": "user", "parts": [{"kind": "text", "text": text}],
                    "contextId": context, "taskId": task},
                "configuration": {"blocking": waits},
            }),
            Spelling::Proto => json!({
                "message": {"messageId": name, "role": "ROLE_USER", "content": [{"text": text}], "contextId": context, "taskId": task},
                "configuration": {"blocking": waits},
            }),
            Spelling::Type => json!({
                "id": task.unwrap_or(name),
                "sessionId": context,
                "message": {"role": "user", "parts": [{"type": "text", "text": text}]},
            }),
            Spelling::Gateway => json!({"taskId": task, "contextId": context, "input": text}),
        };
        without_nulls(params)
    }

    /// What is in an answer, or the refusal: a code of JSON-RPC, or a status of HTTP.
    pub fn read(&self, reply: &Reply) -> Result<Value, i64> {
        let json: Value = serde_json::from_slice(&reply.body).unwrap_or_default();
        match self.carried {
            Carried::JsonRpc if json["result"].is_object() => Ok(json["result"].clone()),
            Carried::JsonRpc => Err(json["error"]["code"].as_i64().unwrap_or(reply.status.into())),
            _ if reply.status < 400 && json.is_object() => Ok(json),
            _ => Err(reply.status.into()),
        }
    }

    /// The task in the answer to a send, a get or a cancel.
    pub fn read_task(&self, answer: &Value) -> Option<Told> {
        if self.spelling == Spelling::Gateway {
            return read_run(answer);
        }
        let task = if answer["task"].is_object() { &answer["task"] } else { answer };
        let made = task["artifacts"].as_array().into_iter().flatten().map(|artifact| self.text_of(artifact));
        Some(Told {
            id: task["id"].as_str()?.to_owned(),
            state: self.state(&task["status"])?,
            made: Some(made.collect()),
        })
    }

    /// The event in a frame; none where the frame is an error.
    pub fn read_frame(&self, frame: &Frame) -> Option<Event> {
        let json: Value = serde_json::from_str(&frame.data).ok()?;
        let json = if self.carried == Carried::JsonRpc { json.get("result")?.clone() } else { json };
        let is = |member: &str, kind: &str| json[member].is_object() || json["kind"] == kind;
        let body = |member: &str| if json[member].is_object() { &json[member] } else { &json };
        if self.spelling == Spelling::Type {
            let task = json["id"].as_str()?.to_owned();
            return match json.get("artifact") {
                Some(artifact) => Some(self.artifact(task, artifact, artifact)),
                None => self.status(task, &json["status"]),
            };
        }
        if is("task", "task") {
            return self.read_task(body("task")).map(Event::Task);
        }
        if is("statusUpdate", "status-update") {
            let update = body("statusUpdate");
            return self.status(update["taskId"].as_str()?.to_owned(), &update["status"]);
        }
        let update = body("artifactUpdate");
        let artifact = update.get("artifact")?;
        Some(self.artifact(update["taskId"].as_str()?.to_owned(), artifact, update))
    }

    fn status(&self, task: String, status: &Value) -> Option<Event> {
        let words = status.get("message").map(|message| self.text_of(message));
        let time = status["timestamp"].as_str().unwrap_or_default().to_owned();
        Some(Event::Status { task, state: self.state(status)?, words, time })
    }

    fn artifact(&self, task: String, artifact: &Value, beside: &Value) -> Event {
        Event::Artifact {
            task,
            text: self.text_of(artifact),
            append: beside["append"] == true,
            last: beside["lastChunk"] == true,
        }
    }

    fn state(&self, status: &Value) -> Option<String> {
        let state = status["state"].as_str()?;
        Some(match state.strip_prefix("TASK_STATE_") {
            Some("CANCELLED") => "canceled".to_owned(),
            Some(name) => name.to_lowercase().replace('_', "-"),
            None => state.to_owned(),
        })
    }

    /// The texts of an artifact or a message.
    pub fn text_of(&self, holder: &Value) -> String {
        let parts = holder["parts"].as_array().or(holder["content"].as_array());
        parts.into_iter().flatten().filter_map(|part| part["text"].as_str()).collect()
    }
}

/// A run of the gateway; the answer to a submission has no more than its id and a status.
fn read_run(json: &Value) -> Option<Told> {
    let state = match (json["status"].as_str()?, json["terminationCode"].as_str()) {
        ("queued" | "submitted", _) => "submitted",
        ("running", _) => "working",
        ("waiting", _) => "input-required",
        ("done", Some("error")) => "failed",
        ("done", Some("rejected")) => "rejected",
        ("done", _) => "completed",
        ("cancelled", _) => "canceled",
        _ => return None,
    };
    // Elsewhere the agent's last words may stand in the place of what was made.
    let is_made = state == "completed" && json["history"].is_array();
    let made = json["artifacts"].as_array().into_iter().flatten().filter_map(|made| made["content"].as_str());
    let made = is_made.then(|| made.collect());
    Some(Told { id: json["taskId"].as_str()?.to_owned(), state: state.to_owned(), made })
}

fn without_nulls(mut value: Value) -> Value {
    if let Some(members) = value.as_object_mut() {
        members.retain(|_, member| !member.is_null());
        for member in members.values_mut() {
            *member = without_nulls(member.take());
        }
    }
    value
}
