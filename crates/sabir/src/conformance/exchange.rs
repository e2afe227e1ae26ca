//! One request and its response, as they went over the wire.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, header};
use sabir_model::TaskId;
use sabir_outbound::DialError;
use sabir_wire::{Operation, PeerRequest};
use serde_json::Value;

use super::evidence::{Evidence, excerpt};
use super::grpc_answer::GrpcAnswer;
use super::proto_json::GrpcMethod;

/// A request as it is about to be sent; it may be bent out of shape first.
#[derive(Clone)]
pub struct Outgoing {
    pub request: PeerRequest,
    /// The task that is asked about.
    pub task: Option<TaskId>,
    /// The id of the JSON-RPC response.
    pub response_id: ResponseId,
    pub credentials: Credentials,
    pub judged: Judged,
}

/// What of an answer is judged by the rules that hold for all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Judged {
    Wholly,
    /// What is made of a request that is not valid need not be valid either.
    ByEnvelope,
}

/// Which id a JSON-RPC response must have.
#[derive(Debug, Clone, PartialEq)]
pub enum ResponseId {
    /// The one of the request.
    Same(Value),
    /// `null`, since the server cannot read the request, or the same if it can.
    NullOr(Value),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Credentials {
    Shown,
    Withheld,
}

pub struct Exchange {
    pub operation: Operation,
    pub task: Option<TaskId>,
    pub response_id: ResponseId,
    pub judged: Judged,
    pub tried: String,
    pub answer: Result<Answered, DialError>,
    pub elapsed: Duration,
}

/// An answer of gRPC is told as HTTP+JSON would tell it.
pub struct Answered {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Bytes,
    pub grpc: Option<GrpcAnswer>,
}

impl Outgoing {
    /// Changes the JSON of the body. What is no JSON is left as it is.
    pub fn with_json(mut self, change: impl FnOnce(&mut Value)) -> Self {
        if let Ok(mut json) = serde_json::from_slice::<Value>(&self.request.body) {
            change(&mut json);
            self.request.body = json.to_string().into_bytes();
        }
        self
    }

    /// Changes the params: the member of JSON-RPC, the whole body of HTTP+JSON, the message of gRPC. What protobuf cannot say is
    /// left as it is.
    pub fn with_params(mut self, change: impl FnOnce(&mut Value)) -> Self {
        let Some(method) = GrpcMethod::at(&self.request.path) else {
            return self.with_json(|json| match json.get_mut("params") {
                Some(params) if params.is_object() => change(params),
                _ => change(json),
            });
        };
        let mut message = method.read_request(&self.request.body).unwrap_or_default();
        change(&mut message);
        if let Some(body) = method.write_request(&message) {
            self.request.body = body;
        }
        self
    }

    pub fn with_body(mut self, body: &str) -> Self {
        self.request.body = body.as_bytes().to_vec();
        self
    }

    /// `None` takes the header out.
    pub fn with_header(mut self, name: &'static str, value: Option<&str>) -> Self {
        self.request.headers.retain(|(known, _)| *known != name);
        self.request.headers.extend(value.map(|value| (name, value.to_owned())));
        self
    }

    /// Adds to the query of the URL, or changes it.
    pub fn with_query(mut self, name: &str, value: &str) -> Self {
        let (path, query) = self.request.path.split_once('?').unwrap_or((&self.request.path, ""));
        let prefix = format!("{name}=");
        let mut pairs: Vec<&str> = query.split('&').filter(|pair| !pair.is_empty()).collect();
        pairs.retain(|pair| !pair.starts_with(&prefix));
        let added = format!("{prefix}{value}");
        pairs.push(&added);
        self.request.path = format!("{path}?{}", pairs.join("&"));
        self
    }

    pub fn without_credentials(mut self) -> Self {
        self.credentials = Credentials::Withheld;
        self
    }

    /// The request is not valid, so neither may be what the server makes of it.
    pub fn with_fault(mut self) -> Self {
        self.judged = Judged::ByEnvelope;
        self
    }

    /// The server may be unable to read the id.
    pub fn with_unreadable_id(mut self) -> Self {
        if let ResponseId::Same(id) = self.response_id {
            self.response_id = ResponseId::NullOr(id);
        }
        self
    }

    /// Another id of JSON-RPC than the number that requests have.
    pub fn with_id(mut self, id: Value) -> Self {
        self = self.with_json(|json| {
            if json.get("jsonrpc").is_some() {
                json["id"] = id.clone();
            }
        });
        self.response_id = ResponseId::Same(id);
        self
    }

