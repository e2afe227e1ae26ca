//! Decides which run may work now, for all agents of the server.
//!
//! A run takes three things, always in this order. Nobody who waits for one of them holds a later one, so the holder of
//! a place always gets on, and nobody waits in a circle:
//!
//! | taken             | how many                                  | while the run is parked (its caller thinks)     |
//! |-------------------|-------------------------------------------|--------------------------------------------------|
//! | 1. the context    | one run of a conversation with one agent  | kept                                             |
//! | 2. the working tree (`trees.rs`), if it needs one for itself | one run of the server | given back, and taken again before the answer is handed over |
//! | 3. a place        | `Limits::concurrent` of the agent that executes it | given back, and taken again last        |
//!
//! The context belongs to the agent that the task is addressed to, the place to the agent that routing has chosen; most
//! often that is the same one. Tasks that find their context busy wait in the line of that context. The first task of each
//! free context waits in the line of its agent. All that wait for one agent are its bounded queue. Runs that come back for a
//! place go before those that have not begun: they hold a program, and they cannot become more by being served first.
//!
//! At most `Limits::max_parked` runs of an agent give their places back. A further one asks its caller all the same and
//! keeps its place: nothing is lost, and the agent runs one task fewer until somebody is answered.
//!
//! A task that leaves its line (canceled, or the server stops) counts no more from that moment, and is removed from the
//! line later.

use std::collections::{HashMap, VecDeque};
use std::pin::Pin;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll};

use futures_util::task::AtomicWaker;
use sabir_model::{ContextId, Owner, TaskId};
use tokio::sync::oneshot;

use crate::Limits;
use crate::sharded::lock;

/// An agent of the server, by its place in the list that the schedule was made with.
pub(crate) type AgentNo = usize;

/// One conversation with one agent: it has at most one run at a time.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct ContextKey {
    /// The agent that its tasks are addressed to.
    pub(crate) agent: AgentNo,
    pub(crate) owner: Owner,
    pub(crate) context: ContextId,
}

/// A run that wants to begin.
pub(crate) struct Request {
    pub(crate) context: ContextKey,
    pub(crate) task: TaskId,
    /// The agent that executes it.
    pub(crate) executor: AgentNo,
}

pub(crate) struct Schedule {
    state: Mutex<State>,
}

struct State {
    agents: Vec<Places>,
    contexts: HashMap<ContextKey, Line>,
    /// Those of all agents who are in a line and have not left it.
    in_line: usize,
    /// Those who have left and are still in a line.
    gone: usize,
}

/// The places of one agent.
struct Places {
    limit: usize,
    queue: usize,
    max_parked: usize,
    running: usize,
    parked: usize,
    /// Those who wait for their first place and have not left.
    waiting: usize,
    /// Those who had a place and gave it back to wait for their working tree.
    waiting_for_trees: usize,
    /// Runs that ask their callers and keep their places, since too many are parked.
    asking_in_place: VecDeque<Arc<AtomicU8>>,
    /// Runs that have been answered, or have got their working tree.
    returning: VecDeque<Waiter>,
    ready: VecDeque<Waiter>,
}

/// A context that is not free.
struct Line {
    /// The task that runs, or is the next to run.
    holder: TaskId,
    /// Its run waits for its caller's answer.
    needs_answer: bool,
    waiters: VecDeque<Waiter>,
}

struct Waiter {
    executor: AgentNo,
    waiter_state: Arc<WaiterState>,
    wants: Wants,
}

enum Wants {
    /// To begin.
    Permit { request: Request, start: oneshot::Sender<Permit> },
    /// To get on, with the permit that it has.
    Place { hold: Arc<AtomicU8>, start: oneshot::Sender<()> },
}

/// How a waiter stands; `state` is changed only while the schedule is locked.
pub(crate) struct WaiterState {
    state: AtomicU8,
    behind: Mutex<Behind>,
    behind_changed: AtomicWaker,
}

/// In the line of its context.
const IN_LINE: u8 = 0;
/// In the line of its agent: its context waits for nobody else.
const READY: u8 = 1;
const LET_IN: u8 = 2;
const GONE: u8 = 3;

