//! A client of each dialect and binding: how it writes requests and reads responses.
//!
//! Only what the promises need is read: ids, states, texts. States have their names of 0.3.

use serde_json::{Value, json};

use sabir_testkit::http::HttpReply;
use sabir_testkit::sse::SseFrame;

use crate::agents::{Agent, DEFAULT};
use crate::webhook_receiver::token_of;

pub struct DialectClient {
    pub name: &'static str,
    binding: Binding,
    path: &'static str,
    version: &'static str,
    pub format: JsonFormat,
    /// The error code of a cancel of a finished task: a JSON-RPC code or an HTTP status.
    pub not_cancelable: i64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Binding {
    JsonRpc,
    HttpJson,
    Gateway,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JsonFormat {
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
pub static DIALECTS: [DialectClient; 8] = [
    DialectClient { name: "1.0 JSON-RPC", binding: Binding::JsonRpc, path: "/a2a/v1", version: "1.0", format: JsonFormat::V1, not_cancelable: -32002 },
    DialectClient { name: "1.0 HTTP+JSON", binding: Binding::HttpJson, path: "/a2a/rest", version: "1.0", format: JsonFormat::V1, not_cancelable: 400 },
    DialectClient { name: "unversioned HTTP+JSON", binding: Binding::HttpJson, path: "/a2a/rest", version: "", format: JsonFormat::V1, not_cancelable: 409 },
    DialectClient { name: "0.3 JSON-RPC", binding: Binding::JsonRpc, path: "/a2a/v0.3", version: "", format: JsonFormat::Kind, not_cancelable: -32002 },
    DialectClient { name: "0.3 HTTP+JSON", binding: Binding::HttpJson, path: "/a2a/rest/v1", version: "", format: JsonFormat::Proto, not_cancelable: 409 },
    DialectClient { name: "0.2", binding: Binding::JsonRpc, path: "/", version: "0.2", format: JsonFormat::Kind, not_cancelable: -32002 },
    DialectClient { name: "0.1", binding: Binding::JsonRpc, path: "/a2a/v0.1", version: "", format: JsonFormat::Type, not_cancelable: -32002 },
    DialectClient { name: "the gateway", binding: Binding::Gateway, path: "/v1/a2a/agents", version: "", format: JsonFormat::Gateway, not_cancelable: 400 },
];

/// The dialect that loses nothing.
pub static REFERENCE: &DialectClient = &DIALECTS[0];

/// The dialects that can list.
pub static LISTING_DIALECTS: &[DialectClient] = DIALECTS.split_at(2).0;

/// The dialects that have streams: all but the gateway.
pub static STREAMING_DIALECTS: &[DialectClient] = DIALECTS.split_at(7).0;

/// A message to be sent.
#[derive(Clone, Copy)]
pub struct ClientMessage<'a> {
    /// Unique, for dialects that name messages; and the name of the task where clients name it.
    pub name: &'a str,
    pub text: &'a str,
    pub context: Option<&'a str>,
    /// The task that it continues.
    pub task: Option<&'a str>,
    /// The agent that it is sent to.
    pub agent: &'static Agent,
    pub content: Content,
    /// It brings this webhook along.
    pub webhook: Option<&'a Webhook>,
}

/// A webhook to be set.
pub struct Webhook {
    pub name: String,
    pub url: String,
    /// It wants every event, not only statuses.
    pub wants_all: bool,
}

impl<'a> ClientMessage<'a> {
    /// A text for a new task.
    pub fn new(name: &'a str, text: &'a str, agent: &'static Agent) -> Self {
        Self { name, text, context: None, task: None, agent, content: Content::Words, webhook: None }
    }
}

/// What a message holds beside its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    Words,
    /// Words, and a data part that grants what was asked for.
    WordsAndYes,
    /// A data part that grants or denies, with the text as its reason, and no words.
    OnlyApproval(Verdict),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Yes,
    No,
}

/// A message of the caller as the history shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallerMessage {
    pub text: String,
    pub content: Content,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivery {
    WhenSettled,
    Immediately,
    Stream,
}

pub enum Operation<'a> {
    Send(ClientMessage<'a>, Delivery),
    Get(&'a str),
    Cancel(&'a str),
    Subscribe(&'a str),
    /// Sets a webhook of a task.
    SetWebhook(&'a str, &'a Webhook),
    /// A page of the list: filters and token as 1.0 names them.
    List(&'a [(&'a str, &'a str)]),
}

impl<'a> Operation<'a> {
    /// The task that must exist for it.
    pub fn task(&self) -> Option<&'a str> {
        match self {
            Operation::Send(message, _) => message.task,
            Operation::Get(id) | Operation::Cancel(id) | Operation::Subscribe(id) | Operation::SetWebhook(id, _) => {
                Some(id)
            }
            Operation::List(_) => None,
        }
    }
}

/// Where a request goes.
#[derive(Clone, Copy)]
pub enum Mount {
    /// The server's own, which serves all agents.
    Root,
    Agent(&'static Agent),
}

pub struct Request {
    pub method: &'static str,
    pub path: String,
    pub body: String,
}

/// A task as an answer shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskView {
    pub id: String,
    pub state: String,
    /// The texts of all artifacts, joined; the gateway shows the last one of a completed task.
    pub made: Option<String>,
}

/// One event as a frame shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    Task(TaskView),
    Status { task: String, state: String, words: Option<String>, time: String },
    Artifact { task: String, artifact: String, text: String, append: bool, last: bool },
}

impl Event {
    pub fn task(&self) -> &str {
        match self {
            Event::Task(view) => &view.id,
            Event::Status { task, .. } | Event::Artifact { task, .. } => task,
        }
    }

    pub fn state(&self) -> Option<&str> {
        match self {
            Event::Task(view) => Some(&view.state),
            Event::Status { state, .. } => Some(state),
            Event::Artifact { .. } => None,
        }
    }
}

impl Webhook {
    fn config(&self) -> Value {
        json!({"id": self.name, "url": self.url, "token": token_of(&self.name)})
    }
}

pub fn is_terminal(state: &str) -> bool {
    matches!(state, "completed" | "failed" | "rejected" | "canceled")
}

pub fn is_at_rest(state: &str) -> bool {
    is_terminal(state) || matches!(state, "input-required" | "auth-required")
}

impl DialectClient {
    /// Its index in `DIALECTS`.
    pub fn index(&self) -> usize {
        DIALECTS.iter().position(|other| other.name == self.name).expect("it is one of them")
    }

    pub fn can_stream(&self) -> bool {
        self.binding != Binding::Gateway
    }

    /// In which deliveries it can send. 0.1 always waits, the gateway never.
    pub fn deliveries(&self) -> &'static [Delivery] {
        match self.format {
            JsonFormat::V1 | JsonFormat::Kind | JsonFormat::Proto => {
                &[Delivery::WhenSettled, Delivery::Immediately, Delivery::Stream]
            }
            JsonFormat::Type => &[Delivery::WhenSettled, Delivery::Stream],
            JsonFormat::Gateway => &[Delivery::Immediately],
        }
    }

    /// What this dialect calls a state; some have fewer states.
    pub fn state_name<'a>(&self, state: &'a str) -> &'a str {
        match (self.format, state) {
            (JsonFormat::Type, "rejected") => "failed",
            (JsonFormat::Type | JsonFormat::Gateway, "auth-required") => "input-required",
            (_, state) => state,
        }
    }

