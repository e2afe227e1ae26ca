//! JSON-RPC 2.0, as ACP speaks it: one message a line, no batches, and requests in both directions.

use sabir_model::Json;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

const PARSE_ERROR: i32 = -32700;
const INVALID_REQUEST: i32 = -32600;
const METHOD_NOT_FOUND: i32 = -32601;
const INVALID_PARAMS: i32 = -32602;
const INTERNAL_ERROR: i32 = -32603;
/// ACP's own: what is named does not exist.
const RESOURCE_NOT_FOUND: i32 = -32002;

/// What a request is refused with.
#[derive(Debug, Clone, Serialize)]
pub struct RpcError {
    pub code: i32,
    pub message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<Json>,
}

impl RpcError {
    fn new(code: i32, message: impl Into<String>) -> Self {
        RpcError { code, message: message.into(), data: None }
    }

    pub fn invalid_request(message: impl Into<String>) -> Self {
        Self::new(INVALID_REQUEST, message)
    }

    pub fn method_not_found(method: &str) -> Self {
        let shown: String = method.chars().take(100).collect();
        Self::new(METHOD_NOT_FOUND, format!("there is no method {shown:?}"))
    }

    /// The message begins with the name of the field.
    pub fn invalid_params(message: impl Into<String>) -> Self {
        Self::new(INVALID_PARAMS, message)
    }

    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(RESOURCE_NOT_FOUND, message)
    }

    /// The work has failed, or the server could not be asked.
    pub fn failed(message: impl Into<String>) -> Self {
        Self::new(INTERNAL_ERROR, message)
    }

    pub fn with_data(self, data: &impl Serialize) -> Self {
        RpcError { data: Json::of(data).ok(), ..self }
    }
}

/// A message of the editor.
#[derive(Debug)]
pub enum Incoming {
    Request {
        id: Json,
        method: String,
        params: Json,
    },
    Notification {
        method: String,
        params: Json,
    },
    /// The answer to a request of ours; an error of the editor in words.
    Response {
        id: Json,
        outcome: Result<Json, String>,
    },
}

/// What cannot be read, and the id of the request if that can.
#[derive(Debug)]
pub struct Unreadable {
    pub id: Option<Json>,
    pub error: RpcError,
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow, default)]
    jsonrpc: Option<&'a RawValue>,
    /// `null` is an id too.
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    method: Option<&'a RawValue>,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    result: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

impl Incoming {
    pub fn read(line: &[u8]) -> Result<Self, Unreadable> {
        let refused = |id: Option<Json>, error: RpcError| Err(Unreadable { id, error });
        let json = match serde_json::from_slice::<&RawValue>(line) {
            Ok(json) => json.get(),
            Err(error) => return refused(None, RpcError::new(PARSE_ERROR, format!("this is not JSON: {error}"))),
        };
        if !json.starts_with('{') {
            return refused(None, RpcError::invalid_request("a message is one JSON object; there are no batches"));
        }
        let envelope: Envelope<'_> = match serde_json::from_str(json) {
            Ok(envelope) => envelope,
            Err(error) => return refused(None, RpcError::invalid_request(error.to_string())),
        };
        let id = envelope.id.map(Json::from);
        if id.as_ref().is_some_and(|id| !is_id(id)) {
            return refused(None, RpcError::invalid_request("id: must be a text, a number or null"));
        }
        if envelope.jsonrpc.is_none_or(|version| version.get() != "\"2.0\"") {
            return refused(id, RpcError::invalid_request("jsonrpc: must be \"2.0\""));
        }
        let Some(method) = envelope.method else {
            return match (id, envelope.result, envelope.error) {
                (Some(id), Some(result), None) => Ok(Incoming::Response { id, outcome: Ok(result.into()) }),
                (Some(id), None, Some(error)) => Ok(Incoming::Response { id, outcome: Err(reason(error)) }),
                (id, ..) => refused(id, RpcError::invalid_request("method: is missing")),
            };
        };
        let Some(method) = Json::from(method).text() else {
            return refused(id, RpcError::invalid_request("method: must be a text"));
        };
        let params = envelope.params.map_or_else(|| Json::parse("{}").expect("this is JSON"), Json::from);
        Ok(match id {
            Some(id) => Incoming::Request { id, method, params },
            None => Incoming::Notification { method, params },
        })
    }
}

fn is_id(id: &Json) -> bool {
    id.as_str() == "null"
        || id.as_str().starts_with(|first: char| first == '"' || first == '-' || first.is_ascii_digit())
}

/// What an error object says.
fn reason(error: &RawValue) -> String {
    let error = Json::from(error);
    error.text_of("message").unwrap_or_else(|| error.as_str().chars().take(200).collect())
}

