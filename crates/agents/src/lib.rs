//! What does the work.
//!
//! `demo` is the agent that a new user meets first and that tests drive; `conformance` is the demo plus
//! what the A2A project's own test kits expect of a system under test. The rest runs programs: a
//! `protocol` is how one is talked to, an `update` what it says. `vocabulary` has the protocols of programs that are run
//! once per turn, `duplex` those of programs that are told and asked while they work, and both read with `lenient_json`;
//! `process` keeps a program within bounds, `program` puts all of it together, `kinds` says which ones are known. `routing`
//! chooses among agents.

mod about;
mod conformance;
mod demo;
mod lenient_json;
mod words;

pub mod duplex;
pub mod kinds;
pub mod process;
pub mod program;
pub mod protocol;
pub mod routing;
pub mod update;
pub mod vocabulary;

pub use about::{about, coding_program};
pub use conformance::ConformanceAgent;
pub use demo::DemoAgent;
pub use program::ProgramAgent;
