//! Discovery: where the document is looked for, and what is believed of it.

use sabir_testkit::oidc_provider::{DISCOVERY, KEYS};

use super::discovery::{Discovered, locations};
use super::*;

#[test]
fn where_an_issuer_describes_itself() {
    for (issuer, expected) in [
        (
            "https://a.example",
            &[
                "https://a.example/.well-known/openid-configuration",
                "https://a.example/.well-known/oauth-authorization-server",
            ][..],
        ),
        (
            "https://a.example/",
            &[
                "https://a.example/.well-known/openid-configuration",
                "https://a.example/.well-known/oauth-authorization-server",
            ],
        ),
        (
            "https://a.example:8443/realms/x",
            &[
                "https://a.example:8443/realms/x/.well-known/openid-configuration",
                "https://a.example:8443/.well-known/oauth-authorization-server/realms/x",
                "https://a.example:8443/.well-known/openid-configuration/realms/x",
            ],
        ),
    ] {
        assert_eq!(locations(issuer), expected, "{issuer}");
    }
}

#[test]
fn what_is_believed_of_a_discovery_document() {
    let other = "the discovery document is of another issuer than the configured one";
    let no_https = "the jwks_uri of the discovery document is not an https address";
    let (https, http) = ("https://a.example", "http://127.0.0.1:8080");
    for (issuer, document, expected) in [
        (https, json!({"issuer": https, "jwks_uri": "https://b.example/k"}), "https://b.example/k"),
        (https, json!({"issuer": https}), "the discovery document has no jwks_uri"),
        (https, json!({"jwks_uri": "https://a.example/k"}), other),
        (https, json!({"issuer": "https://a.example/", "jwks_uri": "https://a.example/k"}), other),
        (https, json!({"issuer": https, "jwks_uri": "http://a.example/k"}), no_https),
        (https, json!({"issuer": https, "jwks_uri": "http://127.0.0.1/k"}), no_https),
        (https, json!({"issuer": https, "jwks_uri": "file:///etc/passwd"}), no_https),
        (https, json!({"issuer": https, "jwks_uri": "https://a.example/k\r\nX: y"}), no_https),
        (https, json!({"issuer": https, "jwks_uri": 7}), "the discovery document has members of other types"),
        (http, json!({"issuer": http, "jwks_uri": "http://127.0.0.1:8080/k"}), "http://127.0.0.1:8080/k"),
        (http, json!({"issuer": http, "jwks_uri": "http://localhost:9/k"}), "http://localhost:9/k"),
        (http, json!({"issuer": http, "jwks_uri": "http://[::1]:9/k"}), "http://[::1]:9/k"),
        (http, json!({"issuer": http, "jwks_uri": "http://127.0.0.1.evil.example/k"}), no_https),
        (http, json!({"issuer": http, "jwks_uri": "http://10.0.0.1/k"}), no_https),
        (http, json!([]), "the discovery document is not a JSON object"),
    ] {
        let outcome = Discovered::parse(document.to_string().as_bytes(), issuer);
        let outcome = outcome.as_ref().map_or_else(|words| *words, |found| &found.jwks_uri);
        assert_eq!(outcome, expected, "{issuer} {document}");
    }
    let twice = format!(r#"{{"issuer": "{https}", "jwks_uri": "https://a/", "jwks_uri": "https://b/"}}"#);
    assert!(Discovered::parse(twice.as_bytes(), https).is_err());
}

#[tokio::test]
async fn cards_get_what_discovery_says() {
    let fixture = Fixture::new();
    assert_eq!(fixture.verifier.metadata(), None);
    assert_eq!(fixture.say(&fixture.token()).await, ALICE);
    let expected = IssuerMetadata {
        authorization_endpoint: Some(format!("{ISSUER}/authorize")),
        token_endpoint: Some(format!("{ISSUER}/token")),
        device_authorization_endpoint: None,
        scopes: ["openid", "run", "read"].map(str::to_owned).to_vec(),
    };
    assert_eq!(fixture.verifier.metadata().as_deref(), Some(&expected));

    let document = json!({
        "issuer": ISSUER,
        "jwks_uri": format!("{ISSUER}/keys"),
        "authorization_endpoint": "javascript:alert(1)",
        "token_endpoint": "https://a b",
        "scopes_supported": ["good", "two words", "", "x\"y"],
    });
    let found = Discovered::parse(document.to_string().as_bytes(), ISSUER).unwrap().metadata;
    assert_eq!(found, IssuerMetadata { scopes: vec!["good".to_owned()], ..IssuerMetadata::default() });
}

#[tokio::test]
async fn the_place_of_rfc_8414_will_do() {
    let fixture = Fixture::new();
    let document = fixture.provider.discovery().to_string();
    fixture.provider.fail(DISCOVERY, ProviderAnswer::Status(404));
    fixture.provider.fail("/.well-known/oauth-authorization-server", ProviderAnswer::Document(document));
    assert_eq!(fixture.say(&fixture.token()).await, ALICE);
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_lies_about_its_name_gives_no_keys() {
    let fixture = Fixture::new();
    let lie = changed(fixture.provider.discovery(), &json!({"issuer": "https://other.example.com"}));
    fixture.provider.fail(DISCOVERY, ProviderAnswer::Document(lie.to_string()));
    assert_eq!(fixture.say(&fixture.token()).await, "no keys, 5 s");
    assert_eq!(fixture.provider.requests(KEYS), 0);
}

#[tokio::test]
async fn an_address_of_keys_makes_discovery_unnecessary() {
    let fixture = Fixture::with(|settings| JwtSettings { jwks_url: Some(format!("{ISSUER}{KEYS}")), ..settings });
    assert_eq!(fixture.say(&fixture.token()).await, ALICE);
    assert_eq!(fixture.provider.requests(DISCOVERY), 0);
    assert_eq!(fixture.verifier.metadata(), None);
}
