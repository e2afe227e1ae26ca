//! The question that a task waits to have answered, as doors show it, and the messages that answer it.

use sabir_model::{
    Addressee, Birth, Caller, Choice, Content, IncomingMessage, Json, Message, Part, QUESTION_ID, QuestionId,
    QuestionType, Role, Send, Task, visible_lines,
};
use serde::Serialize;

use crate::words::all_text;

/// An open question of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Question {
    pub(crate) id: QuestionId,
    pub(crate) question_type: QuestionType,
    pub(crate) words: String,
    /// The tool that permission is asked for, with all of its input.
    pub(crate) tool: Option<String>,
    pub(crate) choices: Vec<Choice>,
    /// The scope that somebody needs to answer it; `None`: the owner of the task answers.
    pub(crate) approver: Option<String>,
}

impl Question {
    /// Whether this caller may answer it. The engine decides; this is for what the caller is told.
    pub(crate) fn may_be_answered_by(&self, caller: &Caller, task: &Task) -> bool {
        match &self.approver {
            // A program never gives permission.
            _ if caller.delegation.is_some() && self.question_type == QuestionType::Permission => false,
            _ if caller.is_admin() => true,
            Some(scope) => caller.has_scope_for(scope, &task.agent),
            None => caller.may_run(&task.agent),
        }
    }

    /// What whoever answers has to read: the tool comes first and is never shortened, and hidden letters have marks.
    pub(crate) fn shown(&self) -> String {
        let words = visible_lines(&self.words);
        self.tool.as_ref().map_or(words.clone(), |tool| format!("{tool}\n{words}"))
    }

    /// The question that is open now.
    pub(crate) fn of(task: &Task) -> Option<Self> {
        let id = task.open_question()?;
        let message = task.status.message.as_deref();
        let words = message.map(words_of).filter(|words| !words.is_empty());
        Some(Self {
            id,
            question_type: message.map_or(QuestionType::Input, Message::question_type),
            words: words.unwrap_or_else(|| "The agent waits for an answer.".to_owned()),
            tool: message.and_then(Message::tool_text),
            choices: message.map(Message::question_choices).unwrap_or_default(),
            approver: task.approver(),
        })
    }
}

/// All that is said, and the question itself where that is in the data alone.
fn words_of(message: &Message) -> String {
    let (text, question) = (all_text(message), message.question_text());
    if question.is_empty() || text.contains(question.trim()) {
        text
    } else if text.is_empty() {
        question
    } else {
        format!("{text}\n{question}")
    }
}

/// What somebody answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum GivenAnswer {
    /// In words; a lone yes or no, or the name of a choice, is read as that.
    Words(String),
    /// The choice of this id.
    Choice(String),
    Approved,
    Denied,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct AnswerData<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    option_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    approved: Option<bool>,
}

/// The message that answers a question; `question` `None`: whichever is open.
fn answer_message(task: &Task, question: Option<&str>, answer: &GivenAnswer) -> IncomingMessage {
    let data = match answer {
        GivenAnswer::Words(_) => AnswerData { option_id: None, approved: None },
        GivenAnswer::Choice(id) => AnswerData { option_id: Some(id), approved: None },
        GivenAnswer::Approved => AnswerData { option_id: None, approved: Some(true) },
        GivenAnswer::Denied => AnswerData { option_id: None, approved: Some(false) },
    };
    let mut parts = Vec::new();
    if let GivenAnswer::Words(words) = answer {
        parts.push(Part::text(words.as_str()));
    }
    let data = Json::of(&data).expect("texts are JSON");
    match question {
        Some(id) => parts.push(naming(id, Some(&data))),
        None if data.as_str() != "{}" => parts.push(Part::from(Content::Data(data))),
        None => {}
    }
    let mut message = IncomingMessage::new(None, Role::User, parts);
    message.task = Some(task.id.clone());
    message
}

/// The part that names the question which a message answers, with what else is said as data.
pub(crate) fn naming(question: &str, data: Option<&Json>) -> Part {
    let id = Json::of(question).expect("text is JSON");
    Part::data(Json::with_member(data, QUESTION_ID, &id))
}

/// The call that answers a question; `born` as for every message of its door.
pub(crate) fn answer_send(task: &Task, question: Option<&str>, answer: &GivenAnswer, born: Birth) -> Send {
    let mut send = Send::new(answer_message(task, question, answer), born);
    send.agent = Some(task.agent.clone());
    send.addressee = Addressee::Waiting;
    send
}
