//! Tests that lookups and lists use their indexes, so that their cost does not grow with the number of tasks.

use rusqlite::Connection;
use sabir_model::{AgentId, ContextId, Cursor, Owner, State, TaskId, Timestamp, Wanted};

use crate::{Others, Query, SummaryQuery};

use super::{audit, list, list_of_owners, outbox, reader, schema, stored_bytes, summaries, sweep, webhooks};

const EVENTS_OF_A_TASK: &str = "SEARCH events USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)";

#[test]
fn lookups_go_straight_to_their_rows() {
    for (sql, expected) in [
        (reader::FIND, "SEARCH tasks USING INDEX tasks_id (owner=? AND id=? AND agent=?)"),
        // The sort is of the few agents that have a task with this id.
        (reader::FIND_ANYWHERE, "SEARCH tasks USING INDEX tasks_id (owner=? AND id=?); USE TEMP B-TREE FOR ORDER BY"),
        (
            reader::FIND_BY_KEY,
            "SEARCH tasks USING INTEGER PRIMARY KEY (rowid=?); SEARCH keys USING PRIMARY KEY (owner=? AND agent=? AND key=?)",
        ),
        (reader::WAITING, "SEARCH tasks USING INDEX tasks_open (owner=? AND context=?)"),
        (reader::WAITING_SINCE, "SEARCH tasks USING INDEX tasks_waiting (time<?)"),
        (reader::CONVERSATION, "SEARCH tasks USING INDEX tasks_context (owner=? AND context=?)"),
        (
            reader::FIND_OF_ALL,
            "SEARCH tasks USING INDEX tasks_id (owner=? AND id=?); LIST SUBQUERY 2; SCAN tallies; USE TEMP B-TREE FOR ORDER BY",
        ),
        (reader::TASKS_OF, "SEARCH tasks USING INDEX tasks_id (owner=? AND (id,agent)>(?,?))"),
        (list_of_owners::OWNERS, "SCAN tallies"),
        // Scans an index that has only waiting tasks.
        (list_of_owners::AWAITING, "SCAN tasks USING INDEX tasks_waiting"),
        // Scans an index that has only unfinished tasks.
        (reader::UNFINISHED, "SCAN tasks USING INDEX tasks_open; USE TEMP B-TREE FOR ORDER BY"),
        (reader::EVENTS, EVENTS_OF_A_TASK),
        // Each row is read once, and nothing is sorted.
        (stored_bytes::EVENTS, "SCAN events; SEARCH tasks USING INTEGER PRIMARY KEY (rowid=?)"),
        (stored_bytes::INBOX, "SCAN inbox; SEARCH tasks USING INTEGER PRIMARY KEY (rowid=?)"),
        (summaries::COUNTED, "SCAN tallies"),
        (summaries::SETTLED, "SEARCH tasks USING INDEX tasks_settled (time>? AND time<?)"),
        (summaries::OPEN, "SCAN tasks USING INDEX tasks_open"),
        (summaries::BYTES_OF_LOG, EVENTS_OF_A_TASK),
        (list::AGENTS, "SEARCH tallies USING PRIMARY KEY (owner=?)"),
        (list::SUM_COUNTS, "SEARCH tallies USING PRIMARY KEY (owner=?)"),
        (
            sweep::OLDEST,
            "SEARCH tasks USING INDEX tasks_settled (time>?); SEARCH webhooks USING PRIMARY KEY (at_rest=? AND no=?)",
        ),
        (audit::ENTRIES, "SEARCH audit USING INTEGER PRIMARY KEY (rowid>?)"),
        (outbox::WEBHOOKS, "SEARCH webhooks USING PRIMARY KEY (at_rest=? AND no=?); USE TEMP B-TREE FOR ORDER BY"),
        (outbox::DUE, "SEARCH webhooks USING PRIMARY KEY (at_rest=? AND no=? AND number=?)"),
        (
            outbox::DUE_RETRY,
            "SEARCH given_up USING INTEGER PRIMARY KEY (rowid=?); SEARCH webhooks USING PRIMARY KEY (at_rest=? AND no=?)",
        ),
        (
            webhooks::LIVE,
            "SEARCH webhooks USING PRIMARY KEY (at_rest=?); SEARCH tasks USING INTEGER PRIMARY KEY (rowid=?) LEFT-JOIN",
        ),
        (
            webhooks::RETRIES,
            "SEARCH given_up USING INDEX given_up_due (due>?); SEARCH webhooks USING PRIMARY KEY (at_rest=? AND no=?)",
        ),
    ] {
        let mut plan = plan(sql);
        plan.retain(|step| !step.contains("SCALAR SUBQUERY"));
        // The subquery for the number of the last event.
        if sql != reader::EVENTS && sql != summaries::BYTES_OF_LOG {
            plan.retain(|step| step != EVENTS_OF_A_TASK);
        }
        assert_eq!(plan.join("; "), expected, "{sql}");
    }
}

#[test]
fn contexts_and_prefixes_are_found_by_their_indexes() {
    let all = SummaryQuery::all();
    let prefix = SummaryQuery { id_prefix: Some("t".to_owned()), ..all.clone() };
    let context = SummaryQuery { context: Some(ContextId::parse("c").unwrap()), ..prefix.clone() };
    for (query, expected) in [
        (prefix, "SEARCH tasks USING INDEX tasks_id (owner=? AND id>? AND id<?)"),
        (context, "SEARCH tasks USING INDEX tasks_context (owner=? AND context=?)"),
    ] {
        let steps = plan(&summaries::name_scan(&query).0);
        assert_eq!(steps[0], expected, "{steps:?}");
    }
}

#[test]
fn lists_walk_an_index_in_its_order() {
    for state in [None, Some(State::Completed), Some(State::Working)] {
        for context in [None, Some("c")] {
            for since in [None, Some(1)] {
                for from in [None, Some(1)] {
                    let query = Query {
                        owner: Owner::anonymous(),
                        own_agents: None,
                        others: Others::None,
                        agent: None,
                        context: context.map(|text| ContextId::parse(text).unwrap()),
                        state,
                        since: since.map(Timestamp::from_millis),
                        from: from.map(|time| Cursor {
                            time: Timestamp::from_millis(time),
                            task: TaskId::parse("t").unwrap(),
                            agent: AgentId::parse("b").unwrap(),
                            number: None,
                        }),
                        limit: 10,
                        max_bytes: 1 << 20,
                        artifacts: Wanted::No,
                        history: None,
                    };
                    for sql in list::sql(&query, &AgentId::parse("a").unwrap()) {
                        check(&sql);
                    }
                }
            }
        }
    }
}

/// One search of one index, and at most a sort of rows with equal times.
fn check(sql: &str) {
    let plan = plan(sql);
    assert!(plan[0].starts_with("SEARCH tasks USING "), "{plan:?} for {sql}");
    for step in &plan[1..] {
        let sorts_ties = step.starts_with("USE TEMP B-TREE FOR LAST") && sql.contains("tasks_context");
        assert!(sorts_ties, "{plan:?} for {sql}");
    }
}

fn plan(sql: &str) -> Vec<String> {
    let mut conn = Connection::open_in_memory().unwrap();
    schema::migrate(&mut conn, 0).unwrap();
    let mut explain = conn.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
    let steps = explain.raw_query().mapped(|row| row.get("detail")).collect::<Result<_, _>>();
    steps.unwrap()
}
