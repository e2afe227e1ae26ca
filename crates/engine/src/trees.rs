//! Working trees: runs that write in the same folder take turns, over all agents of the server.
//!
//! A tree is a folder with all that is below it, so two trees are the same when one contains the other: whoever works in
//! the outer folder can change what the inner one works on. In order of arrival: a run gets its tree when it overlaps with
//! none that is held, and with none that an earlier run waits for. A run that gave its tree back while its caller thought
//! keeps its order, so it goes before all who came after it: its work is half done, and a caller who has answered should
//! not wait behind tasks that were sent long after. Nobody is kept out for ever by that: such a run has to give the tree
//! back again before it can come back once more. The second thing that a run takes; `schedule` has the order.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use sabir_model::{Owner, TaskId};
use tokio::sync::oneshot;

use crate::sharded::lock;
use crate::wait_reason::{WaitReason, WaitReasonCell};

/// A run that works in a tree, or wants to. The path has no links in it.
#[derive(Debug, Clone)]
pub(crate) struct Occupant {
    pub(crate) path: PathBuf,
    pub(crate) owner: Owner,
    pub(crate) task: TaskId,
}

/// Who comes first in the line of a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TreeOrder(u64);

#[derive(Default)]
pub(crate) struct Trees {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    last: u64,
    /// Most often one for each tree; more where a run could not be held back.
    held: Vec<(u64, Occupant)>,
    /// By their order.
    waiting: VecDeque<Waiter>,
}

struct Waiter {
    number: u64,
    order: TreeOrder,
    occupant: Occupant,
    start: oneshot::Sender<Tree>,
    reason: Arc<WaitReasonCell>,
}

/// The right to work in a tree. Dropping it lets the next one in.
pub(crate) struct Tree {
    trees: Arc<Trees>,
    number: u64,
    pub(crate) order: TreeOrder,
}

pub(crate) enum ScheduledTree {
    Now(Tree),
    Later(QueuedTree),
}

/// A wait in the queue for a tree. Dropping it leaves the queue.
pub(crate) struct QueuedTree {
    trees: Arc<Trees>,
    number: u64,
    granted: oneshot::Receiver<Tree>,
    reason: Arc<WaitReasonCell>,
}

impl Trees {
    /// `order` is that of a run which had the tree before in this turn.
    pub(crate) fn enter(self: &Arc<Self>, occupant: Occupant, order: Option<TreeOrder>) -> ScheduledTree {
        let mut state = lock(&self.state);
        let number = state.next();
        let order = order.unwrap_or(TreeOrder(number));
        let Some(reason) = state.obstacle(&occupant, order) else {
            state.held.push((number, occupant));
            return ScheduledTree::Now(Tree { trees: self.clone(), number, order });
        };
        let (start, granted) = oneshot::channel();
        let reason = Arc::new(WaitReasonCell::new(reason));
        let place = state.waiting.partition_point(|waiter| waiter.order < order);
        state.waiting.insert(place, Waiter { number, order, occupant, start, reason: reason.clone() });
        ScheduledTree::Later(QueuedTree { trees: self.clone(), number, granted, reason })
    }

    /// For a run that nobody can hold back: its program works in the tree already. Others wait until it is done.
    pub(crate) fn enter_at_once(self: &Arc<Self>, occupant: Occupant, order: Option<TreeOrder>) -> Tree {
        let mut state = lock(&self.state);
        let number = state.next();
        state.held.push((number, occupant));
        Tree { trees: self.clone(), number, order: order.unwrap_or(TreeOrder(number)) }
    }

    /// Changes who holds or wants what, and lets those in who wait for nobody any more.
    fn change(self: &Arc<Self>, change: impl FnOnce(&mut State)) {
        let started = {
            let mut state = lock(&self.state);
            change(&mut state);
            state.admit()
        };
        for (number, order, start) in started {
            // Whoever does not listen any more gives it back by dropping it.
            let _ = start.send(Tree { trees: self.clone(), number, order });
        }
    }
}

