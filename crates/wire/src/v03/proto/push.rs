//! Webhooks in 0.3's ProtoJSON, known by resource names: `tasks/ID/pushNotificationConfigs/ID`.

use sabir_model as model;
use sabir_model::{PushCall, PushConfigId, PushEvents, TaskId};
use serde::{Deserialize, Serialize};

use super::super::push::PushConfig;
use crate::wire_types::{Int32, Text, Violations, WireList, non_empty, object};

const CONFIGS: &str = "/pushNotificationConfigs";

/// The config as it is set and answered.
#[derive(Debug, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase")]
pub(crate) struct TaskPushConfig<'a> {
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub(crate) name: Option<Text<'a>>,
    #[serde(alias = "push_notification_config", skip_serializing_if = "Option::is_none")]
    pub(crate) push_notification_config: Option<PushConfig<'a>>,
}

/// The params of a set: the config inside a request, or the config alone.
#[derive(Debug, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase")]
pub(crate) struct CreateParams<'a> {
    #[serde(borrow)]
    pub(crate) parent: Option<Text<'a>>,
    #[serde(alias = "config_id")]
    pub(crate) config_id: Option<Text<'a>>,
    pub(crate) config: Option<TaskPushConfig<'a>>,
    pub(crate) name: Option<Text<'a>>,
    #[serde(alias = "push_notification_config")]
    pub(crate) push_notification_config: Option<PushConfig<'a>>,
}

/// The params of get and delete, which use `name`, and of list, which uses `parent`.
#[derive(Debug, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase")]
pub(crate) struct PushParams<'a> {
    #[serde(borrow)]
    pub(crate) name: Option<Text<'a>>,
    pub(crate) parent: Option<Text<'a>>,
    #[serde(alias = "page_size")]
    pub(crate) page_size: Option<Int32>,
    #[serde(alias = "page_token")]
    pub(crate) page_token: Option<Text<'a>>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase")]
pub(super) struct PushConfigs<'a> {
    #[serde(borrow, default, skip_serializing_if = "WireList::is_empty")]
    pub(super) configs: WireList<'a, TaskPushConfig<'a>, model::PushConfig>,
}

object! { both TaskPushConfig<'a>; read CreateParams<'a>; read PushParams<'a>; both PushConfigs<'a> }

impl CreateParams<'_> {
    pub(crate) fn into_call(self) -> Result<PushCall, Violations> {
        let mut violations = Violations::default();
        let alone = TaskPushConfig { name: self.name, push_notification_config: self.push_notification_config };
        let (member, config) = match self.config {
            Some(config) => ("config", config),
            None => ("", alone),
        };
        let config: Option<model::PushConfig> = violations.check(member, config.try_into());
        let parent =
            self.parent.and_then(|parent| violations.check("parent", read_name(&parent))).map(|name| name.task);
        let id = violations.id("configId", self.config_id, PushConfigId::parse);
        let task = parent.or_else(|| config.as_ref().and_then(|config| config.task.clone()));
        let task = violations.required("parent", task);
        violations.finish(config.map(|config| PushCall::Set {
            born: super::super::dialect::BIRTH,
            events: PushEvents::default(),
            agent: None,
            config: model::PushConfig { task, id: id.or(config.id), ..config },
        }))
    }
}

impl PushParams<'_> {
    pub(crate) fn into_get(self) -> Result<PushCall, Violations> {
        self.one(|task, config| PushCall::Get { agent: None, task, config })
    }

    pub(crate) fn into_delete(self) -> Result<PushCall, Violations> {
        self.one(|task, config| PushCall::Delete { agent: None, task, config })
    }

    pub(crate) fn into_list(self) -> Result<PushCall, Violations> {
        let mut violations = Violations::default();
        let parent = violations.required("parent", self.parent);
        let parent = parent.and_then(|parent| violations.check("parent", read_name(&parent)));
        let page_size = violations.count("pageSize", self.page_size).filter(|size| *size != 0);
        let page_token = non_empty(self.page_token);
        violations.finish(parent.map(|name| PushCall::List { agent: None, task: name.task, page_size, page_token }))
    }

    fn one(self, call: impl FnOnce(TaskId, Option<PushConfigId>) -> PushCall) -> Result<PushCall, Violations> {
        let mut violations = Violations::default();
        let name = violations.required("name", self.name);
        let name = name.and_then(|name| violations.check("name", read_name(&name)));
        violations.finish(name.map(|name| call(name.task, name.config)))
    }
}

pub(crate) fn config_name(task: &str, id: &str) -> String {
    format!("tasks/{task}{CONFIGS}/{id}")
}

struct ResourceName {
    task: TaskId,
    pub(crate) config: Option<PushConfigId>,
}

/// `tasks/ID`, `tasks/ID/pushNotificationConfigs` or `tasks/ID/pushNotificationConfigs/ID`.
fn read_name(name: &Text<'_>) -> Result<ResourceName, Violations> {
    let wrong = || Violations::single("", "must be tasks/ID or tasks/ID/pushNotificationConfigs/ID");
    let rest = name.as_str().strip_prefix("tasks/").ok_or_else(wrong)?;
    let (task, config) = match rest.rsplit_once(CONFIGS) {
        Some((task, "")) => (task, None),
        Some((task, config)) => (task, Some(config.strip_prefix('/').ok_or_else(wrong)?)),
        None => (rest, None),
    };
    let task = TaskId::parse(task).map_err(|_| wrong())?;
    let config = config.map(|id| PushConfigId::parse(id).map_err(|_| wrong())).transpose()?;
    Ok(ResourceName { task, config })
}

impl<'a> From<&'a model::PushConfig> for TaskPushConfig<'a> {
    fn from(config: &'a model::PushConfig) -> Self {
        let name = config.task.as_ref().zip(config.id.as_ref());
        TaskPushConfig {
            name: name.map(|(task, id)| config_name(task.as_str(), id.as_str()).into()),
            push_notification_config: Some(config.into()),
        }
    }
}

impl TryFrom<TaskPushConfig<'_>> for model::PushConfig {
    type Error = Violations;

    fn try_from(config: TaskPushConfig<'_>) -> Result<Self, Violations> {
        let mut violations = Violations::default();
        let name = config.name.filter(|name| !name.as_str().is_empty());
        let name = name.and_then(|name| violations.check("name", read_name(&name)));
        let config = violations.required("pushNotificationConfig", config.push_notification_config);
        let config = config.and_then(|config| violations.check("pushNotificationConfig", config.try_into()));
        violations.finish(config.map(|config: model::PushConfig| match name {
            Some(name) => model::PushConfig { id: config.id.or(name.config), task: Some(name.task), ..config },
            None => config,
        }))
    }
}
