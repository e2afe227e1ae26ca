//! The agent's side of a turn: what it is given, and how it speaks.
//!
//! Everything an agent says waits until there is room for it, so an agent that talks faster than the
//! disk can write is slowed down and never buffered without bound.

use std::sync::Arc;

use sabir_model::{
    AgentId, Artifact, ArtifactId, ContextId, Cost, Json, Message, Owner, Part, State, Task, TaskId, ToolCall, Usage,
};
use sabir_store::Store;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use crate::AgentError;
use crate::beacon::Beacon;
use crate::read::CONVERSATION;

pub struct Turn {
    pub(crate) message: Arc<Message>,
    pub(crate) task: TaskId,
    pub(crate) context: ContextId,
    pub(crate) owner: Owner,
    pub(crate) agent: AgentId,
    pub(crate) metadata: Option<Json>,
    pub(crate) began: Instant,
    pub(crate) said: mpsc::Sender<Said>,
    pub(crate) stop: Arc<Beacon<bool>>,
    pub(crate) store: Arc<dyn Store>,
}

/// What an agent says in mid-turn. What is large is in boxes: the channel has room for many.
pub enum Said {
    /// No parts at all is a mere sign of life.
    Progress(Vec<Part>),
    Tool(Box<ToolCall>),
    Chunk(Box<Chunk>),
    Ask(Box<Ask>),
    Usage(Usage),
    /// All is said; what is left is tidying up.
    LastWord,
    /// What the agent wants to remember of the context.
    Remember(Option<String>),
}

/// A question to the caller.
pub struct Ask {
    pub state: State,
    pub parts: Vec<Part>,
    pub answer: oneshot::Sender<Arc<Message>>,
}

/// A piece of an artifact. The id is the agent's own name for it, the same for every piece.
pub struct Chunk {
    pub artifact: Artifact,
    /// Goes behind what is there; the first piece of an artifact never does.
    pub append: bool,
    pub last: bool,
}

/// How an agent ends its turn. The parts become the status message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    Completed(Vec<Part>),
    Failed(Vec<Part>),
    Rejected(Vec<Part>),
    Canceled,
    InputRequired(Vec<Part>),
    AuthRequired(Vec<Part>),
}

impl Turn {
    /// What the caller said.
    pub fn message(&self) -> &Message {
        &self.message
    }

    pub fn task(&self) -> &TaskId {
        &self.task
    }

    pub fn agent(&self) -> &AgentId {
        &self.agent
    }

    pub fn context(&self) -> &ContextId {
        &self.context
    }

    /// Of the request that made the task.
    pub fn metadata(&self) -> Option<&Json> {
        self.metadata.as_ref()
    }

    /// Tells how it goes.
    pub async fn progress(&self, text: impl Into<String>) {
        self.say(Said::Progress(vec![Part::text(text)])).await;
    }

    /// A sign of life, without words.
    pub async fn still_working(&self) {
        self.say(Said::Progress(Vec::new())).await;
    }

    /// Tells of a tool: that it is used, and how that ended.
    pub async fn tool(&self, call: ToolCall) {
        self.say(Said::Tool(Box::new(call))).await;
    }

    /// Hands over a whole artifact.
    pub async fn artifact(&self, artifact: Artifact) {
        self.say(Said::Chunk(Box::new(Chunk { artifact, append: false, last: true }))).await;
    }

    /// Hands over a piece of an artifact.
    pub async fn chunk(&self, chunk: Chunk) {
        self.say(Said::Chunk(Box::new(chunk))).await;
    }

    /// What the turn has cost so far; the last word counts.
    pub async fn usage(&self, usage: Usage) {
        self.say(Said::Usage(usage)).await;
    }

    /// What the turn has cost by now, to be noted on what it made.
    pub fn cost(&self, usage: Usage) -> Cost {
        Cost { usage, duration_ms: self.began.elapsed().as_millis() as u64, is_success: true }
    }

    /// Asks the caller in mid-turn. The task waits, the stream stays open, and this returns the answer: the first message
    /// that comes after the question. Those from before are turns of their own.
    pub async fn ask(&self, state: State, parts: Vec<Part>) -> Result<Arc<Message>, AgentError> {
        let (answer, answered) = oneshot::channel();
        self.say(Said::Ask(Box::new(Ask { state, parts, answer }))).await;
        answered.await.map_err(|_| AgentError("the turn was stopped before it was answered".into()))
    }

    /// Says that nothing more will be said. The agent tidies up from now on, which no time limit turns into a failure.
    pub async fn last_word(&self) {
        self.say(Said::LastWord).await;
    }

    /// Resolves when the agent must stop.
    pub async fn cancelled(&self) {
        self.stop.until(|stop| *stop).await;
    }

    pub fn is_cancelled(&self) -> bool {
        self.stop.get()
    }

    /// The other tasks of this context, oldest first, without those that have not begun.
    pub async fn conversation(&self) -> Result<Vec<Task>, AgentError> {
        let tasks = self.store.conversation(&self.owner, &self.agent, &self.context, CONVERSATION).await?;
        let is_told = |task: &Task| task.id != self.task && task.status.state != State::Submitted;
        Ok(tasks.into_iter().filter(is_told).collect())
    }

    /// The message that began the task: this one, unless the task has had turns before.
    pub async fn opening(&self) -> Result<Arc<Message>, AgentError> {
        let task = self.store.get(&self.owner, Some(&self.agent), &self.task).await?;
        let first = task.and_then(|task| task.history.into_iter().next());
        Ok(first.unwrap_or_else(|| self.message.clone()))
    }

    /// The tasks that the message refers to, as far as its sender may see them.
    pub async fn references(&self) -> Result<Vec<Task>, AgentError> {
        let mut tasks = Vec::new();
        for id in &self.message.references {
            if let Some(row) = self.store.find(&self.owner, None, id).await? {
                tasks.extend(self.store.load(row.no).await?);
            }
        }
        Ok(tasks)
    }

    /// What this agent remembered of the context.
    pub async fn memory(&self) -> Result<Option<String>, AgentError> {
        Ok(self.store.agent_state(&self.owner, &self.agent, &self.context).await?)
    }

    /// Keeps a little text for the next turn in this context, such as a session id. It is stored with
    /// what the agent says next.
    pub async fn remember(&self, memory: Option<String>) {
        self.say(Said::Remember(memory)).await;
    }

    /// An id for a new artifact.
    pub fn new_artifact_id(&self) -> ArtifactId {
        crate::engine::new_id(ArtifactId::parse)
    }

    async fn say(&self, said: Said) {
        // A driver that is gone has been stopped; the agent will see that by `cancelled`.
        let _ = self.said.send(said).await;
    }
}
