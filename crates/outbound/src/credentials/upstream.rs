//! The credentials for one upstream: what a request to it gets.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderName, HeaderValue, header};

use super::error::{CredentialError, InvalidCredentials};
use super::mask::Mask;
use super::origin::Origin;
use super::secret::Secret;
use super::sendable::{MAX_LENGTH, cookie, header_name, header_value, is_token};
use super::settings::{ApiKey, ApiKeyPlace, Authentication, CredentialSettings, TokenInput};
use super::token_cache::TokenCache;
use super::token_fetcher::{TokenFetcher, not_a_token};
use super::token_form::basic;
use crate::client::{Request, SecretQuery};

/// A request waits no longer for a token, whatever its own time limit is.
const LONGEST_WAIT: Duration = Duration::from_secs(15);
/// Shorter values of headers are found in any text.
const SHORTEST_MASKED: usize = 8;

/// Cheap to clone; clones share their tokens.
#[derive(Clone, Default)]
pub struct UpstreamCredentials(Arc<Credentials>);

#[derive(Default)]
struct Credentials {
    /// The origins that may see them.
    origins: Vec<Origin>,
    /// All values are marked as secrets.
    headers: Vec<(HeaderName, HeaderValue)>,
    query: Option<SecretQuery>,
    /// Shown as `Authorization: Bearer`.
    token: Option<Arc<TokenCache>>,
}

/// Which token a request was shown, for `UpstreamCredentials::forget`. It does not hold the token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShownToken(Option<u64>);

impl UpstreamCredentials {
    /// Nothing is shown to anybody.
    pub fn none() -> Self {
        Self::default()
    }

    /// `upstreams` are URLs that the operator wrote; their origins may see the credentials, and no others. Nothing is read
    /// or dialled yet.
    pub fn new(settings: CredentialSettings, upstreams: &[&str]) -> Result<Self, InvalidCredentials> {
        let mut credentials = Credentials::default();
        for url in upstreams {
            let origin = Origin::parse(url);
            let origin = origin.map_err(|refusal| InvalidCredentials::new("upstream", refusal.to_string()))?;
            credentials.origins.push(origin);
        }
        credentials.add_authentication(settings.authentication)?;
        for (name, value) in &settings.headers {
            let name = header_name("headers", name)?;
            let is_used = credentials.headers.iter().any(|(used, _)| *used == name)
                || (name == header::AUTHORIZATION && credentials.token.is_some());
            if is_used {
                return Err(InvalidCredentials::new("headers", format!("set `{name}` twice")));
            }
            credentials.headers.push((name, header_value("headers", value.as_str())?));
        }
        Ok(UpstreamCredentials(Arc::new(credentials)))
    }

    /// Why a request to this URL would be refused them. Who has none shows none, so everybody may be asked.
    pub fn check_url(&self, url: &str) -> Result<(), CredentialError> {
        if self.0.is_empty() { Ok(()) } else { self.0.check_origin(url) }
    }

    /// Adds what the upstream wants to see to a request. That may wait for a token, at most as long as the request may
    /// take. If it fails, nothing is added.
    pub async fn authorize(&self, request: &mut Request) -> Result<ShownToken, CredentialError> {
        let credentials = &*self.0;
        self.check_url(&request.url)?;
        let token = match &credentials.token {
            None => None,
            Some(cache) => Some(cache.token(request.timeout.min(LONGEST_WAIT)).await?),
        };
        for (name, value) in &credentials.headers {
            request.headers.insert(name, value.clone());
        }
        if let Some(query) = &credentials.query {
            request.secret_query = Some(query.clone());
        }
        if let Some(token) = &token {
            request.headers.insert(header::AUTHORIZATION, bearer(token.token.as_str()));
        }
        Ok(ShownToken(token.map(|token| token.number)))
    }

    /// The text without what the upstream is shown: some repeat it where they say what is wrong with it.
    pub fn mask(&self, text: &str) -> String {
        let Credentials { headers, query, token, .. } = &*self.0;
        let mut mask = Mask::default();
        for value in headers.iter().filter_map(|(_, value)| value.to_str().ok()) {
            // Also without the scheme of an authorization or the name of a cookie.
            let bare = [' ', '='].into_iter().filter_map(|end| Some(value.split_once(end)?.1));
            for form in bare.chain([value]).filter(|form| form.len() >= SHORTEST_MASKED) {
                mask.add(&Secret::new(form));
            }
        }
        let others = query.as_ref().map(|query| Secret::new(query.value())).into_iter();
        for secret in others.chain(token.as_ref().and_then(|cache| cache.known())) {
            mask.add(&secret);
        }
        mask.apply(text)
    }

    /// Whether another try after a refusal can show something else.
    pub fn may_change(&self) -> bool {
        self.0.token.is_some()
    }

    /// The upstream has refused what it was shown (401). Forgets the token if it is still the current one. `true`:
    /// another try, after another `authorize`, may be shown a new one; one is enough.
    pub fn forget(&self, shown: ShownToken) -> bool {
        match (&self.0.token, shown.0) {
            (Some(cache), Some(number)) => cache.refused(number),
            _ => false,
        }
    }
}

