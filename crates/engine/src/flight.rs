//! Sends that are still under way, so that a repeated one joins the first.
//!
//! An idempotency key alone decides. A messageId joins only while its first task is not at rest, and
//! only when the rest of the message is the same: clients do reuse ids by accident.

use std::sync::Arc;

use sabir_model::{AgentId, IdempotencyKey, Message, MessageId, Owner};

use crate::beacon::Beacon;
use crate::sharded::Sharded;
use crate::topic::TopicKey;

pub(crate) struct Flights {
    flights: Sharded<FlightKey, Arc<Flight>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct FlightKey {
    owner: Owner,
    agent: AgentId,
    name: Name,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Name {
    Key(IdempotencyKey),
    Message(MessageId),
}

pub(crate) struct Flight {
    /// As its sender wrote it.
    message: Message,
    /// Where it went, once that is stored; `None` in `Some` when it came to nothing.
    landed: Beacon<Option<Option<TopicKey>>>,
}

/// What a send finds under its name.
pub(crate) enum Boarding {
    /// It is the first; the ticket must be kept until the task is at rest.
    First(Ticket),
    /// Another one like it is under way.
    Joined(Arc<Flight>),
    /// The name is in use for something else.
    Taken,
}

/// The place of a send among those under way.
pub(crate) struct Ticket {
    flights: Arc<Flights>,
    key: FlightKey,
    flight: Arc<Flight>,
}

impl Flights {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self { flights: Sharded::new() })
    }

    pub(crate) fn by_key(
        self: &Arc<Self>,
        owner: &Owner,
        agent: &AgentId,
        key: &IdempotencyKey,
        message: &Message,
    ) -> Boarding {
        let name = Name::Key(key.clone());
        self.board(FlightKey { owner: owner.clone(), agent: agent.clone(), name }, message)
    }

    pub(crate) fn by_message(self: &Arc<Self>, owner: &Owner, agent: &AgentId, message: &Message) -> Boarding {
        let name = Name::Message(message.id.clone());
        self.board(FlightKey { owner: owner.clone(), agent: agent.clone(), name }, message)
    }

    fn board(self: &Arc<Self>, key: FlightKey, message: &Message) -> Boarding {
        let mut shard = self.flights.shard(&key);
        if let Some(flight) = shard.get(&key) {
            let is_same = matches!(key.name, Name::Key(_))
                || flight.message.task == message.task
                    && flight.message.context == message.context
                    && flight.message.parts == message.parts;
            return if is_same { Boarding::Joined(flight.clone()) } else { Boarding::Taken };
        }
        let flight = Arc::new(Flight { message: message.clone(), landed: Beacon::new(None) });
        shard.insert(key.clone(), flight.clone());
        Boarding::First(Ticket { flights: self.clone(), key, flight })
    }
}

impl Flight {
    /// Where it went; `None`: it came to nothing.
    pub(crate) async fn landed(&self) -> Option<TopicKey> {
        self.landed.until(Option::is_some).await.flatten()
    }
}

impl Ticket {
    /// The send has been stored.
    pub(crate) fn land(&self, task: &TopicKey) {
        self.flight.landed.set(Some(Some(task.clone())));
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.flights.flights.shard(&self.key).remove(&self.key);
        self.flight.landed.modify(|landed| {
            if landed.is_none() {
                *landed = Some(None);
            }
        });
    }
}
