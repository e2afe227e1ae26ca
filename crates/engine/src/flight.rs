//! Sends that are still under way, so that a repeated one joins the first.
//!
//! An idempotency key alone decides. A messageId joins only while its first task is not at rest, and only a message that
//! is otherwise the same: clients do reuse ids by accident, so several flights may have the same name.

use std::sync::{Arc, Mutex};

use sabir_model::{AgentId, ContextId, IdempotencyKey, Message, MessageId, Owner, TaskId};

use crate::beacon::Beacon;
use crate::sharded::{Sharded, lock};
use crate::topic::TopicKey;

pub(crate) struct Flights {
    flights: Sharded<FlightKey, Vec<Arc<Flight>>>,
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
    /// The task and the context that its sender named.
    task: Option<TaskId>,
    context: Option<ContextId>,
    message: Mutex<Arc<Message>>,
    /// Where it went, once that is stored; `None` in `Some` when it came to nothing.
    landed: Beacon<Option<Option<TopicKey>>>,
}

/// What a send finds under its name.
pub(crate) enum Boarding {
    /// It is the first; the ticket must be kept until the task is at rest.
    First(Ticket),
    /// Another one like it is under way.
    Joined(Arc<Flight>),
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
        message: &Arc<Message>,
    ) -> Boarding {
        let name = Name::Key(key.clone());
        self.board(FlightKey { owner: owner.clone(), agent: agent.clone(), name }, message)
    }

    pub(crate) fn by_message(self: &Arc<Self>, owner: &Owner, agent: &AgentId, message: &Arc<Message>) -> Boarding {
        let name = Name::Message(message.id.clone());
        self.board(FlightKey { owner: owner.clone(), agent: agent.clone(), name }, message)
    }

    fn board(self: &Arc<Self>, key: FlightKey, message: &Arc<Message>) -> Boarding {
        let mut shard = self.flights.shard(&key);
        let flights = shard.entry(key.clone()).or_default();
        let is_same = |flight: &&Arc<Flight>| matches!(key.name, Name::Key(_)) || flight.carries(message);
        if let Some(flight) = flights.iter().find(is_same) {
            return Boarding::Joined(flight.clone());
        }
        let (task, context) = (message.task.clone(), message.context.clone());
        let flight =
            Arc::new(Flight { task, context, message: Mutex::new(message.clone()), landed: Beacon::new(None) });
        flights.push(flight.clone());
        Boarding::First(Ticket { flights: self.clone(), key, flight })
    }
}

impl Flight {
    fn carries(&self, message: &Message) -> bool {
        self.task == message.task && self.context == message.context && lock(&self.message).parts == message.parts
    }

    /// Where it went; `None`: it came to nothing.
    pub(crate) async fn landed(&self) -> Option<TopicKey> {
        self.landed.until(Option::is_some).await.flatten()
    }
}

impl Ticket {
    /// The same message as it will be stored, so that the flight holds no copy of its own.
    pub(crate) fn share(&self, message: &Arc<Message>) {
        *lock(&self.flight.message) = message.clone();
    }

    /// The send has been stored.
    pub(crate) fn land(&self, task: &TopicKey) {
        if self.flight.landed.get().is_none() {
            self.flight.landed.set(Some(Some(task.clone())));
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        {
            let mut shard = self.flights.flights.shard(&self.key);
            if let Some(flights) = shard.get_mut(&self.key) {
                flights.retain(|flight| !Arc::ptr_eq(flight, &self.flight));
                if flights.is_empty() {
                    shard.remove(&self.key);
                }
            }
        }
        self.flight.landed.modify(|landed| {
            if landed.is_none() {
                *landed = Some(None);
            }
        });
    }
}
