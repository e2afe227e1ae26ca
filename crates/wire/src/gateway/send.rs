//! The body of a submission: a text, a message, decisions, or only the context or task to continue.

use std::collections::HashMap;

use sabir_model::{
    Addressee, Content, ContextId, Delivery, Direct, Error, IdempotencyKey, IncomingMessage, Json, Message, OnFinished,
    Part, QuestionAnswer, Role, Send, TaskId, Verdict,
};
use serde::Deserialize;

use super::BIRTH;
use crate::json;
use crate::wire_types::{RawJson, Text, Violations, object};

pub(super) struct Submission {
    pub(super) send: Box<Send>,
    /// The targets of the decisions, if there are decisions and no text: they answer the run that waits.
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
    message: Option<SubmittedMessage<'a>>,
    decisions: Option<Vec<RawJson<'a>>>,
}

#[derive(Debug, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase")]
struct SubmittedMessage<'a> {
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
    result: Option<RawJson<'a>>,
}

object! { read Body<'a>; read SubmittedMessage<'a>; read ToolCallDecision<'a> }

pub(super) fn read(text: &str) -> Result<Submission, Error> {
    let body = read_body(text)?;
    let mut violations = Violations::default();
    let context = one_id("contextId", [body.context_id, body.snake_context_id], ContextId::parse, &mut violations);
    let task = one_id("taskId", [body.task_id, body.snake_task_id], TaskId::parse, &mut violations);
    let mut parts: Vec<Part> = body.input.map(|input| Part::text(input.into_string())).into_iter().collect();
    // An input always has the role of the user, whatever comes with it.
    let is_input = !parts.is_empty();
    let mut role = Speaker::User;
    if let Some(message) = body.message {
        role = Speaker::of(message.role.as_ref());
        match message.content {
            Some(content) => parts.push(Part { metadata: role.metadata(), ..Part::text(content.into_string()) }),
            None => violations.add("message.content", "is required"),
        }
    }
    let decisions = read_decisions(body.decisions.as_deref().unwrap_or_default(), &mut violations);
    violations.finish(Some(()))?;

    let is_decision = parts.is_empty() && !decisions.is_empty();
    if is_decision && task.is_none() {
        return Err(Error::InvalidRequest("decisions need the taskId of the run that waits for them".to_owned()));
    }
    if parts.is_empty() && decisions.is_empty() && context.is_none() && task.is_none() {
        let wanted = "give at least one of input, message, decisions, contextId and taskId";
        return Err(Error::InvalidRequest(wanted.to_owned()));
    }
    let answered = task.as_ref().filter(|_| is_decision);
    let idempotency = answered.and_then(|task| idempotency_key(task, &decisions));
    let (mut targets, mut further) = (Vec::new(), Vec::new());
    if is_decision {
        // Decisions about different targets are different answers.
        let answers = TargetAnswer::by_target(decisions);
        targets.extend(answers.iter().map(|answer| answer.target.clone()));
        let mut answers = answers.into_iter().map(TargetAnswer::into_parts);
        parts = answers.next().unwrap_or_default();
        further.extend(answers);
    } else {
        parts.extend(decisions.into_iter().map(|decision| Content::Data(decision.data).into()));
    }
    if parts.is_empty() {
        // A message has parts in every dialect.
        parts.push(Part::text(""));
    }
    let role = if role == Speaker::Assistant && !is_input { Role::Agent } else { Role::User };
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
        // A body that is no object has no field to name.
        Error::Invalid(_) if !text.trim_start().starts_with('{') => {
            Error::InvalidRequest("the body must be a JSON object".to_owned())
        }
        error => error,
    })
}

/// An id that has two member names. Blanks around an id do not count, and a blank id counts as missing.
fn one_id<T>(
    name: &str,
    spellings: [Option<Text<'_>>; 2],
    parse: impl FnOnce(String) -> Result<T, sabir_model::InvalidId>,
    violations: &mut Violations,
) -> Option<T> {
    let mut given = spellings.iter().flatten().map(|text| text.as_str().trim()).filter(|text| !text.is_empty());
    let (first, second) = (given.next()?, given.next());
    if second.is_some_and(|second| second != first) {
        violations.add(name, "is given twice, with different values");
        return None;
    }
    parse(first.to_owned()).map_err(|why| violations.add(name, &why.to_string())).ok()
}

/// The role of a text. The model has one role, user or agent, for a whole message. A text with another role than its
/// message, or with the role `system`, has its role in the metadata of its part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Speaker {
    User,
    Assistant,
    System,
}

