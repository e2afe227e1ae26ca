//! Several Postgres stores on one database: owners, takeovers, forwarded calls, hints, and lost connections.

use std::sync::Arc;
use std::time::Duration;

use sabir_model::{Birth, Event, State};
use sabir_store::{
    AfterAppend, Append, AppendResult, AppendTarget, Claim, ClaimingAgent, Cluster, ContextUse, Epoch, ForwardNo,
    ForwardState, ForwardedCall, GivenBack, Hints, MemberState, NewTask, OpenError, Ownership, PostgresExamination,
    PostgresExport, PostgresSettings, PostgresStore, Retention, SideRow, Store, StoreError, TaskNo, TaskOwner,
};
use sabir_testkit::store_contract::fixture::*;
use tokio::time::{Instant, sleep, timeout};

use crate::postgres_server::{
    LIMIT, LOCK_WAITERS, connect, database_of, execute, has_logged, new_database, until, until_row,
};

const BEAT: Duration = Duration::from_millis(500);
/// With a shorter one, a busy machine would take live nodes for dead.
const GRACE: Duration = Duration::from_secs(6);

async fn node(url: &str, name: &str) -> PostgresStore {
    let settings = PostgresSettings::new(url, name, "0.0.0");
    let settings = PostgresSettings { beat: BEAT, grace: GRACE, home_timeout: GRACE, writers: 2, ..settings };
    PostgresStore::open(settings).await.expect("the database can be opened")
}

/// Two nodes that have heard of each other, so neither keeps its hints to itself.
async fn acquainted_nodes(url: &str) -> (PostgresStore, PostgresStore) {
    let (a, b) = (node(url, "a").await, node(url, "b").await);
    let mut lease = a.lease();
    // The first of these beats may have been sent before the other node was there.
    for _ in 0..2 {
        timeout(LIMIT, lease.changed()).await.expect("a beat").unwrap();
    }
    (a, b)
}

pub async fn begin(
    store: &dyn Store,
    [of, by, id, place]: Name<'_>,
    ownership: Ownership,
    events: &[Event],
) -> Result<AppendResult, StoreError> {
    let (of, by, id, place) = (owner(of), agent(by), task(id), context(place));
    let new = NewTask {
        owner: &of,
        agent: &by,
        task: &id,
        context: &place,
        born: Birth(3),
        key: None,
        send_digest: Some([7; 16]).filter(|_| id.as_str().starts_with("digest")),
    };
    let creation = created(1);
    let events: Vec<&Event> = std::iter::once(&creation).chain(events).collect();
    let target = AppendTarget::New(new);
    store.append(Append { target, events: &events, after: 0, snapshot: None, side_rows: &[], ownership }).await
}

async fn add(
    store: &dyn Store,
    no: TaskNo,
    after: u64,
    events: &[Event],
    side_rows: &[SideRow],
    ownership: Ownership,
) -> Result<AppendResult, StoreError> {
    let events: Vec<&Event> = events.iter().collect();
    store
        .append(Append {
            target: AppendTarget::Known(no),
            events: &events,
            after,
            snapshot: None,
            side_rows,
            ownership,
        })
        .await
}

/// A node that has this agent, without a limit over all nodes.
pub fn claiming(id: &str) -> Vec<ClaimingAgent> {
    vec![ClaimingAgent { id: agent(id), most_runs: None, free_slots: 1 }]
}

/// Forwards a call, as a sender does that begins to wait.
async fn forward(store: &PostgresStore, task: TaskNo, call: &[u8]) -> ForwardNo {
    let number = store.next_forward();
    let call = ForwardedCall { number, task, call: call.to_vec() };
    store.forward(call, in_seconds(60)).await.unwrap();
    number
}

fn in_seconds(seconds: u64) -> Instant {
    Instant::now() + Duration::from_secs(seconds)
}

fn hold(epoch: Epoch) -> Ownership {
    Ownership { claim: Claim::Hold(epoch), ..Ownership::default() }
}

pub fn run() -> Ownership {
    Ownership { context: ContextUse::Begin { most_runs: None }, ..Ownership::default() }
}

fn then(then: AfterAppend) -> Ownership {
    Ownership { then, ..Ownership::default() }
}

fn shown(result: Result<AppendResult, StoreError>) -> String {
    match result {
        Ok(AppendResult { last, epoch, .. }) => format!("{last} in epoch {}", epoch.0),
        Err(error) => error.to_string(),
    }
}

