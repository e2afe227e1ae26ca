//! What is submitted: a text, a message, decisions, or just a place to go on.

use std::collections::HashMap;

use sabir_model::{
    Addressee, Content, ContextId, Delivery, Direct, Error, IdempotencyKey, IncomingMessage, Json, Message, OnFinished,
    Part, QuestionAnswer, Role, Send, TaskId, Verdict,
};
use serde::Deserialize;

use super::BIRTH;
use crate::json;
use crate::spelling::{Carried, Problems, Text, object};

pub(super) struct Submission {
    pub(super) send: Box<Send>,
    /// What is decided about, if there are decisions and no text: they answer the run that waits.
    pub(super) targets: Option<Vec<String>>,
}

#[derive(Debug, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase")]
struct Body<'a> {
    #[serde(borrow)]
    context_id: Option<Text<'a>>,
    #[serde(rename = "context_id")]
    snake_context_id: Option<Text<'a>>,
    task_id: Option<Text<'a>>,
    #[serde(rename = "task_id")]
    snake_task_id: Option<Text<'a>>,
    input: Option<Text<'a>>,
    message: Option<Said<'a>>,
    decisions: Option<Vec<Carried<'a>>>,
}

#[derive(Debug, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase")]
struct Said<'a> {
    #[serde(borrow)]
    role: Option<Text<'a>>,
    content: Option<Text<'a>>,
}

#[derive(Debug, Deserialize)]
#[serde(remote = "Self")]
struct ToolCallDecision<'a> {
    #[serde(borrow, alias = "targetId")]
    target_id: Option<Text<'a>>,
    #[serde(alias = "decisionId")]
    decision_id: Option<Text<'a>>,
    action: Option<Text<'a>>,
    result: Option<Carried<'a>>,
}

object! { read Body<'a>; read Said<'a>; read ToolCallDecision<'a> }

pub(super) fn read(text: &str) -> Result<Submission, Error> {
    let body = read_body(text)?;
    let mut problems = Problems::default();
    let context = one_id("contextId", [body.context_id, body.snake_context_id], ContextId::parse, &mut problems);
    let task = one_id("taskId", [body.task_id, body.snake_task_id], TaskId::parse, &mut problems);
    let mut parts: Vec<Part> = body.input.map(|input| Part::text(input.into_string())).into_iter().collect();
    // Who gives an input speaks as a user, whatever comes with it.
    let is_input = !parts.is_empty();
    let mut role = Spoken::User;
    if let Some(said) = body.message {
        role = Spoken::of(said.role.as_ref());
        match said.content {
            Some(content) => parts.push(Part { metadata: role.note(), ..Part::text(content.into_string()) }),
            None => problems.add("message.content", "is required"),
        }
    }
    let decisions = read_decisions(body.decisions.as_deref().unwrap_or_default(), &mut problems);
    problems.or(Some(()))?;

    let is_decision = parts.is_empty() && !decisions.is_empty();
    if is_decision && task.is_none() {
        return Err(Error::InvalidRequest("decisions need the taskId of the run that waits for them".to_owned()));
    }
    if parts.is_empty() && decisions.is_empty() && context.is_none() && task.is_none() {
        let wanted = "give at least one of input, message, decisions, contextId and taskId";
        return Err(Error::InvalidRequest(wanted.to_owned()));
    }
    let answered = task.as_ref().filter(|_| is_decision);
    let idempotency = answered.and_then(|task| key_of(task, &decisions));
    let (mut targets, mut further) = (Vec::new(), Vec::new());
    if is_decision {
        // Decisions about different things are different answers.
        let answers = Answer::by_target(decisions);
        targets.extend(answers.iter().map(|answer| answer.target.clone()));
        let mut answers = answers.into_iter().map(Answer::into_parts);
        parts = answers.next().unwrap_or_default();
        further.extend(answers);
    } else {
        parts.extend(decisions.into_iter().map(|decision| Content::Data(decision.data).into()));
    }
    if parts.is_empty() {
        // A message has parts in every dialect.
        parts.push(Part::text(""));
    }
    let role = if role == Spoken::Assistant && !is_input { Role::Agent } else { Role::User };
    let message = IncomingMessage { task, context, ..IncomingMessage::new(None, role, parts) };
    let send = Send {
        delivery: Delivery::Immediately,
        idempotency,
        on_finished: OnFinished::StartTask,
        addressee: if is_decision { Addressee::Waiting } else { Addressee::Any },
        direct: Direct::StoredTask,
        further,
        ..Send::new(message, BIRTH)
    };
    Ok(Submission { send: Box::new(send), targets: is_decision.then_some(targets) })
}

fn read_body(text: &str) -> Result<Body<'_>, Error> {
    json::read(text).map_err(|error| match error {
        // What is no object has no field to blame.
        Error::Invalid(_) if !text.trim_start().starts_with('{') => {
            Error::InvalidRequest("the body must be a JSON object".to_owned())
        }
        error => error,
    })
}

