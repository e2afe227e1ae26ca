//! JSON-RPC as MCP uses it: what a client sends, and what it is sent.
//!
//! Ids and carried JSON stay as they were written. MCP has no batches since 2025-06-18, and ids are never null.

use sabir_model::{Json, JsonMembers, MAX_DEPTH};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::nesting::is_too_deep;

/// The longest id that is repeated in a response.
const LONGEST_ID: usize = 1024;

/// What a client sends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ClientMessage {
    Request(Request),
    Notification,
    /// The response to a request of ours.
    Response {
        id: Json,
        result: Option<Json>,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) id: Json,
    pub(crate) method: String,
    /// An object; `{}` where the client sent none.
    pub(crate) params: Json,
}

/// Why a request is refused: an error of JSON-RPC.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) code: i32,
    pub(crate) message: String,
    pub(crate) data: Option<Json>,
    /// The status of HTTP, where the specification names one.
    pub(crate) status: u16,
}

impl Refusal {
    pub(crate) const NOT_JSON: i32 = -32700;
    pub(crate) const INVALID_REQUEST: i32 = -32600;
    pub(crate) const NO_METHOD: i32 = -32601;
    pub(crate) const INVALID_PARAMS: i32 = -32602;
    pub(crate) const INTERNAL: i32 = -32603;
    pub(crate) const HEADER_MISMATCH: i32 = -32020;
    pub(crate) const MISSING_CAPABILITY: i32 = -32021;
    pub(crate) const UNSUPPORTED_VERSION: i32 = -32022;

    pub(crate) fn new(code: i32, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None, status: 200 }
    }

    pub(crate) fn invalid_params(message: impl Into<String>) -> Self {
        Self::new(Self::INVALID_PARAMS, message)
    }

    pub(crate) fn with_status(self, status: u16) -> Self {
        Self { status, ..self }
    }

    pub(crate) fn with_data(self, data: &impl Serialize) -> Self {
        Self { data: Some(json_of(data)), ..self }
    }
}

impl ClientMessage {
    /// Reads one message.
    ///
    /// # Errors
    /// It is not one; with its id, if that can be read.
    pub(crate) fn read(body: &[u8]) -> Result<Self, (Option<Json>, Refusal)> {
        let not_json =
            |why: String| (None, Refusal::new(Refusal::NOT_JSON, format!("Parse error: {why}")).with_status(400));
        let text = std::str::from_utf8(body).map_err(|_| not_json("the message is not UTF-8".to_owned()))?;
        if is_too_deep(text) {
            return Err(not_json(format!("more than {MAX_DEPTH} levels of nesting")));
        }
        let invalid = |id: Option<Json>, why: &str| {
            (id, Refusal::new(Refusal::INVALID_REQUEST, format!("Invalid request: {why}")).with_status(400))
        };
        if text.trim_start().starts_with('[') {
            return Err(invalid(None, "batches are not supported; send each message by itself"));
        }
        let members: JsonMembers<'_> = match serde_json::from_str(text) {
            Ok(members) => members,
            Err(error) if error.is_data() => return Err(invalid(None, "the message must be an object")),
            Err(error) => return Err(not_json(error.to_string())),
        };
        let mut fields = Fields::default();
        for (name, value) in members.0 {
            let field = match &*name {
                "jsonrpc" => &mut fields.version,
                "id" => &mut fields.id,
                "method" => &mut fields.method,
                "params" => &mut fields.params,
                "result" => &mut fields.result,
                "error" => &mut fields.error,
                _ => continue,
            };
            if field.replace(value).is_some() {
                return Err(invalid(None, &format!("{name} is there twice")));
            }
        }
        fields.into_message().map_err(|(id, why)| invalid(id, why))
    }
}

#[derive(Default)]
struct Fields<'a> {
    version: Option<&'a RawValue>,
    id: Option<&'a RawValue>,
    method: Option<&'a RawValue>,
    params: Option<&'a RawValue>,
    result: Option<&'a RawValue>,
    error: Option<&'a RawValue>,
}

impl Fields<'_> {
    fn into_message(self) -> Result<ClientMessage, (Option<Json>, &'static str)> {
        let id = match self.id.map(RawValue::get) {
            None => None,
            Some(text) if text.len() > LONGEST_ID => return Err((None, "id must not be longer than 1024 bytes")),
            Some(text) if is_id(text) => self.id.map(Json::from),
            Some(_) => return Err((None, "id must be a string or a whole number")),
        };
        if self.version.map(RawValue::get) != Some("\"2.0\"") {
            return Err((id, "jsonrpc must be \"2.0\""));
        }
        let Some(method) = self.method else {
            return match id {
                Some(id) if self.result.is_some() || self.error.is_some() => {
                    Ok(ClientMessage::Response { id, result: self.result.map(Json::from) })
                }
                id => Err((id, "method is missing")),
            };
        };
        let Ok(method) = serde_json::from_str::<String>(method.get()) else {
            return Err((id, "method must be a string"));
        };
        let params = match self.params.map(Json::from) {
            None => json_of(&Empty {}),
            Some(params) if params.is_object() => params,
            Some(_) => return Err((id, "params must be an object")),
        };
        Ok(match id {
            Some(id) => ClientMessage::Request(Request { id, method, params }),
            None => ClientMessage::Notification,
        })
    }
}

