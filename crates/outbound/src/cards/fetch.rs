//! Fetches a card and key sets.
//!
//! What the operator typed is trusted: host and port of the card's URL, and those of the key set that was named with it.
//! Redirects lead anywhere else only where the guard lets them. Key sets are never redirected.

use std::sync::Arc;
use std::time::Duration;

use http::{HeaderValue, StatusCode, header};
use sabir_model::Card;
use sabir_wire::read_card;

use crate::client::{Client, DialError, Limits, Request, Roots};
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
}

/// A card as it came.
#[derive(Debug, Clone)]
pub struct FetchedCard {
    /// Where it was asked for.
    pub url: String,
    pub text: String,
    pub card: Card,
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
        let client = Client::new(Arc::new(guard), limits, Roots::default());
        Ok(CardClient { client, url: url.to_owned(), target, timeout })
    }

    /// Where the card is, by what the operator typed.
    pub fn target(&self) -> &Target {
        &self.target
    }

    pub async fn card(&self) -> Result<FetchedCard, CardError> {
        let mut places = places(&self.url).into_iter().peekable();
        while let Some(url) = places.next() {
            match self.card_at(url).await {
                Err(CardError::Status { status: StatusCode::NOT_FOUND, .. }) if places.peek().is_some() => {}
                Err(CardError::Status { status: StatusCode::NOT_FOUND, .. }) => break,
                outcome => return outcome,
            }
        }
        Err(CardError::NotFound(self.url.clone()))
    }

    async fn card_at(&self, url: String) -> Result<FetchedCard, CardError> {
        let mut request = Request::get(&url, self.timeout).following(REDIRECTS);
        request.headers.insert(header::ACCEPT, HeaderValue::from_static("application/json"));
        let response = match self.client.send(request).await {
            Ok(response) => response,
            Err(error) => return Err(CardError::Dial { url, error }),
        };
        if response.status != StatusCode::OK {
            return Err(CardError::Status { url, status: response.status });
        }
        let text = sabir_wire::json::check_text(&response.body);
        match text.and_then(|text| Ok((text.to_owned(), read_card(text)?))) {
            Ok((text, card)) => Ok(FetchedCard { url, text, card }),
            Err(error) => Err(CardError::NotACard { url, why: error.to_string() }),
        }
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

/// Where the card of this URL may be, most likely first.
fn places(url: &str) -> Vec<String> {
    let path = url.split(['?', '#']).next().unwrap_or(url);
    if path.contains("/.well-known/") || path.ends_with(".json") {
        return vec![url.to_owned()];
    }
    WELL_KNOWN.iter().map(|place| format!("{}{place}", path.trim_end_matches('/'))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_a_server_or_a_card() {
        for (url, expected) in [
            ("http://a", &["http://a/.well-known/agent-card.json", "http://a/.well-known/agent.json"][..]),
            ("http://a/x/?q", &["http://a/x/.well-known/agent-card.json", "http://a/x/.well-known/agent.json"]),
            ("http://a/.well-known/agent.json", &["http://a/.well-known/agent.json"]),
            ("http://a/card.json?v=1", &["http://a/card.json?v=1"]),
        ] {
            assert_eq!(places(url), expected, "{url}");
        }
    }
}
