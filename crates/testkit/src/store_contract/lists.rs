//! Lists: their order, their pages and their totals.

use sabir_model::{Cursor, State, Task, Wanted};
use sabir_store::{Others, Query, Store};

use super::fixture::*;

async fn listed(store: &dyn Store, query: Query) -> String {
    ids(&list(store, query).await.tasks)
}

fn behind(last: &Task) -> Option<Cursor> {
    Some(Cursor { time: last.status.time, task: last.id.clone(), agent: last.agent.clone(), number: None })
}

pub async fn the_newest_status_comes_first(store: &dyn Store) {
    let first = create(store, ["ann", "echo", "t1", "c1"], 10).await;
    create(store, ["ann", "other", "t2", "c2"], 20).await;
    create(store, ["ann", "echo", "t3", "c1"], 15).await;
    assert_eq!(listed(store, all_of("ann")).await, "t2 t3 t1");
    push(store, first, 1, &[chunk("a")]).await.unwrap();
    assert_eq!(listed(store, all_of("ann")).await, "t2 t3 t1");
    push(store, first, 2, &[status(State::Working, 30)]).await.unwrap();
    assert_eq!(listed(store, all_of("ann")).await, "t1 t2 t3");
    // What is listed is the task as of its last event.
    let tasks = list(store, all_of("ann")).await.tasks;
    assert_eq!(tasks[0], load(store, first).await);
    assert_eq!((tasks[0].seq, tasks[0].artifacts.len()), (3, 1));
}

pub async fn equal_times_are_ordered_by_id(store: &dyn Store) {
    for (by, id) in [("echo", "b"), ("other", "c"), ("echo", "a"), ("echo", "é"), ("other", "B"), ("echo", "aa")] {
        create(store, ["ann", by, id, "c1"], 10).await;
    }
    assert_eq!(listed(store, all_of("ann")).await, "é c b aa a B");
    let query = Query { context: Some(context("c1")), ..all_of("ann") };
    assert_eq!(listed(store, query).await, "é c b aa a B");
    let from = Some(Cursor { time: at(10), task: task("b"), agent: agent("echo"), number: None });
    assert_eq!(listed(store, Query { from, ..all_of("ann") }).await, "aa a B");
}

pub async fn pages_make_up_the_whole(store: &dyn Store) {
    for number in 0..23 {
        let (by, id) = (["echo", "other", "third"][number % 3], format!("t{number:02}"));
        let state = State::ALL[number % 5];
        create_in(store, ["ann", by, &id, "c1"], state, (number as i64 * 7) % 5).await;
    }
    let filters = [
        all_of("ann"),
        Query { agent: Some(agent("echo")), ..all_of("ann") },
        Query { state: Some(State::Working), ..all_of("ann") },
        Query { state: Some(State::Completed), ..all_of("ann") },
        Query { context: Some(context("c1")), ..all_of("ann") },
        Query { since: Some(at(2)), ..all_of("ann") },
    ];
    for query in filters {
        let whole = list(store, query.clone()).await;
        assert!(!whole.more && whole.total == whole.tasks.len() as u64);
        for limit in [1, 2, 5, 22, 23, 24] {
            let (mut pages, mut from) = (Vec::new(), None);
            loop {
                let page = list(store, Query { from, limit, ..query.clone() }).await;
                assert!(page.tasks.len() <= limit && page.total == whole.total, "{query:?} by {limit}");
                from = page.tasks.last().and_then(behind);
                pages.extend(page.tasks);
                if !page.more {
                    break;
                }
            }
            assert_eq!(ids(&pages), ids(&whole.tasks), "{query:?} by {limit}");
        }
    }
}

pub async fn a_cursor_stays_good_while_tasks_change(store: &dyn Store) {
    for (id, moment) in [("t1", 10), ("t2", 20), ("t3", 30), ("t4", 40)] {
        create(store, ["ann", "echo", id, "c1"], moment).await;
    }
    let page = list(store, Query { limit: 2, ..all_of("ann") }).await;
    assert_eq!((ids(&page.tasks).as_str(), page.more, page.total), ("t4 t3", true, 4));
    let from = behind(&page.tasks[1]);
    // The task that the cursor names moves to the front, and another one is made.
    let moved = find(store, "ann", None, "t3").await.unwrap();
    push(store, moved.no, 1, &[status(State::Completed, 50)]).await.unwrap();
    create(store, ["ann", "echo", "t5", "c1"], 60).await;
    let page = list(store, Query { limit: 2, from, ..all_of("ann") }).await;
    assert_eq!((ids(&page.tasks).as_str(), page.more, page.total), ("t2 t1", false, 5));
}

