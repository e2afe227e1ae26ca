//! The agent: its card, its turns, and what survives a restart of this server.

use sabir_engine::{About, Agent, AgentFuture, Effects, InterruptedRun, Survives, Turn};
use sabir_model::{Skill, tool_call_extension};

use super::completion::Quirks;
use super::input::IMAGE_TYPES;
use super::settings::OpenAiSettings;
use super::turn::{self, CALLED_TOOLS};
use crate::program::Host;

pub struct OpenAiAgent {
    settings: OpenAiSettings,
    host: Host,
    quirks: Quirks,
}

impl OpenAiAgent {
    pub fn new(settings: OpenAiSettings, host: Host) -> Self {
        OpenAiAgent { settings, host, quirks: Quirks::default() }
    }
}

impl Agent for OpenAiAgent {
    fn about(&self) -> About {
        let does = format!("Answers with the model {}", self.settings.model);
        let inputs = ["text/plain", "text/markdown", "text/csv", "text/html", "application/json"];
        let mut about = About::new("", &does).version(env!("CARGO_PKG_VERSION")).skill(Skill {
            id: "chat".into(),
            name: "Chat".into(),
            description: does.clone(),
            tags: vec!["chat".into()],
            ..Skill::default()
        });
        about.input_modes = inputs.into_iter().chain(IMAGE_TYPES).map(str::to_owned).collect();
        if !self.settings.tool_servers.is_empty() {
            about = about.extension(tool_call_extension());
        }
        about
    }

    fn run(&self, turn: Turn) -> AgentFuture<'_> {
        Box::pin(async move { turn::work(&self.settings, &self.quirks, &self.host, &turn).await })
    }

    fn effects(&self) -> Effects {
        Effects::Anywhere
    }

    /// To ask the model again does no harm. What a tool has done is not done again.
    fn survives_restart(&self, run: &InterruptedRun<'_>) -> Survives {
        let has_called_tools = run.task_memory == Some(CALLED_TOOLS);
        if has_called_tools || run.question.is_some() { Survives::Nothing } else { Survives::Runs }
    }
}
