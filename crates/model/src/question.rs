//! Questions that a task asks its caller: the id of each, and the data part in which it is shown.
//!
//! Sabir issues the id, whatever name the agent has for the question. The id holds the number of the event that asks,
//! and a check over the task's id. So an id is told from any other name, and an id of this task from one of another, by
//! looking at it: nothing has to be remembered, replay and restart give the same ids, and a task may ask as often as it
//! likes.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{Choice, ChoiceKind, Content, Json, Message, Part, Seq, TaskId, pretty_json, visible, visible_lines};

/// The member of a question's data part that holds its id.
pub const QUESTION_ID: &str = "questionId";
/// The `kind` of a question's data part.
pub const QUESTION: &str = "question";
/// The member of a question's data part that names the scope without which nobody may answer it.
pub const APPROVER: &str = "approver";
/// The member that holds its type.
const TYPE: &str = "type";

/// The longest id: `q`, twenty digits, `-` and sixteen more.
const LONGEST: usize = 38;
/// The digits of the check.
const CHECK_DIGITS: usize = 16;

/// The name of one question of one task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QuestionId {
    /// The event that asks.
    pub event: Seq,
    check: u64,
}

impl QuestionId {
    /// The id of the question that this event asks.
    pub fn issue(task: &TaskId, event: Seq) -> Self {
        Self { event, check: check(task, event) }
    }

    /// Reads whatever has the form of an id, for this task or for another. Any other name is `None`.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        if !may_be_id(text) {
            return None;
        }
        let (event, check) = text[1..].split_once('-')?;
        let is_event = event.bytes().all(|byte| byte.is_ascii_digit());
        let is_check = check.len() == CHECK_DIGITS && check.bytes().all(|byte| byte.is_ascii_hexdigit());
        if !is_event || !is_check {
            return None;
        }
        Some(Self { event: event.parse().ok()?, check: u64::from_str_radix(check, 16).ok()? })
    }

    /// Whether it was issued for this task.
    pub fn is_of(self, task: &TaskId) -> bool {
        self.check == check(task, self.event)
    }

    /// The id of the question that this message asks. An agent may quote earlier ids in it; its own is the newest.
    pub fn in_message(task: &TaskId, message: &Message) -> Option<Self> {
        let ids = message.parts.iter().filter_map(|part| Self::parse(&question_data(part)?.text_of(QUESTION_ID)?));
        ids.filter(|id| id.is_of(task)).max()
    }
}

impl fmt::Display for QuestionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "q{}-{:016x}", self.event, self.check)
    }
}

/// Whether a text has the form of an id; cheap enough to ask of every text in a message.
pub(crate) fn may_be_id(text: &str) -> bool {
    let text = text.trim();
    text.len() <= LONGEST && text.is_ascii() && text.starts_with(['q', 'Q'])
}

/// FNV-1a: small, and the same in every version of Sabir. It only has to tell issued ids from other names; a caller who
/// computes one gains nothing by it.
fn check(task: &TaskId, event: Seq) -> u64 {
    let bytes = task.as_str().bytes().chain([0]).chain(event.to_be_bytes());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// What a question is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum QuestionType {
    /// The agent wants to act and needs permission.
    Permission,
    /// The agent needs to know something.
    Input,
}

impl QuestionType {
    /// As data parts have it.
    const PERMISSION: &str = "permission";
}

/// How the questions of an agent are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QuestionForm {
    /// With a data part that has the id; one is added where the agent gives none.
    WithData,
    /// As the agent words them, byte for byte. The id counts all the same, and the gateway shows it.
    WordsOnly,
}

/// The data part of a question whose agent gave it none.
#[derive(Serialize)]
struct PlainQuestion<'a> {
    kind: &'static str,
    #[serde(rename = "type")]
    question_type: QuestionType,
    #[serde(skip_serializing_if = "str::is_empty")]
    question: &'a str,
}

/// The choices in the data part of a question.
#[derive(Deserialize)]
struct OfferedChoices {
    choices: Vec<OfferedChoice>,
}

#[derive(Deserialize)]
struct OfferedChoice {
    id: String,
    name: String,
    kind: String,
}