pub async fn equal_places_at_two_agents_are_not_skipped(store: &dyn Store) {
    create(store, ["ann", "echo", "new", "c1"], 20).await;
    create(store, ["ann", "echo", "same", "c1"], 10).await;
    create(store, ["ann", "other", "same", "c1"], 10).await;
    create(store, ["ann", "other", "old", "c1"], 0).await;
    for context in [None, Some(context("c1"))] {
        for limit in [1, 2, 3, 4] {
            let (mut pages, mut from) = (Vec::new(), None);
            loop {
                let page = list(store, Query { context: context.clone(), limit, from, ..all_of("ann") }).await;
                from = page.tasks.last().and_then(behind);
                pages.extend(page.tasks.iter().map(|task| format!("{} of {}", task.id, task.agent)));
                if !page.more {
                    break;
                }
            }
            assert_eq!(pages, ["new of echo", "same of other", "same of echo", "old of other"], "by {limit}");
        }
    }
}

pub async fn tasks_of_all_owners_make_up_one_list(store: &dyn Store) {
    // Ids, times and agents repeat over the owners, so that only the numbers tell some places apart.
    for number in 0..60usize {
        let (of, by) = (["ann", "bob", "", "cy"][number % 4], ["echo", "other"][number / 4 % 2]);
        let (id, place) = (format!("t{}", number / 8), ["c1", "c2"][number % 2]);
        let (state, moment) = (State::ALL[number / 5 % 8], (number / 20) as i64);
        create_in(store, [of, by, &id, place], state, moment).await;
    }
    let all = Query { others: Others::All, ..all_of("ann") };
    let filters = [
        all.clone(),
        Query { agent: Some(agent("other")), ..all.clone() },
        Query { state: Some(State::Working), ..all.clone() },
        Query { state: Some(State::Completed), ..all.clone() },
        Query { context: Some(context("c1")), ..all.clone() },
        Query { context: Some(context("c1")), state: Some(State::Failed), ..all.clone() },
        Query { since: Some(at(1)), ..all.clone() },
        Query { since: Some(at(1)), state: Some(State::Completed), ..all.clone() },
        Query { agent: Some(agent("none")), ..all.clone() },
    ];
    assert_eq!(list(store, all).await.total, 60);
    for query in filters {
        let whole = list(store, query.clone()).await;
        assert!(!whole.more && whole.total == whole.tasks.len() as u64, "{query:?}");
        let mut expected = Vec::new();
        for of in ["ann", "bob", "", "cy"] {
            let own = Query { owner: owner(of), others: Others::None, ..query.clone() };
            expected.extend(list(store, own).await.tasks);
        }
        assert_eq!(whole.tasks.len(), expected.len(), "{query:?}");
        assert!(expected.iter().all(|task| whole.tasks.contains(task)), "{query:?}");
        for limit in [1, 2, 7, 59, 60, 61] {
            let (mut pages, mut from) = (Vec::new(), None);
            loop {
                let page = list(store, Query { from, limit, ..query.clone() }).await;
                assert!(page.tasks.len() <= limit && page.total == whole.total, "{query:?} by {limit}");
                from = page.tasks.last().and_then(behind);
                let number = page.last.map(|no| no.0);
                from = from.map(|from| Cursor { number, ..from });
                pages.extend(page.tasks);
                if !page.more {
                    break;
                }
            }
            assert_eq!(pages, whole.tasks, "{query:?} by {limit}");
        }
    }
}

