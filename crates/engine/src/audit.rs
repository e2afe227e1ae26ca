//! What the audit log records of calls: every change, also one that is refused for missing rights, and each look at a task
//! of another owner.
//!
//! | call                                      | its entry is stored                           | the caller waits for it |
//! |-------------------------------------------|-----------------------------------------------|-------------------------|
//! | send, answer, cancel                      | by the driver, with the change (`SideRow`)    | yes                     |
//! | webhook, admin call, look at others' task | after it, by itself                           | yes                     |
//! | webhook that comes with a message to a task | after it, by itself, before the message     | yes                     |
//! | change that is refused for missing rights | by itself; left out when too many are waiting | no                      |
//!
//! A task that the caller may not see does not exist for it, so "not found" is a refusal by rights too. A call that is
//! refused for another reason has changed nothing and is not recorded; nor is a repeated send, which changes nothing.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sabir_model::{
    Addressee, Call, Caller, Error, Message, Owner, Purpose, PushCall, PushConfigId, QuestionAnswer, QuestionId, Task,
    TaskId, Verdict,
};
use sabir_store::{
    AuditAction, AuditEntry, AuditLog, AuditPage, AuditQuery, AuditRetention, DeliveryKind, SideRow, TaskRow,
};
use tokio::time::Instant;

use crate::Answer;
use crate::engine::Engine;
use crate::sharded::lock;
use crate::topic::TopicKey;

/// So many entries of refused calls may wait for the store. A flood of refusals must not stop the server.
const MAX_WAITING: usize = 1_000;
/// How often it is logged that entries are lost.
const WARNING_INTERVAL: Duration = Duration::from_secs(60);
/// The longest detail, in characters.
const LONGEST_DETAIL: usize = 200;

/// How long entries of the audit log are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AuditKeep {
    /// Older entries are deleted.
    pub max_age: Option<Duration>,
    /// When there are more entries than this, the oldest are deleted.
    pub max_entries: Option<u64>,
}

/// The audit log of an engine that keeps one.
pub(crate) struct Audit {
    log: Arc<dyn AuditLog>,
    keep: AuditKeep,
    /// How many entries of refused calls wait for the store.
    waiting: Arc<AtomicUsize>,
    lost: Arc<LostEntries>,
}

/// Entries that were not stored.
#[derive(Default)]
struct LostEntries {
    count: AtomicU64,
    warned: Mutex<Option<Instant>>,
}

impl Audit {
    pub(crate) fn new(log: Arc<dyn AuditLog>, keep: AuditKeep) -> Self {
        Self { log, keep, waiting: Arc::default(), lost: Arc::default() }
    }

    /// Whether entries are ever deleted.
    pub(crate) fn is_bounded(&self) -> bool {
        self.keep != AuditKeep::default()
    }

    async fn record(&self, entry: AuditEntry) -> Result<(), Error> {
        Ok(self.log.record(entry).await?)
    }

    /// Records what nobody waits for.
    fn record_aside(&self, entry: AuditEntry) {
        if self.waiting.fetch_add(1, Ordering::Relaxed) >= MAX_WAITING {
            self.waiting.fetch_sub(1, Ordering::Relaxed);
            return self.lost.add("too many refused calls at once");
        }
        let (recording, waiting, lost) = (self.log.record(entry), self.waiting.clone(), self.lost.clone());
        tokio::spawn(async move {
            let recorded = recording.await;
            waiting.fetch_sub(1, Ordering::Relaxed);
            if let Err(error) = recorded {
                lost.add(&error.to_string());
            }
        });
    }
}

impl LostEntries {
    fn add(&self, reason: &str) {
        let count = self.count.fetch_add(1, Ordering::Relaxed) + 1;
        let mut warned = lock(&self.warned);
        if warned.is_none_or(|warned| warned.elapsed() >= WARNING_INTERVAL) {
            *warned = Some(Instant::now());
            tracing::warn!(count, reason, "refused calls are missing in the audit log");
        }
    }
}

/// The entry of a call that is being executed; nothing if no audit log is kept.
pub(crate) struct CallAudit {
    entry: Option<Box<AuditEntry>>,
    is_stored: AtomicBool,
}

