//! Following tasks of remote agents that do everything wrong: what they made arrives once, and what cannot be learned is said.

use std::time::Duration;

use sabir_model::{Birth, Content, IncomingMessage, MessageId, Part, Role, Send};
use sabir_outbound::remote::{Following, Mirror, Remote, RemoteError, RemoteSettings, Step, Update};
use sabir_testkit::remote::{
    At, CardFault, Cut, Death, DeathWhen, Delay, Drip, Ending, ErrorFrame, EventIds, Faults, HangUp, HangUpWhen,
    HttpError, HugeFrame, LineEnd, Malformation, Malformed, On, Operation, Refusal, RemoteAgent, RemoteProtocol,
    Silence, SseQuirks, StreamDrop, Swap, TasksAfterDeath, Times,
};
use tokio::time::timeout;

const PATIENCE: Duration = Duration::from_secs(30);

fn remote(agent: &RemoteAgent) -> Remote {
    let settings = RemoteSettings {
        stream_silence: Duration::from_millis(500),
        unreachable_timeout: Duration::from_secs(5),
        call_timeout: Duration::from_secs(3),
        send_timeout: Duration::from_secs(5),
        largest_answer: 1 << 20,
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
        RemoteError::Card(_) => "card",
        RemoteError::NoInterface(_) => "no interface",
        RemoteError::Dial(_) => "dial",
        RemoteError::StreamEnded => "stream ended",
        RemoteError::Peer { error, .. } => error.kind.name(),
        RemoteError::NotInVersion(_) | RemoteError::Credential(_) | RemoteError::InvalidCredential(_) => "other",
    }
}

const SIX_CHUNKS: &str = "Completed \"é 1\\né 2\\né 3\\né 4\\né 5\\né 6\\n\"";

fn cut_after(frames: usize, cut: Cut, how: Ending, times: Times) -> Faults {
    Faults { drop_stream: Some(StreamDrop { after: frames, cut, how, times }), ..Faults::default() }
}

