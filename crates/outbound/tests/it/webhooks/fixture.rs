//! A store with tasks and webhooks, a dispatcher on it, and receivers that behave as a test says.

use std::collections::HashMap;
use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use sabir_model::{Event, PushConfigId, State, Status, StatusChange, Timestamp};
use sabir_outbound::client::Client;
use sabir_outbound::webhooks::{DeliveryCounts, Dispatcher, DispatcherSettings, WebhookSecrets};
use sabir_store::{
    DeliveryKind, Durability, MemoryStore, Outbox, SqliteStore, Store, TaskNo, Webhook, WebhookEvents, WebhookSet,
};
use sabir_testkit::store_contract::fixture as rows;
use sabir_wire::{Dialect, V1};
use serde_json::Value;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

use crate::support::{LONG, Names, Receiver, client, closing, loopback_allowed};

/// A store with both of its traits.
#[derive(Clone)]
pub struct Stored {
    pub store: Arc<dyn Store>,
    pub outbox: Arc<dyn Outbox>,
}

impl Stored {
    pub fn new<S: Store + Outbox>(store: S) -> Self {
        let store = Arc::new(store);
        Stored { store: store.clone(), outbox: store }
    }

    pub fn in_memory() -> Self {
        Self::new(MemoryStore::new())
    }
}

/// Runs a test with each kind of store.
pub async fn with_each_store<F: Future<Output = ()>>(test: impl Fn(Stored) -> F) {
    test(Stored::in_memory()).await;
    let folder = tempfile::tempdir().unwrap();
    test(Stored::new(SqliteStore::open(&folder.path().join("sabir.db"), Durability::Process).unwrap())).await;
}

/// Delays in milliseconds. No test waits for the timeout unless its receiver never answers.
pub fn settings() -> DispatcherSettings {
    DispatcherSettings {
        timeout: LONG,
        first_delay: Duration::from_millis(1),
        longest_delay: Duration::from_millis(20),
        ..DispatcherSettings::default()
    }
}

pub fn loopback_client() -> Client {
    client(loopback_allowed(), Names::new())
}

pub struct Running {
    pub counts: DeliveryCounts,
    task: JoinHandle<()>,
}

impl Running {
    pub fn start(stored: &Stored, settings: DispatcherSettings) -> Self {
        Self::with_client(stored, loopback_client(), settings)
    }

    pub fn with_client(stored: &Stored, client: Client, settings: DispatcherSettings) -> Self {
        let dispatcher = Dispatcher::new(stored.store.clone(), stored.outbox.clone(), client, settings);
        let counts = dispatcher.counts();
        Running { counts, task: tokio::spawn(dispatcher.run(std::future::pending())) }
    }

    /// As a killed process: nothing is finished.
    pub async fn abort(self) {
        self.task.abort();
        let _ = self.task.await;
    }

    pub fn has_ended(&self) -> bool {
        self.task.is_finished()
    }
}

pub fn webhook(id: &str, url: &str) -> Webhook {
    let (scheme, rest) = url.split_once("://").unwrap();
    Webhook {
        id: config_id(id),
        url: url.to_owned(),
        receiver: format!("{scheme}://{}", rest.split('/').next().unwrap()),
        secrets: WebhookSecrets::default().seal(None, url),
        dialect: V1.birth(),
        events: WebhookEvents::Statuses,
    }
}

pub fn config_id(id: &str) -> PushConfigId {
    PushConfigId::parse(id).unwrap()
}

pub async fn set(stored: &Stored, task: TaskNo, webhook: Webhook) {
    assert_eq!(stored.store.set_webhook(task, webhook, now()).await.unwrap(), WebhookSet::Done);
}

/// A task with one webhook, before its first status.
pub async fn task_with(stored: &Stored, name: &str, webhook: Webhook) -> TaskNo {
    let no = rows::create(stored.store.as_ref(), ["ann", "echo", name, name], 1).await;
    set(stored, no, webhook).await;
    no
}

/// Appends `working` with the messages "1" to "n-1", then `completed`. The log has nothing but the creation before.
pub async fn run_task(stored: &Stored, no: TaskNo, statuses: usize) {
    for number in 1..=statuses {
        let event = if number == statuses { completed() } else { working(&number.to_string()) };
        rows::push(stored.store.as_ref(), no, number as u64, &[event]).await.unwrap();
    }
}

/// What `run_task` has to deliver.
pub fn all_of(statuses: usize) -> Vec<String> {
    (1..statuses).map(|number| number.to_string()).chain(["completed".to_owned()]).collect()
}

pub fn working(text: &str) -> Event {
    let Event::Status(change) = rows::status_with_message(State::Working, 0, text) else { unreachable!() };
    at_present(change)
}

