//! Runs that release their slots for a while: parked runs, and runs that wait for their working folders.

use super::*;

#[test]
fn a_parked_run_gives_its_slot_back_and_goes_first_when_it_is_answered() {
    let schedule = alone(1, 10);
    let parked = now(schedule.enter(task("a")));
    let (mut second, mut third) = (schedule.enter(task("b")), schedule.enter(task("c")));
    parked.park();
    let running = started(&mut second).expect("the slot is free");
    assert_eq!(counts(&schedule), (1, 1, 1));
    assert!(started(&mut schedule.enter(task("a"))).is_none(), "its context is busy");
    let Reacquired::Later(mut back) = parked.reacquire_slot() else { panic!("there is one slot") };
    drop(running);
    assert!(back.granted.try_recv().is_ok() && parked.has_slot());
    assert!(started(&mut third).is_none());
    drop(parked);
    assert!(started(&mut third).is_some());
}

#[test]
fn only_so_many_are_parked_and_the_others_keep_their_slots() {
    let schedule = schedule(&[(2, 10, 1)]);
    let (first, second) = (now(schedule.enter(task("a"))), now(schedule.enter(task("b"))));
    first.park();
    second.park();
    assert_eq!((counts(&schedule), second.has_slot()), ((1, 1, 0), true));
    // When the first continues, the second can be parked instead.
    assert!(matches!(first.reacquire_slot(), Reacquired::Now));
    assert_eq!((counts(&schedule), second.has_slot()), ((1, 1, 0), false));
    drop(second);
    assert_eq!(counts(&schedule), (1, 0, 0));
}

#[test]
fn an_answered_run_does_not_wait_for_the_answer_to_another() {
    let schedule = schedule(&[(1, 10, 1)]);
    let first = now(schedule.enter(task("a")));
    first.park();
    let second = now(schedule.enter(task("b")));
    second.park();
    assert!(second.has_slot(), "one is parked already");
    let Reacquired::Later(mut back) = first.reacquire_slot() else { panic!("the second has the slot") };
    assert!(back.granted.try_recv().is_ok() && first.has_slot());
    assert_eq!((counts(&schedule), second.has_slot()), ((1, 1, 0), false));
}

#[test]
fn those_who_wait_for_a_working_tree_count_as_queued() {
    let schedule = alone(1, 2);
    let permits: Vec<Permit> = ["a", "b"]
        .into_iter()
        .map(|c| {
            let permit = now(schedule.enter(task(c)));
            permit.release_slot();
            permit
        })
        .collect();
    assert_eq!(say(&schedule.enter(task("c"))), "full");
    assert!(matches!(permits[0].reacquire_slot(), Reacquired::Now));
    let Scheduled::Later(_) = schedule.enter(task("c")) else { panic!("there is room in the queue, and no slot") };
}
