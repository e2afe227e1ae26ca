//! The agent: its card, its turns, and what survives a restart of this server.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use sabir_engine::{About, AboutFuture, Agent, AgentFuture, InterruptedRun, Survives, Turn};
use sabir_outbound::remote::Remote;
use tokio::time::sleep;

use super::memory::TaskMemory;
use super::{about, end, turn};

#[derive(Debug, Clone)]
pub struct RemoteAgentSettings {
    /// How often its card is looked at.
    pub refresh: Duration,
    /// Whether a message is sent again of which nobody knows whether it arrived.
    pub repeats_unknown: bool,
}

/// An agent of another server.
pub struct RemoteAgent {
    remote: Remote,
    settings: RemoteAgentSettings,
    shown: Mutex<Shown>,
}

/// What the card says now, and how often it could not be fetched since.
#[derive(Default)]
struct Shown {
    about: Option<About>,
    failures: u32,
}

/// The first wait after the card could not be fetched.
const FIRST_RETRY: Duration = Duration::from_secs(1);

impl RemoteAgent {
    pub fn new(remote: Remote, settings: RemoteAgentSettings) -> Self {
        RemoteAgent { remote, settings, shown: Mutex::default() }
    }

    async fn next_card(&self) -> About {
        loop {
            let wait = {
                let shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
                match (&shown.about, shown.failures) {
                    (None, 0) => Duration::ZERO,
                    (Some(_), 0) => self.settings.refresh,
                    (_, failures) => (FIRST_RETRY * 2u32.pow((failures - 1).min(10))).min(self.settings.refresh),
                }
            };
            sleep(wait).await;
            let found = self.remote.discover().await;
            let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
            match found {
                Ok(found) => {
                    shown.failures = 0;
                    let about = found.card.as_deref().map_or_else(about::unknown, about::of);
                    if shown.about.as_ref() != Some(&about) {
                        for note in &found.notes {
                            tracing::warn!(url = self.remote.settings().url, "{note}");
                        }
                        tracing::info!(
                            url = self.remote.settings().url,
                            endpoint = found.endpoint.url,
                            protocol = %found.endpoint.protocol,
                            "the remote agent has a new card"
                        );
                        shown.about = Some(about.clone());
                        return about;
                    }
                }
                Err(error) => {
                    shown.failures += 1;
                    tracing::warn!(url = self.remote.settings().url, %error, "the card of a remote agent cannot be fetched");
                }
            }
        }
    }
}

impl Agent for RemoteAgent {
    fn about(&self) -> About {
        about::unknown()
    }

    fn next_about(&self) -> Option<AboutFuture<'_>> {
        Some(Box::pin(self.next_card()))
    }

    fn run(&self, turn: Turn) -> AgentFuture<'_> {
        Box::pin(turn::run(&self.remote, &self.settings, turn))
    }

    /// The remote task goes on without us. Where nobody knows whether it exists, the next run says so.
    fn survives_restart(&self, _run: &InterruptedRun<'_>) -> Survives {
        Survives::Runs
    }

    fn end_between_turns(&self, task_memory: &str) -> Option<BoxFuture<'static, ()>> {
        let known = TaskMemory::read(task_memory)?.remote?;
        Some(Box::pin(end::cancel_late(self.remote.clone(), known.id)))
    }
}
