//! The SQLite store: sends appends and sweeps to the writer, and lookups to the readers.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use rusqlite::Connection;
use sabir_model::{
    AgentId, ContextId, IdempotencyKey, Message, Owner, PushConfigId, Recorded, Seq, Task, TaskId, Timestamp, Wanted,
};
use tokio::sync::{Notify, oneshot};
use tokio::task::spawn_blocking;

use crate::damage::DamageLog;
use crate::encode::Encoded;
use crate::metrics::Commits;
use crate::transfer::ExportTasks;
use crate::{
    Append, AppendResult, AuditEntry, AuditLog, AuditPage, AuditQuery, AuditRetention, AuditTrimmed, Delivery,
    DeliveryCounts, DeliveryKind, Due, Failure, GivenUpNo, Listing, Measured, OpenError, Outbox, Query, Retention,
    Store, StoreContents, StoreError, StoreFacts, StoreFuture, StoreMetrics, SummaryPage, SummaryQuery, SweepResult,
    TaskCount, TaskNo, TaskRow, TaskSummary, UnfinishedTask, Webhook, WebhookNo, WebhookSet,
};

use super::connect::{self, Durability, SqliteSettings};
use super::due_index::DueIndex;
use super::file_identity::FileIdentity;
use super::lock::Lock;
use super::pool::Pool;
use super::queue::Queue;
use super::reader::QuickRead;
use super::recent_heads::RecentHeads;
use super::rows::TaskRecord;
use super::transfer::SqliteExport;
use super::webhooks::{Changed, Watched, WebhookChange};
use super::writer::{self, Assignment, Job, ReplySender};
use super::{audit, checkpoint, contents, list, open, outbox, reader, stored_bytes, summaries, sweep};

pub struct SqliteStore {
    queue: Arc<Queue<Job>>,
    pool: Arc<Pool>,
    damages: Arc<DamageLog>,
    heads: Arc<RecentHeads>,
    commits: Arc<Commits>,
    due_index: Arc<DueIndex>,
    /// The number of the newest task.
    last_no: Arc<AtomicU64>,
    open_file: Mutex<Option<OpenFile>>,
    path: PathBuf,
    identity: Arc<FileIdentity>,
}

/// The threads and the lock of an open file.
struct OpenFile {
    writer: JoinHandle<()>,
    checkpointer: JoinHandle<()>,
    lock: Lock,
}

impl SqliteStore {
    /// Opens the file or creates it. No other process can open it until this store is closed.
    pub fn open(path: &Path, durability: Durability) -> Result<Self, OpenError> {
        Self::open_with(path, SqliteSettings { durability, ..SqliteSettings::default() })
    }

    pub fn open_with(path: &Path, settings: SqliteSettings) -> Result<Self, OpenError> {
        let open::Opened { path, lock, mut conn, last_no } = open::open(path, &settings)?;
        let open_error = |error| open::open_error(&path, error);
        let checkpoint_conn = connect::checkpointer(&path, settings.durability).map_err(open_error)?;
        let (wal, checkpointer) = checkpoint::pair(&mut conn, checkpoint_conn).map_err(open_error)?;
        let pool = Pool::open(&path).map_err(open_error)?;
        let other = |reason: String| OpenError::Other { path: path.clone(), reason };
        let identity = Arc::new(FileIdentity::new(&path, &lock).map_err(|error| other(error.to_string()))?);
        // The file may have been replaced between the lock and the connections.
        identity.check().map_err(other)?;
        let (same_files, same_identity) = (identity.clone(), identity.clone());
        pool.open_others(&path, move || same_files.check());
        let queue = Arc::new(Queue::new());
        if sweep::has_leftovers(&conn).map_err(open_error)? {
            let _ = queue.push(Job::RemoveLeftovers);
        }
        let commits = Arc::<Commits>::default();
        let due_index = Arc::new(DueIndex::default());
        let watched = Watched::load(&conn, due_index.clone()).map_err(open_error)?;
        let last_no = Arc::new(AtomicU64::new(last_no.0));
        let (jobs, counter, moved, newest) = (queue.clone(), commits.clone(), queue.clone(), last_no.clone());
        let spawn = |name: &str, work: Box<dyn FnOnce() + Send>| {
            let spawned = thread::Builder::new().name(name.into()).spawn(work);
            spawned.map_err(|error| other(error.to_string()))
        };
        // In this order, since the checkpointer ends when there is no writer.
        let checkpointer =
            spawn("store-checkpoint", Box::new(move || checkpointer.run(|| drop(moved.push(Job::CheckpointDone)))))?;
        let writer = spawn(
            "store-writer",
            Box::new(move || writer::run(&conn, newest, watched, &jobs, wal, identity, counter)),
        )?;
        let open_file = OpenFile { writer, checkpointer, lock };
        Ok(Self {
            queue,
            pool,
            damages: Arc::default(),
            heads: Arc::default(),
            commits,
            due_index,
            last_no,
            open_file: Mutex::new(Some(open_file)),
            identity: same_identity,
            path,
        })
    }

