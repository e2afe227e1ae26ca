//! All that Sabir dials.
//!
//! `guard` decides what may be dialled on a caller's behalf: which URLs, which addresses, which ports. `client` is the
//! HTTP client that dials it; its connector asks the guard, so no request can get around it. `webhooks`
//! delivers what the store's outbox has, with retries. `credentials` is what Sabir shows of itself to other A2A servers.
//! `cards` fetches the cards of other servers and verifies their signatures, and `remote` calls their agents; `jose` has
//! the keys and signatures, which our own cards get as well. `service` is a server of another protocol that the operator
//! names, such as one with models or tools.

mod back_off;
mod digest;
mod service;

pub mod cards;
pub mod client;
pub mod credentials;
pub mod guard;
pub mod jose;
pub mod remote;
pub mod webhooks;

pub use sabir_wire::{Binding, PeerError, PeerErrorKind, PeerProtocol, PeerResponse, ProtocolVersion};

pub use back_off::BackOff;
pub use client::{Client, ClientIdentity, DialError, Limits, OpenResponse, Request, Response, Roots};
pub use credentials::{CredentialError, CredentialSettings, UpstreamCredentials};
pub use digest::sha256;
pub use guard::{EgressPolicy, Guard, Ports, Refusal, Resolve, Scheme, SystemResolver, Target};
pub use service::{Service, ServiceError, ServiceSettings};
