//! Sending: where a message goes, what it starts, and what its sender is told.

use std::sync::Arc;

use sabir_model::{
    Caller, Content, ContextAlone, ContextId, Created, Delivery, Direct, Error, Message, MessageId, OnFinished, Part,
    Role, Seq, Task, TaskId,
};
use tokio::sync::{oneshot, watch};

use crate::drive::{self, Assignment, Start, told};
use crate::engine::{Agency, Engine, new_id};
use crate::feed::Lease;
use crate::flight::{Boarding, Ticket};
use crate::schedule::Room;
use crate::subscribe::Subscription;
use crate::topic::{Control, Rest, TopicKey};
use crate::{Admission, Answer, Inputs};

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
        let mut tickets = Vec::new();
        if let Some(joined) = self.join(caller, &send, &mut tickets).await? {
            return joined.answer(self, &send, Entrance::Joined).await;
        }
        let destination = self.destination(caller, &send).await?;
        match destination {
            Destination::Task(key) => {
                let agency = self.agency(Some(&key.agent))?.clone();
                check_media_types(&agency, &send.message)?;
                let sent = self.deliver(&agency, key, &send, tickets).await?;
                sent.answer(self, &send, Entrance::Continued).await
            }
            Destination::New(context) => {
                let agency = self.agency(send.agent.as_ref())?.clone();
                check_media_types(&agency, &send.message)?;
                let context = context.unwrap_or_else(|| new_id(ContextId::parse));
                if send.direct == Direct::Message
                    && let Admission::Reply(parts) = agency.hosted.agent.admit(&send.message)
                {
                    return Ok(Answer::Message(Box::new(reply(parts, context))));
                }
                let sent = self.create(caller, &agency, &send, context, tickets).await?;
                sent.answer(self, &send, Entrance::Created).await
            }
        }
    }

    async fn destination(&self, caller: &Caller, send: &sabir_model::Send) -> Result<Destination, Error> {
        let message = &send.message;
        let Some(task) = &message.task else {
            return match &message.context {
                Some(context) if send.context_alone == ContextAlone::AnswersWaiting => {
                    self.waiting_in(caller, send, context).await
                }
                context => Ok(Destination::New(context.clone())),
            };
        };
        let found = self.locate(caller, send.agent.as_ref(), task).await?;
        let (context, is_finished) = (found.context, found.state.is_terminal());
        if message.context.as_ref().is_some_and(|named| *named != context) {
            return Err(Error::invalid("message.contextId", "does not match the task"));
        }
        match (is_finished, send.on_finished) {
            (true, OnFinished::Refuse) => Err(Error::TaskFinished(task.clone())),
            (true, OnFinished::StartTask) => Ok(Destination::New(Some(context))),
            (false, _) => Ok(Destination::Task(found.key)),
        }
    }

    /// A context alone answers the one task in it that waits.
    async fn waiting_in(
        &self,
        caller: &Caller,
        send: &sabir_model::Send,
        context: &ContextId,
    ) -> Result<Destination, Error> {
        let agent = &self.agency(send.agent.as_ref())?.hosted.id;
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
        Ok(Sent { lease: keep, created: Some(created), before: None })
    }

    /// Hands a message to a task; returns when that is stored.
    async fn deliver(
        &self,
        agency: &Arc<Agency>,
        key: TopicKey,
        send: &sabir_model::Send,
        mut tickets: Vec<Ticket>,
    ) -> Result<Sent, Error> {
        loop {
            let lease = self.core.feed.open(key.clone());
            if !lease.load(&*self.core.store).await.map_err(told)? {
                return Err(Error::TaskNotFound(key.task));
            }
            let Some(before) = lease.task() else { return Err(Error::TaskNotFound(key.task)) };
            let message = Message {
                task: Some(before.id.clone()),
                context: Some(before.context.clone()),
                ..send.message.clone()
            };
            let (done, stored) = oneshot::channel();
            let keep = self.core.feed.open(key.clone());
            match lease.take() {
                Err(driver) => {
                    if driver.send(Control::Deliver { message, done }).is_err() {
                        continue;
                    }
                }
                // Nobody else can move the task from here on, but somebody may have before.
                Ok(_) if lease.look(|task| task.seq) != Some(before.seq) => {
                    lease.release();
                    continue;
                }
                Ok(control) => {
                    if before.status.state.is_terminal() {
                        lease.release();
                        return Err(Error::TaskFinished(before.id));
                    }
                    let room = agency.schedule.enter((key.owner.clone(), before.context.clone()));
                    if matches!(room, Room::None) {
                        lease.release();
                        return Err(Error::Busy(agency.hosted.id.clone()));
                    }
                    lease.expect_more();
                    let start = Start::Deliver { task: Box::new(before.clone()), message };
                    let tickets = std::mem::take(&mut tickets);
                    let assignment = Assignment { lease, control, start, room: Some(room), tickets, done: Some(done) };
                    drive::start(&self.core, agency, assignment);
                }
            }
            // A driver that let go before it heard us drops the question; then we ask again.
            if let Ok(stored) = stored.await {
                stored?;
                for ticket in &tickets {
                    ticket.land(&key);
                }
                return Ok(Sent { lease: keep, created: None, before: Some(Box::new(before)) });
            }
        }
    }

    /// A send that was made before: by its key, or the same message while the first is under way.
    async fn join(
        &self,
        caller: &Caller,
        send: &sabir_model::Send,
        tickets: &mut Vec<Ticket>,
    ) -> Result<Option<Sent>, Error> {
        let agent = match (&send.agent, &send.message.task) {
            (None, Some(task)) => match self.core.feed.find(&caller.owner, None, task) {
                Some(lease) => lease.key.agent.clone(),
                None => self.agency(None)?.hosted.id.clone(),
            },
            (agent, _) => self.agency(agent.as_ref())?.hosted.id.clone(),
        };
        if let Some(key) = &send.idempotency {
            match self.core.flights.by_key(&caller.owner, &agent, key, &send.message) {
                Boarding::First(ticket) => tickets.push(ticket),
                Boarding::Joined(landed) => return self.join_flight(landed).await,
                Boarding::Taken => {}
            }
            if let Some(row) = self.core.store.keyed(&caller.owner, &agent, key).await.map_err(told)? {
                let lease = self.core.feed.open(TopicKey { owner: row.owner, agent: row.agent, task: row.task });
                lease.load(&*self.core.store).await.map_err(told)?;
                return Ok(Some(Sent { lease, created: None, before: None }));
            }
        }
        match self.core.flights.by_message(&caller.owner, &agent, &send.message) {
            Boarding::First(ticket) => tickets.push(ticket),
            Boarding::Joined(landed) => return self.join_flight(landed).await,
            Boarding::Taken => {}
        }
        Ok(None)
    }

    async fn join_flight(&self, mut landed: watch::Receiver<Option<Option<TopicKey>>>) -> Result<Option<Sent>, Error> {
        let landed = landed.wait_for(Option::is_some).await.ok().and_then(|landed| landed.clone()).flatten();
        // The first came to nothing (or was a direct reply): this one goes its own way.
        let Some(key) = landed else { return Ok(None) };
        let lease = self.core.feed.open(key);
        let is_there = lease.load(&*self.core.store).await.map_err(told)?;
        Ok(is_there.then_some(Sent { lease, created: None, before: None }))
    }
}