pub async fn only_some_agents_of_the_owner_are_listed(store: &dyn Store) {
    for (number, by) in ["echo", "other", "third", "other"].into_iter().enumerate() {
        create(store, ["ann", by, &format!("t{number}"), "c1"], number as i64).await;
    }
    let some =
        |agents: &[&str]| Query { own_agents: Some(agents.iter().map(|name| agent(name)).collect()), ..all_of("ann") };
    for (query, expected) in [
        (some(&["echo", "third", "none"]), "t2 t0"),
        (some(&["other"]), "t3 t1"),
        (some(&[]), ""),
        (Query { agent: Some(agent("other")), ..some(&["echo"]) }, ""),
    ] {
        for context in [None, Some(context("c1"))] {
            for since in [None, Some(at(0))] {
                let query = Query { context: context.clone(), since, ..query.clone() };
                let listing = list(store, query.clone()).await;
                assert_eq!(ids(&listing.tasks), expected, "{query:?}");
                assert_eq!(listing.total, listing.tasks.len() as u64, "{query:?}");
            }
        }
    }
}

pub async fn tasks_that_wait_for_an_approver_are_listed_beside_the_owners(store: &dyn Store) {
    for (of, by, id, approver, moment) in [
        ("ann", "echo", "own", None, 10),
        ("bob", "echo", "t1", Some("ops"), 20),
        ("bob", "echo", "t2", Some("law"), 30),
        ("bob", "other", "t3", Some("ops"), 40),
        ("cy", "echo", "t1", Some("ops"), 20),
        ("cy", "echo", "t4", None, 60),
        ("ann", "echo", "mine", Some("ops"), 70),
        // Another tenant has approvers of its own.
        ("globex/dan", "echo", "t6", Some("ops"), 75),
    ] {
        let asks = permission_question(approver, moment);
        start(store, [of, by, id, "c1"], None, moment, &[asks]).await.unwrap();
    }
    // An answered question is no longer listed.
    let answered = start(store, ["cy", "echo", "t5", "c1"], None, 80, &[permission_question(Some("ops"), 80)]).await;
    push(store, answered.unwrap().task, 2, &[status(State::Working, 90)]).await.unwrap();
    let scopes = |pairs: &[(&str, &str)]| {
        Others::ForApproval(pairs.iter().map(|(name, scope)| (agent(name), (*scope).to_owned())).collect())
    };
    let none: Option<Vec<_>> = Some(Vec::new());
    let base = all_of("ann");
    for (query, expected) in [
        (Query { others: scopes(&[("echo", "ops")]), ..base.clone() }, "mine t1 t1 own"),
        (Query { others: scopes(&[("echo", "ops"), ("other", "ops")]), ..base.clone() }, "mine t3 t1 t1 own"),
        (Query { others: scopes(&[("echo", "law")]), ..base.clone() }, "mine t2 own"),
        // Who may not read its own tasks there sees those that it may approve.
        (Query { own_agents: none.clone(), others: scopes(&[("echo", "ops")]), ..base.clone() }, "mine t1 t1"),
        (Query { agent: Some(agent("other")), others: scopes(&[("echo", "ops")]), ..base.clone() }, ""),
        (Query { state: Some(State::Working), others: scopes(&[("echo", "ops")]), ..base.clone() }, ""),
        (Query { context: Some(context("c2")), others: scopes(&[("echo", "ops")]), ..base.clone() }, ""),
        (Query { since: Some(at(20)), others: scopes(&[("echo", "ops")]), ..base.clone() }, "mine t1 t1"),
        (Query { others: scopes(&[("echo", "ops")]), ..all_of("globex/eve") }, "t6"),
    ] {
        let whole = list(store, query.clone()).await;
        assert_eq!(ids(&whole.tasks), expected, "{query:?}");
        assert_eq!(whole.total, whole.tasks.len() as u64, "{query:?}");
        let (mut pages, mut from) = (Vec::new(), None);
        loop {
            let page = list(store, Query { from, limit: 1, ..query.clone() }).await;
            let number = page.last.map(|no| no.0);
            from = page.tasks.last().and_then(behind).map(|from| Cursor { number, ..from });
            pages.extend(page.tasks);
            if !page.more {
                break;
            }
        }
        assert_eq!(pages, whole.tasks, "{query:?}");
    }
}

