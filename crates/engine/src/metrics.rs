//! Figures of the engine for operators.
//!
//! Runs and streams are counted where they happen: by handles that belong to one agent (`AgentMetrics`), so that no label
//! is looked up on the way of a run. What can be read from the schedule, the store and the list of nodes is read when
//! somebody asks (`Engine::measure`), and costs nothing before.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Registry, Unit};
use sabir_model::{AgentId, Timestamp};
use sabir_store::{Measured, MemberState, StoreContents, StoreError};
use tokio::time::Instant;

use crate::engine::Engine;
use crate::schedule::QueueLoad;
use crate::turn::Outcome;

type AgentLabel = [(&'static str, String); 1];
type AgentAndWord = [(&'static str, String); 2];
type Seconds = Gauge<f64, AtomicU64>;

/// How long the figures of the store are waited for. Without them the others are shown.
const STORE_LIMIT: Duration = Duration::from_secs(3);

/// Figures of runs and streams. All clones are the same figures.
#[derive(Debug, Clone)]
pub struct EngineMetrics {
    runs_started: Family<AgentLabel, Counter>,
    runs_ended: Family<AgentAndWord, Counter>,
    queue_wait: Family<AgentLabel, Histogram>,
    first_event: Family<AgentLabel, Histogram>,
    streams: StreamMetrics,
}

#[derive(Debug, Clone, Default)]
struct StreamMetrics {
    open: Gauge,
    replayed: Counter,
}

impl Default for EngineMetrics {
    fn default() -> Self {
        // From a millisecond to about 35 minutes: some queues are long, and some agents think for long.
        let waits: fn() -> Histogram = || Histogram::new(exponential_buckets(0.001, 2.0, 22));
        Self {
            runs_started: Family::default(),
            runs_ended: Family::default(),
            queue_wait: Family::new_with_constructor(waits),
            first_event: Family::new_with_constructor(waits),
            streams: StreamMetrics::default(),
        }
    }
}

impl EngineMetrics {
    /// Adds the figures to a registry.
    pub fn register(&self, registry: &mut Registry) {
        registry.register("runs_started", "Runs that agents have begun", self.runs_started.clone());
        registry.register("runs_ended", "Runs that have ended, by what became of them", self.runs_ended.clone());
        registry.register_with_unit(
            "queue_wait",
            "Time from the arrival of a message until its run has the context, the folder and the slot that it needs",
            Unit::Seconds,
            self.queue_wait.clone(),
        );
        registry.register_with_unit(
            "first_event",
            "Time from the arrival of a message until the first event of its agent is stored",
            Unit::Seconds,
            self.first_event.clone(),
        );
        registry.register("open_streams", "Streams of tasks that clients read now", self.streams.open.clone());
        registry.register(
            "replayed_events",
            "Events that streams have sent from the log: for clients that came back, or that had fallen behind",
            self.streams.replayed.clone(),
        );
    }

    /// The handles for one agent.
    pub(crate) fn of_agent(&self, agent: &AgentId) -> AgentMetrics {
        let name = || agent.as_str().to_owned();
        let label = [("agent", name())];
        let ended =
            |end: RunEnd| self.runs_ended.get_or_create_owned(&[("agent", name()), ("outcome", end.name().to_owned())]);
        AgentMetrics {
            started: self.runs_started.get_or_create_owned(&label),
            ended: RunEnd::ALL.map(ended),
            queue_wait: self.queue_wait.get_or_create_owned(&label),
            first_event: self.first_event.get_or_create_owned(&label),
        }
    }

    pub(crate) fn open_stream(&self) -> OpenStream {
        self.streams.open.inc();
        OpenStream(self.streams.clone())
    }
}

/// The figures of one agent.
#[derive(Debug)]
pub(crate) struct AgentMetrics {
    started: Counter,
    ended: [Counter; RunEnd::ALL.len()],
    queue_wait: Histogram,
    first_event: Histogram,
}

impl AgentMetrics {
    pub(crate) fn waited(&self, since: Instant) {
        self.queue_wait.observe(since.elapsed().as_secs_f64());
    }

    pub(crate) fn first_event(&self, since: Instant) {
        self.first_event.observe(since.elapsed().as_secs_f64());
    }

    pub(crate) fn start_run(self: &Arc<Self>) -> CountedRun {
        self.started.inc();
        CountedRun { metrics: self.clone(), end: RunEnd::Interrupted }
    }
}

/// A run that is counted when it ends. One that is dropped without an outcome was interrupted.
pub(crate) struct CountedRun {
    metrics: Arc<AgentMetrics>,
    end: RunEnd,
}

impl CountedRun {
    pub(crate) fn ends_with(mut self, outcome: &Outcome) {
        self.end = match outcome {
            Outcome::Completed(_) => RunEnd::Completed,
            Outcome::Failed(_) => RunEnd::Failed,
            Outcome::Rejected(_) => RunEnd::Rejected,
            Outcome::Canceled(_) => RunEnd::Canceled,
            Outcome::InputRequired(_) => RunEnd::InputRequired,
            Outcome::AuthRequired(_) => RunEnd::AuthRequired,
        };
    }
}

impl Drop for CountedRun {
    fn drop(&mut self) {
        self.metrics.ended[self.end as usize].inc();
    }
}

/// What became of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RunEnd {
    Completed,
    Failed,
    Rejected,
    Canceled,
    InputRequired,
    AuthRequired,
    /// The server stopped, or the run was lost to another node.
    Interrupted,
}

impl RunEnd {
    const ALL: [RunEnd; 7] = [
        RunEnd::Completed,
        RunEnd::Failed,
        RunEnd::Rejected,
        RunEnd::Canceled,
        RunEnd::InputRequired,
        RunEnd::AuthRequired,
        RunEnd::Interrupted,
    ];

    fn name(self) -> &'static str {
        match self {
            RunEnd::Completed => "completed",
            RunEnd::Failed => "failed",
            RunEnd::Rejected => "rejected",
            RunEnd::Canceled => "canceled",
            RunEnd::InputRequired => "input-required",
            RunEnd::AuthRequired => "auth-required",
            RunEnd::Interrupted => "interrupted",
        }
    }
}

/// A stream that counts while it is open.
pub(crate) struct OpenStream(StreamMetrics);

impl OpenStream {
    pub(crate) fn replayed(&self, events: usize) {
        self.0.replayed.inc_by(events as u64);
    }
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        self.0.open.dec();
    }
}

/// The figures of an engine that keeps some, and the store that can be measured.
pub(crate) struct Metrics {
    pub(crate) engine: EngineMetrics,
    pub(crate) store: Arc<dyn Measured>,
}

impl Engine {
    /// Adds what is counted at this moment: the load of the agents, what is in the store, and the other nodes. Figures of a
    /// store that does not answer are missing, and `store_up` is 0.
    pub async fn measure(&self, registry: &mut Registry) {
        self.register_loads(registry);
        let Some(metrics) = &self.core.metrics else { return };
        let measured = tokio::time::timeout(STORE_LIMIT, async {
            let nodes = async { self.nodes().await.map_err(|error| StoreError::Failed(error.to_string().into())) };
            tokio::try_join!(metrics.store.measure(), nodes)
        });
        let measured = measured.await.unwrap_or_else(|_| {
            Err(StoreError::Failed(format!("the store does not answer within {STORE_LIMIT:?}").into()))
        });
        let is_up = Gauge::<i64>::default();
        is_up.set(i64::from(measured.is_ok()));
        registry.register("store_up", "Whether the store could be read for this answer: 1 or 0", is_up);
        match measured {
            Ok((contents, nodes)) => {
                register_contents(registry, &contents);
                register_nodes(registry, &nodes);
            }
            Err(error) => tracing::warn!(%error, "metrics: the figures of the store are missing"),
        }
    }

    fn register_loads(&self, registry: &mut Registry) {
        let loads = self.core.schedule.loads();
        let agents = self.core.agents.iter().chain(&self.core.routed_agents);
        let agents: Vec<(&AgentId, QueueLoad)> =
            agents.map(|registered| (&registered.hosted.id, loads[registered.number])).collect();
        let mut register = |name: &str, help: &str, value: fn(&QueueLoad) -> usize| {
            let family = Family::<AgentLabel, Gauge>::default();
            for (agent, load) in &agents {
                family.get_or_create(&[("agent", agent.as_str().to_owned())]).set(value(load) as i64);
            }
            registry.register(name, help, family);
        };
        register("running_runs", "Runs that hold a slot of their agent now", |load| load.running);
        register("parked_runs", "Runs that wait for an answer without a slot now", |load| load.parked);
        register("queued_tasks", "Tasks in the queue of their agent now", |load| load.queued);
        register("run_slots", "Runs that the agent may have at the same time", |load| load.limit);
        register("queue_limit", "Tasks that the queue of the agent takes", |load| load.queue_limit);
    }
}

fn register_contents(registry: &mut Registry, contents: &StoreContents) {
    let tasks = Family::<AgentAndWord, Gauge>::default();
    for (agent, state, count) in &contents.tasks {
        let labels = [("agent", agent.as_str().to_owned()), ("state", state.name().to_owned())];
        tasks.get_or_create(&labels).set(*count as i64);
    }
    registry.register("tasks", "Tasks in the store, by agent and state", tasks);
    let mut register = |name: &str, help: &str, value: u64| {
        let gauge = Gauge::<i64>::default();
        gauge.set(i64::try_from(value).unwrap_or(i64::MAX));
        registry.register(name, help, gauge);
    };
    register("store_bytes", "Size of the database, with its write-ahead log where it is a file", contents.bytes);
    register("webhooks_pending", "Webhooks that have something to send", contents.pending);
    register("webhooks_given_up", "Events that were given up and are kept for a retry", contents.given_up);
    let age = Seconds::default();
    age.set(contents.pending_since.map_or(0.0, |since| age_of(since).as_secs_f64()));
    registry.register_with_unit(
        "webhook_oldest",
        "For how long the oldest undelivered webhook has waited; 0 if none waits",
        Unit::Seconds,
        age,
    );
}

fn register_nodes(registry: &mut Registry, nodes: &[sabir_store::Member]) {
    if nodes.is_empty() {
        return;
    }
    let (ages, alive) = (Family::<AgentLabel, Seconds>::default(), Family::<AgentLabel, Gauge>::default());
    for node in nodes.iter().filter(|node| node.state != MemberState::Stopped) {
        let label = [("node", node.name.to_string())];
        ages.get_or_create(&label).set(node.beat_age.as_secs_f64());
        alive.get_or_create(&label).set(i64::from(node.state == MemberState::Alive));
    }
    let help = "Time since the last beat of each node that shares the store, by the clock of the database";
    registry.register_with_unit("node_beat_age", help, Unit::Seconds, ages);
    registry.register("node_alive", "Whether a node that shares the store is alive: 1 or 0", alive);
}

fn age_of(since: Timestamp) -> Duration {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    now.saturating_sub(Duration::from_millis(since.as_millis().max(0).unsigned_abs()))
}
