//! Subscriptions: a subscription is a cursor over the log of a task.
//!
//! It reads from the tail in memory while it keeps up and from the store when it has fallen behind, at the pace of its
//! reader, so a slow reader costs no buffer. It ends with the run: when the last event has been read and no more can be
//! expected.

use std::sync::Arc;

use sabir_model::{
    AgentId, Birth, Caller, ContextId, Error, Event, LastEventId, OnFinishedSubscribe, QuestionId, Seq, State,
    Subscribe, Task, TaskId, apply,
};
use tokio::sync::watch;

use crate::access::{Action, TaskRights, may_approve};
use crate::cluster::{FollowGuard, Loaded};
use crate::engine::{Core, Engine};
use crate::feed::Lease;
use crate::limits::StreamPlace;
use crate::log_pages::LogPage;
use crate::metrics::OpenStream;
use crate::topic::{TailRead, TaskActivity, TopicKey};
use crate::{Answer, LogEntry};

/// A stream of a task's events, at the pace of its reader.
pub struct Subscription {
    lease: Lease,
    /// Keeps the engine alive as long as it has readers.
    core: Arc<Core>,
    context: ContextId,
    born: Birth,
    cursor: Seq,
    /// The page that the last events came from, if the tail no longer had them. Holding it lets readers share it.
    page: Option<Arc<LogPage>>,
    /// Returned before any event.
    snapshot: Option<Arc<Task>>,
    /// The last event that was read ended a turn.
    saw_end: bool,
    is_over: bool,
    /// The question that the reader may answer. The stream ends with the event that closes it, since the task does not
    /// exist for the reader after that.
    until_closed: Option<QuestionId>,
    stopping: watch::Receiver<bool>,
    /// Its place among the streams of its caller, where these are limited.
    _place: Option<StreamPlace>,
    /// `None`: no figures are kept, or nobody outside reads it.
    counted: Option<OpenStream>,
    /// Events up to this one are a replay for its reader.
    replay_until: Seq,
    /// Keeps the topic as new as the store, if another node drives the task.
    _followed: Option<FollowGuard>,
}

/// What `Subscription::next` returns.
pub enum Batch {
    /// The task as it is now; its `seq` is the number of its last event.
    Snapshot(Arc<Task>),
    /// What happened next, in order.
    Events(Vec<Arc<LogEntry>>),
}

impl Engine {
    pub(crate) async fn subscribe(&self, caller: &Caller, subscribe: Subscribe) -> Result<Answer, Error> {
        let found = self.locate(caller, subscribe.agent.as_ref(), &subscribe.task, Action::Watch).await?;
        // A subscription does not need the agent, which may no longer be configured.
        if let Some(registered) = self.registered_agent(Some(&found.key.agent)) {
            registered.check_streaming()?;
        }
        let lease = self.core.feed.open(found.key);
        if self.load(&lease).await? == Loaded::Missing {
            return Err(Error::TaskNotFound(subscribe.task));
        }
        if found.rights == TaskRights::Approver {
            return Subscription::for_approver(self, caller, lease, subscribe.after).map(Answer::Stream);
        }
        let is_finished = lease.with_task(|task| task.status.state.is_terminal()).unwrap_or(false);
        match (subscribe.after, is_finished, subscribe.on_finished) {
            (None, true, OnFinishedSubscribe::Refuse) => Err(Error::TaskFinished(subscribe.task)),
            (None, true, OnFinishedSubscribe::ShowEnd) => {
                let mut subscription = Subscription::start(self, lease, None)?;
                subscription.cursor = subscription.cursor.saturating_sub(1);
                Ok(Answer::Stream(subscription.replaying()))
            }
            (after, _, _) => {
                let subscription = Subscription::start(self, lease, after.map(LastEventId::Event))?;
                Ok(Answer::Stream(subscription.replaying()))
            }
        }
    }
}