/// What a task waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Behind {
    /// Another task of its context. Kept up to date for the next in line; those behind it keep what they were told.
    Task { task: TaskId, needs_answer: bool },
    /// A run in the same folder; `None`: it is not to be named.
    Folder { task: Option<TaskId> },
    /// All places of its agent are taken.
    Places { limit: usize },
}

/// What a permit has of its agent's places; changed only while the schedule is locked.
const PLACE_HELD: u8 = 0;
/// The run asks its caller and has its place still.
const ASKING_IN_PLACE: u8 = 1;
const PARKED: u8 = 2;
/// It waits for its working tree.
const STEPPED_BACK: u8 = 3;
/// The permit is gone.
const GIVEN_BACK: u8 = 4;
/// It was answered and waits for a place.
const RETURNING: u8 = 5;

/// The right to run in a context, and a place for it most of the time. Dropping it lets the next ones in.
pub(crate) struct Permit {
    schedule: Arc<Schedule>,
    executor: AgentNo,
    /// `None` once it has been given back.
    context: Option<ContextKey>,
    hold: Arc<AtomicU8>,
}

pub(crate) enum Room {
    Now(Permit),
    Later(PlaceInLine<Permit>),
    /// The queue is full.
    None,
}

/// Whether a run that gave its place back has one again.
pub(crate) enum Return {
    Now,
    Later(PlaceInLine<()>),
}

/// A place in line. Dropping it leaves the line.
pub(crate) struct PlaceInLine<T> {
    schedule: Arc<Schedule>,
    executor: AgentNo,
    granted: oneshot::Receiver<T>,
    waiter_state: Arc<WaiterState>,
    /// Of a newcomer, who counts against the bound of the queue.
    context: Option<ContextKey>,
}

impl<T> PlaceInLine<T> {
    /// Resolves when its turn has come. Wakes as well when what it waits for has changed.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<T>> {
        self.waiter_state.register(cx);
        Pin::new(&mut self.granted).poll(cx).map(Result::ok)
    }

    pub(crate) fn behind(&self) -> Behind {
        self.waiter_state.behind()
    }
}

impl<T> Drop for PlaceInLine<T> {
    /// A permit that was sent meanwhile is dropped with the channel, which lets the next one in.
    fn drop(&mut self) {
        let mut state = lock(&self.schedule.state);
        let was = self.waiter_state.state.load(Ordering::Relaxed);
        if was != IN_LINE && was != READY {
            return;
        }
        self.waiter_state.state.store(GONE, Ordering::Relaxed);
        state.in_line -= 1;
        state.gone += 1;
        let mut started = Vec::new();
        if let Some(context) = &self.context {
            state.agents[self.executor].waiting -= 1;
            // Its context is free, and the next task of it may be for an agent that has places.
            if was == READY
                && let Some(next) = state.advance(context)
            {
                started = state.let_in(next);
            }
        }
        if state.gone > MANY_GONE && state.gone > state.in_line {
            state.remove_gone();
        }
        drop(state);
        self.schedule.start(started);
    }
}

/// So few are not worth looking for.
const MANY_GONE: usize = 64;

