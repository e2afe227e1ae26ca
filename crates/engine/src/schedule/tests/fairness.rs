//! Owners take turns: positions are counted, not time.

use super::*;

/// A task of this owner in a context of its own, at the first agent.
fn task_of(owner: &str, context: &str) -> SlotRequest {
    let mut request = task(&format!("{owner} {context}"));
    request.context.owner = Owner::new("org", owner);
    request
}

/// Queues one task per word (`alice` is one of hers) and ends one run after the other; returns whose tasks began, in order.
fn order_of(concurrent: usize, owners: &[&str]) -> Vec<String> {
    let schedule = alone(concurrent, 10_000);
    let mut began = Vec::new();
    let mut running = VecDeque::new();
    let mut waiting = VecDeque::new();
    for (at, owner) in owners.iter().enumerate() {
        match schedule.enter(task_of(owner, &at.to_string())) {
            Scheduled::Now(permit) => {
                began.push(format!("{owner} {at}"));
                running.push_back(permit);
            }
            later => waiting.push_back((format!("{owner} {at}"), later)),
        }
    }
    while let Some(permit) = running.pop_front() {
        drop(permit);
        waiting.retain_mut(|(name, scheduled)| match started(scheduled) {
            Some(permit) => {
                began.push(name.clone());
                running.push_back(permit);
                false
            }
            None => true,
        });
    }
    assert!(waiting.is_empty());
    began
}

#[test]
fn owners_take_turns_and_each_keeps_its_order() {
    for (concurrent, arrivals, expected) in [
        (1, "a a a a", "a0 a1 a2 a3"),
        (1, "a a a b", "a0 b3 a1 a2"),
        (1, "a a a b b b", "a0 b3 a1 b4 a2 b5"),
        (1, "a a a a b b c", "a0 b4 c6 a1 b5 a2 a3"),
        (1, "a b c a b c", "a0 b1 c2 a3 b4 c5"),
        (2, "a a a a a b c", "a0 a1 b5 c6 a2 a3 a4"),
        (3, "a a a a b a b", "a0 a1 a2 b4 a3 b6 a5"),
    ] {
        let owners: Vec<&str> = arrivals.split(' ').collect();
        let began: Vec<String> = order_of(concurrent, &owners).iter().map(|name| name.replace(' ', "")).collect();
        assert_eq!(began.join(" "), expected, "{concurrent} {arrivals}");
    }
}

#[test]
fn nine_hundred_tasks_do_not_delay_the_first_task_of_another() {
    let mut owners = vec!["alice"; 901];
    owners.push("bob");
    assert_eq!(order_of(1, &owners)[..3], ["alice 0", "bob 901", "alice 1"]);
}

#[test]
fn a_thousand_owners_get_their_first_task_before_anybody_gets_a_second() {
    let names: Vec<String> = (0..1000).map(|owner| format!("o{owner}")).collect();
    let owners: Vec<&str> = names.iter().chain(&names).chain(&names).map(String::as_str).collect();
    let began = order_of(1, &owners);
    for round in began.chunks(1000) {
        let of_round: Vec<&str> = round.iter().map(|name| name.split(' ').next().unwrap()).collect();
        assert_eq!(of_round, names);
    }
}

#[test]
fn returning_runs_of_one_owner_do_not_keep_another_waiting() {
    let schedule = alone(1, 10);
    let parked: Vec<Permit> = (0..3)
        .map(|at| {
            let permit = now(schedule.enter(task_of("alice", &at.to_string())));
            permit.park();
            permit
        })
        .collect();
    let running = now(schedule.enter(task_of("alice", "last")));
    let mut back: Vec<Queued<()>> = parked
        .iter()
        .map(|permit| match permit.reacquire_slot() {
            Reacquired::Later(queued) => queued,
            Reacquired::Now => panic!("there is one slot"),
        })
        .collect();
    let mut own = schedule.enter(task_of("alice", "new"));
    let mut other = schedule.enter(task_of("bob", "first"));
    drop(running);
    let of_bob = started(&mut other).expect("bob is next");
    drop(of_bob);
    assert!(back[0].granted.try_recv().is_ok() && started(&mut own).is_none(), "her own runs that return go first");
}

#[test]
fn abandoned_entries_cost_their_owner_no_turn() {
    let schedule = alone(1, 10);
    let running = now(schedule.enter(task_of("bob", "0")));
    let gone = schedule.enter(task_of("alice", "1"));
    let mut second = schedule.enter(task_of("alice", "2"));
    let mut third = schedule.enter(task_of("carol", "3"));
    drop(gone);
    drop(running);
    let permit = started(&mut second).expect("her first task has left, so her second is next");
    drop(permit);
    assert!(started(&mut third).is_some());
}

#[test]
fn a_full_queue_has_one_place_for_an_owner_that_has_none() {
    let schedule = alone(1, 2);
    let entered: Vec<Scheduled> = ["a", "a", "a", "a", "b", "b", "c", "d"]
        .iter()
        .enumerate()
        .map(|(at, owner)| schedule.enter(task_of(owner, &at.to_string())))
        .collect();
    let said: Vec<&str> = entered.iter().map(say).collect();
    assert_eq!(said, ["now", "later", "later", "full", "later", "full", "later", "full"]);
    assert_eq!(say(&alone(1, 0).enter(task_of("a", "1"))), "now");
    let none_waits = alone(1, 0);
    let _running = none_waits.enter(task_of("a", "1"));
    assert_eq!(say(&none_waits.enter(task_of("b", "2"))), "full", "a queue of none has no place for anybody");
}

#[test]
fn nothing_is_kept_of_owners_that_have_left() {
    let schedule = alone(1, 100_000);
    let running = schedule.enter(task_of("first", "0"));
    let waiting: Vec<Scheduled> = (0..1000).map(|at| schedule.enter(task_of(&format!("o{at}"), "1"))).collect();
    drop(waiting);
    drop(running);
    let state = lock(&schedule.state);
    assert_eq!(state.agents[0].wanting.lanes(), 1, "the last lane is used again");
    assert!(state.contexts.is_empty() && state.queued == 0);
}
