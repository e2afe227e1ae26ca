//! Streams: what comes first, in which order, and how a stream ends.
//!
//! `observe` judges every stream that was read to its end, whoever opened it. `check` opens one with the default message.

use sabir_model::{Delivery, State};
use sabir_wire::{Operation, ProtocolVersion};

use super::calls;
use super::evidence::Evidence;
use super::probe::{Probe, is_event_stream};
use super::rule::{Level, Rule, Sections, Subject};
use super::rules_tasks::{artifact_texts, new_place, settle, state_words};
use super::stream_log::{Ending, FrameContent, FrameEnvelope, StreamFrame, StreamLog};
use super::{rules_capabilities, rules_subscriptions};

pub const RULES: &[&Rule] = &[
    &CONTENT_TYPE,
    &ENVELOPE,
    &FIRST,
    &ONE_MESSAGE,
    &SAME_TASK,
    &TERMINAL,
    &AFTER_END,
    &CLOSES,
    &FINAL,
    &APPEND,
    &LAST_CHUNK,
    &RESULT,
];

pub static CONTENT_TYPE: Rule = Rule {
    id: "stream.content-type",
    level: Level::Error,
    subject: Subject::TextInterface,
    sections: Sections::all("§9.4.2, §11.7", "§3.3", "§7.2"),
    says: "a stream has the media type text/event-stream",
    remedy: "set Content-Type: text/event-stream; clients of several SDKs refuse a stream without it",
};
pub static ENVELOPE: Rule = Rule {
    id: "stream.envelope",
    level: Level::Error,
    subject: Subject::TextInterface,
    sections: Sections::all("§9.4.2, §11.7", "§3.3", "§7.2.1"),
    says: "each frame is a whole JSON-RPC response; in HTTP+JSON it is the bare object",
    remedy: "put each event into {\"jsonrpc\", \"id\", \"result\"} over JSON-RPC, and into nothing over HTTP+JSON",
};
pub static FIRST: Rule = Rule {
    id: "stream.first",
    level: Level::Error,
    subject: Subject::Interface,
    sections: Sections::since_v1("§3.1.2"),
    says: "a stream begins with its task, or is one message",
    remedy: "send the task as soon as it exists, before its events",
};
pub static ONE_MESSAGE: Rule = Rule {
    id: "stream.one-message",
    level: Level::Error,
    subject: Subject::Interface,
    sections: Sections::since_v1("§3.1.2"),
    says: "a stream that answers with a message has exactly this message",
    remedy: "close the stream behind the message; who has more to say makes a task",
};
pub static SAME_TASK: Rule = Rule {
    id: "stream.same-task",
    level: Level::Error,
    subject: Subject::Interface,
    sections: Sections::all("§4.2.1, §4.2.2", "§7.2.2, §7.2.3", "§7.2.2, §7.2.3"),
    says: "all events of a stream name its task",
    remedy: "write the id of the stream's task into every event",
};
pub static TERMINAL: Rule = Rule {
    id: "stream.terminal",
    level: Level::Error,
    subject: Subject::Interface,
    sections: Sections::all("§3.1.2, §3.1.6", "§7.2.2", "§7.2.2"),
    says: "a stream shows how its task ends, or that it waits for its caller",
    remedy: "send the last status before the stream is closed",
};
pub static AFTER_END: Rule = Rule {
    id: "stream.after-end",
    level: Level::Error,
    subject: Subject::Interface,
    sections: Sections::all("§3.1.2", "§7.2.2", "§7.2.2"),
    says: "nothing follows the terminal state of a task",
    remedy: "send the terminal status once, behind all artifacts",
};
pub static CLOSES: Rule = Rule {
    id: "stream.closes",
    level: Level::Error,
    subject: Subject::Interface,
    sections: Sections::all("§3.1.2, §3.1.6", "§7.2.2", "§7.2.2"),
    says: "a stream is closed when its task reaches a terminal state",
    remedy: "close the connection (HTTP/2: the stream) behind the terminal status",
};
pub static FINAL: Rule = Rule {
    id: "stream.final",
    level: Level::Error,
    subject: Subject::Interface,
    sections: Sections::before_v1("§7.2.2", "§7.2.2"),
    says: "the last status of a stream has final: true",
    remedy: "set final on the terminal status; clients of 0.x stop reading at it, and at nothing else",
};
pub static APPEND: Rule = Rule {
    id: "stream.append",
    level: Level::Error,
    subject: Subject::Interface,
    sections: Sections::all("§4.2.2", "§7.2.3", "§6.7"),
    says: "append extends an artifact that was sent before, so the first chunk of an artifact is not appended",
    remedy: "send the first chunk with append false",
};
pub static LAST_CHUNK: Rule = Rule {
    id: "stream.last-chunk",
    level: Level::Warning,
    subject: Subject::Interface,
    sections: Sections::all("§4.2.2", "§7.2.3", "§6.7"),
    says: "nothing is appended to an artifact behind its last chunk",
    remedy: "set lastChunk on the last chunk only",
};
pub static RESULT: Rule = Rule {
    id: "stream.result",
    level: Level::Error,
    subject: Subject::Interface,
    sections: Sections::all("§3.1.3, §3.5.2", "§7.3", "§7.3"),
    says: "a task that was streamed is read with the same state and the same artifacts",
    remedy: "fold every event into the stored task before it is sent",
};
/// Judges a stream that was read to its end.
pub fn observe(probe: &Probe<'_>, log: &StreamLog) {
    if log.only_error().is_some() {
        return;
    }
    if !probe.is_grpc() {
        judge_events(probe, log);
    }
    // What cannot be read is told elsewhere, and says nothing about the order of events.
    if log.frames.iter().any(|frame| matches!(frame.content, FrameContent::Unreadable(_))) {
        return;
    }
    judge_first(probe, log);
    judge_same_task(probe, log);
    judge_end(probe, log);
    judge_chunks(probe, log);
}

