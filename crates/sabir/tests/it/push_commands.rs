//! `sabir push` against a running server, and `sabir key`.

use std::process::Command;

use serde_json::{Value, json};

use crate::SABIR;
use crate::server_fixture::{ServerFixture, v03_message};
use crate::webhook_receiver::WebhookReceiver;

struct Outcome {
    code: i32,
    /// Null where it is no JSON.
    printed: Value,
    errors: String,
}

fn sabir(words: &str, variables: &[(&str, &str)]) -> Outcome {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(SABIR);
    command.args(words.split_whitespace()).current_dir(folder.path()).env_clear().envs(variables.iter().copied());
    let output = command.output().unwrap();
    Outcome {
        code: output.status.code().unwrap(),
        printed: serde_json::from_slice(&output.stdout).unwrap_or_default(),
        errors: String::from_utf8(output.stderr).unwrap(),
    }
}

/// What `sabir push` prints when it succeeds.
fn push(fixture: &ServerFixture, words: &str) -> Value {
    let outcome = sabir(&format!("push {words} --url http://{}", fixture.server.address), &[]);
    assert_eq!((outcome.code, outcome.errors.as_str()), (0, ""), "{words}");
    outcome.printed
}

fn ids(deliveries: &Value) -> Vec<&str> {
    deliveries.as_array().unwrap().iter().map(|delivery| delivery["id"].as_str().unwrap()).collect()
}

/// A server with a task whose receiver answers so, and the task's id.
fn served(receiver: &WebhookReceiver, status: u16) -> (ServerFixture, Value) {
    receiver.answer(status);
    let allowed = ("PUSH_NOTIFICATION_ALLOWED_CIDRS", "127.0.0.0/8");
    let fixture = ServerFixture::with(|options| options.variable(allowed.0, allowed.1));
    let mut params = v03_message("hello");
    params["configuration"] = json!({"pushNotificationConfig": {"url": receiver.url("/hook"), "token": "secret"}});
    let task = fixture.rpc("/a2a/jsonrpc", "message/send", params)["result"]["id"].take();
    (fixture, task)
}

#[test]
fn dead_deliveries_are_listed_shown_retried_and_dropped() {
    let receiver = WebhookReceiver::start();
    let (fixture, task) = served(&receiver, 410);
    let given_up = fixture.server.until("both events are given up", |_| {
        let given_up = push(&fixture, "list --state given-up");
        (ids(&given_up).len() == 2).then_some(given_up)
    });
    assert!(!given_up.to_string().contains("secret"));
    for delivery in given_up.as_array().unwrap() {
        assert_eq!((&delivery["task"], &delivery["url"]), (&task, &json!(receiver.url("/hook"))), "{delivery}");
        assert!(delivery["reason"].as_str().unwrap().contains("410"), "{delivery}");
    }
    let [first, second] = ids(&given_up)[..] else { panic!("{given_up}") };
    assert_eq!(push(&fixture, &format!("show {first}")), given_up[0]);

    let attempts = receiver.rest();
    receiver.answer(200);
    assert_eq!(push(&fixture, &format!("retry {first}")), json!([{"id": first}]));
    assert_eq!(receiver.next().header("webhook-id"), attempts[0].header("webhook-id"));
    fixture.server.until("the retry is noted", |_| (ids(&push(&fixture, "list")) == [second]).then_some(()));
    assert_eq!(push(&fixture, &format!("drop {second}")), json!([{"id": second}]));
    assert_eq!(push(&fixture, "list"), json!([]));
}

#[test]
fn a_pending_delivery_is_found_where_the_configuration_says() {
    let receiver = WebhookReceiver::start();
    let (fixture, task) = served(&receiver, 503);
    receiver.next();
    let listen = fixture.server.address.to_string();
    let list = || sabir("push list", &[("SABIR_LISTEN", &listen)]).printed;
    let pending = fixture.server.until("a failure is noted", |_| {
        let pending = list();
        (pending[0]["attempts"].as_u64() >= Some(1)).then_some(pending)
    });
    assert_eq!((&pending[0]["state"], &pending[0]["task"]), (&json!("pending"), &task), "{pending}");
    let id = ids(&pending)[0];
    assert!(id.starts_with('p'), "{pending}");
    assert_eq!(sabir(&format!("push drop {id}"), &[("SABIR_LISTEN", &listen)]).code, 0);
    assert_eq!(list(), json!([]));
}

#[test]
fn what_cannot_be_done_is_said() {
    let fixture = ServerFixture::new();
    let url = format!("http://{}", fixture.server.address);
    let off = ServerFixture::configured("[push]\nenabled = false\n");
    let off = format!("http://{}", off.server.address);
    for (words, code, expected) in [
        (format!("push show g7 --url {url}/"), 1, "there is no delivery g7"),
        (format!("push retry g7 p9 --url {url}"), 1, "there is no delivery p9"),
        (format!("push drop ../x --url {url}"), 2, "ids are such as p12 (pending) and g7 (given up)"),
        (format!("push list --state lost --url {url}"), 2, "possible values: pending, given-up"),
        ("push list --url http://127.0.0.1:1".to_owned(), 1, "cannot ask the server at http://127.0.0.1:1: "),
        ("push list --url localhost".to_owned(), 1, "cannot ask localhost: the URL must begin with http://"),
        ("push list --config nowhere.toml".to_owned(), 2, "nowhere.toml"),
        (format!("push list --url {off}"), 1, "this server offers no webhooks"),
    ] {
        let outcome = sabir(&words, &[]);
        assert!(outcome.errors.contains(expected), "{words}: {}", outcome.errors);
        assert_eq!(outcome.code, code, "{words}: {}", outcome.errors);
    }
}

#[test]
fn new_keys_are_taken_by_the_server_and_never_shown_again() {
    for (words, key, variable) in [
        ("key new", "store.key", "SABIR_STORE_KEY"),
        ("key new --signing", "push.signing_key", "SABIR_PUSH_SIGNING_KEY"),
        ("key new --card", "card.signing_key", "SABIR_CARD_SIGNING_KEY"),
        ("key new --card --alg eddsa", "card.signing_key", "SABIR_CARD_SIGNING_KEY"),
    ] {
        let made = sabir(words, &[]).printed;
        assert_eq!((&made["setting"], &made["variable"]), (&json!(key), &json!(variable)), "{made}");
        let text = made["key"].as_str().unwrap();
        let shown = sabir("config", &[(variable, text)]);
        assert_eq!((shown.code, shown.errors.as_str()), (0, ""));
        let all = shown.printed.as_array().unwrap();
        let setting = all.iter().find(|setting| setting["key"] == key).unwrap();
        assert_eq!(setting["value"], "(not shown)");
        assert!(!shown.printed.to_string().contains(text));
    }
    assert_ne!(sabir("key new", &[]).printed["key"], sabir("key new", &[]).printed["key"]);
}
