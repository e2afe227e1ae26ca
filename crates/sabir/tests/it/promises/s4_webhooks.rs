//! The promises of protoAgent about webhooks, with a real receiver on this machine.

use std::process::Stdio;

use sabir_testkit::process::SabirOptions;
use serde_json::{Value, json};

use crate::SABIR;
use crate::server_fixture::ServerFixture;
use crate::webhook_receiver::{ReceivedRequest, WebhookReceiver};

const RPC: &str = "/a2a";
const HOSTS: &str = "PUSH_NOTIFICATION_ALLOWED_HOSTS";
const CIDRS: &str = "PUSH_NOTIFICATION_ALLOWED_CIDRS";

/// Targets that are not public, or no web addresses at all.
const FORBIDDEN: [&str; 16] = [
    "http://127.0.0.1:8080/hook",
    "http://127.8.8.8/hook",
    "http://[::1]:8080/hook",
    "http://0.0.0.0/hook",
    "http://10.0.0.1/hook",
    "http://10.255.255.254:8443/hook",
    "http://172.16.0.1/hook",
    "http://172.31.255.254/hook",
    "http://192.168.1.1/hook",
    "http://169.254.169.254/latest/meta-data",
    "http://[fe80::1]/hook",
    "http://[::ffff:10.0.0.1]/hook",
    "http://localhost:8080/hook",
    "https://no-such-host.invalid/hook",
    "file:///etc/passwd",
    "ftp://hooks.example/hook",
];

/// A server that may send to receivers on this machine.
fn fixture() -> ServerFixture {
    ServerFixture::with(|options| options.local().variable(CIDRS, "127.0.0.0/8"))
}

fn call(fixture: &ServerFixture, verb: &str, params: Value) -> Value {
    fixture.rpc(RPC, &format!("tasks/pushNotificationConfig/{verb}"), params)
}

fn result(mut answer: Value) -> Value {
    assert!(answer.get("error").is_none(), "{answer}");
    answer["result"].take()
}

fn set(fixture: &ServerFixture, task: &str, config: &Value) -> Value {
    call(fixture, "set", json!({"taskId": task, "pushNotificationConfig": config}))
}

fn list(fixture: &ServerFixture, task: &str) -> Value {
    result(call(fixture, "list", json!({"taskId": task})))
}

fn message(text: &str) -> Value {
    json!({"message": {"role": "user", "parts": [{"text": text}]}})
}

/// The id of a task that waits for an answer: setting a webhook sends nothing yet.
fn waiting(fixture: &ServerFixture) -> String {
    let task = fixture.send("ask Which day?");
    assert_eq!(task["status"]["state"], "input-required", "{task}");
    task["id"].as_str().unwrap().to_owned()
}

/// What a webhook with these members gets from the start of a task to its end.
fn deliveries(members: Value) -> Vec<ReceivedRequest> {
    let (fixture, receiver) = (fixture(), WebhookReceiver::start());
    let mut params = message("hello");
    params["configuration"] = json!({"pushNotificationConfig": with_url(&receiver, members)});
    result(fixture.rpc(RPC, "message/send", params));
    receiver.until(is_terminal)
}

fn with_url(receiver: &WebhookReceiver, mut members: Value) -> Value {
    members["url"] = json!(receiver.url("/hook"));
    members
}

fn is_terminal(request: &ReceivedRequest) -> bool {
    ["completed", "failed", "rejected", "canceled"].contains(&request.json()["status"]["state"].as_str().unwrap())
}

fn assert_authorization(members: Value, expected: &str) {
    let requests = deliveries(members);
    for request in &requests {
        assert_eq!(request.header("authorization"), expected, "{request:?}");
        let count = request.headers.iter().filter(|(name, _)| name == "authorization").count();
        assert_eq!(count, 1, "{request:?}");
    }
}

/// Waits until nothing is to be delivered any more.
fn until_delivered(fixture: &ServerFixture) {
    fixture.server.until("all is delivered", |_| {
        let list = fixture.get("/admin/v1/deliveries").json();
        list["deliveries"].as_array().unwrap_or_else(|| panic!("{list}")).is_empty().then_some(())
    });
}

