//! A server that the operator names and that does not speak A2A: one with models, or one with tools.
//!
//! Its host and port are trusted, as those of remote agents are; nothing else is dialled. Redirects are not followed, so
//! its credential stays with it.

use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};

use crate::client::{Client, ClientIdentity, DialError, HttpProtocol, Limits, OpenResponse, Request, Roots};
use crate::credentials::{CredentialError, CredentialSettings, ShownToken, UpstreamCredentials};
use crate::guard::{EgressPolicy, Guard, SystemResolver};
use crate::remote::address::trust;

/// Where the server is, and what it is shown.
#[derive(Clone)]
pub struct ServiceSettings {
    /// Paths of requests are added to it.
    pub url: String,
    pub credentials: CredentialSettings,
    pub identity: Option<ClientIdentity>,
    pub roots: Roots,
    /// The largest answer that is read at once; streams have no limit here.
    pub largest_answer: usize,
}

/// Cheap to clone; clones share connections and tokens.
#[derive(Clone)]
pub struct Service(Arc<Inner>);

struct Inner {
    client: Client,
    credentials: UpstreamCredentials,
    url: String,
}

/// Why a request got no response.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ServiceError {
    #[error(transparent)]
    Dial(#[from] DialError),
    /// There is no valid credential now; there may be one later.
    #[error("no credential: {0}")]
    Credential(String),
    /// The settings are wrong, and will be wrong again.
    #[error("{0}")]
    Settings(String),
}

/// Connections that were unused for longer are not used again: many servers close theirs after little more.
const LONGEST_IDLE: Duration = Duration::from_secs(15);

impl Service {
    pub fn new(settings: ServiceSettings) -> Result<Self, ServiceError> {
        let mut policy = EgressPolicy::default();
        let url = settings.url.trim_end_matches('/').to_owned();
        trust(&mut policy, &url).map_err(|refusal| ServiceError::Settings(format!("{url}: {refusal}")))?;
        let guard = Guard::new(policy, Arc::new(SystemResolver::default()));
        let limits =
            Limits { body: settings.largest_answer, idle: LONGEST_IDLE, idle_per_host: 64, ..Limits::default() };
        let client = Client::with_identity(Arc::new(guard), limits, settings.roots, settings.identity);
        let credentials = UpstreamCredentials::new(settings.credentials, &[&url])
            .map_err(|error| ServiceError::Settings(error.to_string()))?;
        Ok(Service(Arc::new(Inner { client, credentials, url })))
    }

    /// For logs; callers need not know where a server is.
    pub fn url(&self) -> &str {
        &self.0.url
    }

    /// What the server says, without the credential: some repeat it where they say what is wrong with it.
    pub fn mask(&self, text: &str) -> String {
        self.0.credentials.mask(text)
    }

    /// POSTs JSON; `timeout` is for the head of the response. `headers` are of no secret.
    pub async fn post(
        &self,
        path: &str,
        headers: &[(&'static str, &str)],
        body: Vec<u8>,
        timeout: Duration,
    ) -> Result<OpenResponse, ServiceError> {
        self.open(Method::POST, path, headers, body, timeout).await
    }

    pub async fn get(&self, path: &str, timeout: Duration) -> Result<OpenResponse, ServiceError> {
        self.open(Method::GET, path, &[], Vec::new(), timeout).await
    }

    /// Asks the server to forget something.
    pub async fn delete(
        &self,
        path: &str,
        headers: &[(&'static str, &str)],
        timeout: Duration,
    ) -> Result<OpenResponse, ServiceError> {
        self.open(Method::DELETE, path, headers, Vec::new(), timeout).await
    }

    async fn open(
        &self,
        method: Method,
        path: &str,
        headers: &[(&'static str, &str)],
        body: Vec<u8>,
        timeout: Duration,
    ) -> Result<OpenResponse, ServiceError> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            // What a header cannot carry is left out.
            if let Ok(value) = HeaderValue::from_str(value) {
                map.insert(HeaderName::from_static(name), value);
            }
        }
        let url = format!("{}{path}", self.0.url);
        let (body, protocol) = (body.into(), HttpProtocol::Any);
        let request = Request { method, url, headers: map, body, timeout, redirects: 0, secret_query: None, protocol };
        let repetition = self.0.credentials.may_change().then(|| request.clone());
        let (response, shown) = self.open_once(request).await?;
        match repetition {
            // A token that has been refused may be an old one; another is shown once.
            Some(repetition) if response.status == StatusCode::UNAUTHORIZED && self.0.credentials.forget(shown) => {
                Ok(self.open_once(repetition).await?.0)
            }
            _ => Ok(response),
        }
    }

    async fn open_once(&self, mut request: Request) -> Result<(OpenResponse, ShownToken), ServiceError> {
        let shown = self.0.credentials.authorize(&mut request).await.map_err(|error| match error {
            CredentialError::OtherOrigin { .. } | CredentialError::Url(_) => ServiceError::Settings(error.to_string()),
            error => ServiceError::Credential(error.to_string()),
        })?;
        Ok((self.0.client.open(request).await?, shown))
    }
}