    /// Whether another process has this file open as its store. A process that has the file open itself must not ask: to ask
    /// means to open and close the file, and closing it drops the locks that SQLite has in this process.
    pub fn is_open_elsewhere(path: &Path) -> bool {
        Lock::is_held(path)
    }

    /// Stores what is queued, refuses later calls, and releases the file. Blocks until that is done.
    pub fn close(&self) {
        self.queue.close();
        let open_file = self.open_file.lock().expect("nobody panics while closing").take();
        let Some(OpenFile { writer, checkpointer, lock }) = open_file else { return };
        // A thread that panicked has logged it; there is nothing to wait for.
        let _ = writer.join();
        self.pool.close();
        let _ = checkpointer.join();
        drop(lock);
    }

    /// Blocks until all connections are open; they are opened while the store is already in use. For tests that replace
    /// files.
    #[doc(hidden)]
    pub fn until_open(&self) {
        self.pool.until_open();
    }

    /// The number of committed transactions since the store was opened.
    pub fn commits(&self) -> u64 {
        self.commits.count.load(Ordering::Relaxed)
    }

    /// Looks up a row, or the few rows of a context.
    fn row<T: Send + 'static>(
        &self,
        find: impl Fn(&Connection) -> Result<T, StoreError> + Clone + Send + 'static,
    ) -> StoreFuture<'static, T> {
        let again = find.clone();
        self.pool.quick_read(move |conn| find(conn).map(Some), move |conn| again(conn))
    }

    /// Reads a whole task: without another thread if it is small.
    fn whole_task(
        &self,
        find: impl Fn(&Connection) -> Result<Option<TaskRecord>, StoreError> + Clone + Send + 'static,
    ) -> StoreFuture<'static, Option<Task>> {
        let again = find.clone();
        let quick = move |conn: &mut Connection| {
            let tx = conn.transaction()?;
            match find(&tx)?
                .map(|found| reader::quick_read(&tx, found, reader::SMALL_BYTES, Wanted::Yes))
                .transpose()?
            {
                None => Ok(Some(None)),
                Some(QuickRead::Whole(task, _)) => Ok(Some(Some(task))),
                Some(QuickRead::TooLong(_)) => Ok(None),
            }
        };
        let damages = self.damages.clone();
        self.pool.quick_read(quick, move |conn| {
            let tx = conn.transaction()?;
            let task = again(&tx)?.map(|found| reader::fold(&tx, &damages, found, Wanted::Yes)).transpose()?;
            Ok(task.flatten())
        })
    }

    fn ask_writer<T: Send + 'static>(&self, job: impl FnOnce(ReplySender<T>) -> Job) -> StoreFuture<'static, T> {
        let (reply, answer) = oneshot::channel();
        // Queued at once and not when first polled, so that appends are stored in the order of the calls.
        let queued = self.queue.push(job(reply)).is_ok();
        Box::pin(async move {
            if !queued {
                return Err(StoreError::Closed);
            }
            answer.await.unwrap_or(Err(StoreError::Closed))
        })
    }
}

impl SqliteStore {
    fn change_webhook(&self, change: WebhookChange) -> StoreFuture<'static, Changed> {
        self.ask_writer(|reply| Job::Webhook(Box::new(change), reply))
    }

    /// A change of which nobody wants to know what it found.
    fn note(&self, change: WebhookChange) -> StoreFuture<'static, ()> {
        let changed = self.change_webhook(change);
        Box::pin(async move { changed.await.map(drop) })
    }

    /// Whether a change found its row.
    fn found(&self, change: WebhookChange) -> StoreFuture<'static, bool> {
        let changed = self.change_webhook(change);
        Box::pin(async move { changed.await.map(|changed| !matches!(changed, Changed::Rows(0))) })
    }
}

