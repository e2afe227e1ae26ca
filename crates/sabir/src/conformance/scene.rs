//! What was started on a server over one interface, and what of it can be used to check more.

use std::cell::{Cell, RefCell};

use sabir_model::{State, TaskId};
use sabir_wire::{Operation, PeerErrorKind};

/// A task that is known to this check.
#[derive(Debug, Clone)]
pub struct KnownTask {
    pub id: TaskId,
    /// As the server named it; it may have named none.
    pub context: Option<String>,
}

#[derive(Default)]
pub struct Scene {
    messages: Cell<usize>,
    /// All tasks of this check, and the last that was heard of them.
    tasks: RefCell<Vec<(TaskId, State)>>,
    /// Those that were made of requests which are not valid.
    faulty: RefCell<Vec<TaskId>>,
    /// A task that is finished.
    pub finished: RefCell<Option<KnownTask>>,
    /// A task that waits for an answer.
    pub waiting: RefCell<Option<KnownTask>>,
    /// A task that has several messages in its history.
    pub talkative: RefCell<Option<KnownTask>>,
    /// What the server answered to the same fault, for comparing bindings: what was tried, and the kind of error.
    pub refusals: RefCell<Vec<(&'static str, PeerErrorKind)>>,
}

impl Scene {
    /// Counts a request if it carries a message to the agent.
    pub fn count_message(&self, operation: Operation) {
        if matches!(operation, Operation::Send | Operation::Stream) {
            self.messages.set(self.messages.get() + 1);
        }
    }

    pub fn messages(&self) -> usize {
        self.messages.get()
    }

    /// A message of this check has started the task, or is for it.
    pub fn started(&self, id: &TaskId, state: State) {
        let is_known = self.tasks.borrow().iter().any(|(known, _)| known == id);
        match is_known {
            true => self.heard(id, state),
            false => self.tasks.borrow_mut().push((id.clone(), state)),
        }
    }

    /// A request that is not valid has started a task all the same.
    pub fn started_by_fault(&self, id: &TaskId, state: State) {
        self.started(id, state);
        self.faulty.borrow_mut().push(id.clone());
    }

    /// Whether this check has made the task of a valid message.
    pub fn is_own(&self, id: &str) -> bool {
        let is_known = self.tasks.borrow().iter().any(|(known, _)| known.as_str() == id);
        is_known && !self.faulty.borrow().iter().any(|faulty| faulty.as_str() == id)
    }

    /// The task is in this state. It counts only if it is one of this check: a server may show those of others.
    pub fn heard(&self, id: &TaskId, state: State) {
        if let Some((_, known)) = self.tasks.borrow_mut().iter_mut().find(|(known, _)| known == id) {
            *known = state;
        }
    }

    /// The tasks that nobody would finish otherwise.
    pub fn unfinished(&self) -> Vec<TaskId> {
        let tasks = self.tasks.borrow();
        tasks.iter().filter(|(_, state)| !state.is_terminal()).map(|(id, _)| id.clone()).collect()
    }

    pub fn finished(&self) -> Option<KnownTask> {
        self.finished.borrow().clone()
    }

    pub fn waiting(&self) -> Option<KnownTask> {
        self.waiting.borrow().clone()
    }

    pub fn refused(&self, fault: &'static str, kind: PeerErrorKind) {
        self.refusals.borrow_mut().push((fault, kind));
    }
}
