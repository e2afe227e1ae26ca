//! Who watches runs: `sabir` wires traces here. An engine without an observer does nothing of this.

use sabir_model::{AgentId, ContextId, Message, State, TaskId, ToolCall, TraceContext, Usage};

/// Whoever wants to know of runs. It is called on the way of every run, so it must not wait.
pub trait RunObserver: Send + Sync + 'static {
    /// A run begins.
    fn begin(&self, run: &RunStart<'_>) -> Box<dyn ObservedRun>;
}

/// What is known of a run when it begins.
pub struct RunStart<'a> {
    /// The agent that works.
    pub executor: &'a AgentId,
    /// The agent that the task is addressed to.
    pub agent: &'a AgentId,
    /// The task.
    pub task: &'a TaskId,
    /// The conversation that the task belongs to.
    pub context: &'a ContextId,
    /// The message that the run is for. Its request says which trace has caused the run.
    pub message: &'a Message,
    /// The model that a route asks for.
    pub model: Option<&'a str>,
    /// An earlier run of this turn has ended with its server.
    pub is_resumed: bool,
}

/// A run that is observed. One that is dropped before its end is interrupted: the server stops, and a later run may resume it.
pub trait ObservedRun: Send + Sync + 'static {
    /// Where the run is in its trace. The agent hands it on to what it calls.
    fn trace(&self) -> TraceContext;

    /// The agent has reported a tool call.
    fn tool(&mut self, call: &ToolCall);

    /// The question of the run got this answer.
    fn answered(&mut self, answer: &Message);

    /// The run has ended.
    fn end(self: Box<Self>, end: &RunEnd);
}

/// How a run has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunEnd {
    /// The state that the run has given its task.
    pub state: State,
    /// What the run has cost, if the agent told.
    pub usage: Option<Usage>,
    /// Why it failed, without a word of the agent's. `None`: it did not fail.
    pub failure: Option<RunFailure>,
}

/// Why a run has failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunFailure {
    /// The agent says that it could not do it.
    Agent,
    /// The agent had an error that is no answer.
    AgentError,
    /// The agent panicked, or ended without an answer.
    Crash,
    /// It took too long, or nothing was heard of it.
    Timeout,
    /// The server stops.
    ServerStops,
    /// What the agent said could not be stored.
    Store,
}

impl RunFailure {
    /// A word for it.
    pub fn name(self) -> &'static str {
        match self {
            RunFailure::Agent => "agent_failed",
            RunFailure::AgentError => "agent_error",
            RunFailure::Crash => "agent_crashed",
            RunFailure::Timeout => "timeout",
            RunFailure::ServerStops => "server_stopped",
            RunFailure::Store => "store_failed",
        }
    }

    /// A sentence for people.
    pub fn sentence(self) -> &'static str {
        match self {
            RunFailure::Agent => "the agent says that it failed",
            RunFailure::AgentError => "the agent had an error; the server's log has it",
            RunFailure::Crash => "the agent crashed",
            RunFailure::Timeout => "the run took too long",
            RunFailure::ServerStops => "the server stopped",
            RunFailure::Store => "the store could not save what the agent reported",
        }
    }
}
