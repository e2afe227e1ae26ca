//! Webhooks: their configs and the params of the four push operations.
//!
//! The token and the credentials are read and never written.

use sabir_model as model;
use sabir_model::{AgentId, PushAuthentication, PushCall, PushConfigId, PushEvents, TaskId};
use serde::{Deserialize, Serialize};

use crate::wire_types::{Int32, Text, Violations, WireList, non_empty, object};

/// The config as it is set and answered.
#[derive(Debug, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase")]
pub(super) struct PushConfig<'a> {
    #[serde(borrow, skip_serializing)]
    pub(super) tenant: Option<Text<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) id: Option<Text<'a>>,
    #[serde(alias = "task_id", skip_serializing_if = "Option::is_none")]
    pub(super) task_id: Option<Text<'a>>,
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
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub(super) scheme: Option<Text<'a>>,
    #[serde(skip_serializing)]
    pub(super) credentials: Option<Text<'a>>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase")]
pub(super) struct PushConfigs<'a> {
    #[serde(borrow, default, skip_serializing_if = "WireList::is_empty")]
    pub(super) configs: WireList<'a, PushConfig<'a>, model::PushConfig>,
}

/// The params of get, list and delete.
#[derive(Debug, Default, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase")]
pub(super) struct PushParams<'a> {
    #[serde(borrow)]
    pub(super) tenant: Option<Text<'a>>,
    #[serde(alias = "task_id")]
    pub(super) task_id: Option<Text<'a>>,
    pub(super) id: Option<Text<'a>>,
    #[serde(alias = "page_size")]
    pub(super) page_size: Option<Int32>,
    #[serde(alias = "page_token")]
    pub(super) page_token: Option<Text<'a>>,
}

object! { both PushConfig<'a>; both Authentication<'a>; both PushConfigs<'a>; read PushParams<'a> }

impl PushConfig<'_> {
    /// The config of a task that exists; a config inside a send names no task.
    pub(super) fn into_call(mut self) -> Result<PushCall, Violations> {
        let mut violations = Violations::default();
        let agent = violations.id("tenant", self.tenant.take(), AgentId::parse);
        let is_for_a_task = self.task_id.as_ref().is_some_and(|id| !id.as_str().is_empty());
        violations.required("taskId", is_for_a_task.then_some(()));
        let config = violations.check("", self.try_into());
        violations.finish(config.map(|config| PushCall::Set {
            born: super::dialect::BIRTH,
            events: PushEvents::default(),
            agent,
            config,
        }))
    }
}

impl PushParams<'_> {
    pub(super) fn into_get(self) -> Result<PushCall, Violations> {
        self.one(|agent, task, config| PushCall::Get { agent, task, config })
    }

    pub(super) fn into_delete(self) -> Result<PushCall, Violations> {
        self.one(|agent, task, config| PushCall::Delete { agent, task, config })
    }

    pub(super) fn into_list(self) -> Result<PushCall, Violations> {
        let mut violations = Violations::default();
        let agent = violations.id("tenant", self.tenant, AgentId::parse);
        let task = violations.required_id("taskId", self.task_id, TaskId::parse);
        let page_size = violations.count("pageSize", self.page_size).filter(|size| *size != 0);
        let page_token = non_empty(self.page_token);
        violations.finish(task.map(|task| PushCall::List { agent, task, page_size, page_token }))
    }

    fn one(
        self,
        call: impl FnOnce(Option<AgentId>, TaskId, Option<PushConfigId>) -> PushCall,
    ) -> Result<PushCall, Violations> {
        let mut violations = Violations::default();
        let agent = violations.id("tenant", self.tenant, AgentId::parse);
        let task = violations.required_id("taskId", self.task_id, TaskId::parse);
        let config = violations.required_id("id", self.id, PushConfigId::parse);
        violations.finish(task.map(|task| call(agent, task, config)))
    }
}

impl<'a> From<&'a model::PushConfig> for PushConfig<'a> {
    fn from(config: &'a model::PushConfig) -> Self {
        let scheme = config.authentication.as_ref().and_then(|authentication| authentication.schemes.first());
        PushConfig {
            tenant: None,
            id: config.id.as_ref().map(Text::from),
            task_id: config.task.as_ref().map(Text::from),
            url: Some((&config.url).into()),
            token: None,
            authentication: scheme.map(|scheme| Authentication { scheme: Some(scheme.into()), credentials: None }),
        }
    }
}

impl TryFrom<PushConfig<'_>> for model::PushConfig {
    type Error = Violations;

    fn try_from(config: PushConfig<'_>) -> Result<Self, Violations> {
        let mut violations = Violations::default();
        let id = violations.id("id", config.id, PushConfigId::parse);
        let task = violations.id("taskId", config.task_id, TaskId::parse);
        let url = violations.required_text("url", config.url);
        let authentication = config
            .authentication
            .and_then(|authentication| violations.check("authentication", authentication.try_into()));
        let token = non_empty(config.token);
        violations.finish(url.map(|url| model::PushConfig { id, task, url, token, authentication }))
    }
}

impl TryFrom<Authentication<'_>> for PushAuthentication {
    type Error = Violations;

    fn try_from(authentication: Authentication<'_>) -> Result<Self, Violations> {
        let mut violations = Violations::default();
        let scheme = violations.required_text("scheme", authentication.scheme);
        let credentials = non_empty(authentication.credentials);
        violations.finish(scheme.map(|scheme| PushAuthentication { schemes: vec![scheme], credentials }))
    }
}
