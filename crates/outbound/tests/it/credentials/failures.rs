//! Endpoints that give no token.

use sabir_outbound::client::Request;
use sabir_outbound::credentials::{
    Authentication, ClientCredentials, CredentialError, OauthClient, RequestedAccess, TokenEndpoint,
};
use tokio::net::TcpListener;

use super::fixture::{Endpoint, UPSTREAM, credentials, shown};
use crate::support::SHORT;

#[tokio::test]
async fn an_endpoint_without_a_token() {
    let long = format!(r#"{{"error":"invalid_client","error_description":"{}"}}"#, "é".repeat(5000));
    let cut = format!("issues no token: invalid_client: {} (status 401)", "é".repeat(184));
    for (status, body, expected) in [
        (400, r#"{"error":"invalid_scope"}"#, "issues no token: invalid_scope (status 400)"),
        (
            401,
            r#"{"error":"invalid_client","error_description":"geheim\nis not the secret of c2FiaXI6Z2VoZWlt"}"#,
            "issues no token: invalid_client: *** is not the secret of *** (status 401)",
        ),
        (401, &long, &cut),
        (403, "geheim", "answered with an error that it does not explain (status 403)"),
        (200, "geheim", "answered with something that is not a JSON object (status 200)"),
        (200, r#"{"access_token":"ge\nheim"}"#, "answered with an access_token that no header can hold (status 200)"),
        (307, "", "answered with a redirect, which is not followed (status 307)"),
        (200, &"x".repeat(1 << 20), "cannot be asked: the body of the response is larger than 65536 bytes"),
    ] {
        let endpoint = Endpoint::answering(status, body).await;
        let credentials = endpoint.credentials();
        let words = format!("the token endpoint {} {expected}", endpoint.url());
        for _ in 0..3 {
            let mut request = Request::get(UPSTREAM, SHORT * 100);
            let error = credentials.authorize(&mut request).await.unwrap_err();
            assert_eq!(error.to_string(), words);
            assert!(!format!("{error:?}").contains("geheim"), "{error:?}");
            assert!(request.headers.is_empty());
        }
        assert_eq!(endpoint.requests(), 1, "the failure is remembered: {expected}");
    }
}

#[tokio::test]
async fn an_endpoint_that_is_not_there() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/token?code=geheim", listener.local_addr().unwrap());
    drop(listener);
    let credentials = credentials(Authentication::ClientCredentials(ClientCredentials {
        endpoint: TokenEndpoint::new(&url),
        client: OauthClient::new("sabir", "geheim"),
        access: RequestedAccess::default(),
    }));
    let error = shown(&credentials).await.unwrap_err();
    assert!(matches!(error, CredentialError::Dial { .. }), "{error:?}");
    let expected = format!("the token endpoint {} cannot be asked: ", url.split('?').next().unwrap());
    assert!(error.to_string().starts_with(&expected), "{error}");
    assert!(!format!("{error} {error:?} {credentials:?}").contains("geheim"), "{error:?} {credentials:?}");
}

#[tokio::test]
async fn a_request_waits_no_longer_than_it_may_take() {
    let endpoint = Endpoint::issuing_later(3600).await;
    let credentials = endpoint.credentials();
    let error = credentials.authorize(&mut Request::get(UPSTREAM, SHORT)).await.unwrap_err();
    assert_eq!(error, CredentialError::Timeout);
    // The fetch goes on, and the next request gets its token.
    endpoint.open();
    assert_eq!(shown(&credentials).await.unwrap().0, "Bearer t1");
    assert_eq!(endpoint.requests(), 1);
}
