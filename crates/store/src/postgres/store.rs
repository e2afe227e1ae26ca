//! The Postgres store: sends appends to the writers, and everything else to the shared connections.

use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use sabir_model::{
    AgentId, ContextId, IdempotencyKey, Message, Owner, PushConfigId, Recorded, Seq, Task, TaskId, Timestamp,
};
use tokio::sync::{Notify, mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};

use super::UNBROKEN;
use super::claims::{Claimer, UnreadClaims, UnreadableTasks};
use super::connections::Connections;
use super::link::{Dialer, LONG_LIMIT, Link};
use super::migrate::{self, open_error};
use super::nodes::Node;
use super::notices::Notices;
use super::parties::Parties;
use super::settings::{PostgresSettings, Target};
use super::sweep::SweepPosition;
use super::transfer::PostgresExport;
use super::writer::{self, Writers};
use super::{assign, audit, contents, forwards, list, outbox, reader, stored_bytes, summaries, sweep, webhooks};
use crate::damage::DamageLog;
use crate::transfer::ExportTasks;
use crate::{
    Append, AppendResult, AuditEntry, AuditLog, AuditPage, AuditQuery, AuditRetention, AuditTrimmed, ClaimedTask,
    ClaimingAgent, Cluster, Delivery, DeliveryCounts, DeliveryKind, Due, Epoch, Failure, ForwardNo, ForwardState,
    ForwardedCall, GivenBack, GivenUpNo, Hints, Home, Listing, Measured, Member, NodeLease, OpenError, Outbox, Query,
    Retention, Store, StoreContents, StoreError, StoreFacts, StoreFuture, StoreMetrics, SummaryPage, SummaryQuery,
    SweepResult, TaskCount, TaskNo, TaskProgress, TaskRow, TaskSummary, UnfinishedTask, Webhook, WebhookNo, WebhookSet,
};

/// How often to look for what other nodes did, where notices arrive and where they do not.
const POLL_WITH_HINTS: Duration = Duration::from_secs(2);
const POLL_WITHOUT_HINTS: Duration = Duration::from_millis(250);

/// Whoever asks whether the store works does not wait for longer than this.
const CHECK_LIMIT: Duration = Duration::from_secs(3);

/// The pause between two dials at the start.
const DIAL_PAUSE: Duration = Duration::from_secs(1);

/// The oldest server that has all that the statements need.
const OLDEST_SERVER: i64 = 130_000;

pub struct PostgresStore {
    inner: Arc<Inner>,
    /// `None` after `close`.
    writers: Mutex<Option<OpenWriters>>,
    tasks: Background,
}

/// What the store and its background tasks share.
pub(super) struct Inner {
    pub dialer: Arc<Dialer>,
    pub db: Connections,
    pub parties: Parties,
    pub node: Arc<Node>,
    pub notices: Arc<Notices>,
    /// Notified after a commit that made something due.
    pub due: Arc<Notify>,
    damages: DamageLog,
    sweep_position: Mutex<SweepPosition>,
    home_timeout: Duration,
    /// Empty: nobody wants to know how long commits take.
    pub metrics: OnceLock<StoreMetrics>,
    unread_claims: Mutex<UnreadClaims>,
    unreadable: Mutex<UnreadableTasks>,
    /// The number of the next call that is forwarded.
    next_forward: AtomicU64,
}

struct OpenWriters {
    appends: Writers,
    audit: mpsc::UnboundedSender<AuditJob>,
    running: Vec<JoinHandle<()>>,
}

type AuditJob = (AuditEntry, oneshot::Sender<Result<(), StoreError>>);

/// Tasks that end with the store.
struct Background {
    beat: Option<JoinHandle<()>>,
    others: Vec<JoinHandle<()>>,
}

impl Drop for Background {
    fn drop(&mut self) {
        for task in self.beat.iter().chain(&self.others) {
            task.abort();
        }
    }
}

