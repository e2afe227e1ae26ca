//! The schedule step by step, and under any order of steps.

use proptest::prelude::*;

use super::*;

fn schedule(limits: &[(usize, usize, usize)]) -> Arc<Schedule> {
    let limits = limits.iter().map(|(concurrent, queue, max_parked)| Limits {
        concurrent: *concurrent,
        queue: *queue,
        max_parked: *max_parked,
        ..Limits::default()
    });
    Schedule::new(&limits.collect::<Vec<_>>())
}

/// One agent.
fn alone(concurrent: usize, queue: usize) -> Arc<Schedule> {
    schedule(&[(concurrent, queue, 100)])
}

/// A task of this context of the first agent, named after the context.
fn task(context: &str) -> Request {
    executed_by(0, context)
}

fn executed_by(executor: AgentNo, context: &str) -> Request {
    let key = ContextKey { agent: 0, owner: Owner::anonymous(), context: ContextId::parse(context).unwrap() };
    Request { context: key, task: TaskId::parse(format!("task of {context}")).unwrap(), executor }
}

fn say(room: &Room) -> &'static str {
    match room {
        Room::Now(_) => "now",
        Room::Later(_) => "later",
        Room::None => "full",
    }
}

fn now(room: Room) -> Permit {
    match room {
        Room::Now(permit) => permit,
        _ => panic!("there is a place"),
    }
}

fn started(room: &mut Room) -> Option<Permit> {
    match room {
        Room::Later(place) => place.granted.try_recv().ok(),
        _ => None,
    }
}

fn behind(room: &Room) -> String {
    match room {
        Room::Later(place) => match place.behind() {
            Behind::Task { task, needs_answer: false } => task.to_string(),
            Behind::Task { task, needs_answer: true } => format!("{task}, which asks"),
            Behind::Folder { .. } => "a folder".to_owned(),
            Behind::Places { limit } => format!("{limit} places"),
        },
        other => say(other).to_owned(),
    }
}

fn counts(schedule: &Schedule) -> (usize, usize, usize) {
    let state = lock(&schedule.state);
    (state.agents[0].running, state.agents[0].parked, state.agents[0].waiting)
}