impl Message {
    /// The question with its id, in the data part that the agent made for it or in one more. If an approver is named, a
    /// question of the type `permission` says that only callers with this scope may answer; an agent has no say in that.
    pub(crate) fn with_question_id(self: Arc<Self>, id: QuestionId, approver: Option<&str>) -> Arc<Self> {
        let mut message = Arc::unwrap_or_clone(self);
        let approver = approver.filter(|_| message.question_type() == QuestionType::Permission);
        let text = |text: &str| Json::of(text).expect("text is JSON");
        let value = text(&id.to_string());
        let with_id = |data: &Json| {
            let own = data.without_member(QUESTION_ID).without_member(APPROVER);
            let own = match approver {
                Some(scope) => Json::with_member(Some(&own), APPROVER, &text(scope)),
                None => own,
            };
            Json::with_member(Some(&own), QUESTION_ID, &value)
        };
        if let Some(scope) = approver {
            let place = message.parts.iter().position(|part| part.as_text().is_none()).unwrap_or(message.parts.len());
            message.parts.insert(place, Part::text(pending_approval(scope)));
        }
        match message.parts.iter().position(|part| question_data(part).is_some()) {
            Some(place) => {
                let part = &mut message.parts[place];
                if let Content::Data(data) = &part.content {
                    part.content = Content::Data(with_id(data));
                }
            }
            None => {
                let text = message.text();
                let data = PlainQuestion { kind: QUESTION, question_type: QuestionType::Input, question: text.trim() };
                let data = Json::of(&data).expect("texts are JSON");
                message.parts.push(Part::from(Content::Data(with_id(&data))));
            }
        }
        Arc::new(message)
    }

    /// The question as the agent words it, but for an approver that it names: an agent has no say in that.
    pub(crate) fn without_approver(self: Arc<Self>) -> Arc<Self> {
        if self.approver().is_none() {
            return self;
        }
        let mut message = Arc::unwrap_or_clone(self);
        for part in &mut message.parts {
            if let Some(data) = question_data(part) {
                part.content = Content::Data(data.without_member(APPROVER));
            }
        }
        Arc::new(message)
    }

    /// What this message asks about, if it asks.
    pub fn question_type(&self) -> QuestionType {
        let is_permission = |part: &Part| {
            question_data(part).is_some_and(|data| data.text_of(TYPE).as_deref() == Some(QuestionType::PERMISSION))
        };
        // An agent may quote earlier questions. If one of them was for permission, it does no harm to take this for one.
        if self.parts.iter().any(is_permission) { QuestionType::Permission } else { QuestionType::Input }
    }

    /// The scope without which nobody may answer this question. `None`: the owner of the task answers.
    pub fn approver(&self) -> Option<String> {
        self.parts.iter().find_map(question_data)?.text_of(APPROVER)
    }

    /// What this message asks, in words: as the question's data part has it, else all its text.
    pub fn question_text(&self) -> String {
        let in_data = self.parts.iter().find_map(|part| question_data(part)?.text_of(QUESTION));
        in_data.unwrap_or_else(|| self.text())
    }

    /// The tool that this question for permission is about, with all of its input and a mark for each hidden letter: whoever grants
    /// permission answers for all of it. `None`: no tool is named. Other servers may write whatever they like for it.
    pub fn tool_text(&self) -> Option<String> {
        let question = self.parts.iter().find_map(question_data)?;
        if self.question_type() != QuestionType::Permission {
            return None;
        }
        let shown = |name: &str| question.member(name).filter(|value| value.as_str() != "null");
        let tool = shown("tool").map(|tool| visible(&tool.text().unwrap_or_else(|| tool.as_str().to_owned())));
        let input = shown("input").map(|input| visible_lines(&pretty_json(input.as_str())));
        match (tool, input) {
            (None, None) => None,
            (tool, None) => Some(format!("tool {}", tool.unwrap_or_default())),
            (tool, Some(input)) => Some(format!("tool {} with {input}", tool.as_deref().unwrap_or("without a name"))),
        }
    }

    /// The answers that this question offers, as its data part has them.
    pub fn question_choices(&self) -> Vec<Choice> {
        let read = |data: &Json| serde_json::from_str::<OfferedChoices>(data.as_str()).ok();
        let offered = self.parts.iter().find_map(|part| read(question_data(part)?));
        let choices = offered.into_iter().flat_map(|offered| offered.choices);
        choices.map(|OfferedChoice { id, name, kind }| Choice { id, name, kind: ChoiceKind::parse(&kind) }).collect()
    }
}

/// What the owner of a task reads behind a question that somebody else must answer.
fn pending_approval(scope: &str) -> String {
    format!("An approval is pending: only callers with the scope {scope} may answer.")
}

