//! An engine with one agent on a store of its own, and short names for the calls that tests make.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use sabir_engine::{
    Agent, AgentError, Answer, Batch, Builder, Clock, Engine, EngineSettings, Hosted, Limits, LogEntry, Outcome,
    Subscription, Turn,
};
use sabir_model::{
    AgentId, Birth, Call, Caller, Cancel, ContextId, Delivery, Error, Event, Get, Message, MessageId, OnFinishedCancel,
    OnFinishedSubscribe, Part, Role, Send, Seq, Subscribe, Task, TaskId, Timestamp, Wanted,
};
use sabir_store::{MemoryStore, Store};
use sabir_testkit::scripted::ScriptedAgent;

pub struct Fixture {
    pub engine: Engine,
    pub store: Arc<dyn Store>,
}

pub fn hosted(id: &str, agent: impl Agent, limits: Limits) -> Hosted {
    let mut hosted = Hosted::new(AgentId::parse(id).unwrap(), Arc::new(agent));
    hosted.limits = limits;
    hosted
}

impl Fixture {
    pub async fn with(agent: impl Agent) -> Self {
        Self::limited(agent, Limits::default()).await
    }

    pub async fn limited(agent: impl Agent, limits: Limits) -> Self {
        Self::on(Arc::new(MemoryStore::new()), agent, limits, EngineSettings::default()).await
    }

    pub async fn on(store: Arc<dyn Store>, agent: impl Agent, limits: Limits, settings: EngineSettings) -> Self {
        let builder = Builder::new(store.clone()).settings(settings).agent(hosted("demo", agent, limits));
        Self { engine: builder.start().await.unwrap(), store }
    }

    pub async fn call(&self, call: Call) -> Result<Answer, Error> {
        self.engine.call(&Caller::anonymous(), call).await
    }

    pub async fn send(&self, send: Send) -> Result<Answer, Error> {
        self.call(Call::Send(Box::new(send))).await
    }

    /// Sends and expects a task.
    pub async fn task(&self, send: Send) -> Task {
        task_of(self.send(send).await.unwrap())
    }

    pub async fn stream(&self, send: Send) -> Subscription {
        stream_of(self.send(Send { delivery: Delivery::Stream, ..send }).await.unwrap())
    }

    pub async fn get(&self, task: &TaskId) -> Task {
        let get = Get { agent: None, task: task.clone(), history: None, earlier: Wanted::No };
        task_of(self.call(Call::Get(get)).await.unwrap())
    }

    pub async fn cancel(&self, task: &TaskId) -> Result<Task, Error> {
        let on_finished = OnFinishedCancel::Refuse;
        let cancel = Cancel { agent: None, task: task.clone(), metadata: None, on_finished };
        self.call(Call::Cancel(cancel)).await.map(task_of)
    }

    pub async fn subscribe(&self, task: &TaskId, after: Option<Seq>) -> Result<Subscription, Error> {
        let on_finished = OnFinishedSubscribe::Refuse;
        let subscribe = Subscribe { agent: None, task: task.clone(), after, on_finished };
        self.call(Call::Subscribe(subscribe)).await.map(stream_of)
    }
}

/// A message that creates a task and waits for its end.
pub fn text(text: &str) -> Send {
    static COUNT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
    let count = COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let message = Message::new(MessageId::parse(format!("m{count}")).unwrap(), Role::User, vec![Part::text(text)]);
    Send::new(message, Birth(10))
}

pub fn at_once(words: &str) -> Send {
    Send { delivery: Delivery::Immediately, ..text(words) }
}

pub fn to(task: &TaskId, send: Send) -> Send {
    let message = Message { task: Some(task.clone()), ..send.message };
    Send { message, ..send }
}

pub fn within(context: &str, send: Send) -> Send {
    let message = Message { context: Some(ContextId::parse(context).unwrap()), ..send.message };
    Send { message, ..send }
}

pub fn task_of(answer: Answer) -> Task {
    match answer {
        Answer::Task(task) => std::sync::Arc::unwrap_or_clone(task),
        _ => panic!("expected a task"),
    }
}

pub fn stream_of(answer: Answer) -> Subscription {
    match answer {
        Answer::Stream(stream) => stream,
        _ => panic!("expected a stream"),
    }
}

/// Completes every turn with the text of its message.
pub fn echo() -> ScriptedAgent {
    ScriptedAgent::new(|turn: Turn| async move { Ok(Outcome::Completed(vec![Part::text(turn.message().text())])) })
}

/// Works until it must stop.
pub fn endless() -> ScriptedAgent {
    ScriptedAgent::new(|turn: Turn| async move {
        turn.cancelled().await;
        Ok::<_, AgentError>(Outcome::Canceled(Vec::new()))
    })
}

/// Completes with the text of the message; `ask ...` ends the turn with a question.
pub fn asking() -> ScriptedAgent {
    ScriptedAgent::new(|turn: Turn| async move {
        let text = turn.message().text();
        Ok(match text.strip_prefix("ask ") {
            Some(question) => Outcome::InputRequired(vec![Part::text(question)]),
            None => Outcome::Completed(vec![Part::text(text)]),
        })
    })
}

/// All events of a stream until its end, as `(number, text)`; a snapshot is `snapshot ...`.
pub async fn drain(stream: &mut Subscription) -> Vec<(Seq, String)> {
    let mut all = Vec::new();
    while let Some(batch) = stream.next().await {
        match batch.unwrap() {
            Batch::Snapshot(task) => all.push((task.seq, format!("snapshot {:?}", task.status.state))),
            Batch::Events(entries) => all.extend(entries.iter().map(|entry| (entry.seq, words(entry)))),
        }
    }
    all
}

pub fn words(entry: &LogEntry) -> String {
    match &entry.event {
        Event::Created(_) => "created".into(),
        Event::Status(change) => {
            let text = change.status.message.as_ref().map_or(String::new(), |message| format!(" {}", message.text()));
            format!("{:?}{text}{}", change.status.state, if change.is_final { "." } else { "" })
        }
        Event::Artifact(chunk) => {
            let text: String = chunk.artifact.parts.iter().filter_map(Part::as_text).collect();
            format!("chunk {text}{}", if chunk.last { "." } else { "" })
        }
    }
}

/// A clock that panics once when it is armed, and with it the driver that asks for the time.
#[derive(Default)]
pub struct PanickingClock {
    pub is_armed: AtomicBool,
}

impl Clock for PanickingClock {
    fn now(&self) -> Timestamp {
        assert!(!self.is_armed.swap(false, Ordering::SeqCst), "the clock is broken");
        Timestamp::from_millis(1_000)
    }
}
