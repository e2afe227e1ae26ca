//! OAuth 2 token exchange.

use std::time::Instant;

use sabir_outbound::credentials::{
    Authentication, OauthClient, RequestedAccess, Secret, TokenEndpoint, TokenExchange, TokenInput,
};

use super::fixture::{Endpoint, credentials, shown, shown_text};
use crate::support::LONG;

fn exchange(endpoint: &Endpoint, subject: TokenInput) -> TokenExchange {
    TokenExchange {
        endpoint: TokenEndpoint::new(&endpoint.url()),
        subject,
        subject_token_type: None,
        requested_token_type: None,
        client: None,
        access: RequestedAccess::default(),
    }
}

#[tokio::test]
async fn the_endpoint_sees_the_subject_token() {
    let begin =
        "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Atoken-exchange&subject_token=a.b%2B&subject_token_type=";
    let urn = "urn%3Aietf%3Aparams%3Aoauth%3Atoken-type%3A";
    let text = || TokenInput::Text(Secret::new("a.b+"));
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    std::fs::write(&file, "a.b+\n").unwrap();
    let endpoint = Endpoint::issuing(3600).await;
    for (settings, expected, authorization) in [
        (exchange(&endpoint, text()), format!("{begin}{urn}jwt"), "-"),
        (exchange(&endpoint, TokenInput::File(file)), format!("{begin}{urn}jwt"), "-"),
        (
            TokenExchange {
                subject_token_type: Some("urn:ietf:params:oauth:token-type:access_token".to_owned()),
                requested_token_type: Some("urn:ietf:params:oauth:token-type:jwt".to_owned()),
                client: Some(OauthClient::new("sabir", "geheim")),
                access: RequestedAccess {
                    scopes: vec!["run".to_owned()],
                    audiences: vec!["agents".to_owned()],
                    resources: vec!["urn:agents".to_owned()],
                },
                ..exchange(&endpoint, text())
            },
            format!(
                "{begin}{urn}access_token&requested_token_type={urn}jwt&audience=agents&resource=urn%3Aagents&scope=run"
            ),
            "Basic c2FiaXI6Z2VoZWlt",
        ),
    ] {
        let before = endpoint.requests();
        let credentials = credentials(Authentication::TokenExchange(settings));
        assert!(shown_text(&credentials).await.starts_with("Bearer t"));
        assert!(shown_text(&credentials).await.starts_with("Bearer t"));
        assert_eq!(endpoint.requests(), before + 1);
        let request = endpoint.receiver.requests().remove(before);
        let (head, sent) = request.split_once("\r\n\r\n").unwrap();
        assert_eq!(sent, expected);
        let shown = head.lines().find_map(|line| line.strip_prefix("authorization: "));
        assert_eq!(shown.unwrap_or("-"), authorization);
    }
}

#[tokio::test]
async fn a_subject_token_that_was_rotated_is_used() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    std::fs::write(&file, "first").unwrap();
    let endpoint = Endpoint::issuing(0).await;
    let credentials = credentials(Authentication::TokenExchange(exchange(&endpoint, TokenInput::File(file.clone()))));
    shown(&credentials).await.unwrap();
    assert!(endpoint.receiver.requests()[0].contains("subject_token=first&"));
    std::fs::write(folder.path().join("new"), "second").unwrap();
    std::fs::rename(folder.path().join("new"), &file).unwrap();
    let deadline = Instant::now() + LONG;
    while !endpoint.receiver.requests().last().unwrap().contains("subject_token=second&") {
        assert!(Instant::now() < deadline, "the first one is still used");
        shown(&credentials).await.unwrap();
    }
}

#[tokio::test]
async fn a_subject_token_that_cannot_be_read_reaches_no_endpoint() {
    let endpoint = Endpoint::issuing(0).await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    let credentials = credentials(Authentication::TokenExchange(exchange(&endpoint, TokenInput::File(file.clone()))));
    let error = shown(&credentials).await.unwrap_err().to_string();
    assert_eq!(error, format!("the token file {} does not exist", file.display()));
    assert_eq!(endpoint.receiver.accepts(), 0);
}