/// The data of a part that describes a question.
fn question_data(part: &Part) -> Option<&Json> {
    match &part.content {
        Content::Data(data) if data.is_object() && data.text_of("kind").as_deref() == Some(QUESTION) => Some(data),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{MessageId, Role};

    fn task(id: &str) -> TaskId {
        TaskId::parse(id).unwrap()
    }

    #[test]
    fn an_id_is_told_from_other_names_and_from_those_of_other_tasks() {
        let id = QuestionId::issue(&task("t1"), 7);
        // In the log and in the hands of callers: it must stay so.
        assert_eq!(id.to_string(), "q7-856b6d45fe8a1723");
        for name in ["q7-856b6d45fe8a1723", " q7-856b6d45fe8a1723\n", "Q7-856B6D45FE8A1723", "q07-856b6d45fe8a1723"] {
            assert_eq!(QuestionId::parse(name), Some(id), "{name}");
            assert!(QuestionId::parse(name).is_some_and(|id| id.is_of(&task("t1"))), "{name}");
        }
        let other_task = QuestionId::issue(&task("t2"), 7).to_string();
        let changed = id.to_string().replacen('7', "8", 1);
        for name in [&other_task, &changed, "q7-0000000000000000", "q0-856b6d45fe8a1723"] {
            assert!(QuestionId::parse(name).is_some_and(|id| !id.is_of(&task("t1"))), "{name}");
        }
        for name in
            ["fc_perm_1", "", "q", "q7", "q-", "q7-", "q7-856b", "q+7-856b6d45fe8a1723", "q-856b6d45fe8a1723", "é7-"]
        {
            assert_eq!(QuestionId::parse(name), None, "{name}");
        }
        let last = QuestionId::issue(&task("t1"), Seq::MAX);
        assert_eq!(QuestionId::parse(&last.to_string()), Some(last));
    }

    fn asked(parts: Vec<Part>) -> Message {
        let message = Arc::new(Message::new(MessageId::parse("m").unwrap(), Role::Agent, parts));
        Message::clone(&message.with_question_id(QuestionId::issue(&task("t"), 3), None))
    }

    #[test]
    fn every_question_has_its_id_in_a_data_part() {
        let id = QuestionId::issue(&task("t"), 3);
        let data = |text: &str| Part::from(Content::Data(Json::parse(text).unwrap()));
        for (parts, expected) in [
            (
                vec![Part::text("Which day?")],
                format!(r#"{{"questionId":"{id}","kind":"question","type":"input","question":"Which day?"}}"#),
            ),
            (vec![], format!(r#"{{"questionId":"{id}","kind":"question","type":"input"}}"#)),
            (
                vec![Part::text("May I?"), data(r#"{"kind":"question","id":"r1","question":"May I?"}"#)],
                format!(r#"{{"questionId":"{id}","kind":"question","id":"r1","question":"May I?"}}"#),
            ),
            // An agent has no say in the id.
            (
                vec![data(r#"{"questionId":"mine","kind":"question","questionId":"q1"}"#)],
                format!(r#"{{"questionId":"{id}","kind":"question"}}"#),
            ),
            // Other data is the agent's own.
            (
                vec![Part::text("See this"), data(r#"{"kind":"chart"}"#)],
                format!(r#"{{"questionId":"{id}","kind":"question","type":"input","question":"See this"}}"#),
            ),
        ] {
            let message = asked(parts);
            let Some(Content::Data(last)) = message.parts.last().map(|part| &part.content) else { panic!() };
            assert_eq!(last.as_str(), expected);
            assert_eq!(QuestionId::in_message(&task("t"), &message), Some(id));
            assert_eq!(QuestionId::in_message(&task("u"), &message), None);
        }
    }

    #[test]
    fn an_agent_that_quotes_an_earlier_question_asks_the_new_one() {
        let earlier = asked(vec![Part::text("one?")]);
        let fresh = Part::from(Content::Data(Json::parse(r#"{"kind":"question"}"#).unwrap()));
        let parts = [vec![fresh], earlier.parts.clone()].concat();
        let quoted = Arc::new(Message { parts, ..earlier });
        let id = QuestionId::issue(&task("t"), 9);
        assert_eq!(QuestionId::in_message(&task("t"), &quoted.with_question_id(id, None)), Some(id));
    }

    #[test]
    fn only_permission_questions_name_an_approver_and_agents_cannot() {
        let id = QuestionId::issue(&task("t"), 3);
        let data = |text: &str| Part::from(Content::Data(Json::parse(text).unwrap()));
        for (parts, approver, expected) in [
            (vec![data(r#"{"kind":"question","type":"permission"}"#)], Some("ops"), Some("ops")),
            (vec![data(r#"{"kind":"question","type":"permission","approver":"me"}"#)], Some("ops"), Some("ops")),
            (vec![data(r#"{"kind":"question","type":"permission","approver":"me"}"#)], None, None),
            (vec![data(r#"{"kind":"question","type":"input"}"#)], Some("ops"), None),
            (vec![data(r#"{"kind":"question","approver":"me"}"#)], Some("ops"), None),
            (vec![Part::text("May I?")], Some("ops"), None),
        ] {
            let asked = Arc::new(Message::new(MessageId::parse("m").unwrap(), Role::Agent, parts));
            let (shown, was) = (asked.clone().with_question_id(id, approver), asked);
            assert_eq!(shown.approver().as_deref(), expected, "{was:?}");
            assert_eq!(QuestionId::in_message(&task("t"), &shown), Some(id));
            assert_eq!(shown.text().contains("the scope ops"), expected.is_some(), "the owner reads who must answer");
        }
    }
}
