//! Webhooks: callers set them, and the store keeps what is to be sent to them.
//!
//! The engine sends nothing itself. What it needs from outside is a `WebhookPolicy`, which says whether a URL may be dialled
//! and how its secrets are stored; whoever builds the engine brings it, and runs a dispatcher on the same store.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use sabir_model::{
    AgentId, Birth, Caller, Error, Message, PushAuthentication, PushCall, PushConfig, PushConfigId, PushEvents, TaskId,
};
use sabir_store::{AuditAction, Delivery, DeliveryKind, Outbox, TaskRow, Webhook, WebhookEvents, WebhookSet};

use crate::Answer;
use crate::access::Action;
use crate::audit::CallAudit;
use crate::engine::Engine;
use crate::topic::TopicKey;

/// Says which webhooks callers may set.
pub trait WebhookPolicy: Send + Sync + 'static {
    /// Checks a config before it is stored. It may have to resolve a name.
    fn admit<'a>(&'a self, config: &'a PushConfig) -> BoxFuture<'a, Result<AdmittedWebhook, WebhookRefusal>>;

    /// The authentication schemes in the stored secrets of a webhook. Answers show them, and nothing else of the secrets.
    fn schemes(&self, url: &str, secrets: &[u8]) -> Vec<String> {
        let _ = (url, secrets);
        Vec::new()
    }
}

/// What the policy has made of a config.
#[derive(Clone)]
pub struct AdmittedWebhook {
    /// Scheme, host and port of the URL.
    pub receiver: String,
    /// Token and authentication, as they are stored.
    pub secrets: Vec<u8>,
}

/// Why a config is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookRefusal {
    /// The member of the config.
    pub field: String,
    /// What is wrong with it.
    pub reason: String,
}

/// The parts of an engine that offers webhooks.
pub(crate) struct Webhooks {
    pub(crate) policy: Arc<dyn WebhookPolicy>,
    pub(crate) outbox: Arc<dyn Outbox>,
}

/// A webhook that may be set, before the id of its task is known.
pub(crate) struct InlineWebhook {
    /// Without one it gets the id of its task.
    id: Option<PushConfigId>,
    url: String,
    admitted: AdmittedWebhook,
    dialect: Birth,
    events: WebhookEvents,
}

/// What refusals call the config. Each dialect puts its own name for it in this place.
const CONFIG_MEMBER: &str = "pushNotificationConfig";

/// The member of a message's metadata that asks for every event, as the header does where a config is set by itself.
const EVENTS_MEMBER: &str = "Sabir-Push-Events";

impl Engine {
    /// Whether callers can set webhooks.
    pub fn offers_webhooks(&self) -> bool {
        self.core.webhooks.is_some()
    }

    fn webhook_parts(&self) -> Result<&Webhooks, Error> {
        self.core.webhooks.as_ref().ok_or(Error::PushNotSupported)
    }

    pub(crate) async fn push(&self, caller: &Caller, call: PushCall, audit: &mut CallAudit) -> Result<Answer, Error> {
        let policy = &*self.webhook_parts()?.policy;
        match call {
            PushCall::Set { agent, config, born, events } => {
                self.set_webhook(caller, agent.as_ref(), config, born, events, audit).await
            }
            PushCall::Get { agent, task, config } => {
                let row = self.stored_task(caller, agent.as_ref(), &task, Action::Read).await?;
                audit.set_task(&row);
                let webhooks = self.core.store.webhooks(row.no).await?;
                let found = webhooks.into_iter().find(|webhook| config.as_ref().is_none_or(|id| webhook.id == *id));
                match (found, config) {
                    (Some(webhook), _) => Ok(Answer::PushConfig(Some(Box::new(shown(policy, webhook, task))))),
                    (None, None) => Ok(Answer::PushConfig(None)),
                    (None, Some(_)) => Err(Error::TaskNotFound(task)),
                }
            }
            PushCall::List { agent, task, .. } => {
                let row = self.stored_task(caller, agent.as_ref(), &task, Action::Read).await?;
                audit.set_task(&row);
                let webhooks = self.core.store.webhooks(row.no).await?;
                let shown = webhooks.into_iter().map(|webhook| shown(policy, webhook, task.clone()));
                Ok(Answer::PushConfigs(shown.collect()))
            }
            PushCall::Delete { agent, task, config } => {
                let row = self.stored_task(caller, agent.as_ref(), &task, Action::Run).await?;
                audit.set_task(&row);
                self.core.store.remove_webhooks(row.no, config.as_ref()).await?;
                Ok(Answer::Done)
            }
        }
    }

    async fn set_webhook(
        &self,
        caller: &Caller,
        agent: Option<&AgentId>,
        config: PushConfig,
        born: Birth,
        events: PushEvents,
        audit: &mut CallAudit,
    ) -> Result<Answer, Error> {
        let task = config.task.clone().ok_or_else(|| Error::invalid("taskId", "is required"))?;
        let row = self.stored_task(caller, agent, &task, Action::Run).await?;
        audit.set_task(&row);
        let inline = self.admit(&config, born, events).await?;
        let webhook = inline.of_task(&row.task);
        let shown = shown(&*self.webhook_parts()?.policy, webhook.clone(), row.task.clone());
        self.store_webhook(&row, webhook).await?;
        Ok(Answer::PushConfig(Some(Box::new(shown))))
    }

