//! Callers that have to show a credential: what they are told without one, and what stays public.

use sabir_server::{ApiKey, AuthSettings, Credential, Digest, Grant, ServerSettings};
use serde_json::{Value, json};

use crate::{Served, Told, ask, serve_with};

const ALICE: (&str, &str) = ("Authorization", "Bearer token-of-alice");
const BOB: (&str, &str) = ("X-API-Key", "key-of-bob");
const ADMIN: (&str, &str) = ("Authorization", "Bearer token-of-ops");

fn credential(secret: &str, subject: &str, scopes: &[&str]) -> Credential {
    let scopes = scopes.iter().map(|scope| (*scope).to_owned()).collect();
    let grant = Grant { subject: subject.into(), tenant: String::new(), scopes };
    Credential { digest: Digest::of(secret.as_bytes()), grant }
}

async fn guarded() -> Served {
    let auth = AuthSettings {
        tokens: vec![credential("token-of-alice", "alice", &["run"]), credential("token-of-ops", "ops", &["admin"])],
        api_keys: vec![ApiKey { header: "x-api-key".into(), credential: credential("key-of-bob", "bob", &["run"]) }],
        ..AuthSettings::default()
    };
    serve_with(|settings| ServerSettings { auth, ..settings }).await
}

fn send(text: &str) -> String {
    json!({"jsonrpc": "2.0", "id": 7, "method": "message/send", "params": {"message": {
        "messageId": text, "role": "user", "parts": [{"kind": "text", "text": text}]}}})
    .to_string()
}

#[tokio::test]
async fn who_shows_nothing_is_told_so_in_the_shape_of_its_path() {
    let served = guarded().await;
    let v1 = [("A2A-Version", "1.0")];
    let wrong = [("Authorization", "Bearer nobody's")];
    for (verb, path, headers, body, at, expected) in [
        // JSON-RPC without a version is 0.3, and the body has not been read.
        ("POST", "/a2a/jsonrpc", &[][..], send("x"), "/error/code", json!(-32008)),
        ("POST", "/a2a/jsonrpc", &[], send("x"), "/id", Value::Null),
        ("POST", "/", &[], "no JSON at all".to_owned(), "/error/data/name", json!("AuthenticationRequired")),
        ("POST", "/a2a/jsonrpc", &wrong, send("x"), "/error/data/detail", json!("the bearer token is not known")),
        ("POST", "/a2a/v1", &[], send("x"), "/error/data/0/reason", json!("UNAUTHENTICATED")),
        ("POST", "/a2a/jsonrpc", &v1, send("x"), "/error/data/0/reason", json!("UNAUTHENTICATED")),
        ("GET", "/tasks/t", &v1, String::new(), "/error/details/0/reason", json!("UNAUTHENTICATED")),
        ("GET", "/tasks", &[], String::new(), "/type", json!("urn:a2a:error:unauthenticated")),
        ("POST", "/a2a/rest/v1/message:send", &[], "{}".to_owned(), "/code", json!(-32008)),
        ("POST", "/v1/a2a/agents/demo/message:send", &[], "{}".to_owned(), "", Value::Null),
        ("GET", "/v1/a2a/agents", &[], String::new(), "", Value::Null),
        ("GET", "/agents/demo/tasks", &[], String::new(), "/type", json!("urn:a2a:error:unauthenticated")),
        ("GET", "/agents/nobody/tasks", &[], String::new(), "/type", json!("urn:a2a:error:unauthenticated")),
        ("GET", "/nothing/here", &[], String::new(), "/type", json!("urn:a2a:error:unauthenticated")),
        ("GET", "/admin/v1/deliveries", &[], String::new(), "/type", json!("urn:a2a:error:unauthenticated")),
    ] {
        let told = ask(served.address, verb, path, headers, &body).await;
        assert_eq!(told.status, 401, "{verb} {path}: {}", told.body);
        assert!(told.head.contains("www-authenticate: bearer realm=\"sabir\""), "{path}: {}", told.head);
        assert!(told.head.contains("www-authenticate: apikey realm=\"sabir\", header=\"x-api-key\""), "{path}");
        let metadata = "resource_metadata=\"http://localhost/.well-known/oauth-protected-resource\"";
        assert!(told.head.contains(metadata), "{path}: {}", told.head);
        let is_wrong = headers == wrong;
        assert_eq!(told.head.contains("error=\"invalid_token\""), is_wrong, "{path}: {}", told.head);
        if at.is_empty() {
            assert!(told.body.contains("unauthorized: "), "{path}: {}", told.body);
        } else {
            assert_eq!(told.json().pointer(at), Some(&expected), "{verb} {path}: {}", told.body);
        }
    }
}

#[tokio::test]
async fn what_everybody_may_see_needs_no_credential() {
    let served = guarded().await;
    for path in [
        "/.well-known/agent-card.json",
        "/.well-known/agent.json",
        "/agents/demo/.well-known/agent-card.json",
        "/.well-known/oauth-protected-resource",
        "/healthz",
        "/health",
        "/readyz",
    ] {
        for headers in [&[][..], &[("Authorization", "Bearer nobody's")]] {
            assert_eq!(ask(served.address, "GET", path, headers, "").await.status, 200, "{path} {headers:?}");
        }
    }
    let metadata =
        ask(served.address, "GET", "/.well-known/oauth-protected-resource/a2a/jsonrpc", &[], "").await.json();
    assert_eq!(
        metadata,
        json!({"resource": "http://localhost/a2a/jsonrpc", "resource_name": "Sabir",
            "scopes_supported": ["run", "read", "approve", "admin", "metrics"], "bearer_methods_supported": ["header"]})
    );
    assert_eq!(ask(served.address, "POST", "/.well-known/oauth-protected-resource", &[], "{}").await.status, 405);
}

