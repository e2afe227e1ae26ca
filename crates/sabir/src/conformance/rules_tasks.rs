//! Messages and the tasks that they make: the answer to a send, reading the task, its history and its context.

use std::time::{Duration, Instant};

use sabir_model::{ContextId, Delivery, State, Task, TaskId};
use sabir_outbound::DialError;
use sabir_wire::{PeerErrorKind, PeerResponse, ProtocolVersion};
use serde_json::Value;

use super::calls::{self, Place};
use super::evidence::Evidence;
use super::probe::Probe;
use super::reading::{Asked, Reading, context_of};
use super::rule::{Level, Rule, Sections, Subject};
use super::scene::KnownTask;

pub const RULES: &[&Rule] =
    &[&ANSWER, &WRAPPED, &BLOCKING, &CONTEXT, &CONTEXT_KEPT, &UNIQUE_IDS, &GET, &HISTORY_LIMIT, &HISTORY_ZERO];

pub static ANSWER: Rule = Rule {
    id: "send.answer",
    level: Level::Error,
    subject: Subject::Interface,
    sections: Sections::all("§3.1.1", "§7.1", "§7.1"),
    says: "a message is answered with a task or with a message (in 0.1 always with a task)",
    remedy: "answer a send with what became of it; what the agent cannot do is a task in state failed or rejected",
};
pub static WRAPPED: Rule = Rule {
    id: "send.result",
    level: Level::Error,
    subject: Subject::Interface,
    sections: Sections::since_v1("§9.4.1, §11.3.1"),
    says: "the result of a send is an object with one member, task or message",
    remedy: "wrap the task: {\"task\": {…}}; only GetTask and CancelTask answer with the bare task",
};
pub static BLOCKING: Rule = Rule {
    id: "send.blocking",
    level: Level::Error,
    subject: Subject::Interface,
    sections: Sections::since_v02("§3.2.2", "§7.1.1"),
    says: "a send waits until the task is finished or needs its caller, unless the client asks for an answer at once",
    remedy: "answer when the task is in a terminal or an interrupted state; only returnImmediately (0.3: blocking false) changes that",
};
pub static CONTEXT: Rule = Rule {
    id: "task.context",
    level: Level::Error,
    subject: Subject::Interface,
    sections: Sections::since_v02("§3.4.1", "§6.1"),
    says: "a task shows the contextId that it belongs to",
    remedy: "make a contextId for a message that names none, and show it in every task, message and event",
};
pub static CONTEXT_KEPT: Rule = Rule {
    id: "task.context-kept",
    level: Level::Error,
    subject: Subject::Interface,
    sections: Sections::since_v1("§3.4.1"),
    says: "a contextId that a client sends is used or refused, and never replaced by another one",
    remedy: "start the new task in the context that the message names",
};
pub static UNIQUE_IDS: Rule = Rule {
    id: "task.unique-id",
    level: Level::Error,
    subject: Subject::Interface,
    sections: Sections::since_v02("§3.4.2", "§6.1"),
    says: "each new task gets an id of its own",
    remedy: "make a new id for every message that names no task",
};
pub static GET: Rule = Rule {
    id: "get.task",
    level: Level::Error,
    subject: Subject::Interface,
    sections: Sections::all("§3.1.3", "§7.3", "§7.3"),
    says: "a task can be read by its id, and shows what the send has shown: state, context and artifacts",
    remedy: "store tasks before they are answered, and answer sends and gets from the same place",
};
pub static HISTORY_LIMIT: Rule = Rule {
    id: "history.limit",
    level: Level::Error,
    subject: Subject::Interface,
    sections: Sections::since_v02("§3.2.4", "§7.3.1"),
    says: "with historyLength n a task shows at most the n most recent messages",
    remedy: "cut the history to the last historyLength messages, in every call that takes it",
};
pub static HISTORY_ZERO: Rule = Rule {
    id: "history.zero",
    level: Level::Error,
    subject: Subject::Interface,
    sections: Sections::since_v1("§3.2.4"),
    says: "with historyLength 0 a task shows no history",
    remedy: "tell 0 from a missing value: 0 means no messages, missing means the server's default",
};

