//! Sweeps: which tasks go, and that nothing of them stays.

use futures_util::future::join_all;
use sabir_model::State;
use sabir_store::{Query, Retention, SideRow, Store, SweepResult, TaskNo};

use super::fixture::*;

/// Two unfinished tasks, the oldest of all, and five settled ones at 10, 20, ... of two owners.
async fn seven(store: &dyn Store) {
    create_in(store, ["ann", "echo", "u1", "c1"], State::Working, 1).await;
    create_in(store, ["ann", "echo", "u2", "c1"], State::InputRequired, 2).await;
    for (of, id, state, moment) in [
        ("ann", "s5", State::Completed, 50),
        ("ann", "s1", State::Failed, 10),
        ("bob", "s4", State::Rejected, 40),
        ("ann", "s2", State::Completed, 20),
        ("bob", "s3", State::Canceled, 30),
    ] {
        create_in(store, [of, "echo", id, "c1"], state, moment).await;
    }
}

async fn left(store: &dyn Store) -> String {
    let (ann, bob) = (list(store, all_of("ann")).await, list(store, all_of("bob")).await);
    assert_eq!((ann.total, bob.total), (ann.tasks.len() as u64, bob.tasks.len() as u64));
    let mut tasks = [ann.tasks, bob.tasks].concat();
    tasks.sort_by(|a, b| a.id.cmp(&b.id));
    ids(&tasks)
}

fn before(moment: i64) -> Retention {
    Retention { settled_before: Some(at(moment)), keep: None, pending_after: None }
}

fn newest(keep: u64) -> Retention {
    Retention { settled_before: None, keep: Some(keep), pending_after: None }
}

async fn sweep(store: &dyn Store, retention: Retention, expected: &str) {
    let settled = left(store).await.split(' ').count();
    let gone = sweep_all(store, retention).await;
    assert_eq!(left(store).await, expected, "{retention:?}");
    assert_eq!(gone as usize, settled - expected.split(' ').count(), "{retention:?}");
}

pub async fn old_settled_tasks_go(store: &dyn Store) {
    seven(store).await;
    sweep(store, before(10), "s1 s2 s3 s4 s5 u1 u2").await;
    sweep(store, before(11), "s2 s3 s4 s5 u1 u2").await;
    sweep(store, before(40), "s4 s5 u1 u2").await;
    sweep(store, before(999), "u1 u2").await;
    sweep(store, before(999), "u1 u2").await;
}

pub async fn the_newest_settled_tasks_stay(store: &dyn Store) {
    seven(store).await;
    sweep(store, newest(5), "s1 s2 s3 s4 s5 u1 u2").await;
    sweep(store, newest(3), "s3 s4 s5 u1 u2").await;
    // One that was made first and settles now is the newest.
    let long = find(store, "ann", None, "u1").await.unwrap();
    push(store, long.no, long.seq, &[status(State::Completed, 60)]).await.unwrap();
    sweep(store, newest(2), "s5 u1 u2").await;
    sweep(store, newest(0), "u2").await;
}

pub async fn either_rule_lets_a_task_go(store: &dyn Store) {
    seven(store).await;
    sweep(store, Retention { settled_before: Some(at(15)), keep: Some(3), pending_after: None }, "s3 s4 s5 u1 u2")
        .await;
    sweep(store, Retention { settled_before: Some(at(45)), keep: Some(3), pending_after: None }, "s5 u1 u2").await;
}

pub async fn nothing_goes_without_a_rule(store: &dyn Store) {
    seven(store).await;
    sweep(store, Retention::default(), "s1 s2 s3 s4 s5 u1 u2").await;
}

pub async fn a_task_that_is_gone_leaves_nothing(store: &dyn Store) {
    let name = ["ann", "echo", "t1", "c1"];
    let many: Vec<_> = (0..20).map(|number| chunk(&number.to_string())).collect();
    let no = start(store, name, Some("k"), 0, &many).await.unwrap().task;
    let side_rows = [
        SideRow::InboxAdd(message("unread").into()),
        SideRow::AgentState(Some("session".into())),
        SideRow::TaskState(Some("run".into())),
        SideRow::CancelRequested,
        SideRow::Attempts(2),
    ];
    let mut snapshot = load(store, no).await;
    let end = status(State::Completed, 10);
    sabir_model::apply(&mut snapshot, &end);
    push_with(store, no, 21, &[end], Some(&snapshot), &side_rows).await.unwrap();
    let neighbour = create(store, ["ann", "echo", "t2", "c2"], 0).await;

    assert_eq!(sweep_all(store, before(99)).await, 1);
    assert_eq!(find(store, "ann", None, "t1").await, None);
    assert_eq!(store.load(no).await.unwrap(), None);
    assert_eq!(store.events(no, 0, 100).await.unwrap(), []);
    assert_eq!(store.inbox(no).await.unwrap(), []);
    let (ann, echo, c1) = (owner("ann"), agent("echo"), context("c1"));
    assert_eq!(store.find_by_key(&ann, &echo, &key("k")).await.unwrap(), None);
    assert_eq!(store.agent_state(&ann, &echo, &c1).await.unwrap(), None);
    assert_eq!(store.task_state(no).await.unwrap(), None);
    assert_eq!(store.conversation(&ann, &echo, &c1, 9, usize::MAX).await.unwrap(), []);
    assert_eq!(list(store, Query { state: Some(State::Completed), ..all_of("ann") }).await.total, 0);
    assert_eq!(say(push(store, no, 22, &[chunk("late")]).await), "conflict");
    assert_eq!(events(store, neighbour).await.len(), 1);

    // Its id and its key are free again, and nothing of the old one shows through.
    let again = start(store, name, Some("k"), 20, &[]).await.unwrap().task;
    assert_eq!(events(store, again).await, [created(20)]);
    assert_eq!(load(store, again).await.seq, 1);
}

pub async fn a_sweep_is_bounded(store: &dyn Store) {
    let count = 1_000;
    let starts = (0..count).map(|number| {
        let id = format!("t{number}");
        start(store, ["ann", "echo", &id, "c1"], None, 0, &[status(State::Completed, number)])
    });
    for started in join_all(starts).await {
        started.unwrap();
    }
    let mut swept = store.sweep(before(count + 1)).await.unwrap();
    assert!(swept.tasks > 0 && swept.tasks < count as u64 && swept.more, "{swept:?} at once");
    let mut gone = swept.tasks;
    while swept.more {
        swept = store.sweep(before(count + 1)).await.unwrap();
        gone += swept.tasks;
    }
    assert_eq!(gone, count as u64);
    assert_eq!(store.sweep(before(count + 1)).await.unwrap(), SweepResult::default());
    assert_eq!(list(store, all_of("ann")).await.total, 0);
}

pub async fn the_highest_number_is_known_when_its_task_is_gone(store: &dyn Store) {
    assert_eq!(store.highest_no(), TaskNo(0));
    create_in(store, ["ann", "echo", "u1", "c1"], State::Working, 1).await;
    let no = create_in(store, ["ann", "echo", "s1", "c1"], State::Completed, 2).await;
    sweep(store, newest(0), "u1").await;
    assert_eq!(store.load(no).await.unwrap(), None);
    assert_eq!(store.highest_no(), no);
}
