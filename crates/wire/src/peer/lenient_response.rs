//! Answers of servers that do not follow the specification, read as far as they make sense.
//!
//! Every spelling of every version is taken. A member that cannot be read is left out; a part of a kind that nobody knows
//! becomes data, so that it is not lost. Ids that are missing are filled in, and a state that A2A has no name for means
//! that the task is still being worked on: whoever follows it asks again.

use sabir_model::{
    AgentId, Artifact, ArtifactId, Birth, Chunk, Content, ContextId, Event, Json, Message, MessageId, Owner, Page,
    Part, Role, State, Status, StatusChange, Task, TaskId, Timestamp, Wanted,
};
use serde_json::value::RawValue;

use super::lenient_object::LenientObject;
use crate::lenient::{self, DataEncoding};
use crate::peer_response::PeerResponse;
use crate::{Operation, json};

/// Where a server leaves an id out.
const UNNAMED: &str = "unnamed";

/// What is known of the request that is answered.
pub(super) struct Expected<'a> {
    pub(super) operation: Operation,
    /// Answers that name no task are about this one.
    pub(super) task: Option<&'a TaskId>,
    pub(super) born: Birth,
    pub(super) data: DataEncoding,
}

/// `None`: nothing in it is a noun of A2A.
pub(super) fn read(text: &str, expected: &Expected<'_>) -> Option<PeerResponse> {
    match expected.operation {
        Operation::List => read_page(text, expected),
        Operation::PushDelete => Some(PeerResponse::Empty),
        Operation::PushSet | Operation::PushGet | Operation::PushList | Operation::ExtendedCard => None,
        Operation::Send | Operation::Stream | Operation::Subscribe | Operation::Get | Operation::Cancel => {
            read_frame(&LenientObject::of(text)?, expected)
        }
    }
}

/// By the wrapper of 1.0, by the kind of 0.3, or by what is there.
fn read_frame(object: &LenientObject<'_>, expected: &Expected<'_>) -> Option<PeerResponse> {
    if let Some(task) = object.object(&["task"]) {
        return read_task(&task, expected).map(|task| PeerResponse::Task(Box::new(task)));
    }
    if let Some(update) = object.object(&["statusUpdate", "status_update"]) {
        return read_status_update(&update, expected);
    }
    if let Some(update) = object.object(&["artifactUpdate", "artifact_update"]) {
        return read_artifact_update(&update, expected);
    }
    let wrapped = object.object(&["message", "msg"]).filter(|_| !object.has(&["status", "state"]));
    if let Some(message) = wrapped {
        return Some(PeerResponse::Message(Box::new(read_message(&message, Role::Agent, expected)?)));
    }
    match object.text(&["kind", "type"]).as_deref() {
        Some("task") => return read_task(object, expected).map(|task| PeerResponse::Task(Box::new(task))),
        Some("status-update") => return read_status_update(object, expected),
        Some("artifact-update") => return read_artifact_update(object, expected),
        Some("message") => return read_message(object, Role::Agent, expected).map(Box::new).map(PeerResponse::Message),
        _ => {}
    }
    let is_task = object.has(&["artifacts", "history"]) || !expected.operation.is_streaming();
    if object.has(&["artifact"]) {
        read_artifact_update(object, expected)
    } else if object.has(&["status", "state"]) && (object.has(&["final", "taskId", "task_id"]) || !is_task) {
        read_status_update(object, expected)
    } else if object.has(&["status", "state"]) {
        read_task(object, expected).map(|task| PeerResponse::Task(Box::new(task)))
    } else if object.has(&["parts", "content"]) {
        read_message(object, Role::Agent, expected).map(|message| PeerResponse::Message(Box::new(message)))
    } else {
        None
    }
}

fn read_page(text: &str, expected: &Expected<'_>) -> Option<PeerResponse> {
    let read_each = |list: Vec<&str>| -> Vec<Task> {
        let each = list.into_iter().filter_map(LenientObject::of);
        each.filter_map(|task| read_task(&task, expected)).collect()
    };
    let (tasks, next) = match LenientObject::of(text) {
        Some(object) => {
            let next = object.text(&["nextPageToken", "next_page_token"]).filter(|token| !token.is_empty());
            (read_each(object.list(&["tasks"])?), next)
        }
        None => {
            let list: Vec<&RawValue> = json::parse(text).ok()?;
            (read_each(list.into_iter().map(RawValue::get).collect()), None)
        }
    };
    let total = tasks.len() as u64;
    let artifacts = if tasks.iter().any(|task| !task.artifacts.is_empty()) { Wanted::Yes } else { Wanted::No };
    let page = Page { tasks, artifacts, next: None, page_size: u32::try_from(total).unwrap_or(u32::MAX), total };
    Some(PeerResponse::Page { page: Box::new(page), next })
}

