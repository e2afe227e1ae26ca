//! Working folders: runs that need the same folder for themselves run one after the other, across all agents of the
//! server.
//!
//! Two folders conflict if they are the same or one contains the other, since a run in the outer folder can change the
//! files of the inner one. A run gets its folder when no current user and no earlier waiter conflicts with it. Owners take
//! turns: the waiting runs of one owner for one folder are a lane, and a lane goes behind all others when a run of it
//! has released the folder. Within a lane the order is that of arrival, so with one owner and one folder all of it is.
//!
//! A parked run releases its folder but keeps its place in the order: when it is answered, it goes before all runs that
//! have not had the folder yet, because its work is half done. This starves nobody, since each return needs a release
//! before it.
//!
//! A delegated task works in the folder of the tasks that it comes from: they wait for it, so it does not wait for them, nor
//! for runs that wait for them. Delegated tasks that work under the same holder take turns among themselves.
//!
//! The folder is the second of three things that a run acquires; `schedule` explains the order.

use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use sabir_model::{AgentId, Ancestor, Delegated, Owner, TaskId};
use tokio::sync::oneshot;

use crate::sharded::lock;
use crate::wait_reason::{WaitReason, WaitReasonCell};

/// A run that uses a folder or waits for it. The path contains no symbolic links.
#[derive(Debug, Clone)]
pub(crate) struct FolderUser {
    pub(crate) path: PathBuf,
    pub(crate) owner: Owner,
    pub(crate) agent: AgentId,
    pub(crate) task: TaskId,
    /// Which tasks its own comes from, if it is delegated.
    pub(crate) delegated: Option<Arc<Delegated>>,
}

/// The place of a run in the order of all runs that need a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FolderOrder(u64);

#[derive(Default)]
pub(crate) struct WorkingFolders {
    state: Mutex<FolderState>,
}

#[derive(Default)]
struct FolderState {
    last: u64,
    /// Mostly one for each folder; more if a run could not be made to wait.
    held: Vec<(u64, FolderUser)>,
    /// In the order in which they will be admitted, as far as that is known now.
    waiting: Vec<FolderWaiter>,
    lanes: Vec<FolderLane>,
}

/// The waiting runs of one owner for one folder.
struct FolderLane {
    owner: Owner,
    path: PathBuf,
    /// When its turn came last, or when it began; its waiters share it. Changed only under the lock.
    turn: Arc<AtomicU64>,
}

struct FolderWaiter {
    number: u64,
    order: FolderOrder,
    /// It has had the folder earlier in this turn.
    is_returning: bool,
    lane_turn: Arc<AtomicU64>,
    user: FolderUser,
    start: oneshot::Sender<FolderLock>,
    reason: Arc<WaitReasonCell>,
}

/// The right to work in a folder. Dropping it admits the next run.
pub(crate) struct FolderLock {
    folders: Arc<WorkingFolders>,
    number: u64,
    pub(crate) order: FolderOrder,
}

pub(crate) enum ScheduledFolder {
    Now(FolderLock),
    Later(QueuedFolder),
}

/// A place in the queue for a folder. Dropping it leaves the queue.
pub(crate) struct QueuedFolder {
    folders: Arc<WorkingFolders>,
    number: u64,
    granted: oneshot::Receiver<FolderLock>,
    reason: Arc<WaitReasonCell>,
}

impl WorkingFolders {
    /// Requests a folder. `order` is the order of a run that has had the folder earlier in this turn.
    pub(crate) fn enter(self: &Arc<Self>, user: FolderUser, order: Option<FolderOrder>) -> ScheduledFolder {
        let mut state = lock(&self.state);
        let number = state.next();
        let is_returning = order.is_some();
        let obstacle = state.obstacle(&user, order);
        let order = order.unwrap_or(FolderOrder(number));
        let Some(reason) = obstacle else {
            state.held.push((number, user));
            return ScheduledFolder::Now(FolderLock { folders: self.clone(), number, order });
        };
        let (start, granted) = oneshot::channel();
        let reason = Arc::new(WaitReasonCell::new(reason));
        let lane_turn = state.lane_turn(&user);
        state.waiting.push(FolderWaiter {
            number,
            order,
            is_returning,
            lane_turn,
            user,
            start,
            reason: reason.clone(),
        });
        ScheduledFolder::Later(QueuedFolder { folders: self.clone(), number, granted, reason })
    }

