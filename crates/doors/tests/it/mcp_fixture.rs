//! The MCP door in front of an engine with an agent of few words, and clients of both eras.

use std::sync::Arc;
use std::time::Duration;

use sabir_doors::mcp::{McpCall, McpDoor, McpHeaders, McpReply, McpSettings};
use sabir_engine::{Answer, ArtifactUpdate, Builder, Engine, Hosted, Outcome, Turn};
use sabir_model::{AgentId, Artifact, ArtifactId, Birth, Call, Caller, Json, List, Part, Required, Wanted};
use sabir_store::MemoryStore;
use sabir_testkit::scripted::ScriptedAgent;
use serde_json::{Value, json};
use tokio::sync::{Notify, mpsc};

pub struct DoorFixture {
    pub door: McpDoor,
    pub engine: Engine,
    /// Lets runs of `wait` end.
    pub go: Arc<Notify>,
}

/// As `initialize` of 2025-11-25 gives it to clients that can show forms.
pub const SESSION_WITH_FORMS: &str = "2025-11-25.forms.0000000000000001";
pub const LONG: Duration = Duration::from_secs(30);

impl DoorFixture {
    pub async fn new() -> Self {
        Self::waiting(LONG).await
    }

    pub async fn waiting(longest_wait: Duration) -> Self {
        Self::of(&["echo", "hidden"], longest_wait).await
    }

    /// Agents of these ids; `hidden` is not listed.
    pub async fn with_agents(ids: &[&str]) -> Self {
        Self::of(ids, LONG).await
    }

    async fn of(ids: &[&str], longest_wait: Duration) -> Self {
        let go = Arc::new(Notify::new());
        let mut builder = Builder::new(Arc::new(MemoryStore::new()));
        for &id in ids {
            let mut hosted = Hosted::new(AgentId::parse(id).unwrap(), Arc::new(agent(go.clone())));
            hosted.is_listed = id != "hidden";
            builder = builder.agent(hosted);
        }
        let engine = builder.start().await.unwrap();
        let settings = McpSettings { longest_wait, version: "1".into(), born: Birth(10) };
        Self { door: McpDoor::new(engine.clone(), settings), engine, go }
    }

    /// The status and the body that a POST is answered.
    pub async fn post(&self, caller: &Caller, headers: McpHeaders<'_>, body: &str) -> (u16, Value) {
        match self.door.receive_http(caller, headers, body.as_bytes()).await {
            McpReply::Accepted => (202, Value::Null),
            McpReply::Whole { status, body, .. } => (status, serde_json::from_slice(&body).unwrap()),
            McpReply::Call(call) => (200, finish(call).await),
        }
    }

    /// A request of a legacy client.
    pub async fn ask(&self, method: &str, params: Value) -> Value {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
        self.post(&Caller::anonymous(), McpHeaders::default(), &body).await.1
    }

    /// The result of a tool, for a legacy client.
    pub async fn tool(&self, name: &str, arguments: Value) -> Value {
        let answer = self.ask("tools/call", json!({"name": name, "arguments": arguments})).await;
        assert!(answer["result"].is_object(), "{answer}");
        answer["result"].clone()
    }

    /// A request of a modern client with these capabilities.
    pub async fn ask_modern(&self, capabilities: Value, method: &str, mut params: Value) -> (u16, Value) {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": capabilities,
        });
        let name = params["name"].as_str().or(params["uri"].as_str()).or(params["taskId"].as_str()).map(str::to_owned);
        let headers = McpHeaders {
            protocol_version: Some("2026-07-28"),
            method: Some(method),
            name: name.as_deref(),
            ..McpHeaders::default()
        };
        let body = json!({"jsonrpc": "2.0", "id": "m", "method": method, "params": params}).to_string();
        self.post(&Caller::anonymous(), headers, &body).await
    }

    /// A call of a legacy client that can show forms, which takes its time.
    pub async fn begin(&self, name: &str, arguments: Value) -> McpCall {
        let params = json!({"name": name, "arguments": arguments, "_meta": {"progressToken": "p"}});
        let body = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params}).to_string();
        let headers = McpHeaders { session: Some(SESSION_WITH_FORMS), ..McpHeaders::default() };
        match self.door.receive_http(&Caller::anonymous(), headers, body.as_bytes()).await {
            McpReply::Call(call) => call,
            _ => panic!("a call takes its time"),
        }
    }

    /// How many tasks there are.
    pub async fn stored_tasks(&self) -> u64 {
        let list = List {
            agent: None,
            context: None,
            state: None,
            since: None,
            page_size: 1,
            from: None,
            history: None,
            artifacts: Wanted::No,
        };
        match self.engine.call(&Caller::anonymous(), Call::List(list)).await.unwrap() {
            Answer::Page(page) => page.total,
            _ => panic!("a list is answered with something else"),
        }
    }

    /// What a client that can show forms answers to a request of the server.
    pub async fn respond(&self, id: &Value, result: Value) {
        let body = json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string();
        let (status, _) = self.post(&Caller::anonymous(), McpHeaders::default(), &body).await;
        assert_eq!(status, 202);
    }
}

