//! Working folders: runs that need the same folder for themselves run one after the other, across all agents of the
//! server.
//!
//! Two folders conflict if they are the same or one contains the other, since a run in the outer folder can change the
//! files of the inner one. A run gets its folder when no current user and no earlier waiter conflicts with it, so the
//! order is that of arrival. A parked run releases its folder but keeps its place in the order: when it is answered, it
//! goes before all runs that arrived after it, because its work is half done. This starves nobody, since each return
//! needs a release before it. The folder is the second of three things that a run acquires; `schedule` explains the
//! order.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use sabir_model::{Owner, TaskId};
use tokio::sync::oneshot;

use crate::sharded::lock;
use crate::wait_reason::{WaitReason, WaitReasonCell};

/// A run that uses a folder or waits for it. The path contains no symbolic links.
#[derive(Debug, Clone)]
pub(crate) struct FolderUser {
    pub(crate) path: PathBuf,
    pub(crate) owner: Owner,
    pub(crate) task: TaskId,
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
    /// Sorted by order.
    waiting: VecDeque<FolderWaiter>,
}

struct FolderWaiter {
    number: u64,
    order: FolderOrder,
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
        let order = order.unwrap_or(FolderOrder(number));
        let Some(reason) = state.obstacle(&user, order) else {
            state.held.push((number, user));
            return ScheduledFolder::Now(FolderLock { folders: self.clone(), number, order });
        };
        let (start, granted) = oneshot::channel();
        let reason = Arc::new(WaitReasonCell::new(reason));
        let place = state.waiting.partition_point(|waiter| waiter.order < order);
        state.waiting.insert(place, FolderWaiter { number, order, user, start, reason: reason.clone() });
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

impl FolderState {
    #[must_use]
    fn admit(&mut self) -> Vec<(u64, FolderOrder, oneshot::Sender<FolderLock>)> {
        let mut started = Vec::new();
        let mut still_waiting: VecDeque<FolderWaiter> = VecDeque::new();
        // Most runs wait for the same few folders, so each comparison is with few paths.
        let mut wanted: Vec<PathBuf> = Vec::new();
        for waiter in std::mem::take(&mut self.waiting) {
            let holder = self.held.iter().find(|(_, held)| overlap(&held.path, &waiter.user.path));
            let is_first = !wanted.iter().any(|path| overlap(path, &waiter.user.path));
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
            if !wanted.contains(&waiter.user.path) {
                wanted.push(waiter.user.path.clone());
            }
            still_waiting.push_back(waiter);
        }
        self.waiting = still_waiting;
        started
    }

    fn next(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    /// The reason why a run with this order has to wait.
    fn obstacle(&self, newcomer: &FolderUser, order: FolderOrder) -> Option<WaitReason> {
        let held = self.held.iter().map(|(_, user)| user);
        let earlier = self.waiting.iter().take_while(|waiter| waiter.order < order);
        let mut all = held.chain(earlier.map(|waiter| &waiter.user));
        all.find(|other| overlap(&other.path, &newcomer.path)).map(|other| wait_reason(other, newcomer))
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
        self.folders.change(|state| state.held.retain(|(number, _)| *number != self.number));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(task: &str, path: &str) -> FolderUser {
        FolderUser { path: path.into(), owner: Owner::anonymous(), task: TaskId::parse(task).unwrap() }
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