impl PostgresStore {
    /// Connects, makes or updates the tables, and joins the other nodes. Must run inside a Tokio runtime.
    pub async fn open(settings: PostgresSettings) -> Result<Self, OpenError> {
        let target = Target::parse(&settings.url).map_err(OpenError::BadUrl)?;
        let server = target.shown();
        let failed = |error| open_error(&server, &error);
        let dialer = Arc::new(Dialer::new(target));
        let mut link = first_link(&dialer, &server, settings.start_timeout).await?;
        // Another server may be making the tables.
        link.set_limit(LONG_LIMIT);
        check_server(&link, &dialer, &server).await?;
        migrate::migrate(&link, &server).await?;
        migrate::check_transfer(&link, &server).await?;

        let (node, notices) = (Arc::new(Node::new(&settings)), Arc::new(Notices::new()));
        let own = node.clone();
        let (listens, listening) = notices.listen(&dialer, Arc::new(move || own.number())).await.map_err(failed)?;
        // From here on, an error ends this task too.
        let mut tasks = Background { beat: None, others: vec![listening] };
        if !listens {
            tracing::warn!(
                server,
                "LISTEN does not work, as behind a pooler in transaction mode: changes of other nodes are looked for every 250 ms"
            );
        }
        node.register(&link, listens).await.map_err(failed)?;
        let highest = link.query("SELECT coalesce(max(no), 0) FROM tasks", &[]).await.map_err(failed)?;
        node.note_task(TaskNo(highest.first().map_or(0, |row| row.get::<_, i64>(0)) as u64));

        let first_id = writer::first_id(node.number());
        let inner = Arc::new(Inner {
            db: Connections::new(dialer.clone()),
            dialer,
            parties: Parties::default(),
            node,
            notices,
            due: Arc::default(),
            damages: DamageLog::default(),
            sweep_position: Mutex::default(),
            home_timeout: settings.home_timeout,
            metrics: OnceLock::new(),
            unread_claims: Mutex::default(),
            unreadable: Mutex::default(),
            next_forward: AtomicU64::new(first_id as u64),
        });
        let (appends, queues) = Writers::new(settings.writers, first_id);
        let mut running = queues.spawn(&inner);
        let (audit, entries) = mpsc::unbounded_channel();
        running.push(tokio::spawn(write_audit(inner.clone(), entries)));
        let same = inner.clone();
        tasks.others.push(tokio::spawn(async move { same.notices.send(&same.dialer).await }));
        let same = inner.clone();
        tasks.beat = Some(tokio::spawn(async move { same.node.run(&same.dialer, &same.notices).await }));
        inner.notices.tell_hello();
        Ok(Self { inner, writers: Mutex::new(Some(OpenWriters { appends, audit, running })), tasks })
    }

    /// Stores what is queued and refuses later appends. `Cluster::leave` comes before it.
    pub async fn close(&self) {
        let writers = self.writers.lock().expect(UNBROKEN).take();
        let Some(OpenWriters { appends, audit, running }) = writers else { return };
        drop((appends, audit));
        for writer in running {
            // A task that panicked has logged it; there is nothing to wait for.
            let _ = writer.await;
        }
    }

    /// Renews the lease no more, as if the process were frozen. For tests.
    #[doc(hidden)]
    pub fn stop_beating(&self) {
        if let Some(beat) = &self.tasks.beat {
            beat.abort();
        }
    }