fn judge_events(probe: &Probe<'_>, log: &StreamLog) {
    let ledger = &probe.ledger;
    let fault = (!is_event_stream(&log.headers)).then(|| "the stream has another Content-Type".to_owned());
    ledger.judge(&CONTENT_TYPE, fault, &log.evidence());
    for (place, frame) in log.frames.iter().enumerate() {
        let fault = match frame.envelope {
            FrameEnvelope::AsItShouldBe => None,
            FrameEnvelope::Missing => Some("a frame has no JSON-RPC envelope".to_owned()),
            FrameEnvelope::Unexpected => Some("a frame has a JSON-RPC envelope".to_owned()),
        };
        ledger.judge(&ENVELOPE, fault, &log.evidence_at(place));
    }
}

pub async fn check(probe: &Probe<'_>, text: &str) {
    let call = calls::send(probe.tenant(), text, new_place(probe), Delivery::Stream);
    let Some(opened) = probe.open(&call).await else { return };
    let Some(stream) = rules_capabilities::judge_streaming(probe, opened).await else {
        for rule in RULES.iter().chain(rules_subscriptions::RULES).filter(|rule| !probe.ledger.is_judged(rule)) {
            probe.ledger.skip(rule, "the server does not stream");
        }
        return;
    };
    let log = probe.finish(*stream).await;
    check_result(probe, &log).await;
    rules_subscriptions::check(probe).await;
}

fn judge_first(probe: &Probe<'_>, log: &StreamLog) {
    let Some(first) = log.frames.first() else { return };
    let ledger = &probe.ledger;
    let is_task = matches!(first.content, FrameContent::Task(_));
    let is_message = matches!(first.content, FrameContent::Message);
    let evidence = log.evidence();
    match log.operation {
        Operation::Subscribe if probe.is_v1() => {
            let fault = (!is_task).then(|| format!("the subscription begins with {}", kind_words(first)));
            ledger.judge(&rules_subscriptions::FIRST, fault, &evidence);
        }
        Operation::Stream if probe.is_v1() => {
            let fault = (!is_task && !is_message).then(|| format!("the stream begins with {}", kind_words(first)));
            ledger.judge(&FIRST, fault, &evidence);
            if is_message {
                let more = log.frames.len() - 1;
                ledger.judge(&ONE_MESSAGE, (more > 0).then(|| format!("{more} frames follow the message")), &evidence);
            }
        }
        _ => {}
    }
}