pub async fn every_filter_gives_its_page_and_total(store: &dyn Store) {
    for number in 0..96usize {
        let (of, by) = (["ann", "bob"][number % 2], ["echo", "other"][number / 2 % 2]);
        let (place, id) = (["c1", "c2", "c3"][number % 3], format!("t{number}"));
        let (state, moment) = (State::ALL[number / 3 % 8], (number * 37 % 50) as i64);
        create_in(store, [of, by, &id, place], state, moment).await;
    }
    let everything = list(store, all_of("ann")).await.tasks;
    assert_eq!(everything.len(), 48);
    let states = State::ALL.map(Some).into_iter().chain([None]);
    for state in states {
        for by in [None, Some("echo"), Some("other"), Some("nobody")] {
            for place in [None, Some("c1"), Some("c3"), Some("c9")] {
                for since in [None, Some(0), Some(25), Some(49), Some(99)] {
                    let matches = |task: &&Task| {
                        state.is_none_or(|state| task.status.state == state)
                            && by.is_none_or(|by| task.agent == agent(by))
                            && place.is_none_or(|place| task.context == context(place))
                            && since.is_none_or(|since| task.status.time >= at(since))
                    };
                    let expected: Vec<&Task> = everything.iter().filter(matches).collect();
                    let query = Query {
                        agent: by.map(agent),
                        context: place.map(context),
                        state,
                        since: since.map(at),
                        limit: 3,
                        ..all_of("ann")
                    };
                    let page = list(store, query.clone()).await;
                    assert_eq!(page.total, expected.len() as u64, "{query:?}");
                    assert_eq!(page.more, expected.len() > 3, "{query:?}");
                    assert_eq!(ids(&page.tasks), ids(expected.into_iter().take(3)), "{query:?}");
                }
            }
        }
    }
}

pub async fn totals_follow_the_states(store: &dyn Store) {
    let totals = async |states: &[State]| {
        let mut totals = Vec::new();
        for state in states {
            totals.push(list(store, Query { state: Some(*state), ..all_of("ann") }).await.total);
        }
        totals
    };
    let states = [State::Submitted, State::Working, State::Completed];
    let first = create(store, ["ann", "echo", "t1", "c1"], 0).await;
    let second = create(store, ["ann", "other", "t2", "c1"], 0).await;
    assert_eq!(totals(&states).await, [2, 0, 0]);
    push(store, first, 1, &[status(State::Working, 1)]).await.unwrap();
    assert_eq!(totals(&states).await, [1, 1, 0]);
    push(store, first, 2, &[status(State::Working, 2), chunk("a")]).await.unwrap();
    assert_eq!(totals(&states).await, [1, 1, 0]);
    push(store, second, 1, &[status(State::Working, 3), status(State::Completed, 4)]).await.unwrap();
    assert_eq!(totals(&states).await, [0, 1, 1]);
    assert_eq!(list(store, all_of("ann")).await.total, 2);
}

pub async fn artifacts_come_only_where_they_are_wanted(store: &dyn Store) {
    let long = chunk(&"x".repeat(5_000));
    let long = std::slice::from_ref(&long);
    start(store, ["ann", "echo", "t1", "c1"], None, 1, &[chunk("a"), status(State::Completed, 1)]).await.unwrap();
    let no = start(store, ["ann", "echo", "t2", "c1"], None, 2, long).await.unwrap().task;
    let question = status_with_message(State::InputRequired, 3, "which?");
    for (after, events) in [(2, &[question][..]), (3, long), (4, long)] {
        push(store, no, after, events).await.unwrap();
    }
    let whole = list(store, all_of("ann")).await.tasks;
    assert_eq!((ids(&whole).as_str(), whole[0].artifacts.len(), whole[0].seq), ("t2 t1", 1, 5));
    // Nothing else is missing; only what is whole has a number.
    let expected: Vec<Task> =
        whole.into_iter().map(|task| Task { artifacts: Vec::new(), open: Vec::new(), seq: 0, ..task }).collect();
    for context in [None, Some(context("c1"))] {
        let query = Query { context, artifacts: Wanted::No, ..all_of("ann") };
        assert_eq!(list(store, query).await.tasks, expected);
    }
}