    /// Checks the config that comes with a message.
    pub(crate) async fn admit_inline(
        &self,
        config: Option<&PushConfig>,
        born: Birth,
        message: &Message,
    ) -> Result<Option<InlineWebhook>, Error> {
        let Some(config) = config else { return Ok(None) };
        let wanted = message.metadata.as_ref().and_then(|metadata| metadata.member(EVENTS_MEMBER));
        let events = match wanted.map(|wanted| wanted.text()) {
            None => PushEvents::Statuses,
            Some(Some(text)) if text == "all" => PushEvents::All,
            Some(_) => {
                return Err(Error::invalid(format!("message.metadata.{EVENTS_MEMBER}"), "must be all, or left out"));
            }
        };
        self.admit(config, born, events).await.map(Some)
    }

    /// Adds a webhook to a task that exists, before the message that brought it is delivered: no event may be missed. It stays
    /// when the message is refused, so it has an entry of its own in the audit log.
    pub(crate) async fn add_webhook(
        &self,
        key: &TopicKey,
        inline: InlineWebhook,
        audit: &CallAudit,
    ) -> Result<(), Error> {
        let row = self.row_of(key).await?;
        let webhook = inline.of_task(&key.task);
        let entry = audit.for_webhook(&row, &webhook.id);
        self.store_webhook(&row, webhook).await?;
        self.record(entry).await
    }

    async fn admit(&self, config: &PushConfig, born: Birth, events: PushEvents) -> Result<InlineWebhook, Error> {
        let admitted = self.webhook_parts()?.policy.admit(config).await;
        let admitted = admitted
            .map_err(|WebhookRefusal { field, reason }| Error::invalid(format!("{CONFIG_MEMBER}.{field}"), reason))?;
        let events = match events {
            PushEvents::Statuses => WebhookEvents::Statuses,
            PushEvents::All => WebhookEvents::All,
        };
        Ok(InlineWebhook { id: config.id.clone(), url: config.url.clone(), admitted, dialect: born, events })
    }

    async fn store_webhook(&self, row: &TaskRow, webhook: Webhook) -> Result<(), Error> {
        match self.core.store.set_webhook(row.no, webhook, self.core.clock.now()).await? {
            WebhookSet::Done => Ok(()),
            WebhookSet::NoTask => Err(Error::TaskNotFound(row.task.clone())),
            WebhookSet::TooMany => Err(Error::invalid(
                format!("{CONFIG_MEMBER}.id"),
                "is one too many: the task has as many push configs as it may have; delete one of them first",
            )),
        }
    }

    async fn stored_task(
        &self,
        caller: &Caller,
        agent: Option<&AgentId>,
        task: &TaskId,
        action: Action,
    ) -> Result<TaskRow, Error> {
        let key = self.locate(caller, agent, task, action).await?.key;
        self.row_of(&key).await
    }

    async fn row_of(&self, TopicKey { owner, agent, task }: &TopicKey) -> Result<TaskRow, Error> {
        let row = self.core.store.find(owner, Some(agent), task).await?;
        row.ok_or_else(|| Error::TaskNotFound(task.clone()))
    }

    /// Deliveries as operators see them, whoever owns their tasks, by numbers above `after`.
    ///
    /// # Errors
    /// This engine offers no webhooks, or the store cannot be read.
    pub async fn deliveries(&self, kind: DeliveryKind, after: u64, limit: usize) -> Result<Vec<Delivery>, Error> {
        Ok(self.webhook_parts()?.outbox.deliveries(kind, after, limit).await?)
    }

    /// Makes a delivery due now; `false` if there is none of this number.
    ///
    /// # Errors
    /// This engine offers no webhooks, or the store cannot be written.
    pub async fn retry_delivery(&self, caller: &Caller, kind: DeliveryKind, number: u64) -> Result<bool, Error> {
        let entry = self.delivery_entry(caller, AuditAction::RetryDelivery, kind, number).await?;
        let is_found = self.webhook_parts()?.outbox.retry(kind, number, self.core.clock.now()).await?;
        self.record(entry.filter(|_| is_found)).await?;
        Ok(is_found)
    }

    /// Drops a delivery; `false` if there is none of this number. Of a pending one, all that its webhook has to send now.
    ///
    /// # Errors
    /// This engine offers no webhooks, or the store cannot be written.
    pub async fn drop_delivery(&self, caller: &Caller, kind: DeliveryKind, number: u64) -> Result<bool, Error> {
        let entry = self.delivery_entry(caller, AuditAction::DropDelivery, kind, number).await?;
        let is_found = self.webhook_parts()?.outbox.discard(kind, number, self.core.clock.now()).await?;
        self.record(entry.filter(|_| is_found)).await?;
        Ok(is_found)
    }
}

impl InlineWebhook {
    pub(crate) fn of_task(self, task: &TaskId) -> Webhook {
        let InlineWebhook { id, url, admitted: AdmittedWebhook { receiver, secrets }, dialect, events } = self;
        let id = id.unwrap_or_else(|| PushConfigId::parse(task.as_str()).expect("a task id is a valid id"));
        Webhook { id, url, receiver, secrets, dialect, events }
    }
}

/// A config as callers see it: secrets are never shown again.
fn shown(policy: &dyn WebhookPolicy, webhook: Webhook, task: TaskId) -> PushConfig {
    let schemes = policy.schemes(&webhook.url, &webhook.secrets);
    let authentication = (!schemes.is_empty()).then_some(PushAuthentication { schemes, credentials: None });
    PushConfig { id: Some(webhook.id), task: Some(task), url: webhook.url, token: None, authentication }
}
