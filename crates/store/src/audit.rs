//! The audit log: who did what to which task.
//!
//! It is append-only. An entry gets the next number when it is stored; no call changes one or takes one out, and only
//! `AuditLog::trim` deletes, from the oldest on, what is too old or too much. Deleting a task deletes none of its
//! entries. The entry of a change of a task is stored in the transaction of the change (`SideRow::Audit`), all others by
//! `AuditLog::record`. No entry has contents of a message or a secret.

use std::borrow::Cow;
use std::net::IpAddr;

use sabir_model::{AgentId, Caller, Owner, TaskId, Timestamp};
use serde::{Deserialize, Serialize};

use crate::{StoreFuture, TaskNo};

/// A store's audit log.
pub trait AuditLog: Send + Sync + 'static {
    /// Stores an entry. It is queued at once, in the order of the calls; the future resolves after the commit.
    fn record(&self, entry: AuditEntry) -> StoreFuture<'static, ()>;

    /// A page of entries by their numbers, oldest first.
    fn entries(&self, query: AuditQuery) -> StoreFuture<'_, AuditPage>;

    /// Deletes the oldest entries that need not be kept. It ends early, so that appends can run in between; call it again
    /// while `more` is set.
    fn trim(&self, retention: AuditRetention) -> StoreFuture<'static, AuditTrimmed>;
}

/// What was done, or tried.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditEntry {
    pub time: Timestamp,
    /// Who did it.
    pub caller: Owner,
    /// From where.
    pub peer: Option<IpAddr>,
    pub action: AuditAction,
    pub agent: Option<AgentId>,
    /// The task; of a refused call the id that the caller gave, whether there is such a task or not.
    pub task: Option<TaskId>,
    /// The number of the task, if there is one. The store fills it in where the entry comes with an append.
    pub no: Option<TaskNo>,
    /// Whose task it is, if it was found.
    pub owner: Option<Owner>,
    /// The kind of refusal (`Error::kind`); `None`: it was done.
    pub refusal: Option<Cow<'static, str>>,
    /// What else is known in a few words; empty: nothing.
    pub detail: String,
}

/// Every action that is recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum AuditAction {
    /// A message began a task.
    Create,
    /// A message continued a task.
    Message,
    /// A message answered the open question of a task.
    Answer,
    Cancel,
    /// Somebody else than the owner looked at a task.
    Read,
    /// Somebody listed tasks of other owners.
    List,
    SetWebhook,
    DeleteWebhook,
    RetryDelivery,
    DropDelivery,
    /// An admin gave tasks of one owner to another.
    Assign,
    /// An admin took a copy of everything in the store.
    Backup,
    /// An admin call by somebody who is no admin.
    AdminCall,
}

impl AuditAction {
    pub const ALL: [AuditAction; 13] = [
        AuditAction::Create,
        AuditAction::Message,
        AuditAction::Answer,
        AuditAction::Cancel,
        AuditAction::Read,
        AuditAction::List,
        AuditAction::SetWebhook,
        AuditAction::DeleteWebhook,
        AuditAction::RetryDelivery,
        AuditAction::DropDelivery,
        AuditAction::Assign,
        AuditAction::Backup,
        AuditAction::AdminCall,
    ];

    /// The word for it, which is also how it is stored.
    pub fn name(self) -> &'static str {
        match self {
            AuditAction::Create => "create",
            AuditAction::Message => "message",
            AuditAction::Answer => "answer",
            AuditAction::Cancel => "cancel",
            AuditAction::Read => "read",
            AuditAction::List => "list",
            AuditAction::SetWebhook => "webhook-set",
            AuditAction::DeleteWebhook => "webhook-delete",
            AuditAction::RetryDelivery => "delivery-retry",
            AuditAction::DropDelivery => "delivery-drop",
            AuditAction::Assign => "assign",
            AuditAction::Backup => "backup",
            AuditAction::AdminCall => "admin",
        }
    }

    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|action| action.name() == name)
    }
}

/// A stored entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditRecord {
    /// Larger than that of every older entry, and never used again.
    pub number: u64,
    pub entry: AuditEntry,
}

