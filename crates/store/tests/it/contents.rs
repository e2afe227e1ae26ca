//! What is in a store, as operators see it: the same in every store, and the figures of its commits.

use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use sabir_model::{Birth, PushConfigId, State};
use sabir_store::{
    Durability, Failure, Measured, MemoryStore, Outbox, PostgresSettings, PostgresStore, Retention, SqliteStore, Store,
    StoreContents, StoreMetrics, Webhook, WebhookEvents,
};
use sabir_testkit::store_contract::fixture::*;

use crate::postgres_server::new_database;

#[tokio::test]
async fn memory_counts_its_contents() {
    check(&MemoryStore::new()).await;
}

#[tokio::test]
async fn sqlite_counts_its_contents_and_observes_its_commits() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sabir.db");
    let store = SqliteStore::open(&path, Durability::Process).unwrap();
    let metrics = StoreMetrics::default();
    store.observe_commits(metrics.clone());
    check(&store).await;
    check_commits(&metrics);
    let contents = store.measure().await.unwrap();
    let file = |path: &str| std::fs::metadata(path).unwrap().len();
    let path = path.to_str().unwrap();
    assert_eq!(contents.bytes, file(path) + file(&format!("{path}-wal")));
}

#[tokio::test(flavor = "multi_thread")]
async fn postgres_counts_its_contents_and_observes_its_commits() {
    let Some(url) = new_database() else { return };
    let store = PostgresStore::open(PostgresSettings::new(&url, "test", "0.0.0")).await.unwrap();
    let metrics = StoreMetrics::default();
    store.observe_commits(metrics.clone());
    check(&store).await;
    check_commits(&metrics);
}

async fn check<S: Store + Outbox + Measured>(store: &S) {
    let empty = store.measure().await.unwrap();
    assert_eq!(StoreContents { bytes: 0, ..empty.clone() }, StoreContents::default());
    create_in(store, ["ann", "echo", "t1", "c"], State::Completed, 1).await;
    create_in(store, ["bob", "echo", "t1", "c"], State::Completed, 2).await;
    let working = create_in(store, ["bob", "echo", "t2", "c"], State::Working, 3).await;
    create(store, ["ann", "other", "t3", "c"], 4).await;
    let contents = store.measure().await.unwrap();
    let counted = |contents: &StoreContents| {
        let tell = |(agent, state, count): &(_, State, u64)| format!("{agent} {state:?} {count}");
        contents.tasks.iter().map(tell).collect::<Vec<_>>().join(", ")
    };
    assert_eq!(counted(&contents), "echo Working 1, echo Completed 2, other Submitted 1");
    assert!(contents.bytes > 0);

    let webhook = Webhook {
        id: PushConfigId::parse("w").unwrap(),
        url: "https://a/hook".to_owned(),
        receiver: "https://a".to_owned(),
        secrets: Vec::new(),
        dialect: Birth(3),
        events: WebhookEvents::Statuses,
    };
    store.set_webhook(working, webhook, at(5)).await.unwrap();
    let waiting = |contents: &StoreContents| {
        let since = contents.pending_since.map(|since| since.as_millis() - at(0).as_millis());
        (contents.pending, since, contents.given_up)
    };
    assert_eq!(waiting(&store.measure().await.unwrap()), (0, None, 0), "nothing is to be sent yet");
    push(store, working, 2, &[status(State::Completed, 6)]).await.unwrap();
    assert_eq!(waiting(&store.measure().await.unwrap()), (1, Some(6), 0), "since the event was stored");
    let due = store.due("https://a", at(99), 10).await.unwrap().remove(0);
    let failure = |moment| Failure { reason: "down".to_owned(), time: at(moment) };
    store.postpone(due.webhook, failure(7), at(50)).await.unwrap();
    store.postpone(due.webhook, failure(8), at(60)).await.unwrap();
    assert_eq!(waiting(&store.measure().await.unwrap()), (1, Some(7), 0), "since the first failure");
    store.give_up(due.webhook, 3, failure(9)).await.unwrap();
    assert_eq!(waiting(&store.measure().await.unwrap()), (0, None, 1));

    let everything = Retention { settled_before: Some(at(1000)), ..Retention::default() };
    sweep_all(store, everything).await;
    assert_eq!(counted(&store.measure().await.unwrap()), "other Submitted 1", "what is deleted does not count");
}

/// Every append was a commit of its own here.
fn check_commits(metrics: &StoreMetrics) {
    let mut registry = Registry::default();
    metrics.register(&mut registry);
    let mut page = String::new();
    encode(&mut page, &registry).unwrap();
    let value = |name: &str| {
        let line = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.and_then(|value| value.parse::<f64>().ok()).unwrap_or_else(|| panic!("{name} in {page}"))
    };
    assert!(value("store_commit_seconds_count") >= 5.0 && value("store_commit_seconds_sum") > 0.0, "{page}");
    assert_eq!(value("store_commit_group_sum"), value("store_commit_group_count"), "{page}");
}
