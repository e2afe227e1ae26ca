//! A task as the result of a tool call: words for the model, files, and the same as data.
//!
//! Some hosts show their model the data alone where there is any (Claude Code and Codex do), and others the words alone. So each of
//! the two says all that a model has to know.

use sabir_model::{Artifact, Caller, Content, Part, QuestionType, State, Task, Usage, visible};
use serde::Serialize;
use serde_json::value::RawValue;

use super::client::{Client, McpVersion};
use super::resources::artifact_uri;
use crate::follow::WaitEnd;
use crate::question::Question;
use crate::words::{answer_text, is_failure, is_text, status_text};

/// A longer answer is cut.
const LONGEST_ANSWER: usize = 256 * 1024;
/// A larger file is linked to, not sent along: models pay for what they get.
const LONGEST_FILE: usize = 1024 * 1024;
/// The same for data.
const LONGEST_DATA: usize = 64 * 1024;

/// What a tool answers.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ToolResult {
    /// Since 2026-07-28.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) result_type: Option<&'static str>,
    pub(crate) content: Vec<ContentBlock>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) structured_content: Option<Box<RawValue>>,
    pub(crate) is_error: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum ContentBlock {
    Text {
        text: String,
    },
    Image {
        data: String,
        #[serde(rename = "mimeType")]
        media_type: String,
    },
    Audio {
        data: String,
        #[serde(rename = "mimeType")]
        media_type: String,
    },
    Resource {
        resource: ResourceContents,
    },
    ResourceLink {
        uri: String,
        name: String,
        #[serde(rename = "mimeType", skip_serializing_if = "Option::is_none")]
        media_type: Option<String>,
    },
}

/// What a resource holds: text, or bytes as base64.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct ResourceContents {
    pub(crate) uri: String,
    #[serde(rename = "mimeType", skip_serializing_if = "Option::is_none")]
    pub(crate) media_type: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) text: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) blob: Option<String>,
}

/// A task as data.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct TaskData<'a> {
    task: &'a str,
    context: &'a str,
    agent: &'a str,
    state: &'static str,
    #[serde(skip_serializing_if = "str::is_empty")]
    status: &'a str,
    /// What became of the question, where the user or the server has closed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    answer: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    question: Option<QuestionData<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    artifacts: Vec<ArtifactData<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<UsageData>,
    /// The tool that leads further; `None`: the task is over.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<&'static str>,
}

#[derive(Serialize)]
struct QuestionData<'a> {
    id: String,
    #[serde(rename = "type")]
    question_type: sabir_model::QuestionType,
    text: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    choices: Vec<ChoiceData<'a>>,
}

#[derive(Serialize)]
struct ChoiceData<'a> {
    id: &'a str,
    name: String,
}

#[derive(Serialize)]
struct ArtifactData<'a> {
    id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    uri: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct UsageData {
    input_tokens: u64,
    output_tokens: u64,
}

impl ToolResult {
    fn new(client: Client, content: Vec<ContentBlock>, is_error: bool) -> Self {
        let result_type = client.is_modern().then_some("complete");
        Self { result_type, content, structured_content: None, is_error }
    }

    /// Words alone.
    pub(crate) fn words(client: Client, text: impl Into<String>) -> Self {
        Self::new(client, vec![ContentBlock::Text { text: text.into() }], false)
    }

    /// What went wrong, for the model to read.
    pub(crate) fn error(client: Client, text: impl Into<String>) -> Self {
        Self::new(client, vec![ContentBlock::Text { text: text.into() }], true)
    }

    /// Data, and the same as text for clients that know no data.
    pub(crate) fn data(client: Client, data: &impl Serialize) -> Self {
        let raw = serde_json::value::to_raw_value(data).expect("texts and numbers can be written as JSON");
        let text = raw.get().to_owned();
        Self { structured_content: client.knows_structured_content().then_some(raw), ..Self::words(client, text) }
    }

