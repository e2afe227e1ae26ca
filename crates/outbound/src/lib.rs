//! All that Sabir dials.
//!
//! `guard` decides what may be dialled on a caller's behalf: which URLs, which addresses, which ports. `client` is the
//! HTTP client that dials it; its connector asks the guard, so no request can get around it. `webhooks`
//! delivers what the store's outbox has, with retries.

pub mod client;
pub mod guard;
pub mod webhooks;

pub use client::{Client, DialError, Limits, Request, Response, Roots};
pub use guard::{EgressPolicy, Guard, Refusal, Resolve, SystemResolver, Target};
