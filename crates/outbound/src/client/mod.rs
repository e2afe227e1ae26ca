//! The guarded HTTP client: everything that Sabir dials on a caller's behalf goes through it.
//!
//! Its connector resolves a name once, has every address checked by the guard, and connects to one of those; there is no
//! other way to a socket, and no proxy from the environment. Connections are pooled per scheme, host and port. A pooled
//! connection stays with the address that was checked when it was opened, and the policy of a client never changes, so
//! using it again cannot lead elsewhere; after 30 seconds without use it is closed, so that names are looked up again.

mod connection;
mod connector;
mod dial;
mod error;
mod exchange;
mod identity;
mod limits;
mod open_response;
mod redirect;
mod request;
mod secret_query;
mod tls;

pub(crate) use request::{AGENT, CONNECTION_HEADERS};

pub use error::DialError;
pub use exchange::Client;
pub use identity::{ClientIdentity, UnusableIdentity};
pub use limits::Limits;
pub use open_response::OpenResponse;
pub use request::{HttpProtocol, Request, Response};
pub use secret_query::SecretQuery;
pub use tls::{Roots, UnusableRoot, UnusableRoots};
