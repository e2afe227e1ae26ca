//! Shows the editor a task: what comes of it while it runs, or what the log has of it.

use std::sync::Arc;

use sabir_model::{
    Artifact, Content, Message, MessageId, Part, QUESTION, QuestionType, Role, State, Status, TaskId, Timestamp,
    ToolCall, ToolPhase,
};

use super::content::Block;
use super::editor::Editor;
use super::permission::is_permission;
use super::session::Session;
use super::session_update::{Chunk, SessionUpdate, plan};
use super::tool_calls;
use crate::client_commands::prompts::question_text;

/// The artifacts of the agents for programs that are for programs, by their names and one of their members.
const SESSION_DATA: (&str, [&str; 2]) = ("session", ["sessionId", "model"]);
const RESULT_DATA: (&str, [&str; 3]) = ("result", ["summary", "stats", "notes"]);

pub struct Presenter {
    editor: Arc<Editor>,
    session: Arc<Session>,
    task: Option<TaskId>,
    /// Calls that the editor knows and that have not ended.
    open_tools: Vec<ToolCall>,
    /// Who spoke last, and in which message.
    last_speaker: Option<(Speaker, String)>,
    /// The last letter of what was said last.
    last_letter: Option<char>,
    /// The agent has answered since the user spoke.
    has_answered: bool,
    last_status: Option<(Timestamp, Option<MessageId>)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Speaker {
    User,
    Agent,
    Thought,
}

impl Presenter {
    pub fn new(editor: Arc<Editor>, session: Arc<Session>) -> Self {
        Presenter {
            editor,
            session,
            task: None,
            open_tools: Vec::new(),
            last_speaker: None,
            last_letter: None,
            has_answered: false,
            last_status: None,
        }
    }

    /// What follows is of this task.
    pub fn set_task(&mut self, task: TaskId) {
        if self.task.as_ref() != Some(&task) {
            self.open_tools.clear();
            self.task = Some(task);
        }
    }

    /// A message of the history.
    pub async fn message(&mut self, message: &Message) {
        match message.role {
            Role::User => self.user(message).await,
            // What the user was asked in a dialog, and what was asked in words.
            Role::Agent if message.question_type() == QuestionType::Permission => {}
            Role::Agent if asks(message) => {
                self.answer(message.id.as_str(), &Part::text(message.question_text())).await
            }
            Role::Agent => self.words(message).await,
        }
    }

    async fn user(&mut self, message: &Message) {
        self.has_answered = false;
        for part in &message.parts {
            // Answers to requests for permission are data, and were never typed.
            if !matches!(part.content, Content::Data(_)) {
                self.say(Speaker::User, message.id.as_str(), Block::of(part)).await;
            }
        }
    }

    /// A status that is not the last of its turn, or is shown from the log.
    pub async fn status(&mut self, status: &Status) {
        let seen = (status.time, status.message.as_ref().map(|message| message.id.clone()));
        if self.last_status.as_ref() == Some(&seen) {
            return;
        }
        self.last_status = Some(seen);
        let Some(message) = &status.message else { return };
        match status.state {
            // The user is asked for permission in a dialog, and its tool is shown.
            State::InputRequired | State::AuthRequired if is_permission(status) => {}
            State::InputRequired | State::AuthRequired => self.question(status).await,
            State::Completed | State::Canceled => self.parts(message.id.as_str(), &message.parts).await,
            State::Rejected | State::Failed => self.failure(status).await,
            State::Submitted | State::Working => self.words(message).await,
        }
    }

    /// What the agent says while it works: a tool call, a plan, or words beside the answer.
    async fn words(&mut self, message: &Message) {
        if let Some(call) = ToolCall::in_message(message) {
            self.tool(call).await;
            return;
        }
        let text = message.text();
        if let Some(entries) = plan(&text) {
            self.editor.update(&self.session.id, &SessionUpdate::Plan { entries }).await;
            return;
        }
        for part in message.parts.iter().filter(|part| !matches!(part.content, Content::Data(_))) {
            self.say(Speaker::Thought, message.id.as_str(), Block::of(part)).await;
        }
    }

    async fn tool(&mut self, call: ToolCall) {
        let Some(task) = self.task.clone() else { return };
        let known = self.open_tools.iter().position(|open| open.id == call.id);
        let update = tool_calls::update(&task, &call, known.is_some());
        let is_open = call.phase == ToolPhase::Started;
        match known {
            Some(place) if !is_open => drop(self.open_tools.remove(place)),
            None if is_open => self.open_tools.push(call),
            Some(_) | None => {}
        }
        // Editors begin a new paragraph behind a tool.
        (self.last_speaker, self.last_letter) = (None, None);
        self.editor.update(&self.session.id, &update).await;
    }

    /// The call for which the agent asks permission, if it was shown: the one with this tool and this input.
    pub fn tool_asked_for(&self, name: Option<&str>, input: Option<&str>) -> Option<&str> {
        let open = || self.open_tools.iter().rev();
        let is_same_tool = |call: &&ToolCall| Some(call.name.as_str()) == name;
        let is_same_input = |call: &&ToolCall| call.args.as_ref().map(|args| args.as_str()) == input;
        let exact = open().filter(is_same_tool).find(is_same_input);
        let found = exact.or_else(|| open().find(is_same_tool)).or_else(|| open().find(is_same_input));
        found.map(|call| call.id.as_str())
    }