    /// For a run that cannot be made to wait: its program already works in the folder. Other runs wait until it ends.
    pub(crate) fn enter_at_once(self: &Arc<Self>, user: FolderUser, order: Option<FolderOrder>) -> FolderLock {
        let mut state = lock(&self.state);
        let number = state.next();
        state.held.push((number, user));
        FolderLock { folders: self.clone(), number, order: order.unwrap_or(FolderOrder(number)) }
    }

    /// Applies a change and admits the runs that no longer conflict with any other.
    fn change(self: &Arc<Self>, change: impl FnOnce(&mut FolderState)) {
        let started = {
            let mut state = lock(&self.state);
            change(&mut state);
            state.admit()
        };
        for (number, order, start) in started {
            // If the receiver is gone, the lock is dropped, which releases the folder again.
            let _ = start.send(FolderLock { folders: self.clone(), number, order });
        }
    }
}

impl FolderUser {
    /// Whether they cannot work at the same time.
    fn conflicts_with(&self, other: &FolderUser) -> bool {
        overlap(&self.path, &other.path) && !self.comes_from(other)
    }

    /// Whether the other one has delegated this task, directly or not, and waits for it.
    fn comes_from(&self, other: &FolderUser) -> bool {
        self.delegated.as_ref().is_some_and(|delegated| delegated.chain().any(|each| other.is(each, &self.owner)))
    }

    fn is(&self, ancestor: &Ancestor, owner: &Owner) -> bool {
        self.task == ancestor.task && self.agent == ancestor.agent && self.owner == *owner
    }
}

impl FolderLane {
    fn is_of(&self, user: &FolderUser) -> bool {
        self.owner == user.owner && self.path == user.path
    }
}

impl FolderState {
    #[must_use]
    fn admit(&mut self) -> Vec<(u64, FolderOrder, oneshot::Sender<FolderLock>)> {
        let mut started = Vec::new();
        let mut still_waiting: Vec<FolderWaiter> = Vec::new();
        self.sort();
        // Most runs wait for the same few folders, so each comparison is with few paths.
        let mut wanted: Vec<(Option<u64>, PathBuf)> = Vec::new();
        for waiter in std::mem::take(&mut self.waiting) {
            let under = self.holder_above(&waiter.user);
            let holder = self.held.iter().find(|(_, held)| waiter.user.conflicts_with(held));
            let is_first = !wanted.iter().any(|(other, path)| *other == under && overlap(path, &waiter.user.path));
            match holder {
                None if is_first => {
                    self.held.push((waiter.number, waiter.user));
                    started.push((waiter.number, waiter.order, waiter.start));
                    continue;
                }
                // Runs further behind keep their first reason.
                Some((_, holder)) if is_first => waiter.reason.set(wait_reason(holder, &waiter.user)),
                _ => {}
            }
            if !wanted.iter().any(|(other, path)| *other == under && *path == waiter.user.path) {
                wanted.push((under, waiter.user.path.clone()));
            }
            still_waiting.push(waiter);
        }
        self.waiting = still_waiting;
        // A lane without waiters is forgotten: whoever comes next begins behind the others.
        self.lanes.retain(|lane| Arc::strong_count(&lane.turn) > 1);
        started
    }

    /// Runs that return go first, in the order of their first turn. Then the lanes, the one whose turn came last at the
    /// end.
    fn sort(&mut self) {
        self.waiting.sort_by_key(|waiter| match waiter.is_returning {
            true => (0, waiter.order),
            false => (waiter.lane_turn.load(Ordering::Relaxed), waiter.order),
        });
    }

    fn lane_turn(&mut self, user: &FolderUser) -> Arc<AtomicU64> {
        if let Some(lane) = self.lanes.iter().find(|lane| lane.is_of(user)) {
            return lane.turn.clone();
        }
        let turn = Arc::new(AtomicU64::new(self.last));
        self.lanes.push(FolderLane { owner: user.owner.clone(), path: user.path.clone(), turn: turn.clone() });
        turn
    }

