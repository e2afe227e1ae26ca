//! Helpers for scripted tests: feeds lines to a protocol and shows its steps as text.

use sabir_agents::adapter::{Adapter, Step};
use sabir_agents::prompt::Prompt;
use sabir_agents::update::{Question, Update};
use serde_json::Value;

pub const GREETED: &str = r#"{"id":1,"result":{"protocolVersion":1,"agentCapabilities":{"loadSession":true}}}"#;
pub const OPENED: &str = r#"{"id":2,"result":{"sessionId":"s"}}"#;

pub fn prompt() -> Prompt {
    Prompt { text: "go".into(), folder: "/w".into(), ..Prompt::default() }
}

pub fn resuming_prompt() -> Prompt {
    Prompt { session: Some("old".into()), ..prompt() }
}

/// All steps, as text.
pub fn run_lines(mut machine: impl Adapter, lines: &[&str]) -> String {
    let mut steps = machine.begin();
    steps.extend(lines.iter().flat_map(|line| machine.on_line(line)));
    steps.into_iter().map(step_text).collect::<Vec<_>>().join(", ")
}

pub fn written(mut machine: impl Adapter, lines: &[&str]) -> Vec<Value> {
    let mut steps = machine.begin();
    steps.extend(lines.iter().flat_map(|line| machine.on_line(line)));
    let line = |step| match step {
        Step::Write(line) => Some(serde_json::from_str(&line).unwrap()),
        _ => None,
    };
    steps.into_iter().filter_map(line).collect()
}

pub fn step_text(step: Step) -> String {
    match step {
        Step::Write(line) => {
            let line: Value = serde_json::from_str(&line).unwrap();
            match (line["method"].as_str(), line["error"]["code"].as_i64()) {
                (Some(method), _) => method.to_owned(),
                (None, Some(code)) => format!("answer {code}"),
                (None, None) => "prompt".into(),
            }
        }
        Step::Ask(Question { text, .. }) => format!("ask {text}"),
        Step::Withdraw(id) => format!("withdraw {id}"),
        Step::CloseInput => "close".into(),
        Step::Report(Update::Init { session, .. }) => format!("init {}", session.unwrap()),
        Step::Report(Update::Text(text)) => format!("text {text}"),
        Step::Report(Update::Progress(words)) => format!("progress {words}"),
        Step::Report(Update::Failed(words)) => format!("failed {words}"),
        Step::Report(Update::Done { .. }) => "done".into(),
        Step::Report(Update::Usage(_)) => "spent".into(),
        Step::Report(Update::Interrupted) => "interrupted".into(),
        Step::Report(other) => format!("{other:?}"),
    }
}
