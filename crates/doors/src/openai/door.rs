//! The door itself: reads a request, sends its message, and says what the program reads.

use std::sync::Arc;

use futures_util::stream::{self, BoxStream, StreamExt};
use sabir_engine::{Answer, Engine, Hosted};
use sabir_model::{
    Addressee, AgentId, Birth, Call, Caller, ContextId, Delivery, Error, Event, IdempotencyKey, IncomingMessage, List,
    Part, QuestionId, QuestionType, Role, Send, State, Task, TaskId, TraceContext, Usage, Wanted,
};

use super::completion::{ChunkContent, Completion, DONE, Model, ModelList, bytes_of, now};
use super::prompt::{Conversation, id_in};
use super::refusal::{ChatPlace, Refusal};
use super::reply::{ContextSource, ReplyText, asking, pending_approval, refused_permission};
use super::request::{ChatRequest, ReplyForm, UsageChunk};
use super::side_request;
use crate::follow::{self, Following, Step, WaitEnd};
use crate::question::{GivenAnswer, Question, answer_send, naming};
use crate::words::{one_line, status_text};

/// Agents may also be named with this before their ids.
const PREFIX: &str = "sabir/";
/// The most tasks of one context that are looked through for a question.
const MOST_TASKS: u32 = 50;
/// The longest reason of a failure.
const LONGEST_REASON: usize = 4000;
/// Before a question that is shown again.
const NOT_TAKEN: &str = "[The message was not taken as an answer: a question is open that the conversation does not show, or the request was sent twice.]";
/// What a member of a request takes in memory while it is read.
const MEMBER: usize = 48;

/// Chat completions in front of an engine.
#[derive(Clone)]
pub struct OpenAiDoor {
    engine: Engine,
    /// The dialect that tasks of this door are born in.
    born: Birth,
    /// When this server began, since models must have been made at some time.
    started: u64,
}

/// What the headers of a request say.
#[derive(Debug, Clone, Default)]
pub struct ChatHeaders<'a> {
    /// `X-Sabir-Context`.
    pub context: Option<&'a str>,
    /// `Idempotency-Key`.
    pub idempotency_key: Option<&'a str>,
    /// `X-Stainless-Retry-Count`: how often a client library has sent this request before.
    pub retries: Option<&'a str>,
    /// The trace that the request belongs to.
    pub trace: Option<TraceContext>,
}

/// A request that is being answered. Whoever drops it stops waiting; its task goes on.
pub struct Chat {
    completion: Completion,
    form: ReplyForm,
    work: Work,
}

/// The data of one server-sent event after the other.
pub type ChatEvents = BoxStream<'static, Vec<u8>>;

enum Work {
    /// It is answered here, and no agent runs for it.
    Local(String, Option<ChatPlace>),
    Task(Box<TaskWork>),
}

/// An agent's work for one request.
struct TaskWork {
    door: OpenAiDoor,
    caller: Caller,
    following: Following,
    text: ReplyText,
    context_source: ContextSource,
    place: ChatPlace,
    /// Nothing more will be said.
    is_over: bool,
}

/// What comes next of an answer.
enum Next {
    Text(String),
    End(Option<Usage>),
}

impl OpenAiDoor {
    /// A door in front of this engine.
    pub fn new(engine: Engine, born: Birth) -> Self {
        Self { engine, born, started: now() }
    }

    /// How much memory it takes to read this body, beside the body.
    pub fn weight(body: &[u8]) -> usize {
        body.len() + body.iter().filter(|byte| **byte == b',').count() * MEMBER
    }

    /// The agents that this caller may know of, as models.
    pub fn models(&self, caller: &Caller) -> Vec<u8> {
        let models = self.engine.agents_for(caller).map(|hosted| Model::of(hosted, self.started));
        bytes_of(&ModelList::new(models.collect()))
    }

    /// One of them.
    ///
    /// # Errors
    /// There is none of this name.
    pub fn model(&self, caller: &Caller, name: &str) -> Result<Vec<u8>, Refusal> {
        Ok(bytes_of(&Model::of(self.hosted(caller, name)?, self.started)))
    }

    fn hosted(&self, caller: &Caller, name: &str) -> Result<&Hosted, Refusal> {
        let id = name.strip_prefix(PREFIX).unwrap_or(name);
        let found = self.engine.agents_for(caller).find(|hosted| hosted.id.as_str() == id);
        found.ok_or_else(|| {
            let known: Vec<&str> = self.engine.agents_for(caller).map(|hosted| hosted.id.as_str()).collect();
            Refusal::no_model(name, &known.join(", "))
        })
    }

