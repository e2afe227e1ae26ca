//! What an agent and its driver tell each other beside the updates: that the agent must stop, and that something of it
//! still works in its folder.
//!
//! An agent that does not stop in time is dropped, and what it has started may live a little longer. As long as a
//! `TurnHold` of the turn exists, the driver keeps the context, the folder and the slot of the run, so nobody else works
//! there. Whoever takes a hold promises to drop it within a bounded time.

use std::sync::Arc;

use crate::turn::Stop;
use crate::watch_cell::WatchCell;

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct TurnSignals {
    /// Until when the agent must have stopped, once it is told to.
    pub(crate) stop: Option<Stop>,
    holds: usize,
}

impl TurnSignals {
    pub(crate) fn is_held(&self) -> bool {
        self.holds > 0
    }
}

/// Keeps the context, the folder and the slot of a run until it is dropped, also after the turn.
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