fn judge_same_task(probe: &Probe<'_>, log: &StreamLog) {
    // An artifact may come first by mistake, but the task itself knows its id best.
    let of_task = log.frames.iter().find(|frame| matches!(frame.content, FrameContent::Task(_)));
    let Some(own) = of_task.and_then(StreamFrame::task).or_else(|| log.task()) else { return };
    let other = log.frames.iter().position(|frame| frame.task().is_some_and(|task| task != own));
    match other {
        Some(place) => {
            let fault = format!("frame {} names another task than {own}", place + 1);
            probe.ledger.fail(&SAME_TASK, fault, &log.evidence_at(place));
        }
        None => probe.ledger.pass(&SAME_TASK),
    }
}

fn judge_end(probe: &Probe<'_>, log: &StreamLog) {
    let ledger = &probe.ledger;
    let evidence = log.evidence_of_end();
    if log.frames.iter().any(|frame| matches!(frame.content, FrameContent::Message)) {
        return judge_closed(probe, log, &evidence);
    }
    let status_at = log
        .frames
        .iter()
        .position(|frame| matches!(frame.content, FrameContent::Status { state, .. } if state.is_terminal()));
    let Some(end) = status_at.or_else(|| log.terminal_at()) else {
        let last = log.frames.iter().rev().find_map(StreamFrame::state);
        return match last {
            Some(state) if state.is_waiting() => ledger.pass(&TERMINAL),
            last => {
                let last = last.map_or("no state at all", state_words);
                let fault = format!("the last state of the stream is {last}; {}", log.ending.words());
                // Before 1.0 a server says itself what a resubscription shows.
                let is_vague = log.operation == Operation::Subscribe && !probe.is_v1();
                let level = if is_vague { Level::Warning } else { Level::Error };
                ledger.fail_as(level, &TERMINAL, fault, &evidence);
            }
        };
    };
    ledger.pass(&TERMINAL);
    // The whole task may be shown once more.
    let is_more = |frame: &StreamFrame| !matches!(frame.content, FrameContent::Task(_)) || !probe.is_v1();
    let more = log.frames.iter().enumerate().skip(end + 1).find(|(_, frame)| is_more(frame));
    match more {
        Some((place, frame)) => {
            let fault = format!("{} follows the terminal state", kind_words(frame));
            ledger.fail(&AFTER_END, fault, &log.evidence_at(place));
        }
        None => ledger.pass(&AFTER_END),
    }
    if let (false, FrameContent::Status { .. }) = (probe.is_v1(), &log.frames[end].content) {
        let result = &log.frames[end].result;
        let is_final = result.get("statusUpdate").unwrap_or(result)["final"] == true;
        ledger.judge(&FINAL, (!is_final).then(|| "the terminal status is not final".to_owned()), &evidence);
    }
    judge_closed(probe, log, &evidence);
}

fn judge_closed(probe: &Probe<'_>, log: &StreamLog, evidence: &Evidence) {
    let fault = match &log.ending {
        Ending::StaysOpen(_) => Some(log.ending.words()),
        Ending::Closed | Ending::Broken(_) | Ending::Silent(_) | Ending::TooLong => None,
    };
    probe.ledger.judge(&CLOSES, fault, evidence);
}