pub fn working_at(text: &str, time: Timestamp) -> Event {
    let Event::Status(change) = rows::status_with_message(State::Working, 0, text) else { unreachable!() };
    Event::Status(StatusChange { status: Status { time, ..change.status }, ..change })
}

pub fn completed() -> Event {
    let Event::Status(change) = rows::status(State::Completed, 0) else { unreachable!() };
    at_present(change)
}

fn at_present(change: StatusChange) -> Event {
    Event::Status(StatusChange { status: Status { time: now(), ..change.status }, ..change })
}

pub fn now() -> Timestamp {
    Timestamp::from_millis(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as i64)
}

/// What a receiver does with a request that it has read.
#[derive(Debug, Clone, Copy)]
pub enum Reaction {
    Answer(&'static str),
    /// Closes the connection.
    Drop,
    /// Keeps the connection and never answers.
    Hold,
}

pub const OK: Reaction = Reaction::Answer("204 No Content\r\n");

impl Reaction {
    pub async fn perform(self, mut stream: TcpStream) {
        match self {
            Reaction::Answer(head) => {
                let response = closing(&format!("HTTP/1.1 {head}content-length: 0\r\n\r\n"));
                let _ = stream.write_all(response.as_bytes()).await;
                let _ = stream.shutdown().await;
            }
            Reaction::Drop => drop(stream),
            Reaction::Hold => {
                std::future::pending::<()>().await;
            }
        }
    }
}

/// A receiver whose reaction depends on how many requests came before.
pub async fn reacting(at: &str, reaction: impl Fn(usize) -> Reaction + Send + Sync + 'static) -> Receiver {
    let count = std::sync::atomic::AtomicUsize::new(0);
    Receiver::behaving(at, move |stream, _| {
        let before = count.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        reaction(before).perform(stream)
    })
    .await
}

/// A delivery as it arrived.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arrival {
    pub id: String,
    pub path: String,
    pub task: String,
    /// The message of the status, or the state where there is none.
    pub label: String,
}

pub fn arrivals(receiver: &Receiver) -> Vec<Arrival> {
    receiver.requests().iter().map(|request| arrival(request)).collect()
}

fn arrival(request: &str) -> Arrival {
    let (head, body) = request.split_once("\r\n\r\n").unwrap();
    let body: Value = serde_json::from_str(body).unwrap();
    let (task, status) = match (&body["task"], &body["statusUpdate"]) {
        (Value::Null, update) => (&update["taskId"], &update["status"]),
        (task, _) => (&task["id"], &task["status"]),
    };
    let state = status["state"].as_str().unwrap().trim_start_matches("TASK_STATE_").to_lowercase();
    Arrival {
        id: header(head, "webhook-id").unwrap(),
        path: head.split(' ').nth(1).unwrap().to_owned(),
        task: task.as_str().unwrap().to_owned(),
        label: status["message"]["parts"][0]["text"].as_str().map_or(state, str::to_owned),
    }
}

pub fn header(head: &str, name: &str) -> Option<String> {
    let lines = head.lines().filter_map(|line| line.split_once(": "));
    lines.filter(|(key, _)| *key == name).map(|(_, value)| value.to_owned()).next()
}

/// The labels of each task in the order of their first arrival. A duplicate must have the id of its first arrival, and
/// must not come after a later event.
pub fn in_order(arrivals: &[Arrival]) -> HashMap<String, Vec<String>> {
    let mut by_task: HashMap<String, Vec<(String, String)>> = HashMap::new();
    for Arrival { id, task, label, .. } in arrivals {
        let seen = by_task.entry(task.clone()).or_default();
        if seen.last().is_some_and(|last| last == &(id.clone(), label.clone())) {
            continue;
        }
        assert!(seen.iter().all(|(old, other)| old != id && other != label), "{task}: {label} again after {seen:?}");
        seen.push((id.clone(), label.clone()));
    }
    by_task.into_iter().map(|(task, seen)| (task, seen.into_iter().map(|(_, label)| label).collect())).collect()
}

/// Waits for a condition, which must come true at some time.
pub async fn until(what: &str, condition: impl AsyncFn() -> bool) {
    let wait = async {
        while !condition().await {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(LONG, wait).await.unwrap_or_else(|_| panic!("in vain: {what}"));
}

/// Waits until nothing is to be sent any more.
pub async fn until_all_is_noted(stored: &Stored) {
    until("all deliveries are noted", async || pending(stored).await == 0).await;
}

pub async fn pending(stored: &Stored) -> usize {
    stored.outbox.deliveries(DeliveryKind::Pending, 0, 10_000).await.unwrap().len()
}

pub async fn given_up(stored: &Stored) -> Vec<(u64, String)> {
    let given_up = stored.outbox.deliveries(DeliveryKind::GivenUp, 0, 10_000).await.unwrap();
    given_up.into_iter().map(|delivery| (delivery.event, delivery.reason.unwrap_or_default())).collect()
}
