//! A context is a session of its program: resumed, or begun anew when it is gone.

use super::{ProgramFixture, message, reason, send, state};

/// A session that was canceled early may never have been written down by its program.
#[test]
fn a_context_survives_the_loss_of_its_session() {
    let program = ProgramFixture::new(
        r#"case "$*" in *--resume*)
    echo '{"type":"result","subtype":"error_during_execution","is_error":true,"errors":["No conversation found with session ID: s1"]}'
    exit 1 ;;
esac
read -r prompt
echo '{"type":"system","subtype":"init","session_id":"s1"}'
echo '{"type":"result","subtype":"success","is_error":false,"result":"new"}'
"#,
    );
    let fixture = program.serve_apart("claude-code", "");
    let first = send(&fixture, message("one"));
    assert_eq!(state(&first), "COMPLETED", "{first}");
    let mut states = Vec::new();
    for words in ["two", "three"] {
        let mut again = message(words);
        again["message"]["contextId"] = first["contextId"].clone();
        states.push(state(&send(&fixture, again)).to_owned());
    }
    assert_eq!(states, ["FAILED", "COMPLETED"]);
}

#[test]
fn a_context_whose_session_is_gone_begins_a_new_one() {
    // Like gemini, codex exec and opencode: an unknown session is a word on stderr and an exit code.
    let program = ProgramFixture::new(
        "case \"$*\" in *gone*) echo 'no such session' >&2; exit 42;; esac\n\
         echo '{\"type\":\"init\",\"session_id\":\"gone\"}'\necho '{\"type\":\"result\",\"status\":\"success\"}'\n",
    );
    let fixture = program.serve_apart("gemini", "mode = \"oneshot\"\napprove = \"none\"\n");
    let first = send(&fixture, message("one"));
    let within = |text: &str| {
        let mut params = message(text);
        params["message"]["contextId"] = first["contextId"].clone();
        send(&fixture, params)
    };
    assert_eq!(state(&first), "COMPLETED", "{first}");
    let lost = within("two");
    assert_eq!(state(&lost), "FAILED", "{lost}");
    assert!(reason(&lost).contains("no such session") && reason(&lost).contains("new session"), "{lost}");
    assert_eq!(state(&within("three")), "COMPLETED");
}
