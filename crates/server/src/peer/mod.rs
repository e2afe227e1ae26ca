//! Who asks: the other end of the connection, or whom a proxy names that the operator trusts.
//!
//! `forwarded` reads what proxies add to requests, `address_range` says which proxies are trusted, and `limits` counts
//! what each peer has at the same time.

mod address_range;
mod forwarded;
mod limits;

pub use address_range::AddressRange;
pub use forwarded::TrustedProxies;
pub use limits::PeerLimit;
pub(crate) use limits::{PeerCounts, RequestInFlight, RequestsInFlight};
