//! The objects in answers and frames: compared with the shapes of their version.

use sabir_model::Error;
use sabir_wire::{Binding, Operation, ProtocolVersion};
use serde_json::Value;

use super::evidence::Evidence;
use super::probe::Probe;
use super::reading::Asked;
use super::rule::{Level, Rule, Sections, Subject};
use super::shape::{Difference, Fault, Shape};
use super::stream_log::{FrameContent, StreamLog};
use super::{shapes_v01, shapes_v1, shapes_v03, shapes_v03_proto};

pub const RULES: &[&Rule] = &[&REQUIRED, &TYPES, &WORDS, &KIND, &ONE_OF, &TIMES, &NAMES, &NULLS, &READABLE];

pub static REQUIRED: Rule = Rule {
    id: "objects.required",
    level: Level::Error,
    subject: Subject::Interface,
    sections: Sections::all("§5.7, §4.1", "§6", "§6"),
    says: "required members are there, and required arrays are not empty",
    remedy: "write the member that the fault names; ids are made by whoever makes the object",
};
pub static TYPES: Rule = Rule {
    id: "objects.types",
    level: Level::Error,
    subject: Subject::TextInterface,
    sections: Sections::all("§5.5, §4.1", "§6", "§6"),
    says: "members have the JSON type that the specification gives them",
    remedy: "write the value in the type that the fault names",
};
pub static WORDS: Rule = Rule {
    id: "objects.enums",
    level: Level::Error,
    subject: Subject::Interface,
    sections: Sections::all("§5.5, §4.1.3", "§6.3", "§6.3"),
    says: "states and roles are spelled as this version spells them",
    remedy: "1.0 writes TASK_STATE_COMPLETED and ROLE_AGENT, 0.x writes completed and agent; answer in the version that was asked",
};
pub static KIND: Rule = Rule {
    id: "objects.kind",
    level: Level::Error,
    subject: Subject::TextInterface,
    sections: Sections::before_v1("§6.1, §6.4, §6.5", "§6.5"),
    says: "objects say what they are: kind in 0.2 and 0.3, the type of parts in 0.1",
    remedy: "write \"kind\" with every task, message, event and part",
};
pub static ONE_OF: Rule = Rule {
    id: "objects.one-of",
    level: Level::Error,
    subject: Subject::Interface,
    sections: Sections::since_v02("§3.2.3, §4.1.6", "§6.6"),
    says: "an object that is one of several kinds has exactly one of their members",
    remedy: "write one member: a part is text, raw, url or data; a frame is task, message, statusUpdate or artifactUpdate",
};
pub static TIMES: Rule = Rule {
    id: "objects.timestamps",
    level: Level::Error,
    subject: Subject::Interface,
    sections: Sections::all("§5.6.1", "§6.2", "§6.2"),
    says: "times are ISO 8601; in 1.0 in UTC, with Z at the end",
    remedy: "write times as 2026-02-03T10:15:02.500Z",
};
pub static NAMES: Rule = Rule {
    id: "objects.names",
    level: Level::Error,
    subject: Subject::TextInterface,
    sections: Sections::since_v02("§5.5", "§6"),
    says: "members are spelled in camelCase",
    remedy: "write artifactId, not artifact_id",
};
pub static NULLS: Rule = Rule {
    id: "objects.nulls",
    level: Level::Note,
    subject: Subject::TextInterface,
    sections: Sections::since_v02("§5.7", "§6"),
    says: "what is absent is left out",
    remedy: "leave members without a value out instead of writing null; some clients refuse null",
};
pub static READABLE: Rule = Rule {
    id: "objects.readable",
    level: Level::Error,
    subject: Subject::Interface,
    sections: Sections::all("§5.5, §5.7", "§6", "§6"),
    says: "a client that follows the specification can read every result",
    remedy: "mend what the fault names; a client without leniency refuses the answer for it",
};

/// Judges the result of a call that is no stream.
pub fn observe(probe: &Probe<'_>, asked: &Asked) {
    let Some(result) = asked.result() else { return };
    let evidence = asked.evidence();
    let operation = asked.exchange.operation;
    let is_bare = operation == Operation::Send && is_bare_task(probe, &result.json);
    let found = match operation {
        // That it is not wrapped is a rule of its own.
        Operation::Send if is_bare => task_shape(probe).check(&result.json, "result"),
        Operation::List => check_list(probe, &result.json),
        Operation::PushList if result.json.is_array() => {
            let each = result.json.as_array().into_iter().flatten();
            each.flat_map(|config| shapes_v03::PUSH_CONFIG.check(config, "result[]")).collect()
        }
        _ => shape_of(probe, operation, &result.json)
            .map(|shape| shape.check(&result.json, "result"))
            .unwrap_or_default(),
    };
    let is_named = !found.is_empty() || is_bare;
    judge(probe, found, &evidence);
    match &result.violation {
        // A list may show tasks that others have made in their own way.
        _ if operation == Operation::List => {}
        Some(violation) if !is_named => fail_readable(probe, "result", violation, &evidence),
        _ => probe.ledger.pass(&READABLE),
    }
}

/// Only the tasks of this check: what others have sent is theirs.
fn check_list(probe: &Probe<'_>, json: &Value) -> Vec<Difference> {
    let mut list = json.clone();
    if let Some(tasks) = list.get_mut("tasks").and_then(Value::as_array_mut) {
        tasks.retain(|task| task["id"].as_str().is_some_and(|id| probe.scene.is_own(id)));
    }
    shapes_v1::LIST_RESPONSE.check(&list, "result")
}

