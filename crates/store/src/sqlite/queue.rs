//! The queue of the writer, which collects callers into groups that share a commit.

use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::Duration;

pub(super) struct Queue<T> {
    state: Mutex<QueueState<T>>,
    filled: Condvar,
}

struct QueueState<T> {
    waiting: Vec<T>,
    /// The writer wants to be woken when this many items wait.
    wanted: usize,
    is_open: bool,
}

impl<T> Queue<T> {
    pub fn new() -> Self {
        Self { state: Mutex::new(QueueState { waiting: Vec::new(), wanted: 1, is_open: true }), filled: Condvar::new() }
    }

    /// Returns the item if the queue is closed.
    pub fn push(&self, item: T) -> Result<(), T> {
        let mut state = self.lock();
        if !state.is_open {
            return Err(item);
        }
        state.waiting.push(item);
        if state.waiting.len() == state.wanted {
            self.filled.notify_one();
        }
        Ok(())
    }

    /// Waits for items and takes all of them. The result is empty when the queue is closed and empty.
    ///
    /// The callers of the `last` group have just been answered and tend to come back together. If the writer took the
    /// first of them at once, they would split into alternating groups, each with its own sync. So it waits for as many
    /// as before, while they keep coming, and at most `max_gap` for the next one.
    pub fn drain(&self, last: usize, max_gap: Duration) -> Vec<T> {
        let mut state = self.lock();
        let wanted = state.waiting.len() + last;
        state.wanted = 1;
        while state.waiting.is_empty() && state.is_open {
            state = self.filled.wait(state).expect(UNBROKEN);
        }
        state.wanted = wanted;
        let mut seen = 0;
        while state.waiting.len() < wanted && state.waiting.len() > seen && state.is_open {
            seen = state.waiting.len();
            (state, _) = self.filled.wait_timeout(state, max_gap).expect(UNBROKEN);
        }
        std::mem::take(&mut state.waiting)
    }

    /// Accepts no more items. Those in the queue can still be drained.
    pub fn close(&self) {
        self.lock().is_open = false;
        self.filled.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, QueueState<T>> {
        self.state.lock().expect(UNBROKEN)
    }
}

const UNBROKEN: &str = "nobody panics with the queue in hand";
