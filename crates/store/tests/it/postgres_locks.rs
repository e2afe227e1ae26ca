//! Locks that a frozen node keeps: the server ends its transaction, and until then others are not delayed. And other faults that
//! nodes must not pass on to each other.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use sabir_model::{Birth, PushConfigId, State};
use sabir_store::{
    AuditAction, AuditEntry, AuditLog, Cluster, ForwardedCall, Outbox, PostgresSettings, PostgresStore, Retention,
    Store, StoreError, TaskNo, Webhook, WebhookEvents,
};
use sabir_testkit::postgres::{PgBouncer, Postgres};
use sabir_testkit::store_contract::fixture::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, sleep, timeout};
use tokio_postgres::Client;

use crate::postgres_cluster::{begin, claiming, run};
use crate::postgres_server::{LOCK_WAITERS, connect, database_of, execute, new_database};

/// How a transaction of several statements begins, as in `connections.rs`.
const BEGIN: &str = "BEGIN; SET LOCAL idle_in_transaction_session_timeout = '5s'; SET LOCAL lock_timeout = '8s'";

async fn node(url: &str, name: &str, writers: usize) -> Arc<PostgresStore> {
    let settings = PostgresSettings { writers, ..PostgresSettings::new(url, name, "0") };
    Arc::new(PostgresStore::open(settings).await.expect("the database can be opened"))
}

/// A connection in the midst of a transaction, which nobody continues. It has locked these tasks.
async fn frozen_transaction(url: &str, which: &str) -> Client {
    let client = connect(url).await;
    let lock = format!("{BEGIN}; SELECT FROM tasks WHERE {which} FOR NO KEY UPDATE");
    client.batch_execute(&lock).await.expect("the locks");
    client
}

fn webhook(id: &str) -> Webhook {
    Webhook {
        id: PushConfigId::parse(id).unwrap(),
        url: "https://a/hook".to_owned(),
        receiver: "https://a".to_owned(),
        secrets: Vec::new(),
        dialect: Birth(1),
        events: WebhookEvents::Statuses,
    }
}

/// Passes everything on, until it drops all that the server answers, or also what it is sent.
struct Proxy {
    address: SocketAddr,
    database: String,
    is_mute: Arc<AtomicBool>,
    is_cut: Arc<AtomicBool>,
}

impl Proxy {
    async fn start(url: &str) -> Self {
        let server = Postgres::shared().expect("whoever has a database has a server").address();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
        let address = listener.local_addr().expect("a listener has an address");
        let [is_mute, is_cut] = [(); 2].map(|()| Arc::new(AtomicBool::new(false)));
        let (mute, cut) = (is_mute.clone(), is_cut.clone());
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let server = TcpStream::connect(server).await.expect("the server");
                let ((from_client, to_client), (from_server, to_server)) = (client.into_split(), server.into_split());
                tokio::spawn(copy(from_client, to_server, cut.clone()));
                tokio::spawn(copy(from_server, to_client, mute.clone()));
            }
        });
        Self { address, database: database_of(url).to_owned(), is_mute, is_cut }
    }

    fn url(&self) -> String {
        format!("postgres://postgres@{}/{}", self.address, self.database)
    }

    /// The node behind it hears nothing more, as if it were frozen.
    fn mute(&self) {
        self.is_mute.store(true, Ordering::SeqCst);
    }

    fn cut(&self) {
        self.mute();
        self.is_cut.store(true, Ordering::SeqCst);
    }

    /// New connections work again.
    fn mend(&self) {
        self.is_mute.store(false, Ordering::SeqCst);
        self.is_cut.store(false, Ordering::SeqCst);
    }
}