    /// A read, which borrows the store.
    fn read<'s, T, F>(&'s self, work: impl FnOnce(&'s Inner) -> F) -> StoreFuture<'s, T>
    where
        F: Future<Output = Result<T, StoreError>> + Send + 's,
    {
        Box::pin(work(&self.inner))
    }
}

/// Dials until the database can be reached.
async fn first_link(dialer: &Arc<Dialer>, server: &str, start_timeout: Duration) -> Result<Link, OpenError> {
    let deadline = Instant::now() + start_timeout;
    loop {
        let error = match dialer.dial().await {
            Ok(link) => return Ok(link),
            Err(error) => open_error(server, &error),
        };
        let OpenError::Unreachable { reason, .. } = &error else { return Err(error) };
        if Instant::now() + DIAL_PAUSE > deadline {
            return Err(error);
        }
        tracing::warn!(server, reason, "waiting for the database, which cannot be reached yet");
        sleep(DIAL_PAUSE).await;
    }
}

/// Learns what kind of server it is.
async fn check_server(link: &Link, dialer: &Dialer, server: &str) -> Result<(), OpenError> {
    let sql = "SELECT current_setting('server_version_num'), current_setting('fsync'),
        current_setting('full_page_writes'), current_setting('synchronous_commit'),
        current_setting('default_transaction_isolation')";
    let rows = link.texts(sql).await.map_err(|error| open_error(server, &error))?;
    let setting = |column: usize| rows.first().and_then(|row| row.get(column)?.as_deref()).unwrap_or_default();
    if setting(0).parse::<i64>().is_ok_and(|version| version < OLDEST_SERVER) {
        let reason = "Sabir needs Postgres 13 or newer".to_owned();
        return Err(OpenError::OtherDatabase { server: server.to_owned(), reason });
    }
    // A statement has to see what was committed while it waited.
    if setting(4) != "read committed" {
        let reason = format!(
            "default_transaction_isolation is {:?}, and Sabir needs \"read committed\"; run ALTER DATABASE ... SET \
             default_transaction_isolation = 'read committed', or ALTER ROLE for its user",
            setting(4)
        );
        return Err(OpenError::OtherDatabase { server: server.to_owned(), reason });
    }
    if setting(1) == "off" {
        tracing::warn!(server, "fsync is off: the database can lose or damage everything when its machine fails");
    }
    if setting(2) == "off" {
        tracing::warn!(
            server,
            "full_page_writes is off: unless the file system prevents torn pages, the database can be damaged when its machine fails"
        );
    }
    if setting(3) == "off" {
        dialer.set_commit_unsafe();
    }
    Ok(())
}

/// Writes entries of the audit log one after the other, in the order of the calls.
async fn write_audit(inner: Arc<Inner>, mut entries: mpsc::UnboundedReceiver<AuditJob>) {
    while let Some((entry, reply)) = entries.recv().await {
        // The caller may be gone; then the result is not needed.
        let _ = reply.send(audit::record(&inner.db, &entry).await);
    }
}

impl Inner {
    fn claimer(&self) -> Claimer<'_> {
        let Inner { db, parties, damages, node, notices, due, home_timeout, unread_claims, unreadable, .. } = self;
        let (home_timeout, unread) = (*home_timeout, unread_claims);
        Claimer { db, parties, damages, node, notices, due, home_timeout, unread, unreadable }
    }

    fn signal_if(&self, is_due: bool) {
        if is_due {
            self.due.notify_one();
        }
    }

    /// Writes and deletes a row that is large enough to need space.
    async fn probe(&self) -> Result<(), StoreError> {
        let place = (self.node.number() & i64::from(i32::MAX)) as i32;
        let put = "INSERT INTO probe (no, body) VALUES ($1, $2) ON CONFLICT (no) DO UPDATE SET body = excluded.body";
        self.db.execute(put, &[&place, &vec![0_u8; 1024]]).await?;
        self.db.execute("DELETE FROM probe WHERE no = $1", &[&place]).await?;
        Ok(())
    }
}

impl Store for PostgresStore {
    fn append(&self, append: Append<'_>) -> StoreFuture<'static, AppendResult> {
        let queued = match &*self.writers.lock().expect(UNBROKEN) {
            Some(writers) => writers.appends.append(&append),
            None => Err(StoreError::Closed),
        };
        Box::pin(async move { queued?.await.unwrap_or(Err(StoreError::Closed)) })
    }

    fn find(&self, owner: &Owner, agent: Option<&AgentId>, task: &TaskId) -> StoreFuture<'_, Option<TaskRow>> {
        let (owner, agent, task) = (owner.clone(), agent.cloned(), task.clone());
        self.read(
            move |inner| async move { reader::find(&inner.db, &inner.parties, &owner, agent.as_ref(), &task).await },
        )
    }

