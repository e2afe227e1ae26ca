//! Webhooks of tasks: their configs are set, read, listed and deleted.
//!
//! Nobody is called: the config is set on a task that waits, and is deleted before anything happens to it. Where that cannot
//! be (a finished task, whose end some servers tell to webhooks that come later; a version without a delete), the host does
//! not even exist, although careful servers refuse such a URL.

use sabir_model::{PushConfigId, TaskId};
use sabir_wire::{PeerErrorKind, ProtocolVersion};
use serde_json::Value;

use super::calls;
use super::probe::Probe;
use super::reading::Asked;
use super::rule::{Level, Rule, Sections, Subject};
use super::{rules_capabilities, rules_envelope, rules_errors};

pub const RULES: &[&Rule] = &[&CREATE, &GET, &LIST, &UNKNOWN, &DELETE, &DELETE_TWICE];

pub static CREATE: Rule = Rule {
    id: "push.create",
    level: Level::Error,
    subject: Subject::Interface,
    sections: Sections::all("§3.1.7, §4.3.1", "§7.5, §6.10", "§7.5, §6.10"),
    says: "setting a webhook answers with the config that was stored: its task, its URL and, since 1.0, its id",
    remedy: "answer with the whole config, with the id that it got",
};
pub static GET: Rule = Rule {
    id: "push.get",
    level: Level::Error,
    subject: Subject::Interface,
    sections: Sections::all("§3.1.8", "§7.6", "§7.6"),
    says: "a webhook that was set can be read",
    remedy: "store configs until their task is finished or they are deleted",
};
pub static LIST: Rule = Rule {
    id: "push.list",
    level: Level::Error,
    subject: Subject::Interface,
    sections: Sections::since_v02("§3.1.9", "§7.7"),
    says: "the list of a task's webhooks has all of them",
    remedy: "list every config of the task; 0.3 answers with a bare array",
};
pub static UNKNOWN: Rule = Rule {
    id: "push.unknown-config",
    level: Level::Warning,
    subject: Subject::Interface,
    sections: Sections::since_v02("§3.1.8", "§7.6"),
    says: "a webhook that does not exist is TaskNotFoundError, -32001",
    remedy: "answer with -32001 (HTTP 404) for a config that is not there",
};
pub static DELETE: Rule = Rule {
    id: "push.delete",
    level: Level::Error,
    subject: Subject::Interface,
    sections: Sections::since_v02("§3.1.10", "§7.8"),
    says: "a webhook that was deleted is gone",
    remedy: "remove the config for good",
};
pub static DELETE_TWICE: Rule = Rule {
    id: "push.delete-twice",
    level: Level::Error,
    subject: Subject::Interface,
    sections: Sections::since_v1("§3.1.10"),
    says: "deleting a webhook twice is the same as deleting it once",
    remedy: "answer a delete of a config that is not there as a success",
};

const REAL_URL: &str = "https://example.com/sabir-check-never-called";
const NOWHERE: &str = "https://sabir-check.invalid/never-called";

pub async fn check(probe: &Probe<'_>) {
    let waiting = probe.scene.waiting();
    let can_delete = probe.is_v1() || probe.version() == ProtocolVersion::V0_3 && probe.is_json_rpc();
    let url = if waiting.is_some() && can_delete { REAL_URL } else { NOWHERE };
    let Some(task) = waiting.or_else(|| probe.scene.finished()) else {
        let why = "there is no task to set a webhook on";
        probe.ledger.skip(&rules_capabilities::PUSH, why);
        return probe.ledger.skip_all(RULES, why);
    };
    let id = PushConfigId::parse("sabir-check").expect("short words are an id");
    let Some(set) = probe.ask(&calls::set_push(probe.tenant(), &task.id, Some(&id), url)).await else { return };
    if !rules_capabilities::judge_push(probe, &set) {
        let why = match set.refusal() {
            Some(_) if probe.promises.push == Some(true) => format!("the server does not take the URL {url}"),
            _ => "the server takes no webhooks".to_owned(),
        };
        return probe.ledger.skip_all(RULES, &why);
    }
    let id = judge_create(probe, &task.id, &id, url, &set);
    check_get(probe, &task.id, &id, url).await;
    check_list(probe, &task.id, url).await;
    check_unknown(probe, &task.id).await;
    check_delete(probe, &task.id, &id).await;
    // The task goes on, and nobody is to be called for that.
    if url == REAL_URL && !probe.ledger.has_passed(&DELETE) {
        probe.ask(&calls::set_push(probe.tenant(), &task.id, Some(&id), NOWHERE)).await;
    }
}

