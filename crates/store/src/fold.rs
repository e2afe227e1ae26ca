//! From stored bytes back to tasks, events and messages.

use sabir_model::{Event, Recorded, Seq, Task, TaskBirth, TaskId, apply_owned};
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

    /// Takes the events of the next pack, of which the last has this number.
    pub fn take_pack(&mut self, last: Seq, pack: &[u8]) -> Result<(), StoreError> {
        for event in packed(pack) {
            self.take(event?)?;
        }
        match self.seq() == last {
            true => Ok(()),
            false => Err(StoreError::Failed("a task's log has a gap".into())),
        }
    }

    pub fn take(&mut self, event: Event) -> Result<(), StoreError> {
        match (&mut *self, event) {
            (Fold::Born(task), event) => apply_owned(task, event),
            (Fold::Unborn(id, birth), Event::Created(created)) => {
                *self = Fold::Born(Box::new(Task::create(id.clone(), birth.clone(), created)));
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

/// The events of a pack, of which the last has this number.
pub(crate) fn unpack(last: Seq, pack: &[u8]) -> Result<Vec<Recorded>, StoreError> {
    let events = packed(pack).map(|event| Ok(Recorded { seq: 0, event: event? }));
    let mut events = events.collect::<Result<Vec<_>, StoreError>>()?;
    let before = last.checked_sub(events.len() as Seq);
    let before = before.ok_or_else(|| StoreError::Failed("a task's log has more events than numbers".into()))?;
    for (seq, event) in (before + 1..).zip(&mut events) {
        event.seq = seq;
    }
    Ok(events)
}

fn packed(pack: &[u8]) -> impl Iterator<Item = Result<Event, StoreError>> {
    let events = serde_json::Deserializer::from_slice(pack).into_iter();
    events.map(|event| event.map_err(|error| StoreError::Failed(error.into())))
}
