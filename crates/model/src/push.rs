//! Where a caller wants to be told: webhooks of a task.

use serde::{Deserialize, Serialize};

use crate::{PushConfigId, TaskId};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PushConfig {
    /// `None` until the engine gives it the task's id.
    pub id: Option<PushConfigId>,
    /// `None` in a send that makes the task.
    pub task: Option<TaskId>,
    pub url: String,
    pub token: Option<String>,
    pub authentication: Option<PushAuthentication>,
}

/// Which events a webhook gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PushEvents {
    /// Every status but `submitted`.
    #[default]
    Statuses,
    /// Every event.
    All,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PushAuthentication {
    pub schemes: Vec<String>,
    pub credentials: Option<String>,
}
