//! What whoever starts the server knows of it, and this room does not: its configuration, its store, its addresses.

use serde::Serialize;
use serde_json::value::RawValue;

/// For operators only.
#[derive(Debug, Clone, Default)]
pub struct ServerFacts {
    /// Of the program.
    pub version: String,
    /// The commit that the program was built from.
    pub commit: Option<String>,
    /// Where the server is reached from its own machine.
    pub urls: Vec<String>,
    pub store: StoreAbout,
    /// Every setting in force. Secrets are masked.
    pub settings: Vec<SettingFact>,
    /// The kind of each agent that has one, by its id.
    pub agent_kinds: Vec<(String, String)>,
}

/// What the store is.
#[derive(Debug, Clone, Default)]
pub struct StoreAbout {
    /// `sqlite`, `postgres` or `memory`.
    pub kind: &'static str,
    /// The file, or the server and the database; never with a password.
    pub place: Option<String>,
    /// What a commit survives, where that can be chosen.
    pub durability: Option<String>,
}

/// A setting in force.
#[derive(Debug, Clone, Serialize)]
pub struct SettingFact {
    pub name: String,
    pub value: Box<RawValue>,
    /// Where the value came from.
    pub origin: String,
}
