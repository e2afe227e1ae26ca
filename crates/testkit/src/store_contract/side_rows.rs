//! Rows that are stored together with events: the inbox, what agents remember, keys of later messages.

use sabir_model::{Event, IdempotencyKey, Message, State};
use sabir_store::{SentKey, SideRow, Store};

use super::fixture::*;

fn texts(messages: &[Message]) -> String {
    let texts: Vec<String> = messages.iter().map(Message::text).collect();
    texts.join(" ")
}

pub async fn messages_wait_in_order_until_taken(store: &dyn Store) {
    let no = create(store, ["ann", "echo", "t1", "c1"], 0).await;
    let neighbour = create(store, ["ann", "echo", "t2", "c1"], 0).await;
    let add = |text: &str| SideRow::InboxAdd(message(text).into());
    push_with(store, neighbour, 1, &[], None, &[add("other")]).await.unwrap();
    let steps: [(&[SideRow], &str); 12] = [
        (&[add("a")], "a"),
        (&[add("b"), add("c")], "a b c"),
        (&[SideRow::InboxTake(1)], "b c"),
        (&[SideRow::InboxTake(0)], "b c"),
        (&[add("d"), SideRow::InboxTake(2), add("e")], "d e"),
        (&[SideRow::InboxTake(usize::MAX)], ""),
        (&[SideRow::InboxTake(1)], ""),
        (&[add("f")], "f"),
        (&[SideRow::InboxTake(1), add("g"), add("h")], "g h"),
        (&[add("i"), SideRow::InboxTakeAt(1)], "g i"),
        (&[SideRow::InboxTakeAt(2), SideRow::InboxTakeAt(usize::MAX)], "g i"),
        (&[SideRow::InboxTakeAt(0), add("j"), SideRow::InboxTakeAt(1)], "i"),
    ];
    for (last, (side_rows, expected)) in (1..).zip(steps) {
        push_with(store, no, last, &[status(State::Working, 10)], None, side_rows).await.unwrap();
        assert_eq!(texts(&store.inbox(no).await.unwrap()), expected, "{side_rows:?}");
    }
    assert_eq!(texts(&store.inbox(neighbour).await.unwrap()), "other");
}

pub async fn an_agent_remembers_and_forgets(store: &dyn Store) {
    let first = create(store, ["ann", "echo", "t1", "c1"], 0).await;
    let second = create(store, ["ann", "echo", "t2", "c1"], 0).await;
    let elsewhere = create(store, ["ann", "echo", "t3", "c2"], 0).await;
    let remembered = async |place: &str| {
        let state = store.agent_state(&owner("ann"), &agent("echo"), &context(place)).await.unwrap();
        state.unwrap_or_else(|| "nothing".into())
    };
    assert_eq!(remembered("c1").await, "nothing");
    for (no, state, expected) in [
        (first, Some("session 1"), ("session 1", "nothing")),
        (elsewhere, Some("session 2"), ("session 1", "session 2")),
        // A context's memory is shared by its tasks.
        (second, Some("session 3"), ("session 3", "session 2")),
        (first, Some(""), ("", "session 2")),
        (first, None, ("nothing", "session 2")),
        (first, None, ("nothing", "session 2")),
    ] {
        let side_rows = [SideRow::AgentState(state.map(str::to_owned))];
        push_with(store, no, 1, &[], None, &side_rows).await.unwrap();
        assert_eq!((remembered("c1").await.as_str(), remembered("c2").await.as_str()), expected);
    }
}

pub async fn an_agent_remembers_a_task(store: &dyn Store) {
    let first = create(store, ["ann", "echo", "t1", "c1"], 0).await;
    let second = create(store, ["ann", "echo", "t2", "c1"], 0).await;
    for (no, state, expected) in [
        (first, Some("run 1"), (Some("run 1"), None)),
        // A task's memory is its own, also in a context that others share.
        (second, Some("run 2"), (Some("run 1"), Some("run 2"))),
        (first, Some(""), (Some(""), Some("run 2"))),
        (first, None, (None, Some("run 2"))),
        (first, None, (None, Some("run 2"))),
    ] {
        push_with(store, no, 1, &[], None, &[SideRow::TaskState(state.map(str::to_owned))]).await.unwrap();
        let states = (store.task_state(first).await.unwrap(), store.task_state(second).await.unwrap());
        assert_eq!((states.0.as_deref(), states.1.as_deref()), expected);
    }
}

