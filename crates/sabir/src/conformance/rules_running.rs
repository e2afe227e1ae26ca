//! Tasks that are being worked on: an answer at once, a subscription, a cancel.

use std::pin::pin;
use std::time::Duration;

use sabir_model::{Delivery, State, TaskId};
use sabir_wire::ProtocolVersion;

use super::calls;
use super::evidence::Evidence;
use super::probe::{Opened, Probe};
use super::reading::Reading;
use super::rule::{Level, Rule, Sections, Subject};
use super::rules_tasks::{new_place, settle, state_words};
use super::stream_log::OpenStream;
use super::{rules_capabilities, rules_subscriptions};

pub const RULES: &[&Rule] = &[&IMMEDIATE, &CANCEL];

pub static IMMEDIATE: Rule = Rule {
    id: "send.immediate",
    level: Level::Error,
    subject: Subject::Interface,
    sections: Sections::since_v02("§3.2.2", "§7.1.1"),
    says: "a send with returnImmediately (0.3: blocking false) is answered as soon as the task exists",
    remedy: "answer with the task in its first state, and work on it in the background",
};
pub static CANCEL: Rule = Rule {
    id: "cancel.running",
    level: Level::Warning,
    subject: Subject::Interface,
    sections: Sections::all("§3.1.5", "§7.4", "§7.4"),
    says: "a cancel answers with the task, and ends it if the agent can stop",
    remedy: "stop the agent, and set the task to canceled",
};

/// A send that takes longer did not return at once.
const AT_ONCE: Duration = Duration::from_secs(1);
/// How long the first frame of a subscription may take.
const SNAPSHOT: Duration = Duration::from_secs(2);
/// How long the head of a subscription and its first frame are waited for, before the task is canceled.
const HEAD: Duration = Duration::from_millis(2500);

/// `slow` is the message that keeps the agent busy, if the operator knows one.
pub async fn check(probe: &Probe<'_>, slow: Option<&str>, message: &str) {
    match start(probe, slow, message).await {
        Started::Running(task, stream) => check_running(probe, &task, stream).await,
        Started::Not(why) => {
            let rules = [&IMMEDIATE, &rules_subscriptions::RUNNING, &CANCEL];
            for rule in rules.into_iter().filter(|rule| !probe.ledger.is_judged(rule)) {
                probe.ledger.skip(rule, why.clone());
            }
        }
    }
}

enum Started {
    /// In 0.1 with its stream: there is no other way to have a task in the background.
    Running(TaskId, Option<Box<OpenStream>>),
    Not(String),
}

async fn start(probe: &Probe<'_>, slow: Option<&str>, message: &str) -> Started {
    let (text, is_slow) = (slow.unwrap_or(message), slow.is_some());
    let not_busy = || {
        Started::Not(match is_slow {
            true => "the message of --slow did not keep the agent busy".to_owned(),
            false => "the agent finishes the message at once; name one that keeps it busy with --slow".to_owned(),
        })
    };
    if probe.version() == ProtocolVersion::V0_1 {
        return start_stream(probe, text).await.unwrap_or_else(not_busy);
    }
    let call = calls::send(probe.tenant(), text, new_place(probe), Delivery::Immediately);
    let Some(asked) = probe.ask(&call).await else { return not_busy() };
    let has_id = asked.task_json().is_some_and(|json| json["id"].is_string());
    let Some(task) = asked.task().filter(|_| has_id) else {
        return Started::Not(match asked.reading {
            Reading::Result(_) if asked.task().is_some() => "the task has no id".to_owned(),
            Reading::Result(_) => "the agent answers with a message, without a task".to_owned(),
            _ => format!("the message was answered with {}", asked.words(probe.protocol())),
        });
    };
    let state = task.status.state;
    let is_quick = asked.exchange.elapsed < AT_ONCE;
    if !state.is_terminal() && !state.is_waiting() {
        if is_slow || is_quick {
            probe.ledger.pass(&IMMEDIATE);
        }
        return Started::Running(task.id.clone(), None);
    }
    if is_slow && !is_quick {
        let level = if probe.is_v1() { Level::Error } else { Level::Warning };
        let seconds = asked.exchange.elapsed.as_secs_f64();
        let fault = format!("the send was answered after {seconds:.1} s, when the task was {}", state_words(state));
        probe.ledger.fail_as(level, &IMMEDIATE, fault, &asked.evidence());
        return Started::Not("the server does not answer before the agent is done".to_owned());
    }
    not_busy()
}

