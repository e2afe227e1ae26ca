//! Finding tasks again, one by one and by what they wait for.

use sabir_model::{Event, State, Task, TaskId, apply};
use sabir_store::{Query, SideRow, Store, UnfinishedTask};

use super::fixture::*;

pub async fn a_load_is_the_fold_of_all_events(store: &dyn Store) {
    let no = create(store, ["ann", "echo", "t1", "c1"], 0).await;
    let mut last = 1;
    for round in 1..=30 {
        let mut events = vec![status(State::Working, round * 10), chunk("more "), chunk("words ")];
        if round % 4 == 0 {
            events.push(status(State::InputRequired, round * 10 + 5));
        }
        let snapshot = after_these(load(store, no).await, &events);
        let given = (round % 4 == 0).then_some(&snapshot);
        last = push_with(store, no, last, &events, given, &[]).await.unwrap().last;
        let row = find(store, "ann", None, "t1").await.unwrap();
        assert_eq!(load(store, no).await, fold(store, &row).await, "round {round}");
        assert_eq!(row.seq, last);
    }
}

fn after_these(mut task: Task, events: &[Event]) -> Task {
    for event in events {
        apply(&mut task, event);
    }
    task
}

pub async fn a_snapshot_of_another_moment_does_no_harm(store: &dyn Store) {
    let no = create(store, ["ann", "echo", "t1", "c1"], 0).await;
    let stale = load(store, no).await;
    let many: Vec<_> = (0..40).map(|number| chunk(&number.to_string())).collect();
    push_with(store, no, 1, &many, Some(&stale), &[]).await.unwrap();
    let row = find(store, "ann", None, "t1").await.unwrap();
    assert_eq!(load(store, no).await, fold(store, &row).await);
}

pub async fn one_id_at_two_agents(store: &dyn Store) {
    let first = create(store, ["ann", "echo", "t1", "c1"], 500).await;
    let second = create(store, ["ann", "other", "t1", "c1"], 10).await;
    let (ann, t1) = (owner("ann"), TaskId::parse("t1").unwrap());
    for (by, expected) in [(Some("echo"), Some(first)), (Some("other"), Some(second)), (Some("third"), None)] {
        assert_eq!(find(store, "ann", by, "t1").await.map(|row| row.no), expected, "{by:?}");
        let whole = store.get(&ann, by.map(agent).as_ref(), &t1).await.unwrap();
        let loaded = match expected {
            Some(no) => Some(load(store, no).await),
            None => None,
        };
        assert_eq!(whole, loaded, "{by:?}");
    }
    assert_eq!(store.get(&ann, None, &t1).await.unwrap(), Some(load(store, second).await));
    assert_eq!(store.get(&owner("bob"), None, &t1).await.unwrap(), None);
    // The one that was made last, whatever its clock said and whatever happened since.
    assert_eq!(find(store, "ann", None, "t1").await.unwrap().no, second);
    push(store, first, 1, &[status(State::Working, 900)]).await.unwrap();
    assert_eq!(find(store, "ann", None, "t1").await.unwrap().no, second);
}

pub async fn nobody_sees_the_tasks_of_another_owner(store: &dyn Store) {
    start(store, ["ann", "echo", "t1", "c1"], Some("k"), 0, &[status(State::InputRequired, 1)]).await.unwrap();
    let no = find(store, "ann", None, "t1").await.unwrap().no;
    push_with(store, no, 2, &[], None, &[SideRow::AgentState(Some("s".into()))]).await.unwrap();
    let (echo, other, c1) = (agent("echo"), agent("other"), context("c1"));
    for (of, by, expected) in [("ann", &echo, 1), ("bob", &echo, 0), ("ann", &other, 0), ("", &echo, 0)] {
        let name = owner(of);
        let found = find(store, of, Some(by.as_str()), "t1").await;
        assert_eq!(found.iter().count(), expected, "find {of} {by}");
        let listed = list(store, Query { agent: Some(by.clone()), ..all_of(of) }).await;
        assert_eq!((listed.tasks.len(), listed.total), (expected, expected as u64), "list {of} {by}");
        let keyed = store.find_by_key(&name, by, &key("k")).await.unwrap();
        assert_eq!(keyed.iter().count(), expected, "keyed {of} {by}");
        assert_eq!(store.waiting(&name, by, &c1).await.unwrap().len(), expected, "waiting {of} {by}");
        assert_eq!(
            store.conversation(&name, by, &c1, 9, usize::MAX).await.unwrap().len(),
            expected,
            "conversation {of} {by}"
        );
        let remembered = store.agent_state(&name, by, &c1).await.unwrap();
        assert_eq!(remembered.iter().count(), expected, "agent state {of} {by}");
    }
    assert_eq!(find(store, "bob", None, "t1").await, None);
    assert_eq!(list(store, all_of("bob")).await.total, 0);
}

