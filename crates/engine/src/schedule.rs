//! Decides which task may run now, for one agent: a limited number at once, one per context, in order of arrival.
//!
//! A context is busy while it has a run. Tasks that arrive meanwhile wait in the line of that context. The first task of
//! each free context waits in one common line for a place. All lines together are the bounded queue. A task that leaves
//! its line (canceled, or the server stops) counts no more from that moment, and is removed from the line later.

use std::collections::{HashMap, VecDeque};
use std::pin::Pin;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use sabir_model::{ContextId, Owner, TaskId};
use tokio::sync::oneshot;

use crate::sharded::lock;

/// One conversation: it has at most one run at a time.
pub(crate) type ContextKey = (Owner, ContextId);

pub(crate) struct Schedule {
    limit: usize,
    queue: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    running: usize,
    /// Those in line who have not left.
    waiting: usize,
    /// Those who have left and are still in a line.
    gone: usize,
    contexts: HashMap<ContextKey, Line>,
    ready: VecDeque<Waiter>,
}

#[derive(Default)]
struct Line {
    waiters: VecDeque<Waiter>,
    /// The run of this context waits for its caller's answer.
    parked: Option<TaskId>,
}

struct Waiter {
    context: ContextKey,
    start: oneshot::Sender<Permit>,
    standing: Arc<AtomicU8>,
}

/// How a waiter stands; changed only while the schedule is locked.
const IN_LINE: u8 = 0;
const LET_IN: u8 = 1;
const GONE: u8 = 2;

/// The right to run. Dropping it lets the next one in.
pub(crate) struct Permit {
    schedule: Arc<Schedule>,
    context: Option<ContextKey>,
}

pub(crate) enum Room {
    Now(Permit),
    Later {
        place: PlaceInLine,
        /// The task that must be answered first.
        behind: Option<TaskId>,
    },
    /// The queue is full.
    None,
}

/// A place in line. Dropping it leaves the line.
pub(crate) struct PlaceInLine {
    schedule: Arc<Schedule>,
    permit: oneshot::Receiver<Permit>,
    standing: Arc<AtomicU8>,
}

impl PlaceInLine {
    /// Resolves to the permit when its turn has come.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Permit>> {
        Pin::new(&mut self.permit).poll(cx).map(Result::ok)
    }
}

impl Drop for PlaceInLine {
    /// A permit that was sent meanwhile is dropped with the channel, which lets the next one in.
    fn drop(&mut self) {
        let mut state = lock(&self.schedule.state);
        if self.standing.load(Ordering::Relaxed) == IN_LINE {
            self.standing.store(GONE, Ordering::Relaxed);
            state.waiting -= 1;
            state.gone += 1;
            if state.gone > MANY_GONE && state.gone > state.waiting {
                state.remove_gone();
            }
        }
    }
}

/// So few are not worth looking for.
const MANY_GONE: usize = 64;

impl Schedule {
    pub(crate) fn new(limit: usize, queue: usize) -> Arc<Self> {
        Arc::new(Self { limit: limit.max(1), queue, state: Mutex::default() })
    }

    pub(crate) fn enter(self: &Arc<Self>, context: ContextKey) -> Room {
        self.enter_within(context, self.queue)
    }

    /// For those who have been let in before: the bound of the queue is for newcomers.
    pub(crate) fn enter_again(self: &Arc<Self>, context: ContextKey) -> Room {
        self.enter_within(context, usize::MAX)
    }

    fn enter_within(self: &Arc<Self>, context: ContextKey, queue: usize) -> Room {
        let mut state = lock(&self.state);
        let is_busy = state.contexts.contains_key(&context);
        if !is_busy && state.running < self.limit && state.ready.is_empty() {
            state.contexts.insert(context.clone(), Line::default());
            state.running += 1;
            return Room::Now(self.permit(context));
        }
        if state.waiting >= queue {
            return Room::None;
        }
        state.waiting += 1;
        let (start, permit) = oneshot::channel();
        let standing = Arc::new(AtomicU8::new(IN_LINE));
        let place = PlaceInLine { schedule: self.clone(), permit, standing: standing.clone() };
        let waiter = Waiter { context: context.clone(), start, standing };
        if is_busy {
            let line = state.contexts.entry(context).or_default();
            line.waiters.push_back(waiter);
            return Room::Later { place, behind: line.parked.clone() };
        }
        state.contexts.insert(context, Line::default());
        state.ready.push_back(waiter);
        Room::Later { place, behind: None }
    }

