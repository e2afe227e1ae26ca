//! Credentials that do not change: what the upstream sees, and what cannot be sent.

use sabir_outbound::client::Request;
use sabir_outbound::credentials::{
    ApiKey, ApiKeyPlace, Authentication, ClientAuthentication, ClientCredentials, OauthClient, RequestedAccess, Secret,
    TokenEndpoint, TokenExchange, TokenInput, UpstreamCredentials,
};

use super::fixture::{UPSTREAM, settings};
use crate::support::{LONG, Names, Receiver, client, closing, loopback_allowed, ok};

pub fn bearer(token: &str) -> Authentication {
    Authentication::Bearer(TokenInput::Text(Secret::new(token)))
}

pub fn api_key(place: ApiKeyPlace, name: &str, value: &str) -> Authentication {
    Authentication::ApiKey(ApiKey { place, name: name.to_owned(), value: Secret::new(value) })
}

pub fn basic(user: &str, password: &str) -> Authentication {
    Authentication::Basic { user: user.to_owned(), password: Secret::new(password) }
}

#[tokio::test]
async fn an_upstream_sees_what_it_wants() {
    let extra: &[(&str, &str)] = &[("X-Tenant", "geheim 2"), ("x-team", "geheim 3")];
    for (authentication, headers, expected) in [
        (Authentication::None, &[][..], &["GET /a2a?x=1 HTTP/1.1"][..]),
        (Authentication::None, extra, &["x-tenant: geheim 2", "x-team: geheim 3"]),
        (bearer("geheim"), &[], &["GET /a2a?x=1 HTTP/1.1", "authorization: Bearer geheim"]),
        (bearer("geheim"), extra, &["authorization: Bearer geheim", "x-tenant: geheim 2", "x-team: geheim 3"]),
        (basic("ä", "geheim:ß"), &[], &["authorization: Basic w6Q6Z2VoZWltOsOf"]),
        (api_key(ApiKeyPlace::Header, "X-API-Key", "geheim"), &[], &["x-api-key: geheim"]),
        (api_key(ApiKeyPlace::Cookie, "session", "geheim"), &[], &["cookie: session=geheim"]),
        (api_key(ApiKeyPlace::Query, "the key", "geheim&"), extra, &["GET /a2a?x=1&the%20key=geheim%26 HTTP/1.1"]),
    ] {
        let upstream = Receiver::answering("127.0.0.1:0", closing(&ok("{}"))).await;
        let url = format!("http://{}/a2a?x=1", upstream.address);
        let what = format!("{authentication:?} {headers:?}");
        let credentials = UpstreamCredentials::new(settings(authentication, headers), &[&url]).unwrap();
        let mut request = Request::get(&url, LONG);
        // As it is before a second try.
        for _ in 0..2 {
            let shown = credentials.authorize(&mut request).await.unwrap();
            assert!(!credentials.forget(shown), "there is no other one: {what}");
        }
        assert_eq!(request.url, url, "errors show the URL: {what}");
        client(loopback_allowed(), Names::new()).send(request).await.unwrap();
        let seen = upstream.requests().remove(0);
        for line in expected {
            assert_eq!(seen.lines().filter(|seen| seen == line).count(), 1, "{line} in {seen}");
        }
    }
}

#[tokio::test]
async fn another_origin_sees_nothing() {
    let upstreams = ["https://a.example/a2a", "http://b.example:8080"];
    let credentials = UpstreamCredentials::new(settings(bearer("geheim"), &[]), &upstreams).unwrap();
    let none = UpstreamCredentials::none();
    let both = "the credentials are for https://a.example and http://b.example:8080, not for ";
    for (url, expected) in [
        ("https://A.example:443/elsewhere?x", "authorized".to_owned()),
        ("http://b.example:8080/", "authorized".to_owned()),
        ("http://a.example/a2a", format!("{both}http://a.example")),
        ("https://a.example:8443/", format!("{both}https://a.example:8443")),
        ("https://sub.a.example/?key=x", format!("{both}https://sub.a.example")),
        ("http://b.example/", format!("{both}http://b.example")),
        ("a.example", "the URL of the request cannot be used: the URL must begin with http:// or https://".to_owned()),
    ] {
        let mut request = Request::get(url, LONG);
        let outcome = credentials.authorize(&mut request).await;
        assert_eq!(outcome.map_or_else(|error| error.to_string(), |_| "authorized".to_owned()), expected, "{url}");
        assert_eq!(request.headers.len(), usize::from(expected == "authorized"), "{url}");
        assert!(none.authorize(&mut request).await.is_ok(), "{url}");
    }
    let credentials = UpstreamCredentials::new(settings(bearer("geheim"), &[]), &[]).unwrap();
    let error = credentials.authorize(&mut Request::get(UPSTREAM, LONG)).await.unwrap_err();
    assert_eq!(error.to_string(), "the credentials are for no server, not for https://upstream.example");
}