/// How the first message was taken.
pub enum Begun {
    /// The server answers.
    Answers,
    /// It wants credentials.
    NeedsCredentials(String),
    /// Nothing can be said: the address is not called, or the agent is too slow.
    NotTried(String),
    /// There is nothing at this URL that speaks this version.
    Dead(String, Evidence),
}

/// Sends the first message, and finds out whether there is anybody.
pub async fn begin(probe: &Probe<'_>, text: &str) -> Begun {
    let call = calls::send(probe.tenant(), text, new_place(probe), Delivery::WhenSettled);
    let Some(asked) = probe.ask(&call).await else {
        return Begun::Dead("the call cannot be written in this version".to_owned(), Evidence::new("", ""));
    };
    let words = asked.words(probe.protocol());
    match &asked.reading {
        Reading::NoAnswer(error @ DialError::Refused(_)) => {
            return Begun::NotTried(format!("{error}; check it by its own URL"));
        }
        // An agent may need longer than this check waits.
        Reading::NoAnswer(DialError::Timeout | DialError::BodyTimeout { .. }) => {
            let seconds = probe.patience().as_secs();
            return Begun::NotTried(format!(
                "the message was not answered within {seconds} s; --timeout gives it more"
            ));
        }
        Reading::NoAnswer(_) => return Begun::Dead(format!("the interface gives {words}"), asked.evidence()),
        Reading::Refused(error) if error.asks_for_credentials() => {
            let status = match error.grpc_code() {
                code if probe.is_grpc() && !code.is_empty() => format!("gRPC {code}"),
                _ => format!("HTTP {}", error.status),
            };
            return Begun::NeedsCredentials(format!("the server asks for credentials ({status})"));
        }
        Reading::Refused(error) if error.kind == PeerErrorKind::MethodNotFound || error.status == 405 => {
            let fault = format!("a message is answered with {words}: {} is not spoken here", probe.protocol());
            return Begun::Dead(fault, asked.evidence());
        }
        Reading::Refused(error) if error.is_foreign(probe.protocol()) => {
            return Begun::Dead(format!("a message is answered with {words}, and nothing of A2A"), asked.evidence());
        }
        Reading::Refused(error) if error.kind == PeerErrorKind::Version => {
            let fault = format!("the interface refuses version {} with {words}", probe.version().number());
            return Begun::Dead(fault, asked.evidence());
        }
        Reading::Unreadable(_) if asked.exchange.answer.as_ref().is_ok_and(|answered| answered.json().is_none()) => {
            return Begun::Dead(format!("a message is answered with {words}"), asked.evidence());
        }
        _ => {}
    }
    judge_answer(probe, &asked).await;
    Begun::Answers
}

/// What else is known by tasks that the default message makes.
pub async fn check(probe: &Probe<'_>, text: &str) {
    let ledger = &probe.ledger;
    let Some(finished) = probe.scene.finished() else {
        let why = "the agent has finished no task on the message of --message";
        return ledger.skip_all(&[&GET, &CONTEXT_KEPT, &UNIQUE_IDS, &HISTORY_LIMIT, &HISTORY_ZERO], why);
    };
    check_second_task(probe, text, &finished).await;
}

async fn judge_answer(probe: &Probe<'_>, asked: &Asked) {
    let ledger = &probe.ledger;
    let evidence = asked.evidence();
    let Some(result) = asked.result() else {
        ledger.fail(&ANSWER, format!("a message is answered with {}", asked.words(probe.protocol())), &evidence);
        return ledger.skip_all(&[&WRAPPED, &BLOCKING, &CONTEXT], "the message got no result");
    };
    let is_wrapped = ["task", "message"].iter().any(|name| result.json[*name].is_object());
    ledger.judge(&WRAPPED, (!is_wrapped).then(|| "the result has neither task nor message".to_owned()), &evidence);
    match &result.response {
        PeerResponse::Task(task) => {
            ledger.pass(&ANSWER);
            judge_context(probe, asked.context(), &evidence);
            judge_blocking(probe, task, &evidence);
            judge_get(probe, asked, task).await;
        }
        PeerResponse::Message(_) if probe.version() == ProtocolVersion::V0_1 => {
            ledger.fail(&ANSWER, "a message is answered with a message, not with a task", &evidence);
        }
        PeerResponse::Message(_) => {
            ledger.pass(&ANSWER);
            let message = result.json.get("message").unwrap_or(&result.json);
            judge_context(probe, context_of(message), &evidence);
            ledger.skip(&BLOCKING, "the agent answers with a message, without a task");
        }
        _ => ledger.fail(&ANSWER, "a message is answered with something else than a task or a message", &evidence),
    }
}

