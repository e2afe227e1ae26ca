//! A task as the gateway shows it: one text in, one text out, and the conversation around them.

use std::sync::Arc;

use sabir_model::{Artifact, Content, Message, Part, State, Task};
use serde::Serialize;

use super::send::Spoken;
use crate::json;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Run<'a> {
    task_id: &'a str,
    context_id: &'a str,
    status: &'static str,
    origin: &'static str,
    termination_code: Option<&'static str>,
    termination_detail: Option<String>,
    created_at: i64,
    updated_at: i64,
    message: Option<Line>,
    artifacts: Vec<Text>,
    history: Vec<Line>,
}

#[derive(Serialize)]
struct Line {
    role: &'static str,
    content: String,
}

#[derive(Serialize)]
struct Text {
    content: String,
}

/// Appends the task; `earlier` are those of its context that came before it.
pub(super) fn write_task(task: &Task, earlier: &[Task], out: &mut Vec<u8>) {
    let latest = output(task);
    let answer = latest.clone().map(|content| Line { role: Spoken::Assistant.name(), content });
    let mut history: Vec<Line> = earlier.iter().flat_map(exchange).collect();
    history.extend(exchange(task));
    let status_text = task.status.message.as_deref().map(Message::text).filter(|text| !text.is_empty());
    let (termination_code, termination_detail) = match task.status.state {
        State::Failed => (Some("error"), status_text),
        State::Rejected => (Some("rejected"), status_text),
        State::Canceled => (Some("cancelled"), status_text),
        State::Submitted | State::Working | State::InputRequired | State::AuthRequired | State::Completed => {
            (None, None)
        }
    };
    let run = Run {
        task_id: task.id.as_str(),
        context_id: task.context.as_str(),
        status: status(task.status.state),
        origin: "a2a",
        termination_code,
        termination_detail,
        created_at: task.created.as_millis(),
        updated_at: task.status.time.as_millis(),
        message: answer,
        artifacts: latest.into_iter().map(|content| Text { content }).collect(),
        history,
    };
    json::write(&run, out);
}

fn status(state: State) -> &'static str {
    match state {
        State::Submitted => "queued",
        State::Working => "running",
        State::InputRequired | State::AuthRequired => "waiting",
        State::Completed | State::Failed | State::Rejected => "done",
        State::Canceled => "cancelled",
    }
}

/// What was said in a task, by both sides. Progress of the agent's is its own business and not part of it.
fn exchange(task: &Task) -> Vec<Line> {
    let answered = made(task).into_iter().chain(last_words(task));
    let answered = answered.map(|content| Line { role: Spoken::Assistant.name(), content });
    task.history.iter().flat_map(|message| lines(message)).chain(answered).collect()
}

/// The texts of a message, joined as far as the same one speaks.
fn lines(message: &Message) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    for part in &message.parts {
        let Some(text) = part.as_text().filter(|text| !text.is_empty()) else { continue };
        let role = Spoken::by(message, part).name();
        match lines.last_mut().filter(|line| line.role == role) {
            Some(line) => line.content = format!("{} {text}", line.content),
            None => lines.push(Line { role, content: text.to_owned() }),
        }
    }
    lines
}

/// The newest of what the agent said: in words, if it has any.
fn output(task: &Task) -> Option<String> {
    let has_text =
        |artifact: &&Arc<Artifact>| artifact.parts.iter().filter_map(Part::as_text).any(|text| !text.is_empty());
    let in_words = || task.artifacts.iter().rev().find(has_text).map(|artifact| text_of(artifact));
    last_words(task).or_else(in_words).or_else(|| made(task).pop())
}

/// What the agent has made as text, one for each artifact, the newest last.
fn made(task: &Task) -> Vec<String> {
    task.artifacts.iter().map(|artifact| text_of(artifact)).filter(|text| !text.is_empty()).collect()
}

/// A question that waits for its answer, or the answer of an agent that made nothing.
fn last_words(task: &Task) -> Option<String> {
    let are_shown = match task.status.state {
        State::InputRequired | State::AuthRequired => true,
        State::Completed => made(task).is_empty(),
        State::Submitted | State::Working | State::Failed | State::Canceled | State::Rejected => false,
    };
    let words = task.status.message.as_ref().filter(|_| are_shown)?.text();
    (!words.is_empty()).then_some(words)
}

/// Its texts; what has none is told by its data, its address or its name.
fn text_of(artifact: &Artifact) -> String {
    let texts: Vec<&str> = artifact.parts.iter().filter_map(Part::as_text).filter(|text| !text.is_empty()).collect();
    if !texts.is_empty() {
        return texts.join("\n");
    }
    let others = artifact.parts.iter().map(|part| match &part.content {
        Content::Text(text) | Content::Url(text) => text.as_str(),
        Content::Data(data) => data.as_str(),
        Content::Bytes(_) => part.filename.as_deref().unwrap_or_default(),
    });
    others.filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n")
}
