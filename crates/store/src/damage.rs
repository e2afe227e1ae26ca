//! Damaged tasks: tasks whose rows cannot be read.
//!
//! A damaged task must not make a list or a lookup of other tasks fail, so it is shown as failed, with what its row
//! still says. The operator's log names each damaged task once, not with every list.

use std::collections::HashSet;
use std::sync::Mutex;

use sabir_model::{Message, MessageId, Part, Role, State, Status, Task};

use crate::{TaskNo, TaskRow};

/// Why a task cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Damage(pub String);

/// The damaged tasks that have been logged.
#[derive(Debug, Default)]
pub(crate) struct DamageLog {
    logged: Mutex<HashSet<TaskNo>>,
}

impl DamageLog {
    pub fn report(&self, no: TaskNo, task: &str, damage: &Damage) {
        if self.is_new(no) {
            tracing::error!(task, number = no.0, reason = damage.0, "a task is damaged in the store");
        }
    }

    fn is_new(&self, no: TaskNo) -> bool {
        self.logged.lock().expect("nobody panics with the list in hand").insert(no)
    }
}

pub(crate) fn unreadable_message(damage: Damage) -> Damage {
    Damage(format!("a message in its inbox cannot be read: {}", damage.0))
}

/// A damaged task as it is shown: failed, without content, as of the last event that its row knows.
pub(crate) fn damaged_task(row: TaskRow, damage: &Damage) -> Task {
    let text = format!("the log of this task is damaged: {}", damage.0);
    let id = MessageId::parse("damaged-log").expect("a short text is an id");
    let message = Message {
        task: Some(row.task.clone()),
        context: Some(row.context.clone()),
        ..Message::new(id, Role::Agent, vec![Part::text(text)])
    };
    Task {
        id: row.task,
        context: row.context,
        agent: row.agent,
        owner: row.owner,
        born: row.born,
        created: row.created,
        status: Status { state: State::Failed, message: Some(message.into()), time: row.time },
        turn_over: true,
        artifacts: Vec::new(),
        open: Vec::new(),
        history: Vec::new(),
        metadata: None,
        usage: None,
        seq: row.seq,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_damaged_task_is_logged_once() {
        let log = DamageLog::default();
        let new: Vec<bool> = [1, 2, 1, 1, 3].into_iter().map(|no| log.is_new(TaskNo(no))).collect();
        assert_eq!(new, [true, true, false, false, true]);
    }
}