fn read_task(object: &LenientObject<'_>, expected: &Expected<'_>) -> Option<Task> {
    let status = read_status(object, expected)?;
    let id = task_id(object, &["id", "taskId", "task_id"], expected)?;
    let artifacts = object.list(&["artifacts"]).unwrap_or_default();
    let artifacts = (0..).zip(artifacts).filter_map(|(place, artifact)| {
        let artifact = LenientObject::of(artifact)?;
        Some(read_artifact(&artifact, place, expected).into())
    });
    let history = object.list(&["history"]).unwrap_or_default().into_iter().filter_map(LenientObject::of);
    Some(Task {
        context: context_id(object, &id),
        id,
        agent: AgentId::parse("remote").expect("a short word is an id"),
        owner: Owner::anonymous(),
        born: expected.born,
        created: status.time,
        turn_over: status.state.is_terminal(),
        artifacts: artifacts.collect(),
        open: Vec::new(),
        history: history.filter_map(|message| read_message(&message, Role::User, expected)).map(Into::into).collect(),
        metadata: read_object(object, &["metadata"]),
        usage: None,
        seq: 0,
        status,
    })
}

fn read_status_update(object: &LenientObject<'_>, expected: &Expected<'_>) -> Option<PeerResponse> {
    let task = task_id(object, &["taskId", "task_id", "id"], expected)?;
    let status = read_status(object, expected)?;
    let is_final = object.flag(&["final"]).unwrap_or(status.state.is_terminal());
    let metadata = read_object(object, &["metadata"]);
    let change = StatusChange { status, is_final, input: Vec::new(), begins_turn: false, usage: None, metadata };
    let context = context_id(object, &task);
    Some(PeerResponse::Event { task, context, event: Box::new(Event::Status(change)) })
}

fn read_artifact_update(object: &LenientObject<'_>, expected: &Expected<'_>) -> Option<PeerResponse> {
    let task = task_id(object, &["taskId", "task_id", "id"], expected)?;
    let inner = object.object(&["artifact"])?;
    // 0.1 has both flags inside of the artifact.
    let flag = |names: &[&str]| object.flag(names).or_else(|| inner.flag(names)).unwrap_or(false);
    let chunk = Chunk {
        index: index(&inner).unwrap_or(0),
        artifact: read_artifact(&inner, 0, expected).into(),
        append: flag(&["append"]),
        last: flag(&["lastChunk", "last_chunk"]),
        metadata: read_object(object, &["metadata"]),
    };
    let context = context_id(object, &task);
    Some(PeerResponse::Event { task, context, event: Box::new(Event::Artifact(chunk)) })
}

/// A status may be an object or the bare name of a state, inside of the task or in its place.
fn read_status(object: &LenientObject<'_>, expected: &Expected<'_>) -> Option<Status> {
    if let Some(status) = object.object(&["status"]) {
        let message = status.object(&["message", "update"]);
        let message = message.and_then(|message| read_message(&message, Role::Agent, expected));
        let text = || status.text(&["message"]).filter(|text| !text.is_empty());
        let message = message.or_else(|| text().map(|text| message_of(Role::Agent, vec![Part::text(text)])));
        return Some(Status {
            state: read_state(&status.text(&["state"])?),
            message: message.map(Into::into),
            time: read_time(&status),
        });
    }
    let state = object.text(&["status", "state"])?;
    Some(Status { state: read_state(&state), message: None, time: read_time(object) })
}

fn read_state(name: &str) -> State {
    let plain = name.to_ascii_lowercase().replace(['_', ' '], "-");
    match plain.strip_prefix("task-state-").unwrap_or(&plain) {
        "submitted" | "pending" | "queued" | "1" => State::Submitted,
        "completed" | "complete" | "done" | "success" | "succeeded" | "3" => State::Completed,
        "failed" | "error" | "failure" | "4" => State::Failed,
        "canceled" | "cancelled" | "5" => State::Canceled,
        "input-required" | "6" => State::InputRequired,
        "rejected" | "7" => State::Rejected,
        "auth-required" | "8" => State::AuthRequired,
        // `unknown`, `TASK_STATE_UNSPECIFIED` and names that nobody has heard of.
        _ => State::Working,
    }
}

/// A time without a zone is UTC; one that cannot be read counts as missing.
fn read_time(object: &LenientObject<'_>) -> Timestamp {
    let Some(text) = object.text(&["timestamp", "time"]) else { return Timestamp::default() };
    let text = text.trim();
    Timestamp::parse(text)
        .or_else(|| Timestamp::parse(&format!("{text}Z")))
        .or_else(|| text.parse().ok().map(from_number))
        .unwrap_or_default()
}

/// Seconds or milliseconds since 1970.
fn from_number(number: f64) -> Timestamp {
    const MANY_SECONDS: f64 = 1e11;
    let millis = if number.abs() < MANY_SECONDS { number * 1000.0 } else { number };
    Timestamp::from_millis(millis as i64)
}

