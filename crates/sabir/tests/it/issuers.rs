//! Callers with tokens of a real OpenID provider, which rotates its keys and goes away.

use std::time::{SystemTime, UNIX_EPOCH};

use sabir_testkit::oidc_keys::IssuerKey;
use sabir_testkit::oidc_provider::{AUDIENCE, DISCOVERY, KEYS, OidcProvider, ProviderAnswer, ServedProvider};
use serde_json::{Value, json};

use crate::server_fixture::{ServerFixture, v03_message};

fn server(provider: &OidcProvider) -> ServerFixture {
    ServerFixture::configured(&format!(
        "[[agent]]\nid = 'demo'\nkind = 'demo'\n[[auth.issuer]]\nissuer = '{}'\naudience = '{AUDIENCE}'\n",
        provider.issuer
    ))
}

fn now() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() as i64
}

/// The status of a send with this token, and the body.
fn send(server: &ServerFixture, token: &str) -> (u16, Value) {
    let authorization = format!("Bearer {token}");
    let headers: &[(&str, &str)] = if token.is_empty() { &[] } else { &[("Authorization", &authorization)] };
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": v03_message("echo hi")});
    let reply = server.ask("POST", "/a2a/jsonrpc", headers, &body);
    (reply.status, reply.json())
}

#[test]
fn a_token_opens_the_server_and_a_forged_one_does_not() {
    let served = ServedProvider::start();
    let provider = &served.provider;
    let server = server(provider);
    let with = |member: &str, value: Value| {
        let mut claims = provider.claims("alice", now());
        claims[member] = value;
        provider.key().token(&claims)
    };
    let forged = IssuerKey::generate("first", "ES256").token(&provider.claims("alice", now()));
    for (what, token, status) in [
        ("nothing", String::new(), 401),
        ("good", with("jti", json!("1")), 200),
        ("the same again", with("jti", json!("1")), 200),
        ("forged", forged, 401),
        ("expired", with("exp", json!(now() - 3600)), 401),
        ("for another", with("aud", json!("other")), 401),
    ] {
        let (found, body) = send(&server, &token);
        assert_eq!(found, status, "{what}: {body}");
    }
    // What one caller has, another one does not see.
    let (_, sent) = send(&server, &with("jti", json!("2")));
    let task = json!({"jsonrpc": "2.0", "id": 1, "method": "tasks/get", "params": {"id": sent["result"]["id"]}});
    for (subject, path) in [("alice", "/result/id"), ("bob", "/error/code")] {
        let authorization = format!("Bearer {}", with("sub", json!(subject)));
        let reply = server.ask("POST", "/a2a/jsonrpc", &[("Authorization", &authorization)], &task).json();
        assert!(reply.pointer(path).is_some(), "{subject}: {reply}");
    }
    let metadata = server.get("/.well-known/oauth-protected-resource").json();
    assert_eq!(metadata["authorization_servers"], json!([provider.issuer]));
    let card = server.get("/.well-known/agent-card.json").json();
    assert!(card.to_string().contains(&format!("{}{DISCOVERY}", provider.issuer)), "{card}");
}

#[test]
fn a_server_whose_issuer_is_down_starts_and_asks_callers_to_come_again() {
    let served = ServedProvider::start();
    let provider = &served.provider;
    provider.fail(KEYS, ProviderAnswer::Status(500));
    let server = server(provider);
    let token = provider.key().token(&provider.claims("alice", now()));
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": v03_message("echo hi")});
    let reply = server.ask("POST", "/a2a/jsonrpc", &[("Authorization", &format!("Bearer {token}"))], &body);
    assert_eq!(reply.status, 503, "{}", reply.text());
    assert!(reply.header("retry-after").is_some());
}
