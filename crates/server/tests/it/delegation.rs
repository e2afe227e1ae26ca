//! The credential of a program that works on a task: what it is worth, and where.

use std::sync::Arc;

use sabir_engine::{AgentError, Builder, Hosted, Outcome, Turn};
use sabir_model::AgentId;
use sabir_server::{AuthSettings, Credential, Digest, Grant, ServerSettings};
use sabir_store::MemoryStore;
use sabir_testkit::scripted::ScriptedAgent;
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};

use crate::{Served, Told, ask, serve_engine};

/// A server with `demo` and `coder`, whose program tells its credential and works until it is told to end.
struct Fixture {
    served: Served,
    credentials: mpsc::UnboundedReceiver<String>,
    end: watch::Sender<bool>,
}

impl Fixture {
    async fn new(auth: AuthSettings) -> Self {
        let (sender, credentials) = mpsc::unbounded_channel();
        let (end, ends) = watch::channel(false);
        let coder = ScriptedAgent::new(move |turn: Turn| {
            let (sender, mut ends) = (sender.clone(), ends.clone());
            async move {
                let credential = turn.program_credential();
                let _lent = credential.lend(turn.delegate(None));
                let _ = sender.send(credential.text().to_owned());
                let _ = ends.wait_for(|end| *end).await;
                Ok::<_, AgentError>(Outcome::Completed(Vec::new()))
            }
        });
        let coder = Hosted::new(AgentId::parse("coder").unwrap(), Arc::new(coder));
        let builder = Builder::new(Arc::new(MemoryStore::new())).agent(coder);
        let served = serve_engine(builder, |settings| ServerSettings { auth, ..settings }).await;
        Self { served, credentials, end }
    }

    async fn tool(&self, credential: &str, name: &str, arguments: Value) -> Told {
        let params = json!({"name": name, "arguments": arguments});
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string();
        let bearer = format!("Bearer {credential}");
        let headers = if credential.is_empty() { vec![] } else { vec![("Authorization", bearer.as_str())] };
        ask(self.served.address, "POST", "/mcp", &headers, &body).await
    }

    /// Begins a task of the coder. Returns its id, and the credential of its program.
    async fn begin(&mut self, owner: &str) -> (String, String) {
        let asked = json!({"agent": "coder", "message": "build", "wait_seconds": 0});
        let begun = self.tool(owner, "ask_agent", asked).await.json();
        let task = begun["result"]["structuredContent"]["task"].as_str().unwrap().to_owned();
        (task, self.credentials.recv().await.unwrap())
    }

    async fn task(&self, owner: &str, task: &str) -> Told {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": {"id": task}}).to_string();
        let bearer = format!("Bearer {owner}");
        let headers = if owner.is_empty() { vec![] } else { vec![("Authorization", bearer.as_str())] };
        ask(self.served.address, "POST", "/", &headers, &body).await
    }
}

fn with_tokens() -> AuthSettings {
    let credential = |secret: &str, subject: &str| Credential {
        digest: Digest::of(secret.as_bytes()),
        grant: Grant { subject: subject.into(), tenant: String::new(), scopes: vec!["run".into()] },
    };
    AuthSettings { tokens: vec![credential("alices", "alice"), credential("bobs", "bob")], ..AuthSettings::default() }
}

#[tokio::test]
async fn a_program_asks_agents_in_the_name_of_its_task() {
    for (auth, owner) in [(AuthSettings::default(), ""), (with_tokens(), "alices")] {
        let mut fixture = Fixture::new(auth).await;
        let (parent, credential) = fixture.begin(owner).await;
        let agents = fixture.tool(&credential, "list_agents", json!({})).await.json();
        let agents = &agents["result"]["structuredContent"]["agents"];
        assert_eq!((agents.as_array().unwrap().len(), &agents[0]["id"]), (1, &json!("demo")), "{agents}");
        let asked = json!({"agent": "demo", "message": "hello"});
        let told = fixture.tool(&credential, "ask_agent", asked).await.json();
        let told = &told["result"]["structuredContent"];
        assert_eq!((&told["state"], &told["answer"]), (&json!("completed"), &json!("echo: hello")), "{told}");
        let child = told["task"].as_str().unwrap();
        let seen = fixture.task(owner, child).await.json();
        assert_eq!(seen["result"]["history"][0]["referenceTaskIds"], json!([parent]), "{seen}");
        let cycle = fixture.tool(&credential, "ask_agent", json!({"agent": "coder", "message": "x"})).await.json();
        assert_eq!(cycle["result"]["isError"], true);
        assert!(cycle["result"]["content"][0]["text"].as_str().unwrap().contains("cycle: coder -> coder"), "{cycle}");
        let own = fixture.tool(&credential, "get_task", json!({"task": parent})).await.json();
        assert_eq!(own["result"]["isError"], true, "its own task is none that it has delegated: {own}");
        if owner == "alices" {
            assert!(fixture.task("bobs", child).await.json()["result"].is_null());
        }
    }
}

#[tokio::test]
async fn the_credential_counts_at_the_door_alone_and_during_the_turn_alone() {
    for (auth, owner) in [(AuthSettings::default(), ""), (with_tokens(), "alices")] {
        let mut fixture = Fixture::new(auth).await;
        let (parent, credential) = fixture.begin(owner).await;
        let elsewhere = fixture.task(&credential, &parent).await;
        assert_eq!(elsewhere.status, 401, "{}", elsewhere.body);
        let bearer = format!("Bearer {credential}");
        for (verb, path) in [("GET", "/a2a/rest/tasks/x"), ("POST", "/message:send"), ("GET", "/admin/tasks")] {
            let told = ask(fixture.served.address, verb, path, &[("Authorization", &bearer)], "").await;
            assert_eq!(told.status, 401, "{verb} {path}: {}", told.body);
        }
        let shortened = &credential[..credential.len() - 1];
        for wrong in [
            "sabir_d_",
            shortened,
            &format!("{credential}0"),
            &credential.to_uppercase().replace("SABIR_D_", "sabir_d_"),
        ] {
            let told = fixture.tool(wrong, "list_agents", json!({})).await;
            assert_eq!(told.status, 401, "{wrong}");
            assert!(!told.body.contains(shortened) && !told.head.contains(shortened));
        }
        assert_eq!(fixture.tool(&credential, "list_agents", json!({})).await.status, 200);
        fixture.end.send_replace(true);
        while fixture.task(owner, &parent).await.json()["result"]["status"]["state"] != "TASK_STATE_COMPLETED" {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
        assert_eq!(fixture.tool(&credential, "list_agents", json!({})).await.status, 401);
    }
}