    /// A run releases its folder. Its lane goes behind all others.
    fn release(&mut self, number: u64) {
        let Some(at) = self.held.iter().position(|(held, _)| *held == number) else { return };
        let (_, user) = self.held.remove(at);
        let now = self.next();
        if let Some(lane) = self.lanes.iter().find(|lane| lane.is_of(&user)) {
            lane.turn.store(now, Ordering::Relaxed);
        }
    }

    fn next(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    /// The reason why a run has to wait. A run that returns waits only for others that return and were first, a new one
    /// for all that wait.
    fn obstacle(&self, newcomer: &FolderUser, order: Option<FolderOrder>) -> Option<WaitReason> {
        let held = self.held.iter().map(|(_, user)| user);
        let under = self.holder_above(newcomer);
        let is_earlier = |waiter: &&FolderWaiter| {
            order.is_none_or(|order| waiter.is_returning && waiter.order < order)
                && self.holder_above(&waiter.user) == under
        };
        let earlier = self.waiting.iter().filter(is_earlier);
        let mut all = held.chain(earlier.map(|waiter| &waiter.user));
        all.find(|other| newcomer.conflicts_with(other)).map(|other| wait_reason(other, newcomer))
    }

    /// The nearest of the tasks that this one comes from which holds the folder now.
    fn holder_above(&self, user: &FolderUser) -> Option<u64> {
        let delegated = user.delegated.as_ref()?;
        let mut nearest_first = delegated.chain().collect::<Vec<_>>().into_iter().rev();
        nearest_first.find_map(|ancestor| {
            let holds =
                |(_, held): &&(u64, FolderUser)| held.is(ancestor, &user.owner) && overlap(&held.path, &user.path);
            self.held.iter().find(holds).map(|(number, _)| *number)
        })
    }
}

/// Names the task only if it belongs to the same caller.
fn wait_reason(holder: &FolderUser, waiter: &FolderUser) -> WaitReason {
    WaitReason::Folder { task: (holder.owner == waiter.owner).then(|| holder.task.clone()) }
}

fn overlap(one: &Path, other: &Path) -> bool {
    one.starts_with(other) || other.starts_with(one)
}

impl QueuedFolder {
    /// Resolves when the run gets its folder. Wakes also when the reason changes.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<FolderLock>> {
        self.reason.register(cx);
        Pin::new(&mut self.granted).poll(cx).map(Result::ok)
    }

    pub(crate) fn wait_reason(&self) -> WaitReason {
        self.reason.get()
    }
}

impl Drop for QueuedFolder {
    /// A lock that was sent in the meantime is dropped with the channel, which admits the next run.
    fn drop(&mut self) {
        self.folders.change(|state| state.waiting.retain(|waiter| waiter.number != self.number));
    }
}

