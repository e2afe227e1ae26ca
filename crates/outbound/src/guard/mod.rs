//! The egress guard: what Sabir may dial on a caller's behalf.
//!
//! ```text
//! text --Target::parse--> Target --EgressPolicy::check--> Approval --resolve once--> addresses --check each--> dial
//! ```
//!
//! Everything but the name look-up is pure. The guard is asked twice: when a URL is configured, so that its sender hears
//! of a refusal, and at every connect, since a name can change its address in between. The client connects to the very
//! addresses that the second check has seen.

mod address;
mod cidr;
mod decision;
mod host;
mod policy;
mod ports;
mod refusal;
mod resolve;
mod target;

pub use cidr::Cidr;
pub use decision::{Guard, GuardError};
pub use host::Host;
pub use policy::{Approval, EgressPolicy, MalformedEntry};
pub use ports::Ports;
pub use refusal::Refusal;
pub use resolve::{Resolve, SystemResolver};
pub use target::{MAX_URL_LENGTH, Scheme, Target};
