//! What an agent says of itself, before any dialect spells it.

use crate::Json;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Card {
    pub name: String,
    pub description: String,
    /// Of the agent or the server, not of the protocol.
    pub version: String,
    pub provider: Option<Provider>,
    pub documentation_url: Option<String>,
    pub icon_url: Option<String>,
    /// In order of preference, all protocol versions together.
    pub interfaces: Vec<Interface>,
    pub capabilities: Capabilities,
    /// By name.
    pub security_schemes: Vec<(String, SecurityScheme)>,
    /// Any one of these is enough.
    pub security: Vec<Requirement>,
    pub input_modes: Vec<String>,
    pub output_modes: Vec<String>,
    pub skills: Vec<Skill>,
    pub signatures: Vec<Signature>,
    pub gateway: Option<Gateway>,
}

/// How the agents behind a card are reached without A2A.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gateway {
    /// Where messages go, or where the agents are listed when there are several.
    pub url: String,
    /// Their ids, sorted.
    pub agents: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Provider {
    pub organization: String,
    pub url: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interface {
    pub url: String,
    /// `JSONRPC`, `HTTP+JSON`, `GRPC` or a URI.
    pub binding: String,
    /// `1.0`, `0.3`.
    pub version: String,
    pub tenant: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Capabilities {
    pub streaming: Option<bool>,
    pub push_notifications: Option<bool>,
    pub extended_card: Option<bool>,
    pub state_history: Option<bool>,
    pub extensions: Vec<Extension>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Extension {
    pub uri: String,
    pub description: Option<String>,
    pub required: bool,
    pub params: Option<Json>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecurityScheme {
    pub description: Option<String>,
    pub kind: SecurityKind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SecurityKind {
    ApiKey {
        location: String,
        name: String,
    },
    Http {
        scheme: String,
        bearer_format: Option<String>,
    },
    /// Several flows where the dialect allows; 1.0 keeps the first.
    OAuth2 {
        flows: Vec<Flow>,
        metadata_url: Option<String>,
    },
    OpenIdConnect {
        url: String,
    },
    MutualTls,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flow {
    /// `authorizationCode`, `clientCredentials`, `deviceCode`, `implicit`, `password`.
    pub name: String,
    pub authorization_url: Option<String>,
    pub device_authorization_url: Option<String>,
    pub token_url: Option<String>,
    pub refresh_url: Option<String>,
    /// Name and what it allows.
    pub scopes: Vec<(String, String)>,
    pub pkce_required: bool,
}

/// All of these schemes together, each with the scopes it needs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Requirement {
    pub schemes: Vec<(String, Vec<String>)>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Skill {
    pub id: String,
    pub name: String,
    pub description: String,
    pub tags: Vec<String>,
    pub examples: Vec<String>,
    /// Empty: the card's.
    pub input_modes: Vec<String>,
    pub output_modes: Vec<String>,
    pub security: Vec<Requirement>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signature {
    pub protected: String,
    pub signature: String,
    pub header: Option<Json>,
}
