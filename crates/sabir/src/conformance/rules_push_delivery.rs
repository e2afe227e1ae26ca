//! Whether webhooks are called. A server on this machine can be given one on this machine; others are not tried.

use std::time::Duration;

use sabir_model::{Call, Delivery, PushConfig, PushConfigId};
use serde_json::Value;

use super::calls;
use super::evidence::{Evidence, excerpt};
use super::exchange::read_json;
use super::probe::Probe;
use super::rule::{Level, Rule, Sections, Subject};
use super::rules_tasks::new_place;
use super::shape::Difference;
use super::webhook_receiver::{Posted, WebhookReceiver};
use super::{rules_capabilities, shapes_v1, shapes_v03, shapes_v03_proto};

pub const RULES: &[&Rule] = &[&DELIVERED, &BODY];

pub static DELIVERED: Rule = Rule {
    id: "push.delivered",
    level: Level::Error,
    subject: Subject::Interface,
    sections: Sections::all("§4.3.3", "§9.5", "§9.5"),
    says: "a webhook is called when its task changes, at least once for each event",
    remedy: "post to every webhook of a task when its status changes",
};
pub static BODY: Rule = Rule {
    id: "push.body",
    level: Level::Error,
    subject: Subject::Interface,
    sections: Sections::since_v02("§4.3.3", "§9.5"),
    says: "a webhook of 1.0 gets a StreamResponse, one of 0.3 gets the task",
    remedy: "write notifications in the version in which the webhook was set",
};

/// How long a server may take to call a webhook on its own machine.
const PATIENCE: Duration = Duration::from_secs(10);
/// After so long without a call there will be no more.
const QUIET: Duration = Duration::from_millis(200);
/// One that is called for ever is not waited for.
const MOST_CALLS: usize = 50;

pub async fn check(probe: &Probe<'_>, text: &str) {
    let skip = |why: &str| probe.ledger.skip_all(RULES, why);
    if probe.promises.push != Some(true) || probe.ledger.has_failed(&rules_capabilities::PUSH) {
        return skip("the server takes no webhooks");
    }
    if !probe.access.is_local() {
        return skip("only a server on this machine can be given a webhook that this check answers");
    }
    let Ok(mut receiver) = WebhookReceiver::start().await else { return skip("this machine has no free port") };
    let Call::Send(mut send) = calls::send(probe.tenant(), text, new_place(probe), Delivery::WhenSettled) else {
        return;
    };
    let id = PushConfigId::parse("sabir-check").expect("short words are an id");
    let (url, config) = (receiver.url(), Some(id.clone()));
    send.push = Some(PushConfig { id: config, task: None, url, token: None, authentication: None });
    let Some(asked) = probe.ask(&Call::Send(send)).await else { return };
    let Some(task) = asked.task() else {
        return skip(match asked.refusal() {
            Some(_) => "the server does not call webhooks on its own machine",
            None => "the agent answers with a message, without a task",
        });
    };
    let posted = receiver.next(PATIENCE.min(probe.patience())).await;
    let tried = asked.exchange.tried.clone();
    match posted {
        None => {
            let seconds = PATIENCE.min(probe.patience()).as_secs();
            let fault = format!("the webhook of a finished task was not called within {seconds} s");
            probe.ledger.fail(&DELIVERED, fault, &Evidence::new(tried, "no call of the webhook"));
            probe.ledger.skip(&BODY, "the webhook was not called");
        }
        Some(posted) => {
            probe.ledger.pass(&DELIVERED);
            judge_body(probe, &posted, &tried);
        }
    }
    // Who would call in vain for hours is relieved of it.
    for _ in 0..MOST_CALLS {
        if receiver.next(QUIET).await.is_none() {
            break;
        }
    }
    probe.ask(&calls::delete_push(probe.tenant(), &task.id, &id)).await;
}

fn judge_body(probe: &Probe<'_>, posted: &Posted, tried: &str) {
    if !BODY.is_for(probe.protocol()) {
        return;
    }
    let line = posted.head.lines().next().unwrap_or_default();
    let evidence = Evidence::new(tried, format!("{line}: {}", excerpt(&posted.body)));
    // The SDKs do not agree about what webhooks of 0.3 get.
    let level = if probe.is_v1() { Level::Error } else { Level::Warning };
    let Some(json) = read_json(&posted.body) else {
        return probe.ledger.fail(&BODY, "the notification is no JSON", &evidence);
    };
    match differences(probe, &json).first() {
        None => probe.ledger.pass(&BODY),
        Some(Difference { words, .. }) => probe.ledger.fail_as(level, &BODY, words.clone(), &evidence),
    }
}

fn differences(probe: &Probe<'_>, json: &Value) -> Vec<Difference> {
    let shape = match (probe.is_v1(), probe.is_json_rpc()) {
        (true, _) => &shapes_v1::STREAM_RESPONSE,
        (false, true) => &shapes_v03::TASK,
        // 0.3 does not say whether a webhook gets the JSON of the binding or of the version.
        (false, false) if json.get("kind").is_some() => &shapes_v03::TASK,
        (false, false) => &shapes_v03_proto::TASK,
    };
    shape.check(json, "the notification")
}