    fn permit(self: &Arc<Self>, context: ContextKey) -> Permit {
        Permit { schedule: self.clone(), context: Some(context) }
    }

    fn leave(self: &Arc<Self>, context: ContextKey) {
        let mut free = vec![context];
        // One who left between being let in and being told gives the place back at once, and so may thousands in a row.
        while let Some(context) = free.pop() {
            let started = lock(&self.state).let_in(context, self.limit);
            for waiter in started {
                if let Err(mut permit) = waiter.start.send(self.permit(waiter.context)) {
                    free.extend(permit.context.take());
                }
            }
        }
    }
}

impl State {
    /// A place is free: who may run now?
    fn let_in(&mut self, free: ContextKey, limit: usize) -> Vec<Waiter> {
        self.running -= 1;
        self.advance(free);
        let mut started = Vec::new();
        while self.running < limit
            && let Some(waiter) = self.ready.pop_front()
        {
            if waiter.standing.load(Ordering::Relaxed) == GONE {
                self.gone -= 1;
                self.advance(waiter.context);
                continue;
            }
            waiter.standing.store(LET_IN, Ordering::Relaxed);
            self.running += 1;
            self.waiting -= 1;
            started.push(waiter);
        }
        started
    }

    /// The next one in line of a context that is free.
    fn advance(&mut self, context: ContextKey) {
        let Some(line) = self.contexts.get_mut(&context) else { return };
        // The run that had asked is over, also when it crashed and could not say so.
        line.parked = None;
        while let Some(next) = line.waiters.pop_front() {
            if next.standing.load(Ordering::Relaxed) == GONE {
                self.gone -= 1;
            } else {
                return self.ready.push_back(next);
            }
        }
        self.contexts.remove(&context);
    }

    fn remove_gone(&mut self) {
        for line in self.contexts.values_mut() {
            line.waiters.retain(|waiter| waiter.standing.load(Ordering::Relaxed) != GONE);
        }
        for waiter in std::mem::take(&mut self.ready) {
            if waiter.standing.load(Ordering::Relaxed) == GONE {
                self.advance(waiter.context);
            } else {
                self.ready.push_back(waiter);
            }
        }
        self.gone = 0;
    }
}

impl Permit {
    /// Tells those in line whose answer they wait for.
    pub(crate) fn park(&self, task: Option<TaskId>) {
        if let Some(context) = &self.context
            && let Some(line) = lock(&self.schedule.state).contexts.get_mut(context)
        {
            line.parked = task;
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if let Some(context) = self.context.take() {
            self.schedule.leave(context);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(context: &str) -> ContextKey {
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
            Room::Later { place, .. } => place.permit.try_recv().ok(),
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

    #[test]
    fn a_newcomer_is_refused_without_a_look_at_those_in_line() {
        let schedule = Schedule::new(1, 10_000);
        let _running = schedule.enter(place("a"));
        let mut rooms: Vec<Room> = (0..10_000).map(|i| schedule.enter(place(&format!("c{i}")))).collect();
        assert_eq!(say(&schedule.enter(place("late"))), "full");
        // Who leaves makes room at once, although it stays in its line for a while.
        rooms.truncate(9_999);
        let state = || {
            let state = lock(&schedule.state);
            (state.waiting, state.gone, state.ready.len())
        };
        assert_eq!(state(), (9_999, 1, 10_000));
        assert_eq!(say(&schedule.enter(place("late"))), "later");
        rooms.clear();
        let (waiting, gone, in_line) = state();
        assert!(waiting == 0 && gone <= MANY_GONE && in_line == gone, "{waiting} {gone} {in_line}");
    }
}
