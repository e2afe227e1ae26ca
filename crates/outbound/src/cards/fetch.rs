//! Fetches a card and key sets.
//!
//! What the operator typed is trusted: host and port of the card's URL, and those of the key set that was named with it.
//! Redirects lead anywhere else only where the guard lets them. Key sets are never redirected.

use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, HeaderValue, StatusCode, header};
use sabir_model::{Card, Violation};
use sabir_wire::{LenientCard, read_card_leniently};

use crate::client::{Client, DialError, Limits, Request, Roots};
use crate::credentials::UpstreamCredentials;
use crate::guard::{EgressPolicy, Guard, Refusal, SystemResolver, Target};
use crate::jose::KeySet;

/// Where cards are, the newest place first; 0.1 and 0.2 have the second one.
const WELL_KNOWN: [&str; 2] = ["/.well-known/agent-card.json", "/.well-known/agent.json"];
/// A card or a key set that is larger is not read.
const LARGEST: usize = 1 << 20;
const REDIRECTS: u8 = 3;

/// A client for one card.
pub struct CardClient {
    client: Client,
    url: String,
    target: Target,
    timeout: Duration,
    /// What the server of the card is shown.
    headers: HeaderMap,
}

/// A card as it came.
#[derive(Debug, Clone)]
pub struct FetchedCard {
    /// Where it was asked for.
    pub url: String,
    pub text: String,
    pub card: Card,
    /// What is wrong with it, and was left out.
    pub faults: Vec<Violation>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CardError {
    #[error("cannot use the URL {url}: {refusal}")]
    Url { url: String, refusal: Refusal },
    #[error("cannot fetch {url}: {error}")]
    Dial { url: String, error: DialError },
    #[error("{url} answered {status}")]
    Status { url: String, status: StatusCode },
    #[error("there is no card at {0}")]
    NotFound(String),
    #[error("what {url} answered is no card: {why}")]
    NotACard { url: String, why: String },
}

impl CardClient {
    /// `url` is a server, or a card itself; `key_set` is one that the operator named. Each request may take `timeout`.
    pub fn new(url: &str, key_set: Option<&str>, timeout: Duration) -> Result<Self, CardError> {
        Self::with_headers(url, key_set, timeout, HeaderMap::new(), Roots::default())
    }

    /// The same for a server that wants to see credentials, or whose certificate an authority of the operator's has
    /// signed. Key sets are fetched without the headers.
    pub fn with_headers(
        url: &str,
        key_set: Option<&str>,
        timeout: Duration,
        headers: HeaderMap,
        roots: Roots,
    ) -> Result<Self, CardError> {
        let parse = |url: &str| Target::parse(url).map_err(|refusal| CardError::Url { url: url.to_owned(), refusal });
        let target = parse(url)?;
        let mut policy = EgressPolicy::default();
        policy.trust(target.host.clone(), target.port);
        if let Some(key_set) = key_set {
            let named = parse(key_set)?;
            policy.trust(named.host, named.port);
        }
        let guard = Guard::new(policy, Arc::new(SystemResolver::default()));
        let limits = Limits { body: LARGEST, ..Limits::default() };
        let client = Client::new(Arc::new(guard), limits, roots);
        Ok(CardClient { client, url: url.to_owned(), target, timeout, headers })
    }

    /// Where the card is, by what the operator typed.
    pub fn target(&self) -> &Target {
        &self.target
    }

    pub async fn card(&self) -> Result<FetchedCard, CardError> {
        fetch_card(&self.client, None, &self.url, self.headers.clone(), self.timeout).await
    }