/// `tasks/pushNotificationConfig/set` answers with the task's id and the webhook with its url and id; its token is never
/// told
#[test]
fn s4_14_a_webhook_is_set_and_its_token_not_told() {
    let fixture = fixture();
    let task = waiting(&fixture);
    let url = "http://127.0.0.1:8080/hook";
    let named = set(&fixture, &task, &json!({"id": "ours", "url": url, "token": "top-secret"}));
    assert_eq!(result(named), json!({"taskId": task, "pushNotificationConfig": {"id": "ours", "url": url}}));
    let secrets = json!({"url": url, "token": "top-secret", "authentication":
        {"schemes": ["Bearer"], "credentials": "top-secret"}});
    let answer = set(&fixture, &task, &secrets);
    assert!(!answer.to_string().contains("top-secret"), "{answer}");
    let answer = result(answer);
    let config = &answer["pushNotificationConfig"];
    assert_eq!((&answer["taskId"], &config["url"]), (&json!(task), &json!(url)), "{answer}");
    assert!(config["id"].as_str().is_some_and(|id| !id.is_empty()), "{answer}");
    let unknown = set(&fixture, "ghost", &json!({"url": url}));
    assert_eq!(unknown["error"]["code"], -32001, "{unknown}");
}

/// `tasks/pushNotificationConfig/get` with `taskId` or `id` gives the webhook without its secrets, and null where there is
/// none
#[test]
fn s4_15_a_webhook_is_read_without_its_secrets() {
    let fixture = fixture();
    let task = waiting(&fixture);
    for spelled in ["taskId", "id"] {
        assert_eq!(result(call(&fixture, "get", json!({spelled: task}))), Value::Null);
    }
    let config = json!({"id": "ours", "url": "http://127.0.0.1:8080/hook", "token": "top-secret",
        "authentication": {"schemes": ["Bearer"], "credentials": "top-secret"}});
    result(set(&fixture, &task, &config));
    for spelled in ["taskId", "id"] {
        let answer = call(&fixture, "get", json!({spelled: task}));
        assert!(!answer.to_string().contains("top-secret"), "{answer}");
        let answer = result(answer);
        assert_eq!(answer["taskId"], json!(task));
        for member in ["id", "url"] {
            assert_eq!(answer["pushNotificationConfig"][member], config[member], "{answer}");
        }
        let unknown = call(&fixture, "get", json!({spelled: "ghost"}));
        assert_eq!(unknown["error"]["code"], -32001, "{unknown}");
    }
}

/// `tasks/pushNotificationConfig/list` gives an array of the task's webhooks without their secrets, empty where there are
/// none
#[test]
fn s4_16_webhooks_are_listed() {
    let fixture = fixture();
    let (task, other) = (waiting(&fixture), waiting(&fixture));
    assert_eq!(list(&fixture, &task), json!([]));
    for id in ["a", "b"] {
        result(set(&fixture, &task, &json!({"id": id, "url": format!("http://127.0.0.1:8080/{id}"), "token": "t0p"})));
    }
    let listed = list(&fixture, &task);
    assert!(!listed.to_string().contains("t0p"), "{listed}");
    let entry = |id: &str| json!({"taskId": task, "pushNotificationConfig": {"id": id, "url": format!("http://127.0.0.1:8080/{id}")}});
    assert_eq!(listed, json!([entry("a"), entry("b")]));
    assert_eq!(list(&fixture, &other), json!([]), "another task has none");
}

/// `tasks/pushNotificationConfig/delete` with `taskId`, or with `id` and `pushNotificationConfigId`, answers null, the list
/// is then empty, and nothing more is sent; it may be repeated
#[test]
fn s4_17_webhooks_are_deleted() {
    let (fixture, receiver) = (fixture(), WebhookReceiver::start());
    for is_named in [false, true] {
        let task = waiting(&fixture);
        result(set(&fixture, &task, &json!({"id": "ours", "url": receiver.url("/deleted")})));
        assert_eq!(list(&fixture, &task).as_array().map(Vec::len), Some(1));
        let params = match is_named {
            true => json!({"id": task, "pushNotificationConfigId": "ours"}),
            false => json!({"taskId": task}),
        };
        for _ in 0..2 {
            let answer = call(&fixture, "delete", params.clone());
            assert_eq!((answer.get("result"), answer.get("error")), (Some(&Value::Null), None), "{answer}");
            assert_eq!(list(&fixture, &task), json!([]));
        }
        let mut answer = message("Friday");
        answer["message"]["taskId"] = json!(task);
        assert_eq!(result(fixture.rpc(RPC, "message/send", answer))["status"]["state"], "completed");
    }
    let last = fixture.send("hello");
    result(set(&fixture, last["id"].as_str().unwrap(), &json!({"url": receiver.url("/kept")})));
    assert_eq!(receiver.next().line, "POST /kept HTTP/1.1", "nothing came before it");
    until_delivered(&fixture);
    assert!(receiver.rest().is_empty());
}

/// A webhook's `token` goes out as `Authorization: Bearer TOKEN`
#[test]
fn s4_18_a_token_is_the_bearer() {
    assert_authorization(json!({"token": "t"}), "Bearer t");
}