/// Which entries are wanted; `None` in a filter: any.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditQuery {
    /// Only entries with larger numbers.
    pub after: u64,
    /// So many at most.
    pub limit: usize,
    /// The subject of the caller, alone or as `subject@tenant`.
    pub subject: Option<String>,
    pub task: Option<TaskId>,
    pub action: Option<AuditAction>,
    /// Only entries of this time or later.
    pub since: Option<Timestamp>,
}

impl AuditQuery {
    /// The oldest entries of all, so many at most.
    pub fn oldest(limit: usize) -> Self {
        Self { after: 0, limit, subject: None, task: None, action: None, since: None }
    }

    /// Whether the filters take the entry.
    pub(crate) fn takes(&self, entry: &AuditEntry) -> bool {
        let is_subject = |wanted: &String| {
            let caller = Caller::from(entry.caller.clone());
            caller.subject() == Some(wanted) || entry.caller.to_string() == *wanted
        };
        self.action.is_none_or(|action| entry.action == action)
            && self.since.is_none_or(|since| entry.time >= since)
            && self.task.as_ref().is_none_or(|task| entry.task.as_ref() == Some(task))
            && self.subject.as_ref().is_none_or(is_subject)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AuditPage {
    pub records: Vec<AuditRecord>,
    /// What `after` is for the next page; `None`: nothing follows. A page may have fewer entries than its limit, or none,
    /// and still be followed by another, since a store looks at so many entries at a time only.
    pub next: Option<u64>,
}

impl AuditPage {
    /// Reads the page from entries in their order, of which none has a number that is not above `after`.
    pub(crate) fn read<E>(
        query: &AuditQuery,
        records: impl Iterator<Item = Result<AuditRecord, E>>,
    ) -> Result<Self, E> {
        let (mut page, mut last) = (Self::default(), None);
        for (looks, record) in records.enumerate() {
            if page.records.len() >= query.limit || looks >= MAX_LOOKS {
                page.next = last;
                break;
            }
            let record = record?;
            last = Some(record.number);
            if query.takes(&record.entry) {
                page.records.push(record);
            }
        }
        Ok(page)
    }
}

/// Which entries are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AuditRetention {
    /// Older ones are deleted.
    pub before: Option<Timestamp>,
    /// All but so many of the newest are deleted.
    pub keep: Option<u64>,
}

impl AuditRetention {
    /// How many entries are surplus, if these are the first and the last of them.
    fn surplus(self, first: u64, last: u64) -> u64 {
        let all = (last + 1).saturating_sub(first);
        self.keep.map_or(0, |keep| all.saturating_sub(keep))
    }

    fn is_old(self, time: Timestamp) -> bool {
        self.before.is_some_and(|before| time < before)
    }

    /// Decides about one slice. `oldest` are the entries in their order; returns the number of the last one to delete.
    pub(crate) fn slice(
        self,
        last: u64,
        oldest: impl Iterator<Item = (u64, Timestamp)>,
    ) -> (Option<u64>, AuditTrimmed) {
        let (mut until, mut trimmed) = (None, AuditTrimmed::default());
        let mut oldest = oldest.peekable();
        let surplus = oldest.peek().map_or(0, |(first, _)| self.surplus(*first, last));
        for (place, (number, time)) in oldest.enumerate() {
            let is_old = self.is_old(time);
            if !is_old && place as u64 >= surplus {
                break;
            }
            if place == TRIM_SLICE {
                trimmed.more = true;
                break;
            }
            *(if is_old { &mut trimmed.old } else { &mut trimmed.surplus }) += 1;
            until = Some(number);
        }
        (until, trimmed)
    }
}

/// What a trim has deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AuditTrimmed {
    /// How many entries were too old.
    pub old: u64,
    /// How many more were not old, but too many.
    pub surplus: u64,
    /// There is more to delete.
    pub more: bool,
}

/// A trim deletes at most so many entries: about two milliseconds.
pub(crate) const TRIM_SLICE: usize = 2_000;
/// A page is made from so many entries at most, of which the filters may leave out most.
pub(crate) const MAX_LOOKS: usize = 50_000;
