//! Who may run now, for one agent: so many at once, one per context, in order of arrival.
//!
//! A context that has a run is busy until the run gives its place back; who comes meanwhile waits in
//! the context's own line. Whoever is first in line of a context but finds no place waits with the
//! others for one. Both lines together are the bounded queue.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};

use sabir_model::{ContextId, Owner, TaskId};
use tokio::sync::oneshot;

use crate::sharded::lock;

pub(crate) type Place = (Owner, ContextId);

pub(crate) struct Schedule {
    limit: usize,
    queue: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    running: usize,
    waiting: usize,
    contexts: HashMap<Place, Line>,
    ready: VecDeque<Waiter>,
}

#[derive(Default)]
struct Line {
    waiters: VecDeque<Waiter>,
    /// The run of this context waits for its caller's answer.
    parked: Option<TaskId>,
}

struct Waiter {
    place: Place,
    start: oneshot::Sender<Permit>,
}

/// The right to run. Dropping it lets the next one in.
pub(crate) struct Permit {
    schedule: Arc<Schedule>,
    place: Option<Place>,
}

pub(crate) enum Room {
    Now(Permit),
    Later {
        permit: oneshot::Receiver<Permit>,
        /// The task that must be answered first.
        behind: Option<TaskId>,
    },
    /// The queue is full.
    None,
}

impl Schedule {
    pub(crate) fn new(limit: usize, queue: usize) -> Arc<Self> {
        Arc::new(Self { limit: limit.max(1), queue, state: Mutex::default() })
    }

    pub(crate) fn enter(self: &Arc<Self>, place: Place) -> Room {
        self.enter_within(place, self.queue)
    }

    /// For those who have been let in before: the bound of the queue is for newcomers.
    pub(crate) fn enter_again(self: &Arc<Self>, place: Place) -> Room {
        self.enter_within(place, usize::MAX)
    }

    fn enter_within(self: &Arc<Self>, place: Place, queue: usize) -> Room {
        let mut state = lock(&self.state);
        if state.waiting >= queue {
            state.forget_who_left();
        }
        let is_busy = state.contexts.contains_key(&place);
        if !is_busy && state.running < self.limit && state.ready.is_empty() {
            state.contexts.insert(place.clone(), Line::default());
            state.running += 1;
            return Room::Now(self.permit(place));
        }
        if state.waiting >= queue {
            return Room::None;
        }
        state.waiting += 1;
        let (start, permit) = oneshot::channel();
        let waiter = Waiter { place: place.clone(), start };
        if is_busy {
            let line = state.contexts.entry(place).or_default();
            line.waiters.push_back(waiter);
            return Room::Later { permit, behind: line.parked.clone() };
        }
        state.contexts.insert(place, Line::default());
        state.ready.push_back(waiter);
        Room::Later { permit, behind: None }
    }

    fn permit(self: &Arc<Self>, place: Place) -> Permit {
        Permit { schedule: self.clone(), place: Some(place) }
    }

    fn leave(self: &Arc<Self>, place: Place) {
        let mut left = vec![place];
        // One who has gone meanwhile gives the permit back at once, and so may thousands in a row.
        while let Some(place) = left.pop() {
            let started = lock(&self.state).let_in(place, self.limit);
            for waiter in started {
                if let Err(mut permit) = waiter.start.send(self.permit(waiter.place)) {
                    left.extend(permit.place.take());
                }
            }
        }
    }
}

impl State {
    /// A place is free: who may run now?
    fn let_in(&mut self, free: Place, limit: usize) -> Vec<Waiter> {
        self.running -= 1;
        self.advance(free);
        let mut started = Vec::new();
        while self.running < limit
            && let Some(waiter) = self.ready.pop_front()
        {
            self.running += 1;
            self.waiting -= 1;
            started.push(waiter);
        }
        started
    }

    /// The next one in line of a context that is free.
    fn advance(&mut self, place: Place) {
        match self.contexts.get_mut(&place).and_then(|line| line.waiters.pop_front()) {
            Some(next) => self.ready.push_back(next),
            None => {
                self.contexts.remove(&place);
            }
        }
    }

