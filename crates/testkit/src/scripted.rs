//! An agent that does what a test tells it, step by step.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use futures_util::future::BoxFuture;
use sabir_engine::{
    About, Admission, Agent, AgentError, AgentFuture, Effects, InterruptedRun, Outcome, Survives, Turn,
    WorkingTreeFuture,
};
use sabir_model::{Message, Part, QuestionForm};

type RunFn = dyn Fn(Turn) -> BoxFuture<'static, Result<Outcome, AgentError>> + Send + Sync;
type SurvivesFn = dyn Fn(&InterruptedRun<'_>) -> Survives + Send + Sync;
type TreeFn = dyn Fn(&Turn) -> Option<PathBuf> + Send + Sync;

/// Runs a closure for each turn and keeps what it was asked.
pub struct ScriptedAgent {
    run: Box<RunFn>,
    seen: Arc<Mutex<Vec<String>>>,
    survives: Box<SurvivesFn>,
    effects: Effects,
    question_form: QuestionForm,
    tree: Box<TreeFn>,
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
            survives: Box::new(|_| Survives::Nothing),
            effects: Effects::Anywhere,
            question_form: QuestionForm::WithData,
            tree: Box::new(|_| None),
        }
    }

    pub fn resuming(self) -> Self {
        self.resuming_if(|_, _| true)
    }

    /// Decides by what it remembers of a context, and by its question, whether it can resume there.
    pub fn resuming_if(self, resumes: impl Fn(Option<&str>, &Message) -> bool + Send + Sync + 'static) -> Self {
        self.surviving(move |run| match run.question {
            Some(question) if resumes(run.memory, question) => Survives::Questions,
            _ => Survives::Nothing,
        })
    }

    /// Says what of an interrupted run it can use.
    pub fn surviving(mut self, survives: impl Fn(&InterruptedRun<'_>) -> Survives + Send + Sync + 'static) -> Self {
        self.survives = Box::new(survives);
        self
    }

    /// Says of itself where its effects can be seen.
    pub fn with_effects(mut self, effects: Effects) -> Self {
        self.effects = effects;
        self
    }

    /// Says how its questions are shown.
    pub fn asking_in(mut self, form: QuestionForm) -> Self {
        self.question_form = form;
        self
    }

    /// Says which folder each turn must have for itself.
    pub fn working_in(mut self, tree: impl Fn(&Turn) -> Option<PathBuf> + Send + Sync + 'static) -> Self {
        self.tree = Box::new(tree);
        self
    }

    /// The texts of its turns so far, in order.
    pub fn seen(&self) -> Arc<Mutex<Vec<String>>> {
        self.seen.clone()
    }
}

impl Agent for ScriptedAgent {
    fn about(&self) -> About {
        About::new("scripted", "does what a test tells it").version("1").listed_inputs_only()
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

    fn question_form(&self) -> QuestionForm {
        self.question_form
    }

    fn working_tree<'a>(&'a self, turn: &'a Turn) -> WorkingTreeFuture<'a> {
        let tree = (self.tree)(turn);
        Box::pin(async move { tree })
    }

    fn survives_restart(&self, run: &InterruptedRun<'_>) -> Survives {
        (self.survives)(run)
    }
}