    /// Reads a request and sends what it says to the agent.
    ///
    /// # Errors
    /// The request is malformed or refused. Nothing was begun then.
    pub async fn begin(&self, caller: &Caller, headers: ChatHeaders<'_>, body: &[u8]) -> Result<Chat, Refusal> {
        let ChatRequest { model, messages, form } = ChatRequest::read(body)?;
        let agent = self.hosted(caller, &model)?.id.clone();
        if let Some(answer) = side_request::answer(&messages) {
            let completion = Completion::new("chatcmpl-local".to_owned(), model);
            return Ok(Chat { completion, form, work: Work::Local(answer, None) });
        }
        let context = id_in_header("X-Sabir-Context", headers.context, ContextId::parse)?;
        let key = id_in_header("Idempotency-Key", headers.idempotency_key, IdempotencyKey::parse)?;
        let conversation = Conversation::of(&messages)?;
        let context_source = if context.is_some() { ContextSource::Header } else { ContextSource::None };
        let purpose = match &context {
            Some(context) => {
                // Client libraries repeat requests by themselves, and another question may be open by then.
                let is_repeated = headers.retries.is_some_and(|count| count.trim() != "0") && key.is_none();
                // Whoever reads something else says yes to that: the permission may be asked for since, or by another program.
                let has_shown_other = conversation.has_answers();
                let is_unsure = |task: &Task| is_repeated || (has_shown_other && asks_for_permission(task));
                self.purpose(caller, &agent, context, &conversation, is_unsure).await?
            }
            None => Purpose::Turn,
        };
        let (mut send, text) = match purpose {
            Purpose::Answer(send, text) => (*send, text),
            Purpose::Unclear(task) => return Ok(ask_again(&task, model, form)),
            Purpose::Turn => {
                let parts = match context_source {
                    ContextSource::Header => conversation.in_context(),
                    ContextSource::None => conversation.by_itself(),
                };
                let mut message = IncomingMessage::new(None, Role::User, parts);
                message.context = context;
                let mut send = Send::new(message, self.born);
                send.agent = Some(agent);
                (send, ReplyText::default())
            }
        };
        (send.idempotency, send.trace) = (key, headers.trace);
        let following = Following::send(&self.engine, caller, send).await.map_err(|error| Refusal::from(&error))?;
        // Nobody knows what of an earlier answer has arrived.
        let text = if following.is_repeated() { ReplyText::default() } else { text };
        let place = ChatPlace::of(following.as_seen());
        let completion = Completion::new(format!("chatcmpl-{}", place.task), model);
        let work = TaskWork {
            door: self.clone(),
            caller: caller.clone(),
            following,
            text,
            context_source,
            place,
            is_over: false,
        };
        Ok(Chat { completion, form, work: Work::Task(Box::new(work)) })
    }