    /// Those who were canceled in the queue hold no place in it.
    fn forget_who_left(&mut self) {
        for line in self.contexts.values_mut() {
            let before = line.waiters.len();
            line.waiters.retain(|waiter| !waiter.start.is_closed());
            self.waiting -= before - line.waiters.len();
        }
        for waiter in std::mem::take(&mut self.ready) {
            if waiter.start.is_closed() {
                self.waiting -= 1;
                self.advance(waiter.place);
            } else {
                self.ready.push_back(waiter);
            }
        }
    }
}

impl Permit {
    /// Tells those in line whose answer they wait for.
    pub(crate) fn park(&self, task: Option<TaskId>) {
        if let Some(place) = &self.place
            && let Some(line) = lock(&self.schedule.state).contexts.get_mut(place)
        {
            line.parked = task;
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if let Some(place) = self.place.take() {
            self.schedule.leave(place);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(context: &str) -> Place {
        (Owner::anonymous(), ContextId::parse(context).unwrap())
    }

    fn say(room: &Room) -> &'static str {
        match room {
            Room::Now(_) => "now",
            Room::Later { .. } => "later",
            Room::None => "full",
        }
    }

    fn started(room: &mut Room) -> Option<Permit> {
        match room {
            Room::Later { permit, .. } => permit.try_recv().ok(),
            _ => None,
        }
    }

    #[test]
    fn places_and_queue_are_bounded() {
        let schedule = Schedule::new(2, 1);
        let rooms: Vec<Room> = ["a", "b", "c", "d"].into_iter().map(|c| schedule.enter(place(c))).collect();
        assert_eq!(rooms.iter().map(say).collect::<Vec<_>>(), ["now", "now", "later", "full"]);
    }

    #[test]
    fn a_context_runs_one_at_a_time_in_order() {
        let schedule = Schedule::new(10, 10);
        let first = schedule.enter(place("a"));
        let (mut second, mut third) = (schedule.enter(place("a")), schedule.enter(place("a")));
        assert_eq!(say(&schedule.enter(place("b"))), "now");
        assert!(started(&mut second).is_none());
        drop(first);
        let permit = started(&mut second).expect("the second is next");
        assert!(started(&mut third).is_none());
        drop(permit);
        assert!(started(&mut third).is_some());
    }

    #[test]
    fn who_left_the_line_is_passed_over() {
        let schedule = Schedule::new(1, 10);
        let first = schedule.enter(place("a"));
        let second = schedule.enter(place("b"));
        let mut third = schedule.enter(place("c"));
        drop(second);
        drop(first);
        assert!(started(&mut third).is_some());
        assert_eq!(lock(&schedule.state).running, 0);
        assert!(lock(&schedule.state).contexts.is_empty());
    }

    #[test]
    fn who_left_makes_room_in_the_queue() {
        let schedule = Schedule::new(1, 3);
        let _running = schedule.enter(place("a"));
        let gone: Vec<Room> = ["a", "b", "c"].into_iter().map(|c| schedule.enter(place(c))).collect();
        assert_eq!(say(&schedule.enter(place("d"))), "full");
        drop(gone);
        let rooms: Vec<Room> = ["a", "b", "c", "d"].into_iter().map(|c| schedule.enter(place(c))).collect();
        assert_eq!(rooms.iter().map(say).collect::<Vec<_>>(), ["later", "later", "later", "full"]);
        assert_eq!(say(&schedule.enter_again(place("d"))), "later");
    }

    #[test]
    fn thousands_who_left_are_passed_over_in_one_go() {
        let schedule = Schedule::new(1, 100_000);
        let running = schedule.enter(place("a"));
        let gone: Vec<Room> = (0..100_000).map(|i| schedule.enter(place(&format!("c{i}")))).collect();
        drop(gone);
        drop(running);
        let state = lock(&schedule.state);
        assert_eq!((state.running, state.waiting, state.contexts.len()), (0, 0, 0));
    }

    #[test]
    fn who_waits_behind_a_question_is_told_whose() {
        let schedule = Schedule::new(10, 10);
        let Room::Now(permit) = schedule.enter(place("a")) else { panic!("there is room") };
        permit.park(Some(TaskId::parse("t1").unwrap()));
        let Room::Later { behind, .. } = schedule.enter(place("a")) else { panic!("the context is busy") };
        assert_eq!(behind, Some(TaskId::parse("t1").unwrap()));
    }
}