/// Reads the parameters of a method. What is wrong with them begins with the name of the field.
pub fn read_params<T: DeserializeOwned>(params: &Json) -> Result<T, RpcError> {
    if !params.is_object() {
        return Err(RpcError::invalid_params("params: must be an object"));
    }
    let mut reader = serde_json::Deserializer::from_str(params.as_str());
    serde_path_to_error::deserialize(&mut reader).map_err(|error| {
        let path = error.path().to_string();
        let why = error.into_inner();
        // The place counts characters of the line; the name of the field says more.
        let why = why.to_string();
        let why = why.split(" at line ").next().unwrap_or_default();
        RpcError::invalid_params(if path == "." { why.to_owned() } else { format!("{path}: {why}") })
    })
}

#[derive(Serialize)]
struct Success<'a, T> {
    jsonrpc: &'static str,
    id: &'a Json,
    result: &'a T,
}

#[derive(Serialize)]
struct Refusal<'a> {
    jsonrpc: &'static str,
    id: Option<&'a Json>,
    error: &'a RpcError,
}

#[derive(Serialize)]
struct Call<'a, T> {
    jsonrpc: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<u64>,
    method: &'static str,
    params: &'a T,
}

const VERSION: &str = "2.0";

pub fn result(id: &Json, result: &impl Serialize) -> Vec<u8> {
    line(&Success { jsonrpc: VERSION, id, result })
}

pub fn refusal(id: Option<&Json>, error: &RpcError) -> Vec<u8> {
    line(&Refusal { jsonrpc: VERSION, id, error })
}

pub fn request(id: u64, method: &'static str, params: &impl Serialize) -> Vec<u8> {
    line(&Call { jsonrpc: VERSION, id: Some(id), method, params })
}

pub fn notification(method: &'static str, params: &impl Serialize) -> Vec<u8> {
    line(&Call { jsonrpc: VERSION, id: None, method, params })
}

/// JSON that is carried may have line ends between its members, where a space means the same.
fn line(message: &impl Serialize) -> Vec<u8> {
    let mut line = serde_json::to_vec(message).expect("texts and JSON can be written as JSON");
    for byte in &mut line {
        if matches!(byte, b'\n' | b'\r') {
            *byte = b' ';
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> String {
        match Incoming::read(line.as_bytes()) {
            Ok(Incoming::Request { id, method, params }) => {
                format!("request {} {method} {}", id.as_str(), params.as_str())
            }
            Ok(Incoming::Notification { method, params }) => format!("notification {method} {}", params.as_str()),
            Ok(Incoming::Response { id, outcome }) => {
                format!("response {} {:?}", id.as_str(), outcome.map(|result| result.as_str().to_owned()))
            }
            Err(Unreadable { id, error }) => {
                format!("{} {} {}", id.map_or("-".to_owned(), |id| id.as_str().to_owned()), error.code, error.message)
            }
        }
    }

    #[test]
    fn messages_and_what_is_wrong_with_others() {
        for (line, expected) in [
            (r#"{"jsonrpc":"2.0","id":1,"method":"a","params":{"x":1}}"#, r#"request 1 a {"x":1}"#),
            (r#"{"jsonrpc":"2.0","id":"b","method":"a"}"#, r#"request "b" a {}"#),
            (r#"{"jsonrpc":"2.0","id":null,"method":"a"}"#, "request null a {}"),
            (r#"{"jsonrpc":"2.0","method":"a"}"#, "notification a {}"),
            (r#"{"jsonrpc":"2.0","id":7,"result":null}"#, r#"response 7 Ok("null")"#),
            (r#"{"jsonrpc":"2.0","id":7,"error":{"code":1,"message":"no"}}"#, r#"response 7 Err("no")"#),
            ("{", "- -32700 this is not JSON: EOF while parsing an object at line 1 column 1"),
            ("[]", "- -32600 a message is one JSON object; there are no batches"),
            (r#"{"id":3,"method":"a"}"#, "3 -32600 jsonrpc: must be \"2.0\""),
            (r#"{"jsonrpc":"1.0","id":3,"method":"a"}"#, "3 -32600 jsonrpc: must be \"2.0\""),
            (r#"{"jsonrpc":"2.0","id":3}"#, "3 -32600 method: is missing"),
            (r#"{"jsonrpc":"2.0","id":3,"method":4}"#, "3 -32600 method: must be a text"),
            (r#"{"jsonrpc":"2.0","id":{},"method":"a"}"#, "- -32600 id: must be a text, a number or null"),
        ] {
            assert_eq!(read(line), expected, "{line}");
        }
    }

    #[test]
    fn an_answer_is_one_line() {
        let id = Json::parse("1").unwrap();
        let data = Json::parse("{\n \"a\": \"\\n\"\n}").unwrap();
        assert_eq!(
            String::from_utf8(result(&id, &data)).unwrap(),
            r#"{"jsonrpc":"2.0","id":1,"result":{  "a": "\n" }}"#
        );
        assert_eq!(
            String::from_utf8(refusal(None, &RpcError::invalid_request("x"))).unwrap(),
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"x"}}"#
        );
    }
}
