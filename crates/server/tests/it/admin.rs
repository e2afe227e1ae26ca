//! Admin calls about deliveries, and the keys that receivers verify webhooks with.

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use sabir_model::Timestamp;
use sabir_server::{AdminAccess, CorsSettings, HostCheck, ServerSettings, Service};
use sabir_store::{Failure, Outbox};
use serde_json::{Value, json};
use tower_service::Service as _;

use crate::webhooks::WithWebhooks;
use crate::{ask, serve, serve_with};

const TIME: &str = "2026-02-03T10:15:02.500Z";

fn failure(reason: &str) -> Failure {
    Failure { reason: reason.into(), time: Timestamp::parse(TIME).unwrap() }
}

/// A server with three webhooks, all with something to send.
async fn with_deliveries() -> WithWebhooks {
    let server = WithWebhooks::new().await;
    server.task("t").await;
    for id in ["a", "b", "c"] {
        let config = json!({"id": id, "url": "http://127.0.0.1:9/hook", "token": "secret"});
        server.rpc("tasks/pushNotificationConfig/set", json!({"taskId": "t", "pushNotificationConfig": config})).await;
    }
    server
}

fn ids(told: &Value) -> Vec<String> {
    let deliveries = told["deliveries"].as_array().unwrap_or_else(|| panic!("{told}"));
    deliveries.iter().map(|delivery| delivery["id"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn operators_see_and_change_deliveries() {
    let server = with_deliveries().await;
    let get = async |path: &str| server.ask("GET", &format!("/admin/v1/deliveries{path}"), &[], "").await.json();
    let all = ids(&get("").await);
    assert_eq!(all.len(), 3);
    assert!(all.iter().all(|id| id.starts_with('p')), "{all:?}");

    // Pages.
    let first = get("?state=pending&limit=2").await;
    assert_eq!(ids(&first), all[..2]);
    let second = get(&format!("?limit=2&after={}", first["after"])).await;
    assert_eq!((ids(&second), &second["after"]), (all[2..].to_vec(), &Value::Null));

    // One that fails, and one that is given up.
    let due = server.due().await;
    server.store.postpone(due[0].webhook, failure("503"), Timestamp::parse(TIME).unwrap()).await.unwrap();
    let failing = format!("p{}", due[0].webhook.0);
    let shown = get(&format!("/{failing}")).await;
    let expected = json!({
        "id": failing, "state": "pending", "task": "t", "taskNumber": due[0].task.0, "agent": "demo", "config": due[0].settings.id.as_str(),
        "url": "http://127.0.0.1:9/hook", "sent": due[0].sent, "attempts": 1, "reason": "503", "since": TIME, "next": TIME,
    });
    assert_eq!(shown, expected);
    let last = due[1].sent + 1;
    server.store.give_up(due[1].webhook, last, failure("410")).await.unwrap();
    let given_up = get("?state=given-up").await;
    let [id] = ids(&given_up).try_into().unwrap();
    assert_eq!(get(&format!("/{id}")).await, given_up["deliveries"][0]);
    for (member, expected) in [("state", json!("given-up")), ("event", json!(last)), ("reason", json!("410"))] {
        assert_eq!(given_up["deliveries"][0][member], expected, "{given_up}");
    }

    // Both are tried again, and dropped.
    for id in [&failing, &id] {
        let path = format!("/admin/v1/deliveries/{id}");
        let told = server.ask("POST", &format!("{path}/retry"), &[], "").await;
        assert_eq!((told.status, told.json()), (202, json!({"id": id})));
        assert_ne!(server.ask("GET", &path, &[], "").await.json()["next"], TIME);
        let told = server.ask("DELETE", &path, &[], "").await;
        assert_eq!((told.status, told.json()), (200, json!({"id": id})));
        for (verb, path) in [("GET", &path), ("DELETE", &path), ("POST", &format!("{path}/retry"))] {
            let told = server.ask(verb, path, &[], "").await;
            assert_eq!(told.status, 404, "{verb} {path}: {}", told.body);
            assert!(told.body.contains(&format!("there is no delivery {id}")), "{}", told.body);
        }
    }
    assert!(!get("").await.to_string().contains("secret"));
}

#[tokio::test]
async fn wrong_admin_calls_are_refused_plainly() {
    let server = with_deliveries().await;
    let huge = format!("/deliveries/p{}", "9".repeat(4000));
    for (verb, path, status, expected) in [
        ("GET", "", 404, "there is nothing at /admin/v1"),
        ("GET", "/", 404, "there is nothing at /admin/v1/"),
        ("GET", "/task", 404, "there is nothing at /admin/v1/task"),
        ("GET", "/tasks?stat=working", 400, "there is no parameter stat"),
        ("GET", "/deliveries/p1/retry/now", 404, "there is nothing at"),
        ("GET", "/deliveries?state=all", 400, "state must be pending or given-up"),
        ("GET", "/deliveries?limit=100000", 400, "limit must be between 1 and 1000"),
        ("GET", "/deliveries/p0", 404, "there is no delivery p0"),
        ("GET", "/deliveries/p99", 404, "there is no delivery p99"),
        ("GET", "/deliveries/x1", 404, "there is no delivery x1"),
        ("DELETE", "/deliveries/p9223372036854775807", 404, "there is no delivery"),
        ("POST", "/deliveries/d9223372036854775808/retry", 404, "there is no delivery"),
        ("GET", huge.as_str(), 404, "there is no delivery"),
        ("POST", "/deliveries", 405, "this path does not take POST"),
        ("PUT", "/deliveries/p1", 405, "this path does not take PUT"),
        ("GET", "/deliveries/p1/retry", 405, "this path does not take GET"),
    ] {
        let told = server.ask(verb, &format!("/admin/v1{path}"), &[("A2A-Version", "1.0")], "").await;
        let problem = told.json();
        assert_eq!((told.status, &problem["status"]), (status, &json!(status)), "{verb} {path}: {}", told.body);
        assert!(problem["detail"].as_str().unwrap().contains(expected), "{verb} {path}: {}", told.body);
        assert!(told.head.contains("content-type: application/problem+json"), "{}", told.head);
        assert!(told.body.len() < 1000, "{path}");
    }
    let without = serve().await;
    let told = ask(without.address, "GET", "/admin/v1/deliveries", &[], "").await;
    assert_eq!((told.status, &told.json()["detail"]), (404, &json!("this server offers no webhooks")));
}

#[tokio::test]
async fn admin_calls_are_for_programs_on_this_machine() {
    const PATH: &str = "/admin/v1/deliveries";
    let cors = CorsSettings { origins: vec!["https://app.example".into()] };
    let server = serve_with(|settings| ServerSettings { hosts: HostCheck::Names(Vec::new()), cors, ..settings }).await;
    for (headers, status, expected) in [
        (&[][..], 404, "no webhooks"),
        (&[("Origin", "http://localhost")], 404, "no webhooks"),
        (&[("Origin", "https://app.example")], 404, "no webhooks"),
        (&[("Origin", "https://evil.example")], 403, "pages of this origin may not call"),
        (&[("Origin", "null")], 403, "pages of this origin may not call"),
        (&[("Host", "evil.example")], 421, "server.allowed_hosts"),
        (&[("Host", "10.0.0.1")], 403, "must be sent to localhost"),
        (&[("X-Forwarded-For", "10.0.0.1")], 403, "x-forwarded-for"),
        (&[("X-Forwarded-Proto", "https")], 403, "x-forwarded-proto"),
        (&[("Forwarded", "for=10.0.0.1")], 403, "the header forwarded"),
        (&[("Via", "1.1 proxy")], 403, "the header via"),
        (&[("X-Real-IP", "127.0.0.1")], 403, "the header x-real-ip"),
    ] {
        let told = ask(server.address, "GET", PATH, headers, "").await;
        assert_eq!(told.status, status, "{headers:?}: {}", told.body);
        assert!(told.body.contains(expected), "{headers:?}: {}", told.body);
    }
    // That every page may call the agents does not open the store to every page.
    let cors = CorsSettings { origins: vec!["*".into(), "https://app.example".into()] };
    let server = serve_with(|settings| ServerSettings { hosts: HostCheck::Names(Vec::new()), cors, ..settings }).await;
    for (origin, status, expected) in [
        ("https://evil.example", 403, "only `*` in server.cors_origins"),
        ("null", 403, "only `*` in server.cors_origins"),
        ("https://app.example", 404, "no webhooks"),
        ("http://localhost", 404, "no webhooks"),
    ] {
        let told = ask(server.address, "GET", PATH, &[("Origin", origin)], "").await;
        assert_eq!(told.status, status, "{origin}: {}", told.body);
        assert!(told.body.contains(expected), "{origin}: {}", told.body);
    }
    for (admin, expected) in [
        (AdminAccess::RefusedForPublicUrl, "server.public_url"),
        (AdminAccess::RefusedForAllowOpen, "server.allow_open"),
    ] {
        let server = serve_with(|settings| ServerSettings { admin, ..settings }).await;
        for path in [PATH, "/admin/v1/nothing"] {
            let told = ask(server.address, "GET", path, &[], "").await;
            assert_eq!(told.status, 403, "{}", told.body);
            assert!(told.body.contains(expected), "{}", told.body);
        }
    }
    // A program that mounts this server has the connection, and nothing is known of its peer.
    let request = http::Request::get(format!("http://localhost{PATH}")).body(Full::<Bytes>::default()).unwrap();
    let response = Service::new(server.app.clone()).call(request).await.unwrap();
    assert_eq!(response.status(), 403);
    let body = response.into_body().collect().await.unwrap().to_bytes();
    assert!(String::from_utf8_lossy(&body).contains("only from the machine"));
}

#[tokio::test]
async fn the_keys_of_webhooks_are_served_where_there_are_some() {
    const PATH: &str = "/.well-known/jwks.json";
    let document = r#"{"keys":[]}"#;
    let signing = serve_with(|settings| ServerSettings { jwks: Some(document.into()), ..settings }).await;
    let told = ask(signing.address, "GET", PATH, &[], "").await;
    assert_eq!((told.status, told.body.as_str()), (200, document));
    assert!(told.head.contains("content-type: application/json"), "{}", told.head);
    assert!(told.head.contains("cache-control: public, max-age="), "{}", told.head);
    let told = ask(signing.address, "POST", PATH, &[], "{}").await;
    assert_eq!(told.status, 405);
    let plain = serve().await;
    assert_eq!(ask(plain.address, "GET", PATH, &[], "").await.status, 404);
}
