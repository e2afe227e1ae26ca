//! Settings of agents that are a model behind a server (`kind = "openai"`).

use serde_json::json;

use super::mcp_servers::mcp_servers;
use super::origin::{Configured, Problem};
use super::paths::prompt_file;
use super::raw::Raw;
use super::remote_agents::remote_url;
use super::sections::AgentConfig;
use super::settings::{ForWhom, Setting};
use super::upstream_credentials;
use super::values::*;

type Row = Setting<AgentConfig>;

/// The keys that only such an agent has.
pub fn openai_settings() -> Vec<Row> {
    let rows = vec![
        Row::new("base_url", "", optional(remote_url()), |agent| &mut agent.remote.url).help(
            "Where the server of the model is: `/chat/completions` is added. Its host and port are trusted, also if they \
             are not public.",
        ),
        Row::new("system_prompt", "", optional(text()), |agent| &mut agent.openai.system_prompt)
            .help("What the model is told before every conversation."),
        Row::new("system_prompt_file", "", optional(prompt_file()), |agent| &mut agent.openai.system_prompt_file)
            .help("A file with that text. It is read when the server starts."),
        Row::new("temperature", "", optional(temperature()), |agent| &mut agent.openai.temperature)
            .help("From 0 to 2; without it what the server takes."),
        Row::new("max_tokens", "", optional(count(1..=u64::from(u32::MAX))), |agent| &mut agent.openai.max_tokens)
            .help("The most tokens of one answer of the model; a longer one is cut off, which callers are told."),
        Row::new("history_messages", "50", count(0..=10_000), |agent| &mut agent.openai.history_messages).help(
            "How many messages of a context the model gets again with the next one; the oldest turns are left out first. \
             With `0` every message stands alone.",
        ),
        Row::new("history_size", "256KiB", size(), |agent| &mut agent.openai.history_size)
            .help("How much text of a context the model gets again, in the same way."),
        Row::new("answer_timeout", "5m", interval(), |agent| &mut agent.openai.answer_timeout)
            .help("How long the server may take until it begins its answer."),
        Row::new("silence_timeout", "2m", interval(), |agent| &mut agent.openai.silence_timeout)
            .help("How long an answer may pause before the task fails."),
        Row::new("mcp_servers", "", mcp_servers(), |agent| &mut agent.openai.mcp_servers).help(
            "The tools that the model may use, as a table of MCP servers by name: `{ command = [\"program\", \"argument\"], \
             env = { A = \"b\" }, pass_env = [\"TOKEN\"] }`, or `{ url = \"https://...\", token_env = \"TOKEN\", headers = {} }`.",
        ),
        Row::new("tool_timeout", "2m", interval(), |agent| &mut agent.openai.tool_timeout)
            .help("How long one call of a tool may take; after that the model is told so."),
        Row::new("max_tool_rounds", "20", count(0..=1000), |agent| &mut agent.openai.max_tool_rounds)
            .help("How often in one task the model may call tools and continue with their results. After that it must answer."),
        Row::new("approve_tools", "false", switch(), |agent| &mut agent.openai.approve_tools)
            .help("Ask the caller for permission before each call of a tool."),
    ];
    rows.into_iter().map(|row| row.only_for(ForWhom::OpenAi)).collect()
}

/// What is wrong with such an agent.
pub fn check(agent: &Configured<AgentConfig>) -> Vec<Problem> {
    let origin = &agent.value("kind").origin;
    let mut problems = Vec::new();
    if agent.subject.remote.url.is_none() {
        let words = "is \"openai\", which needs the address of a server; add base_url = \"https://.../v1\"";
        problems.push(Problem::of(origin, "kind", words));
    }
    if agent.subject.program.model.is_none() {
        let words = "is \"openai\", which needs a model; add model = \"...\", in the words of its server";
        problems.push(Problem::of(origin, "kind", words));
    }
    if agent.subject.openai.system_prompt.is_some() && agent.subject.openai.system_prompt_file.is_some() {
        let words = "is set beside system_prompt; leave one of them out";
        problems.push(Problem::of(&agent.value("system_prompt_file").origin, "system_prompt_file", words));
    }
    if problems.is_empty() {
        problems.extend(upstream_credentials::check(agent));
    }
    problems
}

fn temperature() -> ValueKind<f64> {
    ValueKind::expecting("a number from 0 to 2", json!({"type": ["number", "integer"]}), |raw| {
        let number = match raw {
            Raw::Float(number) => *number,
            Raw::Integer(number) => f64::from(i32::try_from(*number).ok()?),
            Raw::Untyped(text) => text.trim().parse().ok()?,
            _ => return None,
        };
        (0.0..=2.0).contains(&number).then(|| (number, json!(number)))
    })
}
