//! A store whose disk can be full, slow or broken, and that counts what is asked of it.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sabir_model::{
    AgentId, ContextId, IdempotencyKey, Message, Owner, PushConfigId, Recorded, Seq, Task, TaskId, Timestamp,
};
use sabir_store::transfer::ExportTasks;
use sabir_store::{
    Append, AppendResult, Delivery, DeliveryCounts, DeliveryKind, Due, GivenUpNo, Listing, Outbox, Query, Retention,
    Store, StoreError, StoreFacts, StoreFuture, SummaryPage, SummaryQuery, SweepResult, TaskCount, TaskNo, TaskRow,
    TaskSummary, UnfinishedTask, Webhook, WebhookNo, WebhookSet,
};
use tokio::sync::Notify;

type Then = Box<dyn FnOnce() + Send>;
type Failure = Box<dyn Fn() -> StoreError + Send>;

pub struct FaultyStore<S> {
    store: S,
    is_full: AtomicBool,
    pace: Mutex<Duration>,
    largest: AtomicUsize,
    checks: AtomicUsize,
    byte_counts: AtomicUsize,
    then: Arc<Mutex<Option<Then>>>,
    after_key: Mutex<Option<Then>>,
    failure: Mutex<Option<Failure>>,
    full_after: Mutex<Option<usize>>,
    reads: AtomicUsize,
    snapshot_messages: AtomicUsize,
    snapshots: AtomicUsize,
    loads_at: AtomicUsize,
    failing_outcomes: AtomicUsize,
    failing_looks: AtomicUsize,
    failing_loads: AtomicUsize,
    freezing_look: Mutex<Option<Duration>>,
    panicking_reads: AtomicUsize,
}

impl<S: Store> FaultyStore<S> {
    pub fn new(store: S) -> Self {
        Self {
            store,
            is_full: AtomicBool::new(false),
            pace: Mutex::default(),
            largest: AtomicUsize::new(0),
            checks: AtomicUsize::new(0),
            byte_counts: AtomicUsize::new(0),
            then: Arc::default(),
            after_key: Mutex::default(),
            failure: Mutex::default(),
            full_after: Mutex::default(),
            reads: AtomicUsize::new(0),
            snapshot_messages: AtomicUsize::new(0),
            snapshots: AtomicUsize::new(0),
            loads_at: AtomicUsize::new(0),
            failing_outcomes: AtomicUsize::new(0),
            failing_looks: AtomicUsize::new(0),
            failing_loads: AtomicUsize::new(0),
            freezing_look: Mutex::default(),
            panicking_reads: AtomicUsize::new(0),
        }
    }

    /// The store behind it.
    pub fn inner(&self) -> &S {
        &self.store
    }

    pub fn fill(&self) {
        self.is_full.store(true, Ordering::SeqCst);
    }

    pub fn make_room(&self) {
        self.is_full.store(false, Ordering::SeqCst);
    }

    /// The disk is full after so many appends.
    pub fn fill_after(&self, appends: usize) {
        *held(&self.full_after) = Some(appends);
    }

    /// From now on every append fails with this.
    pub fn fail_with(&self, failure: impl Fn() -> StoreError + Send + 'static) {
        *held(&self.failure) = Some(Box::new(failure));
    }

    pub fn work_again(&self) {
        *held(&self.failure) = None;
    }

    /// Does this when the next idempotency key has been looked up, before the one who asked is told.
    pub fn after_next_key(&self, then: impl FnOnce() + Send + 'static) {
        *held(&self.after_key) = Some(Box::new(then));
    }

    /// The next outcomes of deliveries cannot be written.
    pub fn fail_outcomes(&self, count: usize) {
        self.failing_outcomes.store(count, Ordering::SeqCst);
    }

    /// The next questions what is due at which receiver fail.
    /// After the next look that finds something due, the process freezes for so long, and others deliver that meanwhile.
    pub fn freeze_after_look(&self, time: Duration) {
        *self.freezing_look.lock().unwrap() = Some(time);
    }

    pub fn fail_looks(&self, count: usize) {
        self.failing_looks.store(count, Ordering::SeqCst);
    }

