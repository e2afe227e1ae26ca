//! Webhooks are set, read and deleted in every dialect and binding, as the recorded exchanges have it.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http_body_util::{BodyExt, Full};
use sabir_engine::{AdmittedWebhook, Builder, WebhookPolicy, WebhookRefusal};
use sabir_model::{Caller, PushAuthentication, PushConfig, Timestamp};
use sabir_server::Service;
use sabir_store::{Due, MemoryStore, Outbox, WebhookEvents};
use serde_json::{Value, json};
use tower_service::Service as _;

use crate::{Served, Told, ask, serve, serve_engine};

/// Admits loopback and the receiver of the recorded exchanges, and stores secrets as they are.
struct Permissive;

impl WebhookPolicy for Permissive {
    fn admit<'a>(&'a self, config: &'a PushConfig) -> BoxFuture<'a, Result<AdmittedWebhook, WebhookRefusal>> {
        let known = ["http://127.0.0.1:9/", "https://client.example.com/"];
        let receiver = known.into_iter().find(|known| config.url.starts_with(known));
        let secrets = serde_json::to_vec(&(&config.token, &config.authentication)).unwrap();
        let admitted = receiver.map(|receiver| AdmittedWebhook { receiver: receiver.into(), secrets });
        let refused = || WebhookRefusal { field: "url".into(), reason: "is not a public address".into() };
        Box::pin(async move { admitted.ok_or_else(refused) })
    }

    fn schemes(&self, _url: &str, secrets: &[u8]) -> Vec<String> {
        let (_, authentication): (Option<String>, Option<PushAuthentication>) =
            serde_json::from_slice(secrets).unwrap();
        authentication.map(|authentication| authentication.schemes).unwrap_or_default()
    }
}

pub(crate) struct WithWebhooks {
    pub(crate) served: Served,
    pub(crate) store: Arc<MemoryStore>,
}

impl WithWebhooks {
    pub(crate) async fn new() -> Self {
        let store = Arc::new(MemoryStore::new());
        let builder = Builder::new(store.clone()).webhooks(Arc::new(Permissive), store.clone());
        Self { served: serve_engine(builder, |settings| settings).await, store }
    }

    /// Makes a finished task of this id.
    pub(crate) async fn task(&self, id: &str) {
        let params = json!({"id": id, "message": {"role": "user", "parts": [{"type": "text", "text": "hi"}]}});
        let told = self.rpc("tasks/send", params).await;
        assert_eq!(told["result"]["status"]["state"], "completed", "{told}");
    }

    pub(crate) async fn rpc(&self, method: &str, params: Value) -> Value {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
        self.ask("POST", "/a2a", &[], &body).await.json()
    }

    pub(crate) async fn ask(&self, verb: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Told {
        ask(self.served.address, verb, path, headers, body).await
    }

    /// What is to be sent to the receiver on loopback.
    pub(crate) async fn due(&self) -> Vec<Due> {
        let far = Timestamp::from_millis(4_000_000_000_000);
        self.store.due("http://127.0.0.1:9/", far, 100).await.unwrap()
    }
}

const TASK: &str = "9b1f2c34-0d5e-4a77-8c1d-52f0a1b2c3d4";
const HOOK: &str = "http://127.0.0.1:9/hook";

fn golden(name: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../wire/golden").join(name);
    serde_json::from_slice(&std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))).unwrap()
}

/// What clients send and get in one dialect, one exchange after the other.
const EXCHANGES: [(&str, &[&str]); 6] = [
    (
        "v1.0/jsonrpc",
        &[
            "create_push_config",
            "get_push_config",
            "list_push_configs",
            "delete_push_config",
            "list_push_configs_empty",
            "delete_push_config",
            "create_push_config_no_id",
        ],
    ),
    (
        "v0.3/jsonrpc",
        &[
            "push_config_set",
            "push_config_get",
            "push_config_get_by_task",
            "push_config_list",
            "../../v0.2/jsonrpc/push_config_get",
            "push_config_delete",
            "push_config_delete",
        ],
    ),
    ("v0.1/jsonrpc", &["push_notification_set", "push_notification_get"]),
    (
        "v1.0/rest",
        &["create_push_config", "get_push_config", "list_push_configs", "delete_push_config", "delete_push_config"],
    ),
    (
        "v0.3/rest",
        &["push_config_create", "push_config_get", "push_config_list", "push_config_delete", "push_config_delete"],
    ),
    ("v0.3/rest", &["push_config_create", "push_config_list"]),
];

