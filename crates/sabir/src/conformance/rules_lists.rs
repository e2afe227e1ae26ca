//! Lists of tasks (1.0 section 3.1.4): pages, filters, order.

use sabir_model::{ContextId, State, Timestamp, Wanted};
use sabir_wire::{Binding, PeerResponse};
use serde_json::{Value, json};

use super::calls::{self, ListFilter};
use super::evidence::Evidence;
use super::exchange::Outgoing;
use super::probe::Probe;
use super::reading::{Asked, context_of};
use super::rule::{Level, Rule, Sections, Subject};
use super::rules_tasks::state_words;
use super::scene::KnownTask;

pub const RULES: &[&Rule] = &[
    &ANSWER,
    &MEMBERS,
    &CONTAINS,
    &PAGE_SIZE,
    &PAGING,
    &PAGE_SIZE_RANGE,
    &PAGE_TOKEN,
    &TOTAL,
    &ORDER,
    &ARTIFACTS,
    &INCLUDE_ARTIFACTS,
    &CONTEXT,
    &STATUS,
];

const SECTION: Sections = Sections::since_v1("§3.1.4");

pub static ANSWER: Rule = Rule {
    id: "list.answer",
    level: Level::Error,
    subject: Subject::Interface,
    sections: SECTION,
    says: "a server lists the tasks that the client may see",
    remedy: "serve ListTasks (HTTP+JSON: GET /tasks)",
};
pub static MEMBERS: Rule = Rule {
    id: "list.members",
    level: Level::Error,
    subject: Subject::TextInterface,
    sections: SECTION,
    says: "a list always has tasks, nextPageToken, pageSize and totalSize",
    remedy: "write all four members, nextPageToken as \"\" on the last page",
};
pub static CONTAINS: Rule = Rule {
    id: "list.contains",
    level: Level::Error,
    subject: Subject::Interface,
    sections: SECTION,
    says: "a list of a context has the tasks of that context",
    remedy: "list tasks from where they are stored, finished ones too",
};
pub static PAGE_SIZE: Rule = Rule {
    id: "list.page-size",
    level: Level::Error,
    subject: Subject::Interface,
    sections: SECTION,
    says: "a page has at most pageSize tasks",
    remedy: "cut the page to pageSize, and say in nextPageToken where the next one begins",
};
pub static PAGING: Rule = Rule {
    id: "list.paging",
    level: Level::Error,
    subject: Subject::Interface,
    sections: SECTION,
    says: "nextPageToken leads to the tasks behind this page, each of them once, and is \"\" on the last page",
    remedy: "continue behind the last task of the page that the token came with",
};
pub static PAGE_SIZE_RANGE: Rule = Rule {
    id: "list.page-size-range",
    level: Level::Warning,
    subject: Subject::Interface,
    sections: Sections::since_v1("§3.1.4, §3.3.2"),
    says: "pageSize is between 1 and 100; other sizes are refused",
    remedy: "refuse other sizes with -32602 (HTTP 400, INVALID_ARGUMENT)",
};
pub static PAGE_TOKEN: Rule = Rule {
    id: "list.page-token",
    level: Level::Warning,
    subject: Subject::Interface,
    sections: Sections::since_v1("§3.1.4, §3.3.2"),
    says: "a pageToken that the server has not made is refused",
    remedy: "refuse tokens that cannot be read with -32602 (HTTP 400, INVALID_ARGUMENT)",
};
pub static TOTAL: Rule = Rule {
    id: "list.total-size",
    level: Level::Warning,
    subject: Subject::Interface,
    sections: SECTION,
    says: "totalSize counts all tasks that match, before they are cut into pages",
    remedy: "count what matches the filters, whatever the page",
};
pub static ORDER: Rule = Rule {
    id: "list.order",
    level: Level::Error,
    subject: Subject::Interface,
    sections: SECTION,
    says: "tasks are sorted by the time of their status, the newest first",
    remedy: "sort by status.timestamp, descending",
};
pub static ARTIFACTS: Rule = Rule {
    id: "list.artifacts",
    level: Level::Error,
    subject: Subject::Interface,
    sections: SECTION,
    says: "without includeArtifacts the tasks of a list have no member artifacts",
    remedy: "leave artifacts out of lists, unless the client asks for them",
};
pub static INCLUDE_ARTIFACTS: Rule = Rule {
    id: "list.include-artifacts",
    level: Level::Error,
    subject: Subject::Interface,
    sections: SECTION,
    says: "with includeArtifacts the tasks of a list have their artifacts",
    remedy: "show artifacts in lists if the client asks for them",
};
pub static CONTEXT: Rule = Rule {
    id: "list.context",
    level: Level::Error,
    subject: Subject::Interface,
    sections: SECTION,
    says: "a list of a contextId has tasks of this context only",
    remedy: "filter by contextId",
};
pub static STATUS: Rule = Rule {
    id: "list.status",
    level: Level::Error,
    subject: Subject::Interface,
    sections: SECTION,
    says: "a list of a status has tasks in this state only",
    remedy: "filter by status",
};

