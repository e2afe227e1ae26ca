//! The engine: its parts, its settings, how it starts, and `call`, the only entrance for calls.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use sabir_model::{AgentId, Call, Caller, CallerKey, Delivery, Error, InvalidId, Owner, TaskId};
use sabir_store::{AuditLog, Cluster, Measured, Outbox, Store};
use tokio::sync::{Notify, watch};
use uuid::{NoContext, Uuid};

use crate::audit::{Audit, AuditKeep, CallAudit};
use crate::cluster::{LeaseObserver, Membership};
use crate::delegation::Grants;
use crate::feed::Feed;
use crate::health::StoreCheck;
use crate::in_flight::InFlightSends;
use crate::limits::{Places, StoredBytes, StreamPlace};
use crate::metrics::{AgentMetrics, EngineMetrics, Metrics};
use crate::operators::RecordedLooks;
use crate::push::{WebhookPolicy, Webhooks};
use crate::run_observer::RunObserver;
use crate::schedule::{AgentNo, Schedule};
use crate::shared_reads::SharedReads;
use crate::task_lookup::EndSignals;
use crate::topic_cache::TopicCache;
use crate::working_folders::WorkingFolders;
use crate::{Answer, CallerLimits, Clock, DelegationLimits, Hosted, Streaming, SystemClock};

/// A handle of the engine. It is cheap to clone, and all clones are the same engine.
#[derive(Clone)]
pub struct Engine {
    pub(crate) core: Arc<Core>,
}

pub(crate) struct Core {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<dyn Clock>,
    /// `None`: callers cannot set webhooks.
    pub(crate) webhooks: Option<Webhooks>,
    /// `None`: nothing is recorded.
    pub(crate) audit: Option<Audit>,
    pub(crate) settings: EngineSettings,
    /// Sorted by id.
    pub(crate) agents: Vec<Arc<RegisteredAgent>>,
    /// Agents without a card and an address, which only routers can choose.
    pub(crate) routed_agents: Vec<Arc<RegisteredAgent>>,
    pub(crate) schedule: Arc<Schedule>,
    pub(crate) working_folders: Arc<WorkingFolders>,
    pub(crate) default: usize,
    pub(crate) feed: Arc<Feed>,
    pub(crate) topic_cache: TopicCache,
    pub(crate) reads: SharedReads,
    pub(crate) in_flight: Arc<InFlightSends>,
    pub(crate) task_places: Arc<Places<(Owner, AgentId)>>,
    pub(crate) stream_places: Arc<Places<CallerKey>>,
    /// `None`: there is no such limit, and nothing is counted.
    pub(crate) stored_bytes: Option<StoredBytes>,
    pub(crate) drivers: DriverCount,
    pub(crate) stopping: watch::Sender<bool>,
    /// The engine has stopped, and takes no part in its cluster any more.
    pub(crate) left: watch::Sender<bool>,
    /// `None`: this engine has its store for itself.
    pub(crate) membership: Option<Membership>,
    pub(crate) store_check: StoreCheck,
    pub(crate) end_signals: EndSignals,
    /// `None`: no figures are kept.
    pub(crate) metrics: Option<Metrics>,
    /// `None`: nobody watches runs.
    pub(crate) run_observer: Option<Arc<dyn RunObserver>>,
    /// The scopes that the approvers of agents name, each once.
    pub(crate) approvers: Vec<Arc<str>>,
    pub(crate) recorded_looks: RecordedLooks,
    /// What programs may do in the name of their tasks.
    pub(crate) grants: Arc<Grants>,
}

/// An agent of this server, with its number in the schedule.
pub(crate) struct RegisteredAgent {
    pub(crate) hosted: Hosted,
    pub(crate) number: AgentNo,
    /// `None`: no figures are kept.
    pub(crate) metrics: Option<Arc<AgentMetrics>>,
}

impl RegisteredAgent {
    pub(crate) fn check_streaming(&self) -> Result<(), Error> {
        match self.hosted.about().streaming {
            Streaming::Offered => Ok(()),
            Streaming::Refused => {
                let id = &self.hosted.id;
                Err(Error::Unsupported(format!("agent {id} offers no streaming; send without it and get the task")))
            }
        }
    }
}

