//! An agent that does what a test tells it, step by step.

use std::sync::{Arc, Mutex};

use sabir_engine::{About, Admission, Agent, AgentError, AgentFuture, Effects, Inputs, Outcome, Streaming, Turn};
use sabir_model::{Message, Part};

type Run = dyn Fn(Turn) -> futures_util::future::BoxFuture<'static, Result<Outcome, AgentError>> + Send + Sync;
type Resumes = dyn Fn(Option<&str>) -> bool + Send + Sync;

/// Runs a closure for each turn and keeps what it was asked.
pub struct ScriptedAgent {
    run: Box<Run>,
    seen: Arc<Mutex<Vec<String>>>,
    resumes: Box<Resumes>,
    effects: Effects,
}

impl ScriptedAgent {
    pub fn new<F, T>(run: F) -> Self
    where
        F: Fn(Turn) -> T + Send + Sync + 'static,
        T: Future<Output = Result<Outcome, AgentError>> + Send + 'static,
    {
        Self {
            run: Box::new(move |turn| Box::pin(run(turn))),
            seen: Arc::default(),
            resumes: Box::new(|_| false),
            effects: Effects::Anywhere,
        }
    }

    pub fn resuming(self) -> Self {
        self.resuming_if(|_| true)
    }

    /// Decides by what it remembers of a context whether it can resume there.
    pub fn resuming_if(mut self, resumes: impl Fn(Option<&str>) -> bool + Send + Sync + 'static) -> Self {
        self.resumes = Box::new(resumes);
        self
    }

    /// Says of itself where its effects can be seen.
    pub fn with_effects(mut self, effects: Effects) -> Self {
        self.effects = effects;
        self
    }

    /// The texts of its turns so far, in order.
    pub fn seen(&self) -> Arc<Mutex<Vec<String>>> {
        self.seen.clone()
    }
}

impl Agent for ScriptedAgent {
    fn about(&self) -> About {
        About {
            name: "scripted".into(),
            description: "does what a test tells it".into(),
            version: "1".into(),
            skills: Vec::new(),
            input_modes: vec!["text/plain".into()],
            output_modes: vec!["text/plain".into()],
            extensions: Vec::new(),
            takes: Inputs::Listed,
            streaming: Streaming::Offered,
        }
    }

    fn run(&self, turn: Turn) -> AgentFuture<'_> {
        self.seen.lock().expect("no test panics while it holds this").push(turn.message().text());
        (self.run)(turn)
    }

    fn admit(&self, message: &Message) -> Admission {
        match message.text().strip_prefix("reply ") {
            Some(text) => Admission::Reply(vec![Part::text(text)]),
            None => Admission::Task,
        }
    }

    fn effects(&self) -> Effects {
        self.effects
    }

    fn resumes(&self, memory: Option<&str>) -> bool {
        (self.resumes)(memory)
    }
}
