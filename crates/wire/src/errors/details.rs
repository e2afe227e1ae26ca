//! What an error says beside its code and its title.
//!
//! The same members serve every version: 1.0 has them as the metadata of an ErrorInfo, 0.x as one object. An error
//! repeats at most 200 characters of what the caller wrote, and nothing of an internal error.

use std::borrow::Cow;

use sabir_model::{Error, TaskId, Violation};

use crate::excerpt::excerpt_with_ellipsis;
use crate::version::SUPPORTED;

/// More of them help nobody, and a caller could make us write without end.
const MOST_VIOLATIONS: usize = 20;

const PATHS: &str = "POST JSON-RPC to /, /a2a, /a2a/jsonrpc or /v1/a2a (one version only: /a2a/v1, /a2a/v0.3, \
    /a2a/v0.1); HTTP+JSON is at /message:send, /tasks and so on, also below /a2a/rest (0.3: below /v1 there); \
    the gateway is below /v1/a2a/agents; gRPC is at /lf.a2a.v1.A2AService and /a2a.v1.A2AService; one agent of several is below /agents/{id}; \
    the card is at /.well-known/agent-card.json; \
    versions: 0.1,0.2,0.3,1.0";

pub(super) type Member<'e> = (&'static str, Cow<'e, str>);

pub(super) enum ErrorDetails<'e> {
    Members(Vec<Member<'e>>),
    Violations(Vec<(Cow<'e, str>, Cow<'e, str>)>),
}

pub(super) fn of(error: &Error) -> ErrorDetails<'_> {
    let members = match error {
        Error::TaskNotFound(task) => vec![task_id(task)],
        Error::NotCancelable(task) => vec![task_id(task)],
        Error::TaskFinished(task) => vec![task_id(task), detail(error)],
        Error::NotWaiting(task) => vec![task_id(task), detail(error)],
        Error::QuestionClosed(_) => {
            return ErrorDetails::Violations(vec![(Cow::Borrowed("message.parts"), Cow::Owned(sentence(error)))]);
        }
        Error::PushNotSupported => vec![],
        Error::Unsupported(_) => vec![detail(error)],
        Error::ContentType(media_type) => vec![("mediaType", excerpt_with_ellipsis(media_type))],
        Error::InvalidAgentResponse => vec![],
        Error::ExtendedCardNotConfigured => vec![],
        Error::ExtendedCardNotOffered => vec![detail(error)],
        Error::ExtensionRequired(uri) => vec![("uri", excerpt_with_ellipsis(uri))],
        Error::Version(requested) => {
            vec![("requested", excerpt_with_ellipsis(requested)), ("supported", Cow::Borrowed(SUPPORTED))]
        }
        Error::Invalid(violations) => return ErrorDetails::Violations(listed(violations)),
        Error::InvalidRequest(_) => vec![detail(error)],
        Error::MethodNotFound(_) => vec![],
        Error::NotJson(_) => vec![detail(error)],
        Error::AgentNotFound { .. } => {
            return ErrorDetails::Violations(vec![(Cow::Borrowed("tenant"), Cow::Owned(sentence(error)))]);
        }
        Error::Busy(_) => vec![detail(error)],
        Error::Stopping => vec![detail(error)],
        Error::StoreFull => vec![detail(error)],
        Error::Overloaded => vec![detail(error)],
        Error::Unauthenticated(_) => vec![detail(error)],
        Error::IdentityUnavailable => vec![detail(error)],
        Error::LimitReached { retry_after, .. } => {
            vec![detail(error), ("retryAfterSeconds", Cow::Owned(retry_after.to_string()))]
        }
        Error::Forbidden(_) => vec![detail(error)],
        Error::Misdirected(_) => vec![detail(error)],
        Error::BrokenHead(_) => vec![detail(error)],
        Error::TooLarge { .. } => vec![detail(error)],
        Error::UnsupportedMediaType(_) => vec![detail(error)],
        Error::UnsupportedCompression(_) => vec![detail(error)],
        Error::BrokenBody(_) => vec![detail(error)],
        Error::PathNotFound(_) => vec![detail(error)],
        Error::ServiceNotFound => vec![detail(error)],
        Error::VerbNotAllowed(_) => vec![detail(error)],
        Error::DeadlineExceeded => vec![detail(error)],
        Error::Unrepresentable(_) => vec![detail(error)],
        Error::Internal(_) => vec![],
    };
    ErrorDetails::Members(members)
}

/// Our sentence on an error.
pub(super) fn sentence(error: &Error) -> String {
    match error {
        // The known names are ours, so they do not count.
        Error::AgentNotFound { named, known } => {
            Error::AgentNotFound { named: excerpt_with_ellipsis(named).into_owned(), known: known.clone() }.to_string()
        }
        Error::PathNotFound(path) => {
            let short = Error::PathNotFound(excerpt_with_ellipsis(path).into_owned());
            format!("{short}; {PATHS}")
        }
        Error::ExtendedCardNotOffered => format!("{error}; the public card is at /.well-known/agent-card.json"),
        Error::Version(requested) => {
            format!("{}; supported: {SUPPORTED}", Error::Version(excerpt_with_ellipsis(requested).into_owned()))
        }
        Error::Invalid(violations) => {
            let each: Vec<String> = listed(violations).iter().map(|(field, what)| format!("{field} {what}")).collect();
            each.join("; ")
        }
        _ => excerpt_with_ellipsis(&error.to_string()).into_owned(),
    }
}

/// The task that an error is about.
pub(super) fn task_of(error: &Error) -> Option<&TaskId> {
    match error {
        Error::TaskNotFound(task)
        | Error::NotCancelable(task)
        | Error::TaskFinished(task)
        | Error::NotWaiting(task)
        | Error::QuestionClosed(task) => Some(task),
        _ => None,
    }
}

fn task_id(task: &TaskId) -> Member<'_> {
    ("taskId", excerpt_with_ellipsis(task.as_str()))
}

fn detail(error: &Error) -> Member<'_> {
    ("detail", Cow::Owned(sentence(error)))
}

fn listed(violations: &[Violation]) -> Vec<(Cow<'_, str>, Cow<'_, str>)> {
    violations
        .iter()
        .take(MOST_VIOLATIONS)
        .map(|each| (excerpt_with_ellipsis(&each.field), excerpt_with_ellipsis(&each.description)))
        .collect()
}
