//! The library, as programs use it: the examples run as they are, and what a program does wrong is told by type.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use sabir::testing::{Script, TestServer};
use sabir::{Server, ServerError};
use sabir_testkit::http::{Http, HttpReply};
use sabir_testkit::postgres::free_port;
use serde_json::{Value, json};

use crate::SABIR;
use crate::webhook_receiver::WebhookReceiver;

/// An example that runs until it is dropped.
struct Example {
    child: Child,
    address: SocketAddr,
}

impl Example {
    /// Examples lie beside the program. A run of one test alone has not built them; with the features of the whole workspace, they
    /// are the same that `cargo test --workspace` has built.
    fn start(name: &str) -> Self {
        let mut build = Command::new(env!("CARGO"));
        build.args(["build", "--quiet", "--workspace", "--example", name]);
        assert!(build.current_dir(env!("CARGO_MANIFEST_DIR")).status().unwrap().success(), "{name} does not compile");
        let program = Path::new(SABIR).parent().unwrap().join("examples").join(name);
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()));
        let child = Command::new(&program).arg(address.to_string()).stdout(Stdio::null()).spawn();
        let child = child.unwrap_or_else(|error| panic!("{}: {error}", program.display()));
        let example = Self { child, address };
        let deadline = Instant::now() + Duration::from_secs(60);
        while Http::connect(address).is_err() {
            assert!(Instant::now() < deadline, "{name} does not listen");
            std::thread::sleep(Duration::from_millis(20));
        }
        example
    }

    fn ask(&self, method: &str, path: &str, body: &Value) -> HttpReply {
        ask(self.address, method, path, body)
    }
}