async fn start_stream(probe: &Probe<'_>, text: &str) -> Option<Started> {
    let call = calls::send(probe.tenant(), text, new_place(probe), Delivery::Stream);
    let Some(Opened::Stream(mut stream)) = probe.open(&call).await else { return None };
    stream.read_until(SNAPSHOT, |log| log.task().is_some()).await;
    let task = stream.log().task()?.clone();
    match stream.log().has_ended() {
        true => None,
        false => Some(Started::Running(task, Some(stream))),
    }
}

async fn check_running(probe: &Probe<'_>, task: &TaskId, stream: Option<Box<OpenStream>>) {
    // Servers of gRPC may send the head of a stream with its first message, which comes with the cancel at the latest.
    let mut subscribing = pin!(subscribe(probe, task));
    let subscribed = tokio::time::timeout(HEAD, &mut subscribing).await;
    cancel(probe, task).await;
    let subscription = match subscribed {
        Ok(subscription) => subscription,
        Err(_) => subscribing.await,
    };
    for stream in [stream, subscription].into_iter().flatten() {
        probe.finish(*stream).await;
    }
}

async fn subscribe(probe: &Probe<'_>, task: &TaskId) -> Option<Box<OpenStream>> {
    let ledger = &probe.ledger;
    if probe.promises.streaming != Some(true) {
        ledger.skip(&rules_subscriptions::RUNNING, "the card promises no streaming");
        return None;
    }
    if ledger.has_failed(&rules_capabilities::STREAMING) {
        ledger.skip(&rules_subscriptions::RUNNING, "the server does not stream");
        return None;
    }
    match probe.open(&calls::subscribe(probe.tenant(), task)).await? {
        Opened::Stream(mut stream) => {
            // A server that shows nothing at first is found out by the first frame that it does show.
            stream.read_until(SNAPSHOT, |log| !log.frames.is_empty()).await;
            if let Some(error) = stream.log().only_error() {
                let words = error.words(probe.protocol());
                judge_refusal(
                    probe,
                    task,
                    &rules_subscriptions::RUNNING,
                    "a subscription to",
                    &words,
                    &stream.log().evidence(),
                )
                .await;
                return None;
            }
            ledger.pass(&rules_subscriptions::RUNNING);
            Some(stream)
        }
        Opened::Answer(asked) => {
            let words = asked.words(probe.protocol());
            judge_refusal(probe, task, &rules_subscriptions::RUNNING, "a subscription to", &words, &asked.evidence())
                .await;
            None
        }
    }
}

/// Something was refused that a running task should have taken, unless the task is finished by now.
async fn judge_refusal(
    probe: &Probe<'_>,
    task: &TaskId,
    rule: &'static Rule,
    what: &str,
    words: &str,
    evidence: &Evidence,
) {
    let got = probe.ask(&calls::get(probe.tenant(), task, None)).await;
    let is_finished = got.is_some_and(|got| got.task().is_some_and(|task| task.status.state.is_terminal()));
    if is_finished {
        return probe.ledger.skip(rule, "the task was finished before it could be tried; --slow names a longer one");
    }
    // Servers of 0.x need not resubscribe anybody.
    let level = if probe.is_v1() { rule.level } else { Level::Warning };
    probe.ledger.fail_as(level, rule, format!("{what} a running task gets {words}"), evidence);
}

async fn cancel(probe: &Probe<'_>, task: &TaskId) {
    let ledger = &probe.ledger;
    let Some(asked) = probe.ask(&calls::cancel(probe.tenant(), task)).await else { return };
    let evidence = asked.evidence();
    let Some(canceled) = asked.task() else {
        return judge_refusal(probe, task, &CANCEL, "a cancel of", &asked.words(probe.protocol()), &evidence).await;
    };
    let mut state = canceled.status.state;
    if !state.is_terminal()
        && let Ok(settled) = settle(probe, task).await
        && let Some(settled) = settled.task()
    {
        state = settled.status.state;
    }
    let fault = (state != State::Canceled).then(|| format!("the task was canceled, and is {}", state_words(state)));
    ledger.judge(&CANCEL, fault, &evidence);
}