fn judge_context(probe: &Probe<'_>, context: Option<&str>, evidence: &Evidence) {
    if context.is_some() {
        return probe.ledger.pass(&CONTEXT);
    }
    // 1.0 lets a server do without contexts, but then its events have none either, where they are required.
    let level = if probe.is_v1() { Level::Warning } else { Level::Error };
    probe.ledger.fail_as(level, &CONTEXT, "the answer has no contextId", evidence);
}

fn judge_blocking(probe: &Probe<'_>, task: &Task, evidence: &Evidence) {
    let state = task.status.state;
    if state.is_terminal() || state.is_waiting() {
        return probe.ledger.pass(&BLOCKING);
    }
    // 0.3 lets a server refuse to wait.
    let level = if probe.is_v1() { Level::Error } else { Level::Warning };
    let fault = format!("the send was answered while the task was {}", state_words(state));
    probe.ledger.fail_as(level, &BLOCKING, fault, evidence);
}

/// Reads the task again, and keeps it for further rules once it is finished.
async fn judge_get(probe: &Probe<'_>, sent: &Asked, task: &Task) {
    let ledger = &probe.ledger;
    let has_id = sent.task_json().is_some_and(|json| json["id"].is_string());
    if !has_id {
        return ledger.skip(&GET, "the task has no id");
    }
    let is_settled = task.status.state.is_terminal() || task.status.state.is_waiting();
    let got = match settle(probe, &task.id).await {
        Ok(got) => got,
        Err(got) => {
            if let Some(got) = got {
                let fault = format!("the task of a send is answered with {}", got.words(probe.protocol()));
                ledger.fail(&GET, fault, &got.evidence());
            }
            // What the send has shown is enough for most rules.
            return remember(probe, task, sent.context());
        }
    };
    let Some(read) = got.task() else { return };
    let mut differences = Vec::new();
    if read.id != task.id {
        differences.push(format!("it has the id {} instead of {}", read.id, task.id));
    }
    if let (Some(now), Some(before)) = (got.context(), sent.context())
        && now != before
    {
        differences.push(format!("it has the contextId {now} instead of {before}"));
    }
    if is_settled && read.status.state != task.status.state {
        let (now, before) = (state_words(read.status.state), state_words(task.status.state));
        differences.push(format!("it is {now}, and was {before}"));
    }
    if is_settled && artifact_texts(read) != artifact_texts(task) {
        differences.push("it has other artifacts".to_owned());
    }
    let fault = (!differences.is_empty()).then(|| format!("the task is read as another: {}", differences.join(", ")));
    ledger.judge(&GET, fault, &got.evidence());
    remember(probe, read, sent.context());
}

fn remember(probe: &Probe<'_>, task: &Task, context: Option<&str>) {
    let known = KnownTask { id: task.id.clone(), context: context.map(str::to_owned) };
    match task.status.state {
        state if state.is_terminal() => *probe.scene.finished.borrow_mut() = Some(known),
        state if state.is_waiting() => *probe.scene.waiting.borrow_mut() = Some(known),
        _ => {}
    }
}

/// A second task in the context of the first.
async fn check_second_task(probe: &Probe<'_>, text: &str, first: &KnownTask) {
    let ledger = &probe.ledger;
    let context = first.context.as_deref().and_then(|context| ContextId::parse(context).ok());
    let place = Place { context: context.clone(), ..new_place(probe) };
    let call = calls::send(probe.tenant(), text, place, Delivery::WhenSettled);
    let Some(asked) = probe.ask(&call).await else { return };
    let evidence = asked.evidence();
    let Some(task) = asked.task() else {
        let why = match asked.refusal() {
            Some(_) => "the server refuses a message that names a context",
            None => "the second message made no task",
        };
        return ledger.skip_all(&[&CONTEXT_KEPT, &UNIQUE_IDS], why);
    };
    let is_same = task.id == first.id;
    ledger.judge(&UNIQUE_IDS, is_same.then(|| format!("two messages made a task of the id {}", task.id)), &evidence);
    match (context, asked.context()) {
        (Some(sent), Some(shown)) => {
            let is_other = shown != sent.as_str();
            let fault = is_other.then(|| format!("the message names the context {sent}, and the task is in {shown}"));
            ledger.judge(&CONTEXT_KEPT, fault, &evidence);
        }
        _ => ledger.skip(&CONTEXT_KEPT, "the server names no contexts"),
    }
    if !task.status.state.is_terminal() {
        let _ = settle(probe, &task.id).await;
    }
}