pub async fn the_newest_messages_are_listed(store: &dyn Store) {
    let no = create(store, ["ann", "echo", "t1", "c1"], 0).await;
    // Long ones, so that a store which keeps a few at hand must look for the others.
    for turn in 0..20_u64 {
        let question = status_with_message(State::InputRequired, 1, &format!("question {turn}"));
        let answer = status_with_input(State::Working, 2, &format!("answer {turn} {}", "x".repeat(300)));
        push(store, no, 1 + 2 * turn, &[question, answer]).await.unwrap();
    }
    let whole = load(store, no).await;
    assert_eq!(whole.history.len(), 41);
    for artifacts in [Wanted::Yes, Wanted::No] {
        for history in [None, Some(0), Some(1), Some(5), Some(40), Some(41), Some(99)] {
            let query = Query { artifacts, history, ..all_of("ann") };
            let expected = history.map_or(41, |wanted| wanted as usize).min(41);
            let listed = list(store, query).await.tasks.remove(0);
            assert_eq!(listed.history, whole.history[41 - expected..], "{artifacts:?} {history:?}");
            assert_eq!(listed.status, whole.status);
        }
    }
}

pub async fn a_page_ends_by_its_bytes(store: &dyn Store) {
    for (id, moment, length) in [("t1", 1, 50_000), ("t2", 2, 100), ("t3", 3, 9_000), ("t4", 4, 9_000), ("t5", 5, 100)]
    {
        let name = ["ann", "echo", id, "c1"];
        start(store, name, None, moment, &[chunk(&"x".repeat(length))]).await.unwrap();
    }
    for (max_bytes, artifacts, expected) in [
        (usize::MAX, Wanted::Yes, "t5 t4 t3 t2 t1"),
        (12_000, Wanted::Yes, "t5 t4, t3 t2, t1"),
        (22_000, Wanted::Yes, "t5 t4 t3 t2, t1"),
        // The first task is always there, however large it is.
        (0, Wanted::Yes, "t5, t4, t3, t2, t1"),
        // What is not wanted does not count.
        (12_000, Wanted::No, "t5 t4 t3 t2 t1"),
    ] {
        for context in [None, Some(context("c1"))] {
            let (mut pages, mut from) = (Vec::new(), None);
            loop {
                let context = context.clone();
                let page = list(store, Query { from, max_bytes, artifacts, context, ..all_of("ann") }).await;
                assert_eq!(page.total, 5);
                from = page.tasks.last().and_then(behind);
                pages.push(ids(&page.tasks));
                if !page.more {
                    break;
                }
            }
            assert_eq!(pages.join(", "), expected, "{max_bytes} {artifacts:?}");
        }
    }
    let shown = async |max_bytes| {
        let tasks = store.conversation(&owner("ann"), &agent("echo"), &context("c1"), 9, max_bytes).await.unwrap();
        ids(&tasks)
    };
    assert_eq!(shown(usize::MAX).await, "t1 t2 t3 t4 t5");
    assert_eq!(shown(22_000).await, "t2 t3 t4 t5");
    assert_eq!(shown(12_000).await, "t4 t5");
    assert_eq!(shown(0).await, "t5");
}

pub async fn a_page_of_a_hundred(store: &dyn Store) {
    let text = chunk(&"x".repeat(1_500));
    for number in 0..120 {
        let (by, id) = (["echo", "other"][number % 2], format!("t{number:03}"));
        let name = ["ann", by, &id, "c1"];
        start(store, name, None, number as i64, std::slice::from_ref(&text)).await.unwrap();
    }
    for artifacts in [Wanted::Yes, Wanted::No] {
        let page = list(store, Query { limit: 100, artifacts, ..all_of("ann") }).await;
        assert_eq!((page.tasks.len(), page.more, page.total), (100, true, 120));
        assert_eq!((page.tasks[0].id.as_str(), page.tasks[99].id.as_str()), ("t119", "t020"));
        let query = Query { agent: Some(agent("echo")), limit: 100, artifacts, ..all_of("ann") };
        let page = list(store, query).await;
        assert_eq!((page.tasks.len(), page.more, page.total), (60, false, 60));
    }
}
