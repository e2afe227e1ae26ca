//! Deliveries and sweeps of several nodes on one database.

use std::sync::Arc;
use std::time::SystemTime;

use sabir_model::{Birth, PushConfigId, State, Timestamp};
use sabir_store::{Cluster, DeliveryKind, Outbox, Retention, SideRow, Store, TaskNo, Webhook, WebhookEvents};
use sabir_testkit::store_contract::fixture::*;

use crate::postgres_cluster::claiming;
use crate::postgres_contract::open_postgres;
use crate::postgres_server::{LOCK_WAITERS, connect, execute, new_database, until};

fn webhook() -> Webhook {
    Webhook {
        id: PushConfigId::parse("w").unwrap(),
        url: "https://a/hook".to_owned(),
        receiver: "https://a".to_owned(),
        secrets: Vec::new(),
        dialect: Birth(1),
        events: WebhookEvents::Statuses,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delivery_belongs_to_one_node() {
    let Some(url) = new_database() else { return };
    let (one, other) = (open_postgres(&url), open_postgres(&url));
    let no = create_in(&one, ["ann", "echo", "t1", "c"], State::Completed, 1).await;
    one.set_webhook(no, webhook(), at(2)).await.unwrap();
    assert_eq!(other.receivers().await.unwrap(), []);
    assert_eq!(other.due("https://a", at(9), 9).await.unwrap(), []);
    let due = one.due("https://a", at(9), 9).await.unwrap().remove(0);
    assert!(!other.delivered(due.webhook, 2, at(3)).await.unwrap(), "it is not its own");
    // Operators see it at both, and a retry leaves it with its node.
    assert_eq!(other.deliveries(DeliveryKind::Pending, 0, 9).await.unwrap().len(), 1);
    assert!(other.retry(DeliveryKind::Pending, due.webhook.0, at(4)).await.unwrap());
    assert_eq!(other.receivers().await.unwrap(), []);
    assert_eq!(one.receivers().await.unwrap(), [("https://a".to_owned(), at(4))]);
    // When its node has ended, a retry brings it to the node that asks.
    execute(&url, "UPDATE nodes SET ended = now() WHERE no = (SELECT node FROM webhooks)");
    assert!(other.retry(DeliveryKind::Pending, due.webhook.0, at(5)).await.unwrap());
    assert_eq!(other.receivers().await.unwrap(), [("https://a".to_owned(), at(5))]);
    assert!(!other.delivered(due.webhook, 2, at(6)).await.unwrap(), "whoever stores the next event sends it");
    assert_eq!(other.receivers().await.unwrap(), []);
}

/// The clock of another node may be ahead of that of the node that sends.
#[tokio::test(flavor = "multi_thread")]
async fn a_delivery_does_not_wait_for_the_clock_of_another_node() {
    let Some(url) = new_database() else { return };
    let (one, other) = (open_postgres(&url), open_postgres(&url));
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_millis() as i64;
    let (ahead, soon) = (Timestamp::from_millis(now + 40_000), Timestamp::from_millis(now + 20_000));
    let no = create(&one, ["ann", "echo", "t1", "c"], 1).await;
    one.set_webhook(no, webhook(), at(2)).await.unwrap();
    push(&one, no, 1, &[status(State::Working, ahead.as_millis() - at(0).as_millis())]).await.unwrap();
    let due = one.due("https://a", soon, 9).await.unwrap();
    assert!(matches!(&due[..], [due] if due.due.as_millis() >= now), "{due:?}");
    // The same of a node that has ended, whose deliveries another one takes.
    execute(&url, &format!("UPDATE webhooks SET due = {}", ahead.as_millis()));
    one.leave().await.unwrap();
    other.claim(claiming("echo"), 9).await.unwrap();
    assert_eq!(other.due("https://a", soon, 9).await.unwrap().len(), 1);
    // A retry keeps its time.
    execute(&url, &format!("UPDATE webhooks SET due = {}, attempts = 1, node = NULL", ahead.as_millis()));
    other.claim(claiming("echo"), 9).await.unwrap();
    assert_eq!(other.due("https://a", soon, 9).await.unwrap(), []);
    assert_eq!(other.due("https://a", ahead, 9).await.unwrap().len(), 1);
}

/// An append that has not been committed yet finds the webhook due, so it changes nothing. The delivery must wait for it.
#[tokio::test(flavor = "multi_thread")]
async fn no_event_is_lost_between_an_append_and_a_delivery() {
    let Some(url) = new_database() else { return };
    let store = Arc::new(open_postgres(&url));
    let long = chunk(&"words ".repeat(1_000));
    let no = start(store.as_ref(), ["ann", "echo", "t1", "c"], None, 1, &[long]).await.unwrap().task;
    store.set_webhook(no, webhook(), at(2)).await.unwrap();
    push(store.as_ref(), no, 2, &[status(State::Working, 3)]).await.unwrap();
    let due = store.due("https://a", at(9), 9).await.unwrap().remove(0);

    let appending = connect(&url).await;
    let append =
        "BEGIN; SELECT FROM tasks FOR NO KEY UPDATE; INSERT INTO events SELECT no, 4, body FROM events WHERE seq = 3";
    appending.batch_execute(append).await.unwrap();
    let delivering = tokio::spawn({
        let store = store.clone();
        async move { store.delivered(due.webhook, 3, at(5)).await }
    });
    let waits = || delivering.is_finished() || execute(&url, LOCK_WAITERS) != "0";
    until(async || waits().then_some(())).await;
    appending.batch_execute("COMMIT").await.unwrap();
    assert!(delivering.await.unwrap().unwrap());
    let rest = store.due("https://a", at(9), 9).await.unwrap();
    assert_eq!(rest.iter().map(|due| (due.sent, due.due)).collect::<Vec<_>>(), [(3, at(5))]);
}

/// A task that has just been stored, and is not committed yet, is the reason to remember its context.
#[tokio::test(flavor = "multi_thread")]
async fn a_sweep_keeps_the_session_of_a_context_in_which_a_run_begins() {
    let Some(url) = new_database() else { return };
    let store = Arc::new(open_postgres(&url));
    let state = || [SideRow::AgentState(Some("session".to_owned()))];
    for [id, place] in [["t1", "c1"], ["t2", "c2"]] {
        let no = create_in(&*store, ["ann", "echo", id, place], State::Completed, 1).await;
        push_with(&*store, no, 2, &[], None, &state()).await.unwrap();
    }
    // What an append does that begins a run.
    let beginning = connect(&url).await;
    let columns =
        "party, context, born, state, time, turn_over, created, in_row, head, node, epoch, is_left, last_append";
    let begin = format!(
        "BEGIN; INSERT INTO tasks (no, id, {columns}) SELECT nextval('task_numbers'), 't3', {} FROM tasks WHERE id = 't1';
        INSERT INTO busy_contexts (party, context, no, has_begun) SELECT party, context, no, true FROM tasks WHERE id = 't3'",
        columns.replace("state", "1").replace("node", "999").replace("last_append", "1")
    );
    beginning.batch_execute(&begin).await.unwrap();
    let sweep = tokio::spawn({
        let store = store.clone();
        async move { sweep_all(&*store, Retention { keep: Some(0), ..Retention::default() }).await }
    });
    let waits = || sweep.is_finished() || execute(&url, LOCK_WAITERS) != "0";
    until(async || waits().then_some(())).await;
    beginning.batch_execute("COMMIT").await.unwrap();
    assert_eq!(sweep.await.unwrap(), 2);
    let remembered = async |place| store.agent_state(&owner("ann"), &agent("echo"), &context(place)).await.unwrap();
    assert_eq!(remembered("c1").await.as_deref(), Some("session"));
    assert_eq!(remembered("c2").await, None);
    assert_eq!(execute(&url, "SELECT string_agg(context, ' ') FROM busy_contexts"), "c1");
}

#[tokio::test(flavor = "multi_thread")]
async fn two_nodes_sweep_at_once() {
    let Some(url) = new_database() else { return };
    let (one, other) = (open_postgres(&url), open_postgres(&url));
    let mut last = TaskNo(0);
    for number in 0..600 {
        let name = ["ann", "echo", &format!("t{number}"), "c1"];
        last = start(&one, name, None, 0, &[status(State::Completed, number)]).await.unwrap().task;
    }
    let retention = Retention { settled_before: None, keep: Some(1), pending_after: None };
    let (ours, theirs) = tokio::join!(sweep_all(&one, retention), sweep_all(&other, retention));
    assert_eq!(ours + theirs, 599);
    let left = list(&other, all_of("ann")).await;
    assert_eq!((left.total, ids(&left.tasks).as_str()), (1, "t599"));
    assert!(other.load(last).await.unwrap().is_some());
}
