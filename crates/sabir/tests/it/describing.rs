//! Agents as a file describes them: what their cards show, and what is refused because of it.

use std::fs;

use sabir_testkit::process::{Options, Sabir};
use serde_json::{Value, json};

use crate::SABIR;

/// The program with this `sabir.toml`, as long as the folder lives.
fn serve(file: &str) -> (Sabir, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("sabir.toml"), file).unwrap();
    (Options::new(SABIR, folder.path()).start(), folder)
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
