//! The server as a whole: what it is, what it keeps, how near it is to its limits.

use http::StatusCode;
use sabir_engine::{DeliveryCounts, Health, StoreFacts, TaskCount};
use sabir_model::State;
use serde::{Serialize, Serializer};

use super::{AdminRefusal, AdminReply, seconds};
use crate::app::App;

#[derive(Serialize)]
struct SystemView<'a> {
    version: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    commit: Option<&'a str>,
    started: String,
    uptime: f64,
    pid: u32,
    urls: &'a [String],
    auth: bool,
    store: StoreView<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tasks: Option<StateCounts>,
    streams: usize,
    connections: usize,
    memory: MemoryView,
    limits: [LimitView; 2],
    #[serde(skip_serializing_if = "Option::is_none")]
    deliveries: Option<DeliveriesView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    node: Option<&'a str>,
    clustered: bool,
    health: String,
}

#[derive(Serialize)]
struct StoreView<'a> {
    kind: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    place: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    durability: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    format: Option<u32>,
}

#[derive(Serialize)]
struct MemoryView {
    reserved: usize,
    limit: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    resident: Option<u64>,
}

#[derive(Serialize)]
struct LimitView {
    name: &'static str,
    used: usize,
    limit: usize,
}

#[derive(Serialize)]
struct DeliveriesView {
    pending: u64,
    #[serde(rename = "givenUp")]
    given_up: u64,
}

/// How many tasks there are in each state, and in all.
pub(super) struct StateCounts([u64; State::ALL.len()]);

impl StateCounts {
    pub(super) fn of<'a>(counts: impl IntoIterator<Item = &'a TaskCount>) -> Self {
        let mut sums = [0; State::ALL.len()];
        for TaskCount { state, count, .. } in counts {
            for (sum, known) in sums.iter_mut().zip(State::ALL) {
                *sum += if known == *state { *count } else { 0 };
            }
        }
        Self(sums)
    }
}

impl Serialize for StateCounts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let counts = State::ALL.into_iter().map(State::name).zip(self.0);
        serializer.collect_map(std::iter::once(("total", self.0.iter().sum())).chain(counts))
    }
}

/// It is answered too while the store cannot be read; then what the store would say is left out.
pub(super) async fn show(app: &App) -> Result<AdminReply, AdminRefusal> {
    let state = &*app.inner;
    let (engine, facts) = (&state.engine, &state.settings.facts);
    let health = engine.health().await;
    let is_readable = !matches!(health, Health::StoreDown(_));
    let (mut tasks, mut store, mut deliveries) = (None, None, None);
    if is_readable {
        let counts = engine.task_counts(None).await?;
        tasks = Some(StateCounts::of(&counts));
        store = Some(engine.store_facts().await?);
        deliveries = engine.delivery_counts().await?;
    }
    let node = engine.node_name();
    let connections = state.connections.count();
    let (reserved, memory) = (state.budget.reserved(), state.settings.memory);
    let view = SystemView {
        version: &facts.version,
        commit: facts.commit.as_deref(),
        started: state.started.time.to_string(),
        uptime: seconds(state.started.at.elapsed()),
        pid: std::process::id(),
        urls: &facts.urls,
        auth: state.auth.is_required(),
        store: StoreView {
            kind: facts.store.kind,
            place: facts.store.place.as_deref(),
            bytes: store.map(|StoreFacts { bytes, .. }| bytes),
            durability: facts.store.durability.as_deref(),
            format: store.and_then(|StoreFacts { format, .. }| format),
        },
        tasks,
        streams: state.open_streams.count(),
        connections,
        memory: MemoryView { reserved, limit: memory, resident: resident_bytes() },
        limits: [
            LimitView { name: "connections", used: connections, limit: state.settings.max_connections },
            LimitView { name: "server.memory", used: reserved, limit: memory },
        ],
        deliveries: deliveries.map(|DeliveryCounts { pending, given_up }| DeliveriesView { pending, given_up }),
        node: node.as_deref(),
        clustered: node.is_some(),
        health: match health {
            Health::Ready => "ready".to_owned(),
            Health::Stopping => "stopping".to_owned(),
            Health::StoreDown(why) => format!("store down: {why}"),
        },
    };
    Ok(AdminReply::new(StatusCode::OK, &view))
}

/// What of this process is in memory. `None`: the system does not say.
fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024)
}

#[cfg(test)]
mod tests {
    use sabir_model::AgentId;

    use super::*;

    #[test]
    fn counts_are_summed_over_agents() {
        let count = |agent: &str, state, count| TaskCount { agent: AgentId::parse(agent).unwrap(), state, count };
        let counts =
            [count("a", State::Working, 2), count("b", State::Working, 3), count("b", State::InputRequired, 1)];
        assert_eq!(
            serde_json::to_string(&StateCounts::of(&counts)).unwrap(),
            r#"{"total":6,"submitted":0,"working":5,"input-required":1,"auth-required":0,"completed":0,"failed":0,"canceled":0,"rejected":0}"#
        );
    }
}
