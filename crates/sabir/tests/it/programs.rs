//! Programs as agents, as far as they can be known without running them: `sabir agents`, and what `sabir serve` refuses.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::SABIR;

/// A folder to start in, and below it `bin`, which is the whole `PATH`.
struct Place {
    folder: TempDir,
}

impl Place {
    fn new(file: &str) -> Self {
        let folder = TempDir::new().unwrap();
        fs::create_dir(folder.path().join("bin")).unwrap();
        if !file.is_empty() {
            fs::write(folder.path().join("sabir.toml"), file).unwrap();
        }
        Self { folder }
    }

    /// An executable script.
    fn program(self, name: &str, script: &str) -> Self {
        let path = self.at(name);
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(path, Permissions::from_mode(0o755)).unwrap();
        self
    }

    fn at(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join("bin").join(name)
    }

    /// Exit code, output and errors.
    fn sabir(&self, arguments: &[&str], variables: &[(&str, &str)]) -> (i32, String, String) {
        let output = Command::new(SABIR)
            .args(arguments)
            .current_dir(self.folder.path())
            .env_clear()
            .env("PATH", self.folder.path().join("bin"))
            .envs(variables.iter().copied())
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
    }

    fn agents(&self, arguments: &[&str]) -> Vec<Value> {
        let all: Vec<&str> = ["agents"].iter().chain(arguments).copied().collect();
        let (code, output, errors) = self.sabir(&all, &[]);
        assert_eq!((code, errors.as_str()), (0, ""));
        serde_json::from_str(&output).unwrap()
    }

    /// The one line that `serve` refuses with.
    fn refusal(&self, arguments: &[&str], variables: &[(&str, &str)]) -> String {
        let all: Vec<&str> = ["serve", "--port", "0", "--store", "memory:"].iter().chain(arguments).copied().collect();
        let (code, output, errors) = self.sabir(&all, variables);
        assert_eq!((code, output.as_str()), (2, ""), "{errors}");
        let line = errors.lines().next_back().unwrap_or_default();
        line.strip_prefix("sabir: ").unwrap_or_else(|| panic!("{errors}")).to_owned()
    }
}

fn known(agents: &[Value], kind: &str) -> Value {
    let found = agents.iter().find(|agent| agent["list"] == "known" && agent["kind"] == kind);
    found.unwrap_or_else(|| panic!("no {kind} in {agents:?}")).clone()
}

#[test]
fn agents_lists_what_is_configured() {
    let place = Place::new(
        "[[agent]]\nid = 'coder'\nkind = 'codex'\nworkspace = 'repository'\napprove = 'all'\n\
         [[agent]]\nid = 'own'\nkind = 'acp'\ncommand = ['bin/mine', '--acp']\n[[agent]]\nid = 'demo'\nkind = 'demo'\n",
    );
    let folder = place.folder.path().canonicalize().unwrap();
    let agents = place.agents(&[]);
    let configured: Vec<&Value> = agents.iter().filter(|agent| agent["list"] == "configured").collect();
    assert_eq!(
        configured,
        [
            &json!({"list": "configured", "id": "coder", "kind": "codex", "mode": "duplex", "program": "codex",
                    "workspace": folder.join("repository"), "approve": "all", "url": null}),
            &json!({"list": "configured", "id": "own", "kind": "acp", "mode": "acp", "program": "bin/mine",
                    "workspace": folder, "approve": "ask", "url": null}),
            &json!({"list": "configured", "id": "demo", "kind": "demo", "mode": null, "program": null,
                    "workspace": null, "approve": null, "url": null}),
        ]
    );
    let one = place.agents(&["--agent", "gemini"]);
    let ids: Vec<&Value> = one.iter().filter(|agent| agent["list"] == "configured").map(|agent| &agent["id"]).collect();
    assert_eq!(ids, ["gemini"]);
}

#[test]
fn agents_shows_what_is_installed_and_what_is_missing() {
    let place = Place::new("")
        .program("claude", "test \"$1\" = --version && echo '2.1.325 (Claude Code)'")
        .program("codex", "echo; echo codex-cli 0.166.0; echo more")
        .program("gemini", "echo it needs Node 20 >&2; exit 3")
        .program("opencode", "exit 0");
    fs::write(place.at("goose"), "").unwrap();
    let agents = place.agents(&[]);
    for (kind, path, version, why) in [
        ("claude-code", Some("claude"), json!("2.1.325 (Claude Code)"), json!(null)),
        ("codex", Some("codex"), json!("codex-cli 0.166.0"), json!(null)),
        ("gemini", Some("gemini"), json!(null), json!("--version failed (exit status: 3): it needs Node 20")),
        ("opencode", Some("opencode"), json!(null), json!("--version says nothing")),
    ] {
        let found = known(&agents, kind);
        assert_eq!(found["path"].as_str().map(Path::new), path.map(|name| place.at(name)).as_deref(), "{kind}");
        assert_eq!((&found["version"], &found["why"]), (&version, &why), "{kind}");
        assert_eq!(found["ready"], why.is_null(), "{kind}");
    }
    let goose = known(&agents, "goose");
    assert!(goose["why"].as_str().unwrap().contains("is not executable"), "{goose}");
    let vibe = known(&agents, "vibe");
    assert_eq!((&vibe["program"], &vibe["path"], &vibe["ready"]), (&json!("vibe-acp"), &json!(null), &json!(false)));
    let why = vibe["why"].as_str().unwrap();
    assert!(why.starts_with("is not on the PATH; to install it: pip install mistral-vibe"), "{why}");
    assert_eq!(agents.iter().filter(|agent| agent["list"] == "known").count(), 9, "those with a program of their own");
}

