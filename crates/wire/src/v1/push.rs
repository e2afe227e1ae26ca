//! Webhooks: their configs and the params of the four push operations.
//!
//! An answer never holds the token or the credentials; they are read, and not written.

use sabir_model as model;
use sabir_model::{AgentId, PushAuthentication, PushCall, PushConfigId, TaskId};
use serde::{Deserialize, Serialize};

use crate::spelling::{Int, Problems, Several, Text, given, object};

/// What is set, and what is answered.
#[derive(Debug, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase")]
pub(super) struct PushConfig<'a> {
    #[serde(borrow, skip_serializing)]
    tenant: Option<Text<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<Text<'a>>,
    #[serde(alias = "task_id", skip_serializing_if = "Option::is_none")]
    task_id: Option<Text<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<Text<'a>>,
    #[serde(skip_serializing)]
    token: Option<Text<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    authentication: Option<Authentication<'a>>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase")]
struct Authentication<'a> {
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    scheme: Option<Text<'a>>,
    #[serde(skip_serializing)]
    credentials: Option<Text<'a>>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase")]
pub(super) struct PushConfigs<'a> {
    #[serde(borrow, default, skip_serializing_if = "Several::is_empty")]
    pub(super) configs: Several<'a, PushConfig<'a>, model::PushConfig>,
}

/// Of get, list and delete.
#[derive(Debug, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase")]
pub(super) struct PushParams<'a> {
    #[serde(borrow)]
    tenant: Option<Text<'a>>,
    #[serde(alias = "task_id")]
    task_id: Option<Text<'a>>,
    id: Option<Text<'a>>,
    #[serde(alias = "page_size")]
    page_size: Option<Int>,
    #[serde(alias = "page_token")]
    page_token: Option<Text<'a>>,
}

object! { both PushConfig<'a>; both Authentication<'a>; both PushConfigs<'a>; read PushParams<'a> }

impl PushConfig<'_> {
    /// Of a task that exists; the one in a send has none yet.
    pub(super) fn into_call(mut self) -> Result<PushCall, Problems> {
        let mut problems = Problems::default();
        let agent = problems.id("tenant", self.tenant.take(), AgentId::parse);
        let is_for_a_task = self.task_id.as_ref().is_some_and(|id| !id.as_str().is_empty());
        problems.required("taskId", is_for_a_task.then_some(()));
        let config = problems.keep("", self.try_into());
        problems.or(config.map(|config| PushCall::Set { agent, config }))
    }
}

impl PushParams<'_> {
    pub(super) fn into_get(self) -> Result<PushCall, Problems> {
        self.one(|agent, task, config| PushCall::Get { agent, task, config })
    }

    pub(super) fn into_delete(self) -> Result<PushCall, Problems> {
        self.one(|agent, task, config| PushCall::Delete { agent, task, config })
    }

    pub(super) fn into_list(self) -> Result<PushCall, Problems> {
        let mut problems = Problems::default();
        let agent = problems.id("tenant", self.tenant, AgentId::parse);
        let task = problems.required_id("taskId", self.task_id, TaskId::parse);
        let page_size = problems.count("pageSize", self.page_size).filter(|size| *size != 0);
        let page_token = given(self.page_token);
        problems.or(task.map(|task| PushCall::List { agent, task, page_size, page_token }))
    }

    fn one(
        self,
        call: impl FnOnce(Option<AgentId>, TaskId, Option<PushConfigId>) -> PushCall,
    ) -> Result<PushCall, Problems> {
        let mut problems = Problems::default();
        let agent = problems.id("tenant", self.tenant, AgentId::parse);
        let task = problems.required_id("taskId", self.task_id, TaskId::parse);
        let config = problems.required_id("id", self.id, PushConfigId::parse);
        problems.or(task.map(|task| call(agent, task, config)))
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
    type Error = Problems;

    fn try_from(config: PushConfig<'_>) -> Result<Self, Problems> {
        let mut problems = Problems::default();
        let id = problems.id("id", config.id, PushConfigId::parse);
        let task = problems.id("taskId", config.task_id, TaskId::parse);
        let url = problems.required_text("url", config.url);
        let authentication =
            config.authentication.and_then(|authentication| problems.keep("authentication", authentication.try_into()));
        let token = given(config.token);
        problems.or(url.map(|url| model::PushConfig { id, task, url, token, authentication }))
    }
}

impl TryFrom<Authentication<'_>> for PushAuthentication {
    type Error = Problems;

    fn try_from(authentication: Authentication<'_>) -> Result<Self, Problems> {
        let mut problems = Problems::default();
        let scheme = problems.required_text("scheme", authentication.scheme);
        let credentials = given(authentication.credentials);
        problems.or(scheme.map(|scheme| PushAuthentication { schemes: vec![scheme], credentials }))
    }
}
