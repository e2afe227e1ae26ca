//! Agents as a file describes them: what their cards show, and what is refused because of it.

use std::fs;

use sabir_testkit::process::{SabirOptions, SabirProcess};
use serde_json::{Value, json};

use crate::SABIR;

const V1: (&str, &str) = ("A2A-Version", "1.0");

/// The program with this `sabir.toml`, as long as the folder lives.
fn serve(file: &str) -> (SabirProcess, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("sabir.toml"), file).unwrap();
    (SabirOptions::new(SABIR, folder.path()).start(), folder)
}

fn message(part: &Value) -> Value {
    json!({"message": {"messageId": part.to_string(), "role": "ROLE_USER", "parts": [part]}})
}

#[test]
fn a_card_shows_the_skills_of_the_file_and_other_media_types_are_refused() {
    let (server, _folder) = serve(
        r#"
        [[agent]]
        id = "writer"
        kind = "demo"
        [[agent.skill]]
        id = "summarize"
        name = "Summarize"
        description = "Makes long texts short"
        tags = ["text", "short"]
        examples = ["Summarize this"]
        input_modes = ["text/plain"]
        [[agent.skill]]
        id = "caption"
        name = "Caption"
        description = "Says what is on a picture"
        input_modes = ["image/*"]
        output_modes = ["text/plain"]
        "#,
    );
    let card = server.get("/.well-known/agent-card.json").json();
    let skills = json!([
        {
            "id": "summarize",
            "name": "Summarize",
            "description": "Makes long texts short",
            "tags": ["text", "short"],
            "examples": ["Summarize this"],
            "inputModes": ["text/plain"],
        },
        {
            "id": "caption",
            "name": "Caption",
            "description": "Says what is on a picture",
            "tags": [],
            "inputModes": ["image/*"],
            "outputModes": ["text/plain"],
        },
    ]);
    assert_eq!(card["skills"], skills);
    assert_eq!(card["defaultInputModes"], json!(["text/plain", "image/*"]));

    for (part, code) in [
        (json!({"text": "hello"}), None),
        (json!({"raw": "aGk=", "mediaType": "image/png"}), None),
        (json!({"data": {"a": 1}}), Some(-32005)),
        (json!({"raw": "aGk=", "mediaType": "video/mp4"}), Some(-32005)),
    ] {
        let answer = server.rpc("SendMessage", message(&part));
        assert_eq!(answer["error"]["code"].as_i64(), code, "{part}: {answer}");
    }
}

#[test]
fn a_card_shows_the_extensions_of_the_file_and_required_ones_must_be_activated() {
    let (server, _folder) = serve(
        r#"
        [[agent]]
        id = "writer"
        kind = "demo"
        [[agent.extension]]
        uri = "https://example.com/receipts/v1"
        description = "Adds a receipt"
        required = true
        params = { currency = "EUR", digits = 2 }
        [[agent.extension]]
        uri = "urn:example:plain"
        "#,
    );
    let card = server.http().exchange("GET", "/.well-known/agent-card.json", &[V1], b"").unwrap().json();
    let receipts = json!({
        "uri": "https://example.com/receipts/v1",
        "description": "Adds a receipt",
        "required": true,
        "params": {"currency": "EUR", "digits": 2},
    });
    let extensions = card["capabilities"]["extensions"].as_array().unwrap();
    assert!(extensions.contains(&receipts), "{extensions:?}");
    assert!(extensions.contains(&json!({"uri": "urn:example:plain"})), "{extensions:?}");
    assert_eq!(extensions.len(), 5, "the kind's own and the server's are there too: {extensions:?}");

    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": message(&json!({"text": "hi"}))});
    for (header, code) in [
        (None, Some(-32008)),
        (Some("urn:example:plain"), Some(-32008)),
        (Some("https://example.com/receipts/v1"), None),
        (Some("urn:example:plain, https://example.com/receipts/v1"), None),
    ] {
        let mut headers = vec![V1];
        headers.extend(header.map(|list| ("A2A-Extensions", list)));
        let answer = server.http().exchange("POST", "/", &headers, body.to_string().as_bytes()).unwrap().json();
        assert_eq!(answer["error"]["code"].as_i64(), code, "{header:?}: {answer}");
    }
}

