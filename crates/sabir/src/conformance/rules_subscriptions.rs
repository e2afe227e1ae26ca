//! Subscriptions to tasks: of which tasks, and what comes first.

use super::calls;
use super::probe::{Opened, Probe};
use super::rule::{Level, Rule, Sections, Subject};
use super::rules_errors::{NOT_FOUND, judge_not_found, judge_refusal};
use super::wire_error::{TASK_NOT_FOUND, UNSUPPORTED};

pub const RULES: &[&Rule] = &[&RUNNING, &FIRST, &FINISHED, &UNKNOWN];

pub static RUNNING: Rule = Rule {
    id: "subscribe.running",
    level: Level::Error,
    subject: Subject::Interface,
    sections: Sections::all("§3.1.6", "§7.9", "§7.7"),
    says: "a server that streams takes subscriptions to tasks that are not finished",
    remedy: "serve SubscribeToTask (0.x: tasks/resubscribe) as well as the streaming send",
};
pub static FIRST: Rule = Rule {
    id: "subscribe.first",
    level: Level::Error,
    subject: Subject::Interface,
    sections: Sections::since_v1("§3.1.6"),
    says: "a subscription begins with the task as it is now",
    remedy: "send the task first, from the same moment on from which events are sent",
};
pub static FINISHED: Rule = Rule {
    id: "subscribe.finished",
    level: Level::Error,
    subject: Subject::Interface,
    sections: Sections::since_v1("§3.1.6"),
    says: "a finished task cannot be subscribed to: UnsupportedOperationError, -32004",
    remedy: "refuse subscriptions to tasks in a terminal state; clients read them with GetTask",
};
pub static UNKNOWN: Rule = Rule {
    id: "subscribe.unknown",
    level: Level::Error,
    subject: Subject::Interface,
    sections: Sections::all("§3.1.6", "§7.9, §8.2", "§8.2"),
    says: "a subscription to a task that does not exist is TaskNotFoundError: -32001",
    remedy: "look the task up before the stream begins",
};

/// Subscriptions that must be refused.
pub async fn check(probe: &Probe<'_>) {
    let ledger = &probe.ledger;
    let unknown = calls::new_task_id();
    match probe.open(&calls::subscribe(probe.tenant(), &unknown)).await {
        Some(Opened::Answer(asked)) => {
            judge_not_found(probe, &UNKNOWN, "a subscription to an unknown task", &asked);
        }
        Some(Opened::Stream(stream)) => {
            let log = stream.finish(probe.patience()).await;
            let fault = match log.only_error() {
                Some(_) if ledger.has_failed(&NOT_FOUND) => None,
                Some(error) => error.differs_from(&TASK_NOT_FOUND, probe.protocol()),
                // A bridge of 0.3 closes such a stream without a word.
                None if log.frames.is_empty() && !probe.is_v1() => None,
                None => Some("a stream".to_owned()),
            };
            let fault = fault.map(|fault| format!("a subscription to an unknown task gets {fault}"));
            ledger.judge(&UNKNOWN, fault, &log.evidence());
        }
        None => {}
    }
    if !probe.is_v1() {
        return;
    }
    let Some(finished) = probe.scene.finished() else {
        return ledger.skip(&FINISHED, "the agent has finished no task on the message of --message");
    };
    match probe.open(&calls::subscribe(probe.tenant(), &finished.id)).await {
        Some(Opened::Answer(asked)) => {
            judge_refusal(probe, &FINISHED, "a subscription to a finished task", &asked, &UNSUPPORTED);
        }
        Some(Opened::Stream(stream)) => {
            let log = stream.finish(probe.patience()).await;
            let fault = match log.only_error() {
                Some(error) => error.differs_from(&UNSUPPORTED, probe.protocol()),
                None => Some("a stream".to_owned()),
            };
            let fault = fault.map(|fault| format!("a subscription to a finished task gets {fault}"));
            ledger.judge(&FINISHED, fault, &log.evidence());
        }
        None => {}
    }
}
