//! What a remote agent does wrong. The default is nothing.
//!
//! Faults are plain values that can be combined, and changed while the server runs: `RemoteAgent::set_faults`,
//! `RemoteAgent::change_faults`. A server counts down what has a number of times.

use std::time::Duration;

use super::protocol::{Operation, RemoteProtocol};

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Faults {
    // Connections and HTTP.
    pub hang_up: Option<HangUp>,
    pub http_error: Option<HttpError>,
    pub redirect: Option<Redirect>,
    pub delay: Option<Delay>,
    /// The body arrives in small pieces with pauses in between.
    pub drip: Option<Drip>,
    pub death: Option<Death>,

    // What the agent does.
    /// A blocking send is answered at once with a submitted task, which goes on in the background.
    pub submitted_first: bool,
    /// A cancel is answered with the task as it is, and the work goes on.
    pub ignore_cancel: bool,
    /// The card says that there is no streaming, and streams are refused so.
    pub no_streaming: Option<Refusal>,
    pub no_subscribe: Option<Refusal>,
    /// Ids have characters that mean something in URLs, in JSON or in headers.
    pub odd_ids: bool,

    // Streams.
    pub drop_stream: Option<StreamDrop>,
    /// Nothing more arrives after so many frames, and the connection stays open.
    pub silence: Option<Silence>,
    /// How many further times each frame is sent.
    pub repeat_frames: usize,
    pub swap_frames: Option<Swap>,
    pub huge_frame: Option<HugeFrame>,
    pub error_frame: Option<ErrorFrame>,
    pub event_ids: EventIds,
    pub stream_errors: StreamErrors,
    pub sse: SseQuirks,

    // Content.
    pub malformed: Vec<Malformed>,
    pub card: Vec<CardFault>,
}

/// Which requests a fault is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum On {
    #[default]
    Everything,
    /// All but the card.
    Calls,
    Only(Operation),
}

impl On {
    pub(super) fn includes(self, operation: Option<Operation>) -> bool {
        match self {
            Self::Everything => true,
            Self::Calls => operation != Some(Operation::Card),
            Self::Only(wanted) => operation == Some(wanted),
        }
    }
}

/// How often a fault happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Times {
    #[default]
    Always,
    /// The next so many times.
    First(u32),
}

impl Times {
    pub const ONCE: Self = Self::First(1);

    /// Counts down; false if it happened often enough.
    pub(super) fn take(&mut self) -> bool {
        match self {
            Self::Always => true,
            Self::First(0) => false,
            Self::First(left) => {
                *left -= 1;
                true
            }
        }
    }

    pub(super) fn is_left(self) -> bool {
        self != Self::First(0)
    }
}

/// The connection is closed in place of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HangUp {
    /// Without meaning for `BeforeReading`.
    pub on: On,
    pub when: HangUpWhen,
    pub how: Ending,
    pub times: Times,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HangUpWhen {
    /// Nothing of the request is read.
    BeforeReading,
    /// The request is read and has no effect.
    BeforeProcessing,
    /// The request has its effect, and the work that it starts goes on.
    WhileProcessing,
    /// All is done but the answer.
    AfterProcessing,
}

/// How a connection or a stream ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// As if it were complete: the last chunk of the chunked coding, and the connection stays open. A hang-up has nothing to
    /// complete and closes.
    Complete,
    /// The connection is closed (FIN).
    Close,
    /// The connection is reset (RST).
    Reset,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpError {
    pub on: On,
    pub times: Times,
    pub status: u16,
    /// Further headers, such as `Retry-After` or `WWW-Authenticate`.
    pub headers: Vec<(String, String)>,
}

impl HttpError {
    /// 429 or 503 for the next so many requests.
    pub fn retry_after(status: u16, seconds: u64, times: Times) -> Self {
        let headers = vec![("Retry-After".to_owned(), seconds.to_string())];
        Self { on: On::Calls, times, status, headers }
    }

