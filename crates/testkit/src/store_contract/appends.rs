//! One append at a time: what is stored, and what is refused.

use sabir_model::{Birth, Content, Created, Event, Json, Message, Part, State};
use sabir_store::{Append, AppendTarget, NewTask, Ownership, Store, TaskNo, TaskRow};

use super::fixture::*;

const T1: Name<'static> = ["ann", "echo", "t1", "c1"];

pub async fn a_new_task_is_there_with_its_events(store: &dyn Store) {
    let working = status(State::Working, 20);
    let appended = start(store, T1, None, 10, std::slice::from_ref(&working)).await.unwrap();
    assert_eq!(appended.last, 2);
    assert_eq!(events(store, appended.task).await, [created(10), working]);
    let expected = TaskRow {
        no: appended.task,
        owner: owner("ann"),
        agent: agent("echo"),
        task: task("t1"),
        context: context("c1"),
        born: Birth(3),
        state: State::Working,
        time: at(20),
        turn_over: false,
        created: at(10),
        seq: 2,
    };
    assert_eq!(find(store, "ann", Some("echo"), "t1").await, Some(expected));
}

pub async fn numbers_have_no_gaps(store: &dyn Store) {
    let no = create(store, T1, 0).await;
    let other = create(store, ["ann", "echo", "t2", "c1"], 0).await;
    for round in 0..20 {
        let last = 1 + round * 3;
        let answer = push(store, no, last, &[chunk("a"), chunk("b"), chunk("c")]).await;
        assert_eq!(answer.unwrap().last, last + 3);
        push(store, other, 1 + round, &[chunk("x")]).await.unwrap();
    }
    assert_eq!(events(store, no).await.len(), 61);
    assert_eq!(events(store, other).await.len(), 21);
    assert_eq!(find(store, "ann", None, "t1").await.unwrap().seq, 61);
}

pub async fn events_come_in_pages(store: &dyn Store) {
    let no = create(store, T1, 0).await;
    let neighbour = create(store, ["ann", "echo", "t2", "c1"], 0).await;
    push(store, no, 1, &[chunk("a"), chunk("b"), chunk("c")]).await.unwrap();
    for (task, after, limit, expected) in [
        (no, 0, 100, "1 2 3 4"),
        (no, 0, 2, "1 2"),
        (no, 2, 2, "3 4"),
        (no, 3, 1, "4"),
        (no, 4, 100, ""),
        (no, 5, 100, ""),
        (no, u64::MAX, 100, ""),
        (no, 0, 0, ""),
        (no, 0, usize::MAX, "1 2 3 4"),
        (neighbour, 0, 100, "1"),
        (TaskNo(neighbour.0 + 1), 0, 100, ""),
        (TaskNo(u64::MAX), 0, 100, ""),
    ] {
        let page = store.events(task, after, limit).await.unwrap();
        let numbers: Vec<String> = page.iter().map(|recorded| recorded.seq.to_string()).collect();
        assert_eq!(numbers.join(" "), expected, "{task:?} after {after}, {limit}");
    }
}

pub async fn a_page_of_events_is_about_a_megabyte(store: &dyn Store) {
    let no = create(store, T1, 0).await;
    let (half, large) = ("x".repeat(600_000), "x".repeat(3_000_000));
    push(store, no, 1, &[chunk(&half), chunk(&half), chunk(&half), chunk(&large), chunk("end")]).await.unwrap();
    for (after, expected) in [(0, 3), (3, 2), (4, 1), (5, 1)] {
        assert_eq!(store.events(no, after, 100).await.unwrap().len(), expected, "after {after}");
    }
}

pub async fn the_row_follows_every_status_and_no_chunk(store: &dyn Store) {
    let no = create(store, T1, 10).await;
    let steps: [(&[Event], _, _, _); 5] = [
        (&[status(State::Working, 20)], State::Working, 20, false),
        (&[chunk("a")], State::Working, 20, false),
        (&[status(State::Working, 30), status(State::InputRequired, 40)], State::InputRequired, 40, true),
        (&[status(State::Working, 50), chunk("b")], State::Working, 50, false),
        (&[chunk("c"), status(State::Completed, 60)], State::Completed, 60, true),
    ];
    let mut last = 1;
    for (events, state, time, turn_over) in steps {
        last = push(store, no, last, events).await.unwrap().last;
        let row = find(store, "ann", None, "t1").await.unwrap();
        assert_eq!((row.state, row.time, row.turn_over), (state, at(time), turn_over));
        assert_eq!((row.created, row.seq), (at(10), last));
    }
}

pub async fn a_wrong_number_conflicts_and_leaves_no_trace(store: &dyn Store) {
    let no = create(store, T1, 10).await;
    push(store, no, 1, &[status(State::Working, 20)]).await.unwrap();
    let before = find(store, "ann", None, "t1").await;
    for after in [0, 1, 3, 1 << 40, u64::MAX] {
        let answer = push(store, no, after, &[status(State::Failed, 30), chunk("late")]).await;
        assert_eq!(say(answer), "conflict", "after {after}");
    }
    // Even without events: whoever appends knows where the task stands.
    assert_eq!(say(push(store, no, 1, &[]).await), "conflict");
    assert_eq!(find(store, "ann", None, "t1").await, before);
    assert_eq!(events(store, no).await.len(), 2);
    assert_eq!(list(store, all_of("ann")).await.total, 1);
}

