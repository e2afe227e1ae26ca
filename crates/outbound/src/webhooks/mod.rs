//! Webhooks: what a task's log holds is delivered to the URLs that its callers have set.
//!
//! ```text
//! store (Outbox) --due--> Dispatcher --one worker per webhook--> payload + headers --Client--> receiver
//!        ^                                                                                        |
//!        +------- delivered, postponed or given up <-- outcome of the attempt <-------------------+
//! ```
//!
//! Deliveries of one webhook keep the order of the log, arrive at least once, and carry the same delivery id each time.
//! Receivers (scheme, host and port) are independent of each other: each has its own slots and its own circuit breaker.

mod attempt;
mod backoff;
mod counts;
mod delivery_id;
mod dispatcher;
mod headers;
mod key_text;
mod log_reader;
mod payload;
mod receiver;
mod seal;
mod secrets;
mod signature;
mod worker;

pub use counts::DeliveryCounts;
pub use dispatcher::{Dispatcher, DispatcherSettings};
pub use seal::{InvalidKey, SealKey};
pub use secrets::{InvalidSecret, WebhookSecrets};
pub use signature::{InvalidSigningKey, Signer, SigningKey};
