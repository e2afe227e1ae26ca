//! How a driver stores what it has decided, and shows it after.
//!
//! The first append of a driver may fail: then the task never existed, or rests on, and the sender is told.
//! Any later one is tried again until the store takes it, since the agent has already said what is in it; new
//! messages from callers are refused meanwhile, so nothing is acknowledged that is not stored.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use sabir_model::{Error, IdempotencyKey, MessageId, Task, apply};
use sabir_store::{Append, Appended, Beside, NewTask, StoreError, StoreFuture, Target};
use tokio::time::Sleep;

use super::{Done, Driver, Fresh};
use crate::Entry;
use crate::topic::rest_of;

const FIRST_RETRY: Duration = Duration::from_millis(100);
const LAST_RETRY: Duration = Duration::from_secs(5);
/// The store keeps a snapshot only when the fold has become long, so a shorter one is not offered.
const SNAPSHOT_AFTER: u64 = 16;

/// What has been decided and is not stored yet.
#[derive(Default)]
pub(super) struct Batch {
    pub(super) entries: Vec<Arc<Entry>>,
    pub(super) beside: Vec<Beside>,
    pub(super) acks: Vec<Ack>,
}

/// Somebody who waits until the batch is stored.
pub(super) struct Ack {
    pub(super) done: Done,
    /// What he is told then.
    answer: Result<(), Error>,
    /// The rows of a message that only waits in the inbox: it can be refused when the store is full.
    pub(super) waiting: Option<Waiting>,
}

pub(super) struct Waiting {
    pub(super) message: MessageId,
    pub(super) key: Option<IdempotencyKey>,
}

impl Ack {
    pub(super) fn plain(done: Done) -> Self {
        Self { done, answer: Ok(()), waiting: None }
    }

    pub(super) fn of_message(done: Done, waiting: Option<Waiting>) -> Self {
        Self { waiting, ..Self::plain(done) }
    }
}

/// An append under way.
pub(super) struct Storing {
    batch: Batch,
    attempt: Attempt,
    pause: Duration,
}

enum Attempt {
    Running(StoreFuture<'static, Appended>),
    Pausing(Pin<Box<Sleep>>),
}

impl Batch {
    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.beside.is_empty() && self.acks.is_empty()
    }
}

impl Driver {
    /// Refuses a caller because of how the task stands, as soon as that is stored: it is a thing told too.
    pub(super) fn refuse(&mut self, done: Done, refusal: Error) {
        let ack = Ack { answer: Err(refusal), ..Ack::plain(done) };
        match &mut self.storing {
            _ if !self.batch.entries.is_empty() => self.batch.acks.push(ack),
            Some(storing) => storing.batch.acks.push(ack),
            None => drop(ack.done.send(ack.answer)),
        }
    }

    /// The store refused what was to be stored, and will be asked again.
    pub(super) fn is_store_full(&self) -> bool {
        matches!(self.storing, Some(Storing { attempt: Attempt::Pausing(_), .. }))
    }

