//! How many bytes each owner has stored: the whole count, and what each append adds to it.

use sabir_model::{Event, State};
use sabir_store::{Retention, SideRow, Store, TASK_ROW_BYTES};

use super::fixture::*;

/// What an owner has; 0 if it is not listed.
pub async fn bytes_of(store: &dyn Store, of: &str) -> i64 {
    let all = store.stored_bytes().await.expect("a count");
    let found: Vec<u64> = all.iter().filter(|(name, _)| *name == owner(of)).map(|(_, bytes)| *bytes).collect();
    assert!(found.len() <= 1, "{of} is listed once");
    found.first().map_or(0, |bytes| *bytes as i64)
}

pub async fn every_append_says_how_many_bytes_more_there_are(store: &dyn Store) {
    assert_eq!(store.stored_bytes().await.unwrap(), []);
    let began = start(store, ["ann", "echo", "t1", "c1"], None, 0, &[]).await.unwrap();
    assert!(began.bytes > TASK_ROW_BYTES as i64);
    let mut sum = began.bytes;
    assert_eq!(bytes_of(store, "ann").await, sum);
    let bob = start(store, ["bob", "echo", "t1", "c1"], None, 0, &[chunk("x")]).await.unwrap().bytes;
    let add = |words: &str| SideRow::InboxAdd(message(words).into());
    let (long, short) = ("x".repeat(10_000), "hi");
    let many: Vec<Event> = (0..100).map(|at| chunk(&at.to_string())).collect();
    let large = 10_000;
    // What the append adds: at least so much, and less than 1000 bytes more for each event.
    for (what, events, side_rows, least) in [
        ("a status", vec![status(State::Working, 1)], vec![], 1),
        ("a message that waits", vec![], vec![add(&long)], large),
        ("more of them", vec![], vec![add(short), add(&long), add(short)], large),
        ("one is taken", vec![status_with_input(State::Working, 2, &long)], vec![SideRow::InboxTake(1)], 1),
        ("one in the middle", vec![], vec![SideRow::InboxTakeAt(1)], -large - 1000),
        ("more than there are", vec![], vec![SideRow::InboxTake(9), SideRow::InboxTakeAt(3)], -1000),
        ("a log too long for the row", many, vec![], 100),
        ("memory is not counted", vec![], vec![SideRow::AgentState(Some(long.clone())), SideRow::Attempts(1)], 0),
        ("a large event", vec![chunk(&long)], vec![], large),
        ("the end", vec![status(State::Completed, 3)], vec![], 1),
    ] {
        let (no, after) = (began.task, find(store, "ann", None, "t1").await.unwrap().seq);
        let mut snapshot = load(store, no).await;
        events.iter().for_each(|event| sabir_model::apply(&mut snapshot, event));
        let added = push_with(store, no, after, &events, Some(&snapshot), &side_rows).await.unwrap().bytes;
        let most = least + 1000 * (1 + events.len() as i64);
        assert!((least..most).contains(&added), "{what}: {added}");
        sum += added;
        assert_eq!(bytes_of(store, "ann").await, sum, "{what}");
    }
    push(store, began.task, 1, &[chunk(&long)]).await.unwrap_err();
    start(store, ["ann", "echo", "t1", "c1"], None, 0, &[]).await.unwrap_err();
    assert_eq!(bytes_of(store, "ann").await, sum, "what is refused takes nothing");
    assert_eq!(bytes_of(store, "bob").await, bob, "it is another owner");
}

pub async fn bytes_of_deleted_tasks_are_free(store: &dyn Store) {
    let events: Vec<Event> = (0..40).map(|_| chunk(&"x".repeat(20_000))).chain([status(State::Completed, 1)]).collect();
    start(store, ["ann", "echo", "long", "c1"], None, 0, &events).await.unwrap();
    start(store, ["ann", "echo", "short", "c1"], None, 0, &[status(State::Failed, 2)]).await.unwrap();
    let open = start(store, ["ann", "echo", "open", "c1"], None, 0, &[]).await.unwrap();
    let inbox = [SideRow::InboxAdd(message("more").into())];
    let added = push_with(store, open.task, open.last, &[], None, &inbox).await.unwrap().bytes;
    let retention = Retention { settled_before: Some(at(100)), ..Retention::default() };
    store.sweep(retention).await.unwrap();
    assert!(bytes_of(store, "ann").await < 10_000, "rows that a slice has left belong to nobody");
    sweep_all(store, retention).await;
    assert_eq!(bytes_of(store, "ann").await, open.bytes + added);
    push(store, open.task, open.last, &[status(State::Completed, 3)]).await.unwrap();
    sweep_all(store, retention).await;
    assert_eq!(store.stored_bytes().await.unwrap(), []);
}

pub async fn bytes_move_with_their_task(store: &dyn Store) {
    let stays = start(store, ["ann", "echo", "t1", "c1"], None, 0, &[]).await.unwrap();
    let moves = start(store, ["ann", "echo", "t2", "c1"], None, 0, &[status(State::Completed, 1)]).await.unwrap();
    store.assign(vec![moves.task], &owner("ann"), &owner("bob")).await.unwrap();
    assert_eq!((bytes_of(store, "ann").await, bytes_of(store, "bob").await), (stays.bytes, moves.bytes));
}