    /// What a message in a context is for. `is_unsure`: whether it may not be meant for the task's question, where the
    /// conversation does not show that.
    ///
    /// An answer always names its question, so it is never taken for another one that is asked meanwhile. What it says is for
    /// the one reader of answers: only a clear yes grants a permission.
    async fn purpose(
        &self,
        caller: &Caller,
        agent: &AgentId,
        context: &ContextId,
        conversation: &Conversation<'_>,
        is_unsure: impl FnOnce(&Task) -> bool,
    ) -> Result<Purpose, Refusal> {
        let mut waiting = self.waiting(caller, agent, context).await.map_err(|error| Refusal::from(&error))?;
        let closed = |id: QuestionId| {
            let why = format!("question {id} is not open in this context; nothing was done");
            Refusal::new(400, "question_closed", why)
        };
        let is_open = |id: QuestionId| move |task: &Arc<Task>| task.open_question() == Some(id);
        if let Some((named, answer)) = named_question(&conversation.words()) {
            if answer.is_empty() {
                return Err(Refusal::field("messages", format!("names question {named} but does not answer it")));
            }
            let (task, text) = match waiting.iter().position(is_open(named)) {
                Some(place) => {
                    let task = waiting.swap_remove(place);
                    (task.id.clone(), ReplyText::after(&task))
                }
                // The engine knows whether it has had this answer before.
                None => {
                    let tasks =
                        self.tasks(caller, agent, context, None).await.map_err(|error| Refusal::from(&error))?;
                    let task = tasks.into_iter().find(|task| named.is_of(&task.id)).ok_or_else(|| closed(named))?;
                    (task.id, ReplyText::default())
                }
            };
            let others = conversation.last.iter().filter(|part| part.as_text().is_none()).cloned();
            let parts = std::iter::once(Part::text(answer)).chain(others).collect();
            return Ok(Purpose::Answer(Box::new(self.answer(agent, task, named, parts)), text));
        }
        // What the program has shown last says which question it is about.
        let shown = conversation.shown_ids().into_iter().rev().find(|id| waiting.iter().any(|task| id.is_of(&task.id)));
        let place = match (shown, waiting.as_slice()) {
            (_, []) => return Ok(Purpose::Turn),
            (Some(shown), waiting) => match waiting.iter().position(is_open(shown)) {
                Some(place) => place,
                None => {
                    let place = waiting.iter().position(|task| shown.is_of(&task.id)).unwrap_or(0);
                    return Ok(Purpose::Unclear(waiting[place].clone()));
                }
            },
            (None, [_]) => 0,
            (None, several) => {
                let ids = several.iter().filter_map(|task| task.open_question()).map(|id| id.to_string());
                let ids = ids.collect::<Vec<_>>().join(", ");
                let why = format!("must name one of the open questions of this context: {ids}");
                return Err(Refusal::field("messages", why));
            }
        };
        let task = waiting.swap_remove(place);
        let Some(question) = task.open_question() else { return Ok(Purpose::Turn) };
        if shown.is_none() && is_unsure(&task) {
            return Ok(Purpose::Unclear(task));
        }
        let send = self.answer(agent, task.id.clone(), question, conversation.last.clone());
        Ok(Purpose::Answer(Box::new(send), ReplyText::after(&task)))
    }

    fn answer(&self, agent: &AgentId, task: TaskId, question: QuestionId, mut parts: Vec<Part>) -> Send {
        parts.push(naming(&question.to_string(), None));
        let mut message = IncomingMessage::new(None, Role::User, parts);
        message.task = Some(task);
        let mut send = Send::new(message, self.born);
        (send.agent, send.addressee) = (Some(agent.clone()), Addressee::Waiting);
        send
    }

