//! Fetches what issuers of tokens publish: discovery documents and keys.
//!
//! The operator wrote the address of the issuer, so its host and port may be anything, also on this machine. A discovery
//! document can name any other address for the keys; that one is dialled like a webhook, which means public addresses only.
//! Each issuer has a client of its own, so that one issuer's document cannot lead to a host that only another one excuses.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::StatusCode;
use sabir_outbound::{Client, EgressPolicy, Guard, Limits, Refusal, Request, Resolve, Roots, SystemResolver, Target};
use sabir_server::jwt::{DocumentFetcher, Issuers, JwtSettings, JwtVerifier};

/// For one document.
const TIME_LIMIT: Duration = Duration::from_secs(5);

const LARGEST_DOCUMENT: usize = 256 * 1024;

/// The verifiers of these issuers. Nothing is dialled yet.
pub fn issuers(settings: impl IntoIterator<Item = JwtSettings>) -> Result<Issuers, Refusal> {
    let verifier = |settings: JwtSettings| {
        let written = std::iter::once(settings.issuer.as_str()).chain(settings.jwks_url.as_deref());
        let fetcher = IdentityDocuments::new(written, Arc::new(SystemResolver::default()), TIME_LIMIT)?;
        Ok(JwtVerifier::new(settings, Arc::new(fetcher)))
    };
    settings.into_iter().map(verifier).collect::<Result<_, Refusal>>().map(Issuers::new)
}

/// The documents of one issuer.
pub struct IdentityDocuments {
    client: Client,
    time_limit: Duration,
}

impl IdentityDocuments {
    /// `written` are the addresses that the operator wrote.
    fn new<'a>(
        written: impl Iterator<Item = &'a str>,
        resolver: Arc<dyn Resolve>,
        time_limit: Duration,
    ) -> Result<Self, Refusal> {
        let mut policy = EgressPolicy::default();
        for url in written {
            let target = Target::parse(url)?;
            policy.trust(target.host, target.port);
        }
        let limits = Limits { body: LARGEST_DOCUMENT, connect_timeout: time_limit, ..Limits::default() };
        let client = Client::new(Arc::new(Guard::new(policy, resolver)), limits, Roots::default());
        Ok(IdentityDocuments { client, time_limit })
    }
}

