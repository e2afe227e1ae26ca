//! Locks that a frozen node keeps: the server ends its transaction, and until then others are not delayed. And other faults that
//! nodes must not pass on to each other.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use sabir_model::{Birth, PushConfigId, State};
use sabir_store::{
    AfterAppend, Append, AppendTarget, AuditAction, AuditEntry, AuditLog, Claim, Cluster, ForwardedCall, Outbox,
    Ownership, PostgresSettings, PostgresStore, Retention, Store, StoreError, TaskNo, Webhook, WebhookEvents,
};
use sabir_testkit::postgres::{PgBouncer, Postgres};
use sabir_testkit::store_contract::fixture::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, sleep, timeout};
use tokio_postgres::Client;

use crate::postgres_cluster::{begin, claiming, run};
use crate::postgres_server::{
    LIMIT, connect, database_of, execute, execute_aside, has_logged, new_database, until_row,
};

/// Transactions of several statements begin with this, as in `connections.rs`: if nobody continues one, the server ends it.
const ENDED_BY_SERVER: &str = "SET LOCAL idle_in_transaction_session_timeout = '5s'";
/// What the server logs when it does so.
const WAS_IDLE: &str = "FATAL:  terminating connection due to idle-in-transaction timeout";

/// Counts the connections of a database that wait for the row of another transaction.
const ROW_WAITERS: &str = "SELECT count(*) FROM pg_stat_activity
    WHERE datname = current_database() AND wait_event IN ('transactionid', 'tuple')";

async fn node(url: &str, name: &str, writers: usize) -> Arc<PostgresStore> {
    let settings = PostgresSettings { writers, ..PostgresSettings::new(url, name, "0") };
    Arc::new(PostgresStore::open(settings).await.expect("the database can be opened"))
}

/// A connection in the midst of a transaction that has locked these tasks, for 5 s from when it is frozen.
async fn locking_transaction(url: &str, which: &str) -> Client {
    let client = connect(url).await;
    let lock = format!("BEGIN; SELECT FROM tasks WHERE {which} FOR NO KEY UPDATE");
    client.batch_execute(&lock).await.expect("the locks");
    client
}