impl Core {
    pub(crate) fn registered_agent(&self, id: Option<&AgentId>) -> Option<&Arc<RegisteredAgent>> {
        match id {
            None => self.agents.get(self.default),
            Some(id) => {
                let place = self.agents.binary_search_by(|registered| registered.hosted.id.cmp(id));
                place.ok().map(|at| &self.agents[at])
            }
        }
    }
}

/// How an engine behaves; the default suits most.
#[derive(Debug, Clone, Default)]
pub struct EngineSettings {
    /// The longest time that a blocking send waits. After that it answers with the task as it is.
    pub max_wait: Option<Duration>,
    /// What becomes of tasks that were running.
    pub recovery: Recovery,
    /// How long tasks are kept.
    pub retention: RetentionPolicy,
    /// What one caller may have.
    pub limits: CallerLimits,
    /// How far programs may delegate.
    pub delegation: DelegationLimits,
}

/// What recovery does with a task that was running when the server died or stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Recovery {
    /// It fails, unless its agent says that its runs survive.
    #[default]
    Fail,
    /// Its turn begins again, three times in all at most.
    Requeue,
}

/// Which tasks retention keeps; by default all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RetentionPolicy {
    /// Retention deletes settled tasks that are older than this.
    pub max_age: Option<Duration>,
    /// Retention deletes the oldest settled tasks when there are more than this.
    pub max_tasks: Option<u64>,
    /// Tasks that have waited longer than this for an answer fail.
    pub waiting: Option<Duration>,
}

/// An engine that is being put together.
pub struct Builder {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    webhooks: Option<Webhooks>,
    audit: Option<Audit>,
    cluster: Option<Arc<dyn Cluster>>,
    lease_observer: Option<Arc<dyn LeaseObserver>>,
    metrics: Option<Metrics>,
    run_observer: Option<Arc<dyn RunObserver>>,
    settings: EngineSettings,
    agents: Vec<Hosted>,
    routed_agents: Vec<Hosted>,
}