    pub fn tried(&self, url: &str) -> String {
        let PeerRequest { verb, headers, body, .. } = &self.request;
        let version = headers.iter().find(|(name, _)| *name == "a2a-version");
        let version = version.map(|(_, version)| format!(" (A2A-Version: {version})")).unwrap_or_default();
        let anonymous = match self.credentials {
            Credentials::Shown => "",
            Credentials::Withheld => " (without credentials)",
        };
        let message = GrpcMethod::at(&self.request.path).and_then(|method| method.read_request(body));
        let text = message.map_or_else(|| excerpt(body), |message| excerpt(message.to_string().as_bytes()));
        format!("{verb} {url}{version}{anonymous} {text}").trim_end().to_owned()
    }
}

impl Exchange {
    pub fn evidence(&self) -> Evidence {
        Evidence::new(self.tried.clone(), self.got())
    }

    fn got(&self) -> String {
        match &self.answer {
            Ok(answered) => answered.got(),
            Err(error) => format!("no answer: {}", dial_error(error)),
        }
    }

    pub fn status(&self) -> Option<u16> {
        self.answer.as_ref().ok().map(|answered| answered.status)
    }
}

impl Answered {
    pub fn got(&self) -> String {
        if let Some(grpc) = &self.grpc {
            let text = grpc.unreadable.clone().unwrap_or_else(|| excerpt(&self.body));
            return format!("{}: {text}", grpc.words());
        }
        let content_type = self.content_type().map(|media_type| format!(" {media_type}")).unwrap_or_default();
        format!("HTTP {}{content_type}: {}", self.status, excerpt(&self.body))
    }

    pub fn content_type(&self) -> Option<&str> {
        self.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok())
    }

    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    pub fn json(&self) -> Option<Value> {
        read_json(&self.body)
    }
}

/// The operator may know what a name resolves to.
pub fn dial_error(error: &DialError) -> String {
    match error.detail() {
        Some(detail) => format!("{error} ({detail})"),
        None => error.to_string(),
    }
}

/// `None`: it is no JSON, or nested too deep to be read.
pub fn read_json(bytes: &[u8]) -> Option<Value> {
    let text = sabir_wire::json::check_text(bytes).ok()?;
    serde_json::from_str(text.trim_start_matches('\u{feff}')).ok()
}

/// `application/json` of `Application/JSON; charset=utf-8`.
pub fn media_type(content_type: &str) -> String {
    content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn outgoing(path: &str, body: &str) -> Outgoing {
        let request = PeerRequest {
            operation: Operation::Get,
            verb: "POST",
            path: path.to_owned(),
            headers: vec![("a2a-version", "1.0".to_owned())],
            body: body.as_bytes().to_vec(),
        };
        Outgoing {
            request,
            task: None,
            response_id: ResponseId::Same(json!(1)),
            credentials: Credentials::Shown,
            judged: Judged::Wholly,
        }
    }

    #[test]
    fn requests_are_bent() {
        let bent = outgoing("/tasks?pageSize=1&x=2", r#"{"jsonrpc":"2.0","id":1,"params":{"id":"t"}}"#)
            .with_params(|params| params["more"] = json!(true))
            .with_id(json!("seven"))
            .with_query("pageSize", "101")
            .with_header("a2a-version", Some("9.9"))
            .with_unreadable_id();
        assert_eq!(bent.request.path, "/tasks?x=2&pageSize=101");
        assert_eq!(bent.response_id, ResponseId::NullOr(json!("seven")));
        let tried = bent.tried("http://a/");
        let body = r#"{"id":"seven","jsonrpc":"2.0","params":{"id":"t","more":true}}"#;
        assert_eq!(tried, format!("POST http://a/ (A2A-Version: 9.9) {body}"));
        let bent = outgoing("", r#"{"message":{}}"#).with_params(|params| params["message"] = json!(7));
        let bent = bent.with_header("a2a-version", None).without_credentials();
        assert_eq!(bent.tried("http://a/"), r#"POST http://a/ (without credentials) {"message":7}"#);
    }

    #[test]
    fn messages_of_grpc_are_bent_and_shown_as_json() {
        let bent = outgoing("/lf.a2a.v1.A2AService/ListTasks", "\0\0\0\0\0")
            .with_params(|params| params["pageSize"] = json!(-1))
            .with_params(|params| params["pageToken"] = json!(["a list"]));
        assert_eq!(bent.tried("http://a/"), r#"POST http://a/ (A2A-Version: 1.0) {"pageSize":-1}"#);
    }
}