pub async fn a_key_of_a_later_message_leads_to_its_task(store: &dyn Store) {
    let first = create(store, ["ann", "echo", "t1", "c1"], 0).await;
    let second = create(store, ["ann", "echo", "t2", "c1"], 0).await;
    let key = |text: &str| IdempotencyKey::parse(text).unwrap();
    let found = async |who: &str, text: &str| {
        let row = store.find_by_key(&owner(who), &agent("echo"), &key(text)).await.unwrap();
        row.map(|row| row.task.to_string()).unwrap_or_default()
    };
    push_with(store, first, 1, &[], None, &[SideRow::Key(sent_key("k1"))]).await.unwrap();
    assert_eq!((found("ann", "k1").await.as_str(), found("bob", "k1").await.as_str()), ("t1", ""));
    // A known key refuses the whole append, also with the key of a creation.
    let with_known = [SideRow::Key(sent_key("k2")), SideRow::Key(sent_key("k1")), SideRow::CancelRequested];
    assert_eq!(say(push_with(store, second, 1, &[], None, &with_known).await), "exists: t1");
    assert_eq!((found("ann", "k1").await.as_str(), found("ann", "k2").await.as_str()), ("t1", ""));
    assert!(store.unfinished().await.unwrap().iter().all(|unfinished| !unfinished.cancel_requested));
    push_with(store, second, 1, &[], None, &[SideRow::Key(sent_key("k2"))]).await.unwrap();
    assert_eq!(found("ann", "k2").await.as_str(), "t2");
    assert_eq!(say(start(store, ["ann", "echo", "t3", "c1"], Some("k2"), 10, &[]).await), "exists: t2");
    // Who sends to somebody else's task finds it by the key, and the owner does not.
    let of_bob = SideRow::Key(SentKey { sender: Some(owner("bob")), ..sent_key("k3") });
    push_with(store, second, 1, &[], None, &[of_bob]).await.unwrap();
    assert_eq!((found("ann", "k3").await.as_str(), found("bob", "k3").await.as_str()), ("", "t2"));
}

pub async fn a_request_to_cancel_and_attempts_last_until_the_task_settles(store: &dyn Store) {
    let no = create(store, ["ann", "echo", "t1", "c1"], 0).await;
    create(store, ["ann", "echo", "t2", "c1"], 0).await;
    let (cancel, attempts) = (SideRow::CancelRequested, SideRow::Attempts);
    let (working, settled) = (status(State::Working, 10), status(State::Failed, 20));
    let steps: [(&[Event], &[SideRow], &str); 11] = [
        (&[], &[], "t1 no 0, t2 no 0"),
        // Side rows need no event.
        (&[], &[attempts(1)], "t1 no 1, t2 no 0"),
        (&[], std::slice::from_ref(&cancel), "t1 yes 1, t2 no 0"),
        (std::slice::from_ref(&working), &[attempts(3)], "t1 yes 3, t2 no 0"),
        (&[], &[attempts(0)], "t1 yes 0, t2 no 0"),
        (&[], &[cancel.clone(), attempts(2)], "t1 yes 2, t2 no 0"),
        (std::slice::from_ref(&settled), &[], "t2 no 0"),
        // Nothing of it is left when a task begins anew.
        (std::slice::from_ref(&working), &[], "t1 no 0, t2 no 0"),
        (&[], &[attempts(1), attempts(0)], "t1 no 0, t2 no 0"),
        (std::slice::from_ref(&settled), &[attempts(1), cancel.clone()], "t2 no 0"),
        (std::slice::from_ref(&working), &[], "t1 no 0, t2 no 0"),
    ];
    let mut last = 1;
    for (events, side_rows, expected) in steps {
        last = push_with(store, no, last, events, None, side_rows).await.unwrap().last;
        let pending = store.unfinished().await.unwrap();
        let shown = pending.iter().map(|pending| {
            let cancel = if pending.cancel_requested { "yes" } else { "no" };
            format!("{} {cancel} {}", pending.row.task, pending.attempts)
        });
        assert_eq!(shown.collect::<Vec<_>>().join(", "), expected, "{side_rows:?}");
    }
}

pub async fn side_rows_of_a_refused_append_are_refused_too(store: &dyn Store) {
    let no = create(store, ["ann", "echo", "t1", "c1"], 0).await;
    let side_rows = [SideRow::InboxAdd(message("late").into()), SideRow::AgentState(Some("late".into()))];
    assert_eq!(say(push_with(store, no, 7, &[], None, &side_rows).await), "conflict");
    assert_eq!(texts(&store.inbox(no).await.unwrap()), "");
    assert_eq!(store.agent_state(&owner("ann"), &agent("echo"), &context("c1")).await.unwrap(), None);
}
