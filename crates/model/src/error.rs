//! Everything a caller can be told went wrong.
//!
//! Bindings translate it into codes and statuses; nobody else does. A sentence starts in lower case,
//! has no final dot, and says what the reader can act on.

use crate::{AgentId, TaskId};

pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("task {0} does not exist")]
    TaskNotFound(TaskId),
    #[error("task {0} can no longer be canceled")]
    NotCancelable(TaskId),
    #[error("the task is finished")]
    TaskFinished(TaskId),
    /// An answer for a task that did not ask.
    #[error("task is not active: {0} does not wait for an answer")]
    NotWaiting(TaskId),
    /// An answer that names a question which is answered or withdrawn, or which another task has asked.
    #[error("the answer names another question than the one that task {0} asks; nothing was done")]
    QuestionClosed(TaskId),
    #[error("push notifications are not supported")]
    PushNotSupported,
    #[error("{0}")]
    Unsupported(String),
    /// No skill of the agent takes this media type.
    #[error("no skill takes {0}")]
    ContentType(String),
    #[error("the agent answered with something that is not A2A")]
    InvalidAgentResponse,
    /// Promised on the card, but there is none.
    #[error("no extended card is configured")]
    ExtendedCardNotConfigured,
    /// The card does not promise one.
    #[error("this server has no extended card")]
    ExtendedCardNotOffered,
    #[error("the extension {0} must be activated")]
    ExtensionRequired(String),
    #[error("protocol version {0} is not supported")]
    Version(String),
    #[error("invalid parameters: {}", list(.0))]
    Invalid(Vec<Violation>),
    #[error("{0}")]
    InvalidRequest(String),
    #[error("there is no method {0}")]
    MethodNotFound(String),
    #[error("the body is not JSON: {0}")]
    NotJson(String),
    #[error("there is no agent {named}; known: {}", names(known))]
    AgentNotFound { named: String, known: Vec<AgentId> },
    /// The queue is full. Nothing was stored, so trying again is safe.
    #[error("agent {0} has too many tasks waiting; try again later")]
    Busy(AgentId),
    #[error("the server is stopping; try again later")]
    Stopping,
    #[error("the store cannot take anything now; try again later")]
    StoreFull,
    /// The server as a whole has no room for this now. Nothing was stored, so trying again is safe.
    #[error("the server has no memory left for this request; try again later")]
    Overloaded,
    /// The caller has shown no credential, or none that counts.
    #[error("{0}")]
    Unauthenticated(String),
    /// Whether a credential counts cannot be found out now.
    #[error("the credential cannot be checked now; try again later")]
    IdentityUnavailable,
    #[error("{0}")]
    Forbidden(String),
    /// The caller has used up what it may have. Nothing was stored.
    #[error("{sentence}")]
    LimitReached {
        /// Which limit, and what to do.
        sentence: String,
        /// When a retry makes sense, in seconds.
        retry_after: u32,
    },
    /// The request came to a host name that is not this server's.
    #[error("{0}")]
    Misdirected(String),
    /// The head of the request contradicts itself or lacks what it must have.
    #[error("{0}")]
    BrokenHead(String),
    #[error("the body is larger than {limit} bytes")]
    TooLarge { limit: usize },
    #[error("{0}")]
    UnsupportedMediaType(String),
    /// The body is compressed in a way that nobody here undoes.
    #[error("{0}")]
    UnsupportedCompression(String),
    #[error("{0}")]
    BrokenBody(String),
    #[error("there is nothing at {0}")]
    PathNotFound(String),
    /// The health service knows no such service.
    #[error("this server has no service of that name")]
    ServiceNotFound,
    #[error("this path does not take {0}")]
    VerbNotAllowed(String),
    /// The caller has set a time for its call, and that is over. What the call has begun goes on.
    #[error("the deadline of the call is over")]
    DeadlineExceeded,
    /// The answer holds something for which the binding of the caller has no form. Others show it.
    #[error("{0}")]
    Unrepresentable(String),
    /// Ours, not theirs: logged in full, told to nobody.
    #[error("internal error")]
    Internal(#[source] BoxError),
}

/// A field that is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The path of the field as the caller spelled it, `message.parts`.
    pub field: String,
    /// What is wrong with it, `at least one part is required`.
    pub description: String,
}

impl Error {
    /// One field that is not as it should be.
    pub fn invalid(field: impl Into<String>, description: impl Into<String>) -> Self {
        Self::Invalid(vec![Violation { field: field.into(), description: description.into() }])
    }

    /// What kind of refusal it is, without a word of the caller's: for logs and metrics.
    pub fn kind(&self) -> &'static str {
        match self {
            Error::TaskNotFound(_) => "task not found",
            Error::NotCancelable(_) => "task cannot be canceled",
            Error::TaskFinished(_) => "task is finished",
            Error::NotWaiting(_) => "task does not wait",
            Error::QuestionClosed(_) => "question is closed",
            Error::PushNotSupported => "push is not supported",
            Error::Unsupported(_) => "unsupported operation",
            Error::ContentType(_) => "media type is not taken",
            Error::InvalidAgentResponse => "invalid agent response",
            Error::ExtendedCardNotConfigured | Error::ExtendedCardNotOffered => "no extended card",
            Error::ExtensionRequired(_) => "extension required",
            Error::Version(_) => "version is not supported",
            Error::Invalid(_) => "invalid parameters",
            Error::InvalidRequest(_) => "invalid request",
            Error::MethodNotFound(_) => "method not found",
            Error::NotJson(_) => "not JSON",
            Error::AgentNotFound { .. } => "agent not found",
            Error::Busy(_) => "queue is full",
            Error::Stopping => "server stops",
            Error::StoreFull => "store is full",
            Error::Unauthenticated(_) => "unauthenticated",
            Error::IdentityUnavailable => "credential cannot be checked",
            Error::Forbidden(_) => "forbidden",
            Error::LimitReached { .. } => "limit of the caller",
            Error::TooLarge { .. } => "body is too large",
            Error::Overloaded => "memory budget is used up",
            Error::Misdirected(_) => "host is not this server",
            Error::BrokenHead(_) => "head is broken",
            Error::UnsupportedMediaType(_) => "body is not JSON by its type",
            Error::UnsupportedCompression(_) => "compression is not supported",
            Error::BrokenBody(_) => "body is broken",
            Error::PathNotFound(_) => "path not found",
            Error::ServiceNotFound => "service not found",
            Error::VerbNotAllowed(_) => "verb is not allowed",
            Error::DeadlineExceeded => "deadline of the caller",
            Error::Unrepresentable(_) => "answer does not fit the binding",
            Error::Internal(_) => "internal error",
        }
    }

    pub fn internal(error: impl Into<BoxError>) -> Self {
        Self::Internal(error.into())
    }
}

fn list(violations: &[Violation]) -> String {
    let each: Vec<String> = violations.iter().map(|v| format!("{} {}", v.field, v.description)).collect();
    each.join("; ")
}

fn names(agents: &[AgentId]) -> String {
    let each: Vec<&str> = agents.iter().map(AgentId::as_str).collect();
    each.join(", ")
}
