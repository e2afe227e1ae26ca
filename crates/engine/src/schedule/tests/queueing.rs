//! The order of waiting tasks, the bounds of queues, and the wait reasons.

use super::*;

#[test]
fn slots_and_queue_are_bounded() {
    let schedule = alone(2, 1);
    let scheduled: Vec<Scheduled> = ["a", "b", "c", "d"].into_iter().map(|c| schedule.enter(task(c))).collect();
    assert_eq!(scheduled.iter().map(say).collect::<Vec<_>>(), ["now", "now", "later", "full"]);
}

#[test]
fn a_context_runs_one_at_a_time_in_order() {
    let schedule = alone(10, 10);
    let first = schedule.enter(task("a"));
    let (mut second, mut third) = (schedule.enter(task("a")), schedule.enter(task("a")));
    assert_eq!(say(&schedule.enter(task("b"))), "now");
    assert!(started(&mut second).is_none());
    drop(first);
    let permit = started(&mut second).expect("the second is next");
    assert!(started(&mut third).is_none());
    drop(permit);
    assert!(started(&mut third).is_some());
}

#[test]
fn an_abandoned_entry_is_skipped() {
    let schedule = alone(1, 10);
    let first = schedule.enter(task("a"));
    let second = schedule.enter(task("b"));
    let mut third = schedule.enter(task("c"));
    drop(second);
    drop(first);
    assert!(started(&mut third).is_some());
    assert_eq!(counts(&schedule), (0, 0, 0));
    assert!(lock(&schedule.state).contexts.is_empty());
}

#[test]
fn an_abandoned_entry_makes_room_in_the_queue() {
    let schedule = alone(1, 3);
    let _running = schedule.enter(task("a"));
    let gone: Vec<Scheduled> = ["a", "b", "c"].into_iter().map(|c| schedule.enter(task(c))).collect();
    assert_eq!(say(&schedule.enter(task("d"))), "full");
    drop(gone);
    let scheduled: Vec<Scheduled> = ["a", "b", "c", "d"].into_iter().map(|c| schedule.enter(task(c))).collect();
    assert_eq!(scheduled.iter().map(say).collect::<Vec<_>>(), ["later", "later", "later", "full"]);
    assert_eq!(say(&schedule.enter_recovered(task("d"))), "later");
}

#[test]
fn thousands_of_abandoned_entries_are_skipped_at_once() {
    let schedule = alone(1, 100_000);
    let running = schedule.enter(task("a"));
    let gone: Vec<Scheduled> = (0..100_000).map(|i| schedule.enter(task(&format!("c{i}")))).collect();
    drop(gone);
    drop(running);
    assert_eq!(counts(&schedule), (0, 0, 0));
    assert!(lock(&schedule.state).contexts.is_empty());
}

#[test]
fn a_new_task_is_refused_without_a_scan_of_the_queue() {
    let schedule = alone(1, 10_000);
    let _running = schedule.enter(task("a"));
    let mut scheduled: Vec<Scheduled> = (0..10_000).map(|i| schedule.enter(task(&format!("c{i}")))).collect();
    assert_eq!(say(&schedule.enter(task("late"))), "full");
    // A task that leaves makes room at once, although its entry stays in the queue for a while.
    scheduled.truncate(9_999);
    let state = || {
        let state = lock(&schedule.state);
        (state.queued, state.abandoned, state.agents[0].wanting.len())
    };
    assert_eq!(state(), (9_999, 1, 10_000));
    assert_eq!(say(&schedule.enter(task("late"))), "later");
    scheduled.clear();
    let (waiting, gone, in_queue) = state();
    assert!(waiting == 0 && gone <= MANY_ABANDONED && in_queue == gone, "{waiting} {gone} {in_queue}");
}

#[test]
fn a_waiting_task_knows_its_wait_reason() {
    let schedule = alone(2, 10);
    let first = now(schedule.enter(task("a")));
    let other = now(schedule.enter(task("b")));
    let second = schedule.enter(task("a"));
    assert_eq!(waits_for(&second), "task of a");
    assert_eq!(waits_for(&schedule.enter(task("c"))), "2 slots");
    first.park();
    assert_eq!(waits_for(&second), "task of a, which asks");
    let _third = schedule.enter(task("c"));
    assert!(matches!(first.reacquire_slot(), Reacquired::Later(_)));
    first.unpark();
    assert_eq!(waits_for(&second), "task of a");
    drop(first);
    assert_eq!(waits_for(&second), "2 slots");
    drop(other);
}

#[test]
fn a_context_is_shared_by_agents_that_execute_its_tasks() {
    let schedule = schedule(&[(1, 10, 10), (1, 10, 10)]);
    let _busy = now(schedule.enter(executed_by(0, "x")));
    let first = schedule.enter(executed_by(0, "a"));
    let mut second = schedule.enter(executed_by(1, "a"));
    assert!(started(&mut second).is_none(), "the first task of the context waits for its agent");
    drop(first);
    assert!(started(&mut second).is_some(), "its own agent has a slot");
}
