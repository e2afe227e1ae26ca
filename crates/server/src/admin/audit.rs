//! The audit log, as admins read it. There is no call that changes it.

use http::StatusCode;
use sabir_engine::{AuditAction, AuditEntry, AuditPage, AuditQuery, AuditRecord, Engine};
use sabir_model::{Caller, Owner, TaskId, Timestamp};
use sabir_wire::{excerpt, query_parameters, query_value};
use serde::Serialize;

use super::{AdminRefusal, AdminReply, after_number, limit_number};

/// An entry as it is shown.
#[derive(Serialize)]
struct EntryView<'a> {
    number: u64,
    time: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    subject: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tenant: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    peer: Option<String>,
    action: &'static str,
    /// `ok`, or the kind of refusal.
    outcome: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    agent: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    task: Option<&'a str>,
    #[serde(rename = "taskNumber", skip_serializing_if = "Option::is_none")]
    no: Option<u64>,
    /// Whose task it is: `subject`, or `subject@tenant`.
    #[serde(skip_serializing_if = "Option::is_none")]
    owner: Option<String>,
    #[serde(skip_serializing_if = "str::is_empty")]
    detail: &'a str,
}

impl<'a> From<&'a AuditRecord> for EntryView<'a> {
    fn from(AuditRecord { number, entry }: &'a AuditRecord) -> Self {
        let AuditEntry { time, caller, peer, action, agent, task, no, owner, refusal, detail } = entry;
        let caller = Caller::from(caller.clone());
        Self {
            number: *number,
            time: time.to_string(),
            subject: caller.subject().map(str::to_owned),
            tenant: caller.tenant().filter(|tenant| !tenant.is_empty()).map(str::to_owned),
            peer: peer.map(|peer| peer.to_string()),
            action: action.name(),
            outcome: refusal.as_deref().unwrap_or("ok"),
            agent: agent.as_ref().map(|agent| agent.as_str()),
            task: task.as_ref().map(TaskId::as_str),
            no: no.map(|no| no.0),
            owner: owner.as_ref().map(Owner::to_string),
            detail,
        }
    }
}

#[derive(Serialize)]
struct Page<'a> {
    entries: Vec<EntryView<'a>>,
    /// What `after` is for the next page; left out where nothing follows.
    #[serde(skip_serializing_if = "Option::is_none")]
    after: Option<u64>,
    /// How many refused calls could not be recorded since the server started.
    #[serde(skip_serializing_if = "is_zero")]
    lost: u64,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

pub(super) async fn list(engine: &Engine, query: Option<&str>) -> Result<AdminReply, AdminRefusal> {
    let found = engine.audit_entries(parse(query)?).await?;
    let AuditPage { records, next } = found
        .ok_or_else(|| AdminRefusal::not_found("this server keeps no audit log; switch it on with audit.enabled"))?;
    let entries = records.iter().map(EntryView::from).collect();
    let page = Page { entries, after: next, lost: engine.lost_audit_entries() };
    Ok(AdminReply::new(StatusCode::OK, &page))
}

fn parse(query: Option<&str>) -> Result<AuditQuery, AdminRefusal> {
    let (mut after, mut limit) = (None, None);
    let (mut subject, mut task, mut action, mut since) = (None, None, None, None);
    for (name, value) in query_parameters(query) {
        let value = query_value(value)
            .ok_or_else(|| AdminRefusal::invalid(format!("the value of {} is not encoded well", excerpt(name))))?;
        let is_first = match name {
            "after" => after.replace(after_number(&value)?).is_none(),
            "limit" => limit.replace(limit_number(&value)?).is_none(),
            "subject" => subject.replace(value.into_owned()).is_none(),
            "task" => task.replace(task_id(&value)?).is_none(),
            "action" => action.replace(action_of(&value)?).is_none(),
            "since" => since.replace(time(&value)?).is_none(),
            _ => {
                return Err(AdminRefusal::invalid(format!(
                    "there is no parameter {}; known: after, limit, subject, task, action, since",
                    excerpt(name)
                )));
            }
        };
        if !is_first {
            return Err(AdminRefusal::invalid(format!("{name} is given twice")));
        }
    }
    let limit = limit.unwrap_or(super::DEFAULT_LIMIT);
    Ok(AuditQuery { after: after.unwrap_or(0), limit, subject, task, action, since })
}

fn task_id(value: &str) -> Result<TaskId, AdminRefusal> {
    TaskId::parse(value).map_err(|error| AdminRefusal::invalid(format!("task {error}")))
}

fn action_of(value: &str) -> Result<AuditAction, AdminRefusal> {
    let names = AuditAction::ALL.map(AuditAction::name).join(", ");
    AuditAction::parse(value).ok_or_else(|| AdminRefusal::invalid(format!("action must be one of {names}")))
}

fn time(value: &str) -> Result<Timestamp, AdminRefusal> {
    let refusal = || AdminRefusal::invalid("since must be a time such as 2026-05-01T12:00:00Z");
    Timestamp::parse(value).ok_or_else(refusal)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_entries_are_asked_for() {
        for (query, expected) in [
            (None, "after 0, 100: None None None None"),
            (Some("after=7&limit=1000"), "after 7, 1000: None None None None"),
            (
                Some("subject=token%3Aalice&task=t%201&action=cancel"),
                "after 0, 100: Some(\"token:alice\") Some(t 1) Some(Cancel) None",
            ),
            (Some("since=1970-01-01T00:00:01Z"), "after 0, 100: None None None Some(1000)"),
            (Some("action=delete"), "action must be one of create, message, answer,"),
            (Some("task="), "task must not be empty"),
            (Some("task=a%1bb"), "task must not contain control characters"),
            (Some("subject=%zz"), "the value of subject is not encoded well"),
            (Some("since=yesterday"), "since must be a time such as"),
            (Some("limit=0"), "limit must be between 1 and 1000"),
            (Some("after=x"), "after must be a whole number"),
            (Some("action=read&action=read"), "action is given twice"),
            (Some("number=1"), "there is no parameter number; known: after, limit, subject, task, action, since"),
        ] {
            let told = match parse(query) {
                Ok(AuditQuery { after, limit, subject, task, action, since }) => {
                    let task = task.map(|task| format!("Some({task})")).unwrap_or("None".into());
                    let since = since.map(|since| since.as_millis());
                    format!("after {after}, {limit}: {subject:?} {task} {action:?} {since:?}")
                }
                Err(AdminRefusal::Problem { detail, .. }) => detail,
                Err(_) => "another refusal".to_owned(),
            };
            assert!(told.starts_with(expected), "{query:?}: {told}");
        }
    }
}
