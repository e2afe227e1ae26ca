//! What operators see of all tasks: summaries, counts and sizes.

use sabir_model::State;
use sabir_store::{Others, Query, Store, SummaryPage, SummaryQuery, TASK_ROW_BYTES, TaskNo};

use super::fixture::*;

async fn summaries(store: &dyn Store, query: SummaryQuery) -> SummaryPage {
    store.summaries(query).await.expect("summaries")
}

async fn sixty_tasks(store: &dyn Store) {
    // Ids, times and agents repeat over the owners, so that only the numbers tell some places apart.
    for number in 0..60usize {
        let (of, by) = (["ann", "bob", "", "cy"][number % 4], ["echo", "other"][number / 4 % 2]);
        let (id, place) = (format!("t{}", number / 8), ["c1", "c2"][number % 2]);
        let (state, moment) = (State::ALL[number / 5 % 8], (number / 20) as i64);
        create_in(store, [of, by, &id, place], state, moment).await;
    }
}

pub async fn summaries_have_the_order_and_the_filters_of_lists(store: &dyn Store) {
    sixty_tasks(store).await;
    let all = SummaryQuery::all();
    let whole = summaries(store, all.clone()).await;
    let listed = list(store, Query { others: Others::All, ..all_of("ann") }).await;
    let row_places: Vec<_> =
        whole.tasks.iter().map(|task| (&task.row.owner, &task.row.agent, &task.row.task)).collect();
    let list_places: Vec<_> = listed.tasks.iter().map(|task| (&task.owner, &task.agent, &task.id)).collect();
    assert_eq!(row_places, list_places);
    let states = |states: &[State]| SummaryQuery { states: Some(states.to_vec()), ..all.clone() };
    for query in [
        all.clone(),
        states(&[State::Working]),
        states(&[State::Completed]),
        states(&[State::Submitted, State::Working, State::InputRequired, State::AuthRequired]),
        states(&[State::Completed, State::Failed]),
        states(&[]),
        SummaryQuery { owner: Some(owner("bob")), ..all.clone() },
        SummaryQuery { agent: Some(agent("other")), ..all.clone() },
        SummaryQuery { agent: Some(agent("none")), ..all.clone() },
        SummaryQuery { owner: Some(owner("cy")), agent: Some(agent("echo")), ..states(&[State::Failed]) },
        SummaryQuery { context: Some(context("c2")), ..all.clone() },
        SummaryQuery { context: Some(context("c2")), owner: Some(owner("bob")), ..states(&[State::Completed]) },
        SummaryQuery { since: Some(at(1)), ..all.clone() },
        SummaryQuery { since: Some(at(1)), before: Some(at(2)), ..states(&[State::Working, State::Completed]) },
        SummaryQuery { id_prefix: Some("t".to_owned()), ..all.clone() },
        SummaryQuery { id_prefix: Some("t3".to_owned()), ..all.clone() },
        SummaryQuery {
            id_prefix: Some("t3".to_owned()),
            agent: Some(agent("echo")),
            since: Some(at(2)),
            ..all.clone()
        },
        SummaryQuery { id_prefix: Some("T".to_owned()), ..all.clone() },
        SummaryQuery { id: Some(task("t3")), ..all.clone() },
        SummaryQuery { id: Some(task("t3")), context: Some(context("c2")), owner: Some(owner("bob")), ..all.clone() },
        SummaryQuery { id: Some(task("t")), ..all.clone() },
    ] {
        let expected: Vec<TaskNo> = whole
            .tasks
            .iter()
            .filter(|task| {
                let row = &task.row;
                query.states.as_ref().is_none_or(|states| states.contains(&row.state))
                    && query.owner.as_ref().is_none_or(|owner| row.owner == *owner)
                    && query.agent.as_ref().is_none_or(|agent| row.agent == *agent)
                    && query.context.as_ref().is_none_or(|context| row.context == *context)
                    && query.since.is_none_or(|since| row.time >= since)
                    && query.before.is_none_or(|before| row.time < before)
                    && query.id.as_ref().is_none_or(|id| row.task == *id)
                    && query.id_prefix.as_ref().is_none_or(|prefix| row.task.as_str().starts_with(prefix.as_str()))
            })
            .map(|task| task.row.no)
            .collect();
        for limit in [1, 7, 60, 1000] {
            let (mut numbers, mut from) = (Vec::new(), None);
            loop {
                let page = summaries(store, SummaryQuery { from, limit, ..query.clone() }).await;
                assert!(page.tasks.len() <= limit, "{query:?} by {limit}");
                from = page.tasks.last().map(|task| task.cursor());
                numbers.extend(page.tasks.iter().map(|task| task.row.no));
                if !page.more {
                    break;
                }
            }
            assert_eq!(numbers, expected, "{query:?} by {limit}");
        }
    }
    a_prefix_of_too_many_tasks_finds_none(store).await;
}

