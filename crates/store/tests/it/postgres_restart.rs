//! A Postgres that crashes, and a pooler in front of one: stores go on by themselves.

use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::time::Duration;

use sabir_model::{Event, State};
use sabir_store::{Cluster, PostgresSettings, PostgresStore, Store, TaskNo};
use sabir_testkit::store_contract::fixture::*;
use tokio::time::{sleep, timeout};

use crate::postgres_cluster::claiming;
use crate::postgres_own_server::Server;

async fn open(url: &str, name: &str) -> PostgresStore {
    PostgresStore::open(PostgresSettings::new(url, name, "0")).await.expect("the database can be opened")
}

/// Appends to tasks one after the other, and checks that each has what was stored.
async fn append_many(store: &Arc<PostgresStore>, prefix: &str, steps: u64) {
    let mut tasks = Vec::new();
    for number in 0..4 {
        let (store, id) = (store.clone(), format!("{prefix}{number}"));
        tasks.push(tokio::spawn(async move {
            let no = create(&*store, ["ann", "echo", &id, &id], 1).await;
            for after in 1..=steps {
                let event = if after % 5 == 0 { status(State::Working, 1) } else { chunk(&format!("{after};")) };
                push(&*store, no, after, &[event]).await.expect("an append");
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
    let Some(server) = Server::start("listen_addresses = ''") else { return };
    let store = Arc::new(open(&server.url(), "a").await);
    let other = open(&server.url(), "b").await;
    let appends = tokio::spawn({
        let store = store.clone();
        async move { append_many(&store, "t", 250).await }
    });
    sleep(Duration::from_millis(300)).await;
    server.control(&["restart", "-m", "immediate"]);
    sleep(Duration::from_millis(300)).await;
    server.control(&["restart", "-m", "immediate"]);
    appends.await.expect("the appends");
    let hinted = timeout(Duration::from_secs(10), async { while !other.hints().await.unwrap().all {} });
    hinted.await.expect("hints after the crash");
    let before = *store.lease().borrow();
    let mut lease = store.lease();
    let renewed = timeout(Duration::from_secs(10), lease.wait_for(|lease| lease.until > before.until)).await;
    renewed.expect("the lease is renewed").unwrap();
    store.check().await.unwrap();
    other.check().await.unwrap();
}

/// A process that ends with the test, also with one that fails.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pooler_in_transaction_mode_is_enough() {
    let pooler = ["/usr/sbin/pgbouncer", "/usr/bin/pgbouncer"].into_iter().find(|path| Path::new(path).exists());
    let (Some(pooler), Some(server)) = (pooler, Server::start("listen_addresses = ''")) else { return };
    let folder = server.folder.path().display().to_string();
    // Then each append has to ask for a commit that waits for the disk.
    server
        .run("psql", &["-h", &folder, "-U", "postgres", "-qc", "ALTER DATABASE postgres SET synchronous_commit = off"]);
    let settings = format!(
        "[databases]\npostgres = host={folder} port=5432 user=postgres\n[pgbouncer]\nlisten_addr =\nunix_socket_dir = {folder}\n\
         listen_port = 6543\nauth_type = any\npool_mode = transaction\ndefault_pool_size = 3\nlogfile = {folder}/pooler.log\n\
         pidfile = {folder}/pooler.pid\n"
    );
    std::fs::write(server.folder.path().join("pooler.ini"), settings).unwrap();
    let mut pooler = server.as_user(Path::new(pooler));
    pooler.args(["-q", "pooler.ini"]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let _running = Running(pooler.spawn().expect("a pooler"));
    sleep(Duration::from_millis(500)).await;
    let url = format!("host={folder} port=6543 user=postgres dbname=postgres");
    let (a, b) = (Arc::new(open(&url, "a").await), Arc::new(open(&url, "b").await));
    assert_eq!(a.poll_interval(), Duration::from_millis(250));
    tokio::join!(append_many(&a, "a", 60), append_many(&b, "b", 60));
    assert_eq!(list(&*b, all_of("ann")).await.total, 8);
    assert_eq!(a.claim(claiming("echo"), 9).await.unwrap(), []);
    assert_eq!(a.members().await.unwrap().len(), 2);
    a.check().await.unwrap();
}