/// Judges the frames of a stream.
pub fn observe_frames(probe: &Probe<'_>, log: &StreamLog) {
    for (place, frame) in log.frames.iter().enumerate() {
        let evidence = log.evidence_at(place);
        match &frame.content {
            FrameContent::Error(_) => continue,
            FrameContent::Unreadable(why) => {
                probe.ledger.fail(&READABLE, format!("frame {} is not A2A: {why}", place + 1), &evidence);
                continue;
            }
            _ => {}
        }
        let found = shape_of(probe, log.operation, &frame.result)
            .map(|shape| shape.check(&frame.result, &format!("frame {}", place + 1)))
            .unwrap_or_default();
        let is_named = !found.is_empty();
        judge(probe, found, &evidence);
        match &frame.violation {
            Some(violation) if !is_named => fail_readable(probe, &format!("frame {}", place + 1), violation, &evidence),
            _ => probe.ledger.pass(&READABLE),
        }
    }
}

/// Our own strict reader refuses what no shape forbids: that may be too strict of it.
fn fail_readable(probe: &Probe<'_>, place: &str, violation: &Error, evidence: &Evidence) {
    let words = violation.to_string();
    let words = words.strip_prefix("invalid parameters: ").unwrap_or(&words);
    probe.ledger.fail_as(Level::Warning, &READABLE, format!("{place}: {words}"), evidence);
}

fn judge(probe: &Probe<'_>, found: Vec<Difference>, evidence: &Evidence) {
    RULES.iter().filter(|rule| rule.is_for(probe.protocol()) && rule.id != READABLE.id).for_each(|rule| {
        probe.ledger.pass(rule);
    });
    for Difference { fault, words } in found {
        let (level, rule) = match fault {
            Fault::Missing => (Level::Error, &REQUIRED),
            // Protobuf has types, but also numbers that an enum does not name.
            Fault::Type if probe.is_grpc() => (Level::Error, &WORDS),
            Fault::Type => (Level::Error, &TYPES),
            Fault::Word => (Level::Error, &WORDS),
            Fault::Tag => (Level::Error, &KIND),
            Fault::Choice => (Level::Error, &ONE_OF),
            Fault::Time => (Level::Error, &TIMES),
            Fault::Zone => (Level::Warning, &TIMES),
            Fault::Name => (Level::Error, &NAMES),
            Fault::Null => (Level::Note, &NULLS),
        };
        // The tag is required as well, but a missing one is a fault of its own kind.
        let is_tag =
            fault == Fault::Missing && [".kind is missing", ".type is missing"].iter().any(|end| words.ends_with(end));
        let rule = if is_tag && !probe.is_v1() { &KIND } else { rule };
        probe.ledger.fail_as(level, rule, words, evidence);
    }
}

/// Whether a task stands where its wrapper should be.
fn is_bare_task(probe: &Probe<'_>, json: &Value) -> bool {
    let is_wrapped = ["task", "message", "msg"].iter().any(|name| json[*name].is_object());
    let is_kind_json = !probe.is_v1() && probe.is_json_rpc();
    !is_kind_json && !is_wrapped && json["status"].is_object()
}

fn task_shape(probe: &Probe<'_>) -> &'static Shape {
    match (probe.version(), probe.protocol().binding()) {
        (ProtocolVersion::V1_0, _) => &shapes_v1::TASK,
        (ProtocolVersion::V0_1, _) => &shapes_v01::TASK,
        (_, Binding::JsonRpc) => &shapes_v03::TASK,
        (_, Binding::HttpJson | Binding::Grpc) => &shapes_v03_proto::TASK,
    }
}

/// `None`: nothing is known of this object.
fn shape_of(probe: &Probe<'_>, operation: Operation, json: &Value) -> Option<&'static Shape> {
    use Operation::{Cancel, ExtendedCard, Get, List, PushDelete, PushGet, PushList, PushSet, Send, Stream, Subscribe};
    match (probe.version(), probe.protocol().binding(), operation) {
        (_, _, PushDelete | ExtendedCard) => None,
        (_, _, Get | Cancel) => Some(task_shape(probe)),
        (ProtocolVersion::V1_0, _, Send) => Some(&shapes_v1::SEND_RESPONSE),
        (ProtocolVersion::V1_0, _, Stream | Subscribe) => Some(&shapes_v1::STREAM_RESPONSE),
        (ProtocolVersion::V1_0, _, PushSet | PushGet) => Some(&shapes_v1::PUSH_CONFIG),
        (ProtocolVersion::V1_0, _, PushList) => Some(&shapes_v1::PUSH_CONFIGS),
        (ProtocolVersion::V0_1, _, Send) => Some(&shapes_v01::TASK),
        (ProtocolVersion::V0_1, _, Stream | Subscribe) => shapes_v01::stream_response(json),
        (ProtocolVersion::V0_1, _, PushSet | PushGet) => Some(&shapes_v01::PUSH_CONFIG),
        (_, Binding::JsonRpc, Send) => shapes_v03::send_response(json),
        (_, Binding::JsonRpc, Stream | Subscribe) => shapes_v03::stream_response(json),
        (_, Binding::JsonRpc, PushSet | PushGet) if json.is_object() => Some(&shapes_v03::PUSH_CONFIG),
        (_, Binding::HttpJson | Binding::Grpc, Send) => Some(&shapes_v03_proto::SEND_RESPONSE),
        (_, Binding::HttpJson | Binding::Grpc, Stream | Subscribe) => Some(&shapes_v03_proto::STREAM_RESPONSE),
        (_, _, List | PushSet | PushGet | PushList) => None,
    }
}
