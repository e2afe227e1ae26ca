//! A store whose disk can be full, or slow.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sabir_model::{AgentId, ContextId, IdempotencyKey, Message, Owner, Recorded, Seq, Task, TaskId, Timestamp};
use sabir_store::{
    Append, Appended, Listing, Pending, Query, Retention, Store, StoreError, StoreFuture, TaskNo, TaskRow,
};

type Then = Box<dyn FnOnce() + Send>;

pub struct FaultyStore<S> {
    store: S,
    is_full: AtomicBool,
    pace: Mutex<Duration>,
    largest: AtomicUsize,
    then: Arc<Mutex<Option<Then>>>,
}

impl<S: Store> FaultyStore<S> {
    pub fn new(store: S) -> Self {
        Self {
            store,
            is_full: AtomicBool::new(false),
            pace: Mutex::default(),
            largest: AtomicUsize::new(0),
            then: Arc::default(),
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

    /// From now on every append takes so long.
    pub fn slow_down(&self, pace: Duration) {
        *self.pace.lock().expect("nobody panics while he holds this") = pace;
    }

    /// Does this when the next append is through, before the one who waits for it is told.
    pub fn after_next_append(&self, then: impl FnOnce() + Send + 'static) {
        *self.then.lock().expect("nobody panics while he holds this") = Some(Box::new(then));
    }

    /// The most events that came in one append.
    pub fn largest_append(&self) -> usize {
        self.largest.load(Ordering::SeqCst)
    }

    fn is_full(&self) -> bool {
        self.is_full.load(Ordering::SeqCst)
    }
}

impl<S: Store> Store for FaultyStore<S> {
    fn append(&self, append: Append<'_>) -> StoreFuture<'static, Appended> {
        self.largest.fetch_max(append.events.len(), Ordering::SeqCst);
        let pace = *self.pace.lock().expect("nobody panics while he holds this");
        let then = self.then.clone();
        let appending: StoreFuture<'static, Appended> =
            if self.is_full() { Box::pin(async { Err(StoreError::Full) }) } else { self.store.append(append) };
        Box::pin(async move {
            if !pace.is_zero() {
                tokio::time::sleep(pace).await;
            }
            let appended = appending.await;
            let then = then.lock().expect("nobody panics while he holds this").take();
            if let Some(then) = then {
                then();
            }
            appended
        })
    }

    fn check(&self) -> StoreFuture<'_, ()> {
        if self.is_full() { Box::pin(async { Err(StoreError::Full) }) } else { self.store.check() }
    }

    fn find(&self, owner: &Owner, agent: Option<&AgentId>, task: &TaskId) -> StoreFuture<'_, Option<TaskRow>> {
        self.store.find(owner, agent, task)
    }

    fn load(&self, task: TaskNo) -> StoreFuture<'_, Option<Task>> {
        self.store.load(task)
    }

    fn get(&self, owner: &Owner, agent: Option<&AgentId>, task: &TaskId) -> StoreFuture<'_, Option<Task>> {
        self.store.get(owner, agent, task)
    }

    fn events(&self, task: TaskNo, after: Seq, limit: usize) -> StoreFuture<'_, Vec<Recorded>> {
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
    ) -> StoreFuture<'_, Vec<Task>> {
        self.store.conversation(owner, agent, context, limit)
    }

    fn keyed(&self, owner: &Owner, agent: &AgentId, key: &IdempotencyKey) -> StoreFuture<'_, Option<TaskRow>> {
        self.store.keyed(owner, agent, key)
    }

    fn agent_state(&self, owner: &Owner, agent: &AgentId, context: &ContextId) -> StoreFuture<'_, Option<String>> {
        self.store.agent_state(owner, agent, context)
    }

    fn inbox(&self, task: TaskNo) -> StoreFuture<'_, Vec<Message>> {
        self.store.inbox(task)
    }

    fn unfinished(&self) -> StoreFuture<'_, Vec<Pending>> {
        self.store.unfinished()
    }

    fn sweep(&self, retention: Retention) -> StoreFuture<'_, u64> {
        self.store.sweep(retention)
    }
}
