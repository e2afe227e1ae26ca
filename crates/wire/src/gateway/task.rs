//! A task as the gateway shows it: one text in, one text out, and the conversation around them.

use std::borrow::Cow;

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
    message: Option<Line<'a>>,
    artifacts: Vec<Text<'a>>,
    history: Vec<Line<'a>>,
    /// What a task waits for; only where it waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pending: Option<Vec<Pending>>,
}

/// A question that decisions can be made about.
#[derive(Serialize)]
struct Pending {
    target_id: String,
    question: String,
}

impl Pending {
    fn of(task: &Task) -> Option<Self> {
        let (id, message) = (task.open_question()?, task.status.message.as_deref()?);
        Some(Pending { target_id: id.to_string(), question: message.question_text() })
    }
}

#[derive(Serialize)]
struct Line<'a> {
    role: &'static str,
    content: Cow<'a, str>,
}

impl<'a> Line<'a> {
    fn of_agent(content: &'a str) -> Self {
        Line { role: Spoken::Assistant.name(), content: Cow::Borrowed(content) }
    }
}

#[derive(Serialize)]
struct Text<'a> {
    content: &'a str,
}

/// Appends the task; `earlier` are those of its context that came before it.
pub(super) fn write_task(task: &Task, earlier: &[Task], out: &mut Vec<u8>) {
    let answers = Answers::of(task);
    let earlier: Vec<(&Task, Answers<'_>)> = earlier.iter().map(|task| (task, Answers::of(task))).collect();
    let mut history = Vec::new();
    for (task, answers) in &earlier {
        tell(task, answers, &mut history);
    }
    tell(task, &answers, &mut history);
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
        message: answers.newest().map(Line::of_agent),
        artifacts: answers.newest().map(|content| Text { content }).into_iter().collect(),
        history,
        pending: task.status.state.is_waiting().then(|| Pending::of(task).into_iter().collect()),
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
fn tell<'a>(task: &'a Task, answers: &'a Answers<'_>, lines: &mut Vec<Line<'a>>) {
    for message in &task.history {
        tell_message(message, lines);
    }
    lines.extend(answers.made.iter().map(|made| Line::of_agent(&made.text)));
    lines.extend(answers.last_words.as_deref().map(Line::of_agent));
}

/// The texts of a message, joined as far as the same one speaks.
fn tell_message<'a>(message: &'a Message, lines: &mut Vec<Line<'a>>) {
    let first = lines.len();
    for part in &message.parts {
        let Some(text) = part.as_text().filter(|text| !text.is_empty()) else { continue };
        let role = Spoken::by(message, part).name();
        match lines[first..].last_mut().filter(|line| line.role == role) {
            Some(line) => {
                let content = line.content.to_mut();
                content.push(' ');
                content.push_str(text);
            }
            None => lines.push(Line { role, content: Cow::Borrowed(text) }),
        }
    }
}

/// What the agent answered.
struct Answers<'a> {
    /// One for each artifact that can be told as text, the newest last.
    made: Vec<Made<'a>>,
    /// A question that waits for its answer, or the answer of an agent that made nothing.
    last_words: Option<String>,
}

struct Made<'a> {
    text: Cow<'a, str>,
    is_in_words: bool,
}

impl<'a> Answers<'a> {
    fn of(task: &'a Task) -> Self {
        let made: Vec<Made<'a>> = task.artifacts.iter().filter_map(|artifact| Made::of(artifact)).collect();
        let are_shown = match task.status.state {
            State::InputRequired | State::AuthRequired => true,
            State::Completed => made.is_empty(),
            State::Submitted | State::Working | State::Failed | State::Canceled | State::Rejected => false,
        };
        let last_words = task.status.message.as_deref().filter(|_| are_shown).map(Message::text);
        Answers { made, last_words: last_words.filter(|words| !words.is_empty()) }
    }

    /// The newest of what the agent said: in words, if it has any.
    fn newest(&self) -> Option<&str> {
        let in_words = || self.made.iter().rev().find(|made| made.is_in_words).or(self.made.last());
        self.last_words.as_deref().or_else(|| in_words().map(|made| &*made.text))
    }
}

impl<'a> Made<'a> {
    /// An artifact's texts; what has none is told by its data, its address or its name.
    fn of(artifact: &'a Artifact) -> Option<Self> {
        let texts = artifact.parts.iter().filter_map(Part::as_text);
        if let Some(text) = joined(texts) {
            return Some(Made { text, is_in_words: true });
        }
        let others = artifact.parts.iter().map(|part| match &part.content {
            Content::Text(text) | Content::Url(text) => text.as_str(),
            Content::Data(data) => data.as_str(),
            Content::Bytes(_) => part.filename.as_deref().unwrap_or_default(),
        });
        joined(others).map(|text| Made { text, is_in_words: false })
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
