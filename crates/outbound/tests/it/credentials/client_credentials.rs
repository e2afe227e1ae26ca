//! OAuth 2 client credentials: one fetch for all, and a new one when the token is near its end or refused.

use bytes::Bytes;
use futures_util::future::{join, join_all};
use http::StatusCode;
use sabir_outbound::client::{Request, Roots};
use sabir_outbound::credentials::{
    Authentication, ClientAuthentication, ClientCredentials, CredentialError, OauthClient, RequestedAccess, Secret,
    TokenEndpoint, UpstreamCredentials,
};
use sabir_testkit::certificates::{Authority, Wanted};
use sabir_testkit::oidc_provider::{CLIENT, ServedProvider, TOKENS};
use tokio::io::AsyncWriteExt;

use super::fixture::{Endpoint, credentials, response, settings, shown, shown_after, shown_text};
use crate::mutual_tls::{demanding_host, identity, roots};
use crate::support::{LONG, Names, Receiver, client, loopback_allowed};

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}

#[tokio::test]
async fn the_endpoint_sees_a_form() {
    let basic = ClientAuthentication::SecretBasic(Secret::new("ge:heim"));
    let post = ClientAuthentication::SecretPost(Secret::new("ge:heim"));
    let access = RequestedAccess {
        scopes: words(&["run", "read"]),
        audiences: words(&["agents"]),
        resources: words(&["https://upstream.example/"]),
    };
    let asked =
        "grant_type=client_credentials&audience=agents&resource=https%3A%2F%2Fupstream.example%2F&scope=run%20read";
    for (authentication, access, body, authorization) in [
        // `sabir:ge%3Aheim`
        (basic, RequestedAccess::default(), "grant_type=client_credentials".to_owned(), "Basic c2FiaXI6Z2UlM0FoZWlt"),
        (post, access, format!("{asked}&client_id=sabir&client_secret=ge%3Aheim"), "-"),
        (
            ClientAuthentication::IdOnly,
            RequestedAccess::default(),
            "grant_type=client_credentials&client_id=sabir".to_owned(),
            "-",
        ),
    ] {
        let endpoint = Endpoint::issuing(3600).await;
        let credentials = credentials(Authentication::ClientCredentials(ClientCredentials {
            endpoint: TokenEndpoint::new(&format!("{}?code=1", endpoint.url())),
            client: OauthClient { id: "sabir".to_owned(), authentication },
            access,
        }));
        assert_eq!(shown_text(&credentials).await, "Bearer t1");
        let request = endpoint.receiver.requests().remove(0);
        let (head, sent) = request.split_once("\r\n\r\n").unwrap();
        assert_eq!(sent, body);
        assert!(head.starts_with("POST /token?code=1 HTTP/1.1\r\n"), "{head}");
        assert!(head.contains("\r\ncontent-type: application/x-www-form-urlencoded\r\n"), "{head}");
        assert!(head.contains("\r\naccept: application/json\r\n"), "{head}");
        let shown = head.lines().find_map(|line| line.strip_prefix("authorization: "));
        assert_eq!(shown.unwrap_or("-"), authorization);
    }
}

#[tokio::test]
async fn a_real_issuer_gives_a_token() {
    let served = ServedProvider::start();
    let credentials = credentials(Authentication::ClientCredentials(ClientCredentials {
        endpoint: TokenEndpoint::new(&format!("{}{TOKENS}", served.provider.issuer)),
        client: OauthClient {
            id: CLIENT.0.to_owned(),
            authentication: ClientAuthentication::SecretPost(Secret::new(CLIENT.1)),
        },
        access: RequestedAccess { scopes: words(&["run"]), ..RequestedAccess::default() },
    }));
    assert_eq!(shown_text(&credentials).await.matches('.').count(), 2, "a JWT");
}

#[tokio::test]
async fn all_who_wait_share_one_fetch() {
    let endpoint = Endpoint::issuing_later(3600).await;
    let credentials = endpoint.credentials();
    let clones: Vec<UpstreamCredentials> = (0..50).map(|_| credentials.clone()).collect();
    // All of them are waiting when the first request has come.
    let (shown, ()) = join(join_all(clones.iter().map(shown_text)), async {
        while endpoint.requests() == 0 {
            tokio::task::yield_now().await;
        }
        endpoint.open();
    })
    .await;
    assert_eq!(shown, vec!["Bearer t1"; 50]);
    assert_eq!(shown_text(&credentials).await, "Bearer t1");
    assert_eq!(endpoint.requests(), 1);
}