    /// The caller's own tasks of this context that wait for an answer.
    async fn waiting(&self, caller: &Caller, agent: &AgentId, context: &ContextId) -> Result<Vec<Arc<Task>>, Error> {
        let mut waiting = Vec::new();
        for state in [State::InputRequired, State::AuthRequired] {
            for listed in self.tasks(caller, agent, context, Some(state)).await? {
                // A list may be older than its tasks, and their questions are what matters.
                match follow::read(&self.engine, caller, Some(agent.clone()), listed.id).await {
                    Ok(task) if task.owner == caller.owner && task.open_question().is_some() => waiting.push(task),
                    Ok(_) | Err(Error::TaskNotFound(_)) => {}
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(waiting)
    }

    /// The caller's own tasks of this context, the newest first.
    async fn tasks(
        &self,
        caller: &Caller,
        agent: &AgentId,
        context: &ContextId,
        state: Option<State>,
    ) -> Result<Vec<Task>, Error> {
        let list = List {
            agent: Some(agent.clone()),
            context: Some(context.clone()),
            state,
            since: None,
            page_size: MOST_TASKS,
            from: None,
            history: Some(0),
            artifacts: Wanted::No,
        };
        let Answer::Page(page) = self.engine.call(caller, Call::List(list)).await? else {
            return Err(Error::internal("a list is answered with something else".to_owned()));
        };
        // Admins and approvers are shown those of others too.
        Ok(page.tasks.into_iter().filter(|task| task.owner == caller.owner).collect())
    }
}

/// What a message in a context is for.
enum Purpose {
    /// It begins a turn.
    Turn,
    /// It answers a question, and this of the question's task was shown before.
    Answer(Box<Send>, ReplyText),
    /// It may be meant for an earlier question of this task, so it answers none.
    Unclear(Arc<Task>),
}

/// Shows the open question of a task once more, and does nothing else.
fn ask_again(task: &Task, model: String, form: ReplyForm) -> Chat {
    let place = ChatPlace::of(task);
    let completion = Completion::new(format!("chatcmpl-{}", place.task), model);
    let question = Question::of(task).map(|question| asking(task, &question, ContextSource::Header));
    let text = format!("{NOT_TAKEN}\n\n{}", question.unwrap_or_default());
    Chat { completion, form, work: Work::Local(text, Some(place)) }
}

/// An id in a header. Programs send an empty one where they have none.
fn id_in_header<T, E: std::fmt::Display>(
    name: &str,
    value: Option<&str>,
    parse: impl FnOnce(String) -> Result<T, E>,
) -> Result<Option<T>, Refusal> {
    let value = value.map(str::trim).filter(|value| !value.is_empty());
    value.map(|value| parse(value.to_owned())).transpose().map_err(|why| Refusal::header(name, &why.to_string()))
}

fn asks_for_permission(task: &Task) -> bool {
    task.status.message.as_deref().is_some_and(|message| message.question_type() == QuestionType::Permission)
}

/// The id of a question that a message begins or ends with, and the rest of the message. Elsewhere it is a quotation.
fn named_question(words: &str) -> Option<(QuestionId, String)> {
    let words = words.trim();
    let (first, after) = words.split_once(char::is_whitespace).unwrap_or((words, ""));
    if let Some(id) = id_in(first) {
        return Some((id, after.trim().to_owned()));
    }
    let (before, last) = words.rsplit_once(char::is_whitespace)?;
    Some((id_in(last)?, before.trim().to_owned()))
}

impl Chat {
    /// Where the work is found; `None`: there is none.
    pub fn place(&self) -> Option<&ChatPlace> {
        match &self.work {
            Work::Local(_, place) => place.as_ref(),
            Work::Task(work) => Some(&work.place),
        }
    }

    /// Whether the program wants the answer as it grows.
    pub fn is_stream(&self) -> bool {
        matches!(self.form, ReplyForm::Stream(_))
    }

    /// Waits for the whole answer.
    ///
    /// # Errors
    /// The agent did not do what it was asked.
    pub async fn whole(self) -> Result<Vec<u8>, Refusal> {
        let Self { completion, mut work, .. } = self;
        let mut content = String::new();
        loop {
            match work.next(Growth::AtTheEnd).await? {
                Next::Text(text) if content.is_empty() => content = text,
                Next::Text(text) => content.push_str(&text),
                Next::End(usage) => return Ok(completion.whole(&content, usage)),
            }
        }
    }

    /// The answer as it grows.
    pub fn events(self) -> ChatEvents {
        let usage = match self.form {
            ReplyForm::Stream(usage) => usage,
            ReplyForm::Whole => UsageChunk::Unwanted,
        };
        let Self { completion, work, .. } = self;
        stream::unfold(StreamStage::Role(work), move |stage| {
            let completion = completion.clone();
            async move {
                let chunk = |content| completion.chunk(&content, usage);
                Some(match stage {
                    StreamStage::Role(work) => (chunk(ChunkContent::Role), StreamStage::Text(work)),
                    StreamStage::Text(mut work) => match work.next(Growth::AtOnce).await {
                        Ok(Next::Text(text)) => (chunk(ChunkContent::Text(&text)), StreamStage::Text(work)),
                        Ok(Next::End(cost)) => (chunk(ChunkContent::Finish), StreamStage::Usage(cost)),
                        Err(refusal) => (refusal.body(), StreamStage::Over),
                    },
                    StreamStage::Usage(cost) if usage == UsageChunk::Wanted => {
                        (chunk(ChunkContent::Usage(cost)), StreamStage::Done)
                    }
                    StreamStage::Usage(_) | StreamStage::Done => (DONE.to_vec(), StreamStage::Over),
                    StreamStage::Over => return None,
                })
            }
        })
        .boxed()
    }
}

/// What a stream says next.
enum StreamStage {
    Role(Work),
    Text(Work),
    Usage(Option<Usage>),
    Done,
    Over,
}

/// When an answer is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Growth {
    /// Piece by piece.
    AtOnce,
    /// When it is complete, so nothing of it is kept meanwhile.
    AtTheEnd,
}

impl Work {
    async fn next(&mut self, growth: Growth) -> Result<Next, Refusal> {
        match self {
            Work::Local(text, _) if text.is_empty() => Ok(Next::End(None)),
            Work::Local(text, _) => Ok(Next::Text(std::mem::take(text))),
            Work::Task(work) => work.next(growth).await,
        }
    }
}

impl TaskWork {
    async fn next(&mut self, growth: Growth) -> Result<Next, Refusal> {
        loop {
            if let Some(text) = self.text.take() {
                return Ok(Next::Text(text));
            }
            if self.is_over {
                return Ok(Next::End(self.following.as_seen().usage));
            }
            let step = self.following.step(None).await.map_err(|error| Refusal::from(&error).at(&self.place))?;
            match (step, growth) {
                (Step::End(end), _) => self.rest(end).await?,
                (_, Growth::AtTheEnd) => {}
                (Step::Snapshot | Step::ReadAgain, Growth::AtOnce) => self.text.catch_up(self.following.as_seen()),
                (Step::Events(entries), Growth::AtOnce) => {
                    for entry in &entries {
                        if let Event::Artifact(chunk) = &entry.event {
                            self.text.chunk(chunk);
                        }
                    }
                }
            }
        }
    }

    /// The task is at rest: it is over, or it asks.
    async fn rest(&mut self, end: WaitEnd) -> Result<(), Refusal> {
        let task = self.following.as_seen().clone();
        self.text.catch_up(&task);
        match end {
            WaitEnd::TimeIsOver => {
                let why = format!("this server stops; task {} goes on when it is back", task.id);
                Err(Refusal::new(503, "server_stopping", why).at(&self.place))
            }
            WaitEnd::Settled => self.settled(&task),
            WaitEnd::Asks => match Question::of(&task) {
                Some(question) => self.asks(&task, &question).await,
                None => {
                    Err(Refusal::from(&Error::internal("a task that asks has no question".to_owned())).at(&self.place))
                }
            },
        }
    }

    fn settled(&mut self, task: &Task) -> Result<(), Refusal> {
        let status = status_text(task);
        let reason = || match one_line(&status, LONGEST_REASON) {
            reason if reason.is_empty() => String::new(),
            reason => format!(": {reason}"),
        };
        let id = &task.id;
        let (code, message) = match task.status.state {
            State::Failed => ("agent_failed", format!("task {id} failed{}", reason())),
            State::Rejected => ("agent_rejected", format!("the agent rejected task {id}{}", reason())),
            State::Canceled => ("task_canceled", format!("task {id} was canceled{}", reason())),
            _ => {
                if !self.text.has_words_of_agent() {
                    self.text.note(&status);
                }
                self.is_over = true;
                return Ok(());
            }
        };
        Err(Refusal::of_agent(code, message).at(&self.place))
    }

    async fn asks(&mut self, task: &Task, question: &Question) -> Result<(), Refusal> {
        if !question.may_be_answered_by(&self.caller, task) {
            // Somebody else answers, and this caller waits for that.
            self.text.note(&pending_approval(question));
            self.following.waits_for_answer(question.id);
            return Ok(());
        }
        if (question.question_type, self.context_source) != (QuestionType::Permission, ContextSource::None) {
            self.text.note(&asking(task, question, self.context_source));
            self.is_over = true;
            return Ok(());
        }
        // Nobody who could say yes would find the question.
        let id = question.id.to_string();
        let mut send = answer_send(task, Some(&id), &GivenAnswer::Denied, self.door.born);
        send.delivery = Delivery::Immediately;
        match self.door.engine.call(&self.caller, Call::Send(Box::new(send))).await {
            Ok(_) => self.text.note(&refused_permission(task, question)),
            // Somebody else has answered it meanwhile.
            Err(Error::NotWaiting(_) | Error::QuestionClosed(_) | Error::TaskFinished(_)) => {}
            Err(error) => return Err(Refusal::from(&error).at(&self.place)),
        }
        self.following.waits_for_answer(question.id);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_is_named_at_the_beginning_or_the_end() {
        let id = QuestionId::issue(&TaskId::parse("t").unwrap(), 3);
        for (words, expected) in [
            (format!("{id} yes"), Some("yes")),
            (format!("`{id}`: yes, do it"), Some("yes, do it")),
            (format!("yes {id}."), Some("yes")),
            (format!(" {id} "), Some("")),
            (format!("what is {id} about?"), None),
            ("yes".to_owned(), None),
            ("q3 yes".to_owned(), None),
            (String::new(), None),
        ] {
            let named = named_question(&words);
            assert_eq!(named.as_ref().map(|(_, rest)| rest.as_str()), expected, "{words}");
            assert!(named.is_none_or(|(named, _)| named == id));
        }
    }
}