    /// The next tasks cannot be loaded.
    pub fn fail_loads(&self, count: usize) {
        self.failing_loads.store(count, Ordering::SeqCst);
    }

    /// The next reads of events panic.
    pub fn panic_on_reads(&self, count: usize) {
        self.panicking_reads.store(count, Ordering::SeqCst);
    }

    /// How often a task was loaded as of one of its events.
    pub fn loads_at(&self) -> usize {
        self.loads_at.load(Ordering::SeqCst)
    }

    /// How many snapshots of tasks were stored.
    pub fn snapshots(&self) -> usize {
        self.snapshots.load(Ordering::SeqCst)
    }

    /// How many tasks were read.
    pub fn reads(&self) -> usize {
        self.reads.load(Ordering::SeqCst)
    }

    /// How many messages were written in snapshots.
    pub fn snapshot_messages(&self) -> usize {
        self.snapshot_messages.load(Ordering::SeqCst)
    }

    /// From now on every append takes so long.
    pub fn slow_down(&self, pace: Duration) {
        *held(&self.pace) = pace;
    }

    /// Does this when the next append is through, before the one who waits for it is told.
    pub fn after_next_append(&self, then: impl FnOnce() + Send + 'static) {
        *held(&self.then) = Some(Box::new(then));
    }

    /// The most events that came in one append.
    pub fn largest_append(&self) -> usize {
        self.largest.load(Ordering::SeqCst)
    }

    /// How often it was checked.
    pub fn checks(&self) -> usize {
        self.checks.load(Ordering::SeqCst)
    }

    /// How often the bytes of all owners were added up.
    pub fn byte_counts(&self) -> usize {
        self.byte_counts.load(Ordering::SeqCst)
    }

    fn is_full(&self) -> bool {
        self.is_full.load(Ordering::SeqCst)
    }
}

impl<S: Store> Store for FaultyStore<S> {
    fn append(&self, append: Append<'_>) -> StoreFuture<'static, AppendResult> {
        self.largest.fetch_max(append.events.len(), Ordering::SeqCst);
        let messages = append.snapshot.map_or(0, |task| task.history.len());
        self.snapshot_messages.fetch_add(messages, Ordering::SeqCst);
        self.snapshots.fetch_add(usize::from(append.snapshot.is_some()), Ordering::SeqCst);
        if let Some(left) = held(&self.full_after).as_mut() {
            match left.checked_sub(1) {
                Some(fewer) => *left = fewer,
                None => self.fill(),
            }
        }
        if let Some(failure) = &*held(&self.failure) {
            let failure = failure();
            return Box::pin(async { Err(failure) });
        }
        let pace = *held(&self.pace);
        let then = self.then.clone();
        let appending: StoreFuture<'static, AppendResult> =
            if self.is_full() { Box::pin(async { Err(StoreError::Full) }) } else { self.store.append(append) };
        Box::pin(async move {
            if !pace.is_zero() {
                tokio::time::sleep(pace).await;
            }
            let appended = appending.await;
            let then = held(&then).take();
            if let Some(then) = then {
                then();
            }
            appended
        })
    }

    fn load_at(&self, task: TaskNo, event: Seq) -> StoreFuture<'_, Option<Task>> {
        self.loads_at.fetch_add(1, Ordering::SeqCst);
        self.store.load_at(task, event)
    }

