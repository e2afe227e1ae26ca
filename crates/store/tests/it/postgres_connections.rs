//! How many connections a node has at once.

use std::sync::Arc;

use sabir_store::{PostgresSettings, PostgresStore, Store};
use sabir_testkit::store_contract::fixture::*;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::postgres_gate::Gate;
use crate::postgres_server::{LIMIT, LOCK_WAITERS, connect, new_database, until_row};

/// Each waits for the lock of its task, on a connection that nobody else uses.
#[tokio::test(flavor = "multi_thread")]
async fn many_webhooks_at_once_need_few_connections() {
    let Some(url) = new_database() else { return };
    let gate = Gate::start(&url).await;
    gate.open();
    let settings = PostgresSettings { writers: 1, ..PostgresSettings::new(gate.url(), "a", "0") };
    let store = Arc::new(PostgresStore::open(settings).await.expect("the database can be opened"));
    let no = create(&*store, ["ann", "echo", "t1", "c1"], 1).await;
    let locking = connect(&url).await;
    locking.batch_execute("BEGIN; SELECT FROM tasks FOR NO KEY UPDATE").await.unwrap();
    let mut changes = JoinSet::new();
    for _ in 0..200 {
        let store = store.clone();
        changes.spawn(async move { store.remove_webhooks(no, None).await });
    }
    until_row(&url, LOCK_WAITERS, "8").await;
    locking.batch_execute("COMMIT").await.unwrap();
    let done = timeout(LIMIT, changes.join_all()).await.expect("all have their turn");
    assert!(done.iter().all(Result::is_ok), "{done:?}");
    assert!(gate.most_connections() < 50, "{}", gate.most_connections());
}
