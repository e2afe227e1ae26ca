//! All that dials Sabir: one port for every HTTP surface.
//!
//! A request is located, read, decoded, handed to the engine and answered; what any of that means is
//! decided elsewhere. There is no rule, no SQL and no protocol version in this room.

mod admin;
mod agent_ids;
mod app;
mod auth;
mod body;
mod budget;
mod call_observer;
mod cards;
mod connections;
mod console;
mod cors;
mod encoded_tasks;
mod etag;
mod exchange;
mod extensions;
mod gathered_writes;
mod grpc;
mod home;
mod host;
mod incoming;
mod keep_alive;
mod limits;
mod listen;
mod log_limit;
mod mcp;
mod metrics;
mod open_streams;
mod openai;
mod openapi;
mod operations;
mod peer;
mod pieces;
mod progress;
mod request_id;
mod scheme;
mod service;
mod signed_cards;
mod socket;
mod stream;
mod tls;
mod visible_agents;

pub use admin::{AdminAccess, ServerFacts, SettingFact, StoreAbout};
pub use agent_ids::{RESERVED_AGENT_IDS, is_path_segment};
pub use app::{App, CardSettings, CorsSettings, GrpcAddress, ServerSettings};
pub use auth::jwt;
pub use auth::{ApiKey, AuthSettings, CertificateGrant, Credential, Digest, Grant, random_secret};
pub use call_observer::{CallObserver, CallOperation, CallRequest, CallSubject, ObservedCall};
pub use cards::CatalogueAccess;
pub use connections::Timeouts;
pub use console::Console;
pub use host::{HostCheck, HostName};
pub use limits::RequestLimits;
pub use listen::{Listeners, Unavailable};
pub use metrics::{METRICS_PREFIX, Metrics};
pub use openai::OpenAi;
pub use peer::{AddressRange, PeerLimit, TrustedProxies};
pub use service::{ResponseBody, Service, ServiceFuture};
pub use signed_cards::CardSigner;
pub use tls::{ClientAuth, ClientCertificates, PeerCertificate, Reloaded, Tls, TlsError, TlsFile, TlsSettings};
