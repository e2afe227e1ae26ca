//! The nouns and rules of Sabir.
//!
//! Everything here is a value or a pure function: no clock, no lock, no socket, no protocol version.
//! Serde on these types means one thing, the event log; how a noun is spelled on the wire is the
//! business of `sabir-wire`.

#[warn(missing_docs)]
mod base64;
#[warn(missing_docs)]
mod base64url;
#[warn(missing_docs)]
mod caller_key;
#[warn(missing_docs)]
mod hidden_letters;
#[warn(missing_docs)]
mod id;
#[warn(missing_docs)]
mod json;
#[warn(missing_docs)]
mod pretty_json;
mod time;

#[warn(missing_docs)]
mod artifact;
#[warn(missing_docs)]
mod delegation;
#[warn(missing_docs)]
mod message;
mod owner;
mod push;
mod request;
#[warn(missing_docs)]
mod task;

mod event;
mod lifecycle;
#[warn(missing_docs)]
mod outcome;
mod question;
mod question_answer;

mod call;
mod card;
mod cursor;
mod error;
#[warn(missing_docs)]
mod extension;

pub use artifact::Artifact;
pub use base64::Base64;
pub use base64url::{base64url, from_base64url};
pub use call::{
    Addressee, Answer, Call, Cancel, ContextAlone, Delivery, Direct, Get, LastEventId, List, OnFinished,
    OnFinishedCancel, OnFinishedSubscribe, OnUnknown, Page, PushCall, Send, Subscribe, Wanted,
};
pub use caller_key::{CallerKey, network_of};
pub use card::{
    Capabilities, Card, Extension, Flow, Gateway, Interface, Provider, Requirement, SecurityKind, SecurityScheme,
    Signature, Skill,
};
pub use cursor::Cursor;
pub use delegation::{Ancestor, Delegated, Delegation};
pub use error::{BoxError, Error, Violation};
pub use event::{Chunk, Created, Event, Recorded, Seq, StatusChange, Usage};
pub use extension::{
    COST, Cost, IDEMPOTENCY_KEY, TOOL_CALL, ToolCall, ToolPhase, cost_extension, idempotency_extension,
    tool_call_extension,
};
pub use hidden_letters::{is_hidden, visible, visible_lines};
pub use id::{AgentId, ArtifactId, ContextId, IdempotencyKey, InvalidId, MessageId, PushConfigId, TaskId};
pub use json::{Json, JsonMembers, MAX_DEPTH};
pub use lifecycle::{
    Command, Purpose, QuestionState, RunState, Standing, TaskBirth, apply, apply_owned, check_named_question, decide,
    purpose,
};
pub use message::{Content, IncomingMessage, Message, Part, Role};
pub use outcome::{Outcome, Required};
pub use owner::{Caller, Owner, scope};
pub use pretty_json::pretty_json;
pub use push::{PushAuthentication, PushConfig, PushEvents};
pub use question::{APPROVER, QUESTION, QUESTION_ID, QuestionForm, QuestionId, QuestionType};
pub use question_answer::{Choice, ChoiceKind, QuestionAnswer, Verdict, choice_of};
pub use request::{RequestContext, TraceContext};
pub use task::{Birth, State, Status, Task};
pub use time::Timestamp;
