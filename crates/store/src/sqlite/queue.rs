//! What waits for the writer.

use std::sync::{Condvar, Mutex, MutexGuard};

pub(super) struct Queue<T> {
    state: Mutex<State<T>>,
    filled: Condvar,
}

struct State<T> {
    waiting: Vec<T>,
    is_open: bool,
}

impl<T> Queue<T> {
    pub fn new() -> Self {
        Self { state: Mutex::new(State { waiting: Vec::new(), is_open: true }), filled: Condvar::new() }
    }

    /// Gives the item back when the queue is closed.
    pub fn push(&self, item: T) -> Result<(), T> {
        let mut state = self.lock();
        if !state.is_open {
            return Err(item);
        }
        state.waiting.push(item);
        if state.waiting.len() == 1 {
            self.filled.notify_one();
        }
        Ok(())
    }

    /// Waits until there is something and takes all of it; empty when the queue is closed and done.
    pub fn drain(&self) -> Vec<T> {
        let mut state = self.lock();
        while state.waiting.is_empty() && state.is_open {
            state = self.filled.wait(state).expect(UNBROKEN);
        }
        std::mem::take(&mut state.waiting)
    }

    /// Takes nothing more. What is in it can still be drained.
    pub fn close(&self) {
        self.lock().is_open = false;
        self.filled.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().expect(UNBROKEN)
    }
}

const UNBROKEN: &str = "nobody panics with the queue in hand";