pub async fn an_id_is_found_at_all_owners(store: &dyn Store) {
    let mut numbers = Vec::new();
    for (of, by) in [("ann", "echo"), ("bob", "other"), ("", "echo"), ("bob", "echo")] {
        numbers.push(create(store, [of, by, "t1", "c1"], 0).await);
    }
    create(store, ["ann", "echo", "t2", "c1"], 0).await;
    for (by, id, limit, expected) in [
        (None, "t1", 9, vec![3, 2, 1, 0]),
        (None, "t1", 2, vec![3, 2]),
        (Some("echo"), "t1", 9, vec![3, 2, 0]),
        (Some("none"), "t1", 9, vec![]),
        (None, "t3", 9, vec![]),
    ] {
        let found = store.find_of_all(by.map(agent).as_ref(), &task(id), limit).await.unwrap();
        let found: Vec<_> = found.iter().map(|row| row.no).collect();
        assert_eq!(found, expected.iter().map(|at: &usize| numbers[*at]).collect::<Vec<_>>(), "{by:?} {id} {limit}");
    }
}

pub async fn tasks_of_an_owner_come_in_pages(store: &dyn Store) {
    for (of, by, id) in [("ann", "echo", "b"), ("ann", "other", "a"), ("bob", "echo", "a"), ("ann", "echo", "a")] {
        create(store, [of, by, id, "c1"], 0).await;
    }
    let (mut found, mut after) = (Vec::new(), None);
    while let Some(row) = store.tasks_of(&owner("ann"), after, 1).await.unwrap().pop() {
        found.push(format!("{} of {}", row.task, row.agent));
        after = Some((row.task, row.agent));
    }
    assert_eq!(found, ["a of echo", "a of other", "b of echo"]);
}