#[tokio::test]
async fn recorded_exchanges_about_webhooks_are_answered_as_recorded() {
    for (folder, names) in EXCHANGES {
        let server = WithWebhooks::new().await;
        for id in [TASK, "task-client-1"] {
            server.task(id).await;
        }
        for name in names {
            let name = format!("{folder}/{name}");
            if folder.ends_with("jsonrpc") {
                let request = golden(&format!("{name}.request.json"));
                let told = server.ask("POST", "/a2a/jsonrpc", &[], &request.to_string()).await;
                assert_eq!(told.json(), golden(&format!("{name}.response.json")), "{name}");
                continue;
            }
            let exchange = golden(&format!("{name}.http.json"));
            let (request, response) = (&exchange["request"], &exchange["response"]);
            let version = request["headers"].get("A2A-Version").and_then(Value::as_str);
            let headers: Vec<(&str, &str)> = version.into_iter().map(|version| ("A2A-Version", version)).collect();
            let body = request.get("body").map(Value::to_string).unwrap_or_default();
            let (verb, path) = (request["method"].as_str().unwrap(), request["path"].as_str().unwrap());
            let told = server.ask(verb, path, &headers, &body).await;
            assert_eq!(u64::from(told.status), response["status"], "{name}");
            assert_eq!(told.json(), response["body"], "{name}");
            let content_type = response["headers"]["Content-Type"].as_str().unwrap();
            assert!(told.head.contains(&format!("content-type: {content_type}")), "{name}: {}", told.head);
        }
    }
}

#[tokio::test]
async fn a_server_without_webhooks_says_so() {
    let served = serve().await;
    for version in ["v1.0", "v0.3", "v0.1"] {
        let request = golden(&format!("{version}/jsonrpc/error_push_not_supported.request.json"));
        let told = ask(served.address, "POST", "/a2a/jsonrpc", &[], &request.to_string()).await;
        assert_eq!(told.json(), golden(&format!("{version}/jsonrpc/error_push_not_supported.response.json")));
    }
}

#[tokio::test]
async fn the_aliases_of_a_task_set_list_and_delete_webhooks() {
    let server = WithWebhooks::new().await;
    server.task("t").await;
    let config = |id: &str| json!({"taskId": "t", "pushNotificationConfig": {"id": id, "url": HOOK}});
    let plain = json!({"url": HOOK, "token": "secret"}).to_string();
    let named = json!({"pushNotificationConfig": {"id": "b", "url": HOOK, "token": "secret"}}).to_string();
    let private = json!({"url": "http://10.0.0.1/"}).to_string();
    for (verb, below, body, status, expected) in [
        ("GET", "t/pushNotificationConfig", "", 200, json!([])),
        ("POST", "t/pushNotificationConfig", &plain, 200, config("t")),
        ("POST", "t/pushNotificationConfigs", &plain, 200, config("t")),
        ("POST", "t/pushNotificationConfigs", &named, 200, config("b")),
        ("GET", "t/pushNotificationConfigs", "", 200, json!([config("t"), config("b")])),
        ("GET", "t/pushNotificationConfig/b", "", 200, config("b")),
        ("GET", "t/pushNotificationConfig/c", "", 404, json!("Task not found")),
        ("DELETE", "t/pushNotificationConfig/b", "", 200, json!({})),
        ("DELETE", "t/pushNotificationConfigs/b", "", 200, json!({})),
        ("GET", "t/pushNotificationConfig", "", 200, json!([config("t")])),
        ("DELETE", "t/pushNotificationConfig", "", 200, json!({})),
        ("GET", "t/pushNotificationConfig", "", 200, json!([])),
        ("POST", "t/pushNotificationConfig", &private, 400, json!("Invalid parameters")),
        ("GET", "t/pushNotificationConfig", "", 200, json!([])),
        ("GET", "other/pushNotificationConfig", "", 404, json!("Task not found")),
        ("POST", "other/pushNotificationConfig", &plain, 404, json!("Task not found")),
        ("DELETE", "other/pushNotificationConfig", "", 404, json!("Task not found")),
        ("PUT", "t/pushNotificationConfig", &plain, 405, json!("Method not allowed")),
    ] {
        let told = server.ask(verb, &format!("/a2a/tasks/{below}"), &[], body).await;
        let said = if status == 200 { told.json() } else { told.json()["title"].clone() };
        assert_eq!((told.status, said), (status, expected), "{verb} {below} {body}: {}", told.body);
        assert!(!told.body.contains("secret"), "{}", told.body);
    }
}

