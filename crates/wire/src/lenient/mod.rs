//! Lenient reading: every known spelling at once, for the mounts that take what clients really send.
//!
//! One set of structs reads messages and task ids of all dialects. A body that its own dialect takes strictly means the
//! same here.

mod message;
mod part;
mod task_id;

pub(crate) use message::Message;
pub(crate) use part::{DataEncoding, Part};
pub(crate) use task_id::{TaskParams, any_context_id, any_task_id};
