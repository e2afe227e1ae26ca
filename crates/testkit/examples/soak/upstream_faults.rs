//! What a remote agent does wrong for a while: one kind of trouble at a time, chosen at random.

use std::time::Duration;

use sabir_testkit::remote::{
    Cut, Death, DeathWhen, Delay, Drip, Ending, ErrorFrame, EventIds, Faults, HangUp, HangUpWhen, HttpError, On,
    Operation, Refusal, Silence, StreamDrop, Swap, TasksAfterDeath, Times,
};

use crate::random::Random;

/// The kinds of trouble. The tasks are kept through all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trouble {
    None,
    /// Streams break off, with frames or before the first one.
    BreaksStreams,
    RepeatsFrames,
    SwapsFrames,
    /// Streams say nothing more; in the end their connections are reset.
    Silent,
    /// Answers come late, or in small pieces.
    Slow,
    /// Nobody listens on the port.
    Gone,
    /// The same for a moment, in the middle of a stream or just after a request was processed.
    Dies,
    /// 503 with Retry-After.
    Busy,
    /// 502: whether the request was processed is not said, and it was not.
    BadGateway,
    /// No answer, whether the request was processed or not.
    HangsUp,
    /// No streams, or no subscriptions.
    NoStreams,
}

impl Trouble {
    /// A message may have arrived without an answer.
    pub const LOSES_ANSWERS: &[Trouble] =
        &[Trouble::BreaksStreams, Trouble::Silent, Trouble::Gone, Trouble::Dies, Trouble::BadGateway, Trouble::HangsUp];
    /// A message may be refused, or not arrive at all.
    pub const REFUSES: &[Trouble] = &[Trouble::Silent, Trouble::Gone, Trouble::Dies, Trouble::Busy, Trouble::HangsUp];
    /// A cancel may not arrive, or too late.
    pub const LOSES_CANCELS: &[Trouble] = &[
        Trouble::Silent,
        Trouble::Slow,
        Trouble::Gone,
        Trouble::Dies,
        Trouble::Busy,
        Trouble::BadGateway,
        Trouble::HangsUp,
    ];
}

const TROUBLES: [(u64, Trouble); 12] = [
    (16, Trouble::None),
    (14, Trouble::BreaksStreams),
    (8, Trouble::RepeatsFrames),
    (8, Trouble::SwapsFrames),
    (6, Trouble::Silent),
    (8, Trouble::Slow),
    (6, Trouble::Gone),
    (8, Trouble::Dies),
    (7, Trouble::Busy),
    (3, Trouble::BadGateway),
    (6, Trouble::HangsUp),
    (6, Trouble::NoStreams),
];

pub fn event_ids(random: &mut Random) -> EventIds {
    *random.one_of(&[EventIds::Absent, EventIds::Numbers, EventIds::Resumable, EventIds::Opaque])
}

/// Some kind of trouble, and the faults that make it. `Trouble::Gone` needs no faults.
pub fn at_random(random: &mut Random) -> (Trouble, Faults) {
    let trouble = random.weighted(&TROUBLES);
    let mut faults = Faults::default();
    match trouble {
        Trouble::None | Trouble::Gone => {}
        Trouble::BreaksStreams if random.percent(20) => {
            // An error in the place of the first frame is a refusal.
            let after = random.between(1, 8) as usize;
            faults.error_frame = Some(ErrorFrame { after, code: -32603, times: few(random) });
        }
        Trouble::BreaksStreams => {
            let how = *random.one_of(&[Ending::Complete, Ending::Close, Ending::Reset]);
            let cut = *random.one_of(&[Cut::BetweenFrames, Cut::InFrame, Cut::InCharacter]);
            // One that always breaks before the first frame would take no message at all.
            let (after, times) = match random.percent(30) {
                true => (random.between(1, 8), Times::Always),
                false => (random.between(0, 8), few(random)),
            };
            faults.drop_stream = Some(StreamDrop { after: after as usize, cut, how, times });
        }
        Trouble::RepeatsFrames => faults.repeat_frames = random.between(1, 2) as usize,
        Trouble::SwapsFrames if random.percent(50) => faults.swap_frames = Some(Swap::EveryPair),
        Trouble::SwapsFrames => faults.swap_frames = Some(Swap::At(random.between(0, 6) as usize)),
        Trouble::Silent => {
            faults.silence = Some(Silence { after: random.between(0, 6) as usize, times: few(random) });
        }
        Trouble::Slow if random.percent(50) => {
            faults.drip = Some(Drip { bytes: 300, pause: Duration::from_millis(1) });
        }
        Trouble::Slow => {
            let before_head = Duration::from_millis(random.between(10, 400));
            faults.delay = Some(Delay { on: On::Everything, before_head });
        }
        Trouble::Dies => {
            let when = match random.between(0, 2) {
                0 => DeathWhen::AfterProcessing(On::Calls),
                1 => DeathWhen::AfterProcessing(On::Only(Operation::Get)),
                _ => DeathWhen::AfterFrames(random.between(1, 8) as usize),
            };
            let back_after = Some(Duration::from_millis(random.between(10, 800)));
            faults.death = Some(Death { when, back_after, tasks: TasksAfterDeath::Kept });
        }
        Trouble::Busy => {
            faults.http_error = Some(HttpError::retry_after(503, 1, Times::First(random.between(1, 4) as u32)))
        }
        Trouble::BadGateway => {
            faults.http_error = Some(HttpError { times: few(random), ..HttpError::status(502) });
        }
        Trouble::HangsUp => {
            let when = *random.one_of(&[
                HangUpWhen::BeforeReading,
                HangUpWhen::BeforeProcessing,
                HangUpWhen::WhileProcessing,
                HangUpWhen::AfterProcessing,
            ]);
            let how = *random.one_of(&[Ending::Close, Ending::Reset]);
            faults.hang_up = Some(HangUp { on: On::Calls, when, how, times: few(random) });
        }
        Trouble::NoStreams => {
            let refusal = *random.one_of(&[Refusal::UnsupportedOperation, Refusal::MethodNotFound]);
            match random.between(0, 2) {
                0 => faults.no_streaming = Some(refusal),
                1 => faults.no_subscribe = Some(refusal),
                _ => (faults.no_streaming, faults.submitted_first) = (Some(refusal), true),
            }
        }
    }
    (trouble, faults)
}

fn few(random: &mut Random) -> Times {
    Times::First(random.between(1, 3) as u32)
}
