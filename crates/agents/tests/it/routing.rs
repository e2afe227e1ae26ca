//! Turns of the default agent that go to others.

use std::sync::Arc;

use sabir_agents::routing::{ModelChoice, Profile, Route, RoutedAgent};
use sabir_engine::{About, Agent, AgentFuture, Inputs, Outcome, Streaming, Turn};
use sabir_model::{Json, Part};

use crate::stage::{engine, message, play};

/// Says its name, and the model that it was told to use.
struct Named(&'static str);

impl Agent for Named {
    fn about(&self) -> About {
        About {
            name: self.0.into(),
            description: String::new(),
            version: "1".into(),
            skills: Vec::new(),
            input_modes: vec!["text/plain".into()],
            output_modes: vec!["text/plain".into()],
            extensions: Vec::new(),
            takes: Inputs::Listed,
            streaming: Streaming::Offered,
        }
    }

    fn run(&self, turn: Turn) -> AgentFuture<'_> {
        self.run_with_model(turn, None)
    }
}

impl ModelChoice for Named {
    fn run_with_model(&self, turn: Turn, model: Option<&str>) -> AgentFuture<'_> {
        let said = vec![Part::text(format!("{} {}", self.0, model.unwrap_or("own model")))];
        let asks = turn.message().text().ends_with('?');
        Box::pin(async move { Ok(if asks { Outcome::InputRequired(said) } else { Outcome::Completed(said) }) })
    }
}

#[tokio::test]
async fn a_turn_goes_to_the_agent_of_its_profile() {
    let route = |profile, name, model: Option<&str>| Route {
        profile,
        agent: Arc::new(Named(name)),
        model: model.map(str::to_owned),
    };
    let routes = vec![route(Profile::Complex, "strong", Some("large")), route(Profile::Routine, "quick", None)];
    let routed = RoutedAgent::new(Arc::new(Named("usual")), routes);
    assert_eq!(routed.about().name, "usual");
    let engine = engine(routed).await;

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
    let route = Route { profile: Profile::Complex, agent: Arc::new(Named("strong")), model: None };
    let engine = engine(RoutedAgent::new(Arc::new(Named("usual")), vec![route])).await;
    let (task, said) = play(&engine, message("1", vec![Part::text("Refactor the module, will you?")])).await;
    assert_eq!(said, "Submitted Working InputRequired(strong own model)");
    let mut answer = message("2", vec![Part::text("y")]);
    answer.task = task;
    let (_, said) = play(&engine, answer).await;
    assert!(said.ends_with("Completed(strong own model)"), "{said}");
}
