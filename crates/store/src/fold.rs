//! From stored bytes back to tasks, events and messages.

use sabir_model::{Event, Seq, Task, TaskBirth, TaskId, apply};
use serde::Deserialize;

use crate::StoreError;

/// A task that grows event by event, from its creation or from a stored snapshot.
pub(crate) enum Fold {
    Unborn(TaskId, TaskBirth),
    Born(Box<Task>),
}

impl Fold {
    pub fn new(id: TaskId, birth: TaskBirth) -> Self {
        Fold::Unborn(id, birth)
    }

    pub fn resume(snapshot: &[u8]) -> Result<Self, StoreError> {
        decode(snapshot).map(Fold::Born)
    }

    /// The number of the last event in it.
    pub fn seq(&self) -> Seq {
        match self {
            Fold::Unborn(..) => 0,
            Fold::Born(task) => task.seq,
        }
    }

    pub fn take(&mut self, body: &[u8]) -> Result<(), StoreError> {
        let event: Event = decode(body)?;
        match (&mut *self, event) {
            (Fold::Born(task), event) => apply(task, &event),
            (Fold::Unborn(id, birth), Event::Created(created)) => {
                *self = Fold::Born(Box::new(Task::create(id.clone(), birth.clone(), &created)));
            }
            (Fold::Unborn(..), _) => return Err(StoreError::Failed("a task's log lacks its beginning".into())),
        }
        Ok(())
    }

    /// `None` if there was no event at all.
    pub fn finish(self) -> Option<Task> {
        match self {
            Fold::Unborn(..) => None,
            Fold::Born(task) => Some(*task),
        }
    }
}

pub(crate) fn decode<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T, StoreError> {
    serde_json::from_slice(body).map_err(|error| StoreError::Failed(error.into()))
}