    pub fn status(status: u16) -> Self {
        Self { on: On::Calls, times: Times::Always, status, headers: Vec::new() }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redirect {
    pub on: On,
    pub times: Times,
    pub status: u16,
    pub to: RedirectTo,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RedirectTo {
    /// The very URL that was asked for.
    Itself,
    /// The same path at another origin, such as `http://127.0.0.1:1234`.
    Origin(String),
    Url(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Delay {
    pub on: On,
    /// After the request was processed, before the status line.
    pub before_head: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Drip {
    pub bytes: usize,
    pub pause: Duration,
}

/// The server dies: its port refuses connections, those that it has are reset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Death {
    pub when: DeathWhen,
    /// When it listens on the same port again; never by itself without.
    pub back_after: Option<Duration>,
    pub tasks: TasksAfterDeath,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeathWhen {
    /// After so many frames of any one stream.
    AfterFrames(usize),
    /// When such a request was processed, before its answer.
    AfterProcessing(On),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TasksAfterDeath {
    /// The work goes on meanwhile.
    Kept,
    Lost,
}

/// How an operation that is not there is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// -32004
    UnsupportedOperation,
    /// -32601
    MethodNotFound,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamDrop {
    /// So many frames arrive whole.
    pub after: usize,
    pub cut: Cut,
    pub how: Ending,
    pub times: Times,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    BetweenFrames,
    /// Half of the next frame arrives too.
    InFrame,
    /// The next frame arrives up to the middle of its first character of several bytes; frames that have none arrive whole.
    InCharacter,
}

impl StreamDrop {
    pub fn after(frames: usize, how: Ending) -> Self {
        Self { after: frames, cut: Cut::BetweenFrames, how, times: Times::ONCE }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Silence {
    pub after: usize,
    pub times: Times,
}

/// Frames are counted from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Swap {
    /// This frame changes places with the one after it.
    At(usize),
    EveryPair,
}

/// A frame is padded to at least this size, in a member that no version knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HugeFrame {
    pub at: usize,
    pub bytes: usize,
}

/// The stream ends with an error after so many frames; the task goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ErrorFrame {
    pub after: usize,
    pub code: i64,
    pub times: Times,
}

/// The field `id` of stream frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EventIds {
    #[default]
    Absent,
    /// The number of the event in its task; `Last-Event-ID` is not looked at.
    Numbers,
    /// The same, and a subscriber with `Last-Event-ID` gets the events after it and no snapshot.
    Resumable,
    /// A text without meaning.
    Opaque,
}

/// How an error that is known before the stream starts is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StreamErrors {
    /// 1.0 and HTTP+JSON: as a plain response; older JSON-RPC: as the one frame of a stream.
    #[default]
    AsVersion,
    Response,
    Frame,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SseQuirks {
    pub line_end: LineEnd,
    /// A comment before each frame.
    pub comments: bool,
    /// `event: message` in each frame, and `event: error` in those that are errors.
    pub event_lines: bool,
    /// A `retry:` field in each frame.
    pub retry_lines: bool,
    /// The JSON is spread over several `data:` lines.
    pub multi_line_data: bool,
    /// No space after the colons.
    pub no_space: bool,
    pub byte_order_mark: bool,
    /// Frames are sent in pieces of so many bytes.
    pub split: Option<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LineEnd {
    #[default]
    Lf,
    CrLf,
    Cr,
}

impl LineEnd {
    pub(super) fn text(self) -> &'static str {
        match self {
            Self::Lf => "\n",
            Self::CrLf => "\r\n",
            Self::Cr => "\r",
        }
    }
}

/// What is wrong with an event or an answer, and with which.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Malformed {
    pub at: At,
    pub how: Malformation,
}

impl Malformed {
    pub fn at(at: At, how: Malformation) -> Self {
        Self { at, how }
    }
}

/// Frames are counted from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum At {
    /// All frames and all other answers that are no errors.
    Everything,
    Frame(usize),
    /// This frame and all after it.
    FramesFrom(usize),
    /// Answers that are no streams.
    Answers,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Malformation {
    /// JSON that breaks off.
    NotJson,
    /// The envelope has another JSON-RPC id.
    WrongRpcId,
    /// The envelope has neither a result nor an error.
    NoResult,
    /// `"error": null` beside the result.
    ErrorNull,
    /// No id of any task, context, message or artifact.
    MissingIds,
    /// The state is this text, such as `unknown`.
    State(String),
    /// Times have no zone.
    TimesWithoutZone,
    /// Optional members are there and `null`.
    NullMembers,
    /// Messages and artifacts have no parts.
    EmptyParts,
    /// Messages and artifacts have a part of a kind that no version knows.
    UnknownPart,
    /// An event of a kind that no version knows.
    UnknownEvent,
    /// All of it is about a task with this id.
    ForeignTask(String),
    /// Where an object belongs there is a text.
    StatusIsText,
}

/// What is wrong with the card.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CardFault {
    /// This is the URL of every interface.
    Url(String),
    NoProtocolVersion,
    /// `/.well-known/agent.json` and nowhere else.
    OnlyAtOldPath,
    NullMembers,
    WrongTypes,
    /// Schemes that do not exist, and requirements that name none.
    BrokenSecurity,
    /// The card promises streams, whatever `no_streaming` says.
    ClaimsStreaming,
    /// The card has this member, in place of its own.
    Member(String, serde_json::Value),
    /// The card is that of another protocol.
    Claims(RemoteProtocol),
    /// 404
    Missing,
    NotJson,
    /// The card is padded to at least so many bytes.
    Padded(usize),
}