    fn set_webhook(&self, task: TaskNo, webhook: Webhook, now: Timestamp) -> StoreFuture<'static, WebhookSet> {
        self.store.set_webhook(task, webhook, now)
    }

    fn webhooks(&self, task: TaskNo) -> StoreFuture<'_, Vec<Webhook>> {
        self.store.webhooks(task)
    }

    fn remove_webhooks(&self, task: TaskNo, id: Option<&PushConfigId>) -> StoreFuture<'static, ()> {
        self.store.remove_webhooks(task, id)
    }

    fn tasks_of(&self, owner: &Owner, after: Option<(TaskId, AgentId)>, limit: usize) -> StoreFuture<'_, Vec<TaskRow>> {
        self.store.tasks_of(owner, after, limit)
    }

    fn assign(&self, tasks: Vec<TaskNo>, from: &Owner, to: &Owner) -> StoreFuture<'static, Vec<TaskNo>> {
        self.store.assign(tasks, from, to)
    }

    fn summaries(&self, query: SummaryQuery) -> StoreFuture<'_, SummaryPage> {
        self.store.summaries(query)
    }

    fn summary(&self, task: TaskNo) -> StoreFuture<'_, Option<TaskSummary>> {
        self.store.summary(task)
    }

    fn bytes_of(&self, task: TaskNo) -> StoreFuture<'_, u64> {
        self.store.bytes_of(task)
    }

    fn task_counts(&self, owner: Option<&Owner>) -> StoreFuture<'_, Vec<TaskCount>> {
        self.store.task_counts(owner)
    }

    fn facts(&self) -> StoreFuture<'_, StoreFacts> {
        self.store.facts()
    }

    fn highest_no(&self) -> TaskNo {
        self.store.highest_no()
    }

    fn stored_bytes(&self) -> StoreFuture<'_, Vec<(Owner, u64)>> {
        self.byte_counts.fetch_add(1, Ordering::SeqCst);
        self.store.stored_bytes()
    }

    fn check(&self) -> StoreFuture<'_, ()> {
        self.checks.fetch_add(1, Ordering::SeqCst);
        if self.is_full() { Box::pin(async { Err(StoreError::Full) }) } else { self.store.check() }
    }

    fn export(&self) -> StoreFuture<'_, Option<Box<dyn ExportTasks>>> {
        self.store.export()
    }

    fn find(&self, owner: &Owner, agent: Option<&AgentId>, task: &TaskId) -> StoreFuture<'_, Option<TaskRow>> {
        self.store.find(owner, agent, task)
    }

    fn find_of_all(&self, agent: Option<&AgentId>, task: &TaskId, limit: usize) -> StoreFuture<'_, Vec<TaskRow>> {
        self.store.find_of_all(agent, task, limit)
    }

    fn load(&self, task: TaskNo) -> StoreFuture<'_, Option<Task>> {
        self.reads.fetch_add(1, Ordering::SeqCst);
        unless_failing(&self.failing_loads, || self.store.load(task))
    }

    fn get(&self, owner: &Owner, agent: Option<&AgentId>, task: &TaskId) -> StoreFuture<'_, Option<Task>> {
        self.reads.fetch_add(1, Ordering::SeqCst);
        self.store.get(owner, agent, task)
    }

    fn events(&self, task: TaskNo, after: Seq, limit: usize) -> StoreFuture<'_, Vec<Recorded>> {
        assert!(!take_one(&self.panicking_reads), "a read that panics");
        self.store.events(task, after, limit)
    }

    fn list(&self, query: Query) -> StoreFuture<'_, Listing> {
        self.store.list(query)
    }

    fn waiting(&self, owner: &Owner, agent: &AgentId, context: &ContextId) -> StoreFuture<'_, Vec<TaskRow>> {
        self.store.waiting(owner, agent, context)
    }

    fn waiting_since(&self, before: Timestamp, limit: usize) -> StoreFuture<'_, Vec<TaskRow>> {
        self.store.waiting_since(before, limit)
    }

    fn conversation(
        &self,
        owner: &Owner,
        agent: &AgentId,
        context: &ContextId,
        limit: usize,
        max_bytes: usize,
    ) -> StoreFuture<'_, Vec<Task>> {
        self.store.conversation(owner, agent, context, limit, max_bytes)
    }

    fn find_by_key(&self, owner: &Owner, agent: &AgentId, key: &IdempotencyKey) -> StoreFuture<'_, Option<TaskRow>> {
        let keyed = self.store.find_by_key(owner, agent, key);
        Box::pin(async move {
            let keyed = keyed.await;
            if let Some(then) = held(&self.after_key).take_if(|_| matches!(keyed, Ok(Some(_)))) {
                then();
            }
            keyed
        })
    }

    fn agent_state(&self, owner: &Owner, agent: &AgentId, context: &ContextId) -> StoreFuture<'_, Option<String>> {
        self.store.agent_state(owner, agent, context)
    }

    fn task_state(&self, task: TaskNo) -> StoreFuture<'_, Option<String>> {
        self.store.task_state(task)
    }

    fn inbox(&self, task: TaskNo) -> StoreFuture<'_, Vec<Message>> {
        self.store.inbox(task)
    }

    fn unfinished(&self) -> StoreFuture<'_, Vec<UnfinishedTask>> {
        self.store.unfinished()
    }

    fn sweep(&self, retention: Retention) -> StoreFuture<'_, SweepResult> {
        self.store.sweep(retention)
    }
}