impl Credentials {
    fn add_authentication(&mut self, authentication: Authentication) -> Result<(), InvalidCredentials> {
        let fetcher = match authentication {
            Authentication::None => return Ok(()),
            Authentication::Bearer(TokenInput::Text(token)) if is_token(token.as_str()) => {
                self.headers.push((header::AUTHORIZATION, bearer(token.as_str())));
                return Ok(());
            }
            Authentication::Bearer(TokenInput::Text(_)) => return Err(not_a_token()),
            Authentication::ApiKey(key) => return self.add_api_key(&key),
            Authentication::Basic { user, password } => {
                // The first colon ends the user (RFC 7617, section 2).
                if user.contains(|each: char| each == ':' || each.is_control()) {
                    return Err(InvalidCredentials::new("user", "must not hold a colon or control characters"));
                }
                if password.as_str().contains(char::is_control) {
                    return Err(InvalidCredentials::new("password", "must not hold control characters"));
                }
                self.headers.push((header::AUTHORIZATION, basic(&format!("{user}:{}", password.as_str()))));
                return Ok(());
            }
            Authentication::Bearer(TokenInput::File(path)) => TokenFetcher::File(path),
            Authentication::ClientCredentials(settings) => TokenFetcher::client_credentials(settings)?,
            Authentication::TokenExchange(settings) => TokenFetcher::token_exchange(settings)?,
        };
        self.token = Some(TokenCache::new(fetcher));
        Ok(())
    }

    fn add_api_key(&mut self, key: &ApiKey) -> Result<(), InvalidCredentials> {
        let value = key.value.as_str();
        if value.is_empty() || value.len() > MAX_LENGTH {
            return Err(InvalidCredentials::new("value", format!("must have 1 to {MAX_LENGTH} bytes")));
        }
        match key.place {
            ApiKeyPlace::Header => self.headers.push((header_name("name", &key.name)?, header_value("value", value)?)),
            ApiKeyPlace::Cookie => self.headers.push((header::COOKIE, cookie(&key.name, value)?)),
            ApiKeyPlace::Query if key.name.is_empty() => {
                return Err(InvalidCredentials::new("name", "must not be empty"));
            }
            ApiKeyPlace::Query => self.query = Some(SecretQuery::new(&*key.name, value)),
        }
        Ok(())
    }

    fn is_empty(&self) -> bool {
        self.headers.is_empty() && self.query.is_none() && self.token.is_none()
    }

    fn check_origin(&self, url: &str) -> Result<(), CredentialError> {
        let origin = Origin::parse(url).map_err(CredentialError::Url)?;
        if self.origins.contains(&origin) {
            return Ok(());
        }
        let known: Vec<String> = self.origins.iter().map(Origin::to_string).collect();
        let known = if known.is_empty() { "no server".to_owned() } else { known.join(" and ") };
        Err(CredentialError::OtherOrigin { origin: origin.to_string(), known })
    }
}

fn bearer(token: &str) -> HeaderValue {
    let mut value = HeaderValue::try_from(format!("Bearer {token}")).expect("a token is visible ASCII");
    value.set_sensitive(true);
    value
}

/// Shows who may see the credentials and of what kind they are.
impl fmt::Debug for UpstreamCredentials {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Credentials { origins, headers, query, token } = &*self.0;
        out.debug_struct("UpstreamCredentials")
            .field("origins", &origins.iter().map(Origin::to_string).collect::<Vec<_>>())
            .field("headers", &headers.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>())
            .field("query", query)
            .field("token", &token.as_ref().map(|cache| cache.source()))
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_is_masked_where_it_is_repeated() {
        let key = |place, name: &str| {
            Authentication::ApiKey(ApiKey { place, name: name.to_owned(), value: Secret::new("geheim-1234") })
        };
        let basic = Authentication::Basic { user: "ann".to_owned(), password: Secret::new("geheim-1234") };
        for (authentication, said, expected) in [
            (Authentication::None, "geheim-1234", "geheim-1234"),
            (Authentication::Bearer(TokenInput::Text(Secret::new("geheim-1234"))), "no geheim-1234!", "no ***!"),
            (
                Authentication::Bearer(TokenInput::Text(Secret::new("geheim-1234"))),
                "authorization: Bearer geheim-1234",
                "authorization: ***",
            ),
            (key(ApiKeyPlace::Header, "api-key"), "no geheim-1234!", "no ***!"),
            (key(ApiKeyPlace::Cookie, "session"), "no geheim-1234!", "no ***!"),
            (key(ApiKeyPlace::Query, "key"), "no ?key=geheim-1234!", "no ?key=***!"),
            (basic, "no YW5uOmdlaGVpbS0xMjM0!", "no ***!"),
        ] {
            let headers = vec![("x-team".to_owned(), Secret::new("red"))];
            let settings = CredentialSettings { authentication, headers };
            let credentials = UpstreamCredentials::new(settings, &["https://a.example"]).unwrap();
            assert_eq!(credentials.mask(said), expected);
            assert_eq!(credentials.mask("tired of red tape"), "tired of red tape", "short values are words");
        }
    }
}