#[test]
fn programs_are_asked_for_their_version_at_the_same_time() {
    let slow = "sleep 1; echo 1";
    let mut place = Place::new("");
    for name in ["claude", "codex", "gemini", "opencode", "goose", "copilot", "qwen", "vibe-acp", "cursor-agent"] {
        place = place.program(name, &format!("PATH=/bin:/usr/bin; {slow}"));
    }
    let start = Instant::now();
    let agents = place.agents(&[]);
    assert!(start.elapsed() < Duration::from_secs(6), "{:?}", start.elapsed());
    let ready = agents.iter().filter(|agent| agent["list"] == "known" && agent["ready"] == true).count();
    assert_eq!(ready, 9);
}

#[test]
fn serve_refuses_a_program_that_cannot_be_run() {
    let place = Place::new("").program("own", "exit 0");
    fs::write(place.at("plain"), "").unwrap();
    let install = "install it (npm install -g @anthropic-ai/claude-code, then run claude once to log in), \
                   or say where it is with command = [\"/path/to/claude\"] in its [[agent]]";
    assert_eq!(
        place.refusal(&["--agent", "claude-code"], &[]),
        format!("--agent is \"claude-code\", whose program claude is not on the PATH; {install}")
    );
    let refused = place.refusal(&[], &[("AGENT_ADAPTER", "claude-code")]);
    assert!(
        refused.starts_with("AGENT_ADAPTER is \"claude-code\", whose program claude is not on the PATH; "),
        "{refused}"
    );
    assert_eq!(
        place.refusal(&[], &[("AGENT_ADAPTER", "codex"), ("CODEX_BINARY_PATH", "/nowhere/codex")]),
        "CODEX_BINARY_PATH names /nowhere/codex, which is not there: /nowhere/codex is no file; \
         install it, or write its whole path"
    );
    let refused = place.refusal(&["--agent", "claude-cod"], &[]);
    assert!(refused.contains("there are demo, conformance, a2a, openai, claude-code, codex, "), "{refused}");
    assert!(refused.ends_with("did you mean \"claude-code\"?"), "{refused}");

    let plain = place.at("plain").canonicalize().unwrap();
    fs::write(place.folder.path().join("sabir.toml"), "[[agent]]\nid = 'x'\nkind = 'command'\ncommand = ['plain']\n")
        .unwrap();
    assert_eq!(
        place.refusal(&[], &[]),
        format!(
            "sabir.toml:4: command names plain, which cannot be run: {} is not executable; \
             install it, or write its whole path",
            plain.display()
        )
    );
}

#[test]
fn serve_refuses_an_invalid_workspace() {
    for (rest, expected) in [
        (
            "workspace = 'nowhere'",
            "sabir.toml:5: workspace names nowhere, which is no folder; make it, or name another",
        ),
        (
            "workspace_roots = ['bin', '/nowhere/at/all']",
            "sabir.toml:5: workspace_roots names /nowhere/at/all, which is no folder; make it, or name another",
        ),
        (
            "isolation = 'worktree'\nworkspace = '/'",
            "sabir.toml:5: isolation is \"worktree\", but / is not in a git repository; \
             run git init there, or use isolation = \"none\"",
        ),
        (
            "mode = 'oneshot'\napprove = 'ask'",
            "sabir.toml:6: approve is \"ask\", but command cannot ask in mode oneshot; \
             use approve = \"all\" or approve = \"none\"",
        ),
    ] {
        let file = format!("[[agent]]\nid = 'x'\nkind = 'command'\ncommand = ['own']\n{rest}\n");
        let place = Place::new(&file).program("own", "exit 0");
        assert_eq!(place.refusal(&[], &[]), expected, "{rest}");
    }
}

#[test]
fn config_shows_what_serve_would_refuse() {
    let (code, output, errors) = Place::new("").sabir(&["config", "--agent", "codex"], &[]);
    assert_eq!(code, 0);
    assert!(output.contains(r#"{"key":"agent.codex.mode","value":"duplex","source":"default"}"#), "{output}");
    assert!(
        errors.starts_with("sabir: warning: serve would refuse this: --agent is \"codex\", whose program"),
        "{errors}"
    );
}
