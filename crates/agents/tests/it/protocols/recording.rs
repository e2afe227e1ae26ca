//! Recorded conversations with programs: what the client wrote and what the program wrote, line by line.

use std::fs;
use std::path::{Path, PathBuf};

use sabir_agents::adapter::Adapter;
use sabir_agents::prompt::Prompt;
use sabir_agents::protocols::{Acp, ClaudeControl, CodexServer};
use serde_json::Value;

pub struct Recording {
    pub name: String,
    pub speaks: Speaks,
    /// Everything before the first prompt. A turn in its own process needs it.
    greeting: Vec<Line>,
    turns: Vec<Vec<Line>>,
}

#[derive(Clone)]
pub enum Line {
    Sent(Value),
    Received(Value),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Speaks {
    Acp,
    Claude,
    Codex,
}

/// One turn with the greeting before it, and the protocol for it.
pub struct Turn {
    pub prompt: Prompt,
    pub machine: Box<dyn Adapter>,
    pub lines: Vec<Line>,
    /// Without the greeting.
    pub lines_alone: Vec<Line>,
}

/// All programs with two-way recordings, and their recordings, sorted by name.
pub fn all() -> Vec<(String, Vec<Recording>)> {
    let index = fs::read_to_string(folder().join("transcripts/index.json")).unwrap();
    let index: Vec<Value> = serde_json::from_str(&index).unwrap();
    let mut files: Vec<(String, String)> = index
        .iter()
        .filter(|entry| entry["kind"] == "duplex")
        .map(|entry| (entry["cli"].as_str().unwrap().to_owned(), entry["scenario"].as_str().unwrap().to_owned()))
        .collect();
    files.sort();
    assert_eq!(files, on_disk(), "the index and the files differ");
    let mut programs: Vec<(String, Vec<Recording>)> = Vec::new();
    for (program, name) in files {
        let recording = Recording::read(&program, name);
        match programs.last_mut() {
            Some((last, recordings)) if *last == program => recordings.push(recording),
            _ => programs.push((program, vec![recording])),
        }
    }
    programs
}

pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests")
}

impl Recording {
    fn read(program: &str, name: String) -> Self {
        let speaks = match name.split('-').next() {
            Some("acp") => Speaks::Acp,
            Some("app") => Speaks::Codex,
            Some("ctl") => Speaks::Claude,
            other => panic!("no adapter for {other:?}"),
        };
        let text = fs::read_to_string(folder().join(format!("transcripts/{program}/{name}.ndjson"))).unwrap();
        let mut lines = text.lines().filter_map(line).peekable();
        let is_no_prompt = |line: &Line| !matches!(line, Line::Sent(message) if prompt_text(message).is_some());
        let greeting = std::iter::from_fn(|| lines.next_if(is_no_prompt)).collect();
        let mut turns: Vec<Vec<Line>> = Vec::new();
        for line in lines {
            if !is_no_prompt(&line) {
                turns.push(Vec::new());
            }
            turns.last_mut().unwrap().push(line);
        }
        Self { name, speaks, greeting, turns }
    }

    pub fn turns(&self) -> impl Iterator<Item = Turn> {
        self.turns.iter().enumerate().map(|(number, turn)| {
            let lines: Vec<Line> = self.greeting.iter().chain(turn).cloned().collect();
            let mut prompt =
                Prompt { id: Some(format!("turn-{number}")), folder: "/workspace".into(), ..Prompt::default() };
            for line in &lines {
                let Line::Sent(message) = line else { continue };
                prompt.text = prompt_text(message).unwrap_or(prompt.text);
                let session = match message["method"].as_str() {
                    Some("session/load" | "session/resume") => message["params"]["sessionId"].as_str(),
                    Some("thread/resume") => message["params"]["threadId"].as_str(),
                    _ => None,
                };
                prompt.session = session.map(str::to_owned).or(prompt.session);
            }
            let again = prompt.clone();
            let machine: Box<dyn Adapter> = match self.speaks {
                Speaks::Acp => Box::new(Acp::new(prompt, Vec::new())),
                Speaks::Claude => Box::new(ClaudeControl::new(prompt, Vec::new())),
                Speaks::Codex => Box::new(CodexServer::new(prompt, Vec::new())),
            };
            Turn { prompt: again, machine, lines, lines_alone: turn.clone() }
        })
    }
}

fn line(text: &str) -> Option<Line> {
    let mut line: Value = serde_json::from_str(text).unwrap();
    let message = line["msg"].take();
    match line["dir"].as_str() {
        Some("send") => Some(Line::Sent(message)),
        Some("recv") => Some(Line::Received(message)),
        _ => None,
    }
}

/// The text of a line that begins a turn.
fn prompt_text(message: &Value) -> Option<String> {
    let content = match (message["method"].as_str(), message["type"].as_str()) {
        (Some("session/prompt"), _) => &message["params"]["prompt"],
        (Some("turn/start"), _) => &message["params"]["input"],
        (None, Some("user")) => &message["message"]["content"],
        _ => return None,
    };
    content[0]["text"].as_str().map(str::to_owned)
}

fn on_disk() -> Vec<(String, String)> {
    let mut files = Vec::new();
    for program in fs::read_dir(folder().join("transcripts")).unwrap() {
        let program = program.unwrap();
        if !program.file_type().unwrap().is_dir() {
            continue;
        }
        for file in fs::read_dir(program.path()).unwrap() {
            let name = file.unwrap().file_name().into_string().unwrap();
            let name = name.trim_end_matches(".ndjson").to_owned();
            if ["acp-", "app-", "ctl-"].iter().any(|prefix| name.starts_with(prefix)) {
                files.push((program.file_name().into_string().unwrap(), name));
            }
        }
    }
    files.sort();
    files
}