impl<S: Store + Outbox> Outbox for FaultyStore<S> {
    fn due_signal(&self) -> Arc<Notify> {
        self.store.due_signal()
    }

    fn ignore(&self, receivers: HashSet<String>) {
        self.store.ignore(receivers);
    }

    fn receivers(&self) -> StoreFuture<'_, Vec<(String, Timestamp)>> {
        unless_failing(&self.failing_looks, || self.store.receivers())
    }

    fn due(&self, receiver: &str, now: Timestamp, limit: usize) -> StoreFuture<'_, Vec<Due>> {
        let looking = unless_failing(&self.failing_looks, || self.store.due(receiver, now, limit));
        Box::pin(async move {
            let due = looking.await?;
            let freeze = if due.is_empty() { None } else { self.freezing_look.lock().unwrap().take() };
            if let Some(time) = freeze {
                for due in &due {
                    self.store.delivered(due.webhook, Seq::MAX, now).await?;
                }
                std::thread::sleep(time);
            }
            Ok(due)
        })
    }

    fn failing_since(&self, receiver: &str) -> StoreFuture<'_, Option<Timestamp>> {
        unless_failing(&self.failing_looks, || self.store.failing_since(receiver))
    }

    fn delivered(&self, webhook: WebhookNo, sent: Seq, now: Timestamp) -> StoreFuture<'static, bool> {
        unless_failing(&self.failing_outcomes, || self.store.delivered(webhook, sent, now))
    }

    fn postpone(&self, webhook: WebhookNo, failure: sabir_store::Failure, next: Timestamp) -> StoreFuture<'static, ()> {
        unless_failing(&self.failing_outcomes, || self.store.postpone(webhook, failure, next))
    }

    fn give_up(&self, webhook: WebhookNo, event: Seq, failure: sabir_store::Failure) -> StoreFuture<'static, ()> {
        unless_failing(&self.failing_outcomes, || self.store.give_up(webhook, event, failure))
    }

    fn retried(&self, given_up: GivenUpNo, failure: Option<sabir_store::Failure>) -> StoreFuture<'static, ()> {
        unless_failing(&self.failing_outcomes, || self.store.retried(given_up, failure))
    }

    fn clock_was_set(&self, now: Timestamp, latest: Timestamp) -> StoreFuture<'static, ()> {
        self.store.clock_was_set(now, latest)
    }

    fn deliveries(&self, kind: DeliveryKind, after: u64, limit: usize) -> StoreFuture<'_, Vec<Delivery>> {
        self.store.deliveries(kind, after, limit)
    }

    fn delivery_counts(&self) -> StoreFuture<'_, DeliveryCounts> {
        self.store.delivery_counts()
    }

    fn retry(&self, kind: DeliveryKind, number: u64, now: Timestamp) -> StoreFuture<'static, bool> {
        self.store.retry(kind, number, now)
    }

    fn discard(&self, kind: DeliveryKind, number: u64, now: Timestamp) -> StoreFuture<'static, bool> {
        self.store.discard(kind, number, now)
    }
}

fn unless_failing<'a, T: Send + 'a>(
    failures: &AtomicUsize,
    call: impl FnOnce() -> StoreFuture<'a, T>,
) -> StoreFuture<'a, T> {
    if take_one(failures) { Box::pin(async { Err(StoreError::Full) }) } else { call() }
}

/// Whether there was one left.
fn take_one(count: &AtomicUsize) -> bool {
    count.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok()
}

fn held<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().expect("nobody panics while it is held")
}