pub async fn tasks_at_rest_get_another_owner(store: &dyn Store) {
    let mut numbers = Vec::new();
    for (id, place, state) in [
        ("done", "c1", State::Completed),
        ("asks", "c1", State::InputRequired),
        ("works", "c2", State::Working),
        ("waits", "c2", State::Submitted),
        ("taken", "c3", State::Failed),
    ] {
        let new = start(store, ["ann", "echo", id, place], Some(id), 10, &[]).await.unwrap().task;
        let mut last = status(state, 20);
        if let Event::Status(change) = &mut last {
            change.is_final = state.is_terminal() || state.is_waiting();
        }
        let events = if state == State::Submitted { vec![] } else { vec![last] };
        // Long enough for a snapshot, which names the owner.
        let chunks: Vec<Event> = (0..40).map(|_| chunk("x")).collect();
        let at = push(store, new, 1, &chunks).await.unwrap().last;
        let whole = load(store, new).await;
        let mut snapshot = whole.clone();
        events.iter().for_each(|event| sabir_model::apply(&mut snapshot, event));
        let memory = [SideRow::AgentState(Some(format!("of {place}")))];
        push_with(store, new, at, &events, Some(&snapshot), &memory).await.unwrap();
        numbers.push(new);
    }
    create(store, ["bob", "echo", "taken", "c9"], 0).await;
    let mut asks = status(State::InputRequired, 30);
    if let Event::Status(change) = &mut asks {
        change.is_final = false;
    }
    let parked = start(store, ["ann", "echo", "parked", "c4"], None, 30, &[asks]).await.unwrap().task;
    let all = [numbers.clone(), vec![parked]].concat();
    // Nothing of somebody else's is moved.
    assert_eq!(store.assign(all.clone(), &owner("cy"), &owner("bob")).await.unwrap(), []);
    assert_eq!(store.assign(all, &owner("ann"), &owner("bob")).await.unwrap(), numbers[..2]);
    for (of, expected, total) in [("ann", "parked works taken waits", 4), ("bob", "done asks taken", 3)] {
        let listing = list(store, all_of(of)).await;
        assert_eq!((ids(&listing.tasks).as_str(), listing.total), (expected, total), "{of}");
        assert!(listing.tasks.iter().all(|task| task.owner == owner(of)), "{of}");
        let light = list(store, Query { artifacts: sabir_model::Wanted::No, ..all_of(of) }).await;
        assert!(light.tasks.iter().all(|task| task.owner == owner(of)), "{of}");
        for state in State::ALL {
            let listing = list(store, Query { state: Some(state), ..all_of(of) }).await;
            assert_eq!(listing.total, listing.tasks.len() as u64, "{of} {state:?}");
        }
    }
    for (of, id, found) in
        [("ann", "done", false), ("bob", "done", true), ("ann", "works", true), ("bob", "works", false)]
    {
        let keyed = store.find_by_key(&owner(of), &agent("echo"), &key(id)).await.unwrap();
        assert_eq!(
            (keyed.is_some(), super::fixture::find(store, of, None, id).await.is_some()),
            (found, found),
            "{of} {id}"
        );
    }
    for (of, place, expected) in [("ann", "c1", None), ("bob", "c1", Some("of c1")), ("ann", "c2", Some("of c2"))] {
        let memory = store.agent_state(&owner(of), &agent("echo"), &context(place)).await.unwrap();
        assert_eq!(memory.as_deref(), expected, "{of} {place}");
    }
    // The log goes on.
    push(store, numbers[1], 42, &[status(State::Working, 50)]).await.unwrap();
    assert_eq!(load(store, numbers[1]).await.owner, owner("bob"));
}

pub async fn who_waits_in_a_context(store: &dyn Store) {
    for (id, place, state) in [
        ("t1", "c1", State::InputRequired),
        ("t2", "c1", State::Completed),
        ("t3", "c1", State::AuthRequired),
        ("t4", "c1", State::Working),
        ("t5", "c2", State::InputRequired),
        ("t6", "c1", State::Submitted),
        ("t0", "c1", State::InputRequired),
    ] {
        create_in(store, ["ann", "echo", id, place], state, 10).await;
    }
    let waiting = |place: &str| store.waiting(&owner("ann"), &agent("echo"), &context(place));
    assert_eq!(row_ids(&waiting("c1").await.unwrap()), "t1 t3 t0");
    assert_eq!(row_ids(&waiting("c2").await.unwrap()), "t5");
    assert_eq!(row_ids(&waiting("c3").await.unwrap()), "");
    // One that is taken up again and asks again keeps its place.
    let first = find(store, "ann", None, "t1").await.unwrap();
    push(store, first.no, first.seq, &[status(State::Working, 20)]).await.unwrap();
    assert_eq!(row_ids(&waiting("c1").await.unwrap()), "t3 t0");
    push(store, first.no, first.seq + 1, &[status(State::AuthRequired, 30)]).await.unwrap();
    assert_eq!(row_ids(&waiting("c1").await.unwrap()), "t1 t3 t0");
    assert_eq!(waiting("c1").await.unwrap()[0].seq, first.seq + 2);
}

