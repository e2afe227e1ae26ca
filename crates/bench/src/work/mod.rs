//! What is done to the server, one file per kind of work.

pub mod fanout;
pub mod get;
pub mod http2_streams;
pub mod list;
pub mod open_streams;
pub mod over_http2;
pub mod running;
pub mod send;
pub mod stalled;
pub mod stream;
pub mod wake_up;