/// From now on it is the transaction of a frozen node.
async fn freeze(transaction: &Client) {
    transaction.batch_execute(ENDED_BY_SERVER).await.expect("the transaction is open");
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
    let locking = locking_transaction(&url, "id = 't7'").await;
    // They are queued at once, so later ones of the same task keep their order.
    let append = |no: TaskNo, after: u64| tokio::spawn(push(&*other, no, after, &[chunk("x")]));
    let (first, second) = (append(locked, 1), append(locked, 2));
    let neighbours: Vec<_> = tasks.iter().filter(|no| **no != locked).map(|no| append(*no, 1)).collect();
    for neighbour in neighbours {
        neighbour.await.unwrap().unwrap();
    }
    let more = tokio::spawn({
        let (other, neighbour) = (other.clone(), tasks[0]);
        async move {
            for step in 2..22 {
                push(&*other, neighbour, step, &[chunk("x")]).await.unwrap();
            }
        }
    });
    while !more.is_finished() {
        assert_eq!(execute(&url, ROW_WAITERS), "0", "nobody waits, not even for a moment");
    }
    more.await.unwrap();
    assert!(!first.is_finished());
    let began = Instant::now();
    freeze(&locking).await;
    while !first.is_finished() {
        assert_eq!(execute(&url, ROW_WAITERS), "0");
        assert!(began.elapsed() < LIMIT, "the append still waits");
        sleep(Duration::from_millis(200)).await;
    }
    assert!(has_logged(&url, WAS_IDLE), "nobody had locked it");
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
    let failed = timeout(LIMIT, push(&*store, no, 1, &[chunk("x")])).await.expect("an answer");
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
    client.batch_execute(&format!("BEGIN; {insert}")).await.unwrap();
    let blocked = tokio::spawn({
        let store = store.clone();
        async move { start(&*store, ["ann", "echo", "new", "c"], Some("k"), 1, &[]).await }
    });
    until_row(&url, ROW_WAITERS, "1").await;
    for no in &tasks[1..] {
        push(&*store, *no, 1, &[chunk("x")]).await.unwrap();
    }
    assert!(!blocked.is_finished());
    freeze(&client).await;
    let stored = timeout(LIMIT, blocked).await.expect("an answer").unwrap();
    assert_eq!(stored.unwrap().last, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_locked_task_of_an_ended_node_is_claimed_soon() {
    let Some(url) = new_database() else { return };
    let (one, other) = (node(&url, "a", 1).await, node(&url, "b", 1).await);
    let no = begin(&*one, ["ann", "echo", "t1", "c1"], run(), &[]).await.unwrap().task;
    let locking = locking_transaction(&url, "id = 't1'").await;
    execute(&url, "UPDATE nodes SET ended = now(), is_dead = true WHERE name = 'a'");
    assert_eq!(other.claim(claiming("echo"), 9).await.unwrap(), []);
    let began = Instant::now();
    freeze(&locking).await;
    loop {
        let claimed = other.claim(claiming("echo"), 9).await.unwrap();
        if let [claimed] = &claimed[..] {
            assert_eq!(claimed.unfinished.row.no, no);
            break;
        }
        // One that cannot be read is claimed again after a minute.
        assert!(began.elapsed() < LIMIT / 2, "it is not taken over");
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
    while execute(&url, ROW_WAITERS) == "0" {
        assert!(!delivered.is_finished());
    }
    proxy.mute();
    client.batch_execute("COMMIT").await.unwrap();
    other.set_webhook(no, webhook("v"), at(3)).await.unwrap();
    other.remove_webhooks(no, None).await.unwrap();
    assert!(!has_logged(&url, WAS_IDLE), "the server had to end a transaction first");
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
        assert!(began.elapsed() < LIMIT, "nobody can sweep");
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
    let unknown = tokio::spawn(push(&*store, no, 1, &[chunk("x")]));
    let events_of_task =
        "SELECT coalesce(in_row, (SELECT max(seq) FROM events WHERE events.no = tasks.no)) FROM tasks WHERE id = 't1'";
    until_row(&url, events_of_task, "2").await;
    // It is stored, but nobody can find that out.
    proxy.cut();
    for pause in [0, 10] {
        sleep(Duration::from_secs(pause)).await;
        let failed = timeout(LIMIT, push(&*store, behind, 1, &[chunk("y")])).await;
        let failed = failed.expect("an answer");
        assert!(matches!(&failed, Err(StoreError::Failed(_))), "{failed:?}");
    }
    assert!(began.elapsed() > Duration::from_secs(40), "{:?}", began.elapsed());
    assert!(!unknown.is_finished());
    proxy.mend();
    assert_eq!(timeout(LIMIT, unknown).await.expect("an answer").unwrap().unwrap().last, 2);
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
    // Somebody else gives it back, or its node ends.
    for without_owner in [leave, "UPDATE tasks SET node = 999"] {
        execute(&url, &format!("{without_owner} WHERE id = ''"));
        assert_eq!(store.claim(claiming("echo"), 9).await.unwrap(), []);
        assert_eq!(execute(&url, epochs), "2 2");
    }
}

/// A damaged task may be the oldest of its context that was left, or the one that had a run there when its node ended.
#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_task_keeps_no_other_of_its_context_from_beginning() {
    let Some(url) = new_database() else { return };
    let store = node(&url, "a", 1).await;
    let running = begin(&*store, ["ann", "echo", "t1", "c1"], run(), &[]).await.unwrap().task;
    let leave = || Ownership { then: AfterAppend::Leave { home: None }, ..Ownership::default() };
    let mut left = Vec::new();
    for [id, place] in [["t2", "c1"], ["t3", "c2"], ["t4", "c2"]] {
        left.push(begin(&*store, ["ann", "echo", id, place], leave(), &[]).await.unwrap().task);
    }
    execute(&url, "UPDATE tasks SET node = 999 WHERE id = 't1'; UPDATE tasks SET born = 999 WHERE id IN ('t1', 't3')");
    let damaged = [running, left[1]];

    let (mut claimed, deadline) = (Vec::new(), Instant::now() + LIMIT);
    while claimed.len() < 2 {
        assert!(Instant::now() < deadline, "{claimed:?}");
        claimed.extend(store.claim(claiming("echo"), 9).await.unwrap());
        // What an engine gives back that does not drive these tasks.
        let owned = store.owned().await.unwrap();
        assert!(owned.iter().all(|(no, _)| !damaged.contains(no)), "{owned:?}");
    }
    for task in &claimed {
        let (target, ownership) =
            (AppendTarget::Known(task.unfinished.row.no), Ownership { claim: Claim::Hold(task.epoch), ..run() });
        let (working, side_rows) = (status(State::Working, 2), &[]);
        let begun =
            store.append(Append { target, events: &[&working], after: 1, snapshot: None, side_rows, ownership });
        assert_eq!(begun.await.unwrap().last, 2);
    }
    let mut numbers: Vec<_> = claimed.iter().map(|task| task.unfinished.row.no).collect();
    numbers.sort();
    assert_eq!(numbers, [left[0], left[2]]);
}

/// Then all beats look old at once, but those of nodes that are alive change.
#[tokio::test(flavor = "multi_thread")]
async fn no_node_is_declared_dead_when_the_clock_of_the_database_is_set_forward() {
    let Some(url) = new_database() else { return };
    let (beat, grace) = (Duration::from_millis(500), Duration::from_secs(8));
    let open = async |name| {
        let settings = PostgresSettings::new(&*url, name, "0");
        PostgresStore::open(PostgresSettings { beat, grace, ..settings }).await.expect("the database can be opened")
    };
    let (one, other) = (open("a").await, open("b").await);
    let set_forward = "CREATE FUNCTION behind() RETURNS trigger LANGUAGE plpgsql AS
            $$ BEGIN NEW.beat := NEW.beat - interval '1 hour'; RETURN NEW; END $$;
        CREATE TRIGGER behind BEFORE UPDATE OF beat ON nodes FOR EACH ROW EXECUTE FUNCTION behind()";
    execute_aside(&url, set_forward).await;
    // Whoever has beaten for a whole grace time looks for dead nodes, at each second beat or more often. The lease that is awaited
    // is that of a beat later than that.
    let much_later = Instant::now() + 2 * grace + 2 * beat;
    for store in [&one, &other] {
        timeout(LIMIT, store.lease().wait_for(|lease| lease.until > much_later)).await.expect("it beats").unwrap();
    }
    assert_eq!(execute_aside(&url, "SELECT count(*) FROM nodes WHERE ended IS NULL").await, "2");
    // One that really stops is found.
    other.stop_beating();
    until_row(&url, "SELECT string_agg(name, '') FROM nodes WHERE is_dead", "b").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_change_through_a_pooler_waits_for_the_disk() {
    let Some(url) = new_database() else { return };
    let Some(pooler) = PgBouncer::start(Postgres::shared().expect("whoever has a database has a server")) else {
        return;
    };
    commit_without_the_disk(&url);
    let store = node(&pooler.url_of(database_of(&url)), "a", 1).await;
    note_unsafe_commits(&url);
    change_everything(&store, "t1").await;
    assert_eq!(unsafe_commits(&url), "");
}

/// Whoever needs a commit that waits for the disk has to ask for it.
pub fn commit_without_the_disk(url: &str) {
    execute(url, &format!("ALTER DATABASE \"{}\" SET synchronous_commit = off", database_of(url)));
}

/// Notes from now on which changes did not ask for one.
pub fn note_unsafe_commits(url: &str) {
    execute(
        url,
        "CREATE TABLE unsafe (what text);
        CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            IF current_setting('synchronous_commit') <> 'on' THEN INSERT INTO unsafe VALUES (TG_TABLE_NAME || ' ' || TG_OP); END IF;
            RETURN NULL; END $$",
    );
    for table in ["tasks", "webhooks", "audit", "forwarded"] {
        execute(
            url,
            &format!("CREATE TRIGGER note AFTER INSERT OR UPDATE OR DELETE ON {table} EXECUTE FUNCTION note()"),
        );
    }
}

pub fn unsafe_commits(url: &str) -> String {
    execute(url, "SELECT DISTINCT what FROM unsafe ORDER BY 1")
}

/// Changes each table that appends, callers and nodes change, with a new task.
pub async fn change_everything(store: &PostgresStore, id: &str) {
    let no = create_in(store, ["ann", "echo", id, "c"], State::Completed, 1).await;
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
}
