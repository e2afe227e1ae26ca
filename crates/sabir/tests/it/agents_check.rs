//! `sabir agents --check`: what it says of programs that answer and of those that do not.

use std::process::Command;

use serde_json::{Value, json};

use crate::SABIR;
use crate::program_fixture::{ProgramFixture, names};

/// The exit code and what was printed.
fn check(script: &ProgramFixture, toml: &str, arguments: &[&str]) -> (Option<i32>, Vec<Value>) {
    script.options(toml);
    let mut command = Command::new(SABIR);
    command.args(["agents", "--check"]).args(arguments).current_dir(script.folder.path());
    let output = command.env("TMPDIR", script.folder.path().join("tmp")).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let rows: Value = serde_json::from_str(&text).unwrap_or(Value::Null);
    (output.status.code(), rows.as_array().cloned().unwrap_or_default())
}

fn script(body: &str) -> ProgramFixture {
    let script = ProgramFixture::new(body);
    std::fs::create_dir(script.folder.path().join("tmp")).unwrap();
    script
}

/// Answers as Claude Code does, and says where it works and what it may do.
const ANSWERING: &str = r#"read -r prompt
echo '{"type":"system","subtype":"init","session_id":"s"}'
echo "{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"result\":\"ready in $(ls | wc -l) $*\"}"
"#;

#[test]
fn a_program_that_answers_passes_the_check() {
    let script = script(ANSWERING);
    std::fs::write(script.workspace().join("precious"), "").unwrap();
    let toml = script.agent("coder", "claude-code", "approve = 'all'\nmode = 'oneshot'");
    let (code, rows) = check(&script, &toml, &[]);
    assert_eq!((code, rows.len()), (Some(0), 1), "{rows:?}");
    assert_eq!((&rows[0]["id"], &rows[0]["ok"], &rows[0]["asks"]), (&json!("coder"), &json!(true), &json!(false)));
    let answer = rows[0]["answer"].as_str().unwrap();
    assert!(answer.starts_with("ready in 0 "), "it works in an empty folder: {answer}");
    assert!(answer.contains("--permission-mode=default") && !answer.contains("skip-permissions"), "{answer}");
    assert_eq!(names(&script.folder.path().join("tmp")), Vec::<String>::new(), "the folder is gone");
    assert_eq!(names(&script.workspace()), ["precious"]);
}

#[test]
fn a_failed_check_names_the_problem_and_the_remedy() {
    for (kind, body, trouble, remedy) in [
        ("generic", "echo '401 Unauthorized' >&2; exit 1\n", "not logged in", "pass_env"),
        ("generic", "echo \"error: unknown option '--json'\" >&2; exit 1\n", "too old", "install"),
        ("generic", "echo '{\"type\":\"error\",\"message\":\"no such model: x\"}'\n", "no such model", "model"),
        ("generic", "echo '{\"type\":\"error\",\"message\":\"connect ECONNREFUSED\"}'\n", "no network", "HTTPS_PROXY"),
        ("generic", "echo '{\"type\":\"result\"}'\n", "without an answer", "terminal"),
        ("generic", "exit 7\n", "fails", "terminal"),
        (
            "claude-code",
            "echo \"error: unknown option '--permission-prompt-tool'\" >&2; exit 1\n",
            "cannot ask",
            "oneshot",
        ),
        (
            "claude-code",
            "read -r p; echo '{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":true,\"result\":\"Not logged in · Please run /login\"}'\n",
            "not logged in",
            "run claude once to log in",
        ),
    ] {
        let script = script(body);
        let (code, rows) = check(&script, &script.agent("x", kind, ""), &[]);
        assert_eq!((code, rows.len()), (Some(1), 1), "{body}: {rows:?}");
        assert_eq!(rows[0]["ok"], false, "{body}: {rows:?}");
        assert!(rows[0]["trouble"].as_str().unwrap().contains(trouble), "{body}: {rows:?}");
        assert!(rows[0]["remedy"].as_str().unwrap().contains(remedy), "{body}: {rows:?}");
    }
}

#[test]
fn a_missing_program_does_not_stop_the_check_of_the_others() {
    let script = script(ANSWERING);
    let toml = format!(
        "[[agent]]\nid = 'gone'\nkind = 'generic'\ncommand = ['/nowhere/x']\n[[agent]]\nid = 'demo'\nkind = 'demo'\n{}",
        script.agent("coder", "claude-code", "")
    );
    let (code, rows) = check(&script, &toml, &[]);
    let outcomes: Vec<(&str, bool)> =
        rows.iter().map(|row| (row["id"].as_str().unwrap(), row["ok"].as_bool().unwrap())).collect();
    assert_eq!((code, outcomes.as_slice()), (Some(1), &[("gone", false), ("coder", true)][..]), "{rows:?}");
    assert_eq!(rows[0]["trouble"], "not installed");
    assert!(rows[0]["remedy"].as_str().unwrap().contains("/nowhere/x"), "{rows:?}");

    let (code, rows) = check(&script, &toml, &["coder"]);
    assert_eq!((code, rows.len()), (Some(0), 1), "{rows:?}");
    let (code, rows) = check(&script, &toml, &["nobody"]);
    assert_eq!((code, rows.len()), (Some(2), 0), "{rows:?}");
}
