//! Whether notices arrive is found out at the start, or later: a slow database is no pooler.

use std::future::{pending, poll_fn};
use std::time::Duration;

use sabir_store::{Cluster, PostgresSettings, PostgresStore};
use sabir_testkit::postgres::{PgBouncer, Postgres};
use sabir_testkit::store_contract::fixture::*;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_postgres::{AsyncMessage, NoTls};

use crate::postgres_gate::Gate;
use crate::postgres_locks::{change_everything, commit_without_the_disk, note_unsafe_commits, unsafe_commits};
use crate::postgres_server::{LIMIT, database_of, new_database, until, until_row};

async fn open(url: &str, name: &str) -> PostgresStore {
    PostgresStore::open(PostgresSettings::new(url, name, "0")).await.expect("the database can be opened")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_whose_first_notice_comes_late_is_listened_to() {
    let Some(url) = new_database() else { return };
    commit_without_the_disk(&url);
    let gate = Gate::start(&url).await;
    let store = open(&gate.url(), "a").await;
    assert!(!store.receives_hints());
    assert_eq!(store.poll_interval(), Duration::from_millis(250));
    note_unsafe_commits(&url);
    change_everything(&store, "t1").await;

    gate.open();
    until(async || store.receives_hints().then_some(())).await;
    assert_eq!(store.poll_interval(), Duration::from_secs(2));
    // Connections that it has opened before do not ask for safe commits themselves.
    change_everything(&store, "t2").await;
    assert_eq!(unsafe_commits(&url), "");
    // Others hear of it, and what they tell arrives.
    until_row(&url, "SELECT listens FROM nodes WHERE name = 'a'", "t").await;
    let other = open(&url, "b").await;
    let told = create(&other, ["ann", "echo", "t3", "c3"], 1).await;
    let heard = async { while !store.hints().await.unwrap().tasks.contains(&told) {} };
    timeout(LIMIT, heard).await.expect("a hint");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pooler_is_tested_again_and_stays_one() {
    let Some(url) = new_database() else { return };
    let Some(pooler) = PgBouncer::start(Postgres::shared().expect("whoever has a database has a server")) else {
        return;
    };
    let gate = Gate::start(&pooler.url_of(database_of(&url))).await;
    gate.open();
    let mut tests = test_notices(&url).await;
    let store = open(&gate.url(), "a").await;
    for _ in 0..3 {
        timeout(LIMIT, tests.recv()).await.expect("the notice of a test").expect("the listener listens");
        assert_eq!(store.poll_interval(), Duration::from_millis(250));
        // A listener whose connection is lost is tested anew at once.
        gate.close_connections();
    }
    change_everything(&store, "t1").await;
    assert!(!store.receives_hints());
}

/// Receives something for each notice that a node makes to test whether it arrives: it has the sender alone.
async fn test_notices(url: &str) -> mpsc::UnboundedReceiver<()> {
    let (client, mut connection) = tokio_postgres::connect(url, NoTls).await.expect("a connection");
    let (sender, received) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Some(Ok(message)) = poll_fn(|context| connection.poll_message(context)).await {
            if let AsyncMessage::Notification(notice) = message
                && !notice.payload().contains(';')
            {
                let _ = sender.send(());
            }
        }
    });
    client.batch_execute("LISTEN sabir").await.expect("it listens");
    // It listens for as long as its client is there.
    tokio::spawn(async move {
        pending::<()>().await;
        drop(client);
    });
    received
}