/// Asks for less history than a task has. `task` is the one with the longest history.
pub async fn check_history(probe: &Probe<'_>, task: &KnownTask) {
    let ledger = &probe.ledger;
    let rules: &[&Rule] = &[&HISTORY_LIMIT, &HISTORY_ZERO];
    let Some(whole) = probe.ask(&calls::get(probe.tenant(), &task.id, None)).await else { return };
    let all = history_length(&whole);
    if whole.task().is_none() {
        return ledger.skip_all(rules, "the task cannot be read");
    }
    if all == 0 {
        return ledger.skip_all(rules, "the server shows no history");
    }
    if let Some(none) = probe.ask(&calls::get(probe.tenant(), &task.id, Some(0))).await
        && none.task().is_some()
    {
        let shown = history_length(&none);
        let fault = (shown > 0).then(|| format!("with historyLength 0 there are {shown} messages"));
        ledger.judge(&HISTORY_ZERO, fault, &none.evidence());
    }
    if all < 2 {
        return ledger.skip(&HISTORY_LIMIT, "no task has more than one message in its history; --ask makes one");
    }
    if let Some(one) = probe.ask(&calls::get(probe.tenant(), &task.id, Some(1))).await
        && one.task().is_some()
    {
        let shown = history_length(&one);
        let is_newest = last_message(&one) == last_message(&whole);
        let fault = match (shown, is_newest) {
            (0 | 1, true) | (0, false) => None,
            (1, false) => Some("with historyLength 1 the message is not the most recent one".to_owned()),
            (shown, _) => Some(format!("with historyLength 1 there are {shown} messages")),
        };
        ledger.judge(&HISTORY_LIMIT, fault, &one.evidence());
    }
}

/// The place of a message that makes a new task: in 0.1 the client names it.
pub fn new_place(probe: &Probe<'_>) -> Place {
    let task = (probe.version() == ProtocolVersion::V0_1).then(calls::new_task_id);
    Place { task, context: None }
}

/// Reads a task until it is finished or waits for its caller. An error is the last answer, if there was one: it is no task, or
/// the time is over.
pub async fn settle(probe: &Probe<'_>, id: &TaskId) -> Result<Asked, Option<Asked>> {
    let end = Instant::now() + probe.patience();
    let mut pause = Duration::from_millis(50);
    loop {
        let Some(got) = probe.ask(&calls::get(probe.tenant(), id, None)).await else { return Err(None) };
        match got.task().map(|task| task.status.state) {
            None => return Err(Some(got)),
            Some(state) if state.is_terminal() || state.is_waiting() => return Ok(got),
            Some(_) if Instant::now() > end => return Err(Some(got)),
            Some(_) => {}
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(Duration::from_secs(2));
    }
}

/// All text of all artifacts, by artifact.
pub fn artifact_texts(task: &Task) -> Vec<String> {
    let text = |artifact: &sabir_model::Artifact| artifact.parts.iter().filter_map(|part| part.as_text()).collect();
    task.artifacts.iter().map(|artifact| text(artifact)).collect()
}

pub fn state_words(state: State) -> &'static str {
    match state {
        State::Submitted => "submitted",
        State::Working => "working",
        State::InputRequired => "input-required",
        State::AuthRequired => "auth-required",
        State::Completed => "completed",
        State::Failed => "failed",
        State::Canceled => "canceled",
        State::Rejected => "rejected",
    }
}

fn history_length(asked: &Asked) -> usize {
    asked.task_json().and_then(|task| task["history"].as_array()).map_or(0, Vec::len)
}

fn last_message(asked: &Asked) -> Option<&Value> {
    asked.task_json()?["history"].as_array()?.last()
}