pub async fn finish(call: McpCall) -> Value {
    let McpCall { mut messages, response, .. } = call;
    let reading = async { while messages.recv().await.is_some() {} };
    let ((), response) = tokio::join!(reading, response);
    serde_json::from_slice(&response).unwrap()
}

/// The next message of a call that is not a hint.
pub async fn next_request(messages: &mut mpsc::Receiver<Vec<u8>>) -> Value {
    loop {
        let message: Value = serde_json::from_slice(&messages.recv().await.expect("the call asks")).unwrap();
        if message["method"] != "notifications/progress" {
            return message;
        }
    }
}

/// Does what the first word says.
pub fn agent(go: Arc<Notify>) -> ScriptedAgent {
    ScriptedAgent::new(move |turn: Turn| {
        let go = go.clone();
        async move {
            let text = turn.message().text();
            let (word, rest) = text.split_once(' ').unwrap_or((&text, ""));
            let said = |answer: &str| Ok(Outcome::Completed(vec![Part::text(answer)]));
            match word {
                "wait" => {
                    turn.progress(rest).await;
                    tokio::select! {
                        () = go.notified() => said("waited"),
                        () = turn.cancelled() => Ok(Outcome::Canceled(Vec::new())),
                    }
                }
                "fail" => Ok(Outcome::Failed(vec![Part::text(rest)])),
                "ask" => {
                    let answer = turn.ask(Required::Input, vec![Part::text(rest)]).await?;
                    said(&format!("answered: {}", answer.text()))
                }
                "permission" => {
                    let question = r#"{"kind":"question","type":"permission","question":"may I?","choices":[
                        {"id":"yes1","name":"Allow once","kind":"allow_once"},
                        {"id":"no1","name":"Reject","kind":"reject_once"}]}"#;
                    let parts = vec![Part::text("rm -rf build"), Part::data(Json::parse(question).unwrap())];
                    if rest == "twice" {
                        turn.ask(Required::Input, parts.clone()).await?;
                    }
                    let answer = turn.ask(Required::Input, parts).await?;
                    let data = answer.parts.iter().find_map(|part| match &part.content {
                        sabir_model::Content::Data(data) => Some(data.as_str().to_owned()),
                        _ => None,
                    });
                    said(&format!("answered: {} {}", answer.text(), data.unwrap_or_default()))
                }
                // A long command, the end of which is in letters that nobody sees.
                "tool" => {
                    let question = json!({"kind": "question", "type": "permission", "question": "Run it?\u{202e}", "tool": "Bash",
                        "input": {"command": format!("ls {}; rm -rf /\u{e0041}", "x".repeat(1000))},
                        "choices": [{"id": "yes1", "name": "Allow\u{61c}", "kind": "allow_once"}]});
                    let parts = vec![Part::data(Json::parse(question.to_string()).unwrap())];
                    turn.ask(Required::Input, parts).await?;
                    said("asked")
                }
                "file" => Ok(Outcome::Completed(files())),
                "long" => {
                    let long = Artifact::new(ArtifactId::parse("a").unwrap(), vec![Part::text("é".repeat(600_000))]);
                    turn.artifact(long).await;
                    Ok(Outcome::Completed(Vec::new()))
                }
                "grow" => {
                    let piece =
                        |id: &str, text: &str| Artifact::new(ArtifactId::parse(id).unwrap(), vec![Part::text(text)]);
                    turn.artifact_update(ArtifactUpdate::new(piece("a", "first"))).await;
                    go.notified().await;
                    turn.artifact_update(ArtifactUpdate::new(piece("a", " second")).append(true).last(true)).await;
                    turn.artifact(piece("b", "third")).await;
                    Ok(Outcome::Completed(Vec::new()))
                }
                "artifact" => {
                    turn.artifact(Artifact::new(ArtifactId::parse("a").unwrap(), files())).await;
                    Ok(Outcome::Completed(Vec::new()))
                }
                _ => said(&format!("echo: {text}")),
            }
        }
    })
}

fn files() -> Vec<Part> {
    let zip = Part::file("a.zip", "application/zip", b"ZIP");
    vec![Part::text("see"), Part::file("a.png", "image/png", b"PNG"), zip]
}
