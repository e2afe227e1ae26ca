//! Requests in the spelling of every protocol, and a digest of what is answered.

use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use sabir_testkit::http::{Http, HttpReply};
use sabir_testkit::remote::{Operation, RemoteAgent, RemoteBinding, RemoteProtocol};
use sabir_testkit::sse::{self, Events};
use serde_json::{Value, json};

pub const LIMIT: Duration = Duration::from_secs(10);

pub struct Caller {
    pub address: SocketAddr,
    pub protocol: RemoteProtocol,
}

/// Method, path and body.
pub type Request = (String, String, String);

impl Caller {
    pub fn of(agent: &RemoteAgent, protocol: RemoteProtocol) -> Self {
        Self { address: agent.address(), protocol }
    }

    pub fn is_json_rpc(&self) -> bool {
        self.protocol.binding() == RemoteBinding::JsonRpc
    }

    pub fn headers(&self) -> Vec<(&'static str, &'static str)> {
        if self.protocol.is_v1() { vec![("A2A-Version", "1.0")] } else { Vec::new() }
    }

    pub fn request(&self, operation: Operation, params: &Value) -> Request {
        if self.is_json_rpc() {
            let method = self.protocol.method(operation).expect("the version has this operation");
            let body = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params});
            return ("POST".to_owned(), "/".to_owned(), body.to_string());
        }
        let root = if self.protocol.is_v1() { "" } else { "/v1" };
        let text = |name: &str| params[name].as_str().unwrap_or_default().to_owned();
        let configs = |task: &str| format!("/tasks/{}/pushNotificationConfigs", text(task));
        let (method, path) = match operation {
            Operation::Send => ("POST", "/message:send".to_owned()),
            Operation::Stream => ("POST", "/message:stream".to_owned()),
            Operation::Get => ("GET", format!("/tasks/{}{}", text("id"), query(params))),
            Operation::List => ("GET", format!("/tasks{}", query(params))),
            Operation::Cancel => ("POST", format!("/tasks/{}:cancel", text("id"))),
            Operation::Subscribe => ("POST", format!("/tasks/{}:subscribe", text("id"))),
            Operation::SetPush => ("POST", configs("taskId")),
            Operation::ListPush => ("GET", configs("taskId")),
            Operation::GetPush => ("GET", format!("{}/{}", configs("taskId"), text("id"))),
            Operation::DeletePush => ("DELETE", format!("{}/{}", configs("taskId"), text("id"))),
            Operation::ExtendedCard => ("GET", "/extendedAgentCard".to_owned()),
            Operation::Card => ("GET", "/.well-known/agent-card.json".to_owned()),
        };
        let has_body = matches!(operation, Operation::Send | Operation::Stream | Operation::SetPush);
        let body = if has_body { params.to_string() } else { String::new() };
        (method.to_owned(), format!("{root}{path}"), body)
    }

    pub fn try_call(&self, operation: Operation, params: &Value) -> io::Result<HttpReply> {
        let (method, path, body) = self.request(operation, params);
        let mut http = Http::connect(self.address)?;
        http.give_up_after(LIMIT);
        http.exchange(&method, &path, &self.headers(), body.as_bytes())
    }

    pub fn call(&self, operation: Operation, params: &Value) -> HttpReply {
        self.try_call(operation, params).expect("the server answers")
    }

    /// The result of a call, without its envelope.
    pub fn result(&self, operation: Operation, params: &Value) -> Value {
        content(&self.call(operation, params))
    }

    pub fn try_stream(&self, operation: Operation, params: &Value) -> io::Result<Result<Events, HttpReply>> {
        let (method, path, body) = self.request(operation, params);
        sse::open(self.address, &method, &path, &self.headers(), body.as_bytes())
    }

    pub fn stream(&self, operation: Operation, params: &Value) -> Events {
        let mut events = self.try_stream(operation, params).expect("the server answers").expect("a stream");
        events.give_up_after(LIMIT);
        events
    }

    /// The digests of all frames of a stream that ends properly.
    pub fn frames(&self, operation: Operation, params: &Value) -> Vec<String> {
        let frames = self.stream(operation, params).rest().expect("the stream ends properly");
        frames.iter().map(|frame| digest(&frame.payload())).collect()
    }

    /// Calls again until the server listens.
    pub fn call_when_it_is_back(&self, operation: Operation, params: &Value) -> HttpReply {
        let end = Instant::now() + LIMIT;
        loop {
            match self.try_call(operation, params) {
                Ok(reply) => return reply,
                Err(error) => assert!(Instant::now() < end, "{error}"),
            }
        }
    }

    /// The body of a stream, byte for byte.
    pub fn raw_stream(&self, text: &str) -> io::Result<Vec<u8>> {
        let reply = self.try_call(Operation::Stream, &self.message(text))?;
        Ok(reply.body)
    }

    pub fn message(&self, text: &str) -> Value {
        self.message_to(text, None)
    }

    /// The params of a send, for a new task or for this one.
    pub fn message_to(&self, text: &str, task: Option<&str>) -> Value {
        let mut message = match self.protocol {
            RemoteProtocol::V1JsonRpc | RemoteProtocol::V1HttpJson => {
                json!({"messageId": "m-1", "role": "ROLE_USER", "parts": [{ "text": text }]})
            }
            RemoteProtocol::V03HttpJson => {
                json!({"messageId": "m-1", "role": "ROLE_USER", "content": [{ "text": text }]})
            }
            RemoteProtocol::V03JsonRpc | RemoteProtocol::V02JsonRpc => {
                let part = json!({"kind": "text", "text": text});
                json!({"kind": "message", "messageId": "m-1", "role": "user", "parts": [part]})
            }
            RemoteProtocol::V01JsonRpc => {
                let message = json!({"role": "user", "parts": [{"type": "text", "text": text}]});
                return json!({"id": task.unwrap_or("client-task"), "message": message});
            }
        };
        if let Some(task) = task {
            message["taskId"] = json!(task);
        }
        json!({ "message": message })
    }

    /// The same, to be answered at once.
    pub fn message_without_waiting(&self, text: &str) -> Value {
        let mut params = self.message(text);
        params["configuration"] = match self.protocol {
            RemoteProtocol::V1JsonRpc | RemoteProtocol::V1HttpJson => json!({"returnImmediately": true}),
            RemoteProtocol::V03JsonRpc | RemoteProtocol::V03HttpJson => json!({"blocking": false}),
            _ => json!({"blocking": false, "acceptedOutputModes": ["text/plain"]}),
        };
        params
    }

    /// The id of a new task whose send was answered with this.
    pub fn begin(&self, text: &str) -> String {
        let id = task_id(&self.result(Operation::Send, &self.message(text)));
        id.expect("there is a task")
    }
}