#[tokio::test]
async fn a_webhook_may_come_with_a_message() {
    let config = json!({"url": HOOK, "token": "secret", "authentication": {"schemes": ["Bearer"], "scheme": "Bearer"}});
    let kind = json!({"messageId": "m", "role": "user", "parts": [{"kind": "text", "text": "hi"}]});
    let proto = json!({"messageId": "m", "role": "ROLE_USER", "content": [{"text": "hi"}]});
    let v1 = json!({"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "hi"}]});
    let v01 = json!({"role": "user", "parts": [{"type": "text", "text": "hi"}]});
    let rpc = |method: &str, params: Value| json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    for (path, body, dialect, member) in [
        (
            "/a2a/jsonrpc",
            rpc("SendMessage", json!({"message": v1, "configuration": {"taskPushNotificationConfig": config}})),
            10,
            "configuration.taskPushNotificationConfig.url",
        ),
        (
            "/a2a/jsonrpc",
            rpc("message/send", json!({"message": kind, "configuration": {"pushNotificationConfig": config}})),
            3,
            "configuration.pushNotificationConfig.url",
        ),
        (
            "/a2a",
            rpc("tasks/send", json!({"id": "t", "message": v01, "pushNotification": config})),
            1,
            "pushNotification.url",
        ),
        (
            "/a2a/rest/v1/message:send",
            json!({"message": proto, "configuration": {"pushNotification": config}}),
            3,
            "configuration.pushNotification.url",
        ),
        (
            "/a2a/rest/message:send",
            json!({"message": v1, "configuration": {"taskPushNotificationConfig": config}}),
            10,
            "configuration.taskPushNotificationConfig.url",
        ),
    ] {
        let server = WithWebhooks::new().await;
        let told = server.ask("POST", path, &[], &body.to_string()).await;
        assert_eq!(told.status, 200, "{path}: {}", told.body);
        assert!(!told.body.contains("secret"), "{}", told.body);
        let due = server.due().await;
        let [due] = due.as_slice() else { panic!("{path}: {due:?}\n{}", told.body) };
        assert_eq!((due.settings.url.as_str(), due.settings.dialect.0), (HOOK, dialect), "{path}");
        assert_eq!(due.settings.events, WebhookEvents::Statuses, "{path}");
        let secrets = String::from_utf8_lossy(&due.settings.secrets).into_owned();
        assert!(secrets.contains(r#"["secret",{"schemes":["Bearer"]"#), "{path}: {secrets}");

        // One that is refused leaves no task behind.
        let server = WithWebhooks::new().await;
        let told = server.ask("POST", path, &[], &body.to_string().replace(HOOK, "http://10.0.0.1/")).await;
        assert!(told.body.contains("is not a public address"), "{path}: {}", told.body);
        let is_named =
            [format!("{member} is not"), format!("\"{member}\"")].iter().any(|text| told.body.contains(text));
        assert!(is_named, "{path}: {}", told.body);
        let tasks = server.ask("GET", "/tasks", &[("A2A-Version", "1.0")], "").await;
        assert_eq!(tasks.json()["totalSize"], 0, "{path}: {}", tasks.body);
    }
}

#[tokio::test]
async fn a_header_asks_for_every_event() {
    let config = json!({"url": HOOK}).to_string();
    for (value, status, expected) in [
        (None, 200, Some(WebhookEvents::Statuses)),
        (Some("all"), 200, Some(WebhookEvents::All)),
        (Some("some"), 400, None),
    ] {
        for path in ["/tasks/t/pushNotificationConfigs", "/a2a/tasks/t/pushNotificationConfig"] {
            let server = WithWebhooks::new().await;
            server.task("t").await;
            let headers: Vec<(&str, &str)> = value.into_iter().map(|value| ("Sabir-Push-Events", value)).collect();
            let told = server.ask("POST", path, &headers, &config).await;
            assert_eq!(told.status, status, "{path} {value:?}: {}", told.body);
            assert_eq!(server.due().await.first().map(|due| due.settings.events), expected, "{path} {value:?}");
            assert_eq!(told.body.contains("Sabir-Push-Events"), status == 400, "{}", told.body);
        }
    }
}

#[tokio::test]
async fn the_metadata_of_a_message_asks_for_every_event() {
    for (metadata, status, expected) in [
        (json!({}), 200, Some(WebhookEvents::Statuses)),
        (json!({"Sabir-Push-Events": "all"}), 200, Some(WebhookEvents::All)),
        (json!({"Sabir-Push-Events": "ALL"}), 400, None),
        (json!({"Sabir-Push-Events": ""}), 400, None),
        (json!({"Sabir-Push-Events": true}), 400, None),
        (json!({"Sabir-Push-Events": ["all"]}), 400, None),
        (json!({"Sabir-Push-Events": null}), 400, None),
    ] {
        let server = WithWebhooks::new().await;
        let message =
            json!({"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "hello"}], "metadata": metadata});
        let body = json!({"message": message, "configuration": {"taskPushNotificationConfig": {"url": HOOK}}});
        let told = server.ask("POST", "/message:send", &[("A2A-Version", "1.0")], &body.to_string()).await;
        assert_eq!(told.status, status, "{metadata}: {}", told.body);
        assert_eq!(server.due().await.first().map(|due| due.settings.events), expected, "{metadata}");
        let is_named = told.body.contains("message.metadata.Sabir-Push-Events");
        assert_eq!(is_named, status == 400, "{}", told.body);
    }
}

#[tokio::test]
async fn cards_say_whether_webhooks_are_offered() {
    let (with, without) = (WithWebhooks::new().await, serve().await);
    for (address, expected) in [(with.served.address, true), (without.address, false)] {
        for place in ["", "/agents/demo"] {
            for version in [None, Some("1.0"), Some("0.3"), Some("0.2"), Some("0.1")] {
                let headers: Vec<(&str, &str)> = version.into_iter().map(|version| ("A2A-Version", version)).collect();
                let card =
                    ask(address, "GET", &format!("{place}/.well-known/agent-card.json"), &headers, "").await.json();
                assert_eq!(card["capabilities"]["pushNotifications"], expected, "{place} {version:?}: {card}");
            }
        }
        let card = ask(address, "GET", "/v1/a2a/agents/demo/agent-card", &[], "").await.json();
        assert_eq!(card["capabilities"]["pushNotifications"], expected, "{card}");
    }
}

#[tokio::test]
async fn what_is_no_config_is_refused() {
    let server = WithWebhooks::new().await;
    server.task("t").await;
    let long = "x".repeat(5000);
    let set = |config: Value| json!({"taskId": "t", "pushNotificationConfig": config});
    for (method, params, expected) in [
        ("tasks/pushNotificationConfig/set", set(json!(null)), -32602),
        ("tasks/pushNotificationConfig/set", set(json!("http://a.b")), -32602),
        ("tasks/pushNotificationConfig/set", set(json!([])), -32602),
        ("tasks/pushNotificationConfig/set", set(json!({})), -32602),
        ("tasks/pushNotificationConfig/set", set(json!({"url": ""})), -32602),
        ("tasks/pushNotificationConfig/set", set(json!({"url": 7})), -32602),
        ("tasks/pushNotificationConfig/set", set(json!({"url": HOOK, "id": long})), -32602),
        ("tasks/pushNotificationConfig/set", set(json!({"url": HOOK, "id": {}})), -32602),
        ("tasks/pushNotificationConfig/set", set(json!({"url": HOOK, "token": {}})), -32602),
        ("tasks/pushNotificationConfig/set", set(json!({"url": HOOK, "authentication": "Bearer"})), -32602),
        ("tasks/pushNotificationConfig/set", set(json!({"url": "file:///etc/passwd"})), -32602),
        ("tasks/pushNotificationConfig/set", json!({"taskId": long, "pushNotificationConfig": {"url": HOOK}}), -32602),
        ("tasks/pushNotificationConfig/set", json!({"taskId": "no", "pushNotificationConfig": {"url": HOOK}}), -32001),
        ("tasks/pushNotificationConfig/set", json!({"pushNotificationConfig": {"url": HOOK}}), -32602),
        ("tasks/pushNotificationConfig/get", json!({"id": "no"}), -32001),
        ("tasks/pushNotificationConfig/get", json!({"id": "t", "pushNotificationConfigId": "no"}), -32001),
        ("tasks/pushNotificationConfig/get", json!({"id": "t", "pushNotificationConfigId": long}), -32602),
        ("tasks/pushNotificationConfig/list", json!({"id": "no"}), -32001),
        ("tasks/pushNotificationConfig/list", json!({}), -32602),
        ("tasks/pushNotificationConfig/delete", json!({"id": "no"}), -32001),
        ("tasks/pushNotificationConfig/delete", json!({"id": []}), -32602),
        ("tasks/pushNotification/get", json!({"id": "no"}), -32001),
        ("GetTaskPushNotificationConfig", json!({"taskId": "t"}), -32602),
        ("GetTaskPushNotificationConfig", json!({"taskId": "t", "id": "no"}), -32001),
        ("DeleteTaskPushNotificationConfig", json!({"taskId": "t"}), -32602),
        ("ListTaskPushNotificationConfigs", json!({"taskId": "t", "pageSize": -1}), -32602),
        ("CreateTaskPushNotificationConfig", json!({"taskId": "t", "url": HOOK, "tenant": "ghost"}), -32602),
    ] {
        let told = server.rpc(method, params.clone()).await;
        assert_eq!(told["error"]["code"], expected, "{method} {params}: {told}");
        assert!(told.to_string().len() < 2000, "{method}");
    }
    assert_eq!(server.rpc("tasks/pushNotificationConfig/list", json!({"id": "t"})).await["result"], json!([]));
    assert_eq!(server.rpc("tasks/pushNotificationConfig/get", json!({"taskId": "t"})).await["result"], Value::Null);
}

#[tokio::test]
async fn a_refusal_names_the_member_as_the_caller_wrote_it() {
    let server = WithWebhooks::new().await;
    server.task("t").await;
    let (config, own) = (json!({"url": "http://10.0.0.1/"}), json!({"taskId": "t", "url": "http://10.0.0.1/"}));
    for (method, params, expected) in [
        ("CreateTaskPushNotificationConfig", own, r#""field":"url""#),
        (
            "tasks/pushNotificationConfig/set",
            json!({"taskId": "t", "pushNotificationConfig": config}),
            "pushNotificationConfig.url is not a public address",
        ),
        (
            "tasks/pushNotification/set",
            json!({"id": "t", "pushNotificationConfig": config}),
            "pushNotificationConfig.url is not a public address",
        ),
    ] {
        let told = server.rpc(method, params).await.to_string();
        assert!(told.contains(expected), "{method}: {told}");
    }
}

#[tokio::test]
async fn a_task_has_so_many_webhooks_and_no_more() {
    let server = WithWebhooks::new().await;
    server.task("t").await;
    let set =
        |number: usize| json!({"taskId": "t", "pushNotificationConfig": {"id": format!("c{number}"), "url": HOOK}});
    for number in 0..sabir_store::MAX_WEBHOOKS {
        let told = server.rpc("tasks/pushNotificationConfig/set", set(number)).await;
        assert!(told["error"].is_null(), "{told}");
    }
    let told = server.rpc("tasks/pushNotificationConfig/set", set(sabir_store::MAX_WEBHOOKS)).await;
    assert_eq!(told["error"]["code"], -32602, "{told}");
    let told = server.rpc("tasks/pushNotificationConfig/set", set(0)).await;
    assert!(told["error"].is_null(), "one that is there is replaced: {told}");
}

#[tokio::test]
async fn nobody_sees_the_webhooks_of_others() {
    let server = WithWebhooks::new().await;
    let mut service = Service::new(server.served.app.clone());
    let mut ask = async |caller: &str, method: &str, params: Value| -> Value {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
        let request = http::Request::post("http://localhost/a2a")
            .header("content-type", "application/json")
            .extension(Caller::new("org", caller))
            .body(Full::new(Bytes::from(body)))
            .unwrap();
        let response = service.call(request).await.unwrap();
        serde_json::from_slice(&response.into_body().collect().await.unwrap().to_bytes()).unwrap()
    };
    let message = json!({"role": "user", "parts": [{"type": "text", "text": "hi"}]});
    ask("alice", "tasks/send", json!({"id": "t", "message": message})).await;
    let set = json!({"taskId": "t", "pushNotificationConfig": {"id": "c", "url": HOOK}});
    let told = ask("alice", "tasks/pushNotificationConfig/set", set.clone()).await;
    assert_eq!(told["result"], set);
    for (method, params) in [
        ("tasks/pushNotificationConfig/set", set.clone()),
        ("tasks/pushNotificationConfig/get", json!({"id": "t"})),
        ("tasks/pushNotificationConfig/list", json!({"id": "t"})),
        ("tasks/pushNotificationConfig/delete", json!({"id": "t", "pushNotificationConfigId": "c"})),
    ] {
        let told = ask("mallory", method, params).await;
        assert_eq!(told["error"]["code"], -32001, "{method}: {told}");
    }
    let told = ask("alice", "tasks/pushNotificationConfig/list", json!({"id": "t"})).await;
    assert_eq!(told["result"], json!([set]));
}
