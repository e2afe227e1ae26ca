//! Following tasks of remote agents that do everything wrong: what they made arrives once, and what cannot be learned is said.

use std::time::Duration;

use sabir_model::{Birth, Content, IncomingMessage, MessageId, Part, Role, Send};
use sabir_outbound::remote::{Following, Mirror, Remote, RemoteError, RemoteSettings, Step, Update};
use sabir_testkit::remote::{
    CardFault, Death, DeathWhen, Delay, Ending, Faults, HangUp, HangUpWhen, HttpError, HugeFrame, On, Operation,
    RemoteAgent, RemoteProtocol, TasksAfterDeath, Times, harmless_faults,
};
use sabir_wire::ProtocolVersion;
use tokio::time::timeout;

const PATIENCE: Duration = Duration::from_secs(30);

fn remote(agent: &RemoteAgent) -> Remote {
    let settings = RemoteSettings {
        stream_silence: Duration::from_millis(500),
        unreachable_timeout: Duration::from_secs(5),
        call_timeout: Duration::from_secs(3),
        send_timeout: Duration::from_secs(5),
        largest_answer: 1 << 20,
        largest_task: 2 << 20,
        ..RemoteSettings::new(agent.url())
    };
    Remote::new(settings).unwrap()
}

fn message(text: &str) -> Send {
    let id = MessageId::parse(format!("m-{}", text.len())).unwrap();
    Send::new(IncomingMessage::new(Some(id), Role::User, vec![Part::text(text)]), Birth(0))
}

/// What a caller has at the end: the text of the artifacts, and how the task ended.
async fn follow(mut following: Following) -> String {
    let mut texts: Vec<(String, String)> = Vec::new();
    loop {
        let step = match timeout(PATIENCE, following.next()).await.expect("it ends") {
            Ok(Some(step)) => step,
            Ok(None) => return "nothing".to_owned(),
            Err(error) => return format!("error: {}", short(&error)),
        };
        match step {
            Step::Known { .. } | Step::Trouble(_) | Step::Update(Update::Progress(_)) => {}
            Step::Update(Update::Artifact { artifact, append, .. }) => {
                let id = artifact.id.to_string();
                let place = texts.iter().position(|(known, _)| *known == id).unwrap_or_else(|| {
                    texts.push((id, String::new()));
                    texts.len() - 1
                });
                if !append {
                    texts[place].1.clear();
                }
                texts[place].1.extend(artifact.parts.iter().map(|part| match &part.content {
                    Content::Text(text) => text.clone(),
                    other => format!("{other:?}"),
                }));
            }
            Step::Replied(reply) => return format!("replied {}", reply.text()),
            Step::Over { status, .. } => {
                let text: String = texts.into_iter().map(|(_, text)| text).collect();
                let said = status.message.map(|message| format!(" ({})", message.text())).unwrap_or_default();
                return format!("{:?} {text:?}{said}", status.state);
            }
        }
    }
}

fn short(error: &RemoteError) -> &'static str {
    match error {
        RemoteError::OutcomeUnknown(_) => "outcome unknown",
        RemoteError::Unreachable(..) => "unreachable",
        RemoteError::EventTooLarge(_) => "too large",
        RemoteError::TaskTooLarge(_) => "task too large",
        RemoteError::Card(_) => "card",
        RemoteError::NoInterface(_) => "no interface",
        RemoteError::Dial(_) => "dial",
        RemoteError::StreamEnded => "stream ended",
        RemoteError::Peer { error, .. } => error.kind.name(),
        RemoteError::NotInVersion(_) | RemoteError::Credential(_) | RemoteError::InvalidCredential(_) => "other",
    }
}

const SIX_CHUNKS: &str = "Completed \"é 1\\né 2\\né 3\\né 4\\né 5\\né 6\\n\"";