impl Outbox for SqliteStore {
    fn due_signal(&self) -> Arc<Notify> {
        self.due_index.signal.clone()
    }

    fn ignore(&self, receivers: HashSet<String>) {
        self.due_index.ignore(receivers);
    }

    fn receivers(&self) -> StoreFuture<'_, Vec<(String, Timestamp)>> {
        Box::pin(std::future::ready(Ok(self.due_index.receivers())))
    }

    fn due(&self, receiver: &str, now: Timestamp, limit: usize) -> StoreFuture<'_, Vec<Due>> {
        let receiver = receiver.to_owned();
        let index = self.due_index.clone();
        self.row(move |conn| outbox::due(conn, &index, &receiver, now, limit))
    }

    fn failing_since(&self, receiver: &str) -> StoreFuture<'_, Option<Timestamp>> {
        let receiver = receiver.to_owned();
        self.pool.read(move |conn| outbox::failing_since(conn, &receiver))
    }

    fn delivered(&self, webhook: WebhookNo, sent: Seq, now: Timestamp) -> StoreFuture<'static, bool> {
        self.found(WebhookChange::Delivered { webhook, sent, now })
    }

    fn postpone(&self, webhook: WebhookNo, failure: Failure, next: Timestamp) -> StoreFuture<'static, ()> {
        self.note(WebhookChange::Postpone { webhook, failure, next })
    }

    fn give_up(&self, webhook: WebhookNo, event: Seq, failure: Failure) -> StoreFuture<'static, ()> {
        self.note(WebhookChange::GiveUp { webhook, event, failure })
    }

    fn retried(&self, given_up: GivenUpNo, failure: Option<Failure>) -> StoreFuture<'static, ()> {
        self.note(WebhookChange::Retried { given_up, failure })
    }

    fn clock_was_set(&self, now: Timestamp, latest: Timestamp) -> StoreFuture<'static, ()> {
        self.note(WebhookChange::ClockWasSet { now, latest })
    }

    fn deliveries(&self, kind: DeliveryKind, after: u64, limit: usize) -> StoreFuture<'_, Vec<Delivery>> {
        let index = self.due_index.clone();
        self.pool.read(move |conn| match kind {
            DeliveryKind::Pending => outbox::pending(conn, &index, after, limit),
            DeliveryKind::GivenUp => outbox::given_up(conn, after, limit),
        })
    }

    fn delivery_counts(&self) -> StoreFuture<'_, DeliveryCounts> {
        let index = self.due_index.clone();
        self.pool.read(move |conn| outbox::counts(conn, &index))
    }

    fn retry(&self, kind: DeliveryKind, number: u64, now: Timestamp) -> StoreFuture<'static, bool> {
        self.found(WebhookChange::Retry { kind, number, now })
    }

    fn discard(&self, kind: DeliveryKind, number: u64, now: Timestamp) -> StoreFuture<'static, bool> {
        self.found(WebhookChange::Discard { kind, number, now })
    }
}

impl AuditLog for SqliteStore {
    fn record(&self, entry: AuditEntry) -> StoreFuture<'static, ()> {
        self.ask_writer(|reply| Job::Audit(Box::new(entry), reply))
    }

    fn entries(&self, query: AuditQuery) -> StoreFuture<'_, AuditPage> {
        self.pool.read(move |conn| audit::entries(conn, &query))
    }

    fn trim(&self, retention: AuditRetention) -> StoreFuture<'static, AuditTrimmed> {
        self.ask_writer(|reply| Job::TrimAudit(retention, reply))
    }
}

impl Measured for SqliteStore {
    fn observe_commits(&self, metrics: StoreMetrics) {
        let _ = self.commits.metrics.set(metrics);
    }

    fn measure(&self) -> StoreFuture<'_, StoreContents> {
        self.pool.read(contents::contents)
    }
}

impl Drop for SqliteStore {
    fn drop(&mut self) {
        self.close();
    }
}

