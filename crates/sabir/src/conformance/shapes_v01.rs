//! The objects of 0.1 (section 6): no ids in messages and artifacts, parts with a `type`, and null for what is absent.

use serde_json::Value;

use super::shape::Kind::{self, Any, Choice, Flag, Id, Integer, List, LooseTime, Nested, Object, Tag, Text, Word};
use super::shape::{Member, Shape};

pub const STATES: &[&str] = &["submitted", "working", "input-required", "completed", "canceled", "failed", "unknown"];

static TEXT_PART: Shape = Shape::with_nulls(&[
    Member::required("type", Tag("text")),
    Member::required("text", Text),
    Member::optional("metadata", Object),
]);
static FILE: Shape = Shape::with_nulls(&[
    Member::optional("name", Text),
    Member::optional("mimeType", Text),
    Member::optional("bytes", Text),
    Member::optional("uri", Text),
]);
static FILE_PART: Shape = Shape::with_nulls(&[
    Member::required("type", Tag("file")),
    Member::required("file", Nested(&FILE)),
    Member::optional("metadata", Object),
]);
static DATA_PART: Shape = Shape::with_nulls(&[
    Member::required("type", Tag("data")),
    Member::required("data", Any),
    Member::optional("metadata", Object),
]);

const PARTS: Kind = List(&Choice(part));

fn part(value: &Value) -> Option<&'static Shape> {
    let has = |name: &str| value.get(name).is_some();
    match value.get("type").and_then(Value::as_str) {
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

static MESSAGE: Shape = Shape::with_nulls(&[
    Member::required("role", Word(&["user", "agent"])),
    Member::required("parts", PARTS),
    Member::optional("metadata", Object),
]);

static ARTIFACT: Shape = Shape::with_nulls(&[
    Member::required("parts", PARTS),
    Member::optional("name", Text),
    Member::optional("description", Text),
    Member::optional("index", Integer),
    Member::optional("append", Flag),
    Member::optional("lastChunk", Flag),
    Member::optional("metadata", Object),
]);

static STATUS: Shape = Shape::with_nulls(&[
    Member::required("state", Word(STATES)),
    Member::optional("message", Nested(&MESSAGE)),
    Member::optional("timestamp", LooseTime),
]);

pub static TASK: Shape = Shape::with_nulls(&[
    Member::required("id", Id),
    Member::optional("sessionId", Text),
    Member::required("status", Nested(&STATUS)),
    Member::optional("artifacts", List(&Nested(&ARTIFACT))),
    Member::optional("history", List(&Nested(&MESSAGE))),
    Member::optional("metadata", Object),
]);

static STATUS_UPDATE: Shape = Shape::with_nulls(&[
    Member::required("id", Id),
    Member::required("status", Nested(&STATUS)),
    Member::optional("final", Flag),
    Member::optional("metadata", Object),
]);

static ARTIFACT_UPDATE: Shape = Shape::with_nulls(&[
    Member::required("id", Id),
    Member::required("artifact", Nested(&ARTIFACT)),
    Member::optional("metadata", Object),
]);

/// A frame of a stream: a status or an artifact.
pub fn stream_response(value: &Value) -> Option<&'static Shape> {
    if value.get("artifact").is_some() {
        return Some(&ARTIFACT_UPDATE);
    }
    value.get("status").map(|_| &STATUS_UPDATE)
}

static AUTHENTICATION: Shape =
    Shape::with_nulls(&[Member::required("schemes", List(&Text)), Member::optional("credentials", Text)]);

static PUSH_NOTIFICATION: Shape = Shape::with_nulls(&[
    Member::required("url", Id),
    Member::optional("token", Text),
    Member::optional("authentication", Nested(&AUTHENTICATION)),
]);

pub static PUSH_CONFIG: Shape = Shape::with_nulls(&[
    Member::required("id", Id),
    Member::optional("pushNotificationConfig", Nested(&PUSH_NOTIFICATION)),
]);
