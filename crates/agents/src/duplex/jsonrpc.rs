//! JSON-RPC as lines: what a line is, and how ours are written.
//!
//! The id of a program's request is a number or text, and goes back as it came.

use serde_json::{Map, Value, json};

use super::reading;

pub(super) const METHOD_NOT_FOUND: i64 = -32601;

/// Whether lines say which version of JSON-RPC they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Header {
    Version2,
    /// Codex leaves it out.
    Absent,
}

pub(super) enum Incoming {
    Request { id: Value, method: String, params: Value },
    Notification { method: String, params: Value },
    Answer { id: Value, outcome: Result<Value, Fault> },
}

/// Why the other side could not do what it was asked.
pub(super) struct Fault {
    pub(super) code: i64,
    /// In words for people, with what its `data` adds to them.
    pub(super) message: String,
}

/// `None`: the line is not for us.
pub(super) fn parse(line: &str) -> Option<Incoming> {
    let Some(Value::Object(mut line)) = reading::parse(line) else { return None };
    let id = line.remove("id").filter(|id| id.is_number() || id.is_string());
    let method = match line.remove("method") {
        Some(Value::String(method)) => Some(method),
        _ => None,
    };
    let params = line.remove("params").unwrap_or_default();
    match (method, id) {
        (Some(method), Some(id)) => Some(Incoming::Request { id, method, params }),
        (Some(method), None) => Some(Incoming::Notification { method, params }),
        (None, Some(id)) => Some(Incoming::Answer { id, outcome: outcome(&mut line)? }),
        (None, None) => None,
    }
}

pub(super) fn request(header: Header, id: u64, method: &str, params: Value) -> String {
    written(header, [("id", json!(id)), ("method", json!(method)), ("params", params)])
}

pub(super) fn notification(header: Header, method: &str, params: Option<Value>) -> String {
    let params = params.map(|params| ("params", params));
    written(header, [("method", json!(method))].into_iter().chain(params))
}

pub(super) fn result(header: Header, id: &Value, result: Value) -> String {
    written(header, [("id", id.clone()), ("result", result)])
}

pub(super) fn method_not_found(header: Header, id: &Value) -> String {
    let error = json!({"code": METHOD_NOT_FOUND, "message": "Method not found"});
    written(header, [("id", id.clone()), ("error", error)])
}

/// An id as text, for people and for look-ups.
pub(super) fn spoken(id: &Value) -> String {
    id.as_str().map_or_else(|| id.to_string(), str::to_owned)
}

fn outcome(line: &mut Map<String, Value>) -> Option<Result<Value, Fault>> {
    if let Some(error) = line.remove("error").filter(|error| !error.is_null()) {
        return Some(Err(Fault {
            code: error.get("code").and_then(Value::as_i64).unwrap_or_default(),
            message: reading::words_of_error(&error),
        }));
    }
    line.remove("result").map(Ok)
}

fn written(header: Header, members: impl IntoIterator<Item = (&'static str, Value)>) -> String {
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
            (r#"{"jsonrpc":"2.0","id":"a","method":"m","params":{"p":1}}"#, r#"request a m {"p":1}"#),
            (r#"{"params":[],"method":"m","id":0}"#, "request 0 m []"),
            (r#"{"method":"m"}"#, "notification m null"),
            (r#"{"id":3,"result":null}"#, "result 3 null"),
            (r#"{"result":{},"id":3}"#, "result 3 {}"),
            (r#"{"id":3,"error":{"code":-1,"message":"no"}}"#, "error 3 -1 no"),
            (r#"{"id":3,"error":{"code":-1,"message":"no","data":{"details":"because"}}}"#, "error 3 -1 no: because"),
            (r#"{"id":3}"#, "nothing"),
            (r#"{"id":{},"method":7}"#, "nothing"),
            ("[1]", "nothing"),
            ("goose is ready", "nothing"),
        ] {
            let said = match parse(line) {
                Some(Incoming::Request { id, method, params }) => format!("request {} {method} {params}", spoken(&id)),
                Some(Incoming::Notification { method, params }) => format!("notification {method} {params}"),
                Some(Incoming::Answer { id, outcome: Ok(result) }) => format!("result {id} {result}"),
                Some(Incoming::Answer { id, outcome: Err(fault) }) => {
                    format!("error {id} {} {}", fault.code, fault.message)
                }
                None => "nothing".into(),
            };
            assert_eq!(said, expected, "{line}");
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