/// A message that is stored, on the way to its answer.
struct Sent {
    lease: Lease,
    /// The first event of a task that this send has made.
    created: Option<Created>,
    /// The task as it was when this send came to it.
    before: Option<Box<Task>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Entrance {
    Created,
    Continued,
    Joined,
}

impl Sent {
    async fn answer(self, engine: &Engine, send: &sabir_model::Send, entrance: Entrance) -> Result<Answer, Error> {
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

fn check_media_types(agency: &Agency, message: &Message) -> Result<(), Error> {
    let about = &agency.about;
    if about.takes == Inputs::Anything {
        return Ok(());
    }
    let accepted = || about.input_modes.iter().chain(about.skills.iter().flat_map(|skill| &skill.input_modes));
    for part in &message.parts {
        let media_type = match (&part.media_type, &part.content) {
            (Some(media_type), _) => media_type.as_str(),
            (None, Content::Text(_)) => "text/plain",
            (None, Content::Data(_)) => "application/json",
            (None, Content::Bytes(_) | Content::Url(_)) => continue,
        };
        if !accepted().any(|mode| matches(mode, media_type)) {
            return Err(Error::ContentType(media_type.to_owned()));
        }
    }
    Ok(())
}

/// Whether a mode of a card covers a media type; v0.1's words `text`, `data` and `file` do too.
fn matches(mode: &str, media_type: &str) -> bool {
    let essence = media_type.split(';').next().unwrap_or_default().trim();
    match mode {
        "*/*" | "file" => true,
        "text" => essence.starts_with("text/"),
        "data" => essence.eq_ignore_ascii_case("application/json"),
        mode => match mode.strip_suffix("/*") {
            Some(family) => essence.split('/').next().is_some_and(|first| first.eq_ignore_ascii_case(family)),
            None => mode.eq_ignore_ascii_case(essence),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_cover_media_types() {
        for (mode, media_type, expected) in [
            ("text/plain", "text/plain", true),
            ("text/plain", "text/plain; charset=utf-8", true),
            ("text/plain", "TEXT/PLAIN", true),
            ("text/*", "text/markdown", true),
            ("*/*", "video/mp4", true),
            ("text", "text/markdown", true),
            ("data", "application/json", true),
            ("file", "video/mp4", true),
            ("text/plain", "video/mp4", false),
            ("image/*", "video/mp4", false),
        ] {
            assert_eq!(matches(mode, media_type), expected, "{mode} covers {media_type}");
        }
    }
}
