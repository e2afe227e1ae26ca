//! Faults that a client must bear: whoever follows a task over them gets all of it, once.

use std::time::Duration;

use super::faults::{
    At, CardFault, Cut, Death, DeathWhen, Delay, Drip, Ending, ErrorFrame, EventIds, Faults, HttpError, LineEnd,
    Malformation, Malformed, On, Refusal, Silence, SseQuirks, StreamDrop, Swap, TasksAfterDeath, Times,
};

/// Each with a name. The task that goes with them is `stream 6 20 é`: it is long enough for all of them, and has a character
/// of several bytes.
pub fn harmless_faults() -> Vec<(&'static str, Faults)> {
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
        ("ids with odd characters", Faults { odd_ids: true, ..none() }),
        ("a card at the old place", Faults { card: vec![CardFault::OnlyAtOldPath], ..none() }),
        ("a card with nulls", Faults { card: vec![CardFault::NullMembers], ..none() }),
        ("a card with wrong types", Faults { card: vec![CardFault::WrongTypes], ..none() }),
        ("a card with broken security", Faults { card: vec![CardFault::BrokenSecurity], ..none() }),
        ("a card with a wrong port", Faults { card: vec![CardFault::Url("http://localhost:9/".into())], ..none() }),
        ("a card without a version", Faults { card: vec![CardFault::NoProtocolVersion], ..none() }),
    ]
}

fn cut_after(frames: usize, cut: Cut, how: Ending, times: Times) -> Faults {
    Faults { drop_stream: Some(StreamDrop { after: frames, cut, how, times }), ..Faults::default() }
}
