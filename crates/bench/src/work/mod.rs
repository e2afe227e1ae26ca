//! What is done to the server, one file per kind of work.

pub mod fanout;
pub mod get;
pub mod list;
pub mod open_streams;
pub mod send;
pub mod stream;
