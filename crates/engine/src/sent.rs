//! What the sender of a message is told, and when.

use sabir_model::{Created, Delivery, Error, Seq, Task};

use crate::Answer;
use crate::engine::Engine;
use crate::feed::Lease;
use crate::subscribe::Subscription;
use crate::topic::Rest;

/// A message that is stored, on the way to its answer.
pub(crate) struct Sent {
    pub(crate) lease: Lease,
    /// The first event of a task that this send has made.
    pub(crate) created: Option<Created>,
    /// The task as it was when this send came to it.
    pub(crate) before: Option<Box<Task>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Entrance {
    Created,
    Continued,
    Joined,
}

impl Sent {
    pub(crate) async fn answer(
        self,
        engine: &Engine,
        send: &sabir_model::Send,
        entrance: Entrance,
    ) -> Result<Answer, Error> {
        match send.delivery {
            Delivery::Stream => self.stream(engine, send.after, entrance),
            Delivery::Immediately => self.at_once(send.history),
            Delivery::WhenSettled => {
                self.until_settled(engine).await;
                self.now(send.history)
            }
        }
    }

    fn stream(self, engine: &Engine, after: Option<Seq>, entrance: Entrance) -> Result<Answer, Error> {
        let cursor = match (entrance, self.before) {
            (Entrance::Created, _) => 0,
            (Entrance::Joined, _) => after.unwrap_or(0),
            // What the turn has done meanwhile must be seen as it happened, not in the snapshot.
            (Entrance::Continued, Some(before)) => {
                return Ok(Answer::Stream(Subscription::start_with(engine, self.lease, before)));
            }
            (Entrance::Continued, None) => return Subscription::start(engine, self.lease, None).map(Answer::Stream),
        };
        Subscription::start(engine, self.lease, Some(cursor)).map(Answer::Stream)
    }

    /// The task as it was made, or as it is when it was there before.
    fn at_once(self, history: Option<u32>) -> Result<Answer, Error> {
        let Some(created) = &self.created else { return self.now(history) };
        let key = &self.lease.key;
        let birth = self.lease.look(|task| sabir_model::TaskBirth {
            context: task.context.clone(),
            agent: key.agent.clone(),
            owner: key.owner.clone(),
            born: task.born,
        });
        let Some(birth) = birth else { return Err(Error::TaskNotFound(key.task.clone())) };
        let mut task = Task::create(key.task.clone(), birth, created);
        task.trim_history(history);
        Ok(Answer::Task(Box::new(task)))
    }

    async fn until_settled(&self, engine: &Engine) {
        let mut mark = self.lease.watch();
        let settled = mark.wait_for(|mark| mark.rest != Rest::Busy);
        match engine.core.settings.max_wait {
            // The caller's patience never changes the task.
            Some(limit) => drop(tokio::time::timeout(limit, settled).await),
            None => drop(settled.await),
        }
    }

    fn now(&self, history: Option<u32>) -> Result<Answer, Error> {
        let mut task = self.lease.task().ok_or_else(|| Error::TaskNotFound(self.lease.key.task.clone()))?;
        task.trim_history(history);
        Ok(Answer::Task(Box::new(task)))
    }
}
