//! What tests share: contract suites, a scripted agent, a clock to advance, a small HTTP client, and the
//! real program as a child process.

pub mod clock;
pub mod faulty;
pub mod http;
pub mod process;
pub mod scripted;
pub mod sse;
pub mod store_contract;