    /// An error is a sentence about the key set.
    pub async fn key_set(&self, url: &str) -> Result<KeySet, String> {
        let answer = self.client.send(Request::get(url, self.timeout)).await;
        let response = answer.map_err(|error| format!("cannot fetch the key set {url}: {error}"))?;
        if response.status != StatusCode::OK {
            return Err(format!("the key set {url} answered {}", response.status));
        }
        KeySet::parse(&response.body).map_err(|why| format!("the key set {url} {why}"))
    }
}

/// Looks for a card at the places where servers have it. Credentials are shown to their own server alone.
pub async fn fetch_card(
    client: &Client,
    credentials: Option<&UpstreamCredentials>,
    url: &str,
    headers: HeaderMap,
    timeout: Duration,
) -> Result<FetchedCard, CardError> {
    let mut refusal = None;
    for place in places(url) {
        match card_at(client, credentials, place, headers.clone(), timeout).await {
            Err(CardError::Status { status: StatusCode::NOT_FOUND, .. }) => {}
            // Another place may still have it, but if none has, this is what to tell.
            Err(error @ (CardError::Status { .. } | CardError::NotACard { .. })) => {
                refusal.get_or_insert(error);
            }
            outcome => return outcome,
        }
    }
    Err(refusal.unwrap_or_else(|| CardError::NotFound(url.to_owned())))
}

async fn card_at(
    client: &Client,
    credentials: Option<&UpstreamCredentials>,
    url: String,
    headers: HeaderMap,
    timeout: Duration,
) -> Result<FetchedCard, CardError> {
    let mut request = Request::get(&url, timeout).following(REDIRECTS);
    request.headers = headers;
    request.headers.insert(header::ACCEPT, HeaderValue::from_static("application/json"));
    if let Some(credentials) = credentials {
        // Most cards are public. A server that asks for a credential there says so by its answer.
        let _ = credentials.authorize(&mut request).await;
    }
    let response = match client.send(request).await {
        Ok(response) => response,
        Err(error) => return Err(CardError::Dial { url, error }),
    };
    if response.status != StatusCode::OK {
        return Err(CardError::Status { url, status: response.status });
    }
    if response.body.len() > LARGEST {
        return Err(CardError::NotACard { url, why: format!("it is larger than {LARGEST} bytes") });
    }
    let text = sabir_wire::json::check_text(&response.body).map(|text| text.trim_start_matches('\u{feff}'));
    match text.and_then(|text| Ok((text.to_owned(), read_card_leniently(text, &server_of(&url))?))) {
        Ok((text, LenientCard { card, faults })) => Ok(FetchedCard { url, text, card, faults }),
        Err(error) => Err(CardError::NotACard { url, why: error.to_string() }),
    }
}

/// Where the card of this URL may be, most likely first. A URL that is not the root may be the address for calls, whose
/// server has its card at the root.
fn places(url: &str) -> Vec<String> {
    let path = url.split(['?', '#']).next().unwrap_or(url);
    if path.contains("/.well-known/") || path.ends_with(".json") {
        return vec![url.to_owned()];
    }
    let below = |base: &str| WELL_KNOWN.map(|place| format!("{}{place}", base.trim_end_matches('/')));
    let root = origin(path);
    let mut places: Vec<String> = below(path).into();
    if path.trim_end_matches('/') != root {
        places.extend(below(root));
    }
    places
}

/// `https://a.example` of `https://a.example/b/c`.
fn origin(url: &str) -> &str {
    let host = url.find("://").map_or(0, |at| at + 3);
    url[host..].find('/').map_or(url, |end| &url[..host + end])
}

/// What the card's URL says about the server: all before the well-known path.
fn server_of(card: &str) -> String {
    let path = card.split(['?', '#']).next().unwrap_or(card);
    let server = path.split("/.well-known/").next().unwrap_or(path);
    if server.ends_with(".json") { format!("{}/", origin(server)) } else { format!("{server}/") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_a_server_or_a_card() {
        for (url, expected) in [
            ("http://a", &["http://a/.well-known/agent-card.json", "http://a/.well-known/agent.json"][..]),
            (
                "http://a/x/?q",
                &[
                    "http://a/x/.well-known/agent-card.json",
                    "http://a/x/.well-known/agent.json",
                    "http://a/.well-known/agent-card.json",
                    "http://a/.well-known/agent.json",
                ],
            ),
            ("http://a/.well-known/agent.json", &["http://a/.well-known/agent.json"]),
            ("http://a/card.json?v=1", &["http://a/card.json?v=1"]),
        ] {
            assert_eq!(places(url), expected, "{url}");
        }
    }
}