impl Drop for FolderLock {
    fn drop(&mut self) {
        self.folders.change(|state| state.release(self.number));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(task: &str, path: &str) -> FolderUser {
        FolderUser {
            path: path.into(),
            owner: Owner::anonymous(),
            agent: AgentId::parse("coder").unwrap(),
            task: TaskId::parse(task).unwrap(),
            delegated: None,
        }
    }

    /// A task that comes from these, the parent last.
    fn child(task: &str, path: &str, chain: &[&str]) -> FolderUser {
        let ancestor = |task: &&str| Ancestor {
            agent: AgentId::parse("coder").unwrap(),
            task: TaskId::parse(*task).unwrap(),
            context: sabir_model::ContextId::parse("c").unwrap(),
        };
        let mut earlier: Vec<Ancestor> = chain.iter().map(ancestor).collect();
        let parent = earlier.pop().unwrap();
        FolderUser { delegated: Some(Arc::new(Delegated { parent, earlier })), ..user(task, path) }
    }

    #[test]
    fn a_delegated_task_works_in_the_folder_of_those_that_wait_for_it() {
        let folders = Arc::new(WorkingFolders::default());
        let parent = folders.enter(user("p", "/a"), None);
        let mut stranger = folders.enter(user("s", "/a"), None);
        assert!(!started(&mut stranger));
        let mut first = folders.enter(child("c1", "/a", &["p"]), None);
        assert!(started(&mut first), "it waits neither for its parent nor for who waits for that");
        let mut second = folders.enter(child("c2", "/a/b", &["p"]), None);
        assert!(!started(&mut second), "siblings take turns");
        let mut grandchild = folders.enter(child("g", "/a", &["p", "c1"]), None);
        assert!(started(&mut grandchild), "both that it comes from wait for it");
        drop(grandchild);
        drop(first);
        assert!(started(&mut second) && !started(&mut stranger));
        drop(parent);
        assert!(!started(&mut stranger), "the child goes on after its parent");
        drop(second);
        assert!(started(&mut stranger));
    }

    #[test]
    fn a_child_whose_parent_has_no_folder_waits_like_everybody() {
        let folders = Arc::new(WorkingFolders::default());
        let other = folders.enter(user("s", "/a"), None);
        let mut waiting = folders.enter(user("t", "/a"), None);
        let mut orphan = folders.enter(child("c", "/a", &["p"]), None);
        assert!(!started(&mut waiting) && !started(&mut orphan));
        drop(other);
        assert!(started(&mut waiting) && !started(&mut orphan));
        drop(waiting);
        assert!(started(&mut orphan));
        // The id alone does not make a parent: another owner may have the same.
        let held = folders.enter(FolderUser { owner: Owner::new("org", "bob"), ..user("p", "/b") }, None);
        let mut child_of_same_id = folders.enter(child("d", "/b", &["p"]), None);
        assert!(!started(&mut child_of_same_id));
        drop(held);
    }

    fn started(scheduled: &mut ScheduledFolder) -> bool {
        match scheduled {
            ScheduledFolder::Now(_) => true,
            ScheduledFolder::Later(queued) => match queued.granted.try_recv() {
                Ok(lock) => {
                    *scheduled = ScheduledFolder::Now(lock);
                    true
                }
                Err(_) => false,
            },
        }
    }

    #[test]
    fn folders_that_contain_each_other_conflict() {
        for (first, second, waits) in [
            ("/a", "/a", true),
            ("/a", "/a/b", true),
            ("/a/b", "/a", true),
            ("/a/b", "/a/c", false),
            ("/a/b", "/a/bc", false),
        ] {
            let folders = Arc::new(WorkingFolders::default());
            let _first = folders.enter(user("1", first), None);
            assert_eq!(!started(&mut folders.enter(user("2", second), None)), waits, "{first} {second}");
        }
    }

    #[test]
    fn runs_get_their_folder_in_order_of_arrival_and_none_starves() {
        let folders = Arc::new(WorkingFolders::default());
        let inner = folders.enter(user("1", "/a/b"), None);
        let mut outer = folders.enter(user("2", "/a"), None);
        let mut other = folders.enter(user("3", "/a/c"), None);
        assert!(!started(&mut outer) && !started(&mut other), "the third waits behind the second, which came before");
        drop(inner);
        assert!(started(&mut outer) && !started(&mut other));
        drop(outer);
        assert!(started(&mut other));
    }

    #[test]
    fn owners_take_turns_at_a_folder() {
        for (arrivals, expected) in [
            ("a/x a/x a/x a/x", "0 1 2 3"),
            ("a/x a/x a/x b/x b/x", "0 3 1 4 2"),
            ("a/x a/x a/x b/x c/x", "0 3 4 1 2"),
            ("a/x b/x c/x a/x b/x", "0 1 2 3 4"),
            // The outer folder waits for the inner ones, and who comes later waits for it.
            ("a/x/1 a/x/2 b/x a/x/1 a/x/2", "0 1 2 3 4"),
            // A queue for one folder does not hold up another.
            ("a/x a/x a/x b/y a/y", "0 3 1 4 2"),
        ] {
            let folders = Arc::new(WorkingFolders::default());
            let mut running = std::collections::VecDeque::new();
            let mut waiting = Vec::new();
            let mut began = Vec::new();
            let mut note = |at: usize, scheduled: ScheduledFolder, running: &mut std::collections::VecDeque<_>| {
                began.push(at.to_string());
                running.push_back(scheduled);
            };
            for (at, word) in arrivals.split(' ').enumerate() {
                let (owner, path) = word.split_once('/').unwrap();
                let owner = Owner::new("org", owner);
                let mut scheduled =
                    folders.enter(FolderUser { owner, ..user(&at.to_string(), &format!("/{path}")) }, None);
                match started(&mut scheduled) {
                    true => note(at, scheduled, &mut running),
                    false => waiting.push((at, scheduled)),
                }
            }
            while let Some(ended) = running.pop_front() {
                drop(ended);
                for (at, mut scheduled) in std::mem::take(&mut waiting) {
                    match started(&mut scheduled) {
                        true => note(at, scheduled, &mut running),
                        false => waiting.push((at, scheduled)),
                    }
                }
            }
            assert_eq!(began.join(" "), expected, "{arrivals}");
            let state = lock(&folders.state);
            assert!(state.held.is_empty() && state.waiting.is_empty() && state.lanes.is_empty());
        }
    }

    #[test]
    fn five_hundred_runs_do_not_keep_another_owner_from_their_folder() {
        let folders = Arc::new(WorkingFolders::default());
        let first = folders.enter(user("0", "/a"), None);
        let _waiting: Vec<ScheduledFolder> =
            (1..=500).map(|at| folders.enter(user(&at.to_string(), "/a"), None)).collect();
        let stranger = FolderUser { owner: Owner::new("org", "bob"), ..user("x", "/a") };
        let mut other = folders.enter(stranger, None);
        drop(first);
        assert!(started(&mut other));
    }

    #[test]
    fn a_run_that_leaves_the_queue_admits_those_behind_it() {
        let folders = Arc::new(WorkingFolders::default());
        let _inner = folders.enter(user("1", "/a/b"), None);
        let outer = folders.enter(user("2", "/a"), None);
        let mut other = folders.enter(user("3", "/a/c"), None);
        drop(outer);
        assert!(started(&mut other));
    }

    #[test]
    fn a_run_that_returns_goes_before_later_runs() {
        let folders = Arc::new(WorkingFolders::default());
        let order = |scheduled: &ScheduledFolder| match scheduled {
            ScheduledFolder::Now(lock) => Some(lock.order),
            ScheduledFolder::Later(_) => panic!("it is free"),
        };
        let first = folders.enter(user("1", "/a"), None);
        let first_order = order(&first);
        drop(first);
        let second = folders.enter(user("2", "/a"), None);
        let second_order = order(&second);
        drop(second);
        let third = folders.enter(user("3", "/a"), None);
        let mut fourth = folders.enter(user("4", "/a"), None);
        let mut second = folders.enter(user("2", "/a"), second_order);
        let mut first = folders.enter(user("1", "/a"), first_order);
        assert!(!started(&mut fourth) && !started(&mut second) && !started(&mut first), "the third works");
        drop(third);
        assert!(started(&mut first) && !started(&mut second) && !started(&mut fourth));
        drop(first);
        assert!(started(&mut second) && !started(&mut fourth));
        drop(second);
        assert!(started(&mut fourth));
    }

    #[test]
    fn the_wait_reason_names_only_tasks_of_the_same_caller() {
        let folders = Arc::new(WorkingFolders::default());
        let first = folders.enter(user("1", "/a"), None);
        let stranger = FolderUser { owner: Owner::new("org", "someone"), ..user("x", "/a") };
        let ScheduledFolder::Later(second) = folders.enter(user("2", "/a"), None) else { panic!("it is taken") };
        let ScheduledFolder::Later(third) = folders.enter(stranger, None) else { panic!("it is taken") };
        assert_eq!(second.wait_reason(), WaitReason::Folder { task: Some(TaskId::parse("1").unwrap()) });
        assert_eq!(third.wait_reason(), WaitReason::Folder { task: None });
        drop(first);
        drop(second);
        drop(third);
        assert!(lock(&folders.state).held.is_empty() && lock(&folders.state).waiting.is_empty());
    }
}