    /// A piece of an artifact, or all of it.
    pub async fn artifact(&mut self, artifact: &Artifact) {
        let name = artifact.name.as_deref();
        for part in &artifact.parts {
            match (&part.content, name) {
                (Content::Data(data), Some(name)) if name == SESSION_DATA.0 => {
                    if !SESSION_DATA.1.iter().any(|member| data.member(member).is_some()) {
                        self.answer(artifact.id.as_str(), part).await;
                    }
                }
                (Content::Data(data), Some(name))
                    if name == RESULT_DATA.0 && RESULT_DATA.1.iter().any(|member| data.member(member).is_some()) =>
                {
                    // A program that has streamed its answer says it here once more.
                    let summary = data.text_of("summary").filter(|_| !self.has_answered);
                    if let Some(summary) = summary {
                        self.answer(artifact.id.as_str(), &Part::text(summary)).await;
                    }
                }
                _ => self.answer(artifact.id.as_str(), part).await,
            }
        }
    }

    /// Parts of an answer that is not an artifact.
    pub async fn parts(&mut self, message_id: &str, parts: &[Part]) {
        for part in parts {
            self.answer(message_id, part).await;
        }
    }

    async fn answer(&mut self, message_id: &str, part: &Part) {
        self.has_answered = true;
        self.say(Speaker::Agent, message_id, Block::of(part)).await;
    }

    /// A question that the next prompt answers.
    pub async fn question(&mut self, status: &Status) {
        let id = status.message.as_ref().map_or("question", |message| message.id.as_str());
        self.say(Speaker::Agent, id, Block::text(question_text(status))).await;
    }

    /// Why a task was not done.
    pub async fn failure(&mut self, status: &Status) {
        let id = status.message.as_ref().map_or("failure", |message| message.id.as_str());
        self.say(Speaker::Agent, id, Block::text(reason(status))).await;
    }

    /// Something that this program has to say.
    pub async fn note(&mut self, text: &str) {
        self.say(Speaker::Thought, "sabir", Block::text(text)).await;
    }

    async fn say(&mut self, speaker: Speaker, message_id: &str, content: Block) {
        if matches!(&content, Block::Text { text } if text.is_empty()) {
            return;
        }
        let is_new = self.last_speaker.as_ref().is_none_or(|(last, id)| *last != speaker || id != message_id);
        let is_same_speaker = self.last_speaker.as_ref().is_some_and(|(last, _)| *last == speaker);
        // Editors that know no ids of messages join what one speaker says.
        let breaks = is_new && is_same_speaker && self.last_letter.is_some_and(|letter| letter != '\n');
        let content = match content {
            Block::Text { text } if breaks => Block::text(format!("\n\n{text}")),
            content => content,
        };
        self.last_letter = match &content {
            Block::Text { text } => text.chars().last(),
            _ => None,
        };
        if is_new {
            self.last_speaker = Some((speaker, message_id.to_owned()));
        }
        let chunk = Chunk { content, message_id: message_id.to_owned() };
        let update = match speaker {
            Speaker::User => SessionUpdate::UserMessageChunk(chunk),
            Speaker::Agent => SessionUpdate::AgentMessageChunk(chunk),
            Speaker::Thought => SessionUpdate::AgentThoughtChunk(chunk),
        };
        self.editor.update(&self.session.id, &update).await;
    }
}

fn asks(message: &Message) -> bool {
    let is_question =
        |part: &Part| matches!(&part.content, Content::Data(data) if data.text_of("kind").as_deref() == Some(QUESTION));
    message.parts.iter().any(is_question)
}

/// In one line: what became of a task, and why.
pub fn reason(status: &Status) -> String {
    let words = status.message.as_ref().map(|message| message.text()).filter(|text| !text.trim().is_empty());
    let end = match status.state {
        State::Failed => "The task failed",
        State::Rejected => "The agent rejected the task",
        State::Canceled => "The task was canceled",
        _ => "The task ended",
    };
    words.map_or_else(|| format!("{end}."), |words| format!("{end}: {}", words.trim()))
}

#[cfg(test)]
mod tests {
    use sabir_model::ContextId;

    use super::*;

    #[tokio::test]
    async fn calls_that_have_ended_are_forgotten() {
        let (out, mut lines) = tokio::sync::mpsc::channel(16);
        let context = ContextId::parse("c").unwrap();
        let session = Arc::new(Session::new("s".into(), "/".into(), context, None));
        let mut presenter = Presenter::new(Arc::new(Editor::new(out)), session);
        presenter.set_task(TaskId::parse("t").unwrap());
        let mut shown = Vec::new();
        for (id, phase) in [
            ("1", ToolPhase::Started),
            ("2", ToolPhase::Started),
            ("1", ToolPhase::Completed),
            ("3", ToolPhase::Failed),
            ("1", ToolPhase::Started),
        ] {
            let (id, name) = (id.to_owned(), format!("tool {id}"));
            presenter.tool(ToolCall { id, name, phase, args: None, result: None, error: None }).await;
            let line: serde_json::Value = serde_json::from_slice(&lines.recv().await.unwrap()).unwrap();
            shown.push(line["params"]["update"]["sessionUpdate"].as_str().unwrap().to_owned());
        }
        assert_eq!(shown, ["tool_call", "tool_call", "tool_call_update", "tool_call", "tool_call"]);
        let open: Vec<_> = presenter.open_tools.iter().map(|call| call.id.as_str()).collect();
        assert_eq!(open, ["2", "1"]);
        assert_eq!(presenter.tool_asked_for(Some("tool 2"), None), Some("2"));
        assert_eq!(presenter.tool_asked_for(Some("tool 3"), Some("{}")), None);
    }
}