fn read_message(object: &LenientObject<'_>, default: Role, expected: &Expected<'_>) -> Option<Message> {
    let role = match object.text(&["role"]).map(|role| role.to_ascii_lowercase()).as_deref() {
        Some("user" | "role_user" | "1") => Role::User,
        Some("agent" | "role_agent" | "assistant" | "model" | "2") => Role::Agent,
        _ => default,
    };
    let parts = read_parts(object, &["parts", "content"], expected);
    let id = object.text(&["messageId", "message_id", "id"]).and_then(|id| MessageId::parse(id).ok());
    if parts.is_empty() && id.is_none() {
        return None;
    }
    let id_of = |names: &[&str]| object.text(names).and_then(|id| TaskId::parse(id).ok());
    let references = object.texts(&["referenceTaskIds", "reference_task_ids"]).into_iter();
    Some(Message {
        id: id.unwrap_or_else(unnamed_message),
        task: id_of(&["taskId", "task_id"]),
        context: object.text(&["contextId", "context_id"]).and_then(|id| ContextId::parse(id).ok()),
        references: references.filter_map(|id| TaskId::parse(id).ok()).collect(),
        extensions: object.texts(&["extensions"]),
        metadata: read_object(object, &["metadata"]),
        ..message_of(role, parts)
    })
}

fn message_of(role: Role, parts: Vec<Part>) -> Message {
    Message::new(unnamed_message(), role, parts)
}

fn unnamed_message() -> MessageId {
    MessageId::parse(UNNAMED).expect("a short word is an id")
}

/// `place` is its place among the artifacts of the task.
fn read_artifact(object: &LenientObject<'_>, place: u32, expected: &Expected<'_>) -> Artifact {
    let id = object.text(&["artifactId", "artifact_id", "id"]).and_then(|id| ArtifactId::parse(id).ok());
    let index = index(object).unwrap_or(place);
    let id = id.unwrap_or_else(|| ArtifactId::parse(format!("artifact-{index}")).expect("short words are an id"));
    let text = |names: &[&str]| object.text(names).filter(|text| !text.is_empty());
    Artifact {
        name: text(&["name"]),
        description: text(&["description"]),
        extensions: object.texts(&["extensions"]),
        metadata: read_object(object, &["metadata"]),
        ..Artifact::new(id, read_parts(object, &["parts", "content"], expected))
    }
}

fn index(artifact: &LenientObject<'_>) -> Option<u32> {
    artifact.integer(&["index"]).and_then(|index| u32::try_from(index).ok())
}

fn read_parts(object: &LenientObject<'_>, names: &[&str], expected: &Expected<'_>) -> Vec<Part> {
    let Some(list) = object.list(names) else {
        // A message may be one text.
        return object.text(names).filter(|text| !text.is_empty()).map(Part::text).into_iter().collect();
    };
    list.into_iter().filter_map(|part| read_part(part, expected)).collect()
}

fn read_part(text: &str, expected: &Expected<'_>) -> Option<Part> {
    if let Ok(words) = json::parse::<String>(text) {
        return Some(Part::text(words));
    }
    let read = json::parse::<lenient::Part>(text).ok().and_then(|part| Part::try_from(part).ok());
    if let Some(mut part) = read {
        expected.data.apply(&mut part);
        return Some(part);
    }
    let object = LenientObject::of(text)?;
    if object.is_empty() {
        return None;
    }
    if let Some(words) = object.text(&["text"]) {
        return Some(Part { metadata: read_object(&object, &["metadata"]), ..Part::text(words) });
    }
    let is_empty_text = object.text(&["kind", "type"]).as_deref() == Some("text");
    // Nobody knows what it is, so whoever reads the task gets it as it came.
    (!is_empty_text).then(|| Content::Data(json::raw(text.to_owned()).into()).into())
}

fn read_object(object: &LenientObject<'_>, names: &[&str]) -> Option<Json> {
    object.raw(names).filter(|raw| raw.get().starts_with('{')).map(Json::from)
}

fn task_id(object: &LenientObject<'_>, names: &[&str], expected: &Expected<'_>) -> Option<TaskId> {
    let named = object.text(names).and_then(|id| TaskId::parse(id).ok());
    let known = named.or_else(|| expected.task.cloned());
    // An answer to a send may still say all that matters.
    known.or_else(|| (expected.operation == Operation::Send).then(|| TaskId::parse(UNNAMED).expect("a short word")))
}

fn context_id(object: &LenientObject<'_>, task: &TaskId) -> ContextId {
    let named = object.text(&["contextId", "context_id", "sessionId", "session_id"]);
    let named = named.and_then(|id| ContextId::parse(id).ok());
    named.unwrap_or_else(|| ContextId::parse(task.as_str()).expect("ids of all kinds follow the same rule"))
}