impl State {
    #[must_use]
    fn admit(&mut self) -> Vec<(u64, TreeOrder, oneshot::Sender<Tree>)> {
        let mut started = Vec::new();
        let mut still_waiting: VecDeque<Waiter> = VecDeque::new();
        // Most wait for the same few trees, so each of them is compared with few.
        let mut wanted: Vec<PathBuf> = Vec::new();
        for waiter in std::mem::take(&mut self.waiting) {
            let holder = self.held.iter().find(|(_, held)| overlap(&held.path, &waiter.occupant.path));
            let is_first = !wanted.iter().any(|path| overlap(path, &waiter.occupant.path));
            match holder {
                None if is_first => {
                    self.held.push((waiter.number, waiter.occupant));
                    started.push((waiter.number, waiter.order, waiter.start));
                    continue;
                }
                // Those further behind keep what they were told.
                Some((_, holder)) if is_first => waiter.reason.set(wait_reason(holder, &waiter.occupant)),
                _ => {}
            }
            if !wanted.contains(&waiter.occupant.path) {
                wanted.push(waiter.occupant.path.clone());
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

    /// What somebody who comes with this order has to wait for.
    fn obstacle(&self, newcomer: &Occupant, order: TreeOrder) -> Option<WaitReason> {
        let held = self.held.iter().map(|(_, occupant)| occupant);
        let earlier = self.waiting.iter().take_while(|waiter| waiter.order < order);
        let mut all = held.chain(earlier.map(|waiter| &waiter.occupant));
        all.find(|other| overlap(&other.path, &newcomer.path)).map(|other| wait_reason(other, newcomer))
    }
}

/// A task of another caller is not named.
fn wait_reason(holder: &Occupant, waiter: &Occupant) -> WaitReason {
    WaitReason::Folder { task: (holder.owner == waiter.owner).then(|| holder.task.clone()) }
}

fn overlap(one: &Path, other: &Path) -> bool {
    one.starts_with(other) || other.starts_with(one)
}

impl QueuedTree {
    /// Resolves when its turn has come. Wakes as well when what it waits for has changed.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Tree>> {
        self.reason.register(cx);
        Pin::new(&mut self.granted).poll(cx).map(Result::ok)
    }

    pub(crate) fn wait_reason(&self) -> WaitReason {
        self.reason.get()
    }
}

impl Drop for QueuedTree {
    /// A tree that was sent meanwhile is dropped with the channel, which lets the next one in.
    fn drop(&mut self) {
        self.trees.change(|state| state.waiting.retain(|waiter| waiter.number != self.number));
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        self.trees.change(|state| state.held.retain(|(number, _)| *number != self.number));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn occupant(task: &str, path: &str) -> Occupant {
        Occupant { path: path.into(), owner: Owner::anonymous(), task: TaskId::parse(task).unwrap() }
    }

    fn started(scheduled: &mut ScheduledTree) -> bool {
        match scheduled {
            ScheduledTree::Now(_) => true,
            ScheduledTree::Later(line) => match line.granted.try_recv() {
                Ok(tree) => {
                    *scheduled = ScheduledTree::Now(tree);
                    true
                }
                Err(_) => false,
            },
        }
    }

    #[test]
    fn folders_that_contain_each_other_are_one_tree() {
        for (first, second, waits) in [
            ("/a", "/a", true),
            ("/a", "/a/b", true),
            ("/a/b", "/a", true),
            ("/a/b", "/a/c", false),
            ("/a/b", "/a/bc", false),
        ] {
            let trees = Arc::new(Trees::default());
            let _first = trees.enter(occupant("1", first), None);
            assert_eq!(!started(&mut trees.enter(occupant("2", second), None)), waits, "{first} {second}");
        }
    }

    #[test]
    fn runs_get_their_tree_in_order_of_arrival_and_nobody_is_overtaken_for_ever() {
        let trees = Arc::new(Trees::default());
        let inner = trees.enter(occupant("1", "/a/b"), None);
        let mut outer = trees.enter(occupant("2", "/a"), None);
        let mut other = trees.enter(occupant("3", "/a/c"), None);
        assert!(!started(&mut outer) && !started(&mut other), "the third waits behind the second, which came before");
        drop(inner);
        assert!(started(&mut outer) && !started(&mut other));
        drop(outer);
        assert!(started(&mut other));
    }

    #[test]
    fn who_leaves_the_line_lets_those_behind_it_in() {
        let trees = Arc::new(Trees::default());
        let _inner = trees.enter(occupant("1", "/a/b"), None);
        let outer = trees.enter(occupant("2", "/a"), None);
        let mut other = trees.enter(occupant("3", "/a/c"), None);
        drop(outer);
        assert!(started(&mut other));
    }

    #[test]
    fn a_run_that_comes_back_goes_before_those_who_came_after_it() {
        let trees = Arc::new(Trees::default());
        let order = |room: &ScheduledTree| match room {
            ScheduledTree::Now(tree) => Some(tree.order),
            ScheduledTree::Later(_) => panic!("it is free"),
        };
        let first = trees.enter(occupant("1", "/a"), None);
        let first_order = order(&first);
        drop(first);
        let second = trees.enter(occupant("2", "/a"), None);
        let second_order = order(&second);
        drop(second);
        let third = trees.enter(occupant("3", "/a"), None);
        let mut fourth = trees.enter(occupant("4", "/a"), None);
        let mut second = trees.enter(occupant("2", "/a"), second_order);
        let mut first = trees.enter(occupant("1", "/a"), first_order);
        assert!(!started(&mut fourth) && !started(&mut second) && !started(&mut first), "the third works");
        drop(third);
        assert!(started(&mut first) && !started(&mut second) && !started(&mut fourth));
        drop(first);
        assert!(started(&mut second) && !started(&mut fourth));
        drop(second);
        assert!(started(&mut fourth));
    }

    #[test]
    fn who_waits_is_told_for_whom_if_it_may_know() {
        let trees = Arc::new(Trees::default());
        let first = trees.enter(occupant("1", "/a"), None);
        let stranger = Occupant { owner: Owner::new("org", "someone"), ..occupant("x", "/a") };
        let ScheduledTree::Later(second) = trees.enter(occupant("2", "/a"), None) else { panic!("it is taken") };
        let ScheduledTree::Later(third) = trees.enter(stranger, None) else { panic!("it is taken") };
        assert_eq!(second.wait_reason(), WaitReason::Folder { task: Some(TaskId::parse("1").unwrap()) });
        assert_eq!(third.wait_reason(), WaitReason::Folder { task: None });
        drop(first);
        drop(second);
        drop(third);
        assert!(lock(&trees.state).held.is_empty() && lock(&trees.state).waiting.is_empty());
    }
}
