//! What does the work.
//!
//! `demo` is the agent that a new user meets first and that tests drive; `conformance` is the demo plus
//! what the A2A project's own test kits expect of a system under test. The rest runs programs: a
//! `protocol` is how one is talked to, an `update` what it says, `program` how it is set up, `kinds` which ones are
//! known. `routing` chooses among agents.

mod about;
mod conformance;
mod demo;
mod words;

pub mod kinds;
pub mod program;
pub mod protocol;
pub mod routing;
pub mod update;

pub use about::about;
pub use conformance::ConformanceAgent;
pub use demo::DemoAgent;