impl CallAudit {
    /// Of what the server does by itself.
    pub(crate) fn of_server(entry: Option<AuditEntry>) -> Self {
        Self { entry: entry.map(Box::new), is_stored: AtomicBool::new(false) }
    }

    /// The entry for the driver of this task, which stores it with what the call changes.
    pub(crate) fn for_driver(&self, key: &TopicKey) -> Option<Box<AuditEntry>> {
        let mut entry = self.entry.clone()?;
        entry.agent = Some(key.agent.clone());
        entry.task = Some(key.task.clone());
        entry.owner = Some(key.owner.clone());
        Some(entry)
    }

    /// The entry of a webhook that came with a message for this task.
    pub(crate) fn for_webhook(&self, row: &TaskRow, config: &PushConfigId) -> Option<AuditEntry> {
        let mut of_webhook = Self { entry: self.entry.clone(), is_stored: AtomicBool::new(false) };
        of_webhook.set_task(row);
        let entry = *of_webhook.entry?;
        let detail = shortened(format!("config {config}, with a message"));
        Some(AuditEntry { action: AuditAction::SetWebhook, detail, ..entry })
    }

    /// The driver has stored the entry.
    pub(crate) fn set_stored(&self) {
        self.is_stored.store(true, Ordering::Relaxed);
    }

    /// The call is about this task.
    pub(crate) fn set_task(&mut self, row: &TaskRow) {
        let Some(entry) = &mut self.entry else { return };
        entry.agent = Some(row.agent.clone());
        entry.task = Some(row.task.clone());
        entry.owner = Some(row.owner.clone());
        entry.no = Some(row.no);
    }
}

/// The row of a message, when it is known what the message is for. `question` is the open one.
pub(crate) fn message_row(
    mut entry: Box<AuditEntry>,
    task: &TaskId,
    purpose: &Purpose,
    question: Option<&Message>,
    message: &Message,
) -> SideRow {
    entry.action = AuditAction::Message;
    if let Purpose::Answer(event) = purpose {
        entry.action = AuditAction::Answer;
        let verdict = question.and_then(|question| verdict(question, message));
        let answer = [format!("question {}", QuestionId::issue(task, *event))];
        let answer = answer.into_iter().chain(verdict.map(str::to_owned));
        let rest = Some(std::mem::take(&mut entry.detail)).filter(|rest| !rest.is_empty());
        entry.detail = answer.chain(rest).collect::<Vec<_>>().join(", ");
    }
    SideRow::Audit(entry)
}

/// What an answer says, as the agent will read it; `None`: the question is not one for yes or no.
fn verdict(question: &Message, answer: &Message) -> Option<&'static str> {
    let choices = question.question_choices();
    if !choices.iter().any(|choice| choice.kind.allows() || choice.kind.rejects()) {
        return None;
    }
    Some(match QuestionAnswer::read(answer, &choices).verdict {
        Verdict::Yes => "yes",
        Verdict::Always => "always",
        Verdict::No => "no",
        Verdict::Never => "never",
        Verdict::None => "no clear yes",
    })
}

impl Engine {
    pub(crate) fn begin_audit(&self, caller: &Caller, call: &Call) -> CallAudit {
        let entry = self.core.audit.as_ref().and_then(|_| self.entry_of(caller, call));
        CallAudit { entry: entry.map(Box::new), is_stored: AtomicBool::new(false) }
    }

    /// Records what the driver did not. A call whose entry cannot be stored fails.
    pub(crate) async fn finish_audit(
        &self,
        caller: &Caller,
        audit: CallAudit,
        answer: Result<Answer, Error>,
    ) -> Result<Answer, Error> {
        let (Some(mut entry), Some(log), false) = (audit.entry, &self.core.audit, audit.is_stored.into_inner()) else {
            return answer;
        };
        let is_look = matches!(entry.action, AuditAction::Read | AuditAction::List);
        let answer = match answer {
            Err(refusal) => {
                if is_refusal_by_rights(&refusal) && !is_look {
                    entry.refusal = Some(refusal.kind().into());
                    log.record_aside(*entry);
                }
                return Err(refusal);
            }
            Ok(answer) => answer,
        };
        let is_recorded = match (entry.action, &answer) {
            (AuditAction::SetWebhook | AuditAction::DeleteWebhook, _) => true,
            (AuditAction::Read | AuditAction::List, answer) => self.note_look(caller, &mut entry, answer).await?,
            (_, Answer::Message(_)) => {
                (entry.action, entry.detail) = (AuditAction::Message, "answered without a task".into());
                true
            }
            // A repeated send, or a cancel that left a finished task as it is.
            _ => false,
        };
        if is_recorded {
            log.record(*entry).await?;
        }
        Ok(answer)
    }