#[test]
fn settings_that_cannot_be_used() {
    let (header, query, cookie) = (ApiKeyPlace::Header, ApiKeyPlace::Query, ApiKeyPlace::Cookie);
    let client_credentials = |url: &str, id: &str| {
        Authentication::ClientCredentials(ClientCredentials {
            endpoint: TokenEndpoint::new(url),
            client: OauthClient { id: id.to_owned(), authentication: ClientAuthentication::IdOnly },
            access: RequestedAccess::default(),
        })
    };
    let exchange = Authentication::TokenExchange(TokenExchange {
        endpoint: TokenEndpoint::new("https://issuer.example/token"),
        subject: TokenInput::Text(Secret::new("two geheim")),
        subject_token_type: None,
        requested_token_type: None,
        client: None,
        access: RequestedAccess::default(),
    });
    let long = "geheim".repeat(2000);
    for (authentication, headers, upstream, expected) in [
        (Authentication::None, &[][..], "upstream.example", "upstream the URL must begin with http:// or https://"),
        (bearer("Bearer geheim"), &[], UPSTREAM, "token must be the token alone"),
        (bearer(""), &[], UPSTREAM, "token must be the token alone"),
        (basic("a:b", "geheim"), &[], UPSTREAM, "user must not hold a colon"),
        (basic("a", "geheim\n"), &[], UPSTREAM, "password must not hold control characters"),
        (api_key(header, "a b", "geheim"), &[], UPSTREAM, "name `a b` is not the name of a header"),
        (api_key(header, "Host", "geheim"), &[], UPSTREAM, "name `Host` is a header that Sabir sets itself"),
        (api_key(header, "X-Key", "gehe\rim"), &[], UPSTREAM, "value must be 1 to 8192 printable"),
        (api_key(header, "X-Key", ""), &[], UPSTREAM, "value must have 1 to 8192 bytes"),
        (api_key(query, "", "geheim"), &[], UPSTREAM, "name must not be empty"),
        (api_key(query, "key", &long), &[], UPSTREAM, "value must have 1 to 8192 bytes"),
        (api_key(cookie, "a;b", "geheim"), &[], UPSTREAM, "name `a;b` is not the name of a cookie"),
        (api_key(cookie, "a", "geheim;"), &[], UPSTREAM, "value must be visible ASCII characters other than"),
        (client_credentials("issuer.example", "id"), &[], UPSTREAM, "token_url cannot be used: the URL must begin"),
        (
            client_credentials("https://u@issuer.example", "id"),
            &[],
            UPSTREAM,
            "token_url cannot be used: the URL must not",
        ),
        (client_credentials("https://issuer.example", ""), &[], UPSTREAM, "client_id must not be empty"),
        (exchange, &[], UPSTREAM, "token must be the token alone"),
        (Authentication::None, &[("a b", "geheim")], UPSTREAM, "headers `a b` is not the name of a header"),
        (Authentication::None, &[("x", "gehe\nim")], UPSTREAM, "headers must be 1 to 8192 printable"),
        (Authentication::None, &[("x", "geheim"), ("X", "geheim")], UPSTREAM, "headers set `x` twice"),
        (bearer("geheim"), &[("Authorization", "geheim")], UPSTREAM, "headers set `authorization` twice"),
        (
            client_credentials("https://issuer.example", "id"),
            &[("Authorization", "geheim")],
            UPSTREAM,
            "headers set `authorization` twice",
        ),
        (api_key(cookie, "a", "geheim"), &[("Cookie", "geheim")], UPSTREAM, "headers set `cookie` twice"),
    ] {
        let error = UpstreamCredentials::new(settings(authentication, headers), &[upstream]).expect_err(expected);
        assert!(error.to_string().starts_with(expected), "{expected}: {error}");
        assert!(!error.to_string().contains("geheim"), "{error}");
    }
}