impl Store for SqliteStore {
    fn append(&self, append: Append<'_>) -> StoreFuture<'static, AppendResult> {
        match Encoded::new(&append) {
            Ok(encoded) => self.ask_writer(|reply| Job::Append(Box::new(encoded), reply)),
            Err(error) => Box::pin(std::future::ready(Err(error))),
        }
    }

    fn find(&self, owner: &Owner, agent: Option<&AgentId>, task: &TaskId) -> StoreFuture<'_, Option<TaskRow>> {
        let (owner, agent, task) = (owner.clone(), agent.cloned(), task.clone());
        self.row(move |conn| reader::find(conn, &owner, agent.as_ref(), &task))
    }

    fn find_of_all(&self, agent: Option<&AgentId>, task: &TaskId, limit: usize) -> StoreFuture<'_, Vec<TaskRow>> {
        let (agent, task, damages) = (agent.cloned(), task.clone(), self.damages.clone());
        self.pool.read(move |conn| reader::find_of_all(conn, &damages, agent.as_ref(), &task, limit))
    }

    fn load(&self, task: TaskNo) -> StoreFuture<'_, Option<Task>> {
        self.whole_task(move |conn| reader::by_number(conn, task))
    }

    fn get(&self, owner: &Owner, agent: Option<&AgentId>, task: &TaskId) -> StoreFuture<'_, Option<Task>> {
        let (owner, agent, task) = (owner.clone(), agent.cloned(), task.clone());
        self.whole_task(move |conn| reader::by_id(conn, &owner, agent.as_ref(), &task))
    }

    fn load_at(&self, task: TaskNo, event: Seq) -> StoreFuture<'_, Option<Task>> {
        self.pool.read(move |conn| reader::fold_until(conn, task, event))
    }

    fn events(&self, task: TaskNo, after: Seq, limit: usize) -> StoreFuture<'_, Vec<Recorded>> {
        let damages = self.damages.clone();
        self.pool.read(move |conn| reader::events(conn, &damages, task, after, limit))
    }

    fn list(&self, query: Query) -> StoreFuture<'_, Listing> {
        let (damages, heads, query) = (self.damages.clone(), self.heads.clone(), Arc::new(query));
        let (same_damages, same_heads, same_query) = (damages.clone(), heads.clone(), query.clone());
        self.pool.quick_read(
            move |conn| list::quick_list(conn, &damages, &heads, &query),
            move |conn| list::list(conn, &same_damages, &same_heads, &same_query),
        )
    }

    fn waiting(&self, owner: &Owner, agent: &AgentId, context: &ContextId) -> StoreFuture<'_, Vec<TaskRow>> {
        let (owner, agent, context) = (owner.clone(), agent.clone(), context.clone());
        let damages = self.damages.clone();
        self.row(move |conn| reader::waiting(conn, &damages, &owner, &agent, &context))
    }

    fn waiting_since(&self, before: Timestamp, limit: usize) -> StoreFuture<'_, Vec<TaskRow>> {
        let damages = self.damages.clone();
        self.pool.read(move |conn| reader::waiting_since(conn, &damages, before, limit))
    }

    fn conversation(
        &self,
        owner: &Owner,
        agent: &AgentId,
        context: &ContextId,
        limit: usize,
        max_bytes: usize,
    ) -> StoreFuture<'_, Vec<Task>> {
        let (owner, agent, context) = (owner.clone(), agent.clone(), context.clone());
        let damages = self.damages.clone();
        self.pool.read(move |conn| reader::conversation(conn, &damages, &owner, &agent, &context, limit, max_bytes))
    }

    fn find_by_key(&self, owner: &Owner, agent: &AgentId, key: &IdempotencyKey) -> StoreFuture<'_, Option<TaskRow>> {
        let (owner, agent, key) = (owner.clone(), agent.clone(), key.clone());
        self.row(move |conn| reader::find_by_key(conn, &owner, &agent, &key))
    }

    fn agent_state(&self, owner: &Owner, agent: &AgentId, context: &ContextId) -> StoreFuture<'_, Option<String>> {
        let (owner, agent, context) = (owner.clone(), agent.clone(), context.clone());
        self.row(move |conn| reader::agent_state(conn, &owner, &agent, &context))
    }

    fn task_state(&self, task: TaskNo) -> StoreFuture<'_, Option<String>> {
        self.row(move |conn| reader::task_state(conn, task))
    }

    fn inbox(&self, task: TaskNo) -> StoreFuture<'_, Vec<Message>> {
        self.pool.read(move |conn| reader::inbox(conn, task))
    }

    fn unfinished(&self) -> StoreFuture<'_, Vec<UnfinishedTask>> {
        let damages = self.damages.clone();
        self.pool.read(move |conn| reader::unfinished(conn, &damages))
    }

    fn sweep(&self, retention: Retention) -> StoreFuture<'_, SweepResult> {
        self.ask_writer(|reply| Job::Sweep(retention, reply))
    }

    fn set_webhook(&self, task: TaskNo, webhook: Webhook, now: Timestamp) -> StoreFuture<'static, WebhookSet> {
        let changed = self.change_webhook(WebhookChange::Set { task, webhook, now });
        Box::pin(async move {
            match changed.await? {
                Changed::Set(set) => Ok(set),
                Changed::Rows(_) => Ok(WebhookSet::Done),
            }
        })
    }

    fn webhooks(&self, task: TaskNo) -> StoreFuture<'_, Vec<Webhook>> {
        self.row(move |conn| outbox::webhooks(conn, task))
    }

    fn remove_webhooks(&self, task: TaskNo, id: Option<&PushConfigId>) -> StoreFuture<'static, ()> {
        self.note(WebhookChange::Remove { task, id: id.cloned() })
    }

    fn tasks_of(&self, owner: &Owner, after: Option<(TaskId, AgentId)>, limit: usize) -> StoreFuture<'_, Vec<TaskRow>> {
        let (owner, damages) = (owner.clone(), self.damages.clone());
        self.pool.read(move |conn| reader::tasks_of(conn, &damages, &owner, after.as_ref(), limit))
    }

    fn assign(&self, tasks: Vec<TaskNo>, from: &Owner, to: &Owner) -> StoreFuture<'static, Vec<TaskNo>> {
        let assignment = Assignment { tasks, from: from.clone(), to: to.clone() };
        self.ask_writer(|reply| Job::Assign(Box::new(assignment), reply))
    }

    fn summaries(&self, query: SummaryQuery) -> StoreFuture<'_, SummaryPage> {
        let damages = self.damages.clone();
        self.pool.read(move |conn| summaries::summaries(conn, &damages, &query))
    }

    fn summary(&self, task: TaskNo) -> StoreFuture<'_, Option<TaskSummary>> {
        let damages = self.damages.clone();
        self.pool.read(move |conn| summaries::summary(conn, &damages, task))
    }

    fn bytes_of(&self, task: TaskNo) -> StoreFuture<'_, u64> {
        self.pool.read(move |conn| summaries::bytes_of(conn, task))
    }

    fn task_counts(&self, owner: Option<&Owner>) -> StoreFuture<'_, Vec<TaskCount>> {
        let owner = owner.cloned();
        self.pool.read(move |conn| summaries::task_counts(conn, owner.as_ref()))
    }

    fn facts(&self) -> StoreFuture<'_, StoreFacts> {
        self.pool.read(|conn| summaries::facts(conn))
    }

    fn highest_no(&self) -> TaskNo {
        TaskNo(self.last_no.load(Ordering::Relaxed))
    }

    fn stored_bytes(&self) -> StoreFuture<'_, Vec<(Owner, u64)>> {
        self.pool.read(stored_bytes::stored_bytes)
    }

    fn check(&self) -> StoreFuture<'_, ()> {
        let written = self.ask_writer(Job::Check);
        let read = self.pool.read(|conn| Ok(conn.query_row("SELECT count(*) FROM probe", (), |_| Ok(()))?));
        Box::pin(async move { written.await.and(read.await) })
    }

    fn export(&self) -> StoreFuture<'_, Option<Box<dyn ExportTasks>>> {
        let (path, identity) = (self.path.clone(), self.identity.clone());
        Box::pin(async move {
            let open = move || {
                let export = SqliteExport::of_server(&path)?;
                // By now the path may lead to another file.
                identity.check().map_err(StoreError::Lost)?;
                Ok(Some(Box::new(export) as Box<dyn ExportTasks>))
            };
            spawn_blocking(open).await.unwrap_or(Err(StoreError::Closed))
        })
    }
}
