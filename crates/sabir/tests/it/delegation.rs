//! A program asks another agent of its own server in the name of its task.

use std::process::Stdio;

use serde_json::json;

use crate::SABIR;
use crate::program_fixture::{ProgramFixture, message, send, state};

/// Reads the address from its arguments and the credential from its environment, as Claude Code does; asks the demo agent through
/// `sabir mcp`; and says what it heard, with its credential behind it.
fn program() -> ProgramFixture {
    ProgramFixture::new(&format!(
        r#"
cat > /dev/null
case "$*" in *"$SABIR_DELEGATION_TOKEN"*) echo '{{"type":"result","subtype":"success","result":"on the command line"}}'; exit;; esac
url=$(printf '%s\n' "$@" | sed -n 's/.*"url":"\([^"]*\)\/mcp".*/\1/p')
place=$(mktemp -d)
mkfifo "$place/in"
SABIR_TOKEN=$SABIR_DELEGATION_TOKEN {SABIR} mcp --url "$url" < "$place/in" > "$place/out" &
exec 3> "$place/in"
printf '%s\n' '{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"ask_agent","arguments":{{"agent":"demo","message":"help"}}}}}}' >&3
while [ ! -s "$place/out" ]; do sleep 0.05; done
exec 3>&-
wait
heard=$(grep -o 'echo: help' "$place/out" | head -n 1)
rm -r "$place"
printf '{{"type":"result","subtype":"success","result":"heard %s %s"}}\n' "$heard" "$SABIR_DELEGATION_TOKEN"
"#
    ))
}

const DEMO: &str = "[[agent]]\nid = \"demo\"\nkind = \"demo\"\n";

#[test]
fn a_program_asks_another_agent_and_shows_its_credential_to_nobody() {
    let program = program();
    let more = "mode = \"oneshot\"\ndefault = true\ndelegate = [\"demo\"]";
    let server = program.options(&format!("{}{DEMO}", program.agent("coder", "claude-code", more))).start();
    let parent = send(&server, message("build"));
    assert_eq!(state(&parent), "COMPLETED", "{parent}");
    let told = parent.to_string();
    assert!(told.contains("heard echo: help ***") && !told.contains("sabir_d_"), "{told}");
    let tasks = server.rpc("ListTasks", json!({"tenant": "demo"}));
    let children = tasks["result"]["tasks"].as_array().unwrap();
    assert_eq!(children.len(), 1, "{tasks}");
    assert_eq!(children[0]["history"][0]["referenceTaskIds"], json!([parent["id"]]), "{tasks}");
}

#[test]
fn what_cannot_be_delegated_is_said_at_the_start() {
    for (kind, more, rest, expected) in [
        ("claude-code", "delegate = [\"nobody\"]", "", "names the agent \"nobody\", which does not exist"),
        ("claude-code", "delegate = [\"coder\"]", "", "the agent itself, which cannot wait for itself"),
        (
            "gemini",
            "mode = \"oneshot\"\ndelegate = true",
            "",
            "is for kinds claude-code and codex, and for programs in mode acp",
        ),
        ("claude-code", "delegate = true", "[mcp]\nenabled = false\n", "needs mcp.enabled"),
        ("claude-code", "delegate = true", "[server]\ndev_tls = true\n", "needs a server without TLS of its own"),
    ] {
        let program = program();
        let options = program.options(&format!("{}{DEMO}{rest}", program.agent("coder", kind, more)));
        let output = options.command().stderr(Stdio::piped()).output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{told}");
        assert!(told.contains(expected) && told.contains("delegate"), "{told}");
    }
}