impl Subscription {
    /// Starts after the given event, or with a snapshot.
    pub(crate) fn start(engine: &Engine, lease: Lease, after: Option<LastEventId>) -> Result<Self, Error> {
        let missing = || Error::TaskNotFound(lease.key.task.clone());
        let (context, born, last) =
            lease.with_task(|task| (task.context.clone(), task.born, task.seq)).ok_or_else(missing)?;
        let (cursor, snapshot) = match after {
            Some(LastEventId::Event(after)) if after <= last => (after, None),
            Some(LastEventId::Event(_) | LastEventId::Unusable) => return Err(cursor_beyond_log(last)),
            None => {
                let task = lease.task().ok_or_else(missing)?;
                (task.seq, Some(task))
            }
        };
        Ok(Self {
            core: engine.core.clone(),
            context,
            born,
            cursor,
            page: None,
            snapshot,
            saw_end: false,
            is_over: false,
            until_closed: None,
            stopping: engine.core.stopping.subscribe(),
            _place: None,
            counted: None,
            replay_until: 0,
            _followed: engine.core.follow(&lease),
            lease,
        })
    }

    /// Starts for an approver of the task's question, and ends when that is closed.
    fn for_approver(engine: &Engine, caller: &Caller, lease: Lease, after: Option<Seq>) -> Result<Self, Error> {
        let task = lease.task().filter(|task| may_approve(caller, task));
        let task = task.ok_or_else(|| Error::TaskNotFound(lease.key.task.clone()))?;
        if after.is_some_and(|after| after > task.seq) {
            return Err(cursor_beyond_log(task.seq));
        }
        let mut subscription = Self::start_at(engine, lease, task).until_closed();
        if let Some(after) = after {
            (subscription.cursor, subscription.snapshot) = (after, None);
        }
        Ok(subscription)
    }

    /// The same stream, which ends when the question that its snapshot asks is closed.
    pub(crate) fn until_closed(mut self) -> Self {
        self.until_closed = self.snapshot.as_ref().and_then(|task| task.open_question());
        self.is_over |= self.until_closed.is_none();
        self
    }

    /// Starts with an earlier snapshot, to which the event that took the message in is applied, and continues with all
    /// later events.
    pub(crate) fn start_from_snapshot(engine: &Engine, lease: Lease, mut snapshot: Arc<Task>) -> Self {
        if let TailRead::Entries(entries) = lease.read_after(snapshot.seq)
            && let Some(first) = entries.first()
            && matches!(&first.event, Event::Status(change) if !change.input.is_empty())
        {
            apply(Arc::make_mut(&mut snapshot), &first.event);
        }
        Self::start_at(engine, lease, snapshot)
    }

    /// Starts with this snapshot, and continues with all later events.
    pub(crate) fn start_at(engine: &Engine, lease: Lease, snapshot: Arc<Task>) -> Self {
        Self {
            core: engine.core.clone(),
            context: snapshot.context.clone(),
            born: snapshot.born,
            cursor: snapshot.seq,
            page: None,
            snapshot: Some(snapshot),
            saw_end: false,
            is_over: false,
            until_closed: None,
            stopping: engine.core.stopping.subscribe(),
            _place: None,
            counted: None,
            replay_until: 0,
            _followed: engine.core.follow(&lease),
            lease,
        }
    }

    pub(crate) fn take_snapshot(&mut self) -> Option<Arc<Task>> {
        self.snapshot.take()
    }

    pub(crate) fn holding(self, place: Option<StreamPlace>, counted: Option<OpenStream>) -> Self {
        Self { _place: place, counted, ..self }
    }

    /// What is in the log already is a replay: its reader was not there when it happened.
    pub(crate) fn replaying(self) -> Self {
        let replay_until = self.lease.with_task(|task| task.seq).unwrap_or(0);
        Self { replay_until, ..self }
    }

    /// The task that is watched.
    pub fn task(&self) -> &TaskId {
        &self.lease.key.task
    }

    /// The agent that the task is addressed to.
    pub fn agent(&self) -> &AgentId {
        &self.lease.key.agent
    }

    pub(crate) fn key(&self) -> &TopicKey {
        &self.lease.key
    }

    /// The context of that task.
    pub fn context(&self) -> &ContextId {
        &self.context
    }

    /// The dialect that created the task.
    pub fn born(&self) -> Birth {
        self.born
    }

    /// The number of the first frame; each further one has the next number. Only before anything was read.
    pub fn first_number(&self) -> Seq {
        if self.snapshot.is_some() { self.cursor } else { self.cursor + 1 }
    }

