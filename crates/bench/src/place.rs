//! Where the server is, and how one dialect spells what we ask of it there.

use std::net::SocketAddr;

use serde_json::{Value, json};

use crate::check::{self, Spelling};
use crate::grpc::{self, CONTENT_TYPE, SERVICE};
use crate::options::Dialect;
use crate::protobuf::Message;
use crate::request::{NUMBER, Request};

#[derive(Debug, Clone)]
pub struct Place {
    pub address: SocketAddr,
    /// For the `Host` header.
    pub authority: String,
    /// The JSON-RPC mount, the root of HTTP+JSON, or the gateway's path of one agent; without a slash at the end.
    pub path: String,
    /// The agent, where the dialect names it in each request; empty for the only one.
    pub tenant: String,
    pub dialect: Dialect,
    /// Makes the ids of this run its own.
    pub run: String,
}

pub const PAGE: u64 = 50;

impl Place {
    /// A send that waits for the answer, as far as the dialect can. The text may hold `NUMBER`.
    pub fn send(&self, text: &str) -> Request {
        let bytes = match self.dialect {
            Dialect::V1 | Dialect::V1Http2 => self.call("SendMessage", &json!({"message": self.message(text)})),
            Dialect::V03 => self.call("message/send", &json!({"message": self.message(text)})),
            Dialect::V01 => self.call("tasks/send", &self.task(text)),
            Dialect::Rest => self.post("/message:send", &json!({"message": self.message(text)})),
            Dialect::Gateway => self.post("/message:send", &json!({"input": text})),
            Dialect::Grpc => self.grpc("SendMessage", grpc::send(&self.tenant, &self.message_id(), text)),
        };
        Request::new(bytes)
    }

    /// The same with a webhook at this URL. None where the dialect has no webhooks in a send.
    pub fn send_with_webhook(&self, text: &str, url: &str) -> Option<Request> {
        let (message, config) = (self.message(text), json!({"url": url, "token": "bench-token"}));
        let of_v1 = json!({"message": message, "configuration": {"taskPushNotificationConfig": config}});
        let of_v03 = json!({"message": message, "configuration": {"pushNotificationConfig": config}});
        let bytes = match self.dialect {
            Dialect::V1 | Dialect::V1Http2 => self.call("SendMessage", &of_v1),
            Dialect::V03 => self.call("message/send", &of_v03),
            Dialect::V01 => {
                let mut task = self.task(text);
                task["pushNotification"] = config;
                self.call("tasks/send", &task)
            }
            Dialect::Rest => self.post("/message:send", &of_v1),
            Dialect::Gateway | Dialect::Grpc => return None,
        };
        Some(Request::new(bytes))
    }

    /// None where the dialect has no streams.
    pub fn stream(&self, text: &str) -> Option<Request> {
        let bytes = match self.dialect {
            Dialect::V1 | Dialect::V1Http2 => {
                self.call("SendStreamingMessage", &json!({"message": self.message(text)}))
            }
            Dialect::V03 => self.call("message/stream", &json!({"message": self.message(text)})),
            Dialect::V01 => self.call("tasks/sendSubscribe", &self.task(text)),
            Dialect::Rest => self.post("/message:stream", &json!({"message": self.message(text)})),
            Dialect::Grpc => self.grpc("SendStreamingMessage", grpc::send(&self.tenant, &self.message_id(), text)),
            Dialect::Gateway => return None,
        };
        Some(Request::new(bytes))
    }

    /// A message to a task that works, which does not wait for its answer. Only for dialects that have lists.
    pub fn follow_up(&self, task: &str, text: &str) -> Option<Request> {
        let mut message = self.message(text);
        message["taskId"] = task.into();
        let params = json!({"message": message, "configuration": {"returnImmediately": true}});
        match self.dialect {
            Dialect::V1 | Dialect::V1Http2 => Some(Request::new(self.call("SendMessage", &params))),
            Dialect::Rest => Some(Request::new(self.post("/message:send", &params))),
            Dialect::V03 | Dialect::V01 | Dialect::Gateway | Dialect::Grpc => None,
        }
    }

    pub fn subscribe(&self, task: &str) -> Option<Vec<u8>> {
        let id = json!({"id": task});
        Some(match self.dialect {
            Dialect::V1 | Dialect::V1Http2 => self.call("SubscribeToTask", &id),
            Dialect::V03 | Dialect::V01 => self.call("tasks/resubscribe", &id),
            Dialect::Rest => self.get(&format!("/tasks/{task}:subscribe")),
            Dialect::Grpc => self.grpc("SubscribeToTask", grpc::by_id(&self.tenant, task)),
            Dialect::Gateway => return None,
        })
    }

