//! What is stored is there when the store is opened again.

use futures_util::future::join_all;
use sabir_model::{State, apply};
use sabir_store::{Query, Retention, SideRow};

use super::OpenStore;
use super::fixture::*;
use super::stored_bytes::bytes_of;

pub async fn everything_is_there_again(open: OpenStore<'_>) {
    let store = open();
    let many: Vec<_> = (0..30).map(|number| chunk(&number.to_string())).collect();
    let no = start(store.as_ref(), ["ann", "echo", "t1", "c1"], Some("k"), 0, &many).await.unwrap().task;
    let question = status(State::InputRequired, 10);
    let mut snapshot = load(store.as_ref(), no).await;
    apply(&mut snapshot, &question);
    let side_rows = [
        SideRow::InboxAdd(message("unread").into()),
        SideRow::AgentState(Some("session".into())),
        SideRow::TaskState(Some("run".into())),
        SideRow::CancelRequested,
        SideRow::Attempts(2),
    ];
    push_with(store.as_ref(), no, 31, &[question], Some(&snapshot), &side_rows).await.unwrap();
    push(store.as_ref(), no, 32, &[chunk("tail")]).await.unwrap();

    let (ann, echo, c1) = (owner("ann"), agent("echo"), context("c1"));
    let row = find(store.as_ref(), "ann", None, "t1").await;
    let log = events(store.as_ref(), no).await;
    let task = load(store.as_ref(), no).await;
    let pending = store.unfinished().await.unwrap();
    drop(store);

    let store = open();
    assert_eq!(find(store.as_ref(), "ann", None, "t1").await, row);
    assert_eq!(events(store.as_ref(), no).await, log);
    assert_eq!(load(store.as_ref(), no).await, task);
    assert_eq!(store.unfinished().await.unwrap(), pending);
    assert_eq!(pending[0].inbox, [message("unread")]);
    assert_eq!((pending[0].cancel_requested, pending[0].attempts), (true, 2));
    assert_eq!(store.find_by_key(&ann, &echo, &key("k")).await.unwrap(), row);
    assert_eq!(store.waiting(&ann, &echo, &c1).await.unwrap().len(), 1);
    assert_eq!(store.agent_state(&ann, &echo, &c1).await.unwrap().as_deref(), Some("session"));
    assert_eq!(store.task_state(no).await.unwrap().as_deref(), Some("run"));
    assert_eq!(say(start(store.as_ref(), ["ann", "echo", "t9", "c1"], Some("k"), 0, &[]).await), "exists: t1");
}

pub async fn numbers_go_on(open: OpenStore<'_>) {
    let mut made = Vec::new();
    for round in 0..4 {
        let store = open();
        // Each task that is older has got one event in every round since.
        for (age, no) in (1..).zip(made.iter().rev()) {
            let answer = push(store.as_ref(), *no, age, &[chunk("a")]).await;
            assert_eq!(say(answer), format!("up to {}", age + 1));
        }
        let id = format!("t{round}");
        let no = create(store.as_ref(), ["ann", "echo", &id, "c1"], round).await;
        assert!(!made.contains(&no), "{no:?} is given twice");
        made.push(no);
    }
}

pub async fn no_number_is_given_twice(open: OpenStore<'_>) {
    let mut made = Vec::new();
    for round in 0..4 {
        let store = open();
        let no = create_in(store.as_ref(), ["ann", "echo", "t1", "c1"], State::Completed, round).await;
        assert!(!made.contains(&no), "{no:?} is given twice");
        made.push(no);
        assert_eq!(
            sweep_all(store.as_ref(), Retention { settled_before: None, keep: Some(0), pending_after: None }).await,
            1
        );
    }
}

pub async fn totals_are_right_again(open: OpenStore<'_>) {
    let store = open();
    for number in 0..40usize {
        let (id, by) = (format!("t{number}"), ["echo", "other"][number % 2]);
        create_in(store.as_ref(), ["ann", by, &id, "c1"], State::ALL[number % 8], number as i64).await;
    }
    let gone =
        sweep_all(store.as_ref(), Retention { settled_before: Some(at(20)), keep: None, pending_after: None }).await;
    drop(store);
    let store = open();
    for state in State::ALL {
        let listing = list(store.as_ref(), Query { state: Some(state), ..all_of("ann") }).await;
        assert_eq!(listing.total, listing.tasks.len() as u64, "{state:?}");
    }
    assert_eq!(list(store.as_ref(), all_of("ann")).await.total, 40 - gone);
}

pub async fn a_thousand_tasks_made_at_once_are_there_again(open: OpenStore<'_>) {
    let store = open();
    let starts: Vec<_> = (0..1000)
        .map(|number| {
            let id = format!("t{number:04}");
            start(store.as_ref(), ["ann", "echo", &id, "c1"], None, number, &[status(State::Completed, number)])
        })
        .collect();
    for answer in join_all(starts).await {
        assert_eq!(answer.unwrap().last, 2);
    }
    drop(store);
    let store = open();
    let listing = list(store.as_ref(), all_of("ann")).await;
    assert_eq!((listing.total, listing.tasks.len()), (1000, 1000));
    assert!(listing.tasks.iter().all(|task| task.seq == 2 && task.status.state == State::Completed));
    assert_eq!(listing.tasks[0].id, task("t0999"));
}

pub async fn stored_bytes_are_the_same_again(open: OpenStore<'_>) {
    let store = open();
    let events: Vec<_> = (0..50).map(|at| chunk(&at.to_string())).collect();
    let mut sum = start(&*store, ["ann", "echo", "t1", "c1"], None, 0, &events).await.unwrap().bytes;
    let short = start(&*store, ["ann", "echo", "t2", "c1"], None, 0, &[]).await.unwrap();
    let inbox = [SideRow::InboxAdd(message("more").into())];
    sum += short.bytes + push_with(&*store, short.task, short.last, &[], None, &inbox).await.unwrap().bytes;
    drop(store);
    assert_eq!(bytes_of(&*open(), "ann").await, sum);
}
