//! A remote agent for tests: an A2A server that can be told to do everything wrong.
//!
//! It speaks all versions of the protocol, one or several at once, and answers with raw bytes on a blocking socket, so that any
//! malformed thing can be sent. It shares no code with the client that is tested against it, nor with Sabir's server.
//!
//! - `RemoteAgent` is the server. It records every request, and knows what truly became of every task.
//! - `Faults` say what goes wrong on the wire, in streams and on the card.
//! - `PlantedFault` breaks one rule of the specification each, for conformance checks.
//! - The words that the agent understands are in `agent`.

mod agent;
mod answer;
mod call;
mod card;
mod connection;
mod errors;
mod exchange;
mod fault_names;
mod faults;
mod fields;
mod handle;
mod harmless;
mod perform;
mod planted;
mod planted_effects;
mod planted_stream;
mod protocol;
mod push;
mod requests;
mod respond;
mod route;
mod server;
mod spelling;
mod spelling_v01;
mod spelling_v03;
mod spelling_v03_proto;
mod spelling_v1;
mod sse;
mod stream;
mod tamper;
mod task;
mod tasks;
mod time;

pub use fault_names::FAULT_NAMES;
pub use faults::{
    At, CardFault, Cut, Death, DeathWhen, Delay, Drip, Ending, ErrorFrame, EventIds, Faults, HangUp, HangUpWhen,
    HttpError, HugeFrame, LineEnd, Malformation, Malformed, On, Redirect, RedirectTo, Refusal, Silence, SseQuirks,
    StreamDrop, StreamErrors, Swap, TasksAfterDeath, Times,
};
pub use handle::{RemoteAgent, RemoteAgentBuilder};
pub use harmless::harmless_faults;
pub use planted::PlantedFault;
pub use protocol::{Operation, RemoteBinding, RemoteProtocol};
pub use requests::RecordedRequest;
pub use task::{PushConfig, RemoteArtifact, RemoteMessage, RemotePart, RemoteRole, RemoteState, RemoteTask, TaskEvent};
pub use tasks::RemoteTasks;