impl Schedule {
    /// For agents with these limits; their numbers are their places in the list.
    pub(crate) fn new<'a>(limits: impl IntoIterator<Item = &'a Limits>) -> Arc<Self> {
        let agents = limits.into_iter().map(Places::new).collect();
        let state = State { agents, contexts: HashMap::new(), in_line: 0, gone: 0 };
        Arc::new(Self { state: Mutex::new(state) })
    }

    pub(crate) fn enter(self: &Arc<Self>, request: Request) -> Room {
        self.enter_within(request, usize::MIN)
    }

    /// For those who have been let in before: the bound of the queue is for newcomers.
    pub(crate) fn enter_again(self: &Arc<Self>, request: Request) -> Room {
        self.enter_within(request, usize::MAX)
    }

    /// The queue has this length at least.
    fn enter_within(self: &Arc<Self>, request: Request, least_queue: usize) -> Room {
        let mut state = lock(&self.state);
        let executor = request.executor;
        let is_busy = state.contexts.contains_key(&request.context);
        let places = &mut state.agents[executor];
        let queue = places.queue.max(least_queue);
        let queued = places.waiting + places.waiting_for_trees;
        // Whoever finds a place may have to wait for its working tree, and must not make that line endless.
        let has_room = places.waiting_for_trees == 0 || queued < queue;
        if !is_busy && places.has_place() && places.ready.is_empty() && has_room {
            places.running += 1;
            state.contexts.insert(request.context.clone(), Line::of(request.task));
            return Room::Now(self.permit(executor, request.context));
        }
        if queued >= queue {
            return Room::None;
        }
        places.waiting += 1;
        let behind = Behind::Places { limit: places.limit };
        state.in_line += 1;
        let (start, granted) = oneshot::channel();
        let behind = match state.contexts.get(&request.context) {
            Some(line) => line.behind(),
            None => behind,
        };
        let (context, task) = (request.context.clone(), request.task.clone());
        let waiter_state = Arc::new(WaiterState::new(if is_busy { IN_LINE } else { READY }, behind));
        let place = PlaceInLine {
            schedule: self.clone(),
            executor,
            granted,
            waiter_state: waiter_state.clone(),
            context: Some(context.clone()),
        };
        let waiter = Waiter { executor, waiter_state, wants: Wants::Permit { request, start } };
        match state.contexts.get_mut(&context) {
            Some(line) => line.waiters.push_back(waiter),
            None => {
                state.contexts.insert(context, Line::of(task));
                state.agents[executor].ready.push_back(waiter);
            }
        }
        Room::Later(place)
    }

    fn permit(self: &Arc<Self>, executor: AgentNo, context: ContextKey) -> Permit {
        let hold = Arc::new(AtomicU8::new(PLACE_HELD));
        Permit { schedule: self.clone(), executor, context: Some(context), hold }
    }

    /// Starts those who have been let in.
    fn start(self: &Arc<Self>, started: Vec<Waiter>) {
        let mut started = VecDeque::from(started);
        // One who left between being let in and being told gives the place back at once, and so may thousands in a row.
        while let Some(waiter) = started.pop_front() {
            match waiter.wants {
                Wants::Permit { request, start } => {
                    if let Err(mut permit) = start.send(self.permit(waiter.executor, request.context)) {
                        started.extend(permit.give_back());
                    }
                }
                // The place is the permit's already, whether or not anybody hears of it.
                Wants::Place { start, .. } => drop(start.send(())),
            }
        }
    }
}

impl Places {
    fn new(limits: &Limits) -> Self {
        Self {
            limit: limits.concurrent.max(1),
            queue: limits.queue,
            max_parked: limits.max_parked,
            running: 0,
            parked: 0,
            waiting: 0,
            waiting_for_trees: 0,
            asking_in_place: VecDeque::new(),
            returning: VecDeque::new(),
            ready: VecDeque::new(),
        }
    }

    fn has_place(&self) -> bool {
        self.running < self.limit && self.returning.is_empty()
    }

    /// One run fewer is parked: one that asks and keeps its place may give it back now.
    fn unpark_one(&mut self) {
        self.parked -= 1;
        while self.parked < self.max_parked
            && let Some(asking) = self.asking_in_place.pop_front()
        {
            asking.store(PARKED, Ordering::Release);
            self.running -= 1;
            self.parked += 1;
        }
    }

    /// Takes back what a permit has of this agent, and gives it this instead.
    fn exchange(&mut self, hold: &Arc<AtomicU8>, instead: u8) {
        match hold.swap(instead, Ordering::AcqRel) {
            PLACE_HELD => self.running -= 1,
            ASKING_IN_PLACE => {
                self.running -= 1;
                self.asking_in_place.retain(|asking| !Arc::ptr_eq(asking, hold));
            }
            PARKED => self.unpark_one(),
            STEPPED_BACK => self.waiting_for_trees -= 1,
            _ => {}
        }
        match instead {
            PLACE_HELD => self.running += 1,
            ASKING_IN_PLACE => {
                self.running += 1;
                self.asking_in_place.push_back(hold.clone());
            }
            PARKED => self.parked += 1,
            STEPPED_BACK => self.waiting_for_trees += 1,
            _ => {}
        }
    }
}