/// A webhook's `authentication.credentials` of the scheme Bearer go out as `Authorization: Bearer CREDENTIALS`
#[test]
fn s4_19_credentials_are_the_bearer() {
    assert_authorization(json!({"authentication": {"schemes": ["Bearer"], "credentials": "c"}}), "Bearer c");
}

/// Of a webhook's `token` and its `authentication.credentials`, the token wins
#[test]
fn s4_20_the_token_wins() {
    let both = json!({"token": "t", "authentication": {"schemes": ["Bearer"], "credentials": "c"}});
    assert_authorization(both, "Bearer t");
}

/// A task that ends is one POST with the terminal state, the whole task, also where the webhook is set after the end
#[test]
fn s4_21_the_end_is_told_once() {
    for (text, state) in [("hello", "completed"), ("fail boom", "failed"), ("reject", "rejected")] {
        for is_late in [false, true] {
            let (fixture, receiver) = (fixture(), WebhookReceiver::start());
            let config = json!({"url": receiver.url("/hook")});
            let mut params = message(text);
            if !is_late {
                params["configuration"] = json!({"pushNotificationConfig": config});
            }
            let task = result(fixture.rpc(RPC, "message/send", params));
            assert_eq!(task["status"]["state"], state, "{task}");
            if is_late {
                result(set(&fixture, task["id"].as_str().unwrap(), &config));
            }
            let mut requests = receiver.until(is_terminal);
            until_delivered(&fixture);
            requests.extend(receiver.rest());
            assert_eq!(requests.iter().filter(|request| is_terminal(request)).count(), 1, "{requests:?}");
            assert!(requests.len() == 1 || !is_late, "{requests:?}");
            let last = requests.last().unwrap();
            assert_eq!(last.line, "POST /hook HTTP/1.1");
            assert_eq!(last.header("content-type"), "application/json");
            let body = last.json();
            assert_eq!((&body["id"], &body["status"]["state"]), (&task["id"], &json!(state)), "{body}");
            assert_eq!(body["artifacts"], task["artifacts"], "{body}");
        }
    }
}

/// `POST /a2a/tasks/ID/pushNotificationConfig` with the webhook as body does what `tasks/pushNotificationConfig/set` does
#[test]
fn s4_22_a_webhook_is_set_by_its_address() {
    let (fixture, receiver) = (fixture(), WebhookReceiver::start());
    let task = fixture.send("hello")["id"].as_str().unwrap().to_owned();
    let config = json!({"id": "ours", "url": receiver.url("/hook"), "token": "top-secret"});
    let reply = fixture.post(&format!("/a2a/tasks/{task}/pushNotificationConfig"), config.clone());
    assert!(reply.status == 200 || reply.status == 201, "{}", reply.text());
    let expected = json!({"taskId": task, "pushNotificationConfig": {"id": "ours", "url": config["url"]}});
    assert_eq!(reply.json(), expected);
    assert_eq!(result(set(&fixture, &task, &config)), expected, "both answer with the same");
    let request = receiver.next();
    assert_eq!(request.header("authorization"), "Bearer top-secret");
    assert_eq!((&request.json()["id"], &request.json()["status"]["state"]), (&json!(task), &json!("completed")));
    let unknown = fixture.post("/a2a/tasks/ghost/pushNotificationConfig", config);
    assert_eq!(unknown.status, 404, "{}", unknown.text());
}

/// `GET /a2a/tasks/ID/pushNotificationConfig` answers as `tasks/pushNotificationConfig/list` does
#[test]
fn s4_23_webhooks_are_listed_by_their_address() {
    let fixture = fixture();
    let task = waiting(&fixture);
    let path = format!("/a2a/tasks/{task}/pushNotificationConfig");
    for count in 0..3 {
        let reply = fixture.get(&path);
        let listed = reply.json();
        assert_eq!((reply.status, listed.as_array().map(Vec::len)), (200, Some(count)), "{listed}");
        assert_eq!(listed, list(&fixture, &task));
        assert!(!listed.to_string().contains("top-secret"), "{listed}");
        let config = json!({"id": format!("c{count}"), "url": "http://127.0.0.1:8080/hook", "token": "top-secret"});
        result(set(&fixture, &task, &config));
    }
    assert_eq!(fixture.get("/a2a/tasks/ghost/pushNotificationConfig").status, 404);
}

