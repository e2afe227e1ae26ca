//! What a turn of the library knows of its request, as clients send it over HTTP, and cards that change.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use axum::response::Response;
use sabir::testing::TestServer;
use sabir::{About, AboutFuture, Agent, AgentFuture, Caller, Extension, Server, Turn};
use sabir_testkit::http::Http;
use serde_json::{Value, json};
use tokio::sync::mpsc;

const V1: (&str, &str) = ("A2A-Version", "1.0");
const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

/// Answers with what its turn knows.
fn telling() -> impl Agent {
    let agent = sabir::agent("Tells what it knows", |turn: Turn| async move {
        let (caller, trace) = (turn.caller(), turn.trace());
        let told = json!({
            "subject": caller.subject(),
            "tenant": caller.tenant(),
            "scopes": caller.scopes,
            "extensions": turn.extensions(),
            "accepted": turn.accepted_output(),
            "text": turn.accepts("text/plain"),
            "parent": trace.map(|trace| trace.traceparent()),
            "state": trace.and_then(|trace| trace.tracestate()),
        });
        turn.reply(told.to_string()).await
    });
    agent.about(|about| about.extension(Extension::new("urn:a")).extension(Extension::new("urn:b")))
}

struct Sent<'a> {
    path: &'a str,
    headers: &'a [(&'a str, &'a str)],
    body: Value,
}

/// What the agent knew of this request.
fn known(address: SocketAddr, Sent { path, headers, body }: &Sent<'_>) -> Value {
    let reply = Http::connect(address).unwrap().exchange("POST", path, headers, body.to_string().as_bytes()).unwrap();
    let json = reply.json();
    let task = [&json["task"], &json["result"]["task"], &json["result"], &json]
        .into_iter()
        .find(|task| task["artifacts"].is_array());
    let task = task.unwrap_or_else(|| panic!("no task in {json}"));
    serde_json::from_str(task["artifacts"][0]["parts"][0]["text"].as_str().unwrap()).unwrap()
}

