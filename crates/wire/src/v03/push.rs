//! Webhooks of 0.3: a config, wrapped with the id of its task.
//!
//! The token and the credentials are read and never written.

use sabir_model as model;
use sabir_model::{PushAuthentication, PushCall, PushConfigId, PushEvents, TaskId};
use serde::{Deserialize, Serialize};

use crate::Strictness;
use crate::lenient::any_task_id;
use crate::wire_types::{Text, Violations, WireList, non_empty, object};

#[derive(Debug, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase")]
pub(crate) struct PushConfig<'a> {
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub(super) id: Option<Text<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) url: Option<Text<'a>>,
    #[serde(skip_serializing)]
    pub(super) token: Option<Text<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) authentication: Option<Authentication<'a>>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase")]
pub(super) struct Authentication<'a> {
    #[serde(borrow, default)]
    pub(super) schemes: WireList<'a, Text<'a>, String>,
    #[serde(skip_serializing)]
    pub(super) credentials: Option<Text<'a>>,
}

/// The config as it is set and answered.
#[derive(Debug, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase")]
pub(super) struct TaskPushConfig<'a> {
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    task_id: Option<Text<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    push_notification_config: Option<PushConfig<'a>>,
}

/// The params of all four operations, with every member name that clients use for the task id.
#[derive(Debug, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase")]
pub(super) struct PushParams<'a> {
    #[serde(borrow)]
    id: Option<Text<'a>>,
    task_id: Option<Text<'a>>,
    #[serde(rename = "task_id")]
    snake_task_id: Option<Text<'a>>,
    name: Option<Text<'a>>,
    #[serde(alias = "push_notification_config_id")]
    push_notification_config_id: Option<Text<'a>>,
    #[serde(alias = "push_notification_config")]
    push_notification_config: Option<PushConfig<'a>>,
}

object! {
    both PushConfig<'a>; both Authentication<'a>; both TaskPushConfig<'a>;
    read PushParams<'a>
}

impl<'a> PushParams<'a> {
    pub(super) fn into_set(mut self, strictness: Strictness) -> Result<PushCall, Violations> {
        let mut violations = Violations::default();
        let config = violations.required("pushNotificationConfig", self.push_notification_config.take());
        let config = config.and_then(|config| violations.check("pushNotificationConfig", config.try_into()));
        let task = match strictness {
            Strictness::Strict => violations.required_id("taskId", self.task_id, TaskId::parse),
            Strictness::Complete | Strictness::Lenient => {
                let names =
                    [("taskId", self.task_id), ("id", self.id), ("task_id", self.snake_task_id), ("name", self.name)];
                any_task_id(names, &mut violations)
            }
        };
        violations.finish(config.map(|config: model::PushConfig| PushCall::Set {
            born: super::dialect::BIRTH,
            events: PushEvents::default(),
            agent: None,
            config: model::PushConfig { task, ..config },
        }))
    }

    /// Without the id of a config: the first config of the task.
    pub(super) fn into_get(self, strictness: Strictness) -> Result<PushCall, Violations> {
        self.one(strictness, |task, config| PushCall::Get { agent: None, task, config })
    }

    /// Without the id of a config: all configs of the task.
    pub(super) fn into_delete(self, strictness: Strictness) -> Result<PushCall, Violations> {
        self.one(strictness, |task, config| PushCall::Delete { agent: None, task, config })
    }

    pub(super) fn into_list(self, strictness: Strictness) -> Result<PushCall, Violations> {
        self.one(strictness, |task, _| PushCall::List { agent: None, task, page_size: None, page_token: None })
    }

    fn one(
        self,
        strictness: Strictness,
        call: impl FnOnce(TaskId, Option<PushConfigId>) -> PushCall,
    ) -> Result<PushCall, Violations> {
        let mut violations = Violations::default();
        let task = match strictness {
            Strictness::Strict => violations.required_id("id", self.id, TaskId::parse),
            Strictness::Complete | Strictness::Lenient => {
                let names =
                    [("id", self.id), ("taskId", self.task_id), ("task_id", self.snake_task_id), ("name", self.name)];
                any_task_id(names, &mut violations)
            }
        };
        let config = violations.id("pushNotificationConfigId", self.push_notification_config_id, PushConfigId::parse);
        violations.finish(task.map(|task| call(task, config)))
    }
}

impl PushConfig<'_> {
    /// The config as 0.1 writes it.
    pub(crate) fn without_id(self) -> Self {
        Self { id: None, ..self }
    }
}

impl<'a> From<&'a model::PushConfig> for PushConfig<'a> {
    fn from(config: &'a model::PushConfig) -> Self {
        PushConfig {
            id: config.id.as_ref().map(Text::from),
            url: Some((&config.url).into()),
            token: None,
            authentication: config
                .authentication
                .as_ref()
                .map(|authentication| Authentication { schemes: (&authentication.schemes).into(), credentials: None }),
        }
    }
}

impl<'a> From<&'a model::PushConfig> for TaskPushConfig<'a> {
    fn from(config: &'a model::PushConfig) -> Self {
        TaskPushConfig { task_id: config.task.as_ref().map(Text::from), push_notification_config: Some(config.into()) }
    }
}

impl TryFrom<TaskPushConfig<'_>> for model::PushConfig {
    type Error = Violations;

    fn try_from(config: TaskPushConfig<'_>) -> Result<Self, Violations> {
        let mut violations = Violations::default();
        let task = violations.id("taskId", config.task_id, TaskId::parse);
        let config = violations.required("pushNotificationConfig", config.push_notification_config);
        let config = config.and_then(|config| violations.check("pushNotificationConfig", config.try_into()));
        violations.finish(config.map(|config: model::PushConfig| model::PushConfig { task, ..config }))
    }
}

impl TryFrom<PushConfig<'_>> for model::PushConfig {
    type Error = Violations;

    fn try_from(config: PushConfig<'_>) -> Result<Self, Violations> {
        let mut violations = Violations::default();
        let id = violations.id("id", config.id, PushConfigId::parse);
        let url = violations.required_text("url", config.url);
        let authentication = config.authentication.map(|authentication| PushAuthentication {
            schemes: authentication.schemes.into_wire().into_iter().map(Text::into_string).collect(),
            credentials: non_empty(authentication.credentials),
        });
        let token = non_empty(config.token);
        violations.finish(url.map(|url| model::PushConfig { id, task: None, url, token, authentication }))
    }
}
