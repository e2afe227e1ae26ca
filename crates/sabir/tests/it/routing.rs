//! Messages to the default agent that go to others, through the real program.

use serde_json::{Value, json};

use crate::server_fixture::ServerFixture;

/// Who answered: the conformance agent greets whoever sends such an id, the demo agent echoes.
fn answered(fixture: &ServerFixture, path: &str, text: &str, metadata: &Value) -> &'static str {
    let id = format!("tck-{text}-{path}-{metadata}");
    let message =
        json!({"kind": "message", "messageId": id, "role": "user", "parts": [{"kind": "text", "text": text}]});
    let answer = fixture.rpc(path, "message/send", json!({"message": message, "metadata": metadata}));
    assert_eq!(answer["result"]["status"]["state"], "completed", "{answer}");
    if answer.to_string().contains(&format!("echo: {text}")) { "demo" } else { "conformance" }
}

#[test]
fn a_message_goes_to_the_agent_of_its_profile() {
    let fixture = ServerFixture::configured(
        "[[agent]]\nid = 'usual'\nkind = 'demo'\ndefault = true\n[[agent]]\nid = 'kit'\nkind = 'conformance'\n\
         [routing]\ncomplex = { agent = 'kit' }\n",
    );
    for (path, text, metadata, expected) in [
        ("/a2a/jsonrpc", "Say hello", json!({}), "demo"),
        ("/a2a/jsonrpc", "Refactor the module", json!({}), "conformance"),
        ("/a2a/jsonrpc", "Say hello", json!({"profile": "complex"}), "conformance"),
        ("/a2a/jsonrpc", "Refactor the module", json!({"profile": "ROUTINE"}), "demo"),
        // Who names an agent gets it.
        ("/agents/kit/a2a/jsonrpc", "Say hello", json!({"profile": "MID"}), "conformance"),
    ] {
        assert_eq!(answered(&fixture, path, text, &metadata), expected, "{path} {text} {metadata}");
    }
}