impl Builder {
    /// Without agents, on this store.
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self {
            store,
            clock: Arc::new(SystemClock),
            webhooks: None,
            audit: None,
            cluster: None,
            lease_observer: None,
            metrics: None,
            run_observer: None,
            settings: EngineSettings::default(),
            agents: Vec::new(),
            routed_agents: Vec::new(),
        }
    }

    /// Instead of the clock of the machine.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Callers can set webhooks that this policy admits. `outbox` is the store, which a dispatcher delivers from.
    pub fn webhooks(mut self, policy: Arc<dyn WebhookPolicy>, outbox: Arc<dyn Outbox>) -> Self {
        self.webhooks = Some(Webhooks { policy, outbox });
        self
    }

    /// Records in this log who did what to which task. `log` is the store.
    pub fn audit(mut self, log: Arc<dyn AuditLog>, keep: AuditKeep) -> Self {
        self.audit = Some(Audit::new(log, keep));
        self
    }

    /// Other engines work on the same store. `cluster` is the store.
    pub fn cluster(mut self, cluster: Arc<dyn Cluster>) -> Self {
        self.cluster = Some(cluster);
        self
    }

    /// Who is told of the lease that this node has beside others.
    pub fn lease_observer(mut self, observer: Arc<dyn LeaseObserver>) -> Self {
        self.lease_observer = Some(observer);
        self
    }

    /// Keeps these figures. `store` is the store.
    pub fn metrics(mut self, metrics: EngineMetrics, store: Arc<dyn Measured>) -> Self {
        self.metrics = Some(Metrics { engine: metrics, store });
        self
    }

    /// Who is told of runs.
    pub fn run_observer(mut self, observer: Arc<dyn RunObserver>) -> Self {
        self.run_observer = Some(observer);
        self
    }

    /// Instead of the default settings.
    pub fn settings(mut self, settings: EngineSettings) -> Self {
        self.settings = settings;
        self
    }

    /// Adds an agent.
    pub fn agent(mut self, agent: Hosted) -> Self {
        self.agents.push(agent);
        self
    }

    /// Adds an agent that only routers can choose: it has neither a card nor an address.
    pub fn routed_agent(mut self, agent: Hosted) -> Self {
        self.routed_agents.push(agent);
        self
    }

    /// Starts the engine: recovers the tasks of an earlier process, then accepts calls.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn start(mut self) -> Result<Engine, Error> {
        self.agents.sort_by(|a, b| a.id.cmp(&b.id));
        let default = self.agents.iter().position(|agent| agent.is_default).unwrap_or(0);
        let schedule = Schedule::new(self.agents.iter().chain(&self.routed_agents).map(|hosted| &hosted.limits));
        let listed = self.agents.len();
        let agents = self.agents.into_iter().chain(self.routed_agents).enumerate();
        let figures = |hosted: &Hosted| Some(Arc::new(self.metrics.as_ref()?.engine.of_agent(&hosted.id)));
        let registered = |(number, hosted): (AgentNo, Hosted)| {
            let metrics = figures(&hosted);
            Arc::new(RegisteredAgent { hosted, number, metrics })
        };
        let mut agents: Vec<_> = agents.map(registered).collect();
        let mut approvers: Vec<Arc<str>> =
            agents.iter().filter_map(|registered| registered.hosted.approver.clone()).collect();
        approvers.sort();
        approvers.dedup();
        let routed_agents = agents.split_off(listed);
        let stored_bytes = self.settings.limits.stored_bytes.map(StoredBytes::new);
        if let Some(stored) = &stored_bytes {
            stored.count(&*self.store).await?;
        }
        let core = Core {
            store: self.store,
            clock: self.clock,
            webhooks: self.webhooks,
            audit: self.audit,
            settings: self.settings,
            agents,
            routed_agents,
            schedule,
            working_folders: Arc::default(),
            default,
            feed: Feed::new(),
            topic_cache: TopicCache::default(),
            reads: SharedReads::new(),
            in_flight: InFlightSends::new(),
            task_places: Places::new(),
            stream_places: Places::new(),
            stored_bytes,
            drivers: DriverCount::new(),
            stopping: watch::channel(false).0,
            left: watch::channel(false).0,
            membership: self.cluster.map(|cluster| Membership::new(cluster, self.lease_observer)),
            store_check: StoreCheck::default(),
            end_signals: EndSignals::default(),
            metrics: self.metrics,
            run_observer: self.run_observer,
            approvers,
            recorded_looks: RecordedLooks::default(),
            grants: Arc::default(),
        };
        let engine = Engine { core: Arc::new(core) };
        match engine.core.membership {
            None => engine.recover().await?,
            // Tasks that nobody drives are taken up one by one, as those of other nodes.
            Some(_) => engine.join_cluster(),
        }
        engine.watch_parents_of_waiting();
        engine.follow_cards();
        engine.keep_sweeping();
        Ok(engine)
    }
}

impl Engine {
    /// Executes a call, if the caller may make it.
    ///
    /// # Errors
    /// What the caller can be told; [`Error::Internal`] is the server's own fault, all others are the caller's or pass.
    pub async fn call(&self, caller: &Caller, call: Call) -> Result<Answer, Error> {
        let mut audit = self.begin_audit(caller, &call);
        let answer = self.execute(caller, call, &mut audit).await;
        self.finish_audit(caller, audit, answer).await
    }

    async fn execute(&self, caller: &Caller, call: Call, audit: &mut CallAudit) -> Result<Answer, Error> {
        self.check_delegation(caller, &call)?;
        self.check_access(caller, &call)?;
        match call {
            Call::Send(send) => {
                let named = (send.agent.clone(), send.message.task.clone());
                let answer = match send.delivery {
                    Delivery::Stream => self.send_for_stream(caller, *send, audit).await,
                    Delivery::Immediately | Delivery::WhenSettled => self.send(caller, *send, audit).await,
                };
                if let Err(refusal) = &answer {
                    log_refusal(caller, named, refusal);
                }
                answer
            }
            Call::Get(get) => self.get(caller, get).await,
            Call::List(list) => self.list(caller, list).await,
            Call::Cancel(cancel) => self.cancel(caller, cancel, audit).await,
            Call::Subscribe(subscribe) => {
                let place = self.place_for_stream(caller)?;
                Ok(self.holding(self.subscribe(caller, subscribe).await?, place))
            }
            Call::Push(push) => self.push(caller, push, audit).await,
            Call::ExtendedCard { .. } => Err(Error::ExtendedCardNotOffered),
        }
    }

