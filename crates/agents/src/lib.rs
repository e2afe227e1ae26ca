//! What does the work.
//!
//! `demo` is the agent that a new user meets first and that tests drive; `conformance` is the demo plus
//! what the A2A project's own test kits expect of a system under test.

mod conformance;
mod demo;
mod words;

pub use conformance::ConformanceAgent;
pub use demo::DemoAgent;
