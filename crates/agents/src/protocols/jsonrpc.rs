//! JSON-RPC, one message per line: parsing and writing.
//!
//! The id of a program's request is a number or a string, and is returned unchanged.

use sabir_model::MAX_DEPTH;
use serde_json::{Map, Value, json};

use super::error_message;
use crate::lenient_json::{Object, depth};

pub(crate) const METHOD_NOT_FOUND: i64 = -32601;

/// Whether messages have the member `jsonrpc`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Header {
    Version2,
    /// Codex leaves it out.
    Absent,
}

/// A message. Params and results that are no objects are read as empty objects.
pub(crate) enum Incoming<'line> {
    Request { id: Value, method: String, params: Object<'line> },
    Notification { method: String, params: Object<'line> },
    Answer { id: Value, outcome: Result<Object<'line>, RpcError> },
}

/// The error of a response.
pub(crate) struct RpcError {
    pub(crate) code: i64,
    /// The message for people, with details from `data`.
    pub(crate) message: String,
}

/// `None`: the line is not for us.
pub(crate) fn parse(line: &str) -> Option<Incoming<'_>> {
    let text = line;
    // A question must show its complete input, which cannot be read if it is nested too deep.
    let line = Object::parse(text).filter(|_| depth(text) < MAX_DEPTH)?;
    let id = line.parsed("id").filter(|id| id.is_number() || id.is_string());
    let params = line.object("params");
    match (line.text("method"), id) {
        (Some(method), Some(id)) => Some(Incoming::Request { id, method, params }),
        (Some(method), None) => Some(Incoming::Notification { method, params }),
        (None, Some(id)) => Some(Incoming::Answer { id, outcome: outcome(&line)? }),
        (None, None) => None,
    }
}

pub(crate) fn request(header: Header, id: u64, method: &str, params: Value) -> String {
    serialized(header, [("id", json!(id)), ("method", json!(method)), ("params", params)])
}

pub(crate) fn notification(header: Header, method: &str, params: Option<Value>) -> String {
    let params = params.map(|params| ("params", params));
    serialized(header, [("method", json!(method))].into_iter().chain(params))
}

pub(crate) fn result(header: Header, id: &Value, result: Value) -> String {
    serialized(header, [("id", id.clone()), ("result", result)])
}

pub(crate) fn method_not_found(header: Header, id: &Value) -> String {
    let error = json!({"code": METHOD_NOT_FOUND, "message": "Method not found"});
    serialized(header, [("id", id.clone()), ("error", error)])
}

/// An id as text, for people and for look-ups.
pub(crate) fn id_text(id: &Value) -> String {
    id.as_str().map_or_else(|| id.to_string(), str::to_owned)
}

fn outcome<'line>(line: &Object<'line>) -> Option<Result<Object<'line>, RpcError>> {
    if line.has("error") {
        let error = line.object("error");
        let code = error.parsed("code").and_then(|code| code.as_i64());
        return Some(Err(RpcError { code: code.unwrap_or_default(), message: error_message::of_object(&error) }));
    }
    line.has_even_null("result").then(|| Ok(line.object("result")))
}

fn serialized(header: Header, members: impl IntoIterator<Item = (&'static str, Value)>) -> String {
    let mut line = Map::new();
    if header == Header::Version2 {
        line.insert("jsonrpc".into(), json!("2.0"));
    }
    line.extend(members.into_iter().map(|(name, value)| (name.to_owned(), value)));
    Value::Object(line).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_line() {
        for (line, expected) in [
            (r#"{"jsonrpc":"2.0","id":"a","method":"m","params":{"p":1}}"#, "request a m p"),
            (r#"{"params":[],"method":"m","id":0}"#, "request 0 m "),
            (r#"{"method":"m"}"#, "notification m "),
            (r#"{"id":3,"result":null}"#, "result 3 "),
            (r#"{"result":{"r":{},"s":1},"id":3}"#, "result 3 r s"),
            (r#"{"id":3,"error":{"code":-1,"message":"no"}}"#, "error 3 -1 no"),
            (r#"{"id":3,"error":{"code":-1,"message":"no","data":{"details":"because"}}}"#, "error 3 -1 no: because"),
            (r#"{"id":3}"#, "nothing"),
            (r#"{"id":{},"method":7}"#, "nothing"),
            ("[1]", "nothing"),
            ("goose is ready", "nothing"),
        ] {
            let names = |object: Object| object.names().collect::<Vec<_>>().join(" ");
            let shown = match parse(line) {
                Some(Incoming::Request { id, method, params }) => {
                    format!("request {} {method} {}", id_text(&id), names(params))
                }
                Some(Incoming::Notification { method, params }) => format!("notification {method} {}", names(params)),
                Some(Incoming::Answer { id, outcome: Ok(result) }) => format!("result {id} {}", names(result)),
                Some(Incoming::Answer { id, outcome: Err(fault) }) => {
                    format!("error {id} {} {}", fault.code, fault.message)
                }
                None => "nothing".into(),
            };
            assert_eq!(shown, expected, "{line}");
        }
    }

    #[test]
    fn what_is_nested_too_deep_is_not_for_us() {
        for (depth, is_read) in [(100, true), (126, true), (127, false), (100_000, false)] {
            let line = format!(r#"{{"method":"m","params":{}{}}}"#, "[".repeat(depth), "]".repeat(depth));
            assert_eq!(parse(&line).is_some(), is_read, "{depth}");
        }
    }

    #[test]
    fn lines_are_written_with_and_without_a_version() {
        let parsed = |line: String| serde_json::from_str::<Value>(&line).unwrap();
        assert_eq!(
            parsed(request(Header::Version2, 1, "m", json!({}))),
            json!({"jsonrpc": "2.0", "id": 1, "method": "m", "params": {}})
        );
        assert_eq!(parsed(notification(Header::Absent, "m", None)), json!({"method": "m"}));
        assert_eq!(parsed(result(Header::Absent, &json!("x"), json!(7))), json!({"id": "x", "result": 7}));
    }
}
