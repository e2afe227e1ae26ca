//! A proxy that keeps connections open and says nothing more: the store notices, dials anew, and stores nothing twice.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use sabir_store::{Cluster, Epoch, PostgresSettings, PostgresStore, Store, StoreError};
use sabir_testkit::postgres::Postgres;
use sabir_testkit::store_contract::fixture::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};

use crate::postgres_cluster::{begin, run};
use crate::postgres_server::{LIMIT, LOCK_WAITERS, database_of, execute, new_database, until, until_row};

/// Counts the connections of a database that sleep.
const SLEEPERS: &str =
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'PgSleep'";

/// Forwards to the server of the tests, until it is frozen.
struct Proxy {
    address: SocketAddr,
    database: String,
    /// Connections that were opened before this one are frozen.
    frozen_before: Arc<AtomicU64>,
    /// The same, for what the server answers.
    mute_before: Arc<AtomicU64>,
    /// Connections that were opened before this one are closed.
    closed_before: watch::Sender<u64>,
    opened: Arc<AtomicU64>,
}

impl Proxy {
    async fn start(url: &str) -> Self {
        Self::serve(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port"), url)
    }

    fn serve(listener: TcpListener, url: &str) -> Self {
        let server = Postgres::shared().expect("whoever has a database has a server").address();
        let address = listener.local_addr().expect("a listener has an address");
        let [frozen_before, mute_before, opened] = [(); 3].map(|()| Arc::new(AtomicU64::new(0)));
        let (frozen, mute, count) = (frozen_before.clone(), mute_before.clone(), opened.clone());
        let (closed_before, closed) = watch::channel(0);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let server = TcpStream::connect(server).await.expect("the server");
                let number = count.fetch_add(1, Ordering::SeqCst);
                let ((from_client, to_client), (from_server, to_server)) = (client.into_split(), server.into_split());
                let requests = copy(from_client, to_server, number, frozen.clone());
                let answers = copy(from_server, to_client, number, mute.clone());
                let mut closed = closed.clone();
                tokio::spawn(async move {
                    let closing = async { drop(closed.wait_for(|before| number < *before).await) };
                    tokio::select! {
                        _ = async { tokio::join!(requests, answers) } => {}
                        () = closing => {}
                    }
                });
            }
        });
        Self { address, database: database_of(url).to_owned(), frozen_before, mute_before, closed_before, opened }
    }

    /// What was opened yet gets nothing any more in both directions.
    fn freeze(&self) {
        self.frozen_before.store(self.opened.load(Ordering::SeqCst), Ordering::SeqCst);
        self.mute();
    }

    /// What is opened from now on gets nothing either, until the next `freeze`.
    fn freeze_all(&self) {
        self.frozen_before.store(u64::MAX, Ordering::SeqCst);
        self.mute_before.store(u64::MAX, Ordering::SeqCst);
    }

    /// What was opened yet gets no more answers, but requests arrive.
    fn mute(&self) {
        self.mute_before.store(self.opened.load(Ordering::SeqCst), Ordering::SeqCst);
    }

    /// What was opened yet is closed.
    fn close(&self) {
        self.closed_before.send_replace(self.opened.load(Ordering::SeqCst));
    }

    fn url(&self) -> String {
        url_at(self.address, &self.database)
    }
}

fn url_at(address: SocketAddr, database: &str) -> String {
    format!("postgres://postgres@{address}/{database}")
}

