//! Sending: where a message goes and what it starts.

use std::sync::Arc;

use sabir_model::{
    AgentId, Caller, ContextAlone, ContextId, Created, Direct, Error, Message, MessageId, OnFinished, Part, Role,
    TaskId,
};
use tokio::sync::oneshot;

use crate::drive::{self, Assignment, Start, told};
use crate::engine::{Agency, Engine, new_id};
use crate::flight::Ticket;
use crate::media::check_media_types;
use crate::read::Located;
use crate::schedule::Room;
use crate::sent::{Entrance, Sent};
use crate::topic::TopicKey;
use crate::{Admission, Answer};

/// What a message names.
struct Place {
    agent: AgentId,
    task: Option<Located>,
}

/// Where a message belongs.
enum Destination {
    /// A task that exists.
    Task(TopicKey),
    /// A new task, in this context or in a fresh one.
    New(Option<ContextId>),
}

impl Engine {
    pub(crate) async fn send(&self, caller: &Caller, mut send: sabir_model::Send) -> Result<Answer, Error> {
        if *self.core.stopping.borrow() {
            return Err(Error::Stopping);
        }
        if send.push.is_some() {
            return Err(Error::PushNotSupported);
        }
        if send.is_unnamed {
            send.message.id = new_id(MessageId::parse);
        }
        let place = self.place(caller, &send).await?;
        let mut tickets = Vec::new();
        if let Some(joined) = self.join(caller, &place.agent, &send, &mut tickets).await? {
            return joined.answer(self, &send).await;
        }
        let agency = self.agency(Some(&place.agent))?.clone();
        check_media_types(&agency, &send.message)?;
        match self.destination(caller, &send, place).await? {
            Destination::Task(key) => {
                let sent = self.deliver(&agency, key, &send, tickets).await?;
                sent.answer(self, &send).await
            }
            Destination::New(context) => {
                let context = context.unwrap_or_else(|| new_id(ContextId::parse));
                if send.direct == Direct::Message
                    && let Admission::Reply(parts) = agency.hosted.agent.admit(&send.message)
                {
                    return Ok(Answer::Message(Box::new(reply(parts, context))));
                }
                let sent = self.create(caller, &agency, &send, context, tickets).await?;
                sent.answer(self, &send).await
            }
        }
    }

    /// The agent that a message is for, and the task that it names.
    async fn place(&self, caller: &Caller, send: &sabir_model::Send) -> Result<Place, Error> {
        match &send.message.task {
            None => Ok(Place { agent: self.agency(send.agent.as_ref())?.hosted.id.clone(), task: None }),
            Some(task) => {
                let found = self.locate(caller, send.agent.as_ref(), task).await?;
                Ok(Place { agent: found.key.agent.clone(), task: Some(found) })
            }
        }
    }

    async fn destination(&self, caller: &Caller, send: &sabir_model::Send, place: Place) -> Result<Destination, Error> {
        let context = &send.message.context;
        let Some(task) = place.task else {
            return match context {
                Some(context) if send.context_alone == ContextAlone::AnswersWaiting => {
                    self.waiting_in(caller, &place.agent, context).await
                }
                context => Ok(Destination::New(context.clone())),
            };
        };
        if context.as_ref().is_some_and(|named| *named != task.context) {
            return Err(Error::invalid("message.contextId", "does not match the task"));
        }
        match (task.state.is_terminal(), send.on_finished) {
            (true, OnFinished::Refuse) => Err(Error::TaskFinished(task.key.task)),
            (true, OnFinished::StartTask) => Ok(Destination::New(Some(task.context))),
            (false, _) => Ok(Destination::Task(task.key)),
        }
    }

    /// A context alone answers the one task in it that waits.
    async fn waiting_in(&self, caller: &Caller, agent: &AgentId, context: &ContextId) -> Result<Destination, Error> {
        let waiting = self.core.store.waiting(&caller.owner, agent, context).await.map_err(told)?;
        match waiting.as_slice() {
            [] => Ok(Destination::New(Some(context.clone()))),
            [row] => Ok(Destination::Task(TopicKey {
                owner: row.owner.clone(),
                agent: row.agent.clone(),
                task: row.task.clone(),
            })),
            several => {
                let ids: Vec<&str> = several.iter().map(|row| row.task.as_str()).collect();
                Err(Error::invalid(
                    "message.taskId",
                    format!("several tasks of this context wait; name one of {}", ids.join(", ")),
                ))
            }
        }
    }

    async fn create(
        &self,
        caller: &Caller,
        agency: &Arc<Agency>,
        send: &sabir_model::Send,
        context: ContextId,
        tickets: Vec<Ticket>,
    ) -> Result<Sent, Error> {
        let room = agency.schedule.enter((caller.owner.clone(), context.clone()));
        let note = match &room {
            Room::None => return Err(Error::Busy(agency.hosted.id.clone())),
            Room::Later { behind: Some(task), .. } => Some(reply(
                vec![Part::text(format!("waiting for task {task} of this context, which needs an answer"))],
                context.clone(),
            )),
            Room::Now(_) | Room::Later { behind: None, .. } => None,
        };
        let task = new_id(TaskId::parse);
        let message = Message { task: Some(task.clone()), context: Some(context.clone()), ..send.message.clone() };
        let created = Created { message, metadata: send.metadata.clone(), note, time: self.core.clock.now() };
        let key = TopicKey { owner: caller.owner.clone(), agent: agency.hosted.id.clone(), task };
        let lease = self.core.feed.open(key.clone());
        let control = lease.take().map_err(|_| Error::internal("a new task has a driver already"))?;
        let (done, stored) = oneshot::channel();
        let keep = self.core.feed.open(key);
        let start = Start::Create { created: created.clone(), context, born: send.born, key: send.idempotency.clone() };
        let assignment = Assignment { lease, control, start, room: Some(room), tickets, done: Some(done) };
        drive::start(&self.core, agency, assignment);
        stored.await.map_err(|_| Error::internal("the driver of a new task is gone"))??;
        Ok(Sent { lease: keep, entrance: Entrance::Created(Box::new(created)) })
    }
}

/// A message of the agent's that belongs to no task.
fn reply(parts: Vec<Part>, context: ContextId) -> Message {
    Message {
        id: new_id(MessageId::parse),
        role: Role::Agent,
        parts,
        task: None,
        context: Some(context),
        references: Vec::new(),
        extensions: Vec::new(),
        metadata: None,
    }
}