#[tokio::test(flavor = "multi_thread")]
async fn what_a_remote_agent_made_arrives_once_whatever_it_does_wrong() {
    let mut failures = Vec::new();
    let mut running = tokio::task::JoinSet::new();
    for protocol in RemoteProtocol::ALL {
        for (name, faults) in harmless_faults() {
            running.spawn(async move {
                let agent = RemoteAgent::builder(protocol).with_faults(faults).start();
                let following = Following::send(remote(&agent), message("stream 6 20 é"), Mirror::default());
                let got = follow(following).await;
                let sends = agent.tasks().all().len();
                let label = format!("{} {}: {name}", protocol.version(), protocol.binding().name());
                match got == SIX_CHUNKS && sends == 1 {
                    true => None,
                    false => Some(format!("{label}: {got}, {sends} tasks")),
                }
            });
        }
    }
    while let Some(outcome) = running.join_next().await {
        failures.extend(outcome.unwrap());
    }
    failures.sort();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_beyond_repair_is_an_error_that_says_so() {
    let none = Faults::default;
    let hang_up = |when| Faults {
        hang_up: Some(HangUp { on: On::Only(Operation::Stream), when, how: Ending::Reset, times: Times::Always }),
        ..none()
    };
    let death = |tasks, back_after| Faults {
        death: Some(Death { when: DeathWhen::AfterFrames(2), back_after, tasks }),
        ..none()
    };
    for (name, text, faults, expected) in [
        (
            "the message arrived, the answer did not",
            "stream 3",
            hang_up(HangUpWhen::AfterProcessing),
            "error: outcome unknown",
        ),
        (
            "nobody knows whether it arrived",
            "stream 3",
            hang_up(HangUpWhen::BeforeProcessing),
            "error: outcome unknown",
        ),
        (
            "the tasks are lost",
            "stream 9 100",
            death(TasksAfterDeath::Lost, Some(Duration::from_millis(300))),
            "error: TaskNotFoundError",
        ),
        ("it never comes back", "stream 9 100", death(TasksAfterDeath::Kept, None), "error: unreachable"),
        (
            "too large",
            "stream 3",
            Faults { huge_frame: Some(HugeFrame { at: 1, bytes: 2 << 20 }), ..none() },
            "error: too large",
        ),
        (
            "401",
            "stream 3",
            Faults { http_error: Some(HttpError::status(401)), ..none() },
            "error: UnauthenticatedError",
        ),
        (
            "403",
            "stream 3",
            Faults { http_error: Some(HttpError::status(403)), ..none() },
            "error: PermissionDeniedError",
        ),
        ("no card", "stream 3", Faults { card: vec![CardFault::Missing], ..none() }, "error: card"),
        ("a card that is no JSON", "stream 3", Faults { card: vec![CardFault::NotJson], ..none() }, "error: card"),
        (
            "a card that leads inside",
            "stream 3",
            Faults { card: vec![CardFault::Url("http://10.1.2.3/".into())], ..none() },
            "error: no interface",
        ),
        ("a task without an end", "stream 100000 0 xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", none(), "error: task too large"),
        ("a failure", "fail no luck", none(), "Failed \"\" (no luck)"),
        ("a refusal", "reject not mine", none(), "Rejected \"\" (not mine)"),
        ("a question", "ask which?", none(), "InputRequired \"\" (which?)"),
        ("a direct message", "message hi", none(), "replied hi"),
    ] {
        let agent = RemoteAgent::builder(RemoteProtocol::ALL[0]).with_faults(faults).start();
        let got = follow(Following::send(remote(&agent), message(text), Mirror::default())).await;
        assert_eq!(got, expected, "{name}");
        assert!(agent.tasks().all().len() <= 1, "{name}: the message was sent again");
    }
}

/// The stream has told everything; a server that then fails to show the whole task takes nothing away.
#[tokio::test(flavor = "multi_thread")]
async fn a_complete_stream_does_not_wait_for_a_broken_get() {
    let get = On::Only(Operation::Get);
    let broken = HttpError { on: get, ..HttpError::status(503) };
    let slow = Delay { on: get, before_head: Duration::from_secs(3600) };
    for (name, faults) in [
        ("503", Faults { http_error: Some(broken), ..Faults::default() }),
        ("no answer", Faults { delay: Some(slow), ..Faults::default() }),
    ] {
        let agent = RemoteAgent::builder(RemoteProtocol::V1JsonRpc).with_faults(faults).start();
        let settings = RemoteSettings { call_timeout: PATIENCE * 2, ..RemoteSettings::new(agent.url()) };
        let remote = Remote::new(settings).unwrap();
        let got = follow(Following::send(remote, message("stream 6 20 é"), Mirror::default())).await;
        assert_eq!(got, SIX_CHUNKS, "{name}");
        assert!(!agent.requests_for(Operation::Get).is_empty(), "{name}: it was asked for");
    }
}

/// The card is looked for again and again, and by several at the same time.
#[tokio::test(flavor = "multi_thread")]
async fn an_agent_without_a_card_stays_one_that_the_operator_has_described() {
    let faults = Faults { card: vec![CardFault::Missing], ..Faults::default() };
    let agent = RemoteAgent::builder(RemoteProtocol::V03JsonRpc).with_faults(faults).start();
    let settings = RemoteSettings {
        endpoint: Some(format!("{}/", agent.url())),
        version: Some(ProtocolVersion::V0_3),
        ..RemoteSettings::new(agent.url())
    };
    let remote = Remote::new(settings).unwrap();
    for time in 1..=3 {
        remote.discover().await.unwrap_or_else(|error| panic!("the {time}. time: {error}"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_that_was_left_is_followed_to_its_end() {
    for protocol in RemoteProtocol::ALL {
        let agent = RemoteAgent::start(protocol);
        let remote = remote(&agent);
        let mut following = Following::send(remote.clone(), message("stream 6 60 é"), Mirror::default());
        let task = loop {
            match timeout(PATIENCE, following.next()).await.unwrap().unwrap().expect("it begins") {
                Step::Known { task, .. } => break task,
                _ => continue,
            }
        };
        drop(following);
        let got = follow(Following::task(remote, task, Mirror::default())).await;
        let label = format!("{} {}", protocol.version(), protocol.binding().name());
        assert_eq!(got, SIX_CHUNKS, "{label}");
        // A subscription spoils the tasks of some servers of 0.2 and 0.3.
        let is_subscribed = agent.count(Operation::Subscribe) > 0;
        assert_eq!(is_subscribed, !["0.2", "0.3"].contains(&protocol.version()), "{label}");
    }
}

/// Cards are often wrong about versions; a server that does not know a method has done nothing.
#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_speaks_another_version_than_its_card_says_is_understood() {
    let json_rpc: Vec<RemoteProtocol> =
        RemoteProtocol::ALL.into_iter().filter(|protocol| protocol.binding().name() == "jsonrpc").collect();
    for spoken in &json_rpc {
        for claimed in &json_rpc {
            let faults = Faults { card: vec![CardFault::Claims(*claimed)], ..Faults::default() };
            let agent = RemoteAgent::builder(*spoken).with_faults(faults).start();
            let got = follow(Following::send(remote(&agent), message("hello"), Mirror::default())).await;
            assert_eq!(got, "Completed \"echo: hello\"", "speaks {}, claims {}", spoken.version(), claimed.version());
        }
    }
}
