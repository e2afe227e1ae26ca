//! All that dials Sabir: one port for every HTTP surface.
//!
//! A request is located, read, decoded, handed to the engine and answered; what any of that means is
//! decided elsewhere. There is no rule, no SQL and no protocol version in this room.

mod app;
mod body;
mod cards;
mod cors;
mod exchange;
mod extensions;
mod host;
mod listen;
mod operations;
mod request_id;
mod stream;

pub use app::{App, CardProfile, CardSettings, CorsSettings, ServerSettings};
pub use host::{HostCheck, HostName};
pub use listen::{Listeners, Unavailable};