/// Of sixty tasks, eight have the id `t3`, and four the id `t7`.
async fn a_prefix_of_too_many_tasks_finds_none(store: &dyn Store) {
    for (prefix, most, expected) in
        [("t3", 8, 8), ("t3", 7, 0), ("t", 60, 60), ("t", 59, 0), ("t7", 4, 4), ("t8", 0, 0)]
    {
        let query = SummaryQuery { id_prefix: Some(prefix.to_owned()), most_with_prefix: most, ..SummaryQuery::all() };
        let page = summaries(store, query.clone()).await;
        assert_eq!((page.tasks.len(), page.too_many), (expected, expected == 0 && prefix != "t8"), "{prefix} {most}");
        // Other filters make no difference, unless they find the tasks by themselves.
        let of_bob = summaries(store, SummaryQuery { owner: Some(owner("bob")), ..query.clone() }).await;
        assert_eq!(of_bob.too_many, page.too_many, "{prefix} {most}");
        for named in [
            SummaryQuery { context: Some(context("c2")), ..query.clone() },
            SummaryQuery { id: Some(task(prefix)), ..query.clone() },
        ] {
            assert!(!summaries(store, named).await.too_many, "{prefix} {most}");
        }
    }
}

pub async fn summaries_of_very_many_owners_make_up_one_list(store: &dyn Store) {
    for number in 0..1200usize {
        let state = [State::Completed, State::Failed, State::Working, State::InputRequired][number % 4];
        // Many have the same time and the same id.
        let (of, id) = (format!("u{number}"), format!("t{}", number % 7));
        create_in(store, [&of, "echo", &id, "c1"], state, (number / 50) as i64).await;
    }
    let all = SummaryQuery::all();
    for (query, expected) in [
        (all.clone(), 1200),
        (SummaryQuery { states: Some(vec![State::Completed, State::Working]), ..all.clone() }, 600),
        (
            SummaryQuery { states: Some(State::ALL.to_vec()), since: Some(at(3)), before: Some(at(20)), ..all.clone() },
            850,
        ),
        (SummaryQuery { agent: Some(agent("other")), ..all.clone() }, 0),
    ] {
        let (mut places, mut from) = (Vec::new(), None);
        loop {
            let page = summaries(store, SummaryQuery { from, limit: 97, ..query.clone() }).await;
            from = page.tasks.last().map(|task| task.cursor());
            places.extend(page.tasks.into_iter().map(|task| (task.row.time, task.row.task, task.row.no)));
            if !page.more {
                break;
            }
        }
        assert_eq!(places.len(), expected, "{query:?}");
        assert!(places.is_sorted_by(|a, b| a > b), "{query:?}");
    }
}

