//! Where secrets must not appear: at other hosts, in `Debug`, in the log.

use std::fmt::{self, Write};
use std::sync::{Arc, Mutex};

use sabir_outbound::client::Request;
use sabir_outbound::credentials::{
    ApiKeyPlace, Authentication, ClientAuthentication, ClientCredentials, OauthClient, RequestedAccess, Secret,
    TokenEndpoint, TokenExchange, TokenInput, UpstreamCredentials,
};
use tracing::field::{Field, Visit};
use tracing::{Event, Metadata, Subscriber, span};

use super::fixed::{api_key, basic, bearer};
use super::fixture::{Endpoint, UPSTREAM, response, settings, shown};
use crate::support::{LONG, Names, Receiver, client, closing, loopback_allowed, ok};

/// Each kind, with secrets that contain `geheim` or are fetched from there.
fn every_kind(token_url: &str) -> Vec<Authentication> {
    let endpoint = || TokenEndpoint::new(&format!("{token_url}?code=geheim"));
    let post = ClientAuthentication::SecretPost(Secret::new("geheim"));
    vec![
        Authentication::None,
        bearer("geheim"),
        basic("user", "geheim"),
        api_key(ApiKeyPlace::Header, "x-key", "geheim"),
        api_key(ApiKeyPlace::Cookie, "key", "geheim"),
        api_key(ApiKeyPlace::Query, "key", "geheim"),
        Authentication::ClientCredentials(ClientCredentials {
            endpoint: endpoint(),
            client: OauthClient { id: "sabir".to_owned(), authentication: post },
            access: RequestedAccess::default(),
        }),
        Authentication::TokenExchange(TokenExchange {
            endpoint: endpoint(),
            subject: TokenInput::Text(Secret::new("geheim")),
            subject_token_type: None,
            requested_token_type: None,
            client: Some(OauthClient::new("sabir", "geheim")),
            access: RequestedAccess::default(),
        }),
    ]
}

const EXTRA: &[(&str, &str)] = &[("x-extra", "geheim")];

#[tokio::test]
async fn a_redirect_shows_them_to_nobody_else() {
    let endpoint = Endpoint::answering(200, r#"{"access_token":"geheim"}"#).await;
    for authentication in every_kind(&endpoint.url()) {
        let what = format!("{authentication:?}");
        let other = Receiver::answering("127.0.0.1:0", closing(&ok("other"))).await;
        let away = response(302, "").replacen("\r\n", &format!("\r\nlocation: http://{}/\r\n", other.address), 1);
        let upstream = Receiver::answering("127.0.0.1:0", away).await;
        let url = format!("http://{}/", upstream.address);
        let credentials = UpstreamCredentials::new(settings(authentication, EXTRA), &[&url]).unwrap();
        let mut request = Request::get(&url, LONG).following(3);
        credentials.authorize(&mut request).await.unwrap();
        let response = client(loopback_allowed(), Names::new()).send(request).await.unwrap();
        assert_eq!(response.body.as_ref(), b"other", "{what}");
        assert!(upstream.requests()[0].contains("geheim"), "{what}");
        let seen = other.requests().remove(0);
        assert!(!seen.contains("geheim") && !seen.contains("authorization"), "{what}: {seen}");
    }
}

#[test]
fn debug_shows_none() {
    for authentication in every_kind("https://issuer.example/token") {
        let settings = settings(authentication, EXTRA);
        let shown = format!("{settings:?}");
        assert!(!shown.contains("geheim"), "{shown}");
        let credentials = UpstreamCredentials::new(settings, &[UPSTREAM]).unwrap();
        let shown = format!("{credentials:?}");
        assert!(!shown.contains("geheim") && shown.contains("x-extra"), "{shown}");
    }
}

/// Collects every event as one line.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<String>>>);

impl Subscriber for Lines {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("sabir_outbound::credentials")
    }

    fn event(&self, event: &Event<'_>) {
        struct Text(String);

        impl Visit for Text {
            fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
                write!(self.0, " {}={value:?}", field.name()).unwrap();
            }
        }

        let mut text = Text(event.metadata().level().to_string());
        event.record(&mut text);
        self.0.lock().unwrap().push(text.0);
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}
}

#[tokio::test]
async fn the_log_has_one_line_of_a_failure_and_no_secret() {
    let lines = Lines::default();
    let _guard = tracing::subscriber::set_default(lines.clone());
    let answer = r#"{"error":"invalid_client","error_description":"geheim"}"#;
    let endpoint = Endpoint::answering(401, answer).await;
    for authentication in every_kind(&endpoint.url()).into_iter().skip(6) {
        let credentials = UpstreamCredentials::new(settings(authentication, &[]), &[UPSTREAM]).unwrap();
        for _ in 0..3 {
            assert!(shown(&credentials).await.is_err());
        }
    }
    let lines = lines.0.lock().unwrap().clone();
    let expected = format!(
        "WARN message=there is no token for an upstream source={url} reason=the token endpoint {url} issues no token: \
         invalid_client: *** (status 401)",
        url = endpoint.url()
    );
    assert_eq!(lines, [expected.clone(), expected]);
}