    pub fn task_of(&self, task: &str) -> Vec<u8> {
        let id = json!({"id": task});
        match self.dialect {
            Dialect::V1 | Dialect::V1Http2 => self.call("GetTask", &id),
            Dialect::V03 | Dialect::V01 => self.call("tasks/get", &id),
            Dialect::Rest | Dialect::Gateway => self.get(&format!("/tasks/{task}")),
            Dialect::Grpc => self.grpc("GetTask", grpc::by_id(&self.tenant, task)),
        }
    }

    pub fn cancel(&self, task: &str) -> Vec<u8> {
        let id = json!({"id": task});
        match self.dialect {
            Dialect::V1 | Dialect::V1Http2 => self.call("CancelTask", &id),
            Dialect::V03 | Dialect::V01 => self.call("tasks/cancel", &id),
            Dialect::Rest | Dialect::Gateway => self.post(&format!("/tasks/{task}:cancel"), &json!({})),
            Dialect::Grpc => self.grpc("CancelTask", grpc::by_id(&self.tenant, task)),
        }
    }

    /// A page of 50 after the token. None where the dialect has no lists.
    pub fn list(&self, token: &str) -> Option<Vec<u8>> {
        let mut params = json!({"pageSize": PAGE});
        if !token.is_empty() {
            params["pageToken"] = token.into();
        }
        match self.dialect {
            Dialect::V1 | Dialect::V1Http2 => Some(self.call("ListTasks", &params)),
            Dialect::Rest if token.is_empty() => Some(self.get(&format!("/tasks?pageSize={PAGE}"))),
            Dialect::Rest => Some(self.get(&format!("/tasks?pageSize={PAGE}&pageToken={token}"))),
            Dialect::V03 | Dialect::V01 | Dialect::Gateway | Dialect::Grpc => None,
        }
    }

    /// How the last states are spelled.
    pub fn spelling(&self) -> Spelling {
        match self.dialect {
            Dialect::V1 | Dialect::V1Http2 | Dialect::Rest => {
                Spelling::Json { completed: b"\"TASK_STATE_COMPLETED\"", canceled: b"\"TASK_STATE_CANCELED\"" }
            }
            Dialect::V03 | Dialect::V01 => Spelling::Json { completed: b"\"completed\"", canceled: b"\"canceled\"" },
            Dialect::Gateway => Spelling::Json { completed: b"\"done\"", canceled: b"\"cancelled\"" },
            Dialect::Grpc => Spelling::Protobuf,
        }
    }

    /// The task that a reply or an event is about.
    pub fn task_id(&self, body: &[u8]) -> Option<String> {
        if self.dialect == Dialect::Grpc {
            return grpc::task_id(body).map(str::to_owned);
        }
        let body: Value = serde_json::from_slice(body).ok()?;
        let result = body.get("result").unwrap_or(&body);
        let task = result.get("task").unwrap_or(result);
        let id = task.get("taskId").or_else(|| task.get("id"))?;
        id.as_str().map(str::to_owned)
    }

    /// What the server says went wrong, in a word, or nothing.
    pub fn complaint(&self, body: &[u8]) -> Option<String> {
        let body: Value = serde_json::from_slice(body).ok()?;
        let error = body.get("error")?;
        let message = error["message"].as_str().or(error.as_str());
        Some(message.map_or_else(|| check::shortened(error.to_string().as_bytes()), str::to_owned))
    }

    pub fn get(&self, below: &str) -> Vec<u8> {
        let Place { authority, path, .. } = self;
        let version = self.version_header();
        format!("GET {path}{below} HTTP/1.1\r\nHost: {authority}\r\nAccept: */*\r\n{version}\r\n").into_bytes()
    }

    fn post(&self, below: &str, body: &Value) -> Vec<u8> {
        let Place { authority, path, .. } = self;
        let (body, version) = (body.to_string(), self.version_header());
        let path = if path.is_empty() && below.is_empty() { "/" } else { path };
        format!(
            "POST {path}{below} HTTP/1.1\r\nHost: {authority}\r\nContent-Type: application/json\r\nAccept: */*\r\n\
             {version}Content-Length: {}\r\n\r\n{body}",
            body.len()
        )
        .into_bytes()
    }

    fn call(&self, method: &str, params: &Value) -> Vec<u8> {
        self.post("", &json!({"jsonrpc": "2.0", "id": NUMBER, "method": method, "params": params}))
    }

    /// Written as HTTP/1.1 has it, like all requests here; it goes over HTTP/2.
    fn grpc(&self, method: &str, message: Message) -> Vec<u8> {
        let Place { authority, path, .. } = self;
        let (version, body) = (self.version_header(), grpc::with_prefix(message));
        let head = format!(
            "POST {path}{SERVICE}/{method} HTTP/1.1\r\nHost: {authority}\r\nContent-Type: {CONTENT_TYPE}\r\n\
             TE: trailers\r\n{version}Content-Length: {}\r\n\r\n",
            body.len()
        );
        [head.as_bytes(), &body].concat()
    }