fn message(more: Value) -> Value {
    let mut message = json!({"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "hello"}]});
    message.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap_or_default());
    message
}

fn address_of(server: &TestServer) -> SocketAddr {
    server.url().strip_prefix("http://").unwrap().parse().unwrap()
}

#[tokio::test]
async fn a_turn_knows_what_its_request_asks_for() {
    let server = TestServer::start(Server::new().agent("a", telling())).await.unwrap();
    let address = address_of(&server);
    let nothing = json!({
        "subject": null, "tenant": null, "scopes": null, "extensions": [], "accepted": [], "text": true,
        "parent": null, "state": null,
    });
    let legacy = json!({
        "jsonrpc": "2.0", "id": 1, "method": "message/send",
        "params": {
            "message": {"messageId": "m", "role": "user", "kind": "message", "parts": [{"kind": "text", "text": "hello"}]},
            "configuration": {"blocking": true, "acceptedOutputModes": ["image/*"]},
        },
    });
    let rows = [
        (Sent { path: "/message:send", headers: &[V1], body: json!({"message": message(json!({}))}) }, json!({})),
        (
            Sent {
                path: "/message:send",
                headers: &[
                    V1,
                    ("A2A-Extensions", "urn:b, urn:unknown"),
                    ("traceparent", PARENT),
                    ("tracestate", "x=1"),
                    ("tracestate", "y=2"),
                ],
                body: json!({
                    "message": message(json!({"extensions": ["urn:a"]})),
                    "configuration": {"acceptedOutputModes": ["application/json", "text/*"]},
                }),
            },
            json!({
                "extensions": ["urn:a", "urn:b"], "accepted": ["application/json", "text/*"],
                "parent": PARENT, "state": "x=1,y=2",
            }),
        ),
        (
            Sent {
                path: "/a2a/jsonrpc",
                headers: &[("X-A2A-Extensions", "urn:a"), ("traceparent", PARENT)],
                body: legacy,
            },
            json!({"extensions": ["urn:a"], "accepted": ["image/*"], "text": false, "parent": PARENT}),
        ),
        // What is not valid, or could be either of two, is no trace.
        (
            Sent {
                path: "/message:send",
                headers: &[V1, ("traceparent", "00-1-2-3")],
                body: json!({"message": message(json!({}))}),
            },
            json!({}),
        ),
        (
            Sent {
                path: "/message:send",
                headers: &[V1, ("traceparent", PARENT), ("traceparent", PARENT)],
                body: json!({"message": message(json!({}))}),
            },
            json!({}),
        ),
    ];
    let seen = tokio::task::spawn_blocking(move || {
        for (sent, differs) in rows {
            let mut expected = nothing.clone();
            expected.as_object_mut().unwrap().extend(differs.as_object().unwrap().clone());
            assert_eq!(known(address, &sent), expected, "{} {:?}", sent.path, sent.headers);
        }
    });
    seen.await.unwrap();
    server.stop().await;
}

/// Lets everybody in who says who it is.
async fn authenticate(mut request: Request, next: Next) -> Response {
    if let Some(name) = request.headers().get("x-user").and_then(|name| name.to_str().ok()) {
        let caller = Caller::new("acme", name).with_scopes(["run"]);
        request.extensions_mut().insert(caller);
    }
    next.run(request).await
}

#[tokio::test]
async fn whoever_mounts_the_server_says_who_calls() {
    let service = Server::new().agent("a", telling()).service().await.unwrap();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let app = Router::new().fallback_service(service).layer(from_fn(authenticate));
    tokio::spawn(axum::serve(listener, app).into_future());
    let seen = tokio::task::spawn_blocking(move || {
        let body = json!({"message": message(json!({}))});
        let sent = Sent { path: "/message:send", headers: &[V1, ("X-User", "alice")], body: body.clone() };
        let alice = known(address, &sent);
        assert_eq!((&alice["subject"], &alice["tenant"]), (&json!("alice"), &json!("acme")));
        assert_eq!(alice["scopes"], json!(["run"]));
        let anonymous = known(address, &Sent { path: "/message:send", headers: &[V1], body });
        assert_eq!((&anonymous["subject"], &anonymous["scopes"]), (&Value::Null, &Value::Null));
        // Tasks of others are not there.
        ["alice", "bob"].map(|name| {
            let reply = Http::connect(address).unwrap().exchange("GET", "/tasks", &[V1, ("X-User", name)], b"");
            reply.unwrap().json()["tasks"].as_array().unwrap().len()
        })
    });
    assert_eq!(seen.await.unwrap(), [1, 0]);
}

/// An agent whose card changes when the test says so.
struct Changing {
    changes: tokio::sync::Mutex<mpsc::UnboundedReceiver<About>>,
    /// How often it was asked for its next card.
    asked: mpsc::UnboundedSender<()>,
}

impl Agent for Changing {
    fn about(&self) -> About {
        About::new("", "before")
    }

    fn next_about(&self) -> Option<AboutFuture<'_>> {
        let _ = self.asked.send(());
        Some(Box::pin(async {
            match self.changes.lock().await.recv().await {
                Some(about) => about,
                None => std::future::pending().await,
            }
        }))
    }

    fn run(&self, turn: Turn) -> AgentFuture<'_> {
        Box::pin(async move { turn.reply("done").await })
    }
}