impl Drop for Example {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn ask(address: SocketAddr, method: &str, path: &str, body: &Value) -> HttpReply {
    let headers = [("Content-Type", "application/json"), ("A2A-Version", "1.0")];
    let body = if body.is_null() { String::new() } else { body.to_string() };
    Http::connect(address).unwrap().exchange(method, path, &headers, body.as_bytes()).unwrap()
}

fn message(id: &str, text: &str) -> Value {
    json!({"message": {"messageId": id, "role": "ROLE_USER", "parts": [{"text": text}]}})
}

#[test]
fn the_echo_example_answers() {
    let example = Example::start("echo");
    let task = example.ask("POST", "/message:send", &message("1", "hello")).json();
    assert_eq!(task["task"]["status"]["state"], "TASK_STATE_COMPLETED", "{task}");
    assert_eq!(task["task"]["artifacts"][0]["parts"][0]["text"], "echo: hello");
    let card = example.ask("GET", "/.well-known/agent-card.json", &Value::Null).json();
    assert_eq!((&card["name"], &card["description"]), (&json!("echo"), &json!("Sends back what it gets")));
}

#[test]
fn the_writer_example_asks_streams_and_makes_a_file() {
    let example = Example::start("writer");
    let asked = example.ask("POST", "/message:send", &message("1", "write a poem")).json();
    assert_eq!(asked["task"]["status"]["state"], "TASK_STATE_INPUT_REQUIRED", "{asked}");
    let mut answer = message("2", "bees");
    answer["message"]["taskId"] = asked["task"]["id"].clone();
    let stream = example.ask("POST", "/message:stream", &answer).text();
    assert_eq!(stream.matches("bees at noon").count(), 1, "{stream}");
    let id = asked["task"]["id"].as_str().unwrap();
    let task = example.ask("GET", &format!("/tasks/{id}"), &Value::Null).json();
    assert_eq!(task["status"]["state"], "TASK_STATE_COMPLETED", "{task}");
    let artifacts = task["artifacts"].as_array().unwrap();
    assert_eq!(artifacts[0]["parts"][0]["filename"], "poem.txt");
    assert_eq!(artifacts[1]["parts"][0]["text"], "bees in the morning,\nbees at noon,\nand then sleep.\n");
}

#[test]
fn the_axum_example_has_its_own_pages_beside_the_agent() {
    let example = Example::start("in_axum");
    assert_eq!(example.ask("GET", "/", &Value::Null).text(), "the application's own page");
    let card = example.ask("GET", "/agent/.well-known/agent-card.json", &Value::Null).json();
    let url = card["supportedInterfaces"][0]["url"].as_str().unwrap();
    assert!(url.starts_with(&format!("http://{}/agent", example.address)), "{url}");
    let task = example.ask("POST", "/agent/message:send", &message("1", "hello")).json();
    assert_eq!(task["task"]["artifacts"][0]["parts"][0]["text"], "hello from axum", "{task}");
    let stream = example.ask("POST", "/agent/message:stream", &message("2", "hello")).text();
    assert!(stream.contains("TASK_STATE_COMPLETED"), "{stream}");
    let refused = example.ask("POST", "/agent/message:send", &json!({"message": 5}));
    assert_eq!(refused.status, 400, "{}", refused.text());
}

#[tokio::test]
async fn a_script_plays_turn_by_turn() {
    let script = Script::new().reply("one").progress("looking").ask("which?").reply("two").fail("three");
    let server = TestServer::start(Server::new().agent("scripted", script)).await.unwrap();
    let address = server.url().strip_prefix("http://").unwrap().parse().unwrap();
    let seen = tokio::task::spawn_blocking(move || {
        let send = |body: &Value| {
            let answer = ask(address, "POST", "/message:send", body).json()["task"].clone();
            (answer["id"].clone(), answer["status"]["state"].as_str().unwrap_or_default().to_owned())
        };
        let (_, first) = send(&message("1", "a"));
        let (asking, second) = send(&message("2", "b"));
        let mut answer = message("3", "this");
        answer["message"]["taskId"] = asking;
        let (_, third) = send(&answer);
        let (_, fourth) = send(&message("4", "c"));
        let (_, fifth) = send(&message("5", "d"));
        [first, second, third, fourth, fifth].map(|state| state.replace("TASK_STATE_", ""))
    });
    assert_eq!(seen.await.unwrap(), ["COMPLETED", "INPUT_REQUIRED", "COMPLETED", "FAILED", "FAILED"]);
    server.stop().await;
}

#[tokio::test]
async fn a_library_server_delivers_webhooks_unless_it_offers_none() {
    let key = format!("sabir-signing-key-{}", "07".repeat(32));
    let script = || Script::new().reply("one");
    let server = || Server::new().agent("a", script());
    let signed = server().webhook_ranges(["127.0.0.0/8"]).webhook_signing_key(key).webhook_secret("a shared secret");
    for (server, outcome) in [
        (signed, "delivered"),
        (server(), "refused 400"),
        (server().webhook_ranges(["127.0.0.0/8"]).without_webhooks(), "refused 400"),
    ] {
        let started = TestServer::start(server).await.unwrap();
        let address = started.url().strip_prefix("http://").unwrap().parse().unwrap();
        let seen = tokio::task::spawn_blocking(move || {
            let receiver = WebhookReceiver::start();
            let mut body = message("1", "hello");
            body["configuration"] = json!({"taskPushNotificationConfig": {"url": receiver.url("/")}});
            let reply = ask(address, "POST", "/message:send", &body);
            if reply.status != 200 {
                return format!("refused {}", reply.status);
            }
            let request = receiver.next();
            assert!(request.header("webhook-signature").starts_with("v1,"), "{request:?}");
            assert!(request.header("sabir-signature").contains(".."), "{request:?}");
            let jwks = ask(address, "GET", "/.well-known/jwks.json", &Value::Null).json();
            assert_eq!(jwks["keys"][0]["crv"], "Ed25519", "{jwks}");
            "delivered".to_owned()
        });
        assert_eq!(seen.await.unwrap(), outcome);
        started.stop().await;
    }
}

#[tokio::test]
async fn server_errors_have_types() {
    let script = Script::new;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tasks.db").display().to_string();
    let holder = Server::new().agent("a", script()).store(format!("sqlite:{file}")).start().await.unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    for (server, address, expected) in [
        (Server::new(), "127.0.0.1:0", "a server needs an agent"),
        (Server::new().agent("no spaces", script()), "127.0.0.1:0", "the agent id \"no spaces\""),
        (Server::new().agent("a", script()).agent("a", script()), "127.0.0.1:0", "two agents with the id \"a\""),
        (Server::new().agent("a", script()).store("mysql:x"), "127.0.0.1:0", "give `sqlite:PATH` or `memory:`"),
        (Server::new().agent("a", script()).store(format!("sqlite:{file}")), "127.0.0.1:0", "in use"),
        (Server::new().agent("a", script()).webhook_hosts(["a:80"]), "127.0.0.1:0", "`a:80` is not a host name"),
        (Server::new().agent("a", script()).webhook_ranges(["10/8"]), "127.0.0.1:0", "`10/8` is not a range"),
        (Server::new().agent("a", script()).store_key("x"), "127.0.0.1:0", "the key of the store is not a key"),
        (Server::new().agent("a", script()).webhook_signing_key("x"), "127.0.0.1:0", "is not a signing key"),
        (Server::new().agent("a", script()), "nowhere", "cannot listen on \"nowhere\""),
        (Server::new().agent("a", script()), &taken.local_addr().unwrap().to_string(), "Address already in use"),
    ] {
        let served = tokio::time::timeout(Duration::from_secs(30), server.serve(address)).await;
        let error: ServerError = served.unwrap_or_else(|_| panic!("it serves, without {expected:?}")).unwrap_err();
        assert!(error.to_string().contains(expected), "{error}, not {expected}");
    }
    holder.stop(Duration::from_secs(1)).await;
}
