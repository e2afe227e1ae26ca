//! Reads a task's log for one turn of a worker: each event that is wanted, with the task as of that event.
//!
//! The task is folded from its beginning once; later events are applied to it, so a turn costs what its events cost.
//! A task may have tens of megabytes and hundreds of workers may have one each. What is larger than `SMALL` therefore needs
//! a share of `Memory`. A reader that has to wait for its share drops what it has read meanwhile, and reads it again.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use sabir_model::{Recorded, Seq, Task, apply};
use sabir_store::{StoreError, TaskNo, WebhookEvents};
use serde::Serialize;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::dispatcher::Shared;
use super::payload::is_wanted;

/// Events that are read together.
const PAGE: usize = 32;

/// Bytes of a task and its events that need no share of the memory.
const SMALL: usize = 64 * 1024;

/// A task is in memory as such and as a body.
const COPIES: usize = 2;

/// How much all deliveries that are under way may have in memory, in kilobytes.
pub(super) struct Memory {
    kilobytes: Arc<Semaphore>,
    size: u32,
}

impl Memory {
    pub fn new(bytes: usize) -> Self {
        let size = u32::try_from(bytes / 1024).unwrap_or(u32::MAX).clamp(1, Semaphore::MAX_PERMITS as u32);
        Memory { kilobytes: Arc::new(Semaphore::new(size as usize)), size }
    }

    /// What is larger than everything gets everything.
    fn share(&self, bytes: usize) -> u32 {
        u32::try_from(bytes / 1024).unwrap_or(u32::MAX).min(self.size)
    }
}

pub(super) struct LogReader<'a> {
    shared: &'a Shared,
    task: TaskNo,
    wanted: WebhookEvents,
    /// Events up to this one are sent, or not wanted.
    handled: Seq,
    /// As of the last event that was taken from the page.
    folded: Option<Task>,
    page: VecDeque<Recorded>,
    /// The last event that was taken from the page.
    taken: Seq,
    /// Bytes of the task and of every event that was read since.
    weight: usize,
    share: Option<OwnedSemaphorePermit>,
}

/// An event to be sent.
pub(super) struct NextEvent {
    pub recorded: Recorded,
    /// As of the event.
    pub task: Task,
    /// Everything up to here is handled when it is delivered: events that are not wanted follow it.
    pub handled: Seq,
}

pub(super) enum ReadError {
    Damaged(String),
    Store(StoreError),
}

impl From<StoreError> for ReadError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Damaged { reason, .. } => ReadError::Damaged(reason),
            error => ReadError::Store(error),
        }
    }
}

impl<'a> LogReader<'a> {
    /// Begins behind `sent`.
    pub fn new(shared: &'a Shared, task: TaskNo, wanted: WebhookEvents, sent: Seq) -> Self {
        let page = VecDeque::new();
        Self { shared, task, wanted, handled: sent, folded: None, page, taken: sent, weight: 0, share: None }
    }

    /// Everything up to here is sent, or not wanted.
    pub fn handled(&self) -> Seq {
        self.handled
    }

    /// Gives the task back, which the next event will be applied to.
    pub fn keep(&mut self, task: Task, handled: Seq) {
        self.folded = Some(task);
        self.handled = handled;
    }

    /// The next event that is wanted. `None` at the end of the log, and where the task is gone.
    pub async fn next(&mut self) -> Result<Option<NextEvent>, ReadError> {
        self.find(|wanted, recorded| is_wanted(wanted, &recorded.event)).await
    }

    /// One event, wanted or not.
    pub async fn exactly(&mut self, event: Seq) -> Result<Option<NextEvent>, ReadError> {
        self.find(|_, recorded| recorded.seq == event).await
    }

    async fn find(&mut self, is_it: impl Fn(WebhookEvents, &Recorded) -> bool) -> Result<Option<NextEvent>, ReadError> {
        loop {
            let Some(recorded) = self.take().await? else { return Ok(None) };
            if !is_it(self.wanted, &recorded) {
                self.handled = recorded.seq;
                continue;
            }
            if self.folded.is_none() {
                let Some(task) = self.shared.store.load_at(self.task, recorded.seq).await? else { return Ok(None) };
                self.weight += weight(&task);
                self.folded = Some(task);
            }
            if !self.has_memory() {
                self.wait_for_memory().await;
                continue;
            }
            let following = self.page.iter().take_while(|later| !is_it(self.wanted, later)).last();
            let handled = following.map_or(recorded.seq, |later| later.seq);
            let Some(task) = self.folded.take() else { continue };
            return Ok(Some(NextEvent { recorded, task, handled }));
        }
    }

    /// Takes one event from the page, and applies it to the task.
    async fn take(&mut self) -> Result<Option<Recorded>, ReadError> {
        if self.page.is_empty() {
            let page = self.shared.store.events(self.task, self.taken, PAGE).await?;
            self.weight += page.iter().map(|recorded| weight(&recorded.event)).sum::<usize>();
            self.page = page.into();
        }
        let Some(recorded) = self.page.pop_front() else { return Ok(None) };
        self.taken = recorded.seq;
        if let Some(task) = &mut self.folded {
            apply(task, &recorded.event);
        }
        Ok(Some(recorded))
    }

    /// Whether the share is large enough, or could be had without waiting.
    fn has_memory(&mut self) -> bool {
        let needed = self.weight.saturating_mul(COPIES);
        let kilobytes = self.shared.memory.share(needed);
        if needed <= SMALL || self.share.as_ref().is_some_and(|share| share.num_permits() >= kilobytes as usize) {
            return true;
        }
        self.share = None;
        self.share = self.shared.memory.kilobytes.clone().try_acquire_many_owned(kilobytes).ok();
        self.share.is_some()
    }

    async fn wait_for_memory(&mut self) {
        let kilobytes = self.shared.memory.share(self.weight.saturating_mul(COPIES));
        (self.folded, self.page, self.taken, self.weight) = (None, VecDeque::new(), self.handled, 0);
        // It is never closed.
        self.share = self.shared.memory.kilobytes.clone().acquire_many_owned(kilobytes).await.ok();
    }
}

/// The size of a value in the log.
fn weight(value: &impl Serialize) -> usize {
    struct Counter(usize);
    impl io::Write for Counter {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut counter = Counter(0);
    // Whatever cannot be counted weighs what was counted before.
    let _ = serde_json::to_writer(&mut counter, value);
    counter.0
}