impl DocumentFetcher for IdentityDocuments {
    fn fetch<'a>(&'a self, url: &'a str) -> BoxFuture<'a, Result<Bytes, String>> {
        Box::pin(async move {
            let response = self.client.send(Request::get(url, self.time_limit)).await;
            let response = response.map_err(|error| match error.detail() {
                Some(detail) => format!("{error} ({detail})"),
                None => error.to_string(),
            })?;
            match response.status {
                StatusCode::OK => Ok(response.body),
                status if status.is_redirection() => Err("it redirects, which is not followed".to_owned()),
                status => Err(format!("the response has the status {status}")),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::net::IpAddr;

    use http::HeaderMap;
    use sabir_testkit::oidc_provider::{AUDIENCE, CLIENT, DISCOVERY, KEYS, ProviderAnswer, ServedProvider, TOKENS};
    use serde_json::json;

    use super::*;

    /// Every name is this machine.
    struct Loopback;

    impl Resolve for Loopback {
        fn resolve<'a>(&'a self, _: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
            Box::pin(async { Ok(vec![IpAddr::from([127, 0, 0, 1])]) })
        }
    }

    fn documents(written: &[&str], time_limit: Duration) -> IdentityDocuments {
        IdentityDocuments::new(written.iter().copied(), Arc::new(Loopback), time_limit).unwrap()
    }

    #[tokio::test]
    async fn what_the_operator_wrote_is_dialled_and_the_rest_is_guarded() {
        let (issuer, elsewhere) = (ServedProvider::start(), ServedProvider::start());
        let (port, other) = (issuer.address.port(), elsewhere.address.port());
        let written = [issuer.provider.issuer.as_str(), &format!("http://keys.internal:{port}/keys")];
        let documents = documents(&written, TIME_LIMIT);
        let name = "the host name does not resolve to a public address";
        for (url, expected) in [
            (format!("http://127.0.0.1:{port}{KEYS}"), "document"),
            (format!("http://keys.internal:{port}{KEYS}"), "document"),
            (format!("http://127.0.0.1:{port}/nothing"), "the response has the status 404 Not Found"),
            (format!("http://127.0.0.1:{other}{KEYS}"), "the host is not a public address"),
            (format!("http://keys.internal:{other}{KEYS}"), name),
            (format!("http://other.internal:{port}{KEYS}"), name),
            ("http://169.254.169.254/latest".to_owned(), "the host is not a public address"),
            ("file:///etc/passwd".to_owned(), "the URL must begin with http:// or https://"),
        ] {
            let outcome = documents.fetch(&url).await.map_or_else(|words| words, |_| "document".to_owned());
            assert_eq!(outcome, expected, "{url}");
        }
        assert_eq!(elsewhere.provider.requests(KEYS), 0);
    }

    #[tokio::test]
    async fn documents_that_are_not_there_in_time_or_size_or_place() {
        let issuer = ServedProvider::start();
        let url = format!("{}{KEYS}", issuer.provider.issuer);
        for (answer, limit, expected) in [
            (ProviderAnswer::Status(500), TIME_LIMIT, "the response has the status 500 Internal Server Error"),
            (ProviderAnswer::Redirect(url.clone()), TIME_LIMIT, "it redirects, which is not followed"),
            (
                ProviderAnswer::Document("x".repeat(LARGEST_DOCUMENT + 1)),
                TIME_LIMIT,
                "the body of the response is larger than 262144 bytes",
            ),
            (ProviderAnswer::Hang, Duration::from_millis(100), "no response within the time limit"),
        ] {
            issuer.provider.fail(KEYS, answer);
            let documents = documents(&[&issuer.provider.issuer], limit);
            assert_eq!(documents.fetch(&url).await.unwrap_err(), expected);
        }
    }

    #[tokio::test]
    async fn a_token_of_a_real_provider_is_verified() {
        let served = ServedProvider::start();
        let provider = &served.provider;
        let issuers = issuers([JwtSettings::new(provider.issuer.clone(), AUDIENCE)]).unwrap();
        let (client, secret) = CLIENT;
        let form = format!("grant_type=client_credentials&client_id={client}&client_secret={secret}&scope=run+admin");
        let documents = documents(&[&provider.issuer], TIME_LIMIT);
        let url = format!("{}{TOKENS}", provider.issuer);
        let granted = documents.client.post(&url, HeaderMap::new(), form.into(), TIME_LIMIT).await.unwrap();
        let granted: serde_json::Value = serde_json::from_slice(&granted.body).unwrap();
        let verified = issuers.verify(granted["access_token"].as_str().unwrap()).await.unwrap();
        assert_eq!((verified.subject.as_str(), verified.scopes.join(" ").as_str()), (client, "admin run"));
        assert_eq!((provider.requests(DISCOVERY), provider.requests(KEYS)), (1, 1));
    }

    #[tokio::test]
    async fn a_discovery_document_cannot_lead_inside() {
        let (served, inside) = (ServedProvider::start(), ServedProvider::start());
        let provider = &served.provider;
        let mut document = provider.discovery();
        document["jwks_uri"] = json!(format!("{}{KEYS}", inside.provider.issuer));
        provider.fail(DISCOVERY, ProviderAnswer::Document(document.to_string()));
        let issuers = issuers([JwtSettings::new(provider.issuer.clone(), AUDIENCE)]).unwrap();
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs() as i64;
        let token = provider.key().token(&provider.claims("alice", now));
        assert!(issuers.verify(&token).await.unwrap_err().retry_after().is_some());
        assert_eq!((provider.requests(DISCOVERY), inside.provider.requests(KEYS)), (1, 0));
    }
}
