//! `sabir import-card URL`: a table that `sabir.toml` takes as it is, whatever the card says.

use std::fs;
use std::path::Path;
use std::process::Command;

use sabir_testkit::oidc_provider::{ProviderAnswer, ServedProvider};
use sabir_testkit::process::SabirOptions;
use sabir_testkit::remote::{CardFault, Faults, RemoteAgent, RemoteProtocol};
use serde_json::{Value, json};

use crate::SABIR;
use crate::server_fixture::v1_message;

const CARD: &str = "/.well-known/agent-card.json";

/// Exit code, output and errors.
fn sabir(folder: &Path, words: &[&str]) -> (Option<i32>, String, String) {
    let output = Command::new(SABIR).args(words).current_dir(folder).env_clear().output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

/// The agents of a file that must be right: their ids, kinds and addresses.
fn agents_of(folder: &Path, file: &str) -> Vec<String> {
    fs::write(folder.join("imported.toml"), file).unwrap();
    let (code, output, errors) = sabir(folder, &["agents", "--config", "imported.toml"]);
    assert_eq!(code, Some(0), "{errors}\n{file}");
    let rows: Value = serde_json::from_str(&output).unwrap();
    let configured = rows.as_array().unwrap().iter().filter(|row| row["list"] == "configured");
    configured.map(|row| format!("{} {} {}", row["id"], row["kind"], row["url"]).replace('"', "")).collect()
}

/// With the settings that are commented out.
fn switched_on(table: &str) -> String {
    let lines = table.lines().map(|line| match line.strip_prefix('#') {
        Some(setting) if !setting.starts_with(' ') => setting,
        _ => line,
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// A server with this card.
fn serving(card: &Value) -> ServedProvider {
    let server = ServedProvider::start();
    server.provider.fail(CARD, ProviderAnswer::Document(card.to_string()));
    server
}

fn card(change: Value) -> Value {
    let mut card = json!({
        "name": "Harbour Desk", "description": "Answers questions.", "version": "2.3", "protocolVersion": "0.3.0",
        "url": "http://127.0.0.1:1/rpc", "preferredTransport": "JSONRPC", "capabilities": {}, "skills": [],
        "defaultInputModes": [], "defaultOutputModes": [],
    });
    for (name, value) in change.as_object().unwrap() {
        card[name] = value.clone();
    }
    card
}

#[test]
fn the_table_is_added_to_a_file_and_served() {
    let folder = tempfile::tempdir().unwrap();
    let remote = RemoteAgent::builder(RemoteProtocol::V03JsonRpc).with_bearer("t").start();
    // What the author of the card could reach.
    remote.set_faults(Faults { card: vec![CardFault::Url("http://localhost:1/".to_owned())], ..Faults::default() });
    let (code, table, errors) = sabir(folder.path(), &["import-card", &remote.url()]);
    assert_eq!(code, Some(0), "{errors}");
    assert!(
        errors.starts_with("sabir: note: the card says http://localhost:1/, which only its own machine can reach; ")
    );
    let expected = format!(
        "url = \"{0}\"\n# The card says http://localhost:1/, which cannot be right from here.\nendpoint = \"{0}/\"\n",
        remote.url()
    );
    assert!(table.contains(&expected), "{table}");
    // The file before it need not end with a line break.
    let file = format!("[[agent]]\nid = 'own'\nkind = 'demo' {table}");
    let expected = ["own demo null".to_owned(), format!("remote-agent a2a {}", remote.url())];
    assert_eq!(agents_of(folder.path(), &file), expected);

    fs::write(folder.path().join("sabir.toml"), switched_on(&table)).unwrap();
    let server = SabirOptions::new(SABIR, folder.path()).variable("REMOTE_AGENT_TOKEN", "t").start();
    let done = server.rpc("SendMessage", v1_message("hello"));
    assert_eq!(done["result"]["task"]["artifacts"][0]["parts"][0]["text"], "echo: hello", "{done}");
}

#[test]
fn every_credential_that_cards_ask_for_has_settings_that_fit() {
    let folder = tempfile::tempdir().unwrap();
    let scopes = json!({"run": "Runs"});
    for (scheme, expected) in [
        (json!({"type": "http", "scheme": "bearer"}), &["token_env = \"HARBOUR_DESK_TOKEN\""][..]),
        (json!({"type": "http", "scheme": "basic"}), &["user = ", "password_env = "]),
        (json!({"type": "apiKey", "in": "query", "name": "k"}), &["api_key_name = \"k\"", "api_key_in = \"query\""]),
        (
            json!({"type": "oauth2", "flows": {"clientCredentials": {"tokenUrl": "https://i.example/t", "scopes": scopes}}}),
            &["oauth_token_url = \"https://i.example/t\"", "oauth_client_secret_env = ", "oauth_scopes = [\"run\"]"],
        ),
        (
            json!({"type": "oauth2", "flows": {"authorizationCode":
                {"authorizationUrl": "https://i.example/a", "tokenUrl": "https://i.example/t", "scopes": scopes}}}),
            &["token_env = "],
        ),
        (json!({"type": "mutualTLS"}), &["client_certificate = \"harbour-desk.pem\"", "client_key = "]),
    ] {
        let server = serving(&card(json!({"securitySchemes": {"s": scheme}, "security": [{"s": []}]})));
        // A certificate is for https.
        let endpoint = if scheme["type"] == "mutualTLS" { &["--endpoint", "https://a.example/"][..] } else { &[] };
        let url = server.provider.issuer.clone();
        let words: Vec<&str> = ["import-card", &url].into_iter().chain(endpoint.iter().copied()).collect();
        let (code, table, errors) = sabir(folder.path(), &words);
        assert_eq!(code, Some(0), "{errors}");
        for words in expected {
            assert!(table.contains(&format!("\n#{words}")), "{words} is not in {table}");
        }
        let agent = [format!("harbour-desk a2a {url}")];
        assert_eq!(agents_of(folder.path(), &table), agent);
        assert_eq!(agents_of(folder.path(), &switched_on(&table)), agent, "{table}");
    }
}

#[test]
fn no_card_breaks_out_of_its_table() {
    let folder = tempfile::tempdir().unwrap();
    for evil in [
        "x\"\n[[agent]]\nid = \"evil\"\nkind = \"demo\"\n#",
        "'''\n[[agent]]\nid = 'evil'\nkind = 'demo'\n'''",
        "\"\"\"]\r[server]\rallow_open = true\r",
        "\u{85}[server]\u{2028}allow_open = true\u{2029}",
        "\u{0}\u{7}\u{1b}]0;evil\u{7}\u{7f}\u{202e}\\",
        "}, evil = { x = 1 } # \\\" ]",
    ] {
        let schemes = json!({
            evil: {"type": "apiKey", "in": evil, "name": evil, "description": evil},
            "two": {"type": "http", "scheme": evil},
            "three": {"type": "oauth2", "flows": {"clientCredentials": {"tokenUrl": evil, "scopes": {evil: evil}}}},
            "four": {"type": "openIdConnect", "openIdConnectUrl": evil},
        });
        let change = json!({
            "name": evil, "description": evil, "version": evil, "documentationUrl": evil, "securitySchemes": schemes,
            "security": [{evil: [evil]}],
        });
        let server = serving(&card(change));
        let (code, table, errors) = sabir(folder.path(), &["import-card", &server.provider.issuer]);
        assert_eq!(code, Some(0), "{errors}");
        let agents = agents_of(folder.path(), &table);
        assert_eq!((agents.len(), agents[0].contains(" a2a ")), (1, true), "{table}");
        for line in table.lines().filter(|line| !line.is_empty()) {
            let is_ours = ["#", "[[agent]]", "id = ", "kind = \"a2a\"", "url = ", "endpoint = "];
            assert!(is_ours.iter().any(|start| line.starts_with(start)), "{line:?}");
        }
        let steers = |letter: char| letter.is_control() && letter != '\n';
        assert!(!table.contains(steers) && !errors.contains(steers), "{table:?} {errors:?}");
        // Also not when somebody switches a setting on.
        for line in table.lines().filter(|line| line.starts_with('#') && !line.starts_with("# ")) {
            let setting: toml::Table = toml::from_str(&line[1..]).unwrap_or_else(|error| panic!("{error} in {line}"));
            assert_eq!((setting.len(), setting.contains_key("evil")), (1, false), "{line}");
        }
    }
}

#[test]
fn exit_codes_and_flags() {
    let folder = tempfile::tempdir().unwrap();
    let remote = RemoteAgent::start(RemoteProtocol::V1JsonRpc);
    let url = remote.url();
    let absent = serving(&json!({}));
    absent.provider.fail(CARD, ProviderAnswer::Status(404));
    let (failing, broken, guarded) = (serving(&json!({})), serving(&json!([])), serving(&json!({})));
    failing.provider.fail(CARD, ProviderAnswer::Status(503));
    guarded.provider.fail(CARD, ProviderAnswer::Status(401));
    let private = serving(&card(json!({"url": "http://10.0.0.1/rpc"})));
    for (words, code, expected) in [
        (&["import-card", url.as_str()][..], 0, ""),
        (&["import-card", &url, "--id", "friend"], 0, ""),
        (&["import-card", "http://127.0.0.1:1"], 3, "sabir: cannot fetch http://127.0.0.1:1/"),
        (&["import-card", &absent.provider.issuer], 3, "sabir: there is no card at "),
        (&["import-card", &failing.provider.issuer], 3, " answered 503"),
        (&["import-card", &guarded.provider.issuer], 1, "; show it a credential with SABIR_UPSTREAM_TOKEN"),
        (&["import-card", &broken.provider.issuer], 1, "is no card"),
        (&["import-card", &private.provider.issuer], 1, "name it yourself as the endpoint"),
        (&["import-card", &private.provider.issuer, "--endpoint", "http://10.0.0.1/rpc"], 0, ""),
        (&["import-card", "example.com"], 2, "sabir: URL is \"example.com\"; expected an absolute address"),
        (&["import-card", &url, "--id", "admin"], 2, "sabir: --id is \"admin\", which is a path of the server"),
        (&["import-card", &url, "--id", "a b"], 2, "sabir: --id is \"a b\"; expected 1 to 64 letters"),
    ] {
        let (actual, output, errors) = sabir(folder.path(), words);
        assert_eq!(actual, Some(code), "{words:?}: {errors}");
        assert_eq!(output.is_empty(), code != 0, "{words:?}: {output}");
        assert!(errors.contains(expected), "{words:?}: {errors}");
    }
    let words =
        ["import-card", &url, "--id", "friend", "--bearer", "hush", "--header", "X-Team: hush", "--a2a-version", "1.0"];
    let (_, table, errors) = sabir(folder.path(), &words);
    assert_eq!(agents_of(folder.path(), &table), [format!("friend a2a {url}")]);
    assert!(
        table.contains("\na2a_version = \"1.0\"\n") && table.contains("\n#headers = { \"X-Team\" = \"...\" }\n"),
        "{table}"
    );
    assert!(!table.contains("hush") && !errors.contains("hush"), "{table} {errors}");
    let shown =
        remote.requests().into_iter().rev().find_map(|request| request.header("authorization").map(str::to_owned));
    assert_eq!(shown.as_deref(), Some("Bearer hush"));
}
