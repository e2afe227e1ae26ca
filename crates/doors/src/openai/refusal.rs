//! Why a request is refused, in the form that OpenAI gives its errors.

use sabir_model::{Error, Task, Violation};
use serde::Serialize;

use crate::words::told_of;

/// Where the agent's work for a request is found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChatPlace {
    /// For the header `X-Sabir-Context`.
    pub context: String,
    /// For the header `X-Sabir-Task`.
    pub task: String,
}

impl ChatPlace {
    pub(crate) fn of(task: &Task) -> Self {
        Self { context: task.context.to_string(), task: task.id.to_string() }
    }
}

/// An error of this API, with what HTTP says of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The status of HTTP.
    pub status: u16,
    /// After so many seconds a retry makes sense.
    pub retry_after: Option<u32>,
    /// The task that was begun before it went wrong.
    pub place: Option<Box<ChatPlace>>,
    message: String,
    kind: &'static str,
    /// The field that is not as it should be.
    param: Option<String>,
    code: Option<&'static str>,
}

#[derive(Serialize)]
struct ErrorBody<'a> {
    error: ErrorObject<'a>,
}

#[derive(Serialize)]
struct ErrorObject<'a> {
    message: &'a str,
    #[serde(rename = "type")]
    kind: &'static str,
    param: Option<&'a str>,
    code: Option<&'static str>,
}

const INVALID_REQUEST: &str = "invalid_request_error";
const SERVER_ERROR: &str = "server_error";

impl Refusal {
    pub(crate) fn new(status: u16, code: &'static str, message: impl Into<String>) -> Self {
        let kind = match status {
            429 => "rate_limit_error",
            500.. => SERVER_ERROR,
            _ => INVALID_REQUEST,
        };
        let message = message.into();
        Self { status, retry_after: None, place: None, message, kind, param: None, code: Some(code) }
    }

    /// A field that is not as it should be.
    pub(crate) fn field(param: impl Into<String>, why: impl std::fmt::Display) -> Self {
        let param = param.into();
        let message = format!("{param} {why}");
        Self { param: Some(param), ..Self::new(400, "invalid_value", message) }
    }

    /// There is no such agent.
    pub(crate) fn no_model(named: &str, known: &str) -> Self {
        let named: String = named.chars().take(200).collect();
        let message = format!("there is no agent {named}; models: {known}");
        Self { param: Some("model".to_owned()), ..Self::new(404, "model_not_found", message) }
    }

    /// The agent did not do what it was asked. A retry would ask it once more, which is not for a client library to decide, so
    /// the status is one that none of them retries.
    pub(crate) fn of_agent(code: &'static str, message: String) -> Self {
        Self { kind: "agent_error", ..Self::new(422, code, message) }
    }

    /// Of a request for which a task was begun.
    pub(crate) fn at(self, place: &ChatPlace) -> Self {
        Self { place: Some(Box::new(place.clone())), ..self }
    }

    /// This method is not for this path.
    pub fn wrong_method(method: &str, allowed: &str) -> Self {
        let method: String = method.chars().take(20).collect();
        Self::new(405, "method_not_allowed", format!("this path does not take {method}; send {allowed}"))
    }

    /// A page of another origin, which may not call.
    pub fn foreign_origin() -> Self {
        let why = "pages of this origin may not call; allow it with server.cors_origins";
        Self::new(403, "permission_denied", why)
    }

    /// A header that is there twice, or is no text.
    pub fn header(name: &str, why: &str) -> Self {
        Self::field(name, why)
    }

    /// The server has no memory for the answer; the task has it.
    pub fn no_memory() -> Self {
        Self::from(&Error::Overloaded)
    }

    /// Whether a client library may send the same request again by itself. `None`: the status says so well enough. Where a task
    /// was begun, a repeated request would begin another one.
    pub fn may_be_repeated(&self) -> Option<bool> {
        (self.status == 500 || self.place.is_some()).then_some(false)
    }

    /// The body of the response.
    pub fn body(&self) -> Vec<u8> {
        let error =
            ErrorObject { message: &self.message, kind: self.kind, param: self.param.as_deref(), code: self.code };
        serde_json::to_vec(&ErrorBody { error }).expect("texts can be written as JSON")
    }
}