/// The paths below `/a2a/tasks` refuse the same targets with 400, and nothing is stored
#[test]
fn s4_25_private_addresses_are_refused_by_address_too() {
    let fixture = ServerFixture::new();
    let task = waiting(&fixture);
    for url in FORBIDDEN {
        for path in ["pushNotificationConfig", "pushNotificationConfigs"] {
            let path = format!("/a2a/tasks/{task}/{path}");
            let reply = fixture.post(&path, json!({"url": url, "token": "t"}));
            assert_eq!(reply.status, 400, "{url}: {}", reply.text());
            assert_eq!(fixture.get(&path).json(), json!([]), "{url}");
        }
    }
}

/// A webhook to an address that is not public, to a name that leads to one or to nothing, or with another scheme than http
/// and https, is -32602, and nothing is stored; a message that brings it makes no task
#[test]
fn s4_26_webhooks_lead_to_public_addresses_only() {
    let fixture = ServerFixture::new();
    let task = waiting(&fixture);
    for url in FORBIDDEN {
        let answer = set(&fixture, &task, &json!({"url": url, "token": "t"}));
        assert_eq!(answer["error"]["code"], -32602, "{url}: {answer}");
        assert_eq!(list(&fixture, &task), json!([]), "{url}");
        let mut params = message("hello");
        params["configuration"] = json!({"pushNotificationConfig": {"url": url}});
        let answer = fixture.rpc(RPC, "message/send", params);
        assert_eq!(answer["error"]["code"], -32602, "{url}: {answer}");
    }
    let tasks = fixture.rpc("/a2a/v1", "ListTasks", json!({}));
    assert_eq!(tasks["result"]["totalSize"], 1, "only the one from before: {tasks}");
}

/// The hosts of `PUSH_NOTIFICATION_ALLOWED_HOSTS` are accepted without a look-up, and only those
#[test]
fn s4_27_allowed_hosts_are_not_looked_up() {
    let fixture = ServerFixture::with(|options| options.variable(HOSTS, "hook-a.invalid,hook-b.invalid,127.0.0.1"));
    let task = waiting(&fixture);
    for (url, is_accepted) in [
        // No look-up finds these.
        ("http://hook-a.invalid/x", true),
        ("https://hook-b.invalid:8443/x", true),
        ("http://HOOK-A.invalid/x", true),
        ("http://hook-c.invalid/x", false),
        ("http://sub.hook-a.invalid/x", false),
        ("http://hook-a.invalid.example.invalid/x", false),
        ("http://hook-a.invalid@10.0.0.1/x", false),
        ("http://127.0.0.2/x", false),
        ("file://hook-a.invalid/x", false),
    ] {
        let answer = set(&fixture, &task, &json!({"id": "ours", "url": url}));
        assert_eq!(answer.get("result").is_some(), is_accepted, "{url}: {answer}");
    }
    let receiver = WebhookReceiver::start();
    let done = fixture.send("hello");
    result(set(&fixture, done["id"].as_str().unwrap(), &json!({"url": receiver.url("/hook")})));
    assert_eq!(receiver.next().json()["id"], done["id"], "and it is sent there");
}

/// Addresses in the ranges of `PUSH_NOTIFICATION_ALLOWED_CIDRS` are accepted, other private ones still refused; a malformed
/// entry stops the start with a message that names it
#[test]
fn s4_28_allowed_ranges_are_accepted() {
    let fixture = ServerFixture::with(|options| options.variable(CIDRS, "10.0.0.0/8,172.16.0.0/12"));
    let task = waiting(&fixture);
    for (url, is_accepted) in [
        ("http://10.0.0.1/hook", true),
        ("http://10.255.255.254:8443/hook", true),
        ("https://172.16.0.1/hook", true),
        ("http://172.31.255.254/hook", true),
        ("http://192.168.1.1/hook", false),
        ("http://127.0.0.1/hook", false),
        ("http://[::1]/hook", false),
        ("http://169.254.169.254/hook", false),
        ("http://localhost/hook", false),
    ] {
        let answer = set(&fixture, &task, &json!({"id": "ours", "url": url}));
        assert_eq!(answer.get("result").is_some(), is_accepted, "{url}: {answer}");
        if !is_accepted {
            assert_eq!(answer["error"]["code"], -32602, "{url}: {answer}");
        }
    }
    for malformed in ["10.0.0.0/40", "10.0.0/8", "hook-a", "10.0.0.0/-1", "::/129"] {
        let folder = tempfile::tempdir().unwrap();
        let options = SabirOptions::new(SABIR, folder.path()).variable(CIDRS, &format!("10.0.0.0/8,{malformed}"));
        let output = options.command().stdout(Stdio::null()).stderr(Stdio::piped()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{malformed}");
        assert!(said.contains(CIDRS) && said.contains(malformed), "{malformed}: {said}");
    }
}
