//! The objects of 0.3 and 0.2 over JSON-RPC (section 6): each says by `kind` what it is.

use serde_json::Value;

use super::shape::Kind::{self, Base64, Choice, Flag, Id, List, LooseTime, Nested, Object, Tag, Text, Word};
use super::shape::{Member, Shape};

pub const STATES: &[&str] = &[
    "submitted",
    "working",
    "input-required",
    "completed",
    "canceled",
    "failed",
    "rejected",
    "auth-required",
    "unknown",
];

static TEXT_PART: Shape = Shape::new(&[
    Member::required("kind", Tag("text")),
    Member::required("text", Text),
    Member::optional("metadata", Object),
]);
static FILE: Shape = Shape::one_of(
    &[
        Member::optional("bytes", Base64),
        Member::optional("uri", Text),
        Member::optional("name", Text),
        Member::optional("mimeType", Text),
    ],
    &["bytes", "uri"],
);
static FILE_PART: Shape = Shape::new(&[
    Member::required("kind", Tag("file")),
    Member::required("file", Nested(&FILE)),
    Member::optional("metadata", Object),
]);
static DATA_PART: Shape = Shape::new(&[
    Member::required("kind", Tag("data")),
    Member::required("data", Object),
    Member::optional("metadata", Object),
]);

const PARTS: Kind = List(&Choice(part));

fn part(value: &Value) -> Option<&'static Shape> {
    let has = |name: &str| value.get(name).is_some();
    match value.get("kind").and_then(Value::as_str) {
        Some("text") => Some(&TEXT_PART),
        Some("file") => Some(&FILE_PART),
        Some("data") => Some(&DATA_PART),
        Some(_) => None,
        None if has("text") => Some(&TEXT_PART),
        None if has("file") => Some(&FILE_PART),
        None if has("data") => Some(&DATA_PART),
        None => None,
    }
}

pub static MESSAGE: Shape = Shape::new(&[
    Member::required("kind", Tag("message")),
    Member::required("messageId", Id),
    Member::required("role", Word(&["user", "agent"])),
    Member::required("parts", PARTS),
    Member::optional("taskId", Text),
    Member::optional("contextId", Text),
    Member::optional("referenceTaskIds", List(&Text)),
    Member::optional("extensions", List(&Text)),
    Member::optional("metadata", Object),
]);

static ARTIFACT: Shape = Shape::new(&[
    Member::required("artifactId", Id),
    Member::required("parts", PARTS),
    Member::optional("name", Text),
    Member::optional("description", Text),
    Member::optional("extensions", List(&Text)),
    Member::optional("metadata", Object),
]);

static STATUS: Shape = Shape::new(&[
    Member::required("state", Word(STATES)),
    Member::optional("message", Nested(&MESSAGE)),
    Member::optional("timestamp", LooseTime),
]);

/// That there is a context is a rule of its own.
pub static TASK: Shape = Shape::new(&[
    Member::required("kind", Tag("task")),
    Member::required("id", Id),
    Member::optional("contextId", Text),
    Member::required("status", Nested(&STATUS)),
    Member::optional("artifacts", List(&Nested(&ARTIFACT))),
    Member::optional("history", List(&Nested(&MESSAGE))),
    Member::optional("metadata", Object),
]);

static STATUS_UPDATE: Shape = Shape::new(&[
    Member::required("kind", Tag("status-update")),
    Member::required("taskId", Id),
    Member::required("contextId", Id),
    Member::required("status", Nested(&STATUS)),
    Member::required("final", Flag),
    Member::optional("metadata", Object),
]);

static ARTIFACT_UPDATE: Shape = Shape::new(&[
    Member::required("kind", Tag("artifact-update")),
    Member::required("taskId", Id),
    Member::required("contextId", Id),
    Member::required("artifact", Nested(&ARTIFACT)),
    Member::optional("append", Flag),
    Member::optional("lastChunk", Flag),
    Member::optional("metadata", Object),
]);

/// The result of a send.
pub fn send_response(value: &Value) -> Option<&'static Shape> {
    stream_response(value).filter(|shape| std::ptr::eq(*shape, &TASK) || std::ptr::eq(*shape, &MESSAGE))
}

/// A frame of a stream. Without a `kind` it is told by its members.
pub fn stream_response(value: &Value) -> Option<&'static Shape> {
    let has = |name: &str| value.get(name).is_some();
    match value.get("kind").and_then(Value::as_str) {
        Some("task") => Some(&TASK),
        Some("message") => Some(&MESSAGE),
        Some("status-update") => Some(&STATUS_UPDATE),
        Some("artifact-update") => Some(&ARTIFACT_UPDATE),
        Some(_) => None,
        None if has("artifact") => Some(&ARTIFACT_UPDATE),
        None if has("status") && has("taskId") => Some(&STATUS_UPDATE),
        None if has("status") => Some(&TASK),
        None if has("parts") => Some(&MESSAGE),
        None => None,
    }
}

static AUTHENTICATION: Shape =
    Shape::new(&[Member::required("schemes", List(&Text)), Member::optional("credentials", Text)]);

static PUSH_NOTIFICATION: Shape = Shape::new(&[
    Member::required("url", Id),
    Member::optional("id", Text),
    Member::optional("token", Text),
    Member::optional("authentication", Nested(&AUTHENTICATION)),
]);

pub static PUSH_CONFIG: Shape = Shape::new(&[
    Member::required("taskId", Id),
    Member::required("pushNotificationConfig", Nested(&PUSH_NOTIFICATION)),
]);