/// Faults that must not be noticed by who follows a task.
fn harmless() -> Vec<(&'static str, Faults)> {
    let none = Faults::default;
    let malformed = |how: Malformation| Faults { malformed: vec![Malformed::at(At::Everything, how)], ..none() };
    let sse = |sse: SseQuirks| Faults { sse, ..none() };
    vec![
        ("none", none()),
        ("a stream that is closed", cut_after(3, Cut::BetweenFrames, Ending::Close, Times::ONCE)),
        ("a stream that is reset", cut_after(3, Cut::InFrame, Ending::Reset, Times::ONCE)),
        ("a stream that ends in a character", cut_after(2, Cut::InCharacter, Ending::Close, Times::ONCE)),
        ("a stream that ends as if it were complete", cut_after(3, Cut::BetweenFrames, Ending::Complete, Times::ONCE)),
        ("streams that always break", cut_after(2, Cut::BetweenFrames, Ending::Close, Times::Always)),
        ("a stream that falls silent", Faults { silence: Some(Silence { after: 3, times: Times::ONCE }), ..none() }),
        ("frames that are repeated", Faults { repeat_frames: 2, event_ids: EventIds::Numbers, ..none() }),
        ("frames that are repeated, without ids", Faults { repeat_frames: 1, ..none() }),
        (
            "frames that are swapped",
            Faults { swap_frames: Some(Swap::EveryPair), event_ids: EventIds::Numbers, ..none() },
        ),
        ("frames that are swapped, without ids", Faults { swap_frames: Some(Swap::EveryPair), ..none() }),
        (
            "a stream that can be resumed",
            Faults { event_ids: EventIds::Resumable, ..cut_after(4, Cut::InFrame, Ending::Close, Times::First(2)) },
        ),
        (
            "a stream with numbers that cannot be resumed",
            Faults { event_ids: EventIds::Numbers, ..cut_after(4, Cut::InFrame, Ending::Close, Times::First(2)) },
        ),
        (
            "a stream with ids without meaning",
            Faults { event_ids: EventIds::Opaque, ..cut_after(4, Cut::InFrame, Ending::Close, Times::ONCE) },
        ),
        (
            "no subscriptions",
            Faults {
                no_subscribe: Some(Refusal::MethodNotFound),
                ..cut_after(2, Cut::BetweenFrames, Ending::Close, Times::ONCE)
            },
        ),
        ("no streams", Faults { no_streaming: Some(Refusal::UnsupportedOperation), ..none() }),
        (
            "streams that the card promises and nobody has",
            Faults { no_streaming: Some(Refusal::MethodNotFound), card: vec![CardFault::ClaimsStreaming], ..none() },
        ),
        (
            "an answer that says submitted",
            Faults { submitted_first: true, no_streaming: Some(Refusal::UnsupportedOperation), ..none() },
        ),
        (
            "an error in the middle",
            Faults { error_frame: Some(ErrorFrame { after: 3, code: -32603, times: Times::ONCE }), ..none() },
        ),
        (
            "a slow answer",
            Faults { delay: Some(Delay { on: On::Calls, before_head: Duration::from_millis(300) }), ..none() },
        ),
        ("drops of bytes", Faults { drip: Some(Drip { bytes: 40, pause: Duration::from_millis(1) }), ..none() }),
        ("too many requests", Faults { http_error: Some(HttpError::retry_after(429, 0, Times::First(2))), ..none() }),
        ("not now", Faults { http_error: Some(HttpError::retry_after(503, 1, Times::ONCE)), ..none() }),
        ("CRLF and comments", sse(SseQuirks { line_end: LineEnd::CrLf, comments: true, ..SseQuirks::default() })),
        ("CR and event names", sse(SseQuirks { line_end: LineEnd::Cr, event_lines: true, ..SseQuirks::default() })),
        (
            "lines and pieces",
            sse(SseQuirks { multi_line_data: true, byte_order_mark: true, split: Some(3), ..SseQuirks::default() }),
        ),
        ("no space and retry", sse(SseQuirks { no_space: true, retry_lines: true, ..SseQuirks::default() })),
        ("another JSON-RPC id", malformed(Malformation::WrongRpcId)),
        ("error null", malformed(Malformation::ErrorNull)),
        ("times without a zone", malformed(Malformation::TimesWithoutZone)),
        ("null members", malformed(Malformation::NullMembers)),
        (
            "a frame of no kind",
            Faults { malformed: vec![Malformed::at(At::Frame(2), Malformation::UnknownEvent)], ..none() },
        ),
        (
            "a frame that is no JSON",
            Faults { malformed: vec![Malformed::at(At::Frame(2), Malformation::NotJson)], ..none() },
        ),
        (
            "events of another task",
            Faults { malformed: vec![Malformed::at(At::Frame(3), Malformation::ForeignTask("x".into()))], ..none() },
        ),
        (
            "an unknown state",
            Faults { malformed: vec![Malformed::at(At::Frame(1), Malformation::State("unknown".into()))], ..none() },
        ),
        (
            "a server that dies and comes back",
            Faults {
                death: Some(Death {
                    when: DeathWhen::AfterFrames(3),
                    back_after: Some(Duration::from_millis(700)),
                    tasks: TasksAfterDeath::Kept,
                }),
                ..none()
            },
        ),
        ("a card at the old place", Faults { card: vec![CardFault::OnlyAtOldPath], ..none() }),
        ("a card with nulls", Faults { card: vec![CardFault::NullMembers], ..none() }),
        ("a card with wrong types", Faults { card: vec![CardFault::WrongTypes], ..none() }),
        ("a card with broken security", Faults { card: vec![CardFault::BrokenSecurity], ..none() }),
        ("a card with a wrong port", Faults { card: vec![CardFault::Url("http://localhost:9/".into())], ..none() }),
        ("a card without a version", Faults { card: vec![CardFault::NoProtocolVersion], ..none() }),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_remote_agent_made_arrives_once_whatever_it_does_wrong() {
    let mut failures = Vec::new();
    let mut running = tokio::task::JoinSet::new();
    for protocol in RemoteProtocol::ALL {
        for (name, faults) in harmless() {
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
        assert_eq!(got, SIX_CHUNKS, "{} {}", protocol.version(), protocol.binding().name());
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