    /// The place is taken first: a send that is refused must have done nothing.
    async fn send_for_stream(
        &self,
        caller: &Caller,
        send: sabir_model::Send,
        audit: &mut CallAudit,
    ) -> Result<Answer, Error> {
        let place = self.place_for_stream(caller)?;
        Ok(self.holding(self.send(caller, send, audit).await?, place))
    }

    /// A stream keeps its place, and counts as open, until its reader drops it.
    fn holding(&self, answer: Answer, place: Option<StreamPlace>) -> Answer {
        match answer {
            Answer::Stream(subscription) => {
                let counted = self.core.metrics.as_ref().map(|metrics| metrics.engine.open_stream());
                Answer::Stream(subscription.holding(place, counted))
            }
            answer => answer,
        }
    }

    /// The agents of this server, sorted by id.
    pub fn agents(&self) -> impl Iterator<Item = &Hosted> {
        self.core.agents.iter().map(|registered| &registered.hosted)
    }

    /// The agent that gets messages which name no agent.
    pub fn default_agent(&self) -> Option<&AgentId> {
        self.core.agents.get(self.core.default).map(|registered| &registered.hosted.id)
    }

    /// The agent of this id.
    pub fn agent(&self, id: &str) -> Option<&Hosted> {
        let agents = &self.core.agents;
        let at = agents.binary_search_by(|registered| registered.hosted.id.as_str().cmp(id)).ok()?;
        Some(&agents[at].hosted)
    }

    /// Whether there is an agent of this id.
    pub fn knows_agent(&self, id: &str) -> bool {
        self.core.agents.binary_search_by(|registered| registered.hosted.id.as_str().cmp(id)).is_ok()
    }

    /// The agent of this id, or the default agent. Whether a caller may know of it is asked in `access`.
    pub(crate) fn registered_agent(&self, id: Option<&AgentId>) -> Option<&Arc<RegisteredAgent>> {
        self.core.registered_agent(id)
    }
}

/// Writes one line for the operator, without the content of the message.
fn log_refusal(caller: &Caller, (agent, task): (Option<AgentId>, Option<TaskId>), refusal: &Error) {
    let agent = agent.as_ref().map_or("default", AgentId::as_str);
    let task = task.as_ref().map_or("new", TaskId::as_str);
    tracing::info!(%task, %agent, caller = %caller.owner, reason = refusal.kind(), "message refused");
}

/// Counts the drivers that run, so that a stop can wait until none is left.
pub(crate) struct DriverCount(Arc<CountState>);

pub(crate) struct DriverGuard(Arc<CountState>);

#[derive(Default)]
struct CountState {
    running: AtomicUsize,
    none_left: Notify,
}

impl DriverCount {
    fn new() -> Self {
        Self(Arc::default())
    }

    pub(crate) fn enter(&self) -> DriverGuard {
        self.0.running.fetch_add(1, Ordering::SeqCst);
        DriverGuard(self.0.clone())
    }

    pub(crate) async fn until_none(&self) {
        loop {
            let mut none_left = std::pin::pin!(self.0.none_left.notified());
            // Registered before the count is read, so the end of the last driver cannot be missed.
            none_left.as_mut().enable();
            if self.0.running.load(Ordering::SeqCst) == 0 {
                return;
            }
            none_left.await;
        }
    }
}

impl Drop for DriverGuard {
    fn drop(&mut self) {
        if self.0.running.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.0.none_left.notify_waiters();
        }
    }
}

/// Makes a new id. A UUID of version 7 begins with the time, so ids of the same time are neighbours in an index. A
/// clock before 1970 is no error.
pub(crate) fn new_id<T>(parse: impl FnOnce(String) -> Result<T, InvalidId>) -> T {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let moment = uuid::Timestamp::from_unix(NoContext, since.as_secs(), since.subsec_nanos());
    parse(Uuid::new_v7(moment).to_string()).unwrap_or_else(|_| unreachable!("a UUID is a valid id"))
}
