//! The configuration: from a file, the environment and the command line to one typed `Config`.
//!
//! `settings` and `agent_settings` are the tables of everything that can be set. `layers` puts defaults, file, environment
//! and flags on top of each other; `origin` remembers where each value came from. Nothing but
//! `process_environment.rs` reads the process environment.
//!
//! A new setting is a field in `sections`, a row in a table, a row in the documentation and a line in the example file;
//! `sabir config --schema > sabir.schema.json` writes the schema again.

mod sections;

mod agent_settings;
mod settings;

mod addresses;
mod auth;
mod mcp_servers;
mod openai_agents;
mod paths;
mod postgres_url;
mod raw;
mod remote_agents;
mod secrets;
mod table_values;
mod upstream_credentials;
mod values;

mod default_database;
mod environment;
mod file;
mod layers;
mod node_folder;
mod origin;

mod agents;
mod alias_agents;
mod auth_issuers;
mod delegation;
mod env_aliases;
mod programs;
mod proxy_agent;
mod routes;

mod schema;
mod show;
mod start_checks;

#[cfg(test)]
mod tests;

pub use addresses::host_of_url;
pub use agents::{check_agent_id, default_of};
pub use auth::check_credential;
pub use layers::{LoadedConfig, load};
pub use origin::{Problems, SettingValue};
pub use paths::parse_store_url;
pub use postgres_url::PostgresUrl;
pub use proxy_agent::remote_agent;
pub use schema::schema;
pub use sections::*;
pub use show::{Audience, show};
pub use start_checks::{client_certificates, tls_settings};
pub use values::parse_duration;