pub async fn who_has_waited_longest(store: &dyn Store) {
    for (of, id, state, moment) in [
        ("ann", "t1", State::InputRequired, 30),
        ("bob", "t2", State::AuthRequired, 10),
        ("ann", "t3", State::Working, 5),
        ("ann", "t4", State::InputRequired, 10),
        ("bob", "t5", State::Completed, 1),
    ] {
        create_in(store, [of, "echo", id, "c1"], state, moment).await;
    }
    let waiting = async |before, limit| row_ids(&store.waiting_since(at(before), limit).await.unwrap());
    for (before, limit, expected) in
        [(99, 9, "t2 t4 t1"), (30, 9, "t2 t4"), (31, 9, "t2 t4 t1"), (10, 9, ""), (99, 1, "t2"), (99, 0, "")]
    {
        assert_eq!(waiting(before, limit).await, expected, "before {before}, {limit}");
    }
    // The time of the last status counts, and who is answered does not wait.
    for (of, id, state, moment, expected) in
        [("bob", "t2", State::InputRequired, 60, "t4 t1 t2"), ("ann", "t4", State::Working, 70, "t1 t2")]
    {
        let row = find(store, of, None, id).await.unwrap();
        push(store, row.no, row.seq, &[status(state, moment)]).await.unwrap();
        assert_eq!(waiting(99, 9).await, expected);
    }
    let row = find(store, "ann", None, "t1").await.unwrap();
    assert_eq!(store.waiting_since(at(99), 1).await.unwrap(), [row]);
}

pub async fn a_conversation_is_told_in_order(store: &dyn Store) {
    for (by, id, place, moment) in [
        ("echo", "t1", "c1", 10),
        ("echo", "t2", "c1", 20),
        ("other", "t3", "c1", 25),
        ("echo", "t4", "c2", 26),
        ("echo", "t5", "c1", 30),
        ("echo", "t6", "c1", 30),
    ] {
        create_in(store, ["ann", by, id, place], State::Completed, moment).await;
    }
    let shown = |limit| store.conversation(&owner("ann"), &agent("echo"), &context("c1"), limit, usize::MAX);
    for (limit, expected) in [(100, "t1 t2 t5 t6"), (3, "t2 t5 t6"), (1, "t6"), (0, ""), (usize::MAX, "t1 t2 t5 t6")] {
        assert_eq!(ids(&shown(limit).await.unwrap()), expected, "{limit}");
    }
    // The newest are those with the newest status; they are still told in order of creation.
    let old = find(store, "ann", None, "t1").await.unwrap();
    push(store, old.no, old.seq, &[status(State::Working, 40)]).await.unwrap();
    assert_eq!(ids(&shown(2).await.unwrap()), "t1 t6");
    assert_eq!(shown(2).await.unwrap()[0].status.state, State::Working);
}

pub async fn what_is_not_settled(store: &dyn Store) {
    for (number, state) in State::ALL.into_iter().enumerate() {
        let id = format!("t{number}");
        create_in(store, ["ann", "echo", &id, "c1"], state, 100 - number as i64).await;
    }
    create(store, ["bob", "other", "b1", "c9"], 5).await;
    let asked = find(store, "ann", None, "t2").await.unwrap();
    let waits = [SideRow::InboxAdd(message("one").into()), SideRow::InboxAdd(message("two").into())];
    push_with(store, asked.no, asked.seq, &[], None, &waits).await.unwrap();

    let pending = store.unfinished().await.unwrap();
    assert_eq!(row_ids(pending.iter().map(|pending| &pending.row)), "t0 t1 t2 t3 b1");
    let inboxes: Vec<usize> = pending.iter().map(|pending| pending.inbox.len()).collect();
    assert_eq!(inboxes, [0, 0, 2, 0, 0]);
    assert_eq!(Some(&pending[2].row), find(store, "ann", None, "t2").await.as_ref());

    for UnfinishedTask { row, .. } in pending {
        push(store, row.no, row.seq, &[status(State::Canceled, 200)]).await.unwrap();
    }
    assert_eq!(store.unfinished().await.unwrap(), []);
}

pub async fn a_check_succeeds(store: &dyn Store) {
    store.check().await.unwrap();
    create(store, ["ann", "echo", "t1", "c1"], 0).await;
    store.check().await.unwrap();
}
