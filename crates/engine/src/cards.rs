//! Cards that change: what an agent says of itself later than at the start.

use crate::engine::Engine;

impl Engine {
    /// Follows the cards of agents that change them, until the engine stops.
    pub(crate) fn follow_cards(&self) {
        for registered in &self.core.agents {
            // What is spawned must not keep the engine alive.
            let (hosted, mut stopping) = (registered.hosted.clone(), self.core.stopping.subscribe());
            if hosted.agent.next_about().is_none() {
                continue;
            }
            tokio::spawn(async move {
                while let Some(next) = hosted.agent.next_about() {
                    let about = tokio::select! {
                        about = next => about,
                        _ = stopping.wait_for(|stopping| *stopping) => return,
                    };
                    tracing::debug!(agent = %hosted.id, "the agent's card has changed");
                    hosted.set_about(about);
                    // An agent whose changes are always ready must not keep this thread from others.
                    tokio::task::yield_now().await;
                }
            });
        }
    }
}
