//! Lines about tasks in the operator's log: accepted, asks, ended. They never contain what was said.

use std::sync::Arc;

use sabir_model::{Event, State};

use super::Driver;
use crate::LogEntry;

/// Logs the events that matter to an operator.
pub(super) fn log_events(driver: &Driver, stored: &[Arc<LogEntry>]) {
    if !tracing::enabled!(tracing::Level::INFO) {
        return;
    }
    let key = &driver.lease.key;
    let (task, agent, context, caller) = (&key.task, &key.agent, &driver.context, &key.owner);
    for entry in stored {
        let (state, time) = match &entry.event {
            Event::Created(_) => {
                tracing::info!(%task, %agent, %context, %caller, "task accepted");
                continue;
            }
            // The same question shown again, with a note or after progress.
            Event::Status(change)
                if change.status.question_id(task).is_some_and(|question| question.event != entry.seq) =>
            {
                continue;
            }
            Event::Status(change) => (change.status.state, change.status.time),
            Event::Artifact(_) => continue,
        };
        let millis = || {
            let created = driver.lease.with_task(|task| task.created).unwrap_or(time);
            time.as_millis().saturating_sub(created.as_millis())
        };
        match state {
            State::Submitted | State::Working => {}
            State::InputRequired => tracing::info!(%task, %agent, %context, %caller, "task asks its caller"),
            State::AuthRequired => tracing::info!(%task, %agent, %context, %caller, "task asks for authorization"),
            State::Completed => tracing::debug!(%task, %agent, %context, %caller, millis = millis(), "task completed"),
            State::Failed => tracing::info!(%task, %agent, %context, %caller, millis = millis(), "task failed"),
            State::Canceled => tracing::info!(%task, %agent, %context, %caller, millis = millis(), "task canceled"),
            State::Rejected => tracing::info!(%task, %agent, %context, %caller, millis = millis(), "task rejected"),
        }
    }
}