    /// Completes the entry of a look; `false`: the caller saw nothing but its own.
    async fn note_look(&self, caller: &Caller, entry: &mut AuditEntry, answer: &Answer) -> Result<bool, Error> {
        let is_foreign = |owner: &Owner| *owner != caller.owner;
        let key_of =
            |task: &Task| TopicKey { owner: task.owner.clone(), agent: task.agent.clone(), task: task.id.clone() };
        let key = match answer {
            Answer::Task(task) | Answer::Conversation(task, _) | Answer::Answered(task, _) => key_of(task),
            Answer::Stream(subscription) => subscription.key().clone(),
            Answer::Page(page) => {
                let foreign = page.tasks.iter().filter(|task| is_foreign(&task.owner)).count();
                entry.detail = format!("{foreign} tasks of other owners");
                return Ok(foreign > 0);
            }
            // `set_task` was called.
            Answer::PushConfig(_) | Answer::PushConfigs(_) => return Ok(entry.owner.as_ref().is_some_and(is_foreign)),
            Answer::Message(_) | Answer::Card(_) | Answer::Done => return Ok(false),
        };
        if !is_foreign(&key.owner) {
            return Ok(false);
        }
        let row = self.core.store.find(&key.owner, Some(&key.agent), &key.task).await?;
        entry.no = row.map(|row| row.no);
        (entry.agent, entry.task, entry.owner) = (Some(key.agent), Some(key.task), Some(key.owner));
        Ok(true)
    }

    fn entry_of(&self, caller: &Caller, call: &Call) -> Option<AuditEntry> {
        let (action, task, detail) = match call {
            Call::Send(send) => {
                let action = match (&send.message.task, send.addressee) {
                    (_, Addressee::Waiting) => AuditAction::Answer,
                    (Some(_), Addressee::Any) => AuditAction::Message,
                    (None, Addressee::Any) => AuditAction::Create,
                };
                let detail = send.push.as_ref().map_or("", |_| "with a webhook");
                (action, send.message.task.as_ref(), detail.to_owned())
            }
            Call::Cancel(cancel) => (AuditAction::Cancel, Some(&cancel.task), String::new()),
            Call::Get(get) => (AuditAction::Read, Some(&get.task), String::new()),
            Call::Subscribe(subscribe) => (AuditAction::Read, Some(&subscribe.task), "stream".to_owned()),
            Call::List(_) => (AuditAction::List, None, String::new()),
            Call::Push(PushCall::Set { config, .. }) => {
                let named = config.id.as_ref().map(|id| format!("config {id}"));
                (AuditAction::SetWebhook, config.task.as_ref(), named.unwrap_or_default())
            }
            Call::Push(PushCall::Delete { task, config, .. }) => {
                let named = config.as_ref().map_or_else(|| "all configs".to_owned(), |id| format!("config {id}"));
                (AuditAction::DeleteWebhook, Some(task), named)
            }
            Call::Push(PushCall::Get { task, .. } | PushCall::List { task, .. }) => {
                (AuditAction::Read, Some(task), "webhooks".to_owned())
            }
            Call::ExtendedCard { .. } => return None,
        };
        let named = AuditEntry { agent: call.agent().cloned(), task: task.cloned(), ..self.entry(caller, action) };
        Some(AuditEntry { detail: shortened(detail), ..named })
    }

    pub(crate) fn entry(&self, caller: &Caller, action: AuditAction) -> AuditEntry {
        AuditEntry {
            time: self.core.clock.now(),
            caller: caller.owner.clone(),
            peer: caller.peer,
            action,
            agent: None,
            task: None,
            no: None,
            owner: None,
            refusal: None,
            detail: String::new(),
        }
    }

