//! Remote agents: a client for every version of A2A.
//!
//! `Remote` finds out how a server wants to be spoken to (`discovery`) and makes single calls (`call`). `Following` keeps
//! to one task until it settles, over broken connections, restarts and servers that cannot stream; `Mirror` sees to it
//! that nothing is passed on twice. The requests and answers themselves are `wire`'s.

pub(crate) mod address;
mod call;
mod discovery;
mod error;
mod event_stream;
mod evidence;
mod following;
mod grpc_end;
mod message_stream;
mod mirror;
mod settings;
mod stream;

pub use call::Remote;
pub use discovery::{Discovered, Endpoint, with_scheme};
pub use error::RemoteError;
pub use event_stream::{EventParser, EventTooLarge, ServerEvent};
pub use evidence::OpenQuestion;
pub use following::{Following, OnUnknown, Step};
pub use mirror::{Mirror, Update, ends_turn};
pub use settings::{Observer, RemoteSettings, WireEvent};
pub use stream::{Frame, RemoteStream};
