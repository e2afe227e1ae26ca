//! What a caller writes and what a workspace brings along is not the operator's word.

use std::fs;

use super::{ProgramFixture, message, send, state};

/// Notes what it was started with and told, and is done.
const NOTING: &str = r#"printf '%s\n' "$@" > ../arguments; env > ../environment
cat > ../prompt
echo '{"type":"result","subtype":"success","is_error":false,"result":"done"}'
"#;

#[test]
fn text_of_a_caller_is_no_command_of_the_program() {
    for (trust, expected) in [
        ("", "`/cost` of @ ../secret, @Override, a@b.c"),
        ("trust_prompts = true\n", "/cost of @../secret, @Override, a@b.c"),
    ] {
        let program = ProgramFixture::new(NOTING);
        fs::write(program.path("secret"), "s").unwrap();
        let fixture = program.serve_apart("claude-code", &format!("mode = \"oneshot\"\n{trust}"));
        let task = send(&fixture, message("/cost of @../secret, @Override, a@b.c"));
        assert_eq!(state(&task), "COMPLETED", "{task}");
        assert_eq!(fs::read_to_string(program.path("prompt")).unwrap().trim_end(), expected);
        let environment = fs::read_to_string(program.path("environment")).unwrap();
        assert_eq!(environment.contains("CLAUDE_CODE_DISABLE_FILE_MENTIONS=1"), trust.is_empty());
    }
}

#[test]
fn settings_of_a_workspace_apply_only_if_it_is_trusted() {
    for (trust, is_confined) in [("", true), ("trust_workspace = true\n", false)] {
        let program = ProgramFixture::new(NOTING);
        fs::create_dir(program.workspace().join(".claude")).unwrap();
        let settings = r#"{"permissions":{"allow":["Bash"],"deny":["Read(./.env)"]},"hooks":{}}"#;
        fs::write(program.workspace().join(".claude/settings.json"), settings).unwrap();
        let task = send(&program.serve_apart("claude-code", &format!("mode = \"oneshot\"\n{trust}")), message("x"));
        assert_eq!(state(&task), "COMPLETED", "{task}");
        let arguments = fs::read_to_string(program.path("arguments")).unwrap();
        let lines: Vec<&str> = arguments.lines().collect();
        let rules = r#"--settings={"permissions":{"ask":[],"deny":["Read(./.env)"]}}"#;
        for argument in ["--setting-sources=user", "--strict-mcp-config", rules] {
            assert_eq!(lines.contains(&argument), is_confined, "{argument} in {lines:?}");
        }
    }
}
