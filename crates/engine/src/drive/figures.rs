//! What a driver observes for operators: how long its task waited, and when its agent was first heard of.

use std::sync::Arc;

use sabir_model::{Event, State};

use super::Driver;
use crate::LogEntry;

impl Driver {
    /// The first turn has all that it needs.
    pub(super) fn note_queue_wait(&mut self) {
        if let (Some(since), Some(metrics)) = (self.queued_since.take(), &self.executor.agent.metrics) {
            metrics.waited(since);
        }
    }

    /// These events are stored.
    pub(super) fn note_first_event(&mut self, stored: &[Arc<LogEntry>]) {
        let Some(since) = self.message_since.filter(|_| self.has_run) else { return };
        if stored.iter().any(|entry| is_of_agent(&entry.event)) {
            self.message_since = None;
            if let Some(metrics) = &self.executor.agent.metrics {
                metrics.first_event(since);
            }
        }
    }
}

/// Whether the event is more than that the task was created, waits or begins.
fn is_of_agent(event: &Event) -> bool {
    match event {
        Event::Created(_) => false,
        Event::Artifact(_) => true,
        Event::Status(change) => match change.status.state {
            State::Submitted => false,
            State::Working => change.status.message.is_some() || change.metadata.is_some(),
            State::InputRequired
            | State::AuthRequired
            | State::Completed
            | State::Failed
            | State::Canceled
            | State::Rejected => true,
        },
    }
}