    fn find_of_all(&self, agent: Option<&AgentId>, task: &TaskId, limit: usize) -> StoreFuture<'_, Vec<TaskRow>> {
        let (agent, task) = (agent.cloned(), task.clone());
        self.read(move |inner| async move {
            reader::find_of_all(&inner.db, &inner.damages, agent.as_ref(), &task, limit).await
        })
    }

    fn load(&self, task: TaskNo) -> StoreFuture<'_, Option<Task>> {
        self.read(move |inner| async move { reader::load(&inner.db, &inner.damages, task).await })
    }

    fn get(&self, owner: &Owner, agent: Option<&AgentId>, task: &TaskId) -> StoreFuture<'_, Option<Task>> {
        let (owner, agent, task) = (owner.clone(), agent.cloned(), task.clone());
        self.read(move |inner| async move {
            reader::get(&inner.db, &inner.parties, &inner.damages, &owner, agent.as_ref(), &task).await
        })
    }

    fn events(&self, task: TaskNo, after: Seq, limit: usize) -> StoreFuture<'_, Vec<Recorded>> {
        self.read(move |inner| async move { reader::events(&inner.db, &inner.damages, task, after, limit).await })
    }

    fn load_at(&self, task: TaskNo, event: Seq) -> StoreFuture<'_, Option<Task>> {
        self.read(move |inner| async move { reader::load_at(&inner.db, task, event).await })
    }

    fn list(&self, query: Query) -> StoreFuture<'_, Listing> {
        self.read(move |inner| async move { list::list(&inner.db, &inner.parties, &inner.damages, &query).await })
    }

    fn waiting(&self, owner: &Owner, agent: &AgentId, context: &ContextId) -> StoreFuture<'_, Vec<TaskRow>> {
        let (owner, agent, context) = (owner.clone(), agent.clone(), context.clone());
        self.read(move |inner| async move {
            reader::waiting(&inner.db, &inner.parties, &inner.damages, &owner, &agent, &context).await
        })
    }

    fn waiting_since(&self, before: Timestamp, limit: usize) -> StoreFuture<'_, Vec<TaskRow>> {
        self.read(move |inner| async move { reader::waiting_since(&inner.db, &inner.damages, before, limit).await })
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
        self.read(move |inner| async move {
            let Inner { db, parties, damages, .. } = inner;
            reader::conversation(db, parties, damages, &owner, &agent, &context, limit, max_bytes).await
        })
    }

    fn find_by_key(&self, owner: &Owner, agent: &AgentId, key: &IdempotencyKey) -> StoreFuture<'_, Option<TaskRow>> {
        let (owner, agent, key) = (owner.clone(), agent.clone(), key.clone());
        self.read(
            move |inner| async move { reader::find_by_key(&inner.db, &inner.parties, &owner, &agent, &key).await },
        )
    }

    fn agent_state(&self, owner: &Owner, agent: &AgentId, context: &ContextId) -> StoreFuture<'_, Option<String>> {
        let (owner, agent, context) = (owner.clone(), agent.clone(), context.clone());
        self.read(
            move |inner| async move { reader::agent_state(&inner.db, &inner.parties, &owner, &agent, &context).await },
        )
    }

    fn task_state(&self, task: TaskNo) -> StoreFuture<'_, Option<String>> {
        self.read(move |inner| async move { reader::task_state(&inner.db, task).await })
    }

    fn inbox(&self, task: TaskNo) -> StoreFuture<'_, Vec<Message>> {
        self.read(move |inner| async move { reader::inbox(&inner.db, task).await })
    }

    fn unfinished(&self) -> StoreFuture<'_, Vec<UnfinishedTask>> {
        self.read(move |inner| async move { reader::unfinished(&inner.db, &inner.damages).await })
    }

    fn sweep(&self, retention: Retention) -> StoreFuture<'_, SweepResult> {
        self.read(move |inner| async move {
            sweep::sweep(&inner.db, inner.node.number(), &inner.sweep_position, retention).await
        })
    }

    fn set_webhook(&self, task: TaskNo, webhook: Webhook, now: Timestamp) -> StoreFuture<'static, WebhookSet> {
        let inner = self.inner.clone();
        Box::pin(async move {
            let (set, is_due) = webhooks::set(&inner.db, inner.node.number(), task, &webhook, now).await?;
            inner.signal_if(is_due);
            Ok(set)
        })
    }

    fn webhooks(&self, task: TaskNo) -> StoreFuture<'_, Vec<Webhook>> {
        self.read(move |inner| async move { webhooks::of_task(&inner.db, task).await })
    }

    fn remove_webhooks(&self, task: TaskNo, id: Option<&PushConfigId>) -> StoreFuture<'static, ()> {
        let (inner, id) = (self.inner.clone(), id.cloned());
        Box::pin(async move { webhooks::remove(&inner.db, task, id.as_ref()).await })
    }

    fn tasks_of(&self, owner: &Owner, after: Option<(TaskId, AgentId)>, limit: usize) -> StoreFuture<'_, Vec<TaskRow>> {
        let owner = owner.clone();
        self.read(move |inner| async move {
            reader::tasks_of(&inner.db, &inner.damages, &owner, after.as_ref(), limit).await
        })
    }

    fn assign(&self, tasks: Vec<TaskNo>, from: &Owner, to: &Owner) -> StoreFuture<'static, Vec<TaskNo>> {
        let (inner, from, to) = (self.inner.clone(), from.clone(), to.clone());
        Box::pin(
            async move { assign::assign(&inner.db, &inner.parties, inner.node.number(), &tasks, &from, &to).await },
        )
    }

    fn summaries(&self, query: SummaryQuery) -> StoreFuture<'_, SummaryPage> {
        self.read(move |inner| async move { summaries::summaries(&inner.db, &inner.damages, &query).await })
    }

    fn summary(&self, task: TaskNo) -> StoreFuture<'_, Option<TaskSummary>> {
        self.read(move |inner| async move { summaries::summary(&inner.db, &inner.damages, task).await })
    }

    fn bytes_of(&self, task: TaskNo) -> StoreFuture<'_, u64> {
        self.read(move |inner| async move { summaries::bytes_of(&inner.db, task).await })
    }

    fn task_counts(&self, owner: Option<&Owner>) -> StoreFuture<'_, Vec<TaskCount>> {
        let owner = owner.cloned();
        self.read(move |inner| async move { summaries::task_counts(&inner.db, owner.as_ref()).await })
    }

    fn facts(&self) -> StoreFuture<'_, StoreFacts> {
        self.read(move |inner| async move { summaries::facts(&inner.db).await })
    }

    fn highest_no(&self) -> TaskNo {
        self.inner.node.highest_no()
    }

    fn stored_bytes(&self) -> StoreFuture<'_, Vec<(Owner, u64)>> {
        self.read(move |inner| async move { stored_bytes::stored_bytes(&inner.db).await })
    }

    fn check(&self) -> StoreFuture<'_, ()> {
        self.read(move |inner| async move {
            let no_answer = || StoreError::Failed(format!("Postgres does not answer within {CHECK_LIMIT:?}").into());
            timeout(CHECK_LIMIT, inner.probe()).await.unwrap_or_else(|_| Err(no_answer()))
        })
    }

    fn export(&self) -> StoreFuture<'_, Option<Box<dyn ExportTasks>>> {
        Box::pin(async move {
            let export = PostgresExport::of_server(&self.inner.dialer).await?;
            Ok(Some(Box::new(export) as Box<dyn ExportTasks>))
        })
    }
}