impl Line {
    fn of(holder: TaskId) -> Self {
        Self { holder, needs_answer: false, waiters: VecDeque::new() }
    }

    fn behind(&self) -> Behind {
        Behind::Task { task: self.holder.clone(), needs_answer: self.needs_answer }
    }

    /// Only the next in line is kept up to date: a line of thousands would have to be told of each that leaves it.
    fn tell_next(&self) {
        let next = self.waiters.iter().find(|waiter| !waiter.waiter_state.is_gone());
        if let Some(next) = next {
            next.waiter_state.set_behind(self.behind());
        }
    }
}

impl WaiterState {
    fn new(state: u8, behind: Behind) -> Self {
        Self { state: AtomicU8::new(state), behind: Mutex::new(behind), behind_changed: AtomicWaker::new() }
    }

    pub(crate) fn in_line(behind: Behind) -> Self {
        Self::new(IN_LINE, behind)
    }

    pub(crate) fn behind(&self) -> Behind {
        lock(&self.behind).clone()
    }

    /// Wakes this task when what it waits for has changed.
    pub(crate) fn register(&self, cx: &Context<'_>) {
        self.behind_changed.register(cx.waker());
    }

    pub(crate) fn set_behind(&self, behind: Behind) {
        *lock(&self.behind) = behind;
        self.behind_changed.wake();
    }

    fn is_gone(&self) -> bool {
        self.state.load(Ordering::Relaxed) == GONE
    }
}

impl State {
    /// Who may run now, of those who wait for this agent?
    #[must_use]
    fn let_in(&mut self, agent: AgentNo) -> Vec<Waiter> {
        let mut started = Vec::new();
        loop {
            let places = &mut self.agents[agent];
            if places.running >= places.limit {
                return started;
            }
            let Some(waiter) = places.returning.pop_front().or_else(|| places.ready.pop_front()) else {
                return started;
            };
            if waiter.waiter_state.is_gone() {
                self.gone -= 1;
                continue;
            }
            waiter.waiter_state.state.store(LET_IN, Ordering::Relaxed);
            self.in_line -= 1;
            match &waiter.wants {
                Wants::Permit { .. } => {
                    places.waiting -= 1;
                    places.running += 1;
                }
                // Its permit was dropped before its place in line.
                Wants::Place { hold, .. } if hold.load(Ordering::Relaxed) == GIVEN_BACK => continue,
                Wants::Place { hold, .. } => places.exchange(hold, PLACE_HELD),
            }
            started.push(waiter);
        }
    }

    /// The next one in line of a context that is free. Returns the agent that it waits for now.
    fn advance(&mut self, context: &ContextKey) -> Option<AgentNo> {
        let line = self.contexts.get_mut(context)?;
        while let Some(next) = line.waiters.pop_front() {
            if next.waiter_state.is_gone() {
                self.gone -= 1;
                continue;
            }
            if let Wants::Permit { request, .. } = &next.wants {
                line.holder = request.task.clone();
            }
            // The run that had asked is over, also when it crashed and could not say so.
            line.needs_answer = false;
            line.tell_next();
            let executor = next.executor;
            let places = &mut self.agents[executor];
            next.waiter_state.state.store(READY, Ordering::Relaxed);
            next.waiter_state.set_behind(Behind::Places { limit: places.limit });
            places.ready.push_back(next);
            return Some(executor);
        }
        self.contexts.remove(context);
        None
    }

    fn remove_gone(&mut self) {
        for line in self.contexts.values_mut() {
            line.waiters.retain(|waiter| !waiter.waiter_state.is_gone());
        }
        for places in &mut self.agents {
            places.returning.retain(|waiter| !waiter.waiter_state.is_gone());
            places.ready.retain(|waiter| !waiter.waiter_state.is_gone());
        }
        self.gone = 0;
    }
}

impl Permit {
    /// Whether the run has a place, and may work.
    pub(crate) fn has_place(&self) -> bool {
        matches!(self.hold.load(Ordering::Acquire), PLACE_HELD | ASKING_IN_PLACE)
    }