    /// The whole task, at least up to the last event that was read. An approver's stream has it only where the task ends with
    /// the question, since there is more in it later than its reader may see.
    pub fn whole(&self) -> Option<Arc<Task>> {
        let is_closed = self.until_closed.is_some() && self.is_over;
        self.lease.task().filter(|task| !is_closed || task.seq == self.cursor)
    }

    /// Waits for the next batch; `None` at the end. The future can be dropped at any time.
    pub async fn next(&mut self) -> Option<Result<Batch, Error>> {
        if let Some(task) = self.snapshot.take() {
            return Some(Ok(Batch::Snapshot(task)));
        }
        if self.until_closed.is_some() && self.is_over {
            return None;
        }
        loop {
            // Read before the log, so that no later event can be missed.
            let position = self.lease.position();
            match self.lease.read_after(self.cursor) {
                TailRead::Entries(entries) => {
                    self.page = None;
                    return self.deliver_entries(entries);
                }
                TailRead::Behind(no) => match self.lease.pages.read(&*self.core.store, no, self.cursor).await {
                    // The task was deleted while it was read. The reader must not mistake that for the end of the
                    // stream.
                    Ok((_, entries)) if entries.is_empty() && !self.is_over => {
                        self.is_over = true;
                        return Some(Err(Error::TaskNotFound(self.lease.key.task.clone())));
                    }
                    Ok((_, entries)) if entries.is_empty() => return None,
                    Ok((page, entries)) => {
                        self.page = Some(page);
                        self.replay_until = entries.last().map_or(0, |last| last.seq).max(self.replay_until);
                        return self.deliver_entries(entries);
                    }
                    Err(_) if self.is_over => return None,
                    Err(error) => {
                        self.is_over = true;
                        return Some(Err(error.into()));
                    }
                },
                TailRead::Nothing => {}
            }
            if position.activity == TaskActivity::StoreFailing && !self.is_over {
                self.is_over = true;
                let cause = self.lease.failure().unwrap_or_else(|| "the store failed".into());
                return Some(Err(Error::internal(cause.to_string())));
            }
            let nobody_works = matches!(position.activity, TaskActivity::Waiting | TaskActivity::Finished);
            if position.activity == TaskActivity::Finished
                || position.activity == TaskActivity::StoreFailing
                || (self.saw_end && nobody_works)
                || (*self.stopping.borrow() && nobody_works)
            {
                return None;
            }
            tokio::select! {
                _ = self.lease.until(|now| *now != position) => {}
                _ = self.stopping.changed() => {}
            }
        }
    }

    fn deliver_entries(&mut self, mut entries: Vec<Arc<LogEntry>>) -> Option<Result<Batch, Error>> {
        if let Some(question) = self.until_closed
            && let Some(place) = entries.iter().position(|entry| closes(entry, question, self.task()))
        {
            entries.truncate(place + 1);
            self.is_over = true;
        }
        let last = entries.last()?;
        if let Some(counted) = self.counted.as_ref().filter(|_| self.cursor < self.replay_until) {
            counted.replayed(entries.iter().filter(|entry| entry.seq <= self.replay_until).count());
        }
        self.cursor = last.seq;
        self.saw_end = last.event.ends_turn();
        Some(Ok(Batch::Events(entries)))
    }
}

/// Whether this event closes the question: it is answered or withdrawn, another one is asked, or the task ends.
fn closes(entry: &LogEntry, question: QuestionId, task: &TaskId) -> bool {
    let Event::Status(change) = &entry.event else { return false };
    // Progress while the question is open is followed by the question.
    let is_progress = change.status.message.is_some() || change.metadata.is_some();
    entry.seq > question.event
        && match change.status.state {
            _ if !change.input.is_empty() => true,
            State::Working => !is_progress,
            State::InputRequired | State::AuthRequired => change.status.question_id(task) != Some(question),
            State::Submitted | State::Completed | State::Failed | State::Canceled | State::Rejected => true,
        }
}

/// The error for a cursor that is newer than the last event.
pub(crate) fn cursor_beyond_log(last: Seq) -> Error {
    Error::invalid("Last-Event-ID", format!("is beyond the last event, which is {last}"))
}