pub async fn a_summary_has_the_row_the_status_and_the_first_message(store: &dyn Store) {
    let no = create(store, ["ann", "echo", "t1", "c1"], 10).await;
    let mut last = 1;
    let check = async |last: u64, said: Option<String>| {
        let summary = store.summary(no).await.unwrap().expect("a task");
        let row = find(store, "ann", None, "t1").await.unwrap();
        assert_eq!((&summary.row, summary.row.seq), (&row, last));
        assert_eq!(summary.first_message.as_ref().map(|message| message.text()).as_deref(), Some("hello"));
        assert_eq!(summary.status, load(store, no).await.status);
        assert_eq!(summary.status.message.as_ref().map(|message| message.text()), said);
        assert_eq!(summaries(store, SummaryQuery::all()).await.tasks, [summary]);
    };
    check(last, None).await;
    // A log that has left its row, a head that was cut and one that is too long for a row are shown alike.
    for (text, is_input) in
        [("short", false), (&*"x".repeat(1500), true), (&"y".repeat(1500), true), (&"z".repeat(9000), false)]
    {
        let event = match is_input {
            true => status_with_input(State::Working, 20, text),
            false => status_with_message(State::Working, 20, text),
        };
        push(store, no, last, &[event, chunk("a")]).await.unwrap();
        last += 2;
        check(last, (!is_input).then(|| text.to_owned())).await;
    }
    for number in 0..20 {
        push(store, no, last, &[status_with_input(State::Working, 30 + number, &"w".repeat(700))]).await.unwrap();
        last += 1;
    }
    check(last, None).await;
    assert_eq!(store.summary(TaskNo(no.0 + 1)).await.unwrap(), None);
}

pub async fn a_page_of_summaries_ends_by_its_bytes(store: &dyn Store) {
    for (number, id) in ["t1", "t2", "t3"].into_iter().enumerate() {
        let no = create(store, ["ann", "echo", id, "c1"], number as i64).await;
        let text = "x".repeat(1000);
        push(store, no, 1, &[status_with_message(State::Working, 10 + number as i64, &text)]).await.unwrap();
    }
    for (max_bytes, expected) in [(0, "t3"), (3000, "t3 t2"), (9000, "t3 t2 t1")] {
        let page = summaries(store, SummaryQuery { max_bytes, ..SummaryQuery::all() }).await;
        assert_eq!(row_ids(page.tasks.iter().map(|task| &task.row)), expected, "{max_bytes}");
        assert_eq!(page.more, expected != "t3 t2 t1", "{max_bytes}");
    }
}

pub async fn tasks_are_counted_by_agent_and_state(store: &dyn Store) {
    sixty_tasks(store).await;
    let rows = summaries(store, SummaryQuery::all()).await.tasks;
    for of in [None, Some(owner("ann")), Some(owner("nobody"))] {
        let counts = store.task_counts(of.as_ref()).await.unwrap();
        for by in ["echo", "other"] {
            for state in State::ALL {
                let mut found = counts.iter().filter(|count| count.agent == agent(by) && count.state == state);
                let expected = rows.iter().map(|task| &task.row).filter(|row| {
                    row.agent == agent(by) && row.state == state && of.as_ref().is_none_or(|of| row.owner == *of)
                });
                assert_eq!(
                    found.next().map_or(0, |count| count.count),
                    expected.count() as u64,
                    "{of:?} {by} {state:?}"
                );
                assert!(found.next().is_none(), "each is counted once");
            }
        }
    }
}

pub async fn the_bytes_of_one_task_are_what_its_owner_has(store: &dyn Store) {
    let no = create(store, ["ann", "echo", "t1", "c1"], 10).await;
    for last in 1..30 {
        push(store, no, last, &[status_with_message(State::Working, 20, &"x".repeat(300))]).await.unwrap();
        let of_owner = store.stored_bytes().await.unwrap().into_iter().find(|(of, _)| *of == owner("ann"));
        assert_eq!(store.bytes_of(no).await.unwrap(), of_owner.expect("an owner").1);
    }
    assert!(store.bytes_of(no).await.unwrap() > TASK_ROW_BYTES + 29 * 300);
    assert_eq!(store.bytes_of(TaskNo(no.0 + 1)).await.unwrap(), 0);
    let facts = store.facts().await.unwrap();
    assert!(facts.bytes > 29 * 300 && facts.format != Some(0), "{facts:?}");
}