    /// The run waits for its caller's answer and gives its place back, if not too many have done so.
    pub(crate) fn park(&self) {
        self.change(|state, hold| {
            let places = &mut state.agents[self.executor];
            if hold.load(Ordering::Relaxed) == PLACE_HELD {
                let is_full = places.parked >= places.max_parked;
                places.exchange(hold, if is_full { ASKING_IN_PLACE } else { PARKED });
            }
        });
        self.tell_line(true);
    }

    /// The run has been answered, or needs no answer any more.
    pub(crate) fn unpark(&self) {
        self.tell_line(false);
    }

    /// Gives the place back while the run waits for its working tree. A parked run has given it back already.
    pub(crate) fn step_back(&self) {
        self.change(|state, hold| {
            let places = &mut state.agents[self.executor];
            if matches!(hold.load(Ordering::Relaxed), PLACE_HELD | ASKING_IN_PLACE) {
                places.exchange(hold, STEPPED_BACK);
            }
        });
    }

    /// Takes a place again.
    pub(crate) fn come_back(&self) -> Return {
        let mut state = lock(&self.schedule.state);
        let places = &mut state.agents[self.executor];
        match self.hold.load(Ordering::Relaxed) {
            PLACE_HELD | ASKING_IN_PLACE => places.exchange(&self.hold, PLACE_HELD),
            _ if places.has_place() => {
                places.exchange(&self.hold, PLACE_HELD);
                let started = state.let_in(self.executor);
                drop(state);
                self.schedule.start(started);
            }
            _ => {
                // It is parked no more, so one that asks in its place may be parked instead. Else this one would wait for
                // the answer to the other.
                places.exchange(&self.hold, RETURNING);
                let (start, granted) = oneshot::channel();
                let waiter_state = Arc::new(WaiterState::new(READY, Behind::Places { limit: places.limit }));
                let wants = Wants::Place { hold: self.hold.clone(), start };
                places.returning.push_back(Waiter {
                    executor: self.executor,
                    waiter_state: waiter_state.clone(),
                    wants,
                });
                state.in_line += 1;
                let started = state.let_in(self.executor);
                drop(state);
                self.schedule.start(started);
                let (schedule, executor) = (self.schedule.clone(), self.executor);
                return Return::Later(PlaceInLine { schedule, executor, granted, waiter_state, context: None });
            }
        }
        Return::Now
    }

    /// The same for a run that nobody can hold back: its program has taken its question back and works already. It
    /// counts, so nobody else is let in before the agent is below its limit again.
    pub(crate) fn come_back_at_once(&self) {
        self.change(|state, hold| {
            let places = &mut state.agents[self.executor];
            places.exchange(hold, PLACE_HELD);
        });
    }

    /// Changes what this permit has, and lets those in who find a place then.
    fn change(&self, change: impl FnOnce(&mut State, &Arc<AtomicU8>)) {
        let mut state = lock(&self.schedule.state);
        change(&mut state, &self.hold);
        let started = state.let_in(self.executor);
        drop(state);
        self.schedule.start(started);
    }

    /// Tells the next in line whether its context waits for an answer.
    fn tell_line(&self, needs_answer: bool) {
        let Some(context) = &self.context else { return };
        let mut state: MutexGuard<'_, State> = lock(&self.schedule.state);
        if let Some(line) = state.contexts.get_mut(context)
            && line.needs_answer != needs_answer
        {
            line.needs_answer = needs_answer;
            line.tell_next();
        }
    }

    /// Gives everything back, once. Returns those who have been let in.
    #[must_use]
    fn give_back(&mut self) -> Vec<Waiter> {
        let Some(context) = self.context.take() else { return Vec::new() };
        let mut state = lock(&self.schedule.state);
        state.agents[self.executor].exchange(&self.hold, GIVEN_BACK);
        let next = state.advance(&context).filter(|next| *next != self.executor);
        let mut started = state.let_in(self.executor);
        // The next task of the context may be one that another agent executes.
        started.extend(next.into_iter().flat_map(|next| state.let_in(next)).collect::<Vec<_>>());
        started
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let started = self.give_back();
        let schedule = self.schedule.clone();
        schedule.start(started);
    }
}

#[cfg(test)]
mod tests;
