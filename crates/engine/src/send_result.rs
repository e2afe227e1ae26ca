//! How a send is answered once its message is stored: with a stream, at once, or when the task settles.

use std::sync::Arc;

use sabir_model::{Created, Delivery, Error, LastEventId, Task};

use crate::Answer;
use crate::engine::Engine;
use crate::feed::Lease;
use crate::subscribe::Subscription;
use crate::topic::TaskActivity;

/// A message that is stored, and the task it went to.
pub(crate) struct SendResult {
    pub(crate) lease: Lease,
    pub(crate) effect: SendEffect,
}

/// What a send did.
pub(crate) enum SendEffect {
    /// It created the task, with this event.
    Created(Box<Created>),
    /// It continued a task. A stream begins with the task as it was before.
    Continued(Option<Arc<Task>>),
    /// It repeated an earlier send.
    Duplicate,
}

impl SendResult {
    pub(crate) async fn answer(self, engine: &Engine, send: &sabir_model::Send) -> Result<Answer, Error> {
        match send.delivery {
            Delivery::Stream => self.stream(engine, send.last_event_id).map(Answer::Stream),
            Delivery::Immediately => self.at_once(send.history),
            Delivery::WhenSettled => {
                self.until_settled(engine).await;
                match self.lease.failure() {
                    Some(cause) => Err(Error::internal(cause.to_string())),
                    None => self.now(send.history),
                }
            }
        }
    }

    /// Answers an approver: with the task as of the event that took its answer, or with a stream that ends there. What
    /// happens later is not for it.
    pub(crate) fn answer_approver(self, engine: &Engine, send: &sabir_model::Send) -> Result<Answer, Error> {
        let missing = || Error::TaskNotFound(self.lease.key.task.clone());
        let SendEffect::Continued(Some(before)) = &self.effect else { return Err(missing()) };
        let before = before.clone();
        if send.delivery == Delivery::Stream {
            return Ok(Answer::Stream(Subscription::start_at(engine, self.lease, before).until_closed()));
        }
        let mut shown = Subscription::start_from_snapshot(engine, self.lease, before);
        let task = shown.take_snapshot().ok_or_else(|| Error::internal("a stream begins with its snapshot"))?;
        Ok(Answer::Task(task.with_history(send.history)))
    }

    fn stream(self, engine: &Engine, last_event_id: Option<LastEventId>) -> Result<Subscription, Error> {
        match self.effect {
            SendEffect::Created(_) => Subscription::start(engine, self.lease, Some(LastEventId::Event(0))),
            SendEffect::Duplicate => {
                let after = last_event_id.unwrap_or(LastEventId::Event(0));
                Ok(Subscription::start(engine, self.lease, Some(after))?.replaying())
            }
            // Readers must see the events of the turn one by one, so the snapshot is the one from before the turn.
            SendEffect::Continued(Some(before)) if last_event_id.is_none() => {
                Ok(Subscription::start_from_snapshot(engine, self.lease, before))
            }
            SendEffect::Continued(_) => Ok(Subscription::start(engine, self.lease, last_event_id)?.replaying()),
        }
    }

    /// The task as it was created; an older task as it is now.
    fn at_once(self, history: Option<u32>) -> Result<Answer, Error> {
        let SendEffect::Created(created) = &self.effect else { return self.now(history) };
        let key = &self.lease.key;
        let birth = self.lease.with_task(|task| sabir_model::TaskBirth {
            context: task.context.clone(),
            agent: key.agent.clone(),
            owner: key.owner.clone(),
            born: task.born,
        });
        let Some(birth) = birth else { return Err(Error::TaskNotFound(key.task.clone())) };
        let task = Arc::new(Task::create(key.task.clone(), birth, Created::clone(created)));
        Ok(Answer::Task(task.with_history(history)))
    }

    async fn until_settled(&self, engine: &Engine) {
        let _followed = engine.core.follow(&self.lease);
        let settled = self.lease.until(|position| position.activity != TaskActivity::Busy);
        match engine.core.settings.max_wait {
            // The timeout ends the wait only; the task runs on.
            Some(limit) => drop(tokio::time::timeout(limit, settled).await),
            None => drop(settled.await),
        }
    }

    fn now(&self, history: Option<u32>) -> Result<Answer, Error> {
        let task = self.lease.task().ok_or_else(|| Error::TaskNotFound(self.lease.key.task.clone()))?;
        Ok(Answer::Task(task.with_history(history)))
    }
}
