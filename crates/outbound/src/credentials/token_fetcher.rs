//! Where a token comes from: a file, or the token endpoint of an OAuth 2 server.
//!
//! The client of an endpoint trusts its host and port, since the operator wrote them; it follows no redirects.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::error::{CredentialError, InvalidCredentials};
use super::mask::Mask;
use super::secret::Secret;
use super::sendable::is_token;
use super::settings::{ClientCredentials, OauthClient, RequestedAccess, TokenEndpoint, TokenExchange, TokenInput};
use super::token_answer::{self, Grant, NoGrant};
use super::token_cache::TokenCache;
use super::token_file;
use super::token_form::TokenForm;
use crate::client::{Client, Limits, Request};
use crate::guard::{EgressPolicy, Guard, SystemResolver, Target};

/// How long the content of a file is used before the file is read again.
const FILE_LIFETIME: Duration = Duration::from_secs(1);

/// For one request to an endpoint.
const ENDPOINT_TIMEOUT: Duration = Duration::from_secs(10);

/// How long an exchange waits for the file with its subject token.
const SUBJECT_WAIT: Duration = Duration::from_secs(5);

const JWT: &str = "urn:ietf:params:oauth:token-type:jwt";

pub(super) enum TokenFetcher {
    File(PathBuf),
    Endpoint(Box<EndpointFetcher>),
}

pub(super) struct EndpointFetcher {
    client: Client,
    url: String,
    /// Without the query.
    shown_url: String,
    grant: GrantType,
    oauth_client: Option<OauthClient>,
    access: RequestedAccess,
}

enum GrantType {
    ClientCredentials,
    TokenExchange { subject: SubjectToken, subject_type: String, requested_type: Option<String> },
}

enum SubjectToken {
    Text(Secret),
    File(Arc<TokenCache>),
}

impl TokenFetcher {
    pub fn client_credentials(settings: ClientCredentials) -> Result<Self, InvalidCredentials> {
        let ClientCredentials { endpoint, client, access } = settings;
        Self::endpoint(endpoint, GrantType::ClientCredentials, Some(client), access)
    }

    pub fn token_exchange(settings: TokenExchange) -> Result<Self, InvalidCredentials> {
        let TokenExchange { endpoint, subject, subject_token_type, requested_token_type, client, access } = settings;
        let subject = match subject {
            TokenInput::Text(token) if is_token(token.as_str()) => SubjectToken::Text(token),
            TokenInput::Text(_) => return Err(not_a_token()),
            TokenInput::File(path) => SubjectToken::File(TokenCache::new(TokenFetcher::File(path))),
        };
        let subject_type = subject_token_type.unwrap_or_else(|| JWT.to_owned());
        let grant = GrantType::TokenExchange { subject, subject_type, requested_type: requested_token_type };
        Self::endpoint(endpoint, grant, client, access)
    }

    fn endpoint(
        endpoint: TokenEndpoint,
        grant: GrantType,
        oauth_client: Option<OauthClient>,
        access: RequestedAccess,
    ) -> Result<Self, InvalidCredentials> {
        let target = Target::parse(&endpoint.url)
            .map_err(|refusal| InvalidCredentials::new("token_url", format!("cannot be used: {refusal}")))?;
        if oauth_client.as_ref().is_some_and(|client| client.id.is_empty()) {
            return Err(InvalidCredentials::new("client_id", "must not be empty"));
        }
        let mut policy = EgressPolicy::default();
        policy.trust(target.host, target.port);
        let guard = Guard::new(policy, Arc::new(SystemResolver::default()));
        let shown_url = endpoint.shown().to_owned();
        let TokenEndpoint { url, roots, identity } = endpoint;
        let client = Client::with_identity(Arc::new(guard), Limits::default(), roots, identity);
        Ok(TokenFetcher::Endpoint(Box::new(EndpointFetcher { client, url, shown_url, grant, oauth_client, access })))
    }

    pub async fn fetch(&self) -> Result<Grant, CredentialError> {
        match self {
            TokenFetcher::File(path) => {
                let path = path.clone();
                let read = tokio::task::spawn_blocking(move || token_file::read(&path)).await;
                let token = read.map_err(|_| CredentialError::Interrupted)??;
                Ok(Grant { token, lifetime: FILE_LIFETIME })
            }
            TokenFetcher::Endpoint(endpoint) => endpoint.fetch().await,
        }
    }
}

impl EndpointFetcher {
    async fn fetch(&self) -> Result<Grant, CredentialError> {
        let (form, mask) = self.form().await?;
        let (headers, body) = form.into_parts();
        let answer = self.client.send(Request::post(&self.url, headers, body, ENDPOINT_TIMEOUT)).await;
        let endpoint = self.shown_url.clone();
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) => return Err(CredentialError::Dial { endpoint, error }),
        };
        let status = answer.status;
        token_answer::read(status, &answer.body, &mask).map_err(|no_grant| match no_grant {
            NoGrant::Refused(answer) => CredentialError::Refused { endpoint, status, answer },
            NoGrant::Unusable(why) => CredentialError::Unusable { endpoint, status, why },
        })
    }

    /// The request, and the secrets in it.
    async fn form(&self) -> Result<(TokenForm, Mask), CredentialError> {
        let mut mask = Mask::default();
        let mut form = match &self.grant {
            GrantType::ClientCredentials => TokenForm::new("client_credentials"),
            GrantType::TokenExchange { subject, subject_type, requested_type } => {
                let mut form = TokenForm::new("urn:ietf:params:oauth:grant-type:token-exchange");
                let token = match subject {
                    SubjectToken::Text(token) => token.clone(),
                    SubjectToken::File(file) => file.token(SUBJECT_WAIT).await?.token,
                };
                form.add("subject_token", token.as_str());
                form.add("subject_token_type", subject_type);
                if let Some(requested) = requested_type {
                    form.add("requested_token_type", requested);
                }
                mask.add(&token);
                form
            }
        };
        form.add_access(&self.access);
        if let Some(client) = &self.oauth_client {
            form.add_client(client);
            client.secrets().iter().for_each(|secret| mask.add(secret));
        }
        Ok((form, mask))
    }
}

pub(super) fn not_a_token() -> InvalidCredentials {
    InvalidCredentials::new("token", "must be the token alone: visible ASCII characters without spaces")
}

/// For logs.
impl fmt::Display for TokenFetcher {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TokenFetcher::File(path) => write!(out, "{}", path.display()),
            TokenFetcher::Endpoint(endpoint) => out.write_str(&endpoint.shown_url),
        }
    }
}