#[tokio::test]
async fn a_request_that_is_given_up_does_not_end_the_fetch() {
    let endpoint = Endpoint::issuing_later(3600).await;
    let credentials = endpoint.credentials();
    let first = tokio::spawn({
        let credentials = credentials.clone();
        async move { shown_text(&credentials).await }
    });
    while endpoint.requests() == 0 {
        tokio::task::yield_now().await;
    }
    first.abort();
    assert!(first.await.unwrap_err().is_cancelled());
    endpoint.open();
    assert_eq!(shown_text(&credentials).await, "Bearer t1");
    assert_eq!(endpoint.requests(), 1);
}

#[tokio::test]
async fn a_token_near_its_end_is_replaced() {
    let endpoint = Endpoint::issuing(1).await;
    let credentials = endpoint.credentials();
    assert_eq!(shown_text(&credentials).await, "Bearer t1");
    assert_eq!(shown_after(&credentials, "Bearer t1").await, "Bearer t2");
    // A token without a life is shown to those who waited for it, and to nobody else.
    let endpoint = Endpoint::issuing(0).await;
    let credentials = endpoint.credentials();
    for expected in ["Bearer t1", "Bearer t2", "Bearer t3"] {
        assert_eq!(shown_text(&credentials).await, expected);
    }
}

#[tokio::test]
async fn a_refused_token_is_replaced() {
    let upstream = Receiver::behaving("127.0.0.1:0", |mut stream, request| async move {
        let status = if request.contains("authorization: Bearer t2\r\n") { 200 } else { 401 };
        let _ = stream.write_all(response(status, "{}").as_bytes()).await;
        let _ = stream.shutdown().await;
    })
    .await;
    let endpoint = Endpoint::issuing(3600).await;
    let url = format!("http://{}/", upstream.address);
    let settings = settings(
        Authentication::ClientCredentials(ClientCredentials {
            endpoint: TokenEndpoint::new(&endpoint.url()),
            client: OauthClient::new("sabir", "geheim"),
            access: RequestedAccess::default(),
        }),
        &[],
    );
    let credentials = UpstreamCredentials::new(settings, &[&url]).unwrap();
    let client = client(loopback_allowed(), Names::new());
    let call = async || {
        let mut request = Request::post(&url, http::HeaderMap::new(), Bytes::from_static(b"{}"), LONG);
        let shown = credentials.authorize(&mut request).await.unwrap();
        (client.send(request).await.unwrap().status, shown)
    };
    // Two requests at the same time are shown the first token.
    let ((one, shown_one), (two, shown_two)) = join(call(), call()).await;
    assert_eq!((one, two), (StatusCode::UNAUTHORIZED, StatusCode::UNAUTHORIZED));
    assert!(credentials.forget(shown_one));
    let (status, shown) = call().await;
    assert_eq!(status, StatusCode::OK);
    // Who hears late of the refusal of the first one does not cost the second one.
    assert!(credentials.forget(shown_two));
    assert_eq!((call().await.0, endpoint.requests()), (StatusCode::OK, 2));
    // An upstream that refuses this one as well does not get a third one at once.
    assert!(!credentials.forget(shown));
    assert_eq!((call().await.0, endpoint.requests()), (StatusCode::OK, 2));
}

#[tokio::test]
async fn an_endpoint_may_demand_a_certificate() {
    let authority = Authority::new("authority");
    let identity = identity(&authority.issue(&Wanted::client(&[])));
    let versions = [&rustls::version::TLS13];
    let endpoint = demanding_host(&authority, &versions, &["h2"], r#"{"access_token":"t1"}"#).await;
    let credentials = |roots, identity| {
        credentials(Authentication::ClientCredentials(ClientCredentials {
            endpoint: TokenEndpoint { url: format!("https://127.0.0.1:{}/token", endpoint.port()), roots, identity },
            client: OauthClient { id: "sabir".to_owned(), authentication: ClientAuthentication::IdOnly },
            access: RequestedAccess::default(),
        }))
    };
    assert_eq!(shown_text(&credentials(roots(&authority), Some(identity.clone()))).await, "Bearer t1");
    for (roots, identity) in [(roots(&authority), None), (Roots::default(), Some(identity))] {
        let error = shown(&credentials(roots, identity)).await.unwrap_err();
        assert!(matches!(error, CredentialError::Dial { .. }), "{error}");
    }
}
