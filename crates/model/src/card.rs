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

/// A protocol extension that an agent knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Extension {
    /// Its name.
    pub uri: String,
    /// What it is for.
    pub description: Option<String>,
    /// Calls that do not activate it are refused.
    pub required: bool,
    /// What a client must know to use it.
    pub params: Option<Json>,
}

impl Extension {
    /// One that callers may activate and need not.
    pub fn new(uri: impl Into<String>) -> Self {
        Self { uri: uri.into(), description: None, required: false, params: None }
    }

    /// What it is for, on the card.
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.description = Some(description.into());
        self
    }

    /// Refuses calls that do not activate it.
    pub fn required(mut self) -> Self {
        self.required = true;
        self
    }
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

/// Something that an agent can do, as its card lists it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Skill {
    /// Its name for programs.
    pub id: String,
    /// Its name for people.
    pub name: String,
    /// What it does.
    pub description: String,
    /// Words by which it is found.
    pub tags: Vec<String>,
    /// What one could ask of it.
    pub examples: Vec<String>,
    /// Media types that it takes. Empty: the card's.
    pub input_modes: Vec<String>,
    /// Media types that it makes. Empty: the card's.
    pub output_modes: Vec<String>,
    /// What its callers need. Empty: as the card says.
    pub security: Vec<Requirement>,
}

impl Skill {
    /// A skill without tags and examples, with the media types of its card.
    pub fn new(id: impl Into<String>, name: impl Into<String>, description: impl Into<String>) -> Self {
        Self { id: id.into(), name: name.into(), description: description.into(), ..Self::default() }
    }

    /// Words by which it is found.
    pub fn tags<T: Into<String>>(mut self, tags: impl IntoIterator<Item = T>) -> Self {
        self.tags = tags.into_iter().map(Into::into).collect();
        self
    }

    /// What one could ask of it.
    pub fn examples<T: Into<String>>(mut self, examples: impl IntoIterator<Item = T>) -> Self {
        self.examples = examples.into_iter().map(Into::into).collect();
        self
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signature {
    pub protected: String,
    pub signature: String,
    pub header: Option<Json>,
}