async fn next_hints(store: &PostgresStore) -> Hints {
    timeout(LIMIT, store.hints()).await.expect("a hint").unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn two_servers_start_at_once_on_an_empty_database() {
    let Some(url) = new_database() else { return };
    let (a, b) = tokio::join!(node(&url, "a"), node(&url, "b"));
    let no = create(&a, ["ann", "echo", "t1", "c1"], 1).await;
    assert_eq!(find(&b, "ann", None, "t1").await.map(|row| row.no), Some(no));
    let members = until(async || Some(a.members().await.unwrap()).filter(|members| members.len() == 2)).await;
    let shown: Vec<_> = members.iter().map(|member| (&*member.name, member.state, member.is_this)).collect();
    assert_eq!(shown, [("a", MemberState::Alive, true), ("b", MemberState::Alive, false)]);
    assert!(members.iter().all(|member| member.receives_hints));
    a.check().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn why_a_database_cannot_be_opened() {
    let Some(url) = new_database() else { return };
    let open = async |url: &str| {
        let opened = PostgresStore::open(PostgresSettings::new(url, "a", "0")).await;
        opened.err().map(|error| error.to_string()).unwrap_or_default()
    };
    assert!(open("host=/nowhere user=u password=geheim dbname=d").await.starts_with("Postgres at /nowhere/d cannot"));
    assert!(open(&format!("{url}x?password=geheim")).await.contains("has no such database"));
    drop(node(&url, "a").await);
    execute(&url, "UPDATE sabir_format SET format = 99, readable_by = 1");
    assert_eq!(open(&url).await, "");
    execute(&url, "UPDATE sabir_format SET format = 99, readable_by = 99");
    assert!(open(&url).await.contains("was written by a newer Sabir (format 99, this one knows 1)"));
    execute(&url, &format!("ALTER DATABASE {} SET default_transaction_isolation = serializable", database_of(&url)));
    assert!(open(&url).await.contains("Sabir needs \"read committed\""));
    execute(&url, &format!("ALTER DATABASE {} RESET default_transaction_isolation", database_of(&url)));
    execute(&url, "DELETE FROM sabir_format");
    assert!(open(&url).await.contains("is not one of Sabir or is damaged"));
    execute(&url, "DROP TABLE sabir_format");
    let opened = PostgresStore::open(PostgresSettings::new(&*url, "a", "0")).await;
    assert!(matches!(opened, Err(OpenError::ForeignDatabase { .. })));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_append_needs_the_owner_and_its_epoch() {
    let Some(url) = new_database() else { return };
    let (a, b) = (node(&url, "a").await, node(&url, "b").await);
    let first = begin(&a, ["ann", "echo", "t1", "c1"], run(), &[]).await.unwrap();
    let no = first.task;
    let working = [status(State::Working, 2)];
    let append =
        async |store: &PostgresStore, after, ownership| shown(add(store, no, after, &working, &[], ownership).await);
    assert_eq!(append(&b, 1, Ownership::default()).await, "node a has the task");
    assert_eq!(append(&b, 1, hold(first.epoch)).await, "the task has changed meanwhile");
    assert_eq!(append(&a, 1, hold(Epoch(9))).await, "the task has changed meanwhile");
    assert_eq!(append(&a, 0, hold(first.epoch)).await, "the task has changed meanwhile");
    assert_eq!(append(&a, 1, hold(first.epoch)).await, "2 in epoch 1");
    let rest = Ownership { then: AfterAppend::Rest, ..hold(first.epoch) };
    assert_eq!(append(&a, 2, rest).await, "3 in epoch 1");
    assert_eq!(append(&a, 3, hold(first.epoch)).await, "the task has changed meanwhile");
    assert_eq!(append(&b, 3, Ownership::default()).await, "4 in epoch 2");
    let progress = a.progress(vec![no, TaskNo(999)]).await.unwrap();
    assert_eq!(
        progress.iter().map(|task| (task.seq, task.owner.clone())).collect::<Vec<_>>(),
        [(4, TaskOwner::Other("b".into()))]
    );
    assert_eq!(b.progress(vec![no]).await.unwrap()[0].owner, TaskOwner::ThisNode);
    assert_eq!(shown(add(&a, TaskNo(u64::MAX), 1, &[], &[], at_rest()).await), "the task has changed meanwhile");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_context_has_one_run_and_an_agent_as_many_as_it_may() {
    let Some(url) = new_database() else { return };
    let (a, b) = acquainted_nodes(&url).await;
    let first = begin(&a, ["ann", "echo", "t1", "c1"], run(), &[status(State::Working, 2)]).await.unwrap();
    let busy = begin(&b, ["ann", "echo", "t2", "c1"], run(), &[]).await;
    assert!(matches!(busy, Err(StoreError::ContextBusy(Some(id))) if id.as_str() == "t1"));
    let most = |most| Ownership { context: ContextUse::Begin { most_runs: Some(most) }, ..Ownership::default() };
    let full = begin(&b, ["bob", "echo", "t3", "c3"], most(1), &[]).await;
    assert!(matches!(full, Err(StoreError::ContextBusy(None))));
    assert_eq!(shown(begin(&b, ["bob", "echo", "t3", "c3"], most(2), &[]).await), "1 in epoch 1");

    // The next task of the context is left, and can be claimed when the first one is at rest.
    let left = begin(&b, ["ann", "echo", "t4", "c1"], then(AfterAppend::Leave { home: None }), &[]).await.unwrap();
    assert_eq!(a.claim(claiming("echo"), 9).await.unwrap(), []);
    assert_eq!(shown(add(&a, first.task, 2, &[chunk("x")], &[], hold(first.epoch)).await), "3 in epoch 1");
    let rest = Ownership { then: AfterAppend::Rest, ..hold(first.epoch) };
    add(&a, first.task, 3, &[status(State::Completed, 3)], &[], rest).await.unwrap();
    assert!(until(async || Some(next_hints(&b).await.left).filter(|left| *left)).await);
    let claimed = b.claim(claiming("echo"), 9).await.unwrap();
    assert_eq!(claimed.len(), 1);
    assert_eq!((claimed[0].unfinished.row.no, claimed[0].epoch, &claimed[0].lost_node), (left.task, Epoch(2), &None));
    let begins = Ownership { context: ContextUse::Begin { most_runs: None }, ..hold(Epoch(2)) };
    assert_eq!(shown(add(&b, left.task, 1, &[status(State::Working, 4)], &[], begins).await), "2 in epoch 2");
}

#[tokio::test(flavor = "multi_thread")]
async fn no_more_is_claimed_than_may_begin() {
    let Some(url) = new_database() else { return };
    let (a, b) = acquainted_nodes(&url).await;
    let most = |most| ContextUse::Begin { most_runs: Some(most) };
    let running = Ownership { context: most(3), ..Ownership::default() };
    let first = begin(&a, ["ann", "echo", "t1", "c1"], running, &[]).await.unwrap();
    for number in 0..9 {
        let (id, by) = (format!("left {number}"), if number % 3 == 2 { "free" } else { "echo" });
        begin(&a, ["ann", by, &id, &id], then(AfterAppend::Leave { home: None }), &[]).await.unwrap();
    }
    let claim = async |store: &PostgresStore, most_runs, free_slots, limit| {
        let echo = ClaimingAgent { id: agent("echo"), most_runs: Some(most_runs), free_slots };
        let free = ClaimingAgent { id: agent("free"), most_runs: None, free_slots: 0 };
        let claimed = store.claim(vec![echo, free], limit).await.unwrap();
        claimed.into_iter().map(|task| (task.unfinished.row.task.to_string(), task)).collect::<Vec<_>>()
    };
    let names = |claimed: &[(String, _)]| claimed.iter().map(|(id, _)| id.clone()).collect::<Vec<_>>().join(", ");
    assert_eq!(names(&claim(&a, 1, 4, 3).await), "left 2, left 5, left 8", "the other agent has no limit");
    assert_eq!(names(&claim(&a, 3, 0, 9).await), "", "it has no slot on this node");
    let second = claim(&b, 3, 1, 9).await;
    assert_eq!(names(&second), "left 0");
    assert_eq!(names(&claim(&a, 3, 4, 9).await), "left 1", "what others have claimed counts");
    assert_eq!(names(&claim(&a, 3, 4, 9).await), "");
    // A task that waits for an answer does not run, and one that is given back does not either.
    add(&a, first.task, 1, &[status(State::InputRequired, 2)], &[], hold(first.epoch)).await.unwrap();
    let back = GivenBack {
        task: second[0].1.unfinished.row.no,
        epoch: second[0].1.epoch,
        then: AfterAppend::Leave { home: None },
    };
    b.give_back(vec![back]).await.unwrap();
    assert!(until(async || Some(next_hints(&a).await.left).filter(|left| *left)).await);
    assert_eq!(names(&claim(&a, 3, 4, 9).await), "left 0, left 3");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_send_is_in_flight_once() {
    let Some(url) = new_database() else { return };
    let (a, b) = (node(&url, "a").await, node(&url, "b").await);
    let first = begin(&a, ["ann", "echo", "digest 1", "c1"], Ownership::default(), &[]).await.unwrap();
    let again = begin(&b, ["ann", "echo", "digest 2", "c2"], Ownership::default(), &[]).await;
    assert!(matches!(again, Err(StoreError::Exists(id)) if id.as_str() == "digest 1"));
    let back = GivenBack { task: first.task, epoch: first.epoch, then: AfterAppend::Rest };
    a.give_back(vec![back]).await.unwrap();
    assert_eq!(shown(begin(&b, ["ann", "echo", "digest 2", "c2"], Ownership::default(), &[]).await), "1 in epoch 1");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_tasks_of_a_dead_node_are_taken_over() {
    let Some(url) = new_database() else { return };
    let (a, b) = (node(&url, "a").await, node(&url, "b").await);
    let (before, mut lease) = (*a.lease().borrow(), a.lease());
    let mine = begin(&a, ["ann", "echo", "t1", "c1"], run(), &[]).await.unwrap();
    let rows =
        [SideRow::InboxAdd(Arc::new(message("hello"))), SideRow::CancelRequested, SideRow::SendInFlight([9; 16])];
    add(&a, mine.task, 1, &[status(State::Working, 2)], &rows, hold(mine.epoch)).await.unwrap();
    let settled = begin(&a, ["ann", "echo", "t2", "c2"], run(), &[status(State::Completed, 2)]).await.unwrap();
    // The lease is renewed for longer than the grace time, and so nobody takes anything.
    let much_later = before.until + GRACE + 2 * BEAT;
    timeout(LIMIT, lease.wait_for(|lease| lease.until > much_later)).await.unwrap().unwrap();
    assert_eq!(b.claim(Vec::new(), 9).await.unwrap(), []);

    a.stop_beating();
    let claimed = until(async || Some(b.claim(Vec::new(), 9).await.unwrap()).filter(|tasks| !tasks.is_empty())).await;
    assert!(Instant::now() > a.lease().borrow().until, "the lease was over before");
    assert_eq!(claimed.len(), 1);
    let taken = &claimed[0];
    assert_eq!((taken.unfinished.row.no, taken.epoch, taken.lost_node.as_deref()), (mine.task, Epoch(2), Some("a")));
    assert_eq!((taken.unfinished.inbox.len(), taken.unfinished.cancel_requested), (1, true));
    assert_eq!(taken.sends, [[9; 16]]);
    assert_eq!(b.progress(vec![settled.task]).await.unwrap()[0].owner, TaskOwner::Nobody);

    // The zombie cannot write.
    let late = add(&a, mine.task, 2, &[chunk("late")], &[], hold(mine.epoch)).await;
    assert!(matches!(late, Err(StoreError::Conflict)));
    assert_eq!(shown(add(&b, mine.task, 2, &[chunk("mine")], &[], hold(Epoch(2))).await), "3 in epoch 2");
    let members = b.members().await.unwrap();
    assert_eq!(members.iter().map(|member| member.state).collect::<Vec<_>>(), [MemberState::Dead, MemberState::Alive]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_claimed_and_could_not_be_read_is_returned_later() {
    let Some(url) = new_database() else { return };
    let (a, b) = (node(&url, "a").await, node(&url, "b").await);
    let mine = begin(&a, ["ann", "echo", "t1", "c1"], run(), &[]).await.unwrap();
    a.leave().await.unwrap();
    execute(&url, "ALTER TABLE inbox RENAME TO away");
    assert!(b.claim(claiming("echo"), 9).await.is_err());
    assert_eq!(b.owned().await.unwrap(), [(mine.task, Epoch(2))]);
    execute(&url, "ALTER TABLE away RENAME TO inbox");
    let claimed = b.claim(claiming("echo"), 9).await.unwrap();
    let shown: Vec<_> =
        claimed.iter().map(|task| (task.unfinished.row.no, task.epoch, task.lost_node.as_deref())).collect();
    assert_eq!(shown, [(mine.task, Epoch(2), Some("a"))]);
    assert_eq!(b.claim(claiming("echo"), 9).await.unwrap(), []);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_was_declared_dead_begins_again() {
    let Some(url) = new_database() else { return };
    let a = node(&url, "a").await;
    let mine = begin(&a, ["ann", "echo", "t1", "c1"], run(), &[]).await.unwrap();
    let mut lease = a.lease();
    assert_eq!(lease.borrow().incarnation, 1);
    execute(&url, "UPDATE nodes SET ended = now(), is_dead = true");
    timeout(LIMIT, lease.wait_for(|lease| lease.incarnation == 2)).await.unwrap().unwrap();
    let late = add(&a, mine.task, 1, &[chunk("late")], &[], hold(mine.epoch)).await;
    assert!(matches!(late, Err(StoreError::Conflict)));
    let claimed = a.claim(Vec::new(), 9).await.unwrap();
    assert_eq!((claimed.len(), claimed[0].epoch, claimed[0].lost_node.as_deref()), (1, Epoch(2), Some("a")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_leaves_costs_no_grace_time() {
    let Some(url) = new_database() else { return };
    let (a, b) = acquainted_nodes(&url).await;
    let mine = begin(&a, ["ann", "echo", "t1", "c1"], run(), &[]).await.unwrap();
    a.leave().await.unwrap();
    a.close().await;
    assert!(matches!(begin(&a, ["ann", "echo", "t2", "c2"], run(), &[]).await, Err(StoreError::Closed)));
    assert!(until(async || Some(next_hints(&b).await.left).filter(|left| *left)).await);
    let claimed = b.claim(Vec::new(), 9).await.unwrap();
    assert_eq!((claimed.len(), claimed[0].unfinished.row.no), (1, mine.task));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_left_task_waits_for_its_home() {
    let Some(url) = new_database() else { return };
    let (a, b) = (node(&url, "a").await, node(&url, "b").await);
    let (ann, echo, place) = (owner("ann"), agent("echo"), context("c1"));
    assert_eq!(a.claim(claiming("echo"), 9).await.unwrap(), []);
    begin_session(&a).await;
    assert_eq!(a.home(&ann, &echo, &place).await.unwrap(), None);
    let home = b.home(&ann, &echo, &place).await.unwrap().expect("a home");
    assert_eq!((&*home.node, home.is_gone), ("a", false));

    let leave = then(AfterAppend::Leave { home: Some("a".into()) });
    let left = begin(&b, ["ann", "echo", "t2", "c1"], leave, &[]).await.unwrap();
    assert_eq!(b.claim(claiming("echo"), 9).await.unwrap(), []);
    a.stop_beating();
    let claimed =
        until(async || Some(b.claim(claiming("echo"), 9).await.unwrap()).filter(|tasks| !tasks.is_empty())).await;
    assert_eq!((claimed[0].unfinished.row.no, claimed[0].lost_home.as_deref()), (left.task, Some("a")));
    assert!(b.home(&ann, &echo, &place).await.unwrap().expect("a home").is_gone);
}

/// A task of ann has run on this node, and its context has a session there.
async fn begin_session(node: &PostgresStore) {
    let first = begin(node, ["ann", "echo", "t1", "c1"], run(), &[]).await.unwrap();
    let rest = Ownership { then: AfterAppend::Rest, ..hold(first.epoch) };
    let state = [SideRow::AgentState(Some("session".into()))];
    add(node, first.task, 1, &[status(State::Completed, 2)], &state, rest).await.unwrap();
}

/// A server that was started again with another configuration.
#[tokio::test(flavor = "multi_thread")]
async fn a_left_task_waits_no_longer_for_a_home_that_has_lost_its_agent() {
    let Some(url) = new_database() else { return };
    let (a, b) = (node(&url, "a").await, node(&url, "b").await);
    let (ann, echo, place) = (owner("ann"), agent("echo"), context("c1"));
    begin_session(&a).await;
    a.claim(claiming("other"), 9).await.unwrap();
    let leave = then(AfterAppend::Leave { home: Some("a".into()) });
    let left = begin(&b, ["ann", "echo", "t2", "c1"], leave, &[]).await.unwrap();
    let claimed =
        until(async || Some(b.claim(claiming("echo"), 9).await.unwrap()).filter(|tasks| !tasks.is_empty())).await;
    assert_eq!((claimed[0].unfinished.row.no, claimed[0].lost_home.as_deref()), (left.task, Some("a")));
    assert!(b.home(&ann, &echo, &place).await.unwrap().expect("a home").is_gone);
    // It lives all the same.
    let members = b.members().await.unwrap();
    assert!(members.iter().all(|member| member.state == MemberState::Alive), "{members:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_is_left_to_nodes_with_its_agent_until_none_has_had_it_for_long() {
    let Some(url) = new_database() else { return };
    let (a, b) = (node(&url, "a").await, node(&url, "b").await);
    assert_eq!(a.claim(claiming("echo"), 9).await.unwrap(), []);
    // It was born at the time 1, so its last status is old, but it was left just now.
    let leave = || then(AfterAppend::Leave { home: None });
    let queued = begin(&a, ["ann", "echo", "t1", "c1"], leave(), &[]).await.unwrap();
    let other = begin(&a, ["ann", "other", "t2", "c2"], leave(), &[]).await.unwrap();
    let claim_of_b = async || {
        let claimed = b.claim(claiming("demo"), 9).await.unwrap();
        claimed.iter().map(|task| task.unfinished.row.no).collect::<Vec<_>>()
    };
    assert_eq!(claim_of_b().await, []);
    // Nobody ever had the other agent; this one is on a node that lives.
    execute(&url, "UPDATE tasks SET left_at = now() - interval '11 minutes'");
    assert_eq!(claim_of_b().await, [other.task]);
    // Another message for a task that was left changes nothing of that.
    let rows = [SideRow::InboxAdd(Arc::new(message("more")))];
    add(&b, queued.task, 1, &[], &rows, leave()).await.unwrap();
    a.leave().await.unwrap();
    assert_eq!(claim_of_b().await, [], "its agent was there a moment ago");
    execute(&url, "UPDATE nodes SET beat = now() - interval '11 minutes' WHERE name = 'a'");
    assert_eq!(claim_of_b().await, [queued.task]);
    // Given back, it has ten minutes again.
    b.give_back(vec![GivenBack { task: queued.task, epoch: Epoch(3), then: AfterAppend::Leave { home: None } }])
        .await
        .unwrap();
    assert_eq!(
        execute(&url, "SELECT is_left AND left_at > now() - interval '1 minute' FROM tasks WHERE id = 't1'"),
        "t"
    );
    assert_eq!(claim_of_b().await, []);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_is_forwarded_to_the_owner() {
    let Some(url) = new_database() else { return };
    let (a, b) = acquainted_nodes(&url).await;
    let mine = begin(&a, ["ann", "echo", "t1", "c1"], run(), &[]).await.unwrap();
    let call = forward(&b, mine.task, b"cancel").await;
    assert!(until(async || Some(next_hints(&a).await.forwarded).filter(|forwarded| *forwarded)).await);
    assert_eq!(b.forwarded().await.unwrap(), []);
    let calls = a.forwarded().await.unwrap();
    assert_eq!((calls.len(), calls[0].number, calls[0].task, &*calls[0].call), (1, call, mine.task, &b"cancel"[..]));
    assert_eq!(b.forward_state(call, in_seconds(10)).await.unwrap(), ForwardState::Pending);

    let done = [SideRow::ForwardDone(call)];
    add(&a, mine.task, 1, &[], &done, hold(mine.epoch)).await.unwrap();
    assert!(until(async || Some(next_hints(&b).await.forwarded).filter(|forwarded| *forwarded)).await);
    assert_eq!(b.forward_state(call, in_seconds(10)).await.unwrap(), ForwardState::Done);

    let call = forward(&b, mine.task, b"again").await;
    a.answer_forwarded(call, b"no".to_vec()).await.unwrap();
    assert_eq!(a.forwarded().await.unwrap(), []);
    assert_eq!(b.forward_state(call, in_seconds(10)).await.unwrap(), ForwardState::Answered(b"no".to_vec()));

    let call = forward(&b, mine.task, b"late").await;
    let rest = Ownership { then: AfterAppend::Rest, ..hold(mine.epoch) };
    add(&a, mine.task, 1, &[status(State::Completed, 2)], &[], rest).await.unwrap();
    assert_eq!(b.forward_state(call, in_seconds(10)).await.unwrap(), ForwardState::Withdrawn);
    assert_eq!(execute(&url, "SELECT count(*) FROM forwarded"), "0");

    // A call that somebody waits for is not forgotten with its task: its sender would take it for done.
    let call = forward(&b, mine.task, b"too late").await;
    execute(&url, "UPDATE forwarded SET sent = now() - interval '1 hour'");
    a.sweep(Retention { keep: Some(0), ..Retention::default() }).await.unwrap();
    assert_eq!(execute(&url, "SELECT count(*) FROM tasks"), "0");
    a.claim(Vec::new(), 9).await.unwrap();
    assert_eq!(b.forward_state(call, in_seconds(10)).await.unwrap(), ForwardState::Withdrawn);
    forward(&b, mine.task, b"abandoned").await;
    execute(&url, "UPDATE forwarded SET expires = now() - interval '1 hour'");
    a.claim(Vec::new(), 9).await.unwrap();
    assert_eq!(execute(&url, "SELECT count(*) FROM forwarded"), "0");
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_does_what_a_call_asks_that_has_expired() {
    let Some(url) = new_database() else { return };
    let (a, b) = (node(&url, "a").await, node(&url, "b").await);
    let mine = begin(&a, ["ann", "echo", "t1", "c1"], run(), &[]).await.unwrap();
    // Such as one that the database has stored late.
    let late = ForwardedCall { number: b.next_forward(), task: mine.task, call: b"cancel".to_vec() };
    let now = Instant::now();
    b.forward(late.clone(), now - Duration::from_secs(1)).await.unwrap();
    assert_eq!(a.forwarded().await.unwrap(), []);
    let done = [SideRow::ForwardDone(late.number)];
    let refused = add(&a, mine.task, 1, &[chunk("x")], &done, hold(mine.epoch)).await;
    assert!(matches!(refused, Err(StoreError::Exists(_))), "{refused:?}");
    // Whoever waits extends it, but not by little.
    let by_little = now + Duration::from_secs(1);
    assert_eq!(b.forward_state(late.number, by_little).await.unwrap(), ForwardState::Pending);
    assert_eq!(a.forwarded().await.unwrap(), []);
    assert_eq!(b.forward_state(late.number, in_seconds(60)).await.unwrap(), ForwardState::Pending);
    assert_eq!(a.forwarded().await.unwrap(), [late]);
    add(&a, mine.task, 1, &[chunk("x")], &done, hold(mine.epoch)).await.unwrap();
    let expires = "SELECT round(extract(epoch FROM expires - sent)) FROM forwarded";
    forward(&b, mine.task, b"next").await;
    let lives: f64 = execute(&url, expires).parse().unwrap();
    assert!((30.0..=61.0).contains(&lives), "by the clock of the database: {lives}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_is_used_at_the_same_time_belongs_to_one_task() {
    let Some(url) = new_database() else { return };
    let store = node(&url, "a").await;
    create(&store, ["ann", "echo", "t1", "c1"], 1).await;
    let second = create(&store, ["ann", "echo", "t2", "c2"], 1).await;
    let other = connect(&url).await;
    let insert = "BEGIN; INSERT INTO keys SELECT party, 'k', no FROM tasks WHERE id = 't1'";
    other.batch_execute(insert).await.unwrap();
    let key = |name: &str| SideRow::Key(sent_key(name));
    let rows = [key("free"), key("k")];
    let commit = async {
        until_row(&url, LOCK_WAITERS, "1").await;
        other.batch_execute("COMMIT").await.unwrap();
    };
    let (refused, ()) = tokio::join!(add(&store, second, 1, &[], &rows, at_rest()), commit);
    assert!(matches!(refused, Err(StoreError::Exists(id)) if id.as_str() == "t1"));
    assert_eq!(execute(&url, "SELECT string_agg(key, ' ') FROM keys"), "k");
    add(&store, second, 1, &[], &[key("free")], at_rest()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_owner_may_have_any_length() {
    let Some(url) = new_database() else { return };
    let (a, b) = (node(&url, "a").await, node(&url, "b").await);
    // Not compressible, or it would fit into an index.
    let mut random = 1_u64;
    let long: String = std::iter::repeat_with(|| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        format!("{random:016x}")
    })
    .take(500)
    .collect();
    let (first, second) = (format!("{long}1"), format!("{long}2"));
    let (one, two) =
        tokio::join!(create(&a, [&first, "echo", "t1", "c1"], 1), begin(&b, [&first, "echo", "t2", "c2"], run(), &[]),);
    let two = two.unwrap().task;
    let other = create(&a, [&second, "echo", "t1", "c1"], 1).await;
    assert_eq!(find(&b, &first, None, "t1").await.map(|row| row.no), Some(one));
    assert_eq!(find(&a, &first, Some("echo"), "t2").await.map(|row| row.no), Some(two));
    assert_eq!(find(&b, &second, None, "t1").await.map(|row| row.no), Some(other));
    assert_eq!(list(&b, all_of(&first)).await.total, 2);
    assert_eq!(execute(&url, "SELECT count(*) FROM parties"), "2");
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_of_several_agents_are_counted_at_once() {
    let Some(url) = new_database() else { return };
    let most = Ownership { context: ContextUse::Begin { most_runs: Some(1000) }, ..Ownership::default() };
    let mut runs = tokio::task::JoinSet::new();
    for (name, agents) in [("a", ["one", "two"]), ("b", ["two", "one"])] {
        let store = Arc::new(node(&url, name).await);
        for number in 0..200 {
            let (store, id, most) = (store.clone(), format!("{name}{number}"), most.clone());
            runs.spawn(async move { begin(&*store, ["ann", agents[number % 2], &id, &id], most, &[]).await.map(drop) });
        }
    }
    for done in runs.join_all().await {
        done.unwrap();
    }
    // A deadlock is written before its transaction fails.
    execute(&url, "DO $$ BEGIN RAISE LOG 'all runs are stored'; END $$");
    assert!(has_logged(&url, "LOG:  all runs are stored"));
    assert!(!has_logged(&url, "ERROR:  deadlock detected"));
}

#[tokio::test(flavor = "multi_thread")]
async fn hints_arrive_at_other_nodes() {
    let Some(url) = new_database() else { return };
    let (a, b) = acquainted_nodes(&url).await;
    assert_eq!(a.poll_interval(), Duration::from_secs(2));
    let mut told = Vec::new();
    for number in 0..50 {
        let id = format!("t{number}");
        told.push(create(&a, ["ann", "echo", &id, &id], 1).await);
    }
    let mut arrived = Vec::new();
    while arrived.len() < told.len() {
        arrived.extend(next_hints(&b).await.tasks);
    }
    arrived.sort();
    assert_eq!(arrived, told);

    // After a lost connection some hints may be missing.
    let listeners = "datname = current_database() AND query LIKE 'LISTEN%'";
    execute(&url, &format!("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {listeners}"));
    assert!(until(async || Some(next_hints(&b).await.all).filter(|all| *all)).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn lost_connections_lose_and_double_nothing() {
    let Some(url) = new_database() else { return };
    let a = Arc::new(node(&url, "a").await);
    let mut tasks = Vec::new();
    for number in 0..8 {
        let store = a.clone();
        tasks.push(tokio::spawn(async move {
            let id = format!("t{number}");
            let first = begin(&*store, ["ann", "echo", &id, &id], run(), &[]).await.unwrap();
            let mut after = 1;
            for step in 0..150 {
                // Some change the row, and some only the log.
                let event = if step % 7 == 3 { status(State::Working, step) } else { chunk(&format!("{step};")) };
                let rows = if step % 11 == 5 { vec![SideRow::InboxAdd(Arc::new(message("x")))] } else { vec![] };
                after = add(&*store, first.task, after, &[event], &rows, hold(first.epoch)).await.unwrap().last;
                let other = format!("{id}-{step}");
                create(&*store, ["ann", "echo", &other, &other], 1).await;
            }
            first.task
        }));
    }
    let killer = tokio::spawn({
        let url = url.clone();
        async move {
            loop {
                sleep(Duration::from_millis(60)).await;
                let sql = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                    WHERE datname = current_database() AND pid <> pg_backend_pid() AND query LIKE '%append_1%'";
                let url = url.clone();
                tokio::task::spawn_blocking(move || execute(&url, sql)).await.unwrap();
            }
        }
    });
    let mut numbers = Vec::new();
    for task in tasks {
        numbers.push(task.await.unwrap());
    }
    killer.abort();
    for no in numbers {
        let events = events(&*a, no).await;
        let steps = events.iter().skip(1).enumerate().map(|(step, event)| match event {
            Event::Artifact(artifact) => format!("{:?}", artifact.artifact.parts).contains(&format!("\"{step};\"")),
            _ => step % 7 == 3,
        });
        assert!(steps.into_iter().all(|is_right| is_right));
        assert_eq!(events.len(), 151);
        assert_eq!(a.inbox(no).await.unwrap().len(), 14);
    }
    assert_eq!(list(&*a, all_of("ann")).await.total, 8 * 151);
    assert_eq!(execute(&url, "SELECT sum(n) FROM tallies"), (8 * 151).to_string());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_newer_format_is_not_read() {
    let Some(url) = new_database() else { return };
    drop(node(&url, "a").await);
    let read = async || PostgresExport::open(&url).await.err().map(|error| error.to_string()).unwrap_or_default();
    execute(&url, "UPDATE sabir_format SET format = 99, readable_by = 1");
    assert_eq!(read().await, "");
    execute(&url, "UPDATE sabir_format SET format = 99, readable_by = 99");
    let refused = read().await;
    assert!(refused.contains("was written by a newer Sabir (format 99, this one knows 1)"), "{refused}");
    let opened = PostgresStore::open(PostgresSettings::new(&*url, "a", "0")).await;
    assert_eq!(opened.err().map(|error| error.to_string()), Some(refused));
}

#[tokio::test(flavor = "multi_thread")]
async fn rights_that_a_user_lacks_are_found_before_the_start() {
    let Some(url) = new_database() else { return };
    let user = format!("user_of_{}", database_of(&url));
    execute(&url, &format!("CREATE ROLE {user} LOGIN"));
    let theirs = url.replace("//postgres@", &format!("//{user}@"));
    let examine = async || PostgresExamination::of(&theirs).await.unwrap();
    let open = async || {
        let opened = PostgresStore::open(PostgresSettings::new(&*theirs, "b", "0")).await;
        opened.err().map(|error| error.to_string()).unwrap_or_default()
    };
    execute(&url, "REVOKE CREATE ON SCHEMA public FROM PUBLIC");
    let found = examine().await;
    assert_eq!(found.missing_rights, ["CREATE on schema public"]);
    let refused = open().await;
    assert!(refused.contains("(42501)") && refused.ends_with(found.remedy_for_rights()), "{refused}");

    drop(node(&url, "a").await);
    execute(&url, &format!("GRANT SELECT ON ALL TABLES IN SCHEMA public TO {user}"));
    let found = examine().await;
    let tables = execute(&url, "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'");
    // The sequence is one more, and nobody writes `sabir_format`.
    assert_eq!(found.missing_rights.len().to_string(), tables, "{:?}", found.missing_rights);
    for missing in ["INSERT, UPDATE, DELETE on nodes", "USAGE on task_numbers"] {
        assert!(found.missing_rights.iter().any(|right| right == missing), "{:?}", found.missing_rights);
    }
    let refused = open().await;
    assert!(refused.contains("permission denied for table"), "{refused}");
    assert!(refused.ends_with(found.remedy_for_rights()) && refused.contains("GRANT ALL ON ALL TABLES"), "{refused}");

    execute(&url, &format!("GRANT ALL ON ALL TABLES IN SCHEMA public TO {user}"));
    assert_eq!(examine().await.missing_rights, ["USAGE on task_numbers"]);
    execute(&url, &format!("GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO {user}"));
    assert_eq!(examine().await.missing_rights, [""; 0]);
    let theirs = node(&theirs, "b").await;
    create(&theirs, ["ann", "echo", "t1", "c1"], 1).await;
}
