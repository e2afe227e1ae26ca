//! Until when the programs of this process may run.
//!
//! In a cluster a server works only while it holds its lease, and another one takes over its tasks afterwards. A server that
//! hangs cannot stop its programs, so their guards do: each has a deadline, which Sabir moves on as long as it renews the
//! lease. At the deadline a guard pauses its program, and a guard that is started after it waits before it starts its own.
//! A server alone sets no deadline, and its guards receive none.

use std::sync::LazyLock;
use std::time::Instant;

use tokio::sync::watch;

use super::deadline::Deadline;
use super::frames::Order;

static RUN_UNTIL: LazyLock<watch::Sender<Option<Deadline>>> = LazyLock::new(|| watch::Sender::new(None));

/// Sets until when all programs of this process may run, also those that are started later. A deadline that has passed
/// pauses them at once, and a later one lets them continue. `None`: without a limit. Never blocks: every program has a task
/// that sends the newest deadline to its guard.
pub fn set_run_until(deadline: Option<Instant>) {
    RUN_UNTIL.send_replace(deadline.map(Deadline::at));
}

/// Whether the deadline of `set_run_until` has passed.
pub fn lease_is_over() -> bool {
    RUN_UNTIL.borrow().is_some_and(Deadline::is_over)
}

/// The deadline as one guard knows it.
pub(super) struct GuardLease {
    newest: watch::Receiver<Option<Deadline>>,
    deadline: Option<Deadline>,
}

impl GuardLease {
    /// For a guard that is about to be started with this deadline.
    pub(super) fn new() -> Self {
        let mut newest = RUN_UNTIL.subscribe();
        let deadline = *newest.borrow_and_update();
        Self { newest, deadline }
    }

    /// What the guard knows once it has the last order.
    pub(super) fn deadline(&self) -> Option<Deadline> {
        self.deadline
    }

    /// Waits for a new deadline, and returns the order to send. Skips deadlines that are already replaced. Cancel-safe.
    pub(super) async fn next_order(&mut self) -> Order {
        self.newest.changed().await.expect("the sender is static");
        self.deadline = *self.newest.borrow_and_update();
        // A guard that has a deadline cannot be told that there is none.
        Order::RunUntil(self.deadline.unwrap_or(Deadline::NEVER))
    }
}
