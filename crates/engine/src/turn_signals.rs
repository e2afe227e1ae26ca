//! Signals between a driver and its agent besides the updates: the order to stop, and holds.
//!
//! An agent that does not stop in time is dropped, but a program that it has started may live a little longer. As long
//! as a `TurnHold` of the turn exists, the driver keeps the context, the folder and the slot of the run, so that no
//! other run works there. A hold must be dropped within a bounded time.

use std::sync::Arc;

use crate::turn::Stop;
use crate::watch_cell::WatchCell;

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct TurnSignals {
    /// The order to stop, with its deadline.
    pub(crate) stop: Option<Stop>,
    holds: usize,
}

impl TurnSignals {
    pub(crate) fn is_held(&self) -> bool {
        self.holds > 0
    }
}

/// Keeps the context, the folder and the slot of a run until it is dropped, even after the turn has ended.
#[must_use]
#[derive(Debug)]
pub struct TurnHold(Arc<WatchCell<TurnSignals>>);

impl TurnHold {
    pub(crate) fn new(signals: &Arc<WatchCell<TurnSignals>>) -> Self {
        signals.modify(|signals| signals.holds += 1);
        Self(signals.clone())
    }
}

impl Drop for TurnHold {
    fn drop(&mut self) {
        self.0.modify(|signals| signals.holds -= 1);
    }
}
