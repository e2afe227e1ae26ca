//! Chat completions in front of an engine with an agent of few words.

use std::sync::Arc;

use futures_util::StreamExt;
use sabir_doors::openai::{Chat, ChatHeaders, OpenAiDoor, Refusal};
use sabir_engine::{Answer, Builder, Engine, Hosted};
use sabir_model::{AgentId, Birth, Call, Caller, ContextId, List, Task, Wanted};
use sabir_store::MemoryStore;
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::mcp_fixture::agent;

pub struct OpenAiFixture {
    pub door: OpenAiDoor,
    pub engine: Engine,
    /// Lets runs of `wait` end.
    pub go: Arc<Notify>,
}

/// A request that names its context.
pub const IN_CONTEXT: ChatHeaders<'_> =
    ChatHeaders { context: Some("c1"), idempotency_key: None, retries: None, trace: None };

impl OpenAiFixture {
    pub async fn new() -> Self {
        let go = Arc::new(Notify::new());
        let mut builder = Builder::new(Arc::new(MemoryStore::new()));
        for id in ["echo", "guarded", "hidden"] {
            let mut hosted = Hosted::new(AgentId::parse(id).unwrap(), Arc::new(agent(go.clone())));
            hosted.is_listed = id != "hidden";
            hosted.approver = (id == "guarded").then(|| "ops".into());
            builder = builder.agent(hosted);
        }
        let engine = builder.start().await.unwrap();
        Self { door: OpenAiDoor::new(engine.clone(), Birth(10)), engine, go }
    }

    pub async fn begin(&self, caller: &Caller, headers: ChatHeaders<'_>, body: &Value) -> Result<Chat, Refusal> {
        self.door.begin(caller, headers, body.to_string().as_bytes()).await
    }

    /// The whole completion.
    pub async fn ask(&self, headers: ChatHeaders<'_>, body: &Value) -> Result<Value, Refusal> {
        let chat = self.begin(&Caller::anonymous(), headers, body).await?;
        Ok(serde_json::from_slice(&chat.whole().await?).unwrap())
    }

    /// What the assistant says to this message.
    pub async fn say(&self, headers: ChatHeaders<'_>, text: &str) -> String {
        content(&self.ask(headers, &user(text)).await.unwrap())
    }

    /// The data of all events.
    pub async fn stream(&self, headers: ChatHeaders<'_>, mut body: Value) -> Vec<String> {
        body["stream"] = json!(true);
        let chat = self.begin(&Caller::anonymous(), headers, &body).await.unwrap();
        chat.events().map(|data| String::from_utf8(data).unwrap()).collect().await
    }

    pub async fn tasks(&self, context: Option<&str>) -> Vec<Task> {
        let context = context.map(|id| ContextId::parse(id).unwrap());
        let list = List {
            agent: None,
            context,
            state: None,
            since: None,
            page_size: 100,
            from: None,
            history: None,
            artifacts: Wanted::Yes,
        };
        match self.engine.call(&Caller::anonymous(), Call::List(list)).await.unwrap() {
            Answer::Page(page) => page.tasks,
            _ => panic!("a list is a page"),
        }
    }
}

/// A request with one message of the user.
pub fn user(text: &str) -> Value {
    json!({"model": "echo", "messages": [{"role": "user", "content": text}]})
}

pub fn content(completion: &Value) -> String {
    assert_eq!(completion["choices"][0]["finish_reason"], "stop", "{completion}");
    completion["choices"][0]["message"]["content"].as_str().unwrap().to_owned()
}

/// The status and the code of a refusal.
pub fn refused<T>(answered: Result<T, Refusal>) -> (u16, String) {
    let Err(refusal) = answered else { panic!("it is refused") };
    let body: Value = serde_json::from_slice(&refusal.body()).unwrap();
    (refusal.status, body["error"]["code"].as_str().unwrap_or_default().to_owned())
}

/// The text in the chunks of a stream.
pub fn text_of(events: &[String]) -> String {
    let chunks =
        events.iter().filter(|data| *data != "[DONE]").map(|data| serde_json::from_str::<Value>(data).unwrap());
    chunks.filter_map(|chunk| Some(chunk["choices"][0]["delta"]["content"].as_str()?.to_owned())).collect()
}
