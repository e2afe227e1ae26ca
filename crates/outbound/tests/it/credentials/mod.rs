//! Credentials for upstreams: what they see, and how tokens are fetched, kept and forgotten.

mod client_credentials;
mod failures;
mod fixed;
mod fixture;
mod other_servers;
mod secrecy;
mod token_exchange;
mod token_files;
