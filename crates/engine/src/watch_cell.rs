//! A value that tasks can wait on.
//!
//! Each run has several of these, most of them without any waiter. So a cell has one lock and one list of waiters;
//! tokio's `watch` has eight of each, for thousands of waiters on the same value.

use std::sync::Mutex;

use tokio::sync::Notify;

use crate::sharded::lock;

#[derive(Debug)]
pub(crate) struct WatchCell<T> {
    value: Mutex<T>,
    changed: Notify,
}

impl<T: Clone> WatchCell<T> {
    pub(crate) fn new(value: T) -> Self {
        Self { value: Mutex::new(value), changed: Notify::new() }
    }

    pub(crate) fn get(&self) -> T {
        lock(&self.value).clone()
    }

    pub(crate) fn set(&self, value: T) {
        self.modify(|known| *known = value);
    }

    /// Changes the value and wakes all waiters.
    pub(crate) fn modify(&self, change: impl FnOnce(&mut T)) {
        change(&mut lock(&self.value));
        self.changed.notify_waiters();
    }

    /// Waits until the value satisfies the condition. The future can be dropped at any time.
    pub(crate) async fn until(&self, mut is_so: impl FnMut(&T) -> bool) -> T {
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            // Registered before the value is read, so no change can be missed.
            changed.as_mut().enable();
            let value = self.get();
            if is_so(&value) {
                return value;
            }
            changed.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[tokio::test]
    async fn whoever_waits_sees_the_change() {
        let cell = Arc::new(WatchCell::new(0));
        assert_eq!(cell.until(|value| *value == 0).await, 0);
        let waiting: Vec<_> = (0..10)
            .map(|wanted| {
                let cell = cell.clone();
                tokio::spawn(async move { cell.until(|value| *value >= wanted).await })
            })
            .collect();
        for value in 1..10 {
            tokio::task::yield_now().await;
            cell.set(value);
        }
        for (wanted, one) in waiting.into_iter().enumerate() {
            assert!(one.await.unwrap() >= wanted);
        }
        assert_eq!(cell.get(), 9);
    }
}