    fn version_header(&self) -> &'static str {
        match self.dialect {
            Dialect::V1 | Dialect::V1Http2 | Dialect::Rest | Dialect::Grpc => "A2A-Version: 1.0\r\n",
            Dialect::V03 | Dialect::V01 | Dialect::Gateway => "",
        }
    }

    fn message_id(&self) -> String {
        format!("bench-{}-{NUMBER}", self.run)
    }

    fn message(&self, text: &str) -> Value {
        let id = self.message_id();
        match self.dialect {
            Dialect::V03 => {
                json!({"kind": "message", "messageId": id, "role": "user", "parts": [{"kind": "text", "text": text}]})
            }
            _ => json!({"messageId": id, "role": "ROLE_USER", "parts": [{"text": text}]}),
        }
    }

    fn task(&self, text: &str) -> Value {
        let id = self.message_id();
        json!({"id": id, "message": {"role": "user", "parts": [{"type": "text", "text": text}]}})
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protobuf;

    #[test]
    fn a_prepared_send_is_a_whole_request() {
        for (dialect, path, expected) in [
            (Dialect::V1, "/a2a", "POST /a2a HTTP/1.1"),
            (Dialect::V03, "", "POST / HTTP/1.1"),
            (Dialect::V01, "", "POST / HTTP/1.1"),
            (Dialect::Rest, "", "POST /message:send HTTP/1.1"),
            (Dialect::Gateway, "/v1/a2a/agents/demo", "POST /v1/a2a/agents/demo/message:send HTTP/1.1"),
        ] {
            let mut request = place(dialect, path).send(&format!("bench {NUMBER}"));
            let text = String::from_utf8(request.numbered(7).to_vec()).unwrap();
            let (head, body) = text.split_once("\r\n\r\n").unwrap();
            assert_eq!(head.lines().next(), Some(expected));
            assert!(head.contains(&format!("Content-Length: {}", body.len())), "{head}");
            assert!(body.contains("bench 000000000007") && !body.contains('#'), "{body}");
            serde_json::from_str::<Value>(body).unwrap();
            let with_webhook = place(dialect, path).send_with_webhook("bench", "http://127.0.0.1:1/hook");
            let with_webhook = with_webhook.map(|mut request| request.numbered(7).to_vec());
            let has_webhook = with_webhook.is_some_and(|bytes| check::has(&bytes, b"http://127.0.0.1:1/hook"));
            assert_eq!(has_webhook, dialect != Dialect::Gateway, "{dialect:?}");
        }
    }

    #[test]
    fn a_prepared_send_of_grpc_keeps_its_lengths() {
        for (method, request) in [
            ("SendMessage", place(Dialect::Grpc, "").send(&format!("bench {NUMBER}"))),
            ("SendStreamingMessage", place(Dialect::Grpc, "").stream(&format!("bench {NUMBER}")).unwrap()),
        ] {
            let mut request = request;
            let bytes = request.numbered(7).to_vec();
            let at = memchr::memmem::find(&bytes, b"\r\n\r\n").unwrap();
            let (head, body) = (String::from_utf8_lossy(&bytes[..at]), &bytes[at + 4..]);
            assert!(head.starts_with(&format!("POST /lf.a2a.v1.A2AService/{method} HTTP/1.1\r\n")), "{head}");
            assert!(head.contains(&format!("Content-Length: {}", body.len())), "{head}");
            let (message, end) = grpc::message(body, 0).unwrap().unwrap();
            assert_eq!(end, body.len());
            for (path, expected) in [(&[2, 1][..], "bench-r-000000000007"), (&[2, 5, 1], "bench 000000000007")] {
                assert_eq!(protobuf::bytes(message, path), Some(expected.as_bytes()));
            }
        }
        assert!(place(Dialect::Grpc, "").send_with_webhook("bench", "http://x/").is_none());
    }

    #[test]
    fn the_task_of_a_reply() {
        for (body, expected) in [
            (r#"{"result":{"task":{"id":"a","history":[{"taskId":"b"}]}}}"#, Some("a")),
            (r#"{"result":{"kind":"task","id":"a"}}"#, Some("a")),
            (r#"{"task":{"id":"a"}}"#, Some("a")),
            (r#"{"taskId":"a","contextId":"c"}"#, Some("a")),
            (r#"{"error":{"code":1}}"#, None),
            ("nonsense", None),
        ] {
            assert_eq!(place(Dialect::V1, "").task_id(body.as_bytes()).as_deref(), expected, "{body}");
        }
    }

    fn place(dialect: Dialect, path: &str) -> Place {
        let address = SocketAddr::from(([127, 0, 0, 1], 1));
        Place {
            address,
            authority: "localhost".into(),
            path: path.into(),
            tenant: String::new(),
            dialect,
            run: "r".into(),
        }
    }
}
