//! `sabir send`, `watch`, `get`, `list`, `cancel` and `answer`: the real program against the real server.

mod arguments;
mod exit_codes;
mod files;
mod fixture;
mod interruptions;
mod large_tasks;
pub mod peer_server;
mod terminal;
mod versions;
