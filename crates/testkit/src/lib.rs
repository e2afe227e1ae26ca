//! What tests share: contract suites, a scripted agent, a clock to advance, a small HTTP client, and the
//! real program as a child process, and certificates of an authority of their own.

pub mod certificates;
pub mod clock;
pub mod faulty;
pub mod http;
pub mod process;
pub mod scripted;
pub mod sse;
pub mod store_contract;
