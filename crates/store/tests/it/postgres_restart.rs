//! A Postgres that crashes, and a pooler in front of one: stores go on by themselves.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use sabir_model::{Event, State};
use sabir_store::{Cluster, PostgresSettings, PostgresStore, Store, TaskNo};
use sabir_testkit::postgres::{PgBouncer, Postgres, report_skipped};
use sabir_testkit::store_contract::fixture::*;
use tokio::time::{sleep, timeout};

use crate::postgres_cluster::claiming;
use crate::postgres_own_server::Server;
use crate::postgres_server::{LIMIT, database_of, execute, new_database, until};

async fn open(url: &str, name: &str) -> PostgresStore {
    PostgresStore::open(PostgresSettings::new(url, name, "0")).await.expect("the database can be opened")
}

/// Appends to four tasks one after the other, counts the appends in `done`, and checks that each task has what was stored.
async fn append_many(store: &Arc<PostgresStore>, prefix: &str, steps: u64, done: &Arc<AtomicU64>) {
    let mut tasks = Vec::new();
    for number in 0..4 {
        let (store, done, id) = (store.clone(), done.clone(), format!("{prefix}{number}"));
        tasks.push(tokio::spawn(async move {
            let no = create(&*store, ["ann", "echo", &id, &id], 1).await;
            for after in 1..=steps {
                let event = if after % 5 == 0 { status(State::Working, 1) } else { chunk(&format!("{after};")) };
                push(&*store, no, after, &[event]).await.expect("an append");
                done.fetch_add(1, Ordering::SeqCst);
                sleep(Duration::from_millis(2)).await;
            }
            no
        }));
    }
    for task in tasks {
        check(store, task.await.expect("a task"), steps).await;
    }
}

async fn check(store: &PostgresStore, no: TaskNo, steps: u64) {
    let events = events(store, no).await;
    assert_eq!(events.len() as u64, steps + 1);
    for (after, event) in (1..=steps).zip(events.iter().skip(1)) {
        let Event::Artifact(artifact) = event else { continue };
        assert!(format!("{:?}", artifact.artifact.parts).contains(&format!("\"{after};\"")), "{after}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crash_of_the_database_costs_nothing() {
    let Some(server) = Server::start(|_| "listen_addresses = ''".to_owned()) else { return };
    let store = Arc::new(open(&server.url(), "a").await);
    let other = open(&server.url(), "b").await;
    let done = Arc::new(AtomicU64::new(0));
    let appends = tokio::spawn({
        let (store, done) = (store.clone(), done.clone());
        async move { append_many(&store, "t", 250, &done).await }
    });
    for crash_after in [200, 500] {
        until(async || (done.load(Ordering::SeqCst) > crash_after).then_some(())).await;
        server.control(&["restart", "-m", "immediate"]);
    }
    appends.await.expect("the appends");
    let hinted = timeout(LIMIT, async { while !other.hints().await.unwrap().all {} });
    hinted.await.expect("hints after the crash");
    let before = *store.lease().borrow();
    let mut lease = store.lease();
    let renewed = timeout(LIMIT, lease.wait_for(|lease| lease.until > before.until)).await;
    renewed.expect("the lease is renewed").unwrap();
    store.check().await.unwrap();
    other.check().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pooler_in_transaction_mode_is_enough() {
    let Some(url) = new_database() else { return report_skipped(1) };
    let server = Postgres::shared().expect("whoever has a database has a server");
    // So few connections that the stores share them. The server does not wait for the disk, so each append has to ask for a commit
    // that does.
    assert_eq!(execute(&url, "SHOW synchronous_commit"), "off");
    let Some(pooler) = PgBouncer::start_with_pool(server, 3) else { return report_skipped(1) };
    let url = pooler.url_of(database_of(&url));
    let (a, b) = (Arc::new(open(&url, "a").await), Arc::new(open(&url, "b").await));
    assert_eq!(a.poll_interval(), Duration::from_millis(250));
    let done = Arc::default();
    tokio::join!(append_many(&a, "a", 60, &done), append_many(&b, "b", 60, &done));
    assert_eq!(list(&*b, all_of("ann")).await.total, 8);
    assert_eq!(a.claim(claiming("echo"), 9).await.unwrap(), []);
    assert_eq!(a.members().await.unwrap().len(), 2);
    a.check().await.unwrap();
}