fn judge_chunks(probe: &Probe<'_>, log: &StreamLog) {
    let ledger = &probe.ledger;
    // The ids of artifacts, and whether their last chunk has come.
    let mut known: Vec<(String, bool)> = Vec::new();
    for (place, frame) in log.frames.iter().enumerate() {
        let chunk = match &frame.content {
            FrameContent::Task(task) => {
                known.extend(task.artifacts.iter().map(|artifact| (artifact.id.to_string(), false)));
                continue;
            }
            FrameContent::Artifact { chunk, .. } => chunk,
            _ => continue,
        };
        let id = artifact_key(probe, chunk);
        let entry = known.iter_mut().find(|(known, _)| *known == id);
        // Who subscribes later has not seen the beginning.
        let is_unknown = entry.is_none() && log.operation == Operation::Stream;
        let fault = (chunk.append && is_unknown).then(|| "the first chunk of an artifact says append".to_owned());
        ledger.judge(&APPEND, fault, &log.evidence_at(place));
        match entry {
            Some((_, is_complete)) => {
                let fault = (*is_complete && chunk.append).then(|| "a chunk follows the last chunk".to_owned());
                ledger.judge(&LAST_CHUNK, fault, &log.evidence_at(place));
                *is_complete = chunk.last;
            }
            None => {
                ledger.pass(&LAST_CHUNK);
                known.push((id, chunk.last));
            }
        }
    }
}

fn artifact_key(probe: &Probe<'_>, chunk: &sabir_model::Chunk) -> String {
    match probe.version() {
        ProtocolVersion::V0_1 => chunk.index.to_string(),
        _ => chunk.artifact.id.to_string(),
    }
}

/// Reads the task that was streamed.
async fn check_result(probe: &Probe<'_>, log: &StreamLog) {
    let ledger = &probe.ledger;
    let of_task = log.frames.iter().find(|frame| matches!(frame.content, FrameContent::Task(_)));
    let Some(task) = of_task.and_then(StreamFrame::task).or_else(|| log.task()) else {
        return ledger.skip(&RESULT, "the stream was no task");
    };
    let (state, artifacts) = fold(probe, log);
    let Ok(got) = settle(probe, task).await else {
        return ledger.skip(&RESULT, "the task cannot be read");
    };
    let Some(read) = got.task() else { return };
    let mut faults = Vec::new();
    if let Some(state) = state.filter(|state| state.is_terminal() && *state != read.status.state) {
        faults.push(format!("it was {} and is {}", state_words(state), state_words(read.status.state)));
    }
    if log.terminal_at().is_some() && artifacts != artifact_texts(read) {
        faults.push("it has other artifacts".to_owned());
    }
    let fault = (!faults.is_empty()).then(|| format!("the task is not what was streamed: {}", faults.join(", ")));
    ledger.judge(&RESULT, fault, &got.evidence());
}

/// The last state, and the text of each artifact.
fn fold(probe: &Probe<'_>, log: &StreamLog) -> (Option<State>, Vec<String>) {
    let mut artifacts: Vec<(String, String)> = Vec::new();
    for frame in &log.frames {
        match &frame.content {
            FrameContent::Task(task) if !task.artifacts.is_empty() => {
                let ids = task.artifacts.iter().map(|artifact| artifact.id.to_string());
                artifacts = ids.zip(artifact_texts(task)).collect();
            }
            FrameContent::Artifact { chunk, .. } => {
                let id = artifact_key(probe, chunk);
                let text: String = chunk.artifact.parts.iter().filter_map(|part| part.as_text()).collect();
                match artifacts.iter_mut().find(|(known, _)| *known == id) {
                    Some((_, whole)) if chunk.append => whole.push_str(&text),
                    Some((_, whole)) => *whole = text,
                    None => artifacts.push((id, text)),
                }
            }
            _ => {}
        }
    }
    let state = log.frames.iter().rev().find_map(StreamFrame::state);
    (state, artifacts.into_iter().map(|(_, text)| text).collect())
}

fn kind_words(frame: &StreamFrame) -> &'static str {
    match frame.content {
        FrameContent::Task(_) => "a task",
        FrameContent::Message => "a message",
        FrameContent::Status { .. } => "a status",
        FrameContent::Artifact { .. } => "an artifact",
        FrameContent::Error(_) => "an error",
        FrameContent::Unreadable(_) => "a frame that is not A2A",
    }
}
