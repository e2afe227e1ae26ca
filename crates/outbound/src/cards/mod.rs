//! The cards of other servers: fetched where the operator says, and verified with keys that have a reason to be trusted.

mod fetch;
mod verify;

pub use fetch::{CardClient, CardError, FetchedCard, fetch_card};
pub use verify::{KeySource, SignatureCheck, Trust, Verdict};