impl From<&Error> for Refusal {
    fn from(error: &Error) -> Self {
        let (status, code) = match error {
            Error::Unauthenticated(_) => (401, "invalid_api_key"),
            Error::Forbidden(_) => (403, "permission_denied"),
            Error::AgentNotFound { .. } => (404, "model_not_found"),
            Error::TaskNotFound(_) => (404, "task_not_found"),
            Error::PathNotFound(_) | Error::ServiceNotFound | Error::MethodNotFound(_) => (404, "not_found"),
            Error::VerbNotAllowed(_) => (405, "method_not_allowed"),
            Error::TooLarge { .. } => (413, "request_too_large"),
            Error::UnsupportedMediaType(_) | Error::UnsupportedCompression(_) => (415, "unsupported_media_type"),
            Error::Misdirected(_) => (421, "misdirected_request"),
            Error::LimitReached { .. } => (429, "rate_limit_exceeded"),
            Error::Internal(_) | Error::InvalidAgentResponse => (500, "internal_error"),
            Error::Busy(_)
            | Error::Stopping
            | Error::StoreFull
            | Error::Overloaded
            | Error::IdentityUnavailable
            | Error::DeadlineExceeded => (503, "overloaded"),
            // Statuses of conflicts are retried by client libraries, which would not help.
            Error::QuestionClosed(_) | Error::NotWaiting(_) => (400, "question_closed"),
            Error::TaskFinished(_) | Error::NotCancelable(_) => (400, "task_finished"),
            Error::ContentType(_) => (400, "unsupported_content"),
            Error::NotJson(_) => (400, "invalid_json"),
            Error::Invalid(_) => (400, "invalid_value"),
            Error::PushNotSupported
            | Error::Unsupported(_)
            | Error::ExtendedCardNotConfigured
            | Error::ExtendedCardNotOffered
            | Error::ExtensionRequired(_)
            | Error::Version(_)
            | Error::InvalidRequest(_)
            | Error::BrokenHead(_)
            | Error::BrokenBody(_)
            | Error::Unrepresentable(_) => (400, "invalid_request"),
        };
        let param = match error {
            Error::AgentNotFound { .. } => Some("model".to_owned()),
            Error::ContentType(_) => Some("messages".to_owned()),
            Error::Invalid(violations) => violations.first().map(field_of),
            _ => None,
        };
        let retry_after = match error {
            Error::LimitReached { retry_after, .. } => Some(*retry_after),
            _ if status == 503 => Some(1),
            _ => None,
        };
        Self { retry_after, param, ..Self::new(status, code, told_of(error)) }
    }
}

/// The field of this API that a field of a message comes from.
fn field_of(violation: &Violation) -> String {
    match violation.field.split('.').next() {
        Some("message") => "messages".to_owned(),
        _ => violation.field.clone(),
    }
}

#[cfg(test)]
mod tests {
    use sabir_model::TaskId;
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn an_error_has_the_form_of_the_api_and_names_the_field() {
        for (error, status, expected) in [
            (
                Error::Unauthenticated("no credential".into()),
                401,
                json!({"message": "no credential", "type": "invalid_request_error", "param": null, "code": "invalid_api_key"}),
            ),
            (
                Error::AgentNotFound { named: "x".into(), known: Vec::new() },
                404,
                json!({"message": "there is no agent x; known: ", "type": "invalid_request_error", "param": "model", "code": "model_not_found"}),
            ),
            (
                Error::invalid("message.parts", "are missing"),
                400,
                json!({"message": "invalid parameters: message.parts are missing", "type": "invalid_request_error", "param": "messages", "code": "invalid_value"}),
            ),
            (
                Error::LimitReached { sentence: "too many".into(), retry_after: 7 },
                429,
                json!({"message": "too many", "type": "rate_limit_error", "param": null, "code": "rate_limit_exceeded"}),
            ),
            (
                Error::internal("a secret"),
                500,
                json!({"message": "internal error", "type": "server_error", "param": null, "code": "internal_error"}),
            ),
        ] {
            let refusal = Refusal::from(&error);
            let body: Value = serde_json::from_slice(&refusal.body()).unwrap();
            assert_eq!((refusal.status, body), (status, json!({"error": expected})), "{error}");
        }
    }

    #[test]
    fn client_libraries_repeat_only_what_was_not_begun() {
        let task = TaskId::parse("t").unwrap();
        let agent = sabir_model::AgentId::parse("a").unwrap();
        for (error, repeats) in [
            (Error::Stopping, true),
            (Error::Overloaded, true),
            (Error::Busy(agent), true),
            (Error::LimitReached { sentence: String::new(), retry_after: 1 }, true),
            (Error::internal("x"), false),
            (Error::QuestionClosed(task.clone()), false),
            (Error::TaskFinished(task.clone()), false),
            (Error::NotWaiting(task), false),
        ] {
            let refusal = Refusal::from(&error);
            // What the official libraries retry without being told.
            let is_retried = matches!(refusal.status, 408 | 409 | 429 | 500..);
            assert_eq!(refusal.may_be_repeated().unwrap_or(is_retried), repeats, "{error}");
        }
        assert!(!matches!(Refusal::of_agent("agent_failed", String::new()).status, 408 | 409 | 429 | 500..));
    }
}
