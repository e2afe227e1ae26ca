//! One damaged task costs nobody else anything, and can be settled.

use sabir_model::{Message, State, Task};
use sabir_store::{Query, Retention, SideRow, Store, StoreError, TaskNo};

use super::fixture::*;
use super::{Spoil, Spoiled};

/// A task of six events that is not short, with an append for each of the later ones, between two others of its context.
async fn three(store: &dyn Store) -> TaskNo {
    create_in(store, ["ann", "echo", "t1", "c1"], State::Completed, 10).await;
    let long = chunk(&"words ".repeat(1_000));
    let no = start(store, ["ann", "echo", "t2", "c1"], None, 20, &[long]).await.unwrap().task;
    for seq in 2..5 {
        push(store, no, seq, &[chunk("words ")]).await.unwrap();
    }
    push(store, no, 5, &[status(State::Working, 25)]).await.unwrap();
    create_in(store, ["ann", "echo", "t3", "c1"], State::InputRequired, 30).await;
    no
}

fn say_damage(task: &Task) -> String {
    let text = task.status.message.as_deref().map(Message::text).unwrap_or_default();
    let reason = text.strip_prefix("the log of this task is damaged: ");
    let reason = reason.map_or("whole", |reason| reason.split(':').next().unwrap_or_default());
    format!("{} {:?} {} {reason}", task.id, task.status.state, task.seq)
}

pub async fn a_damaged_task_is_shown_as_failed((store, spoil): (&dyn Store, Spoil<'_>)) {
    let no = three(store).await;
    let row = find(store, "ann", None, "t2").await;
    for (spoiled, reason) in [(4, "event 4 cannot be read"), (1, "event 1 cannot be read")] {
        spoil(no, Spoiled::Event(spoiled));
        let damaged = format!("t2 Failed 6 {reason}");
        assert_eq!(say_damage(&load(store, no).await), damaged);
        let got = store.get(&owner("ann"), Some(&agent("echo")), &task("t2")).await.unwrap().unwrap();
        assert_eq!(say_damage(&got), damaged);
        assert_eq!((got.context, got.status.time, got.created), (context("c1"), at(25), at(20)));

        let all = ["t3 InputRequired 2 whole", &damaged, "t1 Completed 2 whole"];
        for query in [all_of("ann"), Query { context: Some(context("c1")), ..all_of("ann") }] {
            let page = list(store, query).await;
            assert_eq!(page.tasks.iter().map(say_damage).collect::<Vec<_>>(), all);
            assert_eq!(page.total, 3);
        }
        let shown = store.conversation(&owner("ann"), &agent("echo"), &context("c1"), 9, usize::MAX).await.unwrap();
        let in_order: Vec<&str> = all.iter().rev().copied().collect();
        assert_eq!(shown.iter().map(say_damage).collect::<Vec<_>>(), in_order);
    }
    // Lookups that need no event are as before.
    assert_eq!(find(store, "ann", None, "t2").await, row);
    let pending = store.unfinished().await.unwrap();
    assert_eq!(row_ids(pending.iter().map(|pending| &pending.row)), "t2 t3");
}

pub async fn events_before_the_damage_can_be_read((store, spoil): (&dyn Store, Spoil<'_>)) {
    let no = three(store).await;
    spoil(no, Spoiled::Event(4));
    for (after, limit, expected) in [
        (0, 9, "1 2 3"),
        (1, 9, "2 3"),
        (0, 3, "1 2 3"),
        (2, 1, "3"),
        (3, 9, "damaged: t2"),
        (3, 1, "damaged: t2"),
        (4, 9, "5 6"),
    ] {
        let answer = match store.events(no, after, limit).await {
            Ok(events) => events.iter().map(|event| event.seq.to_string()).collect::<Vec<_>>().join(" "),
            Err(StoreError::Damaged { task, reason }) => {
                assert!(!reason.is_empty());
                format!("damaged: {task}")
            }
            Err(error) => panic!("{error}"),
        };
        assert_eq!(answer, expected, "after {after}, {limit}");
    }
}

pub async fn a_damaged_task_can_be_settled((store, spoil): (&dyn Store, Spoil<'_>)) {
    let no = three(store).await;
    spoil(no, Spoiled::Event(2));
    let seq = load(store, no).await.seq;
    let controls = [SideRow::CancelRequested, SideRow::Attempts(1)];
    push_with(store, no, seq, &[], None, &controls).await.unwrap();
    assert_eq!(say(push(store, no, seq, &[status(State::Failed, 40)]).await), "up to 7");
    let pending = store.unfinished().await.unwrap();
    assert_eq!(row_ids(pending.iter().map(|pending| &pending.row)), "t3");
    let failed = list(store, Query { state: Some(State::Failed), ..all_of("ann") }).await;
    assert_eq!((ids(&failed.tasks).as_str(), failed.total, failed.tasks[0].seq), ("t2", 1, 7));
    // Retention takes it like any other.
    let gone = sweep_all(store, Retention { settled_before: None, keep: Some(0), pending_after: None }).await;
    assert_eq!((gone, find(store, "ann", None, "t2").await), (2, None));
}

pub async fn a_damaged_inbox_stops_no_start((store, spoil): (&dyn Store, Spoil<'_>)) {
    let no = three(store).await;
    let waits = [SideRow::InboxAdd(message("one").into()), SideRow::Attempts(2)];
    push_with(store, no, 6, &[], None, &waits).await.unwrap();
    spoil(no, Spoiled::Inbox);
    let pending = store.unfinished().await.unwrap();
    assert_eq!(row_ids(pending.iter().map(|pending| &pending.row)), "t2 t3");
    assert_eq!((pending[0].inbox.len(), pending[0].attempts), (0, 2));
    let damage = pending[0].damage.as_deref().unwrap_or_default();
    assert!(damage.contains("inbox"), "{damage}");
    assert_eq!(pending[1].damage, None);
}