    /// The entry of a change of a delivery; nothing if no audit log is kept. Made before the change, which may delete it.
    pub(crate) async fn delivery_entry(
        &self,
        caller: &Caller,
        action: AuditAction,
        kind: DeliveryKind,
        number: u64,
    ) -> Result<Option<AuditEntry>, Error> {
        if self.core.audit.is_none() {
            return Ok(None);
        }
        let found = self.deliveries(kind, number.saturating_sub(1), 1).await?;
        let delivery = found.into_iter().find(|delivery| delivery.number == number);
        let state = match kind {
            DeliveryKind::Pending => "pending",
            DeliveryKind::GivenUp => "given-up",
        };
        let mut entry = AuditEntry { detail: format!("{state} delivery {number}"), ..self.entry(caller, action) };
        if let Some(delivery) = delivery {
            (entry.agent, entry.task) = (Some(delivery.agent), Some(delivery.task));
        }
        Ok(Some(entry))
    }

    pub(crate) async fn record_assignment(
        &self,
        caller: &Caller,
        from: &Owner,
        to: &Owner,
        tasks: u64,
    ) -> Result<(), Error> {
        if self.core.audit.is_none() || tasks == 0 {
            return Ok(());
        }
        let (owner, detail) = (Some(from.clone()), shortened(format!("{tasks} tasks to {to}")));
        self.record(Some(AuditEntry { owner, detail, ..self.entry(caller, AuditAction::Assign) })).await
    }

    /// Records what was done, and waits for it.
    pub(crate) async fn record(&self, entry: Option<AuditEntry>) -> Result<(), Error> {
        match (&self.core.audit, entry) {
            (Some(audit), Some(entry)) => audit.record(entry).await,
            _ => Ok(()),
        }
    }

    /// Records that somebody who is no admin made an admin call. `request` says which.
    pub fn record_refused_admin_call(&self, caller: &Caller, request: &str) {
        if let Some(audit) = &self.core.audit {
            let refusal = Error::Forbidden(String::new()).kind().into();
            let entry = self.entry(caller, AuditAction::AdminCall);
            audit.record_aside(AuditEntry { refusal: Some(refusal), detail: shortened(request.to_owned()), ..entry });
        }
    }

    /// A page of the audit log; `None`: this engine keeps none.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn audit_entries(&self, query: AuditQuery) -> Result<Option<AuditPage>, Error> {
        match &self.core.audit {
            Some(audit) => Ok(Some(audit.log.entries(query).await?)),
            None => Ok(None),
        }
    }

    /// How many refused calls were not recorded since the start, because there were too many at once.
    pub fn lost_audit_entries(&self) -> u64 {
        self.core.audit.as_ref().map_or(0, |audit| audit.lost.count.load(Ordering::Relaxed))
    }

    /// Deletes entries that need not be kept.
    pub(crate) async fn trim_audit(&self) {
        let Some(audit) = self.core.audit.as_ref().filter(|audit| audit.is_bounded()) else { return };
        let before = audit.keep.max_age.map(|age| self.before(age));
        let retention = AuditRetention { before, keep: audit.keep.max_entries };
        let (mut old, mut surplus) = (0, 0);
        loop {
            match audit.log.trim(retention).await {
                Ok(trimmed) => {
                    (old, surplus) = (old + trimmed.old, surplus + trimmed.surplus);
                    if !trimmed.more {
                        break;
                    }
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot delete old entries of the audit log; will try again");
                    break;
                }
            }
        }
        if old > 0 {
            tracing::info!(entries = old, "deleted old entries of the audit log");
        }
        if surplus > 0 {
            // Somebody may have filled the log to get rid of what is in it.
            tracing::warn!(entries = surplus, "deleted entries of the audit log before their time: there are too many");
        }
    }
}

fn is_refusal_by_rights(refusal: &Error) -> bool {
    matches!(refusal, Error::Forbidden(_) | Error::TaskNotFound(_) | Error::AgentNotFound { .. })
}

pub(crate) fn shortened(text: String) -> String {
    match text.char_indices().nth(LONGEST_DETAIL) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
}