pub fn task_id(content: &Value) -> Option<String> {
    let task = content.get("task").unwrap_or(content);
    task.get("status")?;
    task["id"].as_str().map(str::to_owned)
}

/// What is in the envelope, if there is one; `null` in place of an error.
pub fn content(reply: &HttpReply) -> Value {
    let json = reply.json();
    match (json.get("result"), json.get("error")) {
        (Some(result), _) => result.clone(),
        (None, Some(_)) => Value::Null,
        (None, None) => json,
    }
}

/// The code of an error in JSON-RPC, or the HTTP status.
pub fn code(reply: &HttpReply) -> i64 {
    let json: Value = serde_json::from_slice(&reply.body).unwrap_or_default();
    json["error"]["code"].as_i64().unwrap_or_else(|| i64::from(reply.status))
}

/// What an answer or a frame is and says, the same for all versions: `task completed echo: hi`.
pub fn digest(content: &Value) -> String {
    let (kind, inner) = match content.as_object().and_then(|members| members.iter().next()) {
        Some((name, inner)) if content.as_object().is_some_and(|members| members.len() == 1) => match name.as_str() {
            "task" => ("task", inner),
            "message" => ("message", inner),
            "statusUpdate" => ("status", inner),
            "artifactUpdate" => ("artifact", inner),
            other => return format!("unknown {other}"),
        },
        _ => match content["kind"].as_str() {
            Some("task") => ("task", content),
            Some("message") => ("message", content),
            Some("status-update") => ("status", content),
            Some("artifact-update") => ("artifact", content),
            Some(other) => return format!("unknown {other}"),
            None if content.get("final").is_some() => ("status", content),
            None if content.get("artifact").is_some() => ("artifact", content),
            None if content.get("error").is_some() || content.get("code").is_some() => return "error".to_owned(),
            None => ("task", content),
        },
    };
    let state = inner["status"]["state"].as_str().unwrap_or_default().to_lowercase();
    let state = state.trim_start_matches("task_state_").replace('_', "-").replace("cancelled", "canceled");
    let artifacts = inner["artifacts"].as_array().cloned().unwrap_or_else(|| vec![inner["artifact"].clone()]);
    let said = match kind {
        "message" => texts(inner),
        _ => artifacts.iter().map(texts).collect::<String>() + &texts(&inner["status"]["message"]),
    };
    format!("{kind} {state} {}", said.trim()).split_whitespace().collect::<Vec<_>>().join(" ")
}

fn texts(owner: &Value) -> String {
    let parts = owner.get("parts").or_else(|| owner.get("content")).and_then(Value::as_array);
    let text = |part: &Value| match (part["text"].as_str(), part.get("data"), part.get("raw"), part.get("file")) {
        (Some(text), ..) => text.to_owned(),
        (None, Some(_), ..) => "(data)".to_owned(),
        (None, _, None, None) => "(unknown)".to_owned(),
        _ => "(file)".to_owned(),
    };
    parts.into_iter().flatten().map(text).collect()
}

fn query(params: &Value) -> String {
    let members = params.as_object().into_iter().flatten();
    let pairs: Vec<String> = members
        .filter(|(name, _)| *name != "id")
        .map(|(name, value)| format!("{name}={}", value.as_str().map_or_else(|| value.to_string(), str::to_owned)))
        .collect();
    if pairs.is_empty() { String::new() } else { format!("?{}", pairs.join("&")) }
}
