//! Tasks of the default agent that others execute.

use std::sync::Arc;

use sabir_agents::routing::{Profile, Routes};
use sabir_engine::{About, Agent, AgentFuture, Builder, Engine, Hosted, Inputs, Outcome, Route, Turn};
use sabir_model::{AgentId, Json, Part};
use sabir_store::MemoryStore;

use crate::engine_fixture::{message, play};

/// Replies with its name and the model that it should use.
struct Named(&'static str);

impl Agent for Named {
    fn about(&self) -> About {
        let mut about = About::new(self.0, "").version("1");
        about.takes = Inputs::Listed;
        about
    }

    fn run(&self, turn: Turn) -> AgentFuture<'_> {
        let said = vec![Part::text(format!("{} {}", self.0, turn.model().unwrap_or("own model")))];
        let asks = turn.message().text().ends_with('?');
        Box::pin(async move { Ok(if asks { Outcome::InputRequired(said) } else { Outcome::Completed(said) }) })
    }
}

/// The default agent, one with its own address, and one that only routes lead to.
async fn engine() -> Engine {
    let id = |name: &str| AgentId::parse(name).unwrap();
    let hosted = |name: &'static str| Hosted::new(id(name), Arc::new(Named(name)));
    let route = |name: &str, model: Option<&str>| Route { agent: id(name), model: model.map(str::to_owned) };
    let routes = vec![(Profile::Complex, route("strong", Some("large"))), (Profile::Routine, route("quick", None))];
    let mut usual = hosted("usual");
    usual.is_default = true;
    usual.router = Some(Arc::new(Routes(routes)));
    let builder = Builder::new(Arc::new(MemoryStore::new())).agent(usual).agent(hosted("strong"));
    builder.routed_agent(hosted("quick")).start().await.unwrap()
}

#[tokio::test]
async fn a_task_goes_to_the_agent_of_its_profile() {
    let engine = engine().await;
    assert!(!engine.knows_agent("quick"), "only routes lead to it");
    for (id, text, metadata, expected) in [
        ("1", "Refactor the module", None, "strong large"),
        ("2", "Fix a typo", None, "quick own model"),
        ("3", "Say hello", None, "usual own model"),
        ("4", "Say hello", Some(r#"{"profile":"COMPLEX"}"#), "strong large"),
        ("5", "Refactor the module", Some(r#"{"profile":"Routine"}"#), "quick own model"),
        ("6", "Refactor the module", Some(r#"{"profile":7}"#), "strong large"),
    ] {
        let mut message = message(id, vec![Part::text(text)]);
        message.metadata = metadata.map(|text| Json::parse(text).unwrap());
        let (_, said) = play(&engine, message).await;
        assert_eq!(said, format!("Submitted Working Completed({expected})"), "{text} {metadata:?}");
    }
}

#[tokio::test]
async fn the_answer_goes_to_whoever_asked() {
    let engine = engine().await;
    let (task, said) = play(&engine, message("1", vec![Part::text("Refactor the module, will you?")])).await;
    assert_eq!(said, "Submitted Working InputRequired(strong large)");
    let mut answer = message("2", vec![Part::text("y")]);
    answer.task = task;
    let (_, said) = play(&engine, answer).await;
    assert!(said.ends_with("Completed(strong large)"), "{said}");
}