#[tokio::test]
async fn cards_say_what_is_asked_for() {
    let served = guarded().await;
    let card = ask(served.address, "GET", "/.well-known/agent-card.json", &[], "").await.json();
    assert_eq!(card["securitySchemes"]["bearer"]["type"], "http");
    assert_eq!(card["securitySchemes"]["bearer"]["httpAuthSecurityScheme"]["scheme"], "Bearer");
    assert_eq!(card["securitySchemes"]["apiKey"]["name"], "x-api-key");
    assert_eq!(card["security"], json!([{"bearer": []}, {"apiKey": []}]));
    assert_eq!(card["securityRequirements"], json!([{"schemes": {"bearer": {}}}, {"schemes": {"apiKey": {}}}]));
    assert_eq!(card["authentication"]["schemes"], json!(["Bearer"]));
    let open = crate::serve().await;
    let card = ask(open.address, "GET", "/.well-known/agent-card.json", &[], "").await.json();
    for key in ["securitySchemes", "security", "securityRequirements", "authentication"] {
        assert!(card.get(key).is_none(), "{key} on the card of a server that asks for nothing");
    }
    assert_eq!(ask(open.address, "GET", "/.well-known/oauth-protected-resource", &[], "").await.status, 404);
}

/// The id of the task that a send made.
fn task_of(told: &Told) -> String {
    assert_eq!(told.status, 200, "{}", told.body);
    told.json()["result"]["id"].as_str().unwrap_or_else(|| panic!("{}", told.body)).to_owned()
}

#[tokio::test]
async fn tasks_belong_to_who_sent_them() {
    let served = guarded().await;
    let of_alice = task_of(&ask(served.address, "POST", "/a2a/jsonrpc", &[ALICE], &send("a")).await);
    let of_bob = task_of(&ask(served.address, "POST", "/a2a/jsonrpc", &[BOB], &send("b")).await);
    for (who, task, status) in
        [(ALICE, &of_alice, 200), (ALICE, &of_bob, 404), (BOB, &of_bob, 200), (BOB, &of_alice, 404)]
    {
        let headers = [who, ("A2A-Version", "1.0")];
        let told = ask(served.address, "GET", &format!("/tasks/{task}"), &headers, "").await;
        assert_eq!(told.status, status, "{who:?} {task}: {}", told.body);
        assert!(told.head.contains("cache-control: no-store"), "no cache may show it to another: {}", told.head);
    }
}

#[tokio::test]
async fn admin_calls_need_the_scope() {
    let served = guarded().await;
    // Where callers have credentials, being on this machine is not enough.
    for (headers, status, detail) in [
        (&[][..], 401, "a credential is required"),
        (&[ALICE], 403, "the credential lacks the scope admin"),
        (&[ADMIN], 404, "this server offers no webhooks"),
        (&[ADMIN, ("X-Forwarded-For", "203.0.113.9")], 404, "this server offers no webhooks"),
        (&[ADMIN, ("Origin", "https://evil.example")], 403, "pages of this origin may not call"),
    ] {
        let told = ask(served.address, "GET", "/admin/v1/deliveries", headers, "").await;
        assert_eq!(told.status, status, "{headers:?}: {}", told.body);
        assert!(told.json()["detail"].as_str().unwrap().contains(detail), "{headers:?}: {}", told.body);
    }
}

#[tokio::test]
async fn the_extended_card_is_for_callers_with_a_credential() {
    let served = guarded().await;
    let rpc = |method: &str| json!({"jsonrpc": "2.0", "id": 1, "method": method}).to_string();
    let old = rpc("agent/getAuthenticatedExtendedCard");
    let new = rpc("GetExtendedAgentCard");
    for (verb, path, body, at) in [
        ("POST", "/a2a/jsonrpc", old.as_str(), "/result"),
        ("POST", "/a2a/jsonrpc", &new, "/result"),
        ("GET", "/extendedAgentCard", "", ""),
        ("GET", "/v1/card", "", ""),
        ("GET", "/agent/authenticatedExtendedCard", "", ""),
    ] {
        assert_eq!(ask(served.address, verb, path, &[], body).await.status, 401, "{path}");
        let told = ask(served.address, verb, path, &[ALICE], body).await;
        let card = told.json().pointer(at).cloned().unwrap_or_default();
        assert_eq!((told.status, card["name"].is_string()), (200, true), "{verb} {path} {body}: {}", told.body);
        assert!(card["securitySchemes"]["bearer"].is_object(), "{path}: {card}");
    }
    let card = ask(served.address, "GET", "/.well-known/agent-card.json", &[], "").await.json();
    assert_eq!(card["capabilities"]["extendedAgentCard"], true);
    assert_eq!(card["supportsAuthenticatedExtendedCard"], true);
}
