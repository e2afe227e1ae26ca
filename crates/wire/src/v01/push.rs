//! Webhooks of 0.1: one for each task, so a config has no id.

use sabir_model as model;
use sabir_model::{PushCall, PushEvents, TaskId};
use serde::{Deserialize, Serialize};

use crate::Strictness;
use crate::lenient::any_task_id;
use crate::v03::PushConfig;
use crate::wire_types::{Text, Violations, object};

/// The answer. For a task without a webhook the config may be missing.
#[derive(Debug, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase")]
pub(super) struct TaskPushConfig<'a> {
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    id: Option<Text<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    push_notification_config: Option<PushConfig<'a>>,
}

/// The params of both operations, with every member name that clients use for the task id.
#[derive(Debug, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase")]
pub(super) struct PushParams<'a> {
    #[serde(borrow)]
    id: Option<Text<'a>>,
    task_id: Option<Text<'a>>,
    #[serde(rename = "task_id")]
    snake_task_id: Option<Text<'a>>,
    name: Option<Text<'a>>,
    #[serde(alias = "push_notification_config")]
    push_notification_config: Option<PushConfig<'a>>,
}

object! { both TaskPushConfig<'a>; read PushParams<'a> }

impl PushParams<'_> {
    pub(super) fn into_set(mut self, strictness: Strictness) -> Result<PushCall, Violations> {
        let mut violations = Violations::default();
        let config = violations.required("pushNotificationConfig", self.push_notification_config.take());
        let config = config.and_then(|config| violations.check("pushNotificationConfig", config.try_into()));
        let task = self.task(strictness, &mut violations);
        violations.finish(config.map(|config: model::PushConfig| PushCall::Set {
            born: super::dialect::BIRTH,
            events: PushEvents::default(),
            agent: None,
            config: model::PushConfig { task, ..config },
        }))
    }

    pub(super) fn into_get(self, strictness: Strictness) -> Result<PushCall, Violations> {
        let mut violations = Violations::default();
        let task = self.task(strictness, &mut violations);
        violations.finish(task.map(|task| PushCall::Get { agent: None, task, config: None }))
    }

    fn task(self, strictness: Strictness, violations: &mut Violations) -> Option<TaskId> {
        match strictness {
            Strictness::Strict => violations.required_id("id", self.id, TaskId::parse),
            Strictness::Complete | Strictness::Lenient => {
                let names =
                    [("id", self.id), ("taskId", self.task_id), ("task_id", self.snake_task_id), ("name", self.name)];
                any_task_id(names, violations)
            }
        }
    }
}

impl TaskPushConfig<'_> {
    /// The config that a peer has stored, if any.
    pub(super) fn into_config(self) -> Result<Option<model::PushConfig>, Violations> {
        let Some(config) = self.push_notification_config else { return Ok(None) };
        let mut violations = Violations::default();
        let task = violations.required_id("id", self.id, TaskId::parse);
        let config = violations.check("pushNotificationConfig", config.try_into());
        violations.finish(config.map(|config: model::PushConfig| Some(model::PushConfig { task, ..config })))
    }
}

impl<'a> From<&'a model::PushConfig> for TaskPushConfig<'a> {
    fn from(config: &'a model::PushConfig) -> Self {
        TaskPushConfig {
            id: config.task.as_ref().map(Text::from),
            push_notification_config: Some(PushConfig::from(config).without_id()),
        }
    }
}