pub async fn an_unknown_task_conflicts(store: &dyn Store) {
    let no = create(store, T1, 10).await;
    for unknown in [0, no.0 + 1, 1 << 50, u64::MAX] {
        for after in [0, 1] {
            let answer = push(store, TaskNo(unknown), after, &[status(State::Working, 20)]).await;
            assert_eq!(say(answer), "conflict", "task {unknown} after {after}");
        }
        assert_eq!(store.load(TaskNo(unknown)).await.unwrap(), None);
    }
}

pub async fn an_id_is_taken_once_for_an_owner_and_agent(store: &dyn Store) {
    for (name, expected) in [
        (T1, "up to 1"),
        (T1, "exists: t1"),
        (["ann", "echo", "t1", "c2"], "exists: t1"),
        (["ann", "other", "t1", "c1"], "up to 1"),
        (["bob", "echo", "t1", "c1"], "up to 1"),
        (["ann", "echo", "T1", "c1"], "up to 1"),
        (["bob", "echo", "t1", "c9"], "exists: t1"),
    ] {
        assert_eq!(say(start(store, name, None, 10, &[]).await), expected, "{name:?}");
    }
    assert_eq!(list(store, all_of("ann")).await.total, 3);
    assert_eq!(find(store, "ann", Some("echo"), "t1").await.unwrap().context, context("c1"));
}

pub async fn a_key_alone_decides(store: &dyn Store) {
    for (name, with, expected) in [
        (["ann", "echo", "t1", "c1"], Some("k"), "up to 1"),
        (["ann", "echo", "t2", "c1"], Some("k"), "exists: t1"),
        (["ann", "echo", "t1", "c1"], Some("k"), "exists: t1"),
        (["ann", "echo", "t1", "c1"], Some("k2"), "exists: t1"),
        (["ann", "echo", "t2", "c1"], Some("k2"), "up to 1"),
        (["ann", "other", "t3", "c1"], Some("k"), "up to 1"),
        (["bob", "echo", "t4", "c1"], Some("k"), "up to 1"),
        (["ann", "echo", "t5", "c1"], None, "up to 1"),
    ] {
        assert_eq!(say(start(store, name, with, 10, &[]).await), expected, "{name:?} with {with:?}");
    }
    for (of, by, name, expected) in [
        ("ann", "echo", "k", Some("t1")),
        ("ann", "echo", "k2", Some("t2")),
        ("ann", "other", "k", Some("t3")),
        ("bob", "echo", "k", Some("t4")),
        ("bob", "other", "k", None),
        ("ann", "echo", "k3", None),
    ] {
        let found = store.find_by_key(&owner(of), &agent(by), &key(name)).await.unwrap();
        assert_eq!(found.map(|row| row.task), expected.map(task), "{of} {by} {name}");
    }
}

pub async fn a_new_task_begins_with_its_creation(store: &dyn Store) {
    let (ann, echo, t1, c1) = (owner("ann"), agent("echo"), task("t1"), context("c1"));
    let (creation, working) = (created(10), status(State::Working, 20));
    let wrong: [(&[&Event], u64); 4] =
        [(&[], 0), (&[&working], 0), (&[&creation], 1), (&[&creation, &working, &creation], 0)];
    for (events, after) in wrong {
        let new = NewTask {
            owner: &ann,
            agent: &echo,
            task: &t1,
            context: &c1,
            born: Birth(3),
            key: None,
            send_digest: None,
        };
        let append = Append {
            target: AppendTarget::New(new),
            events,
            after,
            snapshot: None,
            side_rows: &[],
            ownership: Ownership::default(),
        };
        assert_eq!(say(store.append(append).await), "failed", "{events:?} after {after}");
    }
    assert_eq!(find(store, "ann", None, "t1").await, None);
}

pub async fn carried_json_stays_byte_exact(store: &dyn Store) {
    let texts = ["5", "5.0", "12345678901234567", r#"{"b":1,"a":1e3,"a":2}"#, "1e999", "[ 1 ,\t2 ]", "\"\\u00e9\""];
    for (round, text) in texts.into_iter().enumerate() {
        let carried = || Json::parse(text).unwrap();
        let data = Part { metadata: Some(carried()), ..Part::from(Content::Data(carried())) };
        let said = Message { parts: vec![data], metadata: Some(carried()), ..message("") };
        let event =
            Event::Created(Created { message: said.into(), metadata: Some(carried()), note: None, time: at(0) });
        let (ann, echo, c1, id) = (owner("ann"), agent("echo"), context("c1"), task(&format!("t{round}")));
        let new = NewTask {
            owner: &ann,
            agent: &echo,
            task: &id,
            context: &c1,
            born: Birth(0),
            key: None,
            send_digest: None,
        };
        let append = Append {
            target: AppendTarget::New(new),
            events: &[&event],
            after: 0,
            snapshot: None,
            side_rows: &[],
            ownership: Ownership::default(),
        };
        let no = store.append(append).await.unwrap().task;
        assert_eq!(events(store, no).await, [event], "{text}");
        let folded = load(store, no).await;
        assert_eq!(folded.metadata.unwrap().as_str(), text);
        assert_eq!(folded.history[0].parts[0].content, Content::Data(carried()));
    }
}