#[test]
fn places_and_queue_are_bounded() {
    let schedule = alone(2, 1);
    let rooms: Vec<Room> = ["a", "b", "c", "d"].into_iter().map(|c| schedule.enter(task(c))).collect();
    assert_eq!(rooms.iter().map(say).collect::<Vec<_>>(), ["now", "now", "later", "full"]);
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
fn who_left_the_line_is_passed_over() {
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
fn who_left_makes_room_in_the_queue() {
    let schedule = alone(1, 3);
    let _running = schedule.enter(task("a"));
    let gone: Vec<Room> = ["a", "b", "c"].into_iter().map(|c| schedule.enter(task(c))).collect();
    assert_eq!(say(&schedule.enter(task("d"))), "full");
    drop(gone);
    let rooms: Vec<Room> = ["a", "b", "c", "d"].into_iter().map(|c| schedule.enter(task(c))).collect();
    assert_eq!(rooms.iter().map(say).collect::<Vec<_>>(), ["later", "later", "later", "full"]);
    assert_eq!(say(&schedule.enter_again(task("d"))), "later");
}

#[test]
fn thousands_who_left_are_passed_over_in_one_go() {
    let schedule = alone(1, 100_000);
    let running = schedule.enter(task("a"));
    let gone: Vec<Room> = (0..100_000).map(|i| schedule.enter(task(&format!("c{i}")))).collect();
    drop(gone);
    drop(running);
    assert_eq!(counts(&schedule), (0, 0, 0));
    assert!(lock(&schedule.state).contexts.is_empty());
}

#[test]
fn a_newcomer_is_refused_without_a_look_at_those_in_line() {
    let schedule = alone(1, 10_000);
    let _running = schedule.enter(task("a"));
    let mut rooms: Vec<Room> = (0..10_000).map(|i| schedule.enter(task(&format!("c{i}")))).collect();
    assert_eq!(say(&schedule.enter(task("late"))), "full");
    // Who leaves makes room at once, although it stays in its line for a while.
    rooms.truncate(9_999);
    let state = || {
        let state = lock(&schedule.state);
        (state.in_line, state.gone, state.agents[0].ready.len())
    };
    assert_eq!(state(), (9_999, 1, 10_000));
    assert_eq!(say(&schedule.enter(task("late"))), "later");
    rooms.clear();
    let (waiting, gone, in_line) = state();
    assert!(waiting == 0 && gone <= MANY_GONE && in_line == gone, "{waiting} {gone} {in_line}");
}

#[test]
fn who_waits_is_told_for_what() {
    let schedule = alone(2, 10);
    let first = now(schedule.enter(task("a")));
    let other = now(schedule.enter(task("b")));
    let second = schedule.enter(task("a"));
    assert_eq!(behind(&second), "task of a");
    assert_eq!(behind(&schedule.enter(task("c"))), "2 places");
    first.park();
    assert_eq!(behind(&second), "task of a, which asks");
    let _third = schedule.enter(task("c"));
    assert!(matches!(first.come_back(), Return::Later(_)));
    first.unpark();
    assert_eq!(behind(&second), "task of a");
    drop(first);
    assert_eq!(behind(&second), "2 places");
    drop(other);
}

#[test]
fn a_parked_run_makes_room_and_goes_first_when_it_is_answered() {
    let schedule = alone(1, 10);
    let parked = now(schedule.enter(task("a")));
    let (mut second, mut third) = (schedule.enter(task("b")), schedule.enter(task("c")));
    parked.park();
    let running = started(&mut second).expect("the place is free");
    assert_eq!(counts(&schedule), (1, 1, 1));
    assert!(started(&mut schedule.enter(task("a"))).is_none(), "its context is busy");
    let Return::Later(mut back) = parked.come_back() else { panic!("there is one place") };
    drop(running);
    assert!(back.granted.try_recv().is_ok() && parked.has_place());
    assert!(started(&mut third).is_none());
    drop(parked);
    assert!(started(&mut third).is_some());
}

#[test]
fn only_so_many_are_parked_and_the_others_keep_their_places() {
    let schedule = schedule(&[(2, 10, 1)]);
    let (first, second) = (now(schedule.enter(task("a"))), now(schedule.enter(task("b"))));
    first.park();
    second.park();
    assert_eq!((counts(&schedule), second.has_place()), ((1, 1, 0), true));
    // When the first goes on, the second can be parked instead.
    assert!(matches!(first.come_back(), Return::Now));
    assert_eq!((counts(&schedule), second.has_place()), ((1, 1, 0), false));
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
    assert!(second.has_place(), "one is parked already");
    let Return::Later(mut back) = first.come_back() else { panic!("the second has the place") };
    assert!(back.granted.try_recv().is_ok() && first.has_place());
    assert_eq!((counts(&schedule), second.has_place()), ((1, 1, 0), false));
}

#[test]
fn a_context_is_shared_by_agents_that_execute_its_tasks() {
    let schedule = schedule(&[(1, 10, 10), (1, 10, 10)]);
    let _busy = now(schedule.enter(executed_by(0, "x")));
    let first = schedule.enter(executed_by(0, "a"));
    let mut second = schedule.enter(executed_by(1, "a"));
    assert!(started(&mut second).is_none(), "the first task of the context waits for its agent");
    drop(first);
    assert!(started(&mut second).is_some(), "its own agent has a place");
}

#[test]
fn those_who_wait_for_a_working_tree_count_as_queued() {
    let schedule = alone(1, 2);
    let permits: Vec<Permit> = ["a", "b"]
        .into_iter()
        .map(|c| {
            let permit = now(schedule.enter(task(c)));
            permit.step_back();
            permit
        })
        .collect();
    assert_eq!(say(&schedule.enter(task("c"))), "full");
    assert!(matches!(permits[0].come_back(), Return::Now));
    let Room::Later(_) = schedule.enter(task("c")) else { panic!("there is room in the queue, and no place") };
}

/// Something that happens to a run. The numbers choose an agent and a context, or one of those who are there.
#[derive(Debug, Clone)]
enum Step {
    Enter { executor: usize, context: usize },
    Park(usize),
    ComeBack(usize),
    WaitForTree(usize),
    Withdraw(usize),
    End(usize),
    LeaveLine(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..2_usize, 0..6_usize).prop_map(|(executor, context)| Step::Enter { executor, context }),
        3 => any::<usize>().prop_map(Step::Park),
        3 => any::<usize>().prop_map(Step::ComeBack),
        1 => any::<usize>().prop_map(Step::WaitForTree),
        1 => any::<usize>().prop_map(Step::Withdraw),
        2 => any::<usize>().prop_map(Step::End),
        1 => any::<usize>().prop_map(Step::LeaveLine),
    ]
}

/// All who are there.
struct Crowd {
    schedule: Arc<Schedule>,
    waiting: Vec<PlaceInLine<Permit>>,
    /// Permits, and the line in which they wait to get on.
    running: Vec<(Permit, Option<PlaceInLine<()>>)>,
}

impl Crowd {
    fn take(&mut self, step: Step) {
        let (runs, queued) = (self.running.len().max(1), self.waiting.len().max(1));
        match step {
            Step::Enter { executor, context } => {
                match self.schedule.enter(executed_by(executor, &format!("c{context}"))) {
                    Room::Now(permit) => self.running.push((permit, None)),
                    Room::Later(place) => self.waiting.push(place),
                    Room::None => {}
                }
            }
            Step::Park(at) => {
                if let Some((permit, None)) = self.running.get(at % runs) {
                    permit.park();
                }
            }
            Step::ComeBack(at) => {
                if let Some((permit, line @ None)) = self.running.get_mut(at % runs)
                    && let Return::Later(place) = permit.come_back()
                {
                    *line = Some(place);
                }
            }
            Step::WaitForTree(at) => {
                if let Some((permit, None)) = self.running.get(at % runs) {
                    permit.step_back();
                }
            }
            Step::Withdraw(at) => {
                if let Some((permit, line)) = self.running.get_mut(at % runs) {
                    *line = None;
                    permit.come_back_at_once();
                }
            }
            Step::End(at) => drop((at % runs < self.running.len()).then(|| self.running.swap_remove(at % runs))),
            Step::LeaveLine(at) => {
                drop((at % queued < self.waiting.len()).then(|| self.waiting.swap_remove(at % queued)));
            }
        }
        self.hear();
    }

    /// Takes up what was granted.
    fn hear(&mut self) {
        for (permit, line) in &mut self.running {
            if line.as_mut().is_some_and(|line| line.granted.try_recv().is_ok()) {
                assert!(permit.has_place());
                *line = None;
            }
        }
        for mut place in std::mem::take(&mut self.waiting) {
            match place.granted.try_recv() {
                Ok(permit) => self.running.push((permit, None)),
                Err(_) => self.waiting.push(place),
            }
        }
    }

    fn check(&self, most: &[usize; 2]) {
        let state = lock(&self.schedule.state);
        for (agent, places) in state.agents.iter().enumerate() {
            let of_agent = || self.running.iter().filter(|(permit, _)| permit.executor == agent);
            let with = |hold: u8| of_agent().filter(|(permit, _)| permit.hold.load(Ordering::Relaxed) == hold).count();
            assert_eq!(places.running, with(PLACE_HELD) + with(ASKING_IN_PLACE), "places are counted");
            assert_eq!((places.parked, places.waiting_for_trees), (with(PARKED), with(STEPPED_BACK)));
            assert!(places.running <= places.limit.max(most[agent]), "only those who cannot be held exceed the limit");
            assert!(places.parked <= places.max_parked);
            assert!(places.parked == places.max_parked || with(ASKING_IN_PLACE) == 0, "who can be parked is parked");
            let in_line = || self.waiting.iter().filter(|place| place.executor == agent);
            assert_eq!(places.waiting, in_line().count());
            let is_ready = |place: &&PlaceInLine<Permit>| place.waiter_state.state.load(Ordering::Relaxed) == READY;
            let is_due = in_line().any(|place| is_ready(&place)) || of_agent().any(|(_, line)| line.is_some());
            assert!(places.running >= places.limit || !is_due, "nobody waits while there is a place");
        }
        for key in state.contexts.keys() {
            let runs = self.running.iter().filter(|(permit, _)| permit.context.as_ref() == Some(key)).count();
            let is_next = self.waiting.iter().any(|place| {
                place.context.as_ref() == Some(key) && place.waiter_state.state.load(Ordering::Relaxed) == READY
            });
            assert_eq!(runs + usize::from(is_next), 1, "a context has one run, or one that is next");
        }
        let contexts = self.running.iter().filter_map(|(permit, _)| permit.context.as_ref());
        assert!(contexts.into_iter().all(|context| state.contexts.contains_key(context)));
    }
}

proptest! {
    #[test]
    fn no_order_of_steps_exceeds_a_limit_or_forgets_anybody(
        steps in proptest::collection::vec(step(), 1..200),
        limits in (1..4_usize, 0..5_usize, 0..3_usize),
    ) {
        let schedule = schedule(&[limits, (1, 3, 1)]);
        let mut crowd = Crowd { schedule: schedule.clone(), waiting: Vec::new(), running: Vec::new() };
        for step in steps {
            // Whoever could not be held back may be above the limit until it ends.
            let before = || {
                let state = lock(&schedule.state);
                [0, 1].map(|agent| state.agents[agent].running)
            };
            let mut most = before();
            if let Step::Withdraw(_) = step {
                most = most.map(|running| running + 1);
            }
            crowd.take(step);
            crowd.check(&most);
        }
        // Everybody who waits gets in when the others end.
        while !crowd.running.is_empty() {
            let left = crowd.running.len() + crowd.waiting.len();
            crowd.take(Step::End(0));
            prop_assert!(crowd.running.len() + crowd.waiting.len() < left);
        }
        prop_assert!(crowd.waiting.is_empty());
        let state = lock(&schedule.state);
        prop_assert!(state.contexts.is_empty() && state.in_line == 0);
        let left = state.agents.iter().map(|places| {
            places.running + places.parked + places.waiting + places.waiting_for_trees
        });
        prop_assert_eq!(left.sum::<usize>(), 0);
    }
}
