//! A task as the gateway shows it: its status, the newest text of the agent, and the whole conversation.

use std::borrow::Cow;

use sabir_model::{Artifact, Content, Message, Part, State, Task};
use serde::Serialize;

use super::send::Speaker;
use crate::json;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct GatewayRun<'a> {
    task_id: &'a str,
    context_id: &'a str,
    status: &'static str,
    origin: &'static str,
    termination_code: Option<&'static str>,
    termination_detail: Option<String>,
    created_at: i64,
    updated_at: i64,
    message: Option<ChatMessage<'a>>,
    artifacts: Vec<ArtifactContent<'a>>,
    history: Vec<ChatMessage<'a>>,
    /// The open question; only where the task waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pending: Option<Vec<PendingQuestion>>,
}

/// A question that decisions can be made about.
#[derive(Serialize)]
struct PendingQuestion {
    target_id: String,
    question: String,
}

impl PendingQuestion {
    fn of(task: &Task) -> Option<Self> {
        let (id, message) = (task.open_question()?, task.status.message.as_deref()?);
        Some(PendingQuestion { target_id: id.to_string(), question: message.question_text() })
    }
}

#[derive(Serialize)]
struct ChatMessage<'a> {
    role: &'static str,
    content: Cow<'a, str>,
}

impl<'a> ChatMessage<'a> {
    fn of_agent(content: &'a str) -> Self {
        ChatMessage { role: Speaker::Assistant.name(), content: Cow::Borrowed(content) }
    }
}

#[derive(Serialize)]
struct ArtifactContent<'a> {
    content: &'a str,
}

/// Appends the task; `earlier` are those of its context that came before it.
pub(super) fn write_task(task: &Task, earlier: &[Task], out: &mut Vec<u8>) {
    let answers = AgentTexts::of(task);
    let earlier: Vec<(&Task, AgentTexts<'_>)> = earlier.iter().map(|task| (task, AgentTexts::of(task))).collect();
    let mut history = Vec::new();
    for (task, answers) in &earlier {
        append_conversation(task, answers, &mut history);
    }
    append_conversation(task, &answers, &mut history);
    let status_text = task.status.message.as_deref().map(Message::text).filter(|text| !text.is_empty());
    let (termination_code, termination_detail) = match task.status.state {
        State::Failed => (Some("error"), status_text),
        State::Rejected => (Some("rejected"), status_text),
        State::Canceled => (Some("cancelled"), status_text),
        State::Submitted | State::Working | State::InputRequired | State::AuthRequired | State::Completed => {
            (None, None)
        }
    };
    let run = GatewayRun {
        task_id: task.id.as_str(),
        context_id: task.context.as_str(),
        status: status(task.status.state),
        origin: "a2a",
        termination_code,
        termination_detail,
        created_at: task.created.as_millis(),
        updated_at: task.status.time.as_millis(),
        message: answers.newest().map(ChatMessage::of_agent),
        artifacts: answers.newest().map(|content| ArtifactContent { content }).into_iter().collect(),
        history,
        pending: task.status.state.is_waiting().then(|| PendingQuestion::of(task).into_iter().collect()),
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

/// Appends the messages of both sides. Progress texts of the agent are not part of the conversation.
fn append_conversation<'a>(task: &'a Task, answers: &'a AgentTexts<'_>, lines: &mut Vec<ChatMessage<'a>>) {
    for message in &task.history {
        append_message(message, lines);
    }
    lines.extend(answers.artifacts.iter().map(|made| ChatMessage::of_agent(&made.text)));
    lines.extend(answers.status.as_deref().map(ChatMessage::of_agent));
}

/// Appends the texts of a message; neighbouring texts of the same role are joined.
fn append_message<'a>(message: &'a Message, lines: &mut Vec<ChatMessage<'a>>) {
    let first = lines.len();
    for part in &message.parts {
        let Some(text) = part.as_text().filter(|text| !text.is_empty()) else { continue };
        let role = Speaker::by(message, part).name();
        match lines[first..].last_mut().filter(|line| line.role == role) {
            Some(line) => {
                let content = line.content.to_mut();
                content.push(' ');
                content.push_str(text);
            }
            None => lines.push(ChatMessage { role, content: Cow::Borrowed(text) }),
        }
    }
}

/// The texts that the agent answered with.
struct AgentTexts<'a> {
    /// One for each artifact that can be shown as text, the newest last.
    artifacts: Vec<ArtifactText<'a>>,
    /// The text of the status: an open question, or the answer of an agent that made no artifact.
    status: Option<String>,
}

struct ArtifactText<'a> {
    text: Cow<'a, str>,
    /// The artifact has text parts.
    has_text: bool,
}

impl<'a> AgentTexts<'a> {
    fn of(task: &'a Task) -> Self {
        let artifacts: Vec<ArtifactText<'a>> =
            task.artifacts.iter().filter_map(|artifact| ArtifactText::of(artifact)).collect();
        let is_status_shown = match task.status.state {
            State::InputRequired | State::AuthRequired => true,
            State::Completed => artifacts.is_empty(),
            State::Submitted | State::Working | State::Failed | State::Canceled | State::Rejected => false,
        };
        let status = task.status.message.as_deref().filter(|_| is_status_shown).map(Message::text);
        AgentTexts { artifacts, status: status.filter(|text| !text.is_empty()) }
    }

    /// The newest text of the agent; an artifact with text parts goes before one without.
    fn newest(&self) -> Option<&str> {
        let artifact = || self.artifacts.iter().rev().find(|made| made.has_text).or(self.artifacts.last());
        self.status.as_deref().or_else(|| artifact().map(|made| &*made.text))
    }
}

impl<'a> ArtifactText<'a> {
    /// The texts of an artifact; without text parts, its data, its URLs or its file names.
    fn of(artifact: &'a Artifact) -> Option<Self> {
        let texts = artifact.parts.iter().filter_map(Part::as_text);
        if let Some(text) = joined(texts) {
            return Some(ArtifactText { text, has_text: true });
        }
        let others = artifact.parts.iter().map(|part| match &part.content {
            Content::Text(text) | Content::Url(text) => text.as_str(),
            Content::Data(data) => data.as_str(),
            Content::Bytes(_) => part.filename.as_deref().unwrap_or_default(),
        });
        joined(others).map(|text| ArtifactText { text, has_text: false })
    }
}

/// With line ends between them; `None` if all of them are empty.
fn joined<'a>(texts: impl Iterator<Item = &'a str>) -> Option<Cow<'a, str>> {
    let mut texts = texts.filter(|text| !text.is_empty());
    let mut joined = Cow::Borrowed(texts.next()?);
    for text in texts {
        let joined = joined.to_mut();
        joined.push('\n');
        joined.push_str(text);
    }
    Some(joined)
}
