//! Output formats on recorded runs of the real programs: one file of expected updates per program.
//!
//! `UPDATE_GOLDEN=1` rewrites them; read the difference beside the recording.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use sabir_agents::adapter::Exit;
use sabir_agents::output_formats::one_shot;
use sabir_agents::program::settings::Kind;
use sabir_agents::prompt::Prompt;
use serde_json::Value;

use crate::step_rows::read_output;

#[test]
fn every_recorded_run_is_understood() {
    let mut said: BTreeMap<String, String> = BTreeMap::new();
    for run in runs() {
        let rows = understand(&run);
        said.entry(run.program).or_default().push_str(&format!("== {}, {:?}\n{rows}\n", run.scenario, run.exit));
    }
    assert_eq!(said.len(), 8, "programs that were recorded");
    for (program, rows) in said {
        let path = folder("expected").join(format!("{program}.txt"));
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            fs::write(&path, &rows).unwrap();
        }
        let expected = fs::read_to_string(&path).unwrap_or_else(|_| panic!("{program} has no expectations"));
        assert_eq!(rows, expected, "{program}");
    }
}

#[test]
fn what_failed_or_was_stopped_is_never_done() {
    let mut seen = 0;
    for run in runs() {
        let is_bad = ["error", "cut", "slow-sig"].iter().any(|start| run.scenario.starts_with(start));
        // Claude Code asked a second time after the cut, and was answered.
        let has_recovered = (run.program.as_str(), run.scenario.as_str()) == ("claude-code", "cut");
        if !is_bad || has_recovered {
            continue;
        }
        seen += 1;
        let rows = understand(&run);
        assert!(!rows.lines().any(|row| row.starts_with("done")), "{} {}:\n{rows}", run.program, run.scenario);
    }
    assert_eq!(seen, 24);
}

struct Run {
    program: String,
    scenario: String,
    exit: Exit,
    output: String,
}

fn runs() -> Vec<Run> {
    let index = fs::read_to_string(folder("transcripts").join("index.json")).unwrap();
    let entries: Vec<Value> = serde_json::from_str(&index).unwrap();
    let printed = entries.iter().filter(|entry| entry["kind"] == "stdout");
    printed
        .map(|entry| {
            let text = |name: &str| entry[name].as_str().unwrap().to_owned();
            let status = i32::try_from(entry["exit"].as_i64().unwrap()).unwrap();
            Run {
                program: text("cli"),
                scenario: text("scenario"),
                exit: if status < 0 { Exit::Signal(-status) } else { Exit::Code(status) },
                output: fs::read_to_string(folder("transcripts").join(text("file"))).unwrap(),
            }
        })
        .collect()
}

fn understand(run: &Run) -> String {
    let session = run.scenario.starts_with("resume").then(|| "the one before".to_owned());
    let (_, mut adapter) = one_shot(kind(&run.program), &Prompt { session, ..Prompt::default() });
    read_output(&mut *adapter, &run.output, run.exit)
}

fn kind(program: &str) -> Kind {
    match program {
        "claude-code" => Kind::ClaudeCode,
        "codex" => Kind::Codex,
        "copilot" => Kind::Copilot,
        "gemini" => Kind::Gemini,
        "goose" => Kind::Goose,
        "opencode" => Kind::Opencode,
        "qwen" => Kind::Qwen,
        "vibe" => Kind::Vibe,
        _ => panic!("{program} is recorded and not known"),
    }
}

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(name)
}
