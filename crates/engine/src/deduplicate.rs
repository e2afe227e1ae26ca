//! Message deduplication: a repeated send gets the result of the first one, and its message is not delivered again.
//!
//! A send is a duplicate if its idempotency key is known (in flight or stored), or if the same message is in flight.

use std::sync::Arc;

use sabir_model::{AgentId, Caller, Error, Message};

use crate::cluster::Loaded;
use crate::delegation::may_see;
use crate::engine::Engine;
use crate::in_flight::{InFlightGuard, InFlightSend, Registration};
use crate::send_result::{SendEffect, SendResult};
use crate::topic::TopicKey;

impl Engine {
    /// The result of the first send, if this one repeats it. Otherwise this send is registered, and `send_guards` keep
    /// it so.
    pub(crate) async fn find_duplicate(
        &self,
        caller: &Caller,
        agent: &AgentId,
        send: &sabir_model::Send,
        message: &Arc<Message>,
        send_guards: &mut Vec<Arc<InFlightGuard>>,
    ) -> Result<Option<SendResult>, Error> {
        let (owner, in_flight) = (&caller.owner, &self.core.in_flight);
        // When the first send fails, one of the duplicates becomes the first, and the others wait for that one.
        loop {
            send_guards.clear();
            if let Some(key) = &send.idempotency {
                match in_flight.by_key(caller, agent, key, message) {
                    Registration::First(guard) => send_guards.push(Arc::new(guard)),
                    Registration::Duplicate(first) => match self.await_first(caller, &first).await? {
                        Some(sent) => return Ok(Some(sent)),
                        None => {
                            tokio::task::yield_now().await;
                            continue;
                        }
                    },
                }
                if let Some(row) = self.core.store.find_by_key(owner, agent, key).await? {
                    let key = TopicKey { owner: row.owner, agent: row.agent, task: row.task };
                    check_joins(caller, &key)?;
                    let lease = self.core.feed.open(key);
                    if self.load(&lease).await? == Loaded::Missing {
                        // Retention deleted the task and its key after the key was found.
                        continue;
                    }
                    // Ids may have any characters, so the keys of programs of two tasks may be equal.
                    if lease.with_task(|task| may_see(caller, task)) == Some(false) {
                        return Err(key_of_another());
                    }
                    return Ok(Some(SendResult { lease, effect: SendEffect::Duplicate }));
                }
            }
            match in_flight.by_message(caller, agent, message) {
                Registration::First(guard) => send_guards.push(Arc::new(guard)),
                Registration::Duplicate(first) => match self.await_first(caller, &first).await? {
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

    async fn await_first(&self, caller: &Caller, send: &InFlightSend) -> Result<Option<SendResult>, Error> {
        // `None`: the first send has failed, or was answered without a task.
        let Some(key) = send.stored_as().await else { return Ok(None) };
        check_joins(caller, &key)?;
        let lease = self.core.feed.open(key);
        let is_there = self.load(&lease).await? != Loaded::Missing;
        Ok(is_there.then_some(SendResult { lease, effect: SendEffect::Duplicate }))
    }
}

/// Whether the sender may see the task that its earlier send went to: that send may have been made with the rights of an
/// admin.
fn check_joins(caller: &Caller, key: &TopicKey) -> Result<(), Error> {
    match key.owner == caller.owner || caller.is_admin() {
        true => Ok(()),
        false => Err(key_of_another()),
    }
}

fn key_of_another() -> Error {
    Error::invalid("Idempotency-Key", "belongs to a send that this credential could not have made")
}
