//! A value that others wait for.
//!
//! Every task has several for the short time of its run, and most of them are never waited for. So it is one lock and
//! one list of waiters, where tokio's `watch` has eight of each to let thousands wait for the same.

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

    /// Changes it and wakes whoever waits.
    pub(crate) fn modify(&self, change: impl FnOnce(&mut T)) {
        change(&mut lock(&self.value));
        self.changed.notify_waiters();
    }

    /// Waits until it is like this. Dropping the future loses nothing.
    pub(crate) async fn until(&self, mut is_so: impl FnMut(&T) -> bool) -> T {
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            // From here on no change is missed, so the value can be looked at.
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