/// Two names of the same thing. Blanks around an id do not count, and a blank id is none.
fn one_id<T>(
    name: &str,
    spellings: [Option<Text<'_>>; 2],
    parse: impl FnOnce(String) -> Result<T, sabir_model::InvalidId>,
    problems: &mut Problems,
) -> Option<T> {
    let mut given = spellings.iter().flatten().map(|text| text.as_str().trim()).filter(|text| !text.is_empty());
    let (first, second) = (given.next()?, given.next());
    if second.is_some_and(|second| second != first) {
        problems.add(name, "is given twice, with different values");
        return None;
    }
    parse(first.to_owned()).map_err(|why| problems.add(name, &why.to_string())).ok()
}

/// Who is said to speak. The model has users and agents, and one of them for a whole message, so whoever is none of
/// the two or speaks in another's message is noted on what they say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Spoken {
    User,
    Assistant,
    System,
}

impl Spoken {
    fn of(role: Option<&Text<'_>>) -> Self {
        match role.map(|role| role.as_str().trim()) {
            Some("assistant") => Spoken::Assistant,
            Some("system") => Spoken::System,
            _ => Spoken::User,
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Spoken::User => "user",
            Spoken::Assistant => "assistant",
            Spoken::System => "system",
        }
    }

    fn note(self) -> Option<Json> {
        let text = match self {
            Spoken::User => return None,
            Spoken::Assistant => ASSISTANT,
            Spoken::System => SYSTEM,
        };
        Some(json::carry(text.to_owned()).into())
    }

    /// Who says this part of a message.
    pub(super) fn by(message: &Message, part: &Part) -> Self {
        match (part.metadata.as_ref().map(Json::as_str), message.role) {
            (Some(SYSTEM), _) => Spoken::System,
            (Some(ASSISTANT), _) | (_, Role::Agent) => Spoken::Assistant,
            (_, Role::User) => Spoken::User,
        }
    }
}

const ASSISTANT: &str = r#"{"role":"assistant"}"#;
const SYSTEM: &str = r#"{"role":"system"}"#;

/// One decision of a submission.
struct Decision {
    /// What it is about.
    target: String,
    /// Its own name.
    id: Option<String>,
    /// As an agent that reads text understands it.
    words: String,
    /// As it was sent.
    data: Json,
}

fn read_decisions(decisions: &[Carried<'_>], problems: &mut Problems) -> Vec<Decision> {
    let mut read = Vec::new();
    for (at, carried) in decisions.iter().enumerate() {
        let place = format!("decisions[{at}]");
        let Ok(decision) = json::parse::<ToolCallDecision<'_>>(carried.as_str()) else {
            problems.add(&place, "must be an object with target_id, decision_id, action and result");
            continue;
        };
        let target = decision.target_id.map(Text::into_string).filter(|target| !target.trim().is_empty());
        if target.is_none() {
            problems.add(&format!("{place}.target_id"), "is required");
        }
        if !matches!(decision.action.as_ref().map(Text::as_str), Some("resume" | "cancel")) {
            problems.add(&format!("{place}.action"), "must be resume or cancel");
            continue;
        }
        let data = Json::from(carried.clone());
        let words = words_of(&data, decision.result.as_ref().map(Carried::as_str));
        let id = decision.decision_id.map(Text::into_string).filter(|id| !id.is_empty());
        let Some(target) = target else { continue };
        read.push(Decision { target, id, words, data });
    }
    read
}

const YES: &str = "yes";
const NO: &str = "no";

/// What a resumed call is told in words. Only what clearly approves is a yes; a text is an answer of its own.
fn words_of(decision: &Json, result: Option<&str>) -> String {
    match QuestionAnswer::verdict_of(decision) {
        Verdict::Yes => YES.to_owned(),
        Verdict::Always => "always".to_owned(),
        Verdict::No | Verdict::Never => NO.to_owned(),
        Verdict::None => result.and_then(|text| json::parse::<String>(text).ok()).unwrap_or_else(|| NO.to_owned()),
    }
}

/// What is decided about one target.
struct Answer {
    target: String,
    /// As an agent that reads text understands all of it: what it says, or a no where decisions differ.
    words: String,
    decisions: Vec<Part>,
}

impl Answer {
    /// One answer for each target, in the order in which they are named.
    fn by_target(decisions: Vec<Decision>) -> Vec<Self> {
        let mut answers: Vec<Self> = Vec::new();
        let mut places: HashMap<String, usize> = HashMap::new();
        for Decision { target, words, data, .. } in decisions {
            let place = *places.entry(target.clone()).or_insert(answers.len());
            let data = Part::from(Content::Data(data));
            match answers.get_mut(place) {
                Some(answer) => {
                    if answer.words != words {
                        answer.words = NO.to_owned();
                    }
                    answer.decisions.push(data);
                }
                None => answers.push(Answer { target, words, decisions: vec![data] }),
            }
        }
        answers
    }

    fn into_parts(self) -> Vec<Part> {
        [vec![Part::text(self.words)], self.decisions].concat()
    }
}

/// Decisions that are sent again are the same decisions.
fn key_of(task: &TaskId, decisions: &[Decision]) -> Option<IdempotencyKey> {
    let id = |decision: &Decision| Some((decision.target.clone(), decision.id.clone()?));
    let ids: Vec<(String, String)> = decisions.iter().map(id).collect::<Option<_>>()?;
    IdempotencyKey::parse(format!("decisions of {task}: {ids:?}")).ok()
}
