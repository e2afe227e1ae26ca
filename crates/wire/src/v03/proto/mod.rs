//! 0.3 over HTTP: ProtoJSON of `a2a.v1`.
//!
//! Close to 1.0, yet a language of its own: a message has `content`, files and data are nested, `canceled` has two
//! Ls. Clients of this dialect refuse members that they do not know, so nothing else is ever written.

mod dialect;
mod message;
mod part;
mod push;
mod state;
mod task_id;

pub use dialect::V03Proto;
