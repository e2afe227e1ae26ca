//! The AI catalogue: who may read it, and which agents it has for whom.

use sabir_testkit::http::HttpReply;
use serde_json::{Value, json};

use crate::server_fixture::ServerFixture;

const PATH: &str = "/.well-known/ai-catalog.json";
const PUBLIC: &str = "[server]\npublic_url = 'https://agents.example.com/a2a-server'\n";
const AGENTS: &str = "[[agent]]\nid = 'demo'\nkind = 'demo'\ndefault = true\n
    [[agent]]\nid = 'coder'\nkind = 'demo'\nname = 'Coder'\ndescription = 'Writes code'\n
    [[agent]]\nid = 'hidden'\nkind = 'demo'\nlisted = false\nname = 'Secret desk'\n";

/// The three agents, one of which only insiders may know of, and tokens for callers.
fn with_credentials(settings: &str) -> String {
    let token = |subject: &str, scope: &str| {
        let hash = sabir_server::Digest::of(subject.as_bytes());
        format!("[[auth.token]]\nsubject = '{subject}'\nscopes = ['{scope}']\nhash = '{hash}'\n")
    };
    format!("{settings}{AGENTS}{}{}", token("alice", "run:demo"), token("insider", "run:hidden"))
}

fn ask(fixture: &ServerFixture, headers: &[(&str, &str)]) -> HttpReply {
    fixture.ask("GET", PATH, headers, &Value::Null)
}

/// The ids of the agents that a catalogue has, by the addresses of their cards.
fn agents(reply: &HttpReply) -> Vec<String> {
    let catalogue = reply.json();
    let url = |entry: &Value| entry["url"].as_str().unwrap().to_owned();
    let urls = catalogue["entries"].as_array().unwrap_or_else(|| panic!("{catalogue}")).iter().map(url);
    let id = |url: String| url.strip_suffix("/.well-known/agent-card.json").unwrap().rsplit('/').next().unwrap().into();
    urls.map(id).collect()
}

#[test]
fn a_public_catalogue_is_for_everybody_and_has_the_listed_agents() {
    let card = "[card]\norganization = 'Acme'\ndocumentation_url = 'https://acme.example/docs'\n";
    let fixture = ServerFixture::configured(&with_credentials(&format!("{PUBLIC}{card}")));
    let shown = ask(&fixture, &[]);
    let entry = |id: &str, name: &str, description: &str| {
        json!({
            "identifier": format!("urn:air:agents.example.com:a2a-server:agent:{id}"),
            "type": "application/a2a-agent-card+json",
            "url": format!("https://agents.example.com/a2a-server/agents/{id}/.well-known/agent-card.json"),
            "displayName": name,
            "description": description,
        })
    };
    let demo = fixture.get("/agents/demo/.well-known/agent-card.json").json();
    let demo = entry("demo", demo["name"].as_str().unwrap(), demo["description"].as_str().unwrap());
    assert_eq!(
        shown.json(),
        json!({
            "specVersion": "1.0",
            "host": {
                "displayName": "Acme",
                "identifier": "agents.example.com",
                "documentationUrl": "https://acme.example/docs",
            },
            "entries": [entry("coder", "Coder", "Writes code"), demo],
        })
    );
    for (header, expected) in [
        ("content-type", "application/ai-catalog+json"),
        ("cache-control", "public, max-age=30, must-revalidate"),
        ("access-control-allow-origin", "*"),
    ] {
        assert_eq!(shown.header(header), Some(expected), "{header}");
    }
    // The document is the same for all: caches keep it for everybody.
    let page = ("Origin", "https://evil.example");
    for headers in
        [&[][..], &[page], &[("Authorization", "Bearer insider")], &[("Authorization", "Bearer nobody's"), page]]
    {
        let reply = ask(&fixture, headers);
        let seen = (reply.status, reply.text(), reply.header("access-control-allow-origin").map(str::to_owned));
        assert_eq!(seen, (200, shown.text(), Some("*".to_owned())), "{headers:?}");
    }
    let known = ask(&fixture, &[("If-None-Match", shown.header("etag").unwrap())]);
    assert_eq!((known.status, known.text().as_str()), (304, ""));
    let changed = ask(&fixture, &[("If-None-Match", "\"other\"")]);
    assert_eq!(changed.text(), shown.text());
}

#[test]
fn without_a_public_address_the_catalogue_needs_a_credential_where_calls_do() {
    let fixture = ServerFixture::configured(&with_credentials(""));
    for (token, expected) in [
        (None, None),
        (Some("nobody's"), None),
        (Some("alice"), Some(&["coder", "demo"][..])),
        (Some("insider"), Some(&["coder", "demo", "hidden"])),
    ] {
        let authorization = token.map(|token| format!("Bearer {token}"));
        let mut headers = vec![("Origin", "https://evil.example")];
        headers.extend(authorization.iter().map(|value| ("Authorization", value.as_str())));
        let reply = ask(&fixture, &headers);
        assert_eq!(reply.header("access-control-allow-origin"), None, "{token:?}");
        match expected {
            None => {
                assert_eq!(reply.status, 401, "{token:?}: {}", reply.text());
                assert!(reply.header("www-authenticate").is_some_and(|value| value.starts_with("Bearer")));
                assert!(!reply.text().contains("hidden"), "{}", reply.text());
            }
            Some(expected) => {
                assert_eq!(agents(&reply), expected, "{token:?}");
                assert_eq!(reply.header("cache-control"), Some("private, no-cache"), "{token:?}");
            }
        }
    }
}

#[test]
fn a_server_that_asks_for_no_credentials_lists_its_agents_for_its_own_callers() {
    let fixture = ServerFixture::configured(&format!("[server]\ncors_origins = ['https://app.example']\n{AGENTS}"));
    let base = format!("http://{}", fixture.server.address);
    let reply = ask(&fixture, &[]);
    let catalogue = reply.json();
    assert_eq!(agents(&reply), ["coder", "demo"]);
    let identifier = format!("urn:air:127.0.0.1:{}:agent:coder", fixture.server.address.port());
    assert_eq!(catalogue["entries"][0]["identifier"], identifier);
    assert_eq!(catalogue["host"], json!({"displayName": "Sabir"}));
    // Each address leads to a card.
    for entry in catalogue["entries"].as_array().unwrap() {
        let path = entry["url"].as_str().unwrap().strip_prefix(&base).expect("cards are where the server is");
        assert_eq!(fixture.get(path).json()["name"], entry["displayName"]);
    }
    for (origin, allowed) in [("https://evil.example", None), ("https://app.example", Some("https://app.example"))] {
        let reply = ask(&fixture, &[("Origin", origin)]);
        assert_eq!(reply.header("access-control-allow-origin"), allowed, "{origin}");
    }
}