impl Speaker {
    fn of(role: Option<&Text<'_>>) -> Self {
        match role.map(|role| role.as_str().trim()) {
            Some("assistant") => Speaker::Assistant,
            Some("system") => Speaker::System,
            _ => Speaker::User,
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Speaker::User => "user",
            Speaker::Assistant => "assistant",
            Speaker::System => "system",
        }
    }

    fn metadata(self) -> Option<Json> {
        let text = match self {
            Speaker::User => return None,
            Speaker::Assistant => ASSISTANT,
            Speaker::System => SYSTEM,
        };
        Some(json::raw(text.to_owned()).into())
    }

    /// The role of this part of a message.
    pub(super) fn by(message: &Message, part: &Part) -> Self {
        match (part.metadata.as_ref().map(Json::as_str), message.role) {
            (Some(SYSTEM), _) => Speaker::System,
            (Some(ASSISTANT), _) | (_, Role::Agent) => Speaker::Assistant,
            (_, Role::User) => Speaker::User,
        }
    }
}

const ASSISTANT: &str = r#"{"role":"assistant"}"#;
const SYSTEM: &str = r#"{"role":"system"}"#;

/// One decision of a submission.
struct Decision {
    /// What the decision is about.
    target: String,
    /// The id that the client gave to the decision.
    id: Option<String>,
    /// For agents that read text.
    text: String,
    /// As it was sent.
    data: Json,
}

fn read_decisions(decisions: &[RawJson<'_>], violations: &mut Violations) -> Vec<Decision> {
    let mut read = Vec::new();
    for (at, raw) in decisions.iter().enumerate() {
        let place = format!("decisions[{at}]");
        let Ok(decision) = json::parse::<ToolCallDecision<'_>>(raw.as_str()) else {
            violations.add(&place, "must be an object with target_id, decision_id, action and result");
            continue;
        };
        let target = decision.target_id.map(Text::into_string).filter(|target| !target.trim().is_empty());
        if target.is_none() {
            violations.add(&format!("{place}.target_id"), "is required");
        }
        if !matches!(decision.action.as_ref().map(Text::as_str), Some("resume" | "cancel")) {
            violations.add(&format!("{place}.action"), "must be resume or cancel");
            continue;
        }
        let data = Json::from(raw.clone());
        let text = text_of(&data, decision.result.as_ref().map(RawJson::as_str));
        let id = decision.decision_id.map(Text::into_string).filter(|id| !id.is_empty());
        let Some(target) = target else { continue };
        read.push(Decision { target, id, text, data });
    }
    read
}

const YES: &str = "yes";
const NO: &str = "no";

/// The decision as text. Only a clear approval is a yes; a result that is a text is the answer itself.
fn text_of(decision: &Json, result: Option<&str>) -> String {
    match QuestionAnswer::verdict_of(decision) {
        Verdict::Yes => YES.to_owned(),
        Verdict::Always => "always".to_owned(),
        Verdict::No | Verdict::Never => NO.to_owned(),
        Verdict::None => result.and_then(|text| json::parse::<String>(text).ok()).unwrap_or_else(|| NO.to_owned()),
    }
}

/// All decisions about one target.
struct TargetAnswer {
    target: String,
    /// For agents that read text: what the decisions say, or a no where they differ.
    text: String,
    decisions: Vec<Part>,
}

impl TargetAnswer {
    /// One answer for each target, in the order in which they are named.
    fn by_target(decisions: Vec<Decision>) -> Vec<Self> {
        let mut answers: Vec<Self> = Vec::new();
        let mut places: HashMap<String, usize> = HashMap::new();
        for Decision { target, text, data, .. } in decisions {
            let place = *places.entry(target.clone()).or_insert(answers.len());
            let data = Part::from(Content::Data(data));
            match answers.get_mut(place) {
                Some(answer) => {
                    if answer.text != text {
                        answer.text = NO.to_owned();
                    }
                    answer.decisions.push(data);
                }
                None => answers.push(TargetAnswer { target, text, decisions: vec![data] }),
            }
        }
        answers
    }

    fn into_parts(self) -> Vec<Part> {
        [vec![Part::text(self.text)], self.decisions].concat()
    }
}

/// The idempotency key of decisions with ids: the same decisions, sent again, are taken once.
fn idempotency_key(task: &TaskId, decisions: &[Decision]) -> Option<IdempotencyKey> {
    let id = |decision: &Decision| Some((decision.target.clone(), decision.id.clone()?));
    let ids: Vec<(String, String)> = decisions.iter().map(id).collect::<Option<_>>()?;
    IdempotencyKey::parse(format!("decisions of {task}: {ids:?}")).ok()
}
