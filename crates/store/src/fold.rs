//! Decodes stored bytes: folds packs of events into tasks, and decodes single events and messages.

use std::ops::RangeInclusive;

use sabir_model::{Created, Event, Recorded, Seq, StatusChange, Task, TaskBirth, TaskId, apply_owned};
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::damage::Damage;

/// A task that is built event by event, from its creation or from a snapshot.
pub(crate) enum Fold {
    Unborn(TaskId, TaskBirth),
    Born(Box<Task>),
}

impl Fold {
    pub fn new(id: TaskId, birth: TaskBirth) -> Self {
        Fold::Unborn(id, birth)
    }

    /// Starts from a snapshot. A snapshot of an older format has its artifacts in `rest`.
    pub fn resume(rest: &[u8], artifacts: Option<&[u8]>) -> Result<Self, Damage> {
        let mut task: Box<Task> = decode(rest)?;
        if let Some(artifacts) = artifacts {
            task.artifacts = decode(artifacts)?;
        }
        Ok(Fold::Born(task))
    }

    /// The number of its last event.
    pub fn seq(&self) -> Seq {
        match self {
            Fold::Unborn(..) => 0,
            Fold::Born(task) => task.seq,
        }
    }

    /// Applies the events of the next pack, which ends with event `last`.
    pub fn take_pack(&mut self, last: Seq, pack: &[u8]) -> Result<(), Damage> {
        for event in events_of(pack) {
            let event = event.map_err(|error| unreadable(self.seq() + 1, &error))?;
            self.take(event)?;
        }
        match self.seq() == last {
            true => Ok(()),
            false => Err(incomplete(last)),
        }
    }

    /// The same without artifacts, which are not even parsed.
    pub fn take_pack_without_artifacts(&mut self, last: Seq, pack: &[u8]) -> Result<(), Damage> {
        let events = serde_json::Deserializer::from_slice(pack).into_iter::<WithoutArtifact>();
        for event in events {
            match event.map_err(|error| unreadable(self.seq() + 1, &error))? {
                WithoutArtifact::Created(created) => self.take(Event::Created(created))?,
                WithoutArtifact::Status(change) => self.take(Event::Status(change))?,
                WithoutArtifact::Artifact(IgnoredAny) => self.pass_over()?,
            }
        }
        match self.seq() == last {
            true => Ok(()),
            false => Err(incomplete(last)),
        }
    }

    /// Takes the next of these events, up to this number.
    pub fn take_until(&mut self, until: Seq, events: Vec<Recorded>) -> Result<(), Damage> {
        for Recorded { seq, event } in events {
            if seq > until {
                break;
            }
            if seq <= self.seq() {
                continue;
            }
            if seq != self.seq() + 1 {
                return Err(incomplete(seq));
            }
            self.take(event)?;
        }
        Ok(())
    }

    fn pass_over(&mut self) -> Result<(), Damage> {
        match self {
            Fold::Unborn(..) => Err(no_beginning()),
            Fold::Born(task) => {
                task.seq += 1;
                Ok(())
            }
        }
    }

    pub fn take_body(&mut self, body: &[u8]) -> Result<(), Damage> {
        let event = serde_json::from_slice(body).map_err(|error| unreadable(self.seq() + 1, &error))?;
        self.take(event)
    }

    fn take(&mut self, event: Event) -> Result<(), Damage> {
        match (&mut *self, event) {
            (Fold::Born(task), event) => apply_owned(task, event),
            (Fold::Unborn(id, birth), Event::Created(created)) => {
                *self = Fold::Born(Box::new(Task::create(id.clone(), birth.clone(), created)));
            }
            (Fold::Unborn(..), _) => return Err(no_beginning()),
        }
        Ok(())
    }

    /// The task, if there was any event.
    pub fn finish(self) -> Result<Task, Damage> {
        match self {
            Fold::Unborn(..) => Err(Damage("it has no events".into())),
            Fold::Born(task) => Ok(*task),
        }
    }
}

/// An event without the content of an artifact.
#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum WithoutArtifact {
    Created(Created),
    Status(StatusChange),
    Artifact(IgnoredAny),
}

/// Decodes a snapshot or a message.
pub(crate) fn decode<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T, Damage> {
    serde_json::from_slice(body).map_err(|error| Damage(error.to_string()))
}

/// Decodes an event that has its own row.
pub(crate) fn decode_event(seq: Seq, body: &[u8]) -> Result<Recorded, Damage> {
    let event = serde_json::from_slice(body).map_err(|error| unreadable(seq, &error))?;
    Ok(Recorded { seq, event })
}

/// The events of a pack that ends with event `last`.
pub(crate) fn unpack(last: Seq, pack: &[u8]) -> Result<Vec<Recorded>, Damage> {
    let mut events = Vec::new();
    for event in events_of(pack) {
        let event = event.map_err(|error| Damage(format!("an event up to {last} cannot be read: {error}")))?;
        events.push(Recorded { seq: 0, event });
    }
    let before = last.checked_sub(events.len() as Seq);
    let before = before.ok_or_else(|| incomplete(last))?;
    for (seq, event) in (before + 1..).zip(&mut events) {
        event.seq = seq;
    }
    Ok(events)
}

/// The readable events at the beginning of a damaged pack; `numbers` are those of all its events.
pub(crate) fn unpack_readable(numbers: RangeInclusive<Seq>, pack: &[u8]) -> Vec<Recorded> {
    let events = numbers.zip(events_of(pack));
    events.map_while(|(seq, event)| Some(Recorded { seq, event: event.ok()? })).collect()
}

/// The number of events does not match the number of the last one.
pub(crate) fn incomplete(last: Seq) -> Damage {
    Damage(format!("events up to {last} are missing or doubled"))
}

fn no_beginning() -> Damage {
    Damage("its beginning is missing".into())
}

fn unreadable(seq: Seq, error: &serde_json::Error) -> Damage {
    Damage(format!("event {seq} cannot be read: {error}"))
}

/// The first event of a pack. The others are not looked at.
pub(crate) fn first_event(pack: &[u8]) -> Option<Event> {
    events_of(pack).next()?.ok()
}

fn events_of(pack: &[u8]) -> impl Iterator<Item = serde_json::Result<Event>> {
    serde_json::Deserializer::from_slice(pack).into_iter()
}