#[test]
fn an_agent_without_streaming_refuses_streams() {
    let (server, _folder) = serve("[[agent]]\nid = 'writer'\nkind = 'demo'\nstreaming = false\n");
    let card = server.get("/.well-known/agent-card.json").json();
    assert_eq!(card["capabilities"]["streaming"], false);
    assert!(server.rpc("SendMessage", message(&json!({"text": "hi"})))["result"]["task"].is_object());

    let old = json!({"kind": "message", "messageId": "m", "role": "user", "parts": [{"kind": "text", "text": "hi"}]});
    for (method, params) in
        [("message/stream", json!({"message": old})), ("SendStreamingMessage", message(&json!({"text": "again"})))]
    {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
        let refused = server.http().exchange("POST", "/", &[], body.as_bytes()).unwrap();
        assert!(refused.text().contains("-32004"), "{method}: {}", refused.text());
    }
}

#[test]
fn the_url_of_the_card_is_for_the_clients_of_its_profile() {
    let agents = "[[agent]]\nid = 'a'\nkind = 'demo'\n[[agent]]\nid = 'b'\nkind = 'demo'\n";
    for (file, expected) in [
        ("", "http://{}/a2a/jsonrpc"),
        ("[card]\nprofile = 'a2a'\n", "http://{}/a2a/jsonrpc"),
        ("[card]\nprofile = 'gateway'\n", "/v1/a2a/agents/demo/message:send"),
        (&format!("{agents}[card]\nprofile = 'gateway'\n"), "/v1/a2a/agents"),
    ] {
        let (server, _folder) = serve(file);
        let card = server.get("/.well-known/agent-card.json").json();
        let expected = expected.replace("{}", &server.address.to_string());
        assert_eq!(card["url"], expected, "{file:?}");
    }
}

#[test]
fn the_card_of_several_agents_offers_what_its_address_does() {
    let (server, _folder) = serve(
        r#"
        [[agent]]
        id = "quiet"
        kind = "demo"
        default = true
        streaming = false
        input_modes = ["text/plain"]
        [[agent]]
        id = "other"
        kind = "demo"
        [[agent.extension]]
        uri = "urn:must"
        required = true
        "#,
    );
    let card = server.get("/.well-known/agent-card.json").json();
    assert_eq!(card["capabilities"]["streaming"], false);
    assert_eq!(card["defaultInputModes"], json!(["text/plain"]));
    let extensions = card["capabilities"]["extensions"].as_array().unwrap();
    let must = extensions.iter().find(|extension| extension["uri"] == "urn:must").unwrap();
    assert_eq!(must["required"], Value::Null);
    // A skill that leaves its modes to its agent says them on the card of all.
    let modes: Vec<&Value> = card["skills"].as_array().unwrap().iter().map(|skill| &skill["inputModes"]).collect();
    assert!(modes.contains(&&json!(["text/plain"])) && modes.contains(&&json!(["text/plain", "application/json"])));
    let other = server.get("/agents/other/.well-known/agent-card.json").json();
    assert_eq!(other["capabilities"]["streaming"], true);

    // What is active is what the one who is called declares.
    let active = |path: &str, tenant: Option<&str>| {
        let mut params = message(&json!({"text": format!("{path} {tenant:?}")}));
        if let Some(tenant) = tenant {
            params["tenant"] = json!(tenant);
        }
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": params}).to_string();
        let headers = [V1, ("A2A-Extensions", "urn:must, urn:unknown")];
        let reply = server.http().exchange("POST", path, &headers, body.as_bytes()).unwrap();
        assert!(reply.json().get("result").is_some(), "{}", reply.text());
        reply.header("a2a-extensions").map(str::to_owned)
    };
    assert_eq!(active("/", None), None);
    assert_eq!(active("/", Some("quiet")), None);
    assert_eq!(active("/", Some("other")).as_deref(), Some("urn:must"));
    assert_eq!(active("/agents/other/", None).as_deref(), Some("urn:must"));
}