async fn copy(
    mut from: impl AsyncReadExt + Unpin,
    mut to: impl AsyncWriteExt + Unpin,
    number: u64,
    frozen_before: Arc<AtomicU64>,
) {
    let mut buffer = vec![0; 1 << 16];
    while let Ok(count @ 1..) = from.read(&mut buffer).await {
        if number < frozen_before.load(Ordering::SeqCst) {
            std::future::pending::<()>().await;
        }
        if to.write_all(&buffer[..count]).await.is_err() {
            return;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_frozen_connection_is_noticed() {
    let Some(url) = new_database() else { return };
    let proxy = Proxy::start(&url).await;
    let settings = PostgresSettings::new(proxy.url(), "a", "0");
    let store = PostgresStore::open(settings).await.expect("the database can be opened");
    create(&store, ["ann", "echo", "t1", "c1"], 1).await;
    store.check().await.unwrap();

    let (frozen, mut lease) = (Instant::now(), store.lease());
    proxy.freeze();
    // Not the limit of 15 s that other statements have.
    let refused = store.check().await.expect_err("the connections are frozen").to_string();
    assert!(refused.contains("does not answer within 3s"), "{refused}");
    let renewed = timeout(LIMIT, lease.wait_for(|lease| lease.until > frozen + Duration::from_secs(5)));
    renewed.await.expect("a lease").unwrap();
    timeout(LIMIT, create(&store, ["ann", "echo", "t2", "c2"], 1)).await.expect("an append");
    while store.check().await.is_err() {
        assert!(frozen.elapsed() < 2 * LIMIT, "the connection stays frozen");
        sleep(Duration::from_millis(100)).await;
    }
    let heard = timeout(LIMIT, async { while !store.hints().await.unwrap().all {} });
    heard.await.expect("the listener was opened again");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_task_that_was_stored_and_taken_over_belongs_to_its_new_owner() {
    let Some(url) = new_database() else { return };
    let proxy = Proxy::start(&url).await;
    let settings = PostgresSettings::new(proxy.url(), "a", "0");
    let store = Arc::new(PostgresStore::open(settings).await.expect("the database can be opened"));
    create(&*store, ["ann", "echo", "t1", "c1"], 1).await;
    proxy.mute();
    let same = store.clone();
    let append = tokio::spawn(async move { begin(&*same, ["ann", "echo", "t2", "c2"], run(), &[]).await });
    until_row(&url, "SELECT count(*) FROM tasks WHERE id = 't2'", "1").await;
    // It is stored, but its answer is lost.
    execute(&url, "UPDATE tasks SET node = 999, epoch = 2 WHERE id = 't2'");
    proxy.close();
    let repeated = timeout(LIMIT, append).await.expect("an answer").unwrap().unwrap();
    assert_eq!((repeated.last, repeated.epoch), (1, Epoch(0)));
    assert_eq!(execute(&url, "SELECT node, epoch FROM tasks WHERE id = 't2'"), "999|2");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_task_waits_for_its_own_first_attempt() {
    let Some(url) = new_database() else { return };
    let proxy = Proxy::start(&url).await;
    let store = PostgresStore::open(PostgresSettings::new(proxy.url(), "a", "0")).await.unwrap();
    create(&store, ["ann", "echo", "t1", "c1"], 1).await;
    let wait = "CREATE TABLE released (since timestamptz);
        CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS
            'BEGIN WHILE NOT EXISTS (SELECT FROM released) LOOP PERFORM pg_sleep(0.05); END LOOP; RETURN NEW; END';
        CREATE TRIGGER wait AFTER INSERT ON tasks FOR EACH ROW EXECUTE FUNCTION wait()";
    execute(&url, wait);
    // The connection of the first attempt is lost while that waits; the server goes on with it, and the second waits for it.
    let lose = async {
        until_row(&url, SLEEPERS, "1").await;
        proxy.close();
        until(async || (execute(&url, LOCK_WAITERS) != "0").then_some(())).await;
        execute(&url, "INSERT INTO released VALUES (now())");
    };
    let (first, ()) = tokio::join!(begin(&store, ["ann", "echo", "t2", "c2"], run(), &[]), lose);
    let first = first.unwrap();
    assert_eq!((first.last, first.epoch), (1, Epoch(1)));
    let again = begin(&store, ["ann", "echo", "t2", "c2"], run(), &[]).await;
    assert!(matches!(again, Err(StoreError::Exists(_))));
    assert_eq!(execute(&url, "SELECT count(*) FROM tasks"), "2");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_append_with_an_unknown_outcome_is_sent_until_it_is_known() {
    let Some(url) = new_database() else { return };
    let proxy = Proxy::start(&url).await;
    let settings = PostgresSettings::new(proxy.url(), "a", "0");
    let store = Arc::new(PostgresStore::open(settings).await.expect("the database can be opened"));
    let no = create(&*store, ["ann", "echo", "t1", "c1"], 1).await;
    proxy.mute();
    let same = store.clone();
    let append = tokio::spawn(async move { push(&*same, no, 1, &[chunk("x")]).await });
    let events_of_task =
        "SELECT coalesce(in_row, (SELECT max(seq) FROM events WHERE events.no = tasks.no)) FROM tasks WHERE id = 't1'";
    until_row(&url, events_of_task, "2").await;
    // It is stored, and nobody can find that out for longer than the 20 s after which other appends are given up.
    proxy.freeze_all();
    proxy.close();
    sleep(Duration::from_secs(25)).await;
    assert!(!append.is_finished());
    proxy.freeze();
    let stored = timeout(LIMIT, append).await.expect("an answer").unwrap();
    assert_eq!(stored.unwrap().last, 2);
    assert_eq!(events(&*store, no).await.len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_may_start_before_its_database() {
    let Some(url) = new_database() else { return };
    // Nobody listens there until the proxy does.
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
    let address = socket.local_addr().unwrap();
    let settings = PostgresSettings::new(url_at(address, database_of(&url)), "a", "0");
    let open = tokio::spawn(PostgresStore::open(PostgresSettings { start_timeout: LIMIT, ..settings.clone() }));
    assert!(PostgresStore::open(settings).await.is_err());
    sleep(Duration::from_millis(500)).await;
    let _proxy = Proxy::serve(socket.listen(64).unwrap(), &url);
    let store = timeout(LIMIT, open).await.expect("it does not wait any more").unwrap();
    store.expect("the database can be opened").check().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_silent_host_is_asked_once() {
    let Some(url) = new_database() else { return };
    let silent = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let first = silent.local_addr().unwrap();
    let asked = Arc::new(AtomicU64::new(0));
    let count = asked.clone();
    tokio::spawn(async move {
        let mut kept = Vec::new();
        while let Ok((connection, _)) = silent.accept().await {
            kept.push(connection);
            count.fetch_add(1, Ordering::SeqCst);
        }
    });
    let proxy = Proxy::start(&url).await;
    let hosts = format!("postgres://postgres@{first},{}/{}?connect_timeout=20", proxy.address, proxy.database);
    let store = PostgresStore::open(PostgresSettings::new(hosts, "a", "0")).await.expect("the database can be opened");
    create(&store, ["ann", "echo", "t1", "c1"], 1).await;
    store.check().await.unwrap();
    assert_eq!(asked.load(Ordering::SeqCst), 1);
    // Lost connections are opened again where the last one answered, so the lease is kept.
    let (opened, mut lease) = (proxy.opened.load(Ordering::SeqCst), store.lease());
    execute(
        &url,
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()",
    );
    let lost = Instant::now();
    let renewed = timeout(LIMIT, lease.wait_for(|lease| lease.until > lost + Duration::from_secs(6)));
    renewed.await.expect("a lease").unwrap();
    assert!(proxy.opened.load(Ordering::SeqCst) > opened);
    assert_eq!(asked.load(Ordering::SeqCst), 1);
    assert_eq!(lease.borrow().incarnation, 1);
}