/// The id that the config got.
fn judge_create(probe: &Probe<'_>, task: &TaskId, sent: &PushConfigId, url: &str, set: &Asked) -> PushConfigId {
    let json = set.result().map(|result| &result.json).unwrap_or(&Value::Null);
    let inner = json.get("pushNotificationConfig").unwrap_or(json);
    let id = inner["id"].as_str().or_else(|| json["name"].as_str().and_then(|name| name.rsplit('/').next()));
    let mut faults = Vec::new();
    if inner["url"] != url {
        faults.push(format!("its url is {}", inner["url"]));
    }
    let named =
        json["taskId"].as_str().or_else(|| json["id"].as_str().filter(|_| probe.version() == ProtocolVersion::V0_1));
    if let Some(named) = named.filter(|named| *named != task.as_str()) {
        faults.push(format!("its task is {named}"));
    }
    if probe.is_v1() && id.is_none_or(str::is_empty) {
        faults.push("it has no id".to_owned());
    }
    let fault = (!faults.is_empty()).then(|| format!("the config came back changed: {}", faults.join(", ")));
    probe.ledger.judge(&CREATE, fault, &set.evidence());
    id.and_then(|id| PushConfigId::parse(id).ok()).unwrap_or_else(|| sent.clone())
}

async fn check_get(probe: &Probe<'_>, task: &TaskId, id: &PushConfigId, url: &str) {
    let config = (probe.version() != ProtocolVersion::V0_1).then_some(id);
    let Some(got) = probe.ask(&calls::get_push(probe.tenant(), task, config)).await else { return };
    let fault = match got.result() {
        Some(result) => {
            let inner = result.json.get("pushNotificationConfig").unwrap_or(&result.json);
            (inner["url"] != url).then(|| format!("the config is read with the url {}", inner["url"]))
        }
        None => Some(format!("a config that was set is read as {}", got.words(probe.protocol()))),
    };
    probe.ledger.judge(&GET, fault, &got.evidence());
}

async fn check_list(probe: &Probe<'_>, task: &TaskId, url: &str) {
    let Some(listed) = probe.ask(&calls::list_push(probe.tenant(), task)).await else { return };
    let evidence = listed.evidence();
    let Some(result) = listed.result() else {
        let fault = format!("the list of webhooks gets {}", listed.words(probe.protocol()));
        // 0.2 had no list before its last releases.
        let level = if probe.version() == ProtocolVersion::V0_2 { Level::Note } else { Level::Error };
        return probe.ledger.fail_as(level, &LIST, fault, &evidence);
    };
    let configs = result.json.as_array().or_else(|| result.json["configs"].as_array());
    let has_url = |config: &Value| config.get("pushNotificationConfig").unwrap_or(config)["url"] == url;
    let is_there = configs.is_some_and(|configs| configs.iter().any(has_url));
    let fault = (!is_there).then(|| "the list of webhooks does not have the one that was set".to_owned());
    probe.ledger.judge(&LIST, fault, &evidence);
}

async fn check_unknown(probe: &Probe<'_>, task: &TaskId) {
    if !UNKNOWN.is_for(probe.protocol()) {
        return;
    }
    let id = PushConfigId::parse("sabir-check-unknown").expect("short words are an id");
    let Some(asked) = probe.ask(&calls::get_push(probe.tenant(), task, Some(&id))).await else { return };
    let fault = match asked.refusal().map(|error| error.kind) {
        Some(PeerErrorKind::TaskNotFound) => None,
        // 0.3 names no error for it, and a wrong code for what is not found is told already.
        Some(_) if !probe.is_v1() || probe.ledger.has_failed(&rules_errors::NOT_FOUND) => None,
        _ => Some(format!("a config that does not exist gets {}", asked.words(probe.protocol()))),
    };
    probe.ledger.judge(&UNKNOWN, fault, &asked.evidence());
}

async fn check_delete(probe: &Probe<'_>, task: &TaskId, id: &PushConfigId) {
    let ledger = &probe.ledger;
    let call = calls::delete_push(probe.tenant(), task, id);
    let Some(deleted) = probe.ask(&call).await else { return };
    if deleted.refusal().is_some() && probe.ledger.has_failed(&rules_envelope::RESULT_OR_ERROR) {
        return ledger.skip_all(&[&DELETE, &DELETE_TWICE], "results and errors cannot be told apart");
    }
    if deleted.refusal().is_some() {
        let fault = format!("a delete of a webhook gets {}", deleted.words(probe.protocol()));
        // 0.2 had no delete before its last releases, and HTTP+JSON of 0.3 has none in some SDKs.
        let is_old = probe.version() == ProtocolVersion::V0_2 || !probe.is_v1() && !probe.is_json_rpc();
        let level = if is_old { Level::Note } else { Level::Error };
        ledger.fail_as(level, &DELETE, fault, &deleted.evidence());
        return ledger.skip(&DELETE_TWICE, "the webhook could not be deleted");
    }
    if let Some(got) = probe.ask(&calls::get_push(probe.tenant(), task, Some(id))).await {
        // In 0.3 a task without webhooks may answer with null.
        let is_there = got.result().is_some_and(|result| result.json.is_object());
        ledger.judge(&DELETE, is_there.then(|| "a webhook that was deleted can be read".to_owned()), &got.evidence());
    }
    if DELETE_TWICE.is_for(probe.protocol())
        && let Some(again) = probe.ask(&call).await
    {
        let fault = again.refusal().map(|error| format!("the second delete gets {}", error.words(probe.protocol())));
        ledger.judge(&DELETE_TWICE, fault, &again.evidence());
    }
}
