//! Calls that a server must refuse, with the error that is meant for it.

use sabir_model::Delivery;
use sabir_wire::ProtocolVersion;

use super::calls::{self, Place};
use super::probe::Probe;
use super::reading::{Asked, Reading};
use super::rule::{Level, Rule, Sections, Subject};
use super::scene::KnownTask;
use super::wire_error::{Expected, NOT_CANCELABLE, TASK_NOT_FOUND, UNSUPPORTED};

pub const RULES: &[&Rule] = &[&NOT_FOUND, &CANCEL_FINISHED, &MESSAGE_TO_FINISHED, &MESSAGE_TO_UNKNOWN];

pub static NOT_FOUND: Rule = Rule {
    id: "errors.task-not-found",
    level: Level::Error,
    subject: Subject::Interface,
    sections: Sections::all("§5.4, §3.1.3", "§8.2", "§8.2"),
    says: "a task that does not exist is TaskNotFoundError: -32001, in HTTP+JSON 404, in gRPC NOT_FOUND",
    remedy: "answer get and cancel of an unknown id with -32001, or HTTP 404 or NOT_FOUND and the reason TASK_NOT_FOUND",
};
pub static CANCEL_FINISHED: Rule = Rule {
    id: "errors.cancel-finished",
    level: Level::Error,
    subject: Subject::Interface,
    sections: Sections::all("§3.1.5, §5.4", "§7.4, §8.2", "§7.4, §8.2"),
    says: "a finished task cannot be canceled: TaskNotCancelableError, -32002",
    remedy: "refuse to cancel tasks in a terminal state, with -32002 or the reason TASK_NOT_CANCELABLE",
};
pub static MESSAGE_TO_FINISHED: Rule = Rule {
    id: "errors.message-to-finished",
    level: Level::Error,
    subject: Subject::Interface,
    sections: Sections::since_v02("§3.1.1", "§7.1"),
    says: "a finished task takes no messages: UnsupportedOperationError, -32004 (0.3: an error)",
    remedy: "refuse messages whose taskId is that of a finished task; the client starts a new one in the same context",
};
pub static MESSAGE_TO_UNKNOWN: Rule = Rule {
    id: "errors.message-to-unknown",
    level: Level::Error,
    subject: Subject::Interface,
    sections: Sections::since_v02("§3.4.2", "§8.2"),
    says: "a message whose taskId does not exist is TaskNotFoundError: clients cannot choose ids of tasks",
    remedy: "look the taskId up before anything is done, and answer with -32001 if there is no such task",
};

pub async fn check(probe: &Probe<'_>, text: &str) {
    check_unknown(probe).await;
    check_message_to_unknown(probe, text).await;
    match probe.scene.finished() {
        Some(finished) => {
            check_cancel_finished(probe, &finished).await;
            check_message_to_finished(probe, text, &finished).await;
        }
        None => {
            let why = "the agent has finished no task on the message of --message";
            probe.ledger.skip_all(&[&CANCEL_FINISHED, &MESSAGE_TO_FINISHED], why);
        }
    }
}

async fn check_unknown(probe: &Probe<'_>) {
    let id = calls::new_task_id();
    for (what, call) in [
        ("a get of an unknown task", calls::get(probe.tenant(), &id, None)),
        ("a cancel of an unknown task", calls::cancel(probe.tenant(), &id)),
    ] {
        let Some(asked) = probe.ask(&call).await else { continue };
        judge_refusal(probe, &NOT_FOUND, what, &asked, &TASK_NOT_FOUND);
    }
}

async fn check_message_to_unknown(probe: &Probe<'_>, text: &str) {
    // In 0.1 the client does choose the ids of tasks.
    if !MESSAGE_TO_UNKNOWN.is_for(probe.protocol()) {
        return;
    }
    let place = Place { task: Some(calls::new_task_id()), context: None };
    let call = calls::send(probe.tenant(), text, place, Delivery::WhenSettled);
    let Some(asked) = probe.ask(&call).await else { return };
    judge_not_found(probe, &MESSAGE_TO_UNKNOWN, "a message to an unknown task", &asked);
}

async fn check_cancel_finished(probe: &Probe<'_>, finished: &KnownTask) {
    let Some(asked) = probe.ask(&calls::cancel(probe.tenant(), &finished.id)).await else { return };
    judge_refusal(probe, &CANCEL_FINISHED, "a cancel of a finished task", &asked, &NOT_CANCELABLE);
}

async fn check_message_to_finished(probe: &Probe<'_>, text: &str, finished: &KnownTask) {
    if !MESSAGE_TO_FINISHED.is_for(probe.protocol()) {
        return;
    }
    let place = Place { task: Some(finished.id.clone()), context: None };
    let call = calls::send(probe.tenant(), text, place, Delivery::WhenSettled);
    let Some(asked) = probe.ask(&call).await else { return };
    let what = "a message to a finished task";
    match asked.refusal() {
        // 0.3 says only that it is an error.
        Some(error) if !probe.is_v1() => {
            probe.scene.refused(what, error.kind);
            probe.ledger.pass(&MESSAGE_TO_FINISHED);
        }
        _ => judge_refusal(probe, &MESSAGE_TO_FINISHED, what, &asked, &UNSUPPORTED),
    }
}

/// Passes if the task was not found. That the server has another code for it is told once, and not for every call.
pub fn judge_not_found(probe: &Probe<'_>, rule: &'static Rule, what: &'static str, asked: &Asked) {
    match asked.refusal() {
        Some(_) if probe.ledger.has_failed(&NOT_FOUND) => probe.ledger.pass(rule),
        _ => judge_refusal(probe, rule, what, asked, &TASK_NOT_FOUND),
    }
}

/// Passes if the call was refused with this error.
pub fn judge_refusal(probe: &Probe<'_>, rule: &'static Rule, what: &'static str, asked: &Asked, expected: &Expected) {
    let fault = match &asked.reading {
        Reading::Refused(error) => {
            probe.scene.refused(what, error.kind);
            error.differs_from(expected, probe.protocol()).map(|fault| format!("{what} gets {fault}"))
        }
        Reading::Result(_) => Some(format!("{what} is accepted")),
        Reading::Unreadable(_) | Reading::NoAnswer(_) => Some(format!("{what} gets {}", asked.words(probe.protocol()))),
    };
    // The codes of 0.1's text and of its schema are not the same.
    let is_old = probe.version() == ProtocolVersion::V0_1 && matches!(asked.reading, Reading::Refused(_));
    match fault {
        Some(fault) if is_old => probe.ledger.fail_as(Level::Warning, rule, fault, &asked.evidence()),
        fault => probe.ledger.judge(rule, fault, &asked.evidence()),
    }
}
