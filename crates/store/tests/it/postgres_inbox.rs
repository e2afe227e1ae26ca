//! Messages that wait in the inbox of a task without a driver: no run begins without them.

use sabir_model::{Event, State};
use sabir_store::{
    AfterAppend, Append, AppendResult, AppendTarget, Claim, Cluster, ContextUse, Ownership, PostgresSettings,
    PostgresStore, SideRow, Store, StoreError, TaskNo,
};
use sabir_testkit::store_contract::fixture::*;

use crate::postgres_cluster::{begin, claiming, run};
use crate::postgres_server::new_database;

const NAME: Name<'static> = ["alice", "echo", "t-1", "c-1"];

async fn add(
    store: &dyn Store,
    (no, after): (TaskNo, u64),
    events: &[Event],
    side_rows: &[SideRow],
    ownership: Ownership,
) -> Result<AppendResult, StoreError> {
    let events: Vec<&Event> = events.iter().collect();
    let target = AppendTarget::Known(no);
    store.append(Append { target, events: &events, after, snapshot: None, side_rows, ownership }).await
}

fn take(context: ContextUse, then: AfterAppend) -> Ownership {
    Ownership { claim: Claim::Take, context, then }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_run_begins_without_the_messages_that_wait() {
    let Some(url) = new_database() else { return };
    let store = PostgresStore::open(PostgresSettings::new(&url, "a", "0.0.0")).await.unwrap();
    let begin_run = || ContextUse::Begin { most_runs: None };
    let first = begin(&store, NAME, run(), &[status(State::InputRequired, 2)]).await.unwrap();
    let hold = |epoch| Ownership { claim: Claim::Hold(epoch), ..Ownership::default() };
    let at_rest = Ownership { then: AfterAppend::Rest, ..hold(first.epoch) };
    add(&store, (first.task, first.last), &[], &[SideRow::TaskState(None)], at_rest).await.unwrap();
    let at = (first.task, first.last);
    let first_message = || vec![SideRow::InboxAdd(message("m-1").into())];

    // The context is busy, so the task is left with its message. Nobody may run a later message before it.
    let leave = take(ContextUse::Unchanged, AfterAppend::Leave { home: None });
    add(&store, at, &[], &first_message(), leave.clone()).await.unwrap();
    let work = || [status(State::Working, 3)];
    for (ownership, what) in [
        (take(begin_run(), AfterAppend::Keep), "a run begins"),
        (take(begin_run(), AfterAppend::Rest), "a whole run in one append"),
        (take(ContextUse::Unchanged, AfterAppend::Keep), "a driver that waits for a slot"),
    ] {
        let refused = add(&store, at, &work(), &[], ownership.clone()).await;
        assert!(matches!(refused, Err(StoreError::Conflict)), "left, {what}: {refused:?}");
    }

    // This node has claimed it, and its recovery has not begun yet: the same holds.
    let claimed = store.claim(claiming("echo"), 8).await.unwrap().pop().expect("the task is claimed");
    assert_eq!(claimed.unfinished.inbox.len(), 1);
    for ownership in [take(begin_run(), AfterAppend::Keep), take(begin_run(), AfterAppend::Rest)] {
        let refused = add(&store, at, &work(), &[], ownership.clone()).await;
        assert!(matches!(refused, Err(StoreError::Conflict)), "claimed, {ownership:?}: {refused:?}");
    }
    // Whoever has claimed it knows the messages.
    let takes = [SideRow::InboxTake(1)];
    add(&store, at, &work(), &takes, Ownership { context: begin_run(), ..hold(claimed.epoch) }).await.unwrap();
    assert!(store.inbox(first.task).await.unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_joins_those_that_wait_and_a_cancel_does_not_wait_for_them() {
    let Some(url) = new_database() else { return };
    let store = PostgresStore::open(PostgresSettings::new(&url, "a", "0.0.0")).await.unwrap();
    let first = begin(&store, NAME, run(), &[status(State::InputRequired, 2)]).await.unwrap();
    let at = (first.task, first.last);
    let hold = |epoch| Ownership { claim: Claim::Hold(epoch), ..Ownership::default() };
    let leave = AfterAppend::Leave { home: None };
    let left = Ownership { then: leave.clone(), ..hold(first.epoch) };
    add(&store, at, &[], &[SideRow::InboxAdd(message("m-1").into())], left).await.unwrap();
    let claimed = store.claim(claiming("echo"), 8).await.unwrap().pop().expect("the task is claimed");

    let more = [SideRow::InboxAdd(message("m-2").into())];
    add(&store, at, &[], &more, take(ContextUse::Unchanged, leave)).await.unwrap();
    let stale = add(&store, at, &[status(State::Working, 3)], &[SideRow::InboxTake(1)], hold(claimed.epoch)).await;
    assert!(matches!(stale, Err(StoreError::Conflict)), "it knows one of two messages: {stale:?}");
    let again = store.claim(claiming("echo"), 8).await.unwrap().pop().expect("the task is claimed again");
    let texts: Vec<&str> = again.unfinished.inbox.iter().filter_map(|message| message.parts[0].as_text()).collect();
    assert_eq!(texts, ["m-1", "m-2"]);

    let cancel = take(ContextUse::Unchanged, AfterAppend::Rest);
    add(&store, at, &[status(State::Canceled, 3)], &[], cancel).await.unwrap();
}
