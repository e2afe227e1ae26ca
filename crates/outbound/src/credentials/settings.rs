//! The description of credentials, as plain values. `UpstreamCredentials::new` checks them.

use std::fmt;
use std::path::PathBuf;

use sabir_wire::percent_encode;

use super::error::CredentialError;
use super::secret::Secret;
use super::token_file;
use crate::client::{ClientIdentity, Roots};

/// What an upstream wants to see.
#[derive(Debug, Clone, Default)]
pub struct CredentialSettings {
    pub authentication: Authentication,
    /// Headers that every request gets as well: names and values. All values count as secrets.
    pub headers: Vec<(String, Secret)>,
}

#[derive(Debug, Clone, Default)]
pub enum Authentication {
    #[default]
    None,
    Bearer(TokenInput),
    ApiKey(ApiKey),
    /// HTTP basic (RFC 7617).
    Basic {
        user: String,
        password: Secret,
    },
    /// OAuth 2 client credentials (RFC 6749, section 4.4).
    ClientCredentials(ClientCredentials),
    /// OAuth 2 token exchange (RFC 8693).
    TokenExchange(TokenExchange),
}

/// A token that the operator gives.
#[derive(Debug, Clone)]
pub enum TokenInput {
    Text(Secret),
    /// The file is read again before it is used, at most once a second: tokens of Kubernetes rotate.
    File(PathBuf),
}

impl TokenInput {
    /// Whether there is a token now. Reads the file, which blocks.
    pub fn check(&self) -> Result<(), CredentialError> {
        match self {
            TokenInput::Text(_) => Ok(()),
            TokenInput::File(path) => token_file::read(path).map(|_| ()),
        }
    }
}

/// The security scheme `apiKey` of A2A.
#[derive(Debug, Clone)]
pub struct ApiKey {
    pub place: ApiKeyPlace,
    /// Of the header, the query parameter or the cookie.
    pub name: String,
    pub value: Secret,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ApiKeyPlace {
    #[default]
    Header,
    Query,
    Cookie,
}

#[derive(Debug, Clone)]
pub struct ClientCredentials {
    pub endpoint: TokenEndpoint,
    pub client: OauthClient,
    pub access: RequestedAccess,
}

#[derive(Debug, Clone)]
pub struct TokenExchange {
    pub endpoint: TokenEndpoint,
    pub subject: TokenInput,
    /// `None`: `urn:ietf:params:oauth:token-type:jwt`.
    pub subject_token_type: Option<String>,
    /// `None`: the endpoint decides.
    pub requested_token_type: Option<String>,
    /// `None`: the subject token is all that the endpoint gets.
    pub client: Option<OauthClient>,
    pub access: RequestedAccess,
}

/// Where tokens are issued.
#[derive(Clone)]
pub struct TokenEndpoint {
    /// Its host and port are dialled whatever their address is, since the operator wrote them.
    pub url: String,
    pub roots: Roots,
    /// For an endpoint that demands mutual TLS.
    pub identity: Option<ClientIdentity>,
}

/// Who asks for a token.
#[derive(Debug, Clone)]
pub struct OauthClient {
    pub id: String,
    pub authentication: ClientAuthentication,
}

/// How a client proves to the token endpoint who it is.
#[derive(Debug, Clone)]
pub enum ClientAuthentication {
    /// `client_secret_basic`, which every endpoint must accept.
    SecretBasic(Secret),
    /// `client_secret_post`.
    SecretPost(Secret),
    /// The id alone: for public clients, and for those that the endpoint knows by their certificate (RFC 8705).
    IdOnly,
}

/// What the token is for.
#[derive(Debug, Clone, Default)]
pub struct RequestedAccess {
    pub scopes: Vec<String>,
    /// Names of the services, each one a parameter `audience`.
    pub audiences: Vec<String>,
    /// URIs of the services, each one a parameter `resource` (RFC 8707).
    pub resources: Vec<String>,
}

impl TokenEndpoint {
    /// Trusts the certificates of the platform.
    pub fn new(url: &str) -> Self {
        TokenEndpoint { url: url.to_owned(), roots: Roots::default(), identity: None }
    }

    /// Its URL for errors and logs. Some endpoints have a key in their query.
    pub(super) fn shown(&self) -> &str {
        self.url.split(['?', '#']).next().unwrap_or_default()
    }
}

impl fmt::Debug for TokenEndpoint {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("TokenEndpoint").field("url", &self.shown()).finish_non_exhaustive()
    }
}

impl OauthClient {
    /// With `client_secret_basic`.
    pub fn new(id: &str, secret: &str) -> Self {
        OauthClient { id: id.to_owned(), authentication: ClientAuthentication::SecretBasic(Secret::new(secret)) }
    }

    /// `ID:SECRET` as HTTP basic has it. Both are encoded before they are joined, so that an id may hold a colon.
    pub(super) fn basic_pair(&self, secret: &Secret) -> String {
        format!("{}:{}", percent_encode(&self.id), percent_encode(secret.as_str()))
    }

    /// What of the request to the token endpoint is secret.
    pub(super) fn secrets(&self) -> Vec<Secret> {
        match &self.authentication {
            ClientAuthentication::SecretBasic(secret) => vec![secret.clone(), Secret::new(&self.basic_pair(secret))],
            ClientAuthentication::SecretPost(secret) => vec![secret.clone()],
            ClientAuthentication::IdOnly => vec![],
        }
    }
}