/// A connection that was cut stays so.
async fn copy(mut from: impl AsyncReadExt + Unpin, mut to: impl AsyncWriteExt + Unpin, is_cut: Arc<AtomicBool>) {
    let mut buffer = vec![0; 1 << 16];
    while let Ok(count @ 1..) = from.read(&mut buffer).await {
        if is_cut.load(Ordering::SeqCst) {
            std::future::pending::<()>().await;
        }
        if to.write_all(&buffer[..count]).await.is_err() {
            return;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_locked_task_delays_no_other() {
    let Some(url) = new_database() else { return };
    let (one, other) = (node(&url, "a", 1).await, node(&url, "b", 1).await);
    let mut tasks = Vec::new();
    for number in 0..20 {
        let id = format!("t{number}");
        tasks.push(create(&*other, ["ann", "echo", &id, &id], 1).await);
    }
    let locked = tasks[7];
    let began = Instant::now();
    let _frozen = frozen_transaction(&url, "id = 't7'").await;
    let append = |no: TaskNo, after: u64| {
        let other = other.clone();
        tokio::spawn(async move { push(&*other, no, after, &[chunk("x")]).await })
    };
    let first = append(locked, 1);
    // Later ones of the same task keep their order.
    sleep(Duration::from_millis(50)).await;
    let second = append(locked, 2);
    let neighbours: Vec<_> = tasks.iter().filter(|no| **no != locked).map(|no| append(*no, 1)).collect();
    for neighbour in neighbours {
        neighbour.await.unwrap().unwrap();
    }
    for step in 2..50 {
        push(&*other, tasks[0], step, &[chunk("x")]).await.unwrap();
    }
    assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
    assert!(!first.is_finished());
    while !first.is_finished() {
        assert_eq!(execute(&url, LOCK_WAITERS), "0");
        assert!(began.elapsed() < Duration::from_secs(10), "the append still waits");
        sleep(Duration::from_millis(200)).await;
    }
    assert!(began.elapsed() > Duration::from_secs(4), "nobody had locked it: {:?}", began.elapsed());
    assert_eq!(first.await.unwrap().unwrap().last, 2);
    assert_eq!(second.await.unwrap().unwrap().last, 3);
    assert_eq!(events(&*one, locked).await.len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_append_fails_when_its_task_stays_locked() {
    let Some(url) = new_database() else { return };
    let store = node(&url, "a", 1).await;
    let no = create(&*store, ["ann", "echo", "t1", "c1"], 1).await;
    // Somebody who is no node of Sabir, so no timeout ends this.
    let client = connect(&url).await;
    client.batch_execute("BEGIN; SELECT FROM tasks FOR NO KEY UPDATE").await.unwrap();
    let failed = timeout(Duration::from_secs(25), push(&*store, no, 1, &[chunk("x")])).await.expect("an answer");
    assert!(matches!(failed, Err(StoreError::Failed(_))), "{failed:?}");
    client.batch_execute("COMMIT").await.unwrap();
    assert_eq!(push(&*store, no, 1, &[chunk("x")]).await.unwrap().last, 2);
}

/// Such as that of a key, which the row of the task does not show.
#[tokio::test(flavor = "multi_thread")]
async fn another_lock_delays_neighbours_for_a_moment_only() {
    let Some(url) = new_database() else { return };
    let store = node(&url, "a", 1).await;
    let mut tasks = Vec::new();
    for number in 0..8 {
        let id = format!("t{number}");
        tasks.push(create(&*store, ["ann", "echo", &id, &id], 1).await);
    }
    let client = connect(&url).await;
    let insert = "INSERT INTO keys (party, key, no) SELECT party, 'k', no FROM tasks WHERE id = 't0'";
    client.batch_execute(&format!("{BEGIN}; {insert}")).await.unwrap();
    let began = Instant::now();
    let blocked = tokio::spawn({
        let store = store.clone();
        async move { start(&*store, ["ann", "echo", "new", "c"], Some("k"), 1, &[]).await }
    });
    sleep(Duration::from_millis(100)).await;
    for _ in 0..3 {
        for no in &tasks[1..] {
            let after = events(&*store, *no).await.len() as u64;
            push(&*store, *no, after, &[chunk("x")]).await.unwrap();
        }
    }
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    let stored = timeout(Duration::from_secs(10), blocked).await.expect("an answer").unwrap();
    assert_eq!(stored.unwrap().last, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_locked_task_of_an_ended_node_is_claimed_soon() {
    let Some(url) = new_database() else { return };
    let (one, other) = (node(&url, "a", 1).await, node(&url, "b", 1).await);
    let no = begin(&*one, ["ann", "echo", "t1", "c1"], run(), &[]).await.unwrap().task;
    let _frozen = frozen_transaction(&url, "id = 't1'").await;
    let began = Instant::now();
    execute(&url, "UPDATE nodes SET ended = now(), is_dead = true WHERE name = 'a'");
    assert_eq!(other.claim(claiming("echo"), 9).await.unwrap(), []);
    loop {
        let claimed = other.claim(claiming("echo"), 9).await.unwrap();
        if let [claimed] = &claimed[..] {
            assert_eq!(claimed.unfinished.row.no, no);
            break;
        }
        assert!(began.elapsed() < Duration::from_secs(10), "it is not taken over");
        sleep(Duration::from_millis(100)).await;
    }
}

/// A webhook is one statement, so there is no moment at which a frozen node has the lock of its task.
#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_freezes_with_a_delivery_keeps_no_lock() {
    let Some(url) = new_database() else { return };
    let proxy = Proxy::start(&url).await;
    let (frozen, other) = (node(&proxy.url(), "a", 1).await, node(&url, "b", 1).await);
    let no = create_in(&*frozen, ["ann", "echo", "t1", "c"], State::Completed, 1).await;
    frozen.set_webhook(no, webhook("w"), at(2)).await.unwrap();
    let due = frozen.due("https://a", at(9), 9).await.unwrap().remove(0);
    // The statement waits for a lock while its node freezes.
    let client = connect(&url).await;
    client.batch_execute("BEGIN; SELECT FROM tasks FOR NO KEY UPDATE").await.unwrap();
    let delivered = tokio::spawn({
        let frozen = frozen.clone();
        async move { frozen.delivered(due.webhook, 2, at(5)).await }
    });
    while execute(&url, LOCK_WAITERS) == "0" {
        assert!(!delivered.is_finished());
    }
    proxy.mute();
    client.batch_execute("COMMIT").await.unwrap();
    let began = Instant::now();
    other.set_webhook(no, webhook("v"), at(3)).await.unwrap();
    other.remove_webhooks(no, None).await.unwrap();
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    delivered.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_freezes_in_a_sweep_does_not_stop_the_sweeps_of_others() {
    let Some(url) = new_database() else { return };
    let proxy = Proxy::start(&url).await;
    let (frozen, other) = (node(&proxy.url(), "a", 1).await, node(&url, "b", 1).await);
    for number in 0..3 {
        create_in(&*other, ["ann", "echo", &format!("t{number}"), "c"], State::Completed, 1).await;
    }
    // The sweep has its lock and waits here; then its node freezes.
    let client = connect(&url).await;
    client.batch_execute("BEGIN; LOCK TABLE tasks IN ACCESS EXCLUSIVE MODE").await.unwrap();
    let retention = Retention { settled_before: Some(at(9)), keep: None, pending_after: None };
    let sweep = tokio::spawn({
        let frozen = frozen.clone();
        async move { frozen.sweep(retention).await }
    });
    let has_lock = "SELECT count(*) FROM pg_locks JOIN pg_database ON pg_database.oid = pg_locks.database
        WHERE locktype = 'advisory' AND granted AND datname = current_database()";
    while execute(&url, has_lock) == "0" {
        assert!(!sweep.is_finished());
    }
    sleep(Duration::from_millis(200)).await;
    proxy.mute();
    client.batch_execute("COMMIT").await.unwrap();
    let began = Instant::now();
    assert_eq!(other.sweep(retention).await.unwrap().tasks, 0);
    while other.sweep(retention).await.unwrap().tasks == 0 {
        assert!(began.elapsed() < Duration::from_secs(10), "nobody can sweep");
        sleep(Duration::from_millis(100)).await;
    }
    sweep.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn appends_behind_one_with_an_unknown_outcome_fail_when_the_database_is_lost() {
    let Some(url) = new_database() else { return };
    let proxy = Proxy::start(&url).await;
    let store = node(&proxy.url(), "a", 1).await;
    let no = create(&*store, ["ann", "echo", "t1", "c1"], 1).await;
    let behind = create(&*store, ["ann", "echo", "t2", "c2"], 1).await;
    proxy.mute();
    let began = Instant::now();
    let unknown = tokio::spawn({
        let store = store.clone();
        async move { push(&*store, no, 1, &[chunk("x")]).await }
    });
    sleep(Duration::from_millis(500)).await;
    // It is stored, but nobody can find that out.
    proxy.cut();
    for pause in [0, 10] {
        sleep(Duration::from_secs(pause)).await;
        let failed = timeout(Duration::from_secs(26), push(&*store, behind, 1, &[chunk("y")])).await;
        let failed = failed.expect("an answer");
        assert!(matches!(&failed, Err(StoreError::Failed(_))), "{failed:?}");
    }
    assert!(began.elapsed() > Duration::from_secs(40), "{:?}", began.elapsed());
    assert!(!unknown.is_finished());
    proxy.mend();
    assert_eq!(timeout(Duration::from_secs(20), unknown).await.expect("an answer").unwrap().unwrap().last, 2);
    assert_eq!(push(&*store, behind, 1, &[chunk("z")]).await.unwrap().last, 2);
    assert_eq!((events(&*store, no).await.len(), events(&*store, behind).await.len()), (2, 2));
}

/// Otherwise it would be claimed and given back without an end.
#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_task_is_not_claimed_again_at_once() {
    let Some(url) = new_database() else { return };
    let store = node(&url, "a", 1).await;
    for id in ["t1", "t2"] {
        begin(&*store, ["ann", "echo", id, id], run(), &[]).await.unwrap();
    }
    execute(&url, "DELETE FROM busy_contexts");
    let leave = "UPDATE tasks SET node = NULL, is_left = true, left_at = now()";
    execute(&url, &format!("{leave}; UPDATE tasks SET id = '' WHERE id = 't1'"));
    assert_eq!(store.claim(claiming("echo"), 9).await.unwrap().len(), 1);
    let epochs = "SELECT string_agg(epoch::text, ' ' ORDER BY no) FROM tasks";
    assert_eq!(execute(&url, epochs), "2 2");
    // It is given back, or its node ends.
    for without_owner in [leave, "UPDATE tasks SET node = 999"] {
        execute(&url, &format!("{without_owner} WHERE id = ''"));
        assert_eq!(store.claim(claiming("echo"), 9).await.unwrap(), []);
        assert_eq!(execute(&url, epochs), "2 2");
    }
}

/// Then all beats look old at once, but those of nodes that are alive change.
#[tokio::test(flavor = "multi_thread")]
async fn no_node_is_declared_dead_when_the_clock_of_the_database_is_set_forward() {
    let Some(url) = new_database() else { return };
    let open = async |name| {
        let settings = PostgresSettings::new(&*url, name, "0");
        let (beat, grace) = (Duration::from_millis(100), Duration::from_millis(600));
        PostgresStore::open(PostgresSettings { beat, grace, ..settings }).await.expect("the database can be opened")
    };
    let (_one, other) = (open("a").await, open("b").await);
    execute(
        &url,
        "CREATE FUNCTION behind() RETURNS trigger LANGUAGE plpgsql AS
            $$ BEGIN NEW.beat := NEW.beat - interval '1 hour'; RETURN NEW; END $$;
        CREATE TRIGGER behind BEFORE UPDATE OF beat ON nodes FOR EACH ROW EXECUTE FUNCTION behind()",
    );
    sleep(Duration::from_secs(3)).await;
    assert_eq!(execute(&url, "SELECT count(*) FROM nodes WHERE ended IS NULL"), "2");
    // One that really stops is found.
    other.stop_beating();
    let began = Instant::now();
    while execute(&url, "SELECT string_agg(name, '') FROM nodes WHERE is_dead") != "b" {
        assert!(began.elapsed() < Duration::from_secs(10), "it is not declared dead");
        sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_change_through_a_pooler_waits_for_the_disk() {
    let Some(url) = new_database() else { return };
    let Some(pooler) = PgBouncer::start(Postgres::shared().expect("whoever has a database has a server")) else {
        return;
    };
    execute(&url, &format!("ALTER DATABASE \"{}\" SET synchronous_commit = off", database_of(&url)));
    let store = node(&pooler.url_of(database_of(&url)), "a", 1).await;
    execute(
        &url,
        "CREATE TABLE unsafe (what text);
        CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            IF current_setting('synchronous_commit') <> 'on' THEN INSERT INTO unsafe VALUES (TG_TABLE_NAME || ' ' || TG_OP); END IF;
            RETURN NULL; END $$",
    );
    for table in ["tasks", "webhooks", "audit", "forwarded"] {
        execute(
            &url,
            &format!("CREATE TRIGGER note AFTER INSERT OR UPDATE OR DELETE ON {table} EXECUTE FUNCTION note()"),
        );
    }
    let no = create_in(&*store, ["ann", "echo", "t1", "c"], State::Completed, 1).await;
    store.set_webhook(no, webhook("w"), at(2)).await.unwrap();
    let due = store.due("https://a", at(9), 9).await.unwrap().remove(0);
    store.delivered(due.webhook, 1, at(3)).await.unwrap();
    store.remove_webhooks(no, None).await.unwrap();
    store.claim(claiming("echo"), 9).await.unwrap();
    let call = ForwardedCall { number: store.next_forward(), task: no, call: Vec::new() };
    store.forward(call, Instant::now() + Duration::from_secs(9)).await.unwrap();
    let entry = AuditEntry {
        time: at(1),
        caller: owner("ann"),
        peer: None,
        action: AuditAction::Read,
        agent: None,
        task: None,
        no: None,
        owner: None,
        refusal: None,
        detail: String::new(),
    };
    store.record(entry).await.unwrap();
    store.assign(vec![no], &owner("ann"), &owner("bob")).await.unwrap();
    assert_eq!(execute(&url, "SELECT count(*) FROM audit"), "1");
    assert_eq!(execute(&url, "SELECT DISTINCT what FROM unsafe ORDER BY 1"), "");
}