impl Cluster for PostgresStore {
    fn node_name(&self) -> Arc<str> {
        self.inner.node.name.clone()
    }

    fn lease(&self) -> watch::Receiver<NodeLease> {
        self.inner.node.lease()
    }

    fn hints(&self) -> StoreFuture<'_, Hints> {
        self.read(move |inner| async move { Ok(inner.notices.next().await) })
    }

    fn receives_hints(&self) -> bool {
        self.inner.notices.listens()
    }

    fn poll_interval(&self) -> Duration {
        if self.inner.notices.listens() { POLL_WITH_HINTS } else { POLL_WITHOUT_HINTS }
    }

    fn progress(&self, tasks: Vec<TaskNo>) -> StoreFuture<'_, Vec<TaskProgress>> {
        self.read(move |inner| async move { inner.claimer().progress(&tasks).await })
    }

    fn claim(&self, agents: Vec<ClaimingAgent>, limit: usize) -> StoreFuture<'_, Vec<ClaimedTask>> {
        self.read(move |inner| async move { inner.claimer().claim(&agents, limit).await })
    }

    fn give_back(&self, tasks: Vec<GivenBack>) -> StoreFuture<'static, ()> {
        let inner = self.inner.clone();
        Box::pin(async move { inner.claimer().give_back(tasks).await })
    }

    fn owned(&self) -> StoreFuture<'_, Vec<(TaskNo, Epoch)>> {
        self.read(move |inner| async move { inner.claimer().owned().await })
    }

    fn left_tasks(&self, agent: &AgentId) -> StoreFuture<'_, u64> {
        let agent = agent.clone();
        self.read(move |inner| async move { inner.claimer().left_tasks(&agent).await })
    }

    fn home(&self, owner: &Owner, agent: &AgentId, context: &ContextId) -> StoreFuture<'_, Option<Home>> {
        let (owner, agent, context) = (owner.clone(), agent.clone(), context.clone());
        self.read(move |inner| async move { inner.claimer().home(&owner, &agent, &context).await })
    }

    fn next_forward(&self) -> ForwardNo {
        ForwardNo(self.inner.next_forward.fetch_add(1, Ordering::Relaxed))
    }

    fn forward(&self, call: ForwardedCall, until: Instant) -> StoreFuture<'static, ()> {
        let inner = self.inner.clone();
        Box::pin(async move {
            let Inner { db, notices, node, .. } = &*inner;
            forwards::forward(db, notices, node.number(), call, node.database_time(until)).await
        })
    }

    fn forwarded(&self) -> StoreFuture<'_, Vec<ForwardedCall>> {
        self.read(move |inner| async move { forwards::forwarded(&inner.db, inner.node.number()).await })
    }

    fn answer_forwarded(&self, call: ForwardNo, answer: Vec<u8>) -> StoreFuture<'static, ()> {
        let inner = self.inner.clone();
        Box::pin(async move { forwards::answer(&inner.db, &inner.notices, call, answer).await })
    }

    fn forward_state(&self, call: ForwardNo, until: Instant) -> StoreFuture<'_, ForwardState> {
        self.read(move |inner| async move { forwards::state(&inner.db, call, inner.node.database_time(until)).await })
    }

    fn members(&self) -> StoreFuture<'_, Vec<Member>> {
        self.read(move |inner| async move { inner.node.members(&inner.db).await })
    }

    fn leave(&self) -> StoreFuture<'_, ()> {
        self.read(move |inner| async move { inner.node.leave(&inner.db, &inner.notices).await })
    }
}

