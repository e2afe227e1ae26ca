//! A send that was made before joins what the first one made.

use std::sync::Arc;

use sabir_model::{AgentId, Caller, Error, Message};

use crate::engine::Engine;
use crate::flight::{Boarding, Flight, Ticket};
use crate::sent::{Entrance, Sent};
use crate::topic::TopicKey;

impl Engine {
    /// A send that was made before: by its key, or the same message while the first is under way.
    pub(crate) async fn join(
        &self,
        caller: &Caller,
        agent: &AgentId,
        send: &sabir_model::Send,
        message: &Arc<Message>,
        tickets: &mut Vec<Arc<Ticket>>,
    ) -> Result<Option<Sent>, Error> {
        let (owner, flights) = (&caller.owner, &self.core.flights);
        // Where the first comes to nothing, the next one is the first, and the others join that.
        loop {
            tickets.clear();
            if let Some(key) = &send.idempotency {
                match flights.by_key(owner, agent, key, message) {
                    Boarding::First(ticket) => tickets.push(Arc::new(ticket)),
                    Boarding::Joined(flight) => match self.join_flight(&flight).await? {
                        Some(sent) => return Ok(Some(sent)),
                        None => {
                            tokio::task::yield_now().await;
                            continue;
                        }
                    },
                }
                if let Some(row) = self.core.store.keyed(owner, agent, key).await? {
                    let lease = self.core.feed.open(TopicKey { owner: row.owner, agent: row.agent, task: row.task });
                    if !lease.load(&*self.core.store).await? {
                        // Retention deleted the task, and its key with it, since the key was found.
                        continue;
                    }
                    return Ok(Some(Sent { lease, entrance: Entrance::Joined }));
                }
            }
            match flights.by_message(owner, agent, message) {
                Boarding::First(ticket) => tickets.push(Arc::new(ticket)),
                Boarding::Joined(flight) => match self.join_flight(&flight).await? {
                    Some(sent) => return Ok(Some(sent)),
                    None => {
                        tokio::task::yield_now().await;
                        continue;
                    }
                },
            }
            return Ok(None);
        }
    }

    async fn join_flight(&self, flight: &Flight) -> Result<Option<Sent>, Error> {
        // The first came to nothing, or was a direct reply.
        let Some(key) = flight.landed().await else { return Ok(None) };
        let lease = self.core.feed.open(key);
        let is_there = lease.load(&*self.core.store).await?;
        Ok(is_there.then_some(Sent { lease, entrance: Entrance::Joined }))
    }
}
