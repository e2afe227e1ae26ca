//! The sends that are in flight, by idempotency key and by message id. `deduplicate` finds the first of several equal
//! sends here.
//!
//! An idempotency key is enough to identify a send. A message id is not, since clients reuse ids by accident: the
//! message must be equal too, and only while its task is active. So several sends can be registered under the same
//! message id.

use std::sync::{Arc, Mutex};

use sabir_model::{AgentId, Ancestor, Caller, ContextId, IdempotencyKey, Message, MessageId, Owner, TaskId};

use crate::sharded::{Sharded, lock};
use crate::topic::TopicKey;
use crate::watch_cell::WatchCell;

pub(crate) struct InFlightSends {
    sends: Sharded<SendKey, Vec<Arc<InFlightSend>>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct SendKey {
    owner: Owner,
    agent: AgentId,
    /// The task whose program sends; `None`: a caller does. A program joins only what was sent for the same task.
    parent: Option<Ancestor>,
    name: SendName,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum SendName {
    Key(IdempotencyKey),
    Message(MessageId),
}

pub(crate) struct InFlightSend {
    /// The task and the context that the sender named.
    task: Option<TaskId>,
    context: Option<ContextId>,
    message: Mutex<Arc<Message>>,
    /// The task that the send went to, once that is stored. `Some(None)`: the send has failed.
    stored_as: WatchCell<Option<Option<TopicKey>>>,
}

/// The result of registering a send.
pub(crate) enum Registration {
    /// It is the first. Keep the guard until the task is at rest.
    First(InFlightGuard),
    /// An equal send is in flight.
    Duplicate(Arc<InFlightSend>),
}

/// Keeps a send registered; dropping it removes the send.
pub(crate) struct InFlightGuard {
    in_flight: Arc<InFlightSends>,
    key: SendKey,
    send: Arc<InFlightSend>,
}

impl InFlightSends {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self { sends: Sharded::new() })
    }

    pub(crate) fn by_key(
        self: &Arc<Self>,
        sender: &Caller,
        agent: &AgentId,
        key: &IdempotencyKey,
        message: &Arc<Message>,
    ) -> Registration {
        self.register(SendKey::new(sender, agent, SendName::Key(key.clone())), message)
    }

    pub(crate) fn by_message(
        self: &Arc<Self>,
        sender: &Caller,
        agent: &AgentId,
        message: &Arc<Message>,
    ) -> Registration {
        self.register(SendKey::new(sender, agent, SendName::Message(message.id.clone())), message)
    }

    fn register(self: &Arc<Self>, key: SendKey, message: &Arc<Message>) -> Registration {
        let mut shard = self.sends.shard(&key);
        let sends = shard.entry(key.clone()).or_default();
        let is_same = |send: &&Arc<InFlightSend>| matches!(key.name, SendName::Key(_)) || send.is_same_message(message);
        if let Some(send) = sends.iter().find(is_same) {
            return Registration::Duplicate(send.clone());
        }
        let (task, context) = (message.task.clone(), message.context.clone());
        let send = Arc::new(InFlightSend {
            task,
            context,
            message: Mutex::new(message.clone()),
            stored_as: WatchCell::new(None),
        });
        sends.push(send.clone());
        Registration::First(InFlightGuard { in_flight: self.clone(), key, send })
    }
}

impl SendKey {
    fn new(sender: &Caller, agent: &AgentId, name: SendName) -> Self {
        let parent = sender.delegation.as_ref().map(|delegation| delegation.delegated.parent.clone());
        Self { owner: sender.owner.clone(), agent: agent.clone(), parent, name }
    }
}

impl InFlightSend {
    fn is_same_message(&self, message: &Message) -> bool {
        // A message that names a task may name its context too, or leave that out.
        let is_same_place = self.task == message.task && (self.task.is_some() || self.context == message.context);
        is_same_place && lock(&self.message).parts == message.parts
    }

    /// Waits until the send is stored and returns its task; `None`: the send has failed.
    pub(crate) async fn stored_as(&self) -> Option<TopicKey> {
        self.stored_as.until(Option::is_some).await.flatten()
    }
}

impl InFlightGuard {
    /// Replaces the message by the one that will be stored, so that only one copy is in memory.
    pub(crate) fn share(&self, message: &Arc<Message>) {
        *lock(&self.send.message) = message.clone();
    }

    /// The send is stored.
    pub(crate) fn complete(&self, task: &TopicKey) {
        if self.send.stored_as.get().is_none() {
            self.send.stored_as.set(Some(Some(task.clone())));
        }
    }
}

impl Drop for InFlightGuard {
    fn drop(&mut self) {
        {
            let mut shard = self.in_flight.sends.shard(&self.key);
            if let Some(sends) = shard.get_mut(&self.key) {
                sends.retain(|send| !Arc::ptr_eq(send, &self.send));
                if sends.is_empty() {
                    shard.remove(&self.key);
                }
            }
        }
        self.send.stored_as.modify(|stored_as| {
            if stored_as.is_none() {
                *stored_as = Some(None);
            }
        });
    }
}