/// A page that came, and the JSON of its tasks.
struct Listed {
    asked: Asked,
    tasks: Vec<Value>,
    next: Option<String>,
}

pub async fn check(probe: &Probe<'_>) {
    if !probe.is_v1() {
        return;
    }
    let Some(all) = list(probe, &ListFilter::default()).await else {
        return skip_rest(probe, "the server does not list tasks");
    };
    if MEMBERS.is_for(probe.protocol()) {
        judge_members(probe, &all);
    }
    judge_order(probe, &all);
    judge_artifacts(probe, &all);
    check_status(probe).await;
    let known = probe.scene.finished();
    let context = known.as_ref().and_then(|known| ContextId::parse(known.context.as_deref()?).ok());
    match (known, context) {
        (Some(known), Some(context)) => check_context(probe, &known, &context).await,
        _ => {
            let why = "the server has shown no finished task with a context";
            probe.ledger.skip_all(&[&CONTAINS, &PAGE_SIZE, &PAGING, &TOTAL, &INCLUDE_ARTIFACTS, &CONTEXT], why);
        }
    }
    check_refusals(probe).await;
    skip_rest(probe, "there were too few tasks");
}

fn skip_rest(probe: &Probe<'_>, why: &str) {
    for rule in RULES.iter().filter(|rule| !probe.ledger.is_judged(rule)) {
        probe.ledger.skip(rule, why);
    }
}

async fn list(probe: &Probe<'_>, filter: &ListFilter) -> Option<Listed> {
    let outgoing = probe.outgoing(&calls::list(probe.tenant(), filter))?;
    read(probe, outgoing).await
}

async fn read(probe: &Probe<'_>, outgoing: Outgoing) -> Option<Listed> {
    let asked = probe.send(outgoing).await;
    let Some(result) = asked.result() else {
        let fault = format!("a list gets {}", asked.words(probe.protocol()));
        probe.ledger.fail(&ANSWER, fault, &asked.evidence());
        return None;
    };
    probe.ledger.pass(&ANSWER);
    let tasks = result.json["tasks"].as_array().cloned().unwrap_or_default();
    let next = result.json["nextPageToken"].as_str().map(str::to_owned);
    Some(Listed { asked, tasks, next })
}

fn judge_members(probe: &Probe<'_>, listed: &Listed) {
    let json = listed.asked.result().map(|result| &result.json);
    let is_missing = |name: &&&str| json.is_none_or(|json| json.get(**name).is_none());
    let missing: Vec<&str> =
        ["tasks", "nextPageToken", "pageSize", "totalSize"].iter().filter(is_missing).copied().collect();
    let fault = (!missing.is_empty()).then(|| format!("the list has no {}", missing.join(" and no ")));
    probe.ledger.judge(&MEMBERS, fault, &listed.asked.evidence());
}

fn judge_order(probe: &Probe<'_>, listed: &Listed) {
    let times: Vec<Timestamp> = listed.tasks.iter().filter_map(time_of).collect();
    if times.len() < 2 {
        return;
    }
    let fault =
        (!times.is_sorted_by(|newer, older| newer >= older)).then(|| "older tasks come before newer ones".to_owned());
    probe.ledger.judge(&ORDER, fault, &listed.asked.evidence());
}

fn judge_artifacts(probe: &Probe<'_>, listed: &Listed) {
    let evidence = listed.asked.evidence();
    let of = |task: &Value| task.get("artifacts").map(|artifacts| artifacts.as_array().map_or(0, Vec::len));
    match listed.tasks.iter().filter_map(of).max() {
        None => probe.ledger.pass(&ARTIFACTS),
        // As the Python SDK writes it, which prints every member.
        Some(0) => {
            let fault = "tasks have an empty artifacts that should be left out";
            probe.ledger.fail_as(Level::Note, &ARTIFACTS, fault, &evidence);
        }
        Some(_) => probe.ledger.fail(&ARTIFACTS, "tasks have artifacts that nobody asked for", &evidence),
    }
}

async fn check_refusals(probe: &Probe<'_>) {
    let filter = ListFilter::default();
    let bent = |member: &str, value: Value| -> Option<Outgoing> {
        let outgoing = probe.outgoing(&calls::list(probe.tenant(), &filter))?;
        Some(match probe.protocol().binding() {
            Binding::JsonRpc | Binding::Grpc => outgoing.with_params(|params| params[member] = value),
            Binding::HttpJson => outgoing.with_query(member, value.as_str().unwrap_or(&value.to_string())),
        })
    };
    for (rule, member, value) in [
        (&PAGE_SIZE_RANGE, "pageSize", json!(101)),
        (&PAGE_SIZE_RANGE, "pageSize", json!(-1)),
        (&PAGE_TOKEN, "pageToken", json!("sabir-check-no-token")),
    ] {
        if rule.id == PAGE_TOKEN.id && probe.ledger.has_failed(&PAGING) {
            probe.ledger.skip(rule, "the server does not go by tokens");
            continue;
        }
        let words = format!("a list with {member} {value}");
        let Some(outgoing) = bent(member, value) else { return };
        let asked = probe.send(outgoing).await;
        let fault = asked.result().map(|_| format!("{words} is accepted"));
        probe.ledger.judge(rule, fault, &asked.evidence());
    }
}