#[tokio::test]
async fn a_card_that_changes_is_shown_and_kept() {
    let (change, changes) = mpsc::unbounded_channel();
    let (asked, mut was_asked) = mpsc::unbounded_channel();
    let agent = Changing { changes: tokio::sync::Mutex::new(changes), asked };
    let server = TestServer::start(Server::new().agent("front", agent)).await.unwrap();
    let address = address_of(&server);
    let look = move || {
        let mut http = Http::connect(address).unwrap();
        let card = http.exchange("GET", "/.well-known/agent-card.json", &[], b"").unwrap();
        let stream = json!({"message": message(json!({}))}).to_string();
        let streamed = http.exchange("POST", "/message:stream", &[("A2A-Version", "1.0")], stream.as_bytes()).unwrap();
        let (etag, card) = (card.header("etag").unwrap().to_owned(), card.json());
        (card["name"].clone(), card["description"].clone(), streamed.status, etag)
    };
    let before = tokio::task::spawn_blocking(look).await.unwrap();
    assert_eq!((&before.0, &before.1, before.2), (&json!("front"), &json!("before"), 200));
    change.send(About::new("", "after").without_streaming()).unwrap();
    // At the start it is asked twice: whether its card changes at all, and for the first change.
    for _ in 0..3 {
        was_asked.recv().await.unwrap();
    }
    let after = tokio::task::spawn_blocking(look).await.unwrap();
    assert_eq!((&after.0, &after.1, after.2), (&json!("front"), &json!("after"), 400));
    assert_ne!(before.3, after.3);
    server.stop().await;
}

/// A turn that waits for its slot, or that runs after a restart, knows its request as well.
#[tokio::test]
async fn what_is_known_of_a_request_survives_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let store = format!("sqlite:{}", folder.path().join("tasks.db").display());
    let seen: Arc<Mutex<Vec<Value>>> = Arc::default();
    let agent = |is_stuck: bool, seen: Arc<Mutex<Vec<Value>>>| {
        sabir::agent("Waits", move |turn: Turn| {
            let seen = seen.clone();
            async move {
                let memory = turn.task_memory().await?;
                seen.lock().unwrap().push(json!([
                    turn.message().text(),
                    turn.trace().map(|trace| trace.traceparent()),
                    turn.accepted_output(),
                    memory,
                ]));
                turn.remember_in_task(Some(turn.message().text())).await;
                if is_stuck {
                    turn.progress("working").await;
                    turn.cancelled().await;
                }
                turn.reply("done").await
            }
        })
    };
    let limits = sabir::Limits::default().concurrent(1);
    let first = Server::new().agent_within("a", agent(true, seen.clone()), limits).store(&store);
    let first = TestServer::start(first).await.unwrap();
    let address = address_of(&first);
    let send = move |text: &str| {
        let mut sent = message(json!({"messageId": text}));
        sent["parts"][0]["text"] = json!(text);
        let body = json!({
            "message": sent,
            "configuration": {"returnImmediately": true, "acceptedOutputModes": ["text/plain"]},
        });
        let headers = [("A2A-Version", "1.0"), ("traceparent", PARENT)];
        Http::connect(address)
            .unwrap()
            .exchange("POST", "/message:send", &headers, body.to_string().as_bytes())
            .unwrap();
    };
    tokio::task::spawn_blocking(move || ["running", "queued"].map(send)).await.unwrap();
    first.stop().await;
    let second = TestServer::start(Server::new().agent("a", agent(false, seen.clone())).store(&store)).await.unwrap();
    let address = address_of(&second);
    let settled = tokio::task::spawn_blocking(move || {
        loop {
            let list =
                Http::connect(address).unwrap().exchange("GET", "/tasks", &[("A2A-Version", "1.0")], b"").unwrap();
            let states: Vec<String> = list.json()["tasks"]
                .as_array()
                .unwrap()
                .iter()
                .map(|task| task["status"]["state"].to_string())
                .collect();
            if states.iter().any(|state| state.contains("COMPLETED")) {
                return states.len();
            }
            std::thread::yield_now();
        }
    });
    assert_eq!(settled.await.unwrap(), 2);
    let known = |text: &str| json!([text, PARENT, ["text/plain"], null]);
    assert_eq!(*seen.lock().unwrap(), [known("running"), known("queued")]);
    second.stop().await;
}
