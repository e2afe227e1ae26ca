//! Tasks that wait for their caller, and the messages that continue them.

use sabir_model::{ContextId, Delivery};
use sabir_wire::PeerResponse;

use super::calls::{self, Place};
use super::probe::Probe;
use super::reading::Reading;
use super::rule::{Level, Rule, Sections, Subject};
use super::rules_tasks::{new_place, settle};
use super::scene::KnownTask;

pub const RULES: &[&Rule] = &[&CONTEXT_MISMATCH, &CONTINUED];

pub static CONTEXT_MISMATCH: Rule = Rule {
    id: "errors.context-mismatch",
    level: Level::Error,
    subject: Subject::Interface,
    sections: Sections::since_v1("§3.4.3"),
    says: "a message whose contextId is not that of its task is refused",
    remedy: "compare both before the message is taken; SDKs answer with -32602",
};
pub static CONTINUED: Rule = Rule {
    id: "task.continued",
    level: Level::Error,
    subject: Subject::Interface,
    sections: Sections::all("§3.4.3", "§7.1, §9.4", "§7.1"),
    says: "a message with the taskId of a waiting task continues this task, in its context",
    remedy: "take the message into the task that it names, and answer with that task",
};

const NOBODY_ASKS: &str = "no task waits for an answer; name a message on which the agent asks with --ask";

/// Makes the agent ask, so that there is a task that waits.
pub async fn begin(probe: &Probe<'_>, ask: Option<&str>) {
    let Some(text) = ask.filter(|_| probe.scene.waiting().is_none()) else { return };
    let call = calls::send(probe.tenant(), text, new_place(probe), Delivery::WhenSettled);
    let Some(asked) = probe.ask(&call).await else { return };
    let has_id = asked.task_json().is_some_and(|json| json["id"].is_string());
    let Some(task) = asked.task().filter(|_| has_id) else { return };
    let mut state = task.status.state;
    if !state.is_terminal()
        && !state.is_waiting()
        && let Ok(settled) = settle(probe, &task.id).await
        && let Some(settled) = settled.task()
    {
        state = settled.status.state;
    }
    if state.is_waiting() {
        let context = asked.context().map(str::to_owned);
        *probe.scene.waiting.borrow_mut() = Some(KnownTask { id: task.id.clone(), context });
    }
}

/// Answers the question, wrongly and rightly.
pub async fn check(probe: &Probe<'_>, message: &str) {
    let Some(waiting) = probe.scene.waiting() else {
        return probe.ledger.skip_all(&[&CONTEXT_MISMATCH, &CONTINUED], NOBODY_ASKS);
    };
    check_mismatch(probe, message, &waiting).await;
    check_continued(probe, message, &waiting).await;
}

async fn check_mismatch(probe: &Probe<'_>, message: &str, waiting: &KnownTask) {
    if !CONTEXT_MISMATCH.is_for(probe.protocol()) {
        return;
    }
    let other = ContextId::parse(calls::new_id()).expect("a UUID is an id");
    let place = Place { task: Some(waiting.id.clone()), context: Some(other) };
    let call = calls::send(probe.tenant(), message, place, Delivery::WhenSettled);
    let Some(asked) = probe.ask(&call).await else { return };
    let fault = match &asked.reading {
        // No error is named for it.
        Reading::Refused(error) => {
            probe.scene.refused("a message to a task with another context", error.kind);
            None
        }
        Reading::Result(_) => Some("a message to a task is accepted although it names another context".to_owned()),
        _ => Some(format!("a message with another context gets {}", asked.words(probe.protocol()))),
    };
    probe.ledger.judge(&CONTEXT_MISMATCH, fault, &asked.evidence());
}

async fn check_continued(probe: &Probe<'_>, message: &str, waiting: &KnownTask) {
    let ledger = &probe.ledger;
    let place = Place { task: Some(waiting.id.clone()), context: None };
    let call = calls::send(probe.tenant(), message, place, Delivery::WhenSettled);
    let Some(asked) = probe.ask(&call).await else { return };
    let evidence = asked.evidence();
    match asked.result().map(|result| &result.response) {
        Some(PeerResponse::Task(task)) => {
            let is_other_context = match (asked.context(), &waiting.context) {
                (Some(now), Some(before)) => now != before,
                _ => false,
            };
            let fault = match (task.id == waiting.id, is_other_context) {
                (true, false) => None,
                (true, true) => Some("the answer is in another context than the task".to_owned()),
                (false, _) => {
                    Some(format!("a message to the task {} is answered with the task {}", waiting.id, task.id))
                }
            };
            ledger.judge(&CONTINUED, fault, &evidence);
        }
        Some(_) => ledger.pass(&CONTINUED),
        // After a mismatch that was accepted the task may be finished.
        None if ledger.has_failed(&CONTEXT_MISMATCH) => ledger.skip(&CONTINUED, "the task was continued already"),
        None => {
            let fault = format!("a message to a waiting task gets {}", asked.words(probe.protocol()));
            ledger.fail(&CONTINUED, fault, &evidence);
        }
    }
    *probe.scene.talkative.borrow_mut() = Some(waiting.clone());
}