async fn check_status(probe: &Probe<'_>) {
    let filter = ListFilter { state: Some(State::Completed), ..ListFilter::default() };
    let Some(listed) = list(probe, &filter).await else { return };
    let Some(PeerResponse::Page { page, .. }) = listed.asked.result().map(|result| &result.response) else { return };
    let other = page.tasks.iter().map(|task| task.status.state).find(|state| *state != State::Completed);
    let fault = other.map(|state| format!("a list of completed tasks has one that is {}", state_words(state)));
    probe.ledger.judge(&STATUS, fault, &listed.asked.evidence());
}

/// The tasks of the context that the first messages were sent in.
async fn check_context(probe: &Probe<'_>, known: &KnownTask, context: &ContextId) {
    let ledger = &probe.ledger;
    let filter = ListFilter { context: Some(context.clone()), artifacts: Wanted::Yes, ..ListFilter::default() };
    let Some(listed) = list(probe, &filter).await else { return };
    let evidence = listed.asked.evidence();
    let is_there = listed.tasks.iter().any(|task| task["id"] == known.id.as_str());
    ledger.judge(
        &CONTAINS,
        (!is_there).then(|| format!("the task {} is not in the list of its context", known.id)),
        &evidence,
    );
    let other = listed.tasks.iter().filter_map(context_of).find(|other| *other != context.as_str());
    ledger.judge(&CONTEXT, other.map(|other| format!("the list of {context} has a task of {other}")), &evidence);
    check_artifacts(probe, known, &listed, &evidence).await;
    let is_filtered = other.is_none();
    let total = listed.asked.result().and_then(|result| result.json["totalSize"].as_u64());
    let is_whole = listed.next.as_deref().is_some_and(str::is_empty);
    if let (Some(total), true, true) = (total, is_whole, is_filtered) {
        let count = listed.tasks.len() as u64;
        let fault = (total != count).then(|| format!("totalSize is {total}, and there are {count} tasks"));
        ledger.judge(&TOTAL, fault, &evidence);
    }
    if listed.tasks.len() >= 2 {
        check_pages(probe, context, &listed).await;
    }
}

async fn check_artifacts(probe: &Probe<'_>, known: &KnownTask, listed: &Listed, evidence: &Evidence) {
    let Some(got) = probe.ask(&calls::get(probe.tenant(), &known.id, None)).await else { return };
    let has_some = got.task().is_some_and(|task| !task.artifacts.is_empty());
    let Some(task) = listed.tasks.iter().find(|task| task["id"] == known.id.as_str()).filter(|_| has_some) else {
        return probe.ledger.skip(&INCLUDE_ARTIFACTS, "the task has no artifacts");
    };
    let shown = task["artifacts"].as_array().map_or(0, Vec::len);
    let fault = (shown == 0).then(|| "the task has artifacts, and the list shows none".to_owned());
    probe.ledger.judge(&INCLUDE_ARTIFACTS, fault, evidence);
}

/// Page by page, one task each.
async fn check_pages(probe: &Probe<'_>, context: &ContextId, whole: &Listed) {
    let ledger = &probe.ledger;
    let filter = ListFilter { context: Some(context.clone()), page_size: 1, ..ListFilter::default() };
    let call = calls::list(probe.tenant(), &filter);
    let Some(first) = list(probe, &filter).await else { return };
    let evidence = first.asked.evidence();
    let size = first.tasks.len();
    ledger.judge(&PAGE_SIZE, (size > 1).then(|| format!("a page of 1 has {size} tasks")), &evidence);
    let (Some(token), 1) = (first.next.as_deref(), size) else {
        return ledger.skip(&PAGING, "there is no nextPageToken");
    };
    if token.is_empty() {
        let fault = format!("nextPageToken is empty on the first of {} pages", whole.tasks.len());
        return ledger.fail(&PAGING, fault, &evidence);
    }
    let Some(outgoing) = probe.outgoing_page(&call, Some(token)) else { return };
    let Some(second) = read(probe, outgoing).await else { return };
    let ids = |listed: &Listed| -> Vec<String> { listed.tasks.iter().map(|task| task["id"].to_string()).collect() };
    let fault = match ids(&second).as_slice() {
        [] => Some("the second page is empty, and there are more tasks".to_owned()),
        ids_of_second if ids_of_second == ids(&first).as_slice() => Some("the second page is the first one".to_owned()),
        _ if whole.tasks.len() == 2 && second.next.as_deref().is_some_and(|token| !token.is_empty()) => {
            Some("nextPageToken is not empty on the last page".to_owned())
        }
        _ => None,
    };
    ledger.judge(&PAGING, fault, &second.asked.evidence());
}

fn time_of(task: &Value) -> Option<Timestamp> {
    let text = task["status"]["timestamp"].as_str()?;
    Timestamp::parse(text).or_else(|| Timestamp::parse(&format!("{text}Z")))
}
