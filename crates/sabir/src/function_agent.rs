//! An agent that is one function.

use sabir_engine::{About, Agent, AgentError, AgentFuture, Outcome, Turn};

/// Makes an agent of a function. The function is called once for each turn, and the card says the description.
///
/// ```
/// let greeter = sabir::agent("Greets people", |turn| async move { turn.reply("hello").await });
/// ```
pub fn agent<F, R>(description: impl Into<String>, run: F) -> FunctionAgent<F>
where
    F: Fn(Turn) -> R + Send + Sync + 'static,
    R: Future<Output = Result<Outcome, AgentError>> + Send + 'static,
{
    // A server names it by its id.
    FunctionAgent { about: About::new("", description), run }
}

/// An agent that is one function; [`agent`] makes it.
pub struct FunctionAgent<F> {
    about: About,
    run: F,
}

impl<F> FunctionAgent<F> {
    /// Changes what the card says.
    ///
    /// ```
    /// # use sabir::Skill;
    /// let greeter = sabir::agent("Greets people", |turn| async move { turn.reply("hello").await })
    ///     .about(|about| about.version("2.1.0"));
    /// ```
    pub fn about(mut self, change: impl FnOnce(About) -> About) -> Self {
        self.about = change(self.about);
        self
    }
}

impl<F, R> Agent for FunctionAgent<F>
where
    F: Fn(Turn) -> R + Send + Sync + 'static,
    R: Future<Output = Result<Outcome, AgentError>> + Send + 'static,
{
    fn about(&self) -> About {
        self.about.clone()
    }

    fn run(&self, turn: Turn) -> AgentFuture<'_> {
        Box::pin((self.run)(turn))
    }
}
