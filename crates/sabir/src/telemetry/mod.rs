//! Traces: OpenTelemetry spans of calls, runs and tools, sent to a collector by OTLP over HTTP.
//!
//! ```text
//! caller's traceparent -> call (SERVER) -> run (invoke_agent) -> tool (execute_tool)
//!                                          run also links to every call that it got a message from
//! ```
//!
//! The context of a call's span is stored with its message, so a run that waits, or begins again after a restart, still
//! finds it. The run's context is what agents hand on.
//!
//! The exporter is our own. What is needed is a dozen protobuf messages (`otlp.rs`), a sampler and a bounded queue, and prost
//! and the HTTP client are here already: no new dependency. The crates `opentelemetry`, `opentelemetry_sdk` and
//! `opentelemetry-otlp` and what they need would be thirteen more, with a thread of their own for batches, whose blocking executor cannot
//! run our client; and their interfaces change with every minor version.
//!
//! Without an endpoint in the environment nothing of this exists: no task, no queue, no observer.

#[cfg(feature = "otel")]
mod calls;
#[cfg(feature = "otel")]
mod exporter;
#[cfg(feature = "otel")]
mod ids;
#[cfg(feature = "otel")]
mod otlp;
#[cfg(feature = "otel")]
mod queue;
#[cfg(feature = "otel")]
mod runs;
#[cfg(feature = "otel")]
mod sampler;
#[cfg(feature = "otel")]
mod settings;
#[cfg(feature = "otel")]
mod span;
#[cfg(feature = "otel")]
mod traces;
#[cfg(not(feature = "otel"))]
mod without;

#[cfg(feature = "otel")]
pub use traces::Traces;
#[cfg(not(feature = "otel"))]
pub use without::Traces;