    /// A task whose question the user has closed; `reason`: the answer was not taken.
    pub(crate) fn closed(client: Client, caller: &Caller, task: &Task, reason: Option<&str>) -> Self {
        let note = match reason {
            Some(reason) => format!("The answer was not taken: {reason}."),
            None => {
                "The user closed the question without an answer. Do not answer it yourself unless the user says so."
                    .to_owned()
            }
        };
        let mut result = Self::with_note(client, caller, task, None, Some(&note));
        if let Some(ContentBlock::Text { text }) = result.content.first_mut() {
            text.insert_str(0, &format!("{note}\n"));
        }
        result
    }

    /// A task as it is when the wait for it is over; `end` `None`: nobody waited.
    pub(crate) fn task(client: Client, caller: &Caller, task: &Task, end: Option<WaitEnd>) -> Self {
        Self::with_note(client, caller, task, end, None)
    }

    fn with_note(client: Client, caller: &Caller, task: &Task, end: Option<WaitEnd>, note: Option<&str>) -> Self {
        let state = task.status.state;
        let question = Question::of(task).filter(|_| state.is_waiting());
        let (status, answer) = (status_text(task), answer_text(task));
        let may_answer = question.as_ref().is_some_and(|question| question.may_be_answered_by(caller, task));
        let next = match (state.is_terminal(), may_answer) {
            (true, _) => None,
            (false, true) => Some("answer_task"),
            (false, false) => Some("wait_task"),
        };
        let answer = short(task, answer);
        let mut text = match &question {
            Some(question) => asking(task, question, may_answer),
            None => spoken(task, &status, &answer, end),
        };
        let mut content = Vec::new();
        for artifact in &task.artifacts {
            for part in artifact.parts.iter().filter(|part| !is_text(part)) {
                match block(client, task, artifact, part) {
                    Some(block) => content.push(block),
                    None => text.push_str(&format!("\n[{}]", artifact_uri(&task.id, &artifact.id))),
                }
            }
        }
        // What the agent says at the end may have files too; they are nowhere else.
        let last = task.status.message.as_deref().filter(|_| state.is_terminal());
        for part in last.into_iter().flat_map(|message| &message.parts).filter(|part| is_file(part)) {
            content.extend(whole_block(client, part, &format!("sabir://tasks/{}", task.id)));
        }
        content.insert(0, ContentBlock::Text { text });
        let artifacts = task.artifacts.iter().map(|artifact| ArtifactData {
            id: artifact.id.as_str(),
            name: artifact.name.as_deref(),
            uri: artifact_uri(&task.id, &artifact.id),
        });
        let data = TaskData {
            task: task.id.as_str(),
            context: task.context.as_str(),
            agent: task.agent.as_str(),
            state: state.name(),
            status: &status,
            note,
            // Without data, the answer is the text before this one.
            answer: (state == State::Completed && client.knows_structured_content()).then_some(answer.as_str()),
            question: question.as_ref().map(question_data),
            artifacts: artifacts.collect(),
            usage: task.usage.map(usage_data),
            next,
        };
        let raw = serde_json::value::to_raw_value(&data).expect("texts and numbers can be written as JSON");
        if !client.knows_structured_content() {
            content.push(ContentBlock::Text { text: raw.get().to_owned() });
            return Self::new(client, content, is_failure(state));
        }
        Self { structured_content: Some(raw), ..Self::new(client, content, is_failure(state)) }
    }
}

fn question_data(question: &Question) -> QuestionData<'_> {
    let choices = question.choices.iter().map(|choice| ChoiceData { id: &choice.id, name: visible(&choice.name) });
    QuestionData {
        id: question.id.to_string(),
        question_type: question.question_type,
        text: question.shown(),
        choices: choices.collect(),
    }
}

fn usage_data(usage: Usage) -> UsageData {
    UsageData { input_tokens: usage.input_tokens, output_tokens: usage.output_tokens }
}

/// What the model reads. Where something is to be done, it says which tool does it.
fn spoken(task: &Task, status: &str, answer: &str, end: Option<WaitEnd>) -> String {
    let id = &task.id;
    let reason = if status.is_empty() { String::new() } else { format!(": {status}") };
    match task.status.state {
        State::Completed if answer.is_empty() => format!("Task {id} is done."),
        State::Completed => answer.to_owned(),
        State::Failed => format!("Task {id} failed{reason}"),
        State::Rejected => format!("The agent rejected task {id}{reason}"),
        State::Canceled => format!("Task {id} was canceled{reason}"),
        _ => {
            let told = if status.is_empty() { String::new() } else { format!(" It last said: {status}") };
            let still = if end == Some(WaitEnd::TimeIsOver) { "still " } else { "" };
            let doing = if task.status.state == State::Submitted { "waiting for its turn" } else { "working" };
            format!(
                "Task {id} is {still}{doing}.{told}\n\
                 Call wait_task with task \"{id}\" to wait for it, or cancel_task to stop it."
            )
        }
    }
}

