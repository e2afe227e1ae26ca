//! Which processes belong to the program itself, and which it has left running in its turn.
//!
//! A program that waits for its next turn keeps its own processes, such as its servers. Commands that it left in the
//! background would work in the folder while another agent has its turn there.

use std::time::Duration;

use tokio::time::Instant;

use super::drive::{ProgramOrigin, Run};

/// How long processes that the program has started may take to end after the turn, such as its last look at the repository.
pub(super) const HELPERS_END: Duration = Duration::from_millis(500);
/// How often the run looks for them meanwhile.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

impl Run<'_> {
    /// Notes the processes that the program has before it does any work. `Update::Init` is the last update before that;
    /// output behind it may be work already.
    pub(super) async fn note_own_processes(&mut self) {
        if self.keep.is_none() || self.state.has_worked || self.origin == ProgramOrigin::Warm {
            return;
        }
        let descendants = self.child.descendants().await;
        if self.adapter.reports_session_first() || self.child.has_no_output() {
            self.own_processes = descendants;
        }
    }

    /// Whether nothing runs that the program has started in its turn. Otherwise the program is ended with it.
    pub(super) async fn is_alone(&mut self) -> bool {
        let deadline = Instant::now() + HELPERS_END;
        loop {
            let others = self.child.descendants().await.since(&self.own_processes);
            if others.is_empty() {
                return true;
            }
            if Instant::now() >= deadline {
                let (task, agent) = (self.turn.task(), self.turn.agent());
                let others = others.join(", ");
                tracing::info!(%task, %agent, others, "a program left processes running; it is ended and does not wait for the next message");
                return false;
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }
}
