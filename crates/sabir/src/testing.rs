//! For tests of agents and of programs that call them: a server on a free port, and agents that play a script.

use std::collections::VecDeque;
use std::sync::Mutex;

use sabir_engine::{About, Agent, AgentError, AgentFuture, Outcome, Turn};
use sabir_model::Part;

use crate::library_server::Listening;
use crate::{Server, ServerError};

/// A server on a free port of this machine. It stops when it is dropped, and cleanly by [`TestServer::stop`].
///
/// ```
/// use sabir::testing::{Script, TestServer};
///
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let script = Script::new().reply("first").ask("which one?").reply("second");
/// let server = TestServer::start(sabir::Server::new().agent("scripted", script)).await?;
/// println!("an A2A client can call {}", server.url());
/// server.stop().await;
/// # Ok::<(), sabir::ServerError>(()) }).unwrap();
/// ```
pub struct TestServer {
    listening: Listening,
}

impl TestServer {
    /// Starts it.
    ///
    /// # Errors
    /// As [`Server::serve`].
    pub async fn start(server: Server) -> Result<Self, ServerError> {
        Ok(Self { listening: Listening::start(server).await? })
    }

    /// Where it listens, such as `http://127.0.0.1:43521`.
    pub fn url(&self) -> String {
        format!("http://{}", self.listening.address)
    }

    /// For calls without HTTP.
    pub fn engine(&self) -> &sabir_engine::Engine {
        &self.listening.engine
    }

    /// Stops it, and waits until it has.
    pub async fn stop(self) {
        self.listening.stop.send_replace(true);
        // It panics only if the server did, and then its message is on stderr.
        let _ = self.listening.serving.await;
    }
}

/// An agent that plays a script. Each turn plays the next steps, up to and including the one that ends a turn; when the
/// script is over, further turns fail.
#[derive(Default)]
pub struct Script {
    steps: Mutex<VecDeque<ScriptStep>>,
}

enum ScriptStep {
    Progress(String),
    Ask(String),
    Reply(String),
    Fail(String),
}

impl Script {
    /// An empty one.
    pub fn new() -> Self {
        Self::default()
    }

    /// Says how it goes.
    pub fn progress(self, text: impl Into<String>) -> Self {
        self.step(ScriptStep::Progress(text.into()))
    }

    /// Asks the caller in the middle of a turn, and goes on with the next step when the answer is there.
    pub fn ask(self, question: impl Into<String>) -> Self {
        self.step(ScriptStep::Ask(question.into()))
    }

    /// Answers, and ends the turn.
    pub fn reply(self, text: impl Into<String>) -> Self {
        self.step(ScriptStep::Reply(text.into()))
    }

    /// Fails with this reason, and ends the turn.
    pub fn fail(self, reason: impl Into<String>) -> Self {
        self.step(ScriptStep::Fail(reason.into()))
    }

    fn step(mut self, step: ScriptStep) -> Self {
        self.steps.get_mut().expect("nobody panics with the script in hand").push_back(step);
        self
    }

    fn next(&self) -> Option<ScriptStep> {
        self.steps.lock().expect("nobody panics with the script in hand").pop_front()
    }
}

impl Agent for Script {
    fn about(&self) -> About {
        About::new("", "Plays a script")
    }

    fn run(&self, turn: Turn) -> AgentFuture<'_> {
        Box::pin(async move {
            while let Some(step) = self.next() {
                match step {
                    ScriptStep::Progress(text) => turn.progress(text).await,
                    ScriptStep::Ask(question) => drop(turn.ask_text(question).await?),
                    ScriptStep::Reply(text) => return turn.reply(text).await,
                    ScriptStep::Fail(reason) => return Ok(Outcome::Failed(vec![Part::text(reason)])),
                }
            }
            Err(AgentError::for_caller("the script is over"))
        })
    }
}