    pub fn headers<'a>(&self, more: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
        let version = (!self.version.is_empty()).then_some(("A2A-Version", self.version));
        version.into_iter().chain(more.iter().copied()).collect()
    }

    /// The error code of a message to a finished task.
    pub fn finished_code(&self) -> i64 {
        if self.binding == Binding::JsonRpc { -32004 } else { 400 }
    }

    /// The error code of an approval without a question.
    pub fn not_asked_code(&self) -> i64 {
        if self.binding == Binding::JsonRpc { -32602 } else { 400 }
    }

    /// Whether this says that there is no such task. In a frame 0.3 HTTP+JSON has the codes of JSON-RPC.
    pub fn is_not_found(&self, code: i64) -> bool {
        code == -32001 || (self.binding != Binding::JsonRpc && code == 404)
    }

    /// The gateway has no mount for all agents.
    fn path(&self, mount: Mount) -> String {
        match (self.binding, mount) {
            (Binding::Gateway, Mount::Root) => format!("{}/{}", self.path, DEFAULT.id),
            (Binding::Gateway, Mount::Agent(agent)) => format!("{}/{}", self.path, agent.id),
            (_, Mount::Root) => self.path.to_owned(),
            (_, Mount::Agent(agent)) => format!("/agents/{}{}", agent.id, self.path),
        }
    }

    pub fn request(&self, operation: &Operation<'_>, mount: Mount) -> Request {
        let base = self.path(mount);
        if self.binding == Binding::JsonRpc {
            // Always the same id, so that frames can be compared byte for byte.
            let body =
                json!({"jsonrpc": "2.0", "id": 7, "method": self.method(operation), "params": self.params(operation)});
            return Request { method: "POST", path: base, body: body.to_string() };
        }
        let task = |id: &str| format!("{base}/tasks/{id}");
        let (method, path, body) = match operation {
            Operation::Send(_, Delivery::Stream) => {
                ("POST", format!("{base}/message:stream"), self.params(operation).to_string())
            }
            Operation::Send(..) => ("POST", format!("{base}/message:send"), self.params(operation).to_string()),
            Operation::Get(id) => ("GET", task(id), String::new()),
            Operation::Cancel(id) => ("POST", task(id) + ":cancel", String::new()),
            Operation::Subscribe(id) => ("POST", task(id) + ":subscribe", String::new()),
            Operation::SetWebhook(id, _) => {
                ("POST", task(id) + "/pushNotificationConfigs", self.params(operation).to_string())
            }
            Operation::List(filters) => {
                let query: Vec<String> = filters.iter().map(|(name, value)| format!("{name}={value}")).collect();
                ("GET", format!("{base}/tasks?{}", query.join("&")), String::new())
            }
        };
        Request { method, path, body }
    }

    fn method(&self, operation: &Operation<'_>) -> &'static str {
        match (self.format, operation) {
            (JsonFormat::V1, Operation::Send(_, Delivery::Stream)) => "SendStreamingMessage",
            (JsonFormat::V1, Operation::Send(..)) => "SendMessage",
            (JsonFormat::V1, Operation::Get(_)) => "GetTask",
            (JsonFormat::V1, Operation::Cancel(_)) => "CancelTask",
            (JsonFormat::V1, Operation::Subscribe(_)) => "SubscribeToTask",
            (JsonFormat::V1, Operation::SetWebhook(..)) => "CreateTaskPushNotificationConfig",
            (JsonFormat::Type, Operation::SetWebhook(..)) => "tasks/pushNotification/set",
            (_, Operation::SetWebhook(..)) => "tasks/pushNotificationConfig/set",
            (_, Operation::List(_)) => "ListTasks",
            (JsonFormat::Type, Operation::Send(_, Delivery::Stream)) => "tasks/sendSubscribe",
            (JsonFormat::Type, Operation::Send(..)) => "tasks/send",
            (_, Operation::Send(_, Delivery::Stream)) => "message/stream",
            (_, Operation::Send(..)) => "message/send",
            (_, Operation::Get(_)) => "tasks/get",
            (_, Operation::Cancel(_)) => "tasks/cancel",
            (_, Operation::Subscribe(_)) => "tasks/resubscribe",
        }
    }

    fn params(&self, operation: &Operation<'_>) -> Value {
        match operation {
            Operation::Send(message, delivery) => self.send(message, *delivery),
            Operation::Get(id) | Operation::Cancel(id) | Operation::Subscribe(id) => json!({ "id": id }),
            Operation::SetWebhook(id, webhook) => self.set_webhook(id, webhook),
            Operation::List(filters) => {
                let value = |text: &str| text.parse::<u64>().map_or(json!(text), |number| json!(number));
                filters.iter().map(|(name, text)| ((*name).to_owned(), value(text))).collect()
            }
        }
    }

    fn send(&self, message: &ClientMessage<'_>, delivery: Delivery) -> Value {
        let ClientMessage { name, text, context, task, webhook, .. } = *message;
        let waits = delivery == Delivery::WhenSettled;
        let parts = self.parts(message);
        let webhook_config = webhook.map(Webhook::config);
        let metadata = webhook.filter(|webhook| webhook.wants_all).map(|_| json!({"Sabir-Push-Events": "all"}));
        let params = match self.format {
            JsonFormat::V1 => json!({
                "message": {"messageId": name, "role": "ROLE_USER", "parts": parts, "contextId": context, "taskId": task,
                    "metadata": metadata},
                "configuration": {"returnImmediately": !waits, "taskPushNotificationConfig": webhook_config},
            }),
            JsonFormat::Kind => json!({
                "message": {"kind": "message", "messageId": name, "role": "user", "parts": parts,
                    "contextId": context, "taskId": task, "metadata": metadata},
                "configuration": {"blocking": waits, "pushNotificationConfig": webhook_config},
            }),
            JsonFormat::Proto => json!({
                "message": {"messageId": name, "role": "ROLE_USER", "content": parts, "contextId": context, "taskId": task,
                    "metadata": metadata},
                "configuration": {"blocking": waits, "pushNotification": webhook_config},
            }),
            JsonFormat::Type => json!({
                "id": task.unwrap_or(name),
                "sessionId": context,
                "message": {"role": "user", "parts": parts, "metadata": metadata},
                "pushNotification": webhook_config,
            }),
            JsonFormat::Gateway => json!({"taskId": task, "contextId": context, "input": text}),
        };
        without_nulls(params)
    }

    fn set_webhook(&self, task: &str, webhook: &Webhook) -> Value {
        let mut config = webhook.config();
        match (self.binding, self.format) {
            (Binding::JsonRpc, JsonFormat::V1) => config["taskId"] = json!(task),
            (_, JsonFormat::V1 | JsonFormat::Gateway) => {}
            (_, JsonFormat::Kind) => config = json!({"taskId": task, "pushNotificationConfig": config}),
            (_, JsonFormat::Type) => config = json!({"id": task, "pushNotificationConfig": config}),
            (_, JsonFormat::Proto) => {
                config = json!({"configId": webhook.name, "config": {"pushNotificationConfig": config}});
            }
        }
        config
    }

    fn parts(&self, message: &ClientMessage<'_>) -> Vec<Value> {
        let words = match self.format {
            JsonFormat::V1 | JsonFormat::Proto | JsonFormat::Gateway => json!({"text": message.text}),
            JsonFormat::Kind => json!({"kind": "text", "text": message.text}),
            JsonFormat::Type => json!({"type": "text", "text": message.text}),
        };
        let approval = |verdict: Verdict| {
            let data = json!({"approved": verdict == Verdict::Yes, "reason": message.text});
            match self.format {
                JsonFormat::V1 | JsonFormat::Gateway => json!({"data": data}),
                JsonFormat::Proto => json!({"data": {"data": data}}),
                JsonFormat::Kind => json!({"kind": "data", "data": data}),
                JsonFormat::Type => json!({"type": "data", "data": data}),
            }
        };
        match message.content {
            Content::Words => vec![words],
            Content::WordsAndYes => vec![words, approval(Verdict::Yes)],
            Content::OnlyApproval(verdict) => vec![approval(verdict)],
        }
    }

    /// The result of a response, or its error: a JSON-RPC code or an HTTP status.
    pub fn read(&self, reply: &HttpReply) -> Result<Value, i64> {
        let json: Value = serde_json::from_slice(&reply.body).unwrap_or_default();
        match self.binding {
            Binding::JsonRpc if json["result"].is_object() => Ok(json["result"].clone()),
            Binding::JsonRpc => Err(json["error"]["code"].as_i64().unwrap_or(reply.status.into())),
            _ if reply.status < 400 && json.is_object() => Ok(json),
            _ => Err(reply.status.into()),
        }
    }

    /// The task in the answer to a send, a get or a cancel.
    pub fn read_task(&self, answer: &Value) -> Option<TaskView> {
        if self.format == JsonFormat::Gateway {
            return read_run(answer);
        }
        let task = if answer["task"].is_object() { &answer["task"] } else { answer };
        let made = task["artifacts"].as_array().into_iter().flatten().map(|artifact| self.text_of(artifact));
        Some(TaskView {
            id: task["id"].as_str()?.to_owned(),
            state: Self::state(&task["status"])?,
            made: Some(made.collect()),
        })
    }

    /// The event in a frame; none where the frame is an error.
    pub fn read_frame(&self, frame: &SseFrame) -> Option<Event> {
        let json: Value = serde_json::from_str(&frame.data).ok()?;
        let json = if self.binding == Binding::JsonRpc { json.get("result")?.clone() } else { json };
        let is = |member: &str, kind: &str| json[member].is_object() || json["kind"] == kind;
        let body = |member: &str| if json[member].is_object() { &json[member] } else { &json };
        if self.format == JsonFormat::Type {
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
        Some(Event::Status { task, state: Self::state(status)?, words, time })
    }

    fn artifact(&self, task: String, artifact: &Value, update: &Value) -> Event {
        let id = artifact["artifactId"].as_str().or(artifact["id"].as_str());
        Event::Artifact {
            task,
            artifact: id.unwrap_or_default().to_owned(),
            text: self.text_of(artifact),
            append: update["append"] == true,
            last: update["lastChunk"] == true,
        }
    }

    pub fn state(status: &Value) -> Option<String> {
        let state = status["state"].as_str()?;
        Some(match state.strip_prefix("TASK_STATE_") {
            Some("CANCELLED") => "canceled".to_owned(),
            Some(name) => name.to_lowercase().replace('_', "-"),
            None => state.to_owned(),
        })
    }

    /// The callers' messages in the history of a task of 1.0.
    pub fn caller_messages(task: &Value) -> Vec<CallerMessage> {
        let history = task["history"].as_array().into_iter().flatten();
        let read = |message: &Value| {
            let parts = || message["parts"].as_array().into_iter().flatten();
            let words: String = parts().filter_map(|part| part["text"].as_str()).collect();
            let data = parts().map(|part| &part["data"]).find(|data| data.is_object());
            let verdict = |data: &Value| if data["approved"] == true { Verdict::Yes } else { Verdict::No };
            match data {
                Some(data) if words.is_empty() => CallerMessage {
                    text: data["reason"].as_str().unwrap_or_default().to_owned(),
                    content: Content::OnlyApproval(verdict(data)),
                },
                Some(_) => CallerMessage { text: words, content: Content::WordsAndYes },
                None => CallerMessage { text: words, content: Content::Words },
            }
        };
        history.filter(|message| message["role"] == "ROLE_USER").map(read).collect()
    }

    /// The texts of an artifact or a message.
    pub fn text_of(&self, holder: &Value) -> String {
        let parts = holder["parts"].as_array().or(holder["content"].as_array());
        parts.into_iter().flatten().filter_map(|part| part["text"].as_str()).collect()
    }
}

/// A run of the gateway; the answer to a submission has no more than its id and a status.
fn read_run(json: &Value) -> Option<TaskView> {
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
    // In other states the gateway shows the agent's last words in the place of artifacts.
    let is_made = state == "completed" && json["history"].is_array();
    let made = json["artifacts"].as_array().into_iter().flatten().filter_map(|made| made["content"].as_str());
    let made = is_made.then(|| made.collect());
    Some(TaskView { id: json["taskId"].as_str()?.to_owned(), state: state.to_owned(), made })
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