/// A long answer is cut: models pay for what they get, and the artifacts have the rest.
fn short(task: &Task, answer: String) -> String {
    if answer.len() <= LONGEST_ANSWER {
        return answer;
    }
    let end = (0..=LONGEST_ANSWER).rev().find(|end| answer.is_char_boundary(*end)).unwrap_or(0);
    let uris: Vec<String> = task.artifacts.iter().map(|artifact| artifact_uri(&task.id, &artifact.id)).collect();
    let rest = answer.len() - end;
    format!("{}\n[{rest} more bytes are in {}]", &answer[..end], uris.join(", "))
}

fn asking(task: &Task, question: &Question, may_answer: bool) -> String {
    let mut text = format!("The agent asks: {}", question.shown());
    for choice in &question.choices {
        text.push_str(&format!("\n- {} ({})", visible(&choice.name), visible(&choice.id)));
    }
    match (&question.approver, may_answer) {
        (_, true) => text.push_str(&format!(
            "\nCall answer_task with task \"{}\", question \"{}\" and the answer.",
            task.id, question.id
        )),
        (Some(scope), false) => text.push_str(&format!(
            "\nOnly somebody with the scope {scope} may answer. Call wait_task with task \"{}\" to wait for that.",
            task.id
        )),
        (None, false) if question.question_type == QuestionType::Permission => text.push_str(&format!(
            "\nA person has to give this permission: a program cannot. Call wait_task with task \"{}\" to wait for that.",
            task.id
        )),
        (None, false) => text.push_str("\nThis caller may not answer."),
    }
    text
}

/// A part that is no text; `None`: too large to be sent along to a client that knows no links.
fn block(client: Client, task: &Task, artifact: &Artifact, part: &Part) -> Option<ContentBlock> {
    let uri = artifact_uri(&task.id, &artifact.id);
    let name = part.filename.as_deref().or(artifact.name.as_deref()).unwrap_or(artifact.id.as_str());
    whole_block(client, part, &uri).or_else(|| {
        let uri = match &part.content {
            Content::Url(url) => url.clone(),
            _ => uri.clone(),
        };
        let media_type = part.media_type.clone();
        let knows_links = client.version >= McpVersion::V2025_06_18;
        knows_links.then(|| ContentBlock::ResourceLink { uri, name: name.to_owned(), media_type })
    })
}

fn is_file(part: &Part) -> bool {
    matches!(part.content, Content::Bytes(_))
}

/// A part that is no text, sent along; `None`: it is too large for that, or somewhere else.
/// `uri` is where it can be read.
fn whole_block(client: Client, part: &Part, uri: &str) -> Option<ContentBlock> {
    match &part.content {
        Content::Data(json) if json.as_str().len() <= LONGEST_DATA => {
            Some(ContentBlock::Text { text: json.as_str().to_owned() })
        }
        Content::Bytes(bytes) if bytes.as_str().len() <= LONGEST_FILE => {
            let data = bytes.as_str().to_owned();
            let kind = part.media_type.as_deref().unwrap_or_default();
            Some(if kind.starts_with("image/") {
                ContentBlock::Image { data, media_type: kind.to_owned() }
            } else if kind.starts_with("audio/") && client.version >= McpVersion::V2025_03_26 {
                ContentBlock::Audio { data, media_type: kind.to_owned() }
            } else {
                let (uri, media_type) = (uri.to_owned(), part.media_type.clone());
                ContentBlock::Resource { resource: ResourceContents { uri, media_type, text: None, blob: Some(data) } }
            })
        }
        Content::Text(_) | Content::Url(_) | Content::Data(_) | Content::Bytes(_) => None,
    }
}