/// Whether it may be the id of a request or the token of its progress: a string or a whole number, and not long.
pub(crate) fn is_id(text: &str) -> bool {
    text.len() <= LONGEST_ID && (text.starts_with('"') || is_whole_number(text))
}

fn is_whole_number(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// An object without members.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct Empty {}

#[derive(Serialize)]
struct ResultResponse<'a, T> {
    jsonrpc: &'static str,
    id: &'a Json,
    result: T,
}

#[derive(Serialize)]
struct ErrorResponse<'a> {
    jsonrpc: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a Json>,
    error: ErrorObject<'a>,
}

#[derive(Serialize)]
struct ErrorObject<'a> {
    code: i32,
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<&'a Json>,
}

#[derive(Serialize)]
struct Outgoing<'a, T> {
    jsonrpc: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a Json>,
    method: &'a str,
    params: T,
}

pub(crate) fn result(id: &Json, result: impl Serialize) -> Vec<u8> {
    bytes_of(&ResultResponse { jsonrpc: "2.0", id, result })
}

pub(crate) fn error(id: Option<&Json>, refusal: &Refusal) -> Vec<u8> {
    let error = ErrorObject { code: refusal.code, message: &refusal.message, data: refusal.data.as_ref() };
    bytes_of(&ErrorResponse { jsonrpc: "2.0", id, error })
}

pub(crate) fn notification(method: &str, params: impl Serialize) -> Vec<u8> {
    bytes_of(&Outgoing { jsonrpc: "2.0", id: None, method, params })
}

pub(crate) fn request(id: &Json, method: &str, params: impl Serialize) -> Vec<u8> {
    bytes_of(&Outgoing { jsonrpc: "2.0", id: Some(id), method, params })
}

pub(crate) fn json_of(value: &(impl Serialize + ?Sized)) -> Json {
    Json::of(value).expect("texts, numbers and JSON can be written as JSON")
}

fn bytes_of(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).expect("texts, numbers and JSON can be written as JSON")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn messages_are_told_apart_and_faults_are_named() {
        for (text, expected) in [
            (r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#, "request 1 ping {}"),
            (r#"{"jsonrpc":"2.0","id":"a b","method":"m","params":{"x":5.0}}"#, r#"request "a b" m {"x":5.0}"#),
            (r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#, "notification"),
            (r#"{"jsonrpc":"2.0","id":"q","result":{"action":"accept"}}"#, r#"response "q" {"action":"accept"}"#),
            (r#"{"jsonrpc":"2.0","id":"q","error":{"code":1,"message":""}}"#, r#"response "q" none"#),
            ("", "-32700 Parse error: EOF"),
            ("{", "-32700 Parse error: EOF"),
            ("[1]", "-32600 Invalid request: batches"),
            ("7", "-32600 Invalid request: the message must be an object"),
            ("{}", "-32600 Invalid request: jsonrpc"),
            (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, "-32600 Invalid request: id must be"),
            (r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#, "-32600 Invalid request: id must be"),
            (r#"{"jsonrpc":"2.0","id":1}"#, "-32600 Invalid request: method is missing"),
            (r#"{"jsonrpc":"2.0","id":1,"method":7}"#, "-32600 Invalid request: method must be"),
            (r#"{"jsonrpc":"2.0","id":1,"method":"m","params":[]}"#, "-32600 Invalid request: params must be"),
            (r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"m"}"#, "-32600 Invalid request: id is there twice"),
        ] {
            let said = match ClientMessage::read(text.as_bytes()) {
                Ok(ClientMessage::Request(Request { id, method, params })) => {
                    format!("request {} {method} {}", id.as_str(), params.as_str())
                }
                Ok(ClientMessage::Notification) => "notification".to_owned(),
                Ok(ClientMessage::Response { id, result }) => {
                    format!("response {} {}", id.as_str(), result.as_ref().map_or("none", Json::as_str))
                }
                Err((_, refusal)) => format!("{} {}", refusal.code, refusal.message),
            };
            assert!(said.starts_with(expected), "{text}: {said}");
        }
    }

    #[test]
    fn deep_nesting_is_refused_before_anything_is_read() {
        let nested = |depth: usize| format!(r#"{{"a":{}{}}}"#, "[".repeat(depth), "]".repeat(depth));
        assert!(!is_too_deep(&nested(MAX_DEPTH - 1)));
        assert!(is_too_deep(&nested(MAX_DEPTH)));
        assert!(!is_too_deep(&format!(r#"{{"a":"{}"}}"#, "[".repeat(1000))));
        let (_, refusal) = ClientMessage::read(nested(100_000).as_bytes()).unwrap_err();
        assert_eq!(refusal.code, Refusal::NOT_JSON);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(body in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = ClientMessage::read(&body);
        }

        #[test]
        fn an_id_comes_back_as_it_was_written(id in r#"(-?[1-9][0-9]{0,30}|0|"[a-zA-Z0-9 éñ]{0,40}")"#) {
            let text = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"x"}}"#);
            let Ok(ClientMessage::Request(request)) = ClientMessage::read(text.as_bytes()) else { panic!("{text}") };
            let response = String::from_utf8(result(&request.id, Empty {})).unwrap();
            prop_assert_eq!(response, format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#));
        }
    }
}
