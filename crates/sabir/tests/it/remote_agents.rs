//! Agents of `kind = "a2a"`: the real program in front of a remote agent that can be told to do everything wrong.
//!
//! What callers of the front get is compared with what is true at the remote agent (`RemoteAgent::tasks`), and what the
//! front asked of it with the requests that it recorded.

mod cancelling;
mod cards;
mod crashes;
mod faults;
mod fixture;
mod hostile_remotes;
mod hostile_server;
mod orderly_stops;
mod server_features;
mod versions;