    /// Keeps the store busy: ends what is under way, begins what has gathered. Ready when there is
    /// nothing left to store.
    pub(super) fn poll_store(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            if self.storing.is_none() {
                if self.is_lost || self.batch.is_empty() {
                    return Poll::Ready(());
                }
                let batch = std::mem::take(&mut self.batch);
                let attempt = Attempt::Running(self.append(&batch));
                self.storing = Some(Storing { batch, attempt, pause: FIRST_RETRY });
            }
            let Some(storing) = &mut self.storing else { return Poll::Ready(()) };
            match &mut storing.attempt {
                Attempt::Running(append) => {
                    let result = std::task::ready!(append.as_mut().poll(cx));
                    self.stored(result);
                }
                Attempt::Pausing(pause) => {
                    let pause = pause.as_mut().poll(cx);
                    // What only waits in the inbox need not wait for the disk too.
                    let mut gathered = std::mem::take(&mut self.batch);
                    self.refuse_waiting_messages(&mut gathered);
                    self.batch = gathered;
                    std::task::ready!(pause);
                    let Some(Storing { batch, pause, .. }) = self.storing.take() else { continue };
                    let attempt = Attempt::Running(self.append(&batch));
                    self.storing = Some(Storing { batch, attempt, pause: (pause * 2).min(LAST_RETRY) });
                }
            }
        }
    }

    fn append(&self, batch: &Batch) -> StoreFuture<'static, Appended> {
        let events: Vec<&sabir_model::Event> = batch.entries.iter().map(|entry| &entry.event).collect();
        let after = self.stored;
        let key = &self.lease.key;
        let target = match (&self.fresh, self.no) {
            (Fresh::Birth(new), _) => Target::New(NewTask {
                owner: &key.owner,
                agent: &key.agent,
                task: &key.task,
                context: &self.context,
                born: new.birth.born,
                key: new.key.as_ref(),
            }),
            (Fresh::Wake | Fresh::No, Some(no)) => Target::Known(no),
            (Fresh::Wake | Fresh::No, None) => return Box::pin(async { Err(StoreError::Conflict) }),
        };
        let snapshot = self.snapshot(batch);
        self.core.store.append(Append {
            target,
            events: &events,
            after,
            snapshot: snapshot.as_ref(),
            beside: &batch.beside,
        })
    }

    /// The task as it will be, when it settles or waits with this batch and its fold is long.
    fn snapshot(&self, batch: &Batch) -> Option<Task> {
        let comes_to_rest = batch.entries.last()?.event.ends_turn();
        if !comes_to_rest || self.standing.seq <= SNAPSHOT_AFTER || matches!(self.fresh, Fresh::Birth(_)) {
            return None;
        }
        let mut task = Arc::unwrap_or_clone(self.lease.task()?);
        for entry in &batch.entries {
            if entry.seq > task.seq {
                apply(&mut task, &entry.event);
            }
        }
        Some(task)
    }

    fn stored(&mut self, result: Result<Appended, StoreError>) {
        let Some(mut storing) = self.storing.take() else { return };
        match result {
            Ok(appended) => self.show(appended, storing.batch),
            Err(error) if !matches!(self.fresh, Fresh::No) => self.take_back(error, storing.batch),
            Err(error @ (StoreError::Conflict | StoreError::Exists(_) | StoreError::Closed)) => {
                tracing::error!(task = %self.lease.key.task, %error, "the run has lost its task and stops");
                self.is_lost = true;
                // Whoever waits for this run waits in vain.
                self.lease.abandon();
                for ack in storing.batch.acks {
                    let _ = ack.done.send(Err(Error::internal("the task was taken over")));
                }
            }
            Err(error) => {
                tracing::warn!(task = %self.lease.key.task, error = chain(&error), "cannot store; will try again");
                self.refuse_waiting_messages(&mut storing.batch);
                storing.attempt = Attempt::Pausing(Box::pin(tokio::time::sleep(storing.pause)));
                if !storing.batch.is_empty() {
                    self.storing = Some(storing);
                }
            }
        }
    }

    fn show(&mut self, appended: Appended, batch: Batch) {
        self.no = Some(appended.task);
        self.stored = appended.last;
        let birth = match std::mem::replace(&mut self.fresh, Fresh::No) {
            Fresh::Birth(new) => Some(new.birth),
            Fresh::Wake | Fresh::No => None,
        };
        let goes_on = !self.inbox.is_empty() || !self.batch.entries.is_empty();
        // The rest is judged on what is stored with this batch, not on what is decided since.
        self.lease.show(appended.task, birth.as_ref(), &batch.entries, |task| rest_of(task, goes_on));
        for ticket in &self.tickets {
            ticket.land(&self.lease.key);
        }
        for ack in batch.acks {
            let _ = ack.done.send(ack.answer);
        }
    }

    /// What this driver began with cannot be stored: the task never came to be, or rests on.
    fn take_back(&mut self, error: StoreError, batch: Batch) {
        self.is_lost = true;
        match self.fresh {
            Fresh::Birth(_) => self.lease.abandon(),
            Fresh::Wake | Fresh::No => self.lease.rest_on(),
        }
        let mut told = Some(told(error));
        for ack in batch.acks.into_iter().chain(std::mem::take(&mut self.batch.acks)) {
            let _ = ack.done.send(Err(told.take().unwrap_or(Error::StoreFull)));
        }
    }

    fn refuse_waiting_messages(&mut self, batch: &mut Batch) {
        for ack in std::mem::take(&mut batch.acks) {
            let Some(waiting) = &ack.waiting else {
                batch.acks.push(ack);
                continue;
            };
            batch.beside.retain(|row| match row {
                Beside::InboxAdd(message) => message.id != waiting.message,
                Beside::Key(key) => Some(key) != waiting.key.as_ref(),
                Beside::InboxTake(_) | Beside::AgentState(_) | Beside::CancelRequested | Beside::Attempts(_) => true,
            });
            // The newest of that id: clients reuse them, and an older one may be stored.
            if let Some(at) = self.inbox.iter().rposition(|unread| unread.message.id == waiting.message) {
                self.inbox.remove(at);
            }
            let _ = ack.done.send(Err(Error::StoreFull));
        }
    }
}

/// What a caller is told of a store that failed.
pub(crate) fn told(error: StoreError) -> Error {
    match error {
        StoreError::Full => Error::StoreFull,
        StoreError::Closed => Error::Stopping,
        StoreError::Conflict | StoreError::Exists(_) | StoreError::Damaged { .. } | StoreError::Failed(_) => {
            Error::internal(error)
        }
    }
}

/// The error with its causes: what an operator needs to see.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}
