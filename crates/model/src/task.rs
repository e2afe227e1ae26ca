//! The task as a reader sees it: all events so far, folded.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{AgentId, Artifact, ContextId, Json, Message, Owner, QuestionId, Seq, TaskId, Timestamp, Usage};

/// How a task stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// It waits for its turn.
    Submitted,
    /// The agent works on it.
    Working,
    /// It waits for an answer.
    InputRequired,
    /// It waits for credentials.
    AuthRequired,
    /// It is done.
    Completed,
    /// It could not be done.
    Failed,
    /// It was stopped.
    Canceled,
    /// The agent does not do it.
    Rejected,
}

impl State {
    /// Each of them.
    pub const ALL: [State; 8] = [
        State::Submitted,
        State::Working,
        State::InputRequired,
        State::AuthRequired,
        State::Completed,
        State::Failed,
        State::Canceled,
        State::Rejected,
    ];

    /// As people write it: in commands, settings and metrics. Each protocol version has names of its own.
    pub const fn name(self) -> &'static str {
        match self {
            State::Submitted => "submitted",
            State::Working => "working",
            State::InputRequired => "input-required",
            State::AuthRequired => "auth-required",
            State::Completed => "completed",
            State::Failed => "failed",
            State::Canceled => "canceled",
            State::Rejected => "rejected",
        }
    }

    /// Whether nothing more happens to it.
    pub fn is_terminal(self) -> bool {
        matches!(self, State::Completed | State::Failed | State::Canceled | State::Rejected)
    }

    /// The task waits for its caller.
    pub fn is_waiting(self) -> bool {
        matches!(self, State::InputRequired | State::AuthRequired)
    }
}

/// How a task stands, since when, and what is said of that.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// How it stands.
    pub state: State,
    /// What the agent says of it: a question, progress, or a reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<Arc<Message>>,
    /// Since when.
    pub time: Timestamp,
}

/// The dialect a task was born in. A value that the engine stores and never reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Birth(pub u8);

impl fmt::Display for Birth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "dialect {}", self.0)
    }
}

/// A task as of its last event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    /// As its caller knows it.
    pub id: TaskId,
    /// The conversation that it belongs to.
    pub context: ContextId,
    /// The agent that it is addressed to.
    pub agent: AgentId,
    /// Whose it is.
    pub owner: Owner,
    /// The dialect of the request that made it.
    pub born: Birth,
    /// When it was made.
    pub created: Timestamp,
    /// How it stands.
    pub status: Status,
    /// The turn is over: the task is finished, or its last turn ended by asking.
    pub turn_over: bool,
    /// What was made.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<Arc<Artifact>>,
    /// Those of them, by their places, whose last chunk is still to come.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub open: Vec<u32>,
    /// What was said.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<Arc<Message>>,
    /// Of the request that made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Json>,
    /// What it has cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// The number of the last event in this fold.
    pub seq: Seq,
}

impl Status {
    /// The question that a task in this status waits to have answered.
    pub fn question_id(&self, task: &TaskId) -> Option<QuestionId> {
        let question = self.message.as_deref().filter(|_| self.state.is_waiting())?;
        QuestionId::in_message(task, question)
    }

    /// The scope without which nobody may answer the question that a task in this status asks.
    pub fn approver(&self) -> Option<String> {
        self.message.as_deref().filter(|_| self.state.is_waiting())?.approver()
    }
}

impl Task {
    /// The scope without which nobody may answer the open question. `None`: there is none, or the owner answers it.
    pub fn approver(&self) -> Option<String> {
        self.status.approver()
    }

    /// The question that the task waits to have answered. A task of a list without artifacts does not know how many events it
    /// has, so only a question that tells its own id is found there.
    pub fn open_question(&self) -> Option<QuestionId> {
        // After a turn that ended by asking, nothing happens until the answer comes.
        let by_turn = || (self.turn_over && self.seq > 0).then(|| QuestionId::issue(&self.id, self.seq));
        self.status.question_id(&self.id).or_else(|| by_turn().filter(|_| self.status.state.is_waiting()))
    }

    /// Keeps at most the `length` newest messages of the history.
    pub fn trim_history(&mut self, length: Option<u32>) {
        if let Some(length) = length {
            let surplus = self.history.len().saturating_sub(length as usize);
            self.history.drain(..surplus);
        }
    }

    /// The task with at most the `length` newest messages of its history. The messages are shared, not copied.
    pub fn with_history(self: &Arc<Self>, length: Option<u32>) -> Arc<Self> {
        let length = length.map_or(usize::MAX, |length| length as usize);
        if self.history.len() <= length {
            return self.clone();
        }
        let history = self.history[self.history.len() - length..].to_vec();
        Arc::new(Self {
            id: self.id.clone(),
            context: self.context.clone(),
            agent: self.agent.clone(),
            owner: self.owner.clone(),
            born: self.born,
            created: self.created,
            status: self.status.clone(),
            turn_over: self.turn_over,
            artifacts: self.artifacts.clone(),
            open: self.open.clone(),
            history,
            metadata: self.metadata.clone(),
            usage: self.usage,
            seq: self.seq,
        })
    }
}
