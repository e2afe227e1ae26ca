//! The task as a reader sees it: all events so far, folded.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{AgentId, Artifact, ContextId, Json, Message, Owner, QuestionId, Seq, TaskId, Timestamp, Usage};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    Submitted,
    Working,
    InputRequired,
    AuthRequired,
    Completed,
    Failed,
    Canceled,
    Rejected,
}

impl State {
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

    pub fn is_terminal(self) -> bool {
        matches!(self, State::Completed | State::Failed | State::Canceled | State::Rejected)
    }

    /// The task waits for its caller.
    pub fn is_waiting(self) -> bool {
        matches!(self, State::InputRequired | State::AuthRequired)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    pub state: State,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<Arc<Message>>,
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

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    pub id: TaskId,
    pub context: ContextId,
    pub agent: AgentId,
    pub owner: Owner,
    pub born: Birth,
    pub created: Timestamp,
    pub status: Status,
    /// The turn is over: the task is finished, or its last turn ended by asking.
    pub turn_over: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<Arc<Artifact>>,
    /// Those of them, by their places, whose last chunk is still to come.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub open: Vec<u32>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<Arc<Message>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Json>,
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
}

impl Task {
    /// The question that the task waits to have answered.
    pub fn open_question(&self) -> Option<QuestionId> {
        // After a turn that ended by asking, nothing happens until the answer comes.
        let by_turn = || self.turn_over.then(|| QuestionId::issue(&self.id, self.seq));
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