impl Outbox for PostgresStore {
    fn due_signal(&self) -> Arc<Notify> {
        self.inner.due.clone()
    }

    fn receivers(&self) -> StoreFuture<'_, Vec<(String, Timestamp)>> {
        self.read(move |inner| async move { outbox::receivers(&inner.db, inner.node.number()).await })
    }

    fn due(&self, receiver: &str, now: Timestamp, limit: usize) -> StoreFuture<'_, Vec<Due>> {
        let receiver = receiver.to_owned();
        self.read(move |inner| async move { outbox::due(&inner.db, inner.node.number(), &receiver, now, limit).await })
    }

    fn failing_since(&self, receiver: &str) -> StoreFuture<'_, Option<Timestamp>> {
        let receiver = receiver.to_owned();
        self.read(move |inner| async move { outbox::failing_since(&inner.db, inner.node.number(), &receiver).await })
    }

    fn delivered(&self, webhook: WebhookNo, sent: Seq, now: Timestamp) -> StoreFuture<'static, bool> {
        let inner = self.inner.clone();
        Box::pin(async move { outbox::delivered(&inner.db, inner.node.number(), webhook, sent, now).await })
    }

    fn postpone(&self, webhook: WebhookNo, failure: Failure, next: Timestamp) -> StoreFuture<'static, ()> {
        let inner = self.inner.clone();
        Box::pin(async move { outbox::postpone(&inner.db, inner.node.number(), webhook, &failure, next).await })
    }

    fn give_up(&self, webhook: WebhookNo, event: Seq, failure: Failure) -> StoreFuture<'static, ()> {
        let inner = self.inner.clone();
        Box::pin(async move {
            let is_found = outbox::give_up(&inner.db, inner.node.number(), webhook, event, failure).await?;
            inner.signal_if(is_found);
            Ok(())
        })
    }

    fn retried(&self, given_up: GivenUpNo, failure: Option<Failure>) -> StoreFuture<'static, ()> {
        let inner = self.inner.clone();
        Box::pin(async move { outbox::retried(&inner.db, inner.node.number(), given_up, failure.as_ref()).await })
    }

    fn clock_was_set(&self, now: Timestamp, latest: Timestamp) -> StoreFuture<'static, ()> {
        let inner = self.inner.clone();
        Box::pin(async move {
            let is_due = outbox::clock_was_set(&inner.db, inner.node.number(), now, latest).await?;
            inner.signal_if(is_due);
            Ok(())
        })
    }

    fn deliveries(&self, kind: DeliveryKind, after: u64, limit: usize) -> StoreFuture<'_, Vec<Delivery>> {
        self.read(move |inner| async move { outbox::deliveries(&inner.db, kind, after, limit).await })
    }

    fn delivery_counts(&self) -> StoreFuture<'_, DeliveryCounts> {
        self.read(move |inner| async move { summaries::delivery_counts(&inner.db).await })
    }

    fn retry(&self, kind: DeliveryKind, number: u64, now: Timestamp) -> StoreFuture<'static, bool> {
        let inner = self.inner.clone();
        Box::pin(async move {
            let changed = outbox::retry(&inner.db, inner.node.number(), kind, number, now).await?;
            inner.signal_if(changed.is_due);
            Ok(changed.is_found)
        })
    }

    fn discard(&self, kind: DeliveryKind, number: u64, now: Timestamp) -> StoreFuture<'static, bool> {
        let inner = self.inner.clone();
        Box::pin(async move {
            let changed = outbox::discard(&inner.db, kind, number, now).await?;
            inner.signal_if(changed.is_due);
            Ok(changed.is_found)
        })
    }
}

impl Measured for PostgresStore {
    fn observe_commits(&self, metrics: StoreMetrics) {
        let _ = self.inner.metrics.set(metrics);
    }

    fn measure(&self) -> StoreFuture<'_, StoreContents> {
        self.read(move |inner| async move { contents::contents(&inner.db).await })
    }
}

impl AuditLog for PostgresStore {
    fn record(&self, entry: AuditEntry) -> StoreFuture<'static, ()> {
        let (reply, answer) = oneshot::channel();
        // Queued at once and not when first polled, so that entries keep the order of the calls.
        if let Some(writers) = &*self.writers.lock().expect(UNBROKEN) {
            let _ = writers.audit.send((entry, reply));
        }
        Box::pin(async move { answer.await.unwrap_or(Err(StoreError::Closed)) })
    }

    fn entries(&self, query: AuditQuery) -> StoreFuture<'_, AuditPage> {
        self.read(move |inner| async move { audit::entries(&inner.db, &query).await })
    }

    fn trim(&self, retention: AuditRetention) -> StoreFuture<'static, AuditTrimmed> {
        let inner = self.inner.clone();
        Box::pin(async move { audit::trim(&inner.db, retention).await })
    }
}
