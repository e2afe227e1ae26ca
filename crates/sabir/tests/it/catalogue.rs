//! The AI catalogue: who may read it, and which agents it has for whom.

use sabir_testkit::http::HttpReply;
use serde_json::{Value, json};

use crate::server_fixture::ServerFixture;

const PATH: &str = "/.well-known/ai-catalog.json";
const PUBLIC: &str = "[server]\npublic_url = 'https://agents.example.com/a2a-server'\n";
const MCP_CARD: &str = "application/mcp-server-card+json";
const MCP_CARD_PATH: &str = "/mcp/server-card";
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
    let entries = catalogue["entries"].as_array().unwrap_or_else(|| panic!("{catalogue}"));
    let agents = entries.iter().filter(|entry| entry["type"] == "application/a2a-agent-card+json");
    let urls = agents.map(|entry| entry["url"].as_str().unwrap().to_owned());
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
    let mcp = json!({
        "identifier": "urn:air:agents.example.com:a2a-server:mcp:sabir",
        "type": "application/mcp-server-card+json",
        "url": "https://agents.example.com/a2a-server/mcp/server-card",
        "displayName": "Acme",
        "description": "The agents of this server as tools: ask one, wait for its task, answer its questions",
    });
    assert_eq!(
        shown.json(),
        json!({
            "specVersion": "1.0",
            "host": {
                "displayName": "Acme",
                "identifier": "agents.example.com",
                "documentationUrl": "https://acme.example/docs",
            },
            "entries": [entry("coder", "Coder", "Writes code"), demo, mcp],
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
        let name = if entry["type"] == MCP_CARD { "title" } else { "name" };
        assert_eq!(fixture.get(path).json()[name], entry["displayName"]);
    }
    for (origin, allowed) in [("https://evil.example", None), ("https://app.example", Some("https://app.example"))] {
        let reply = ask(&fixture, &[("Origin", origin)]);
        assert_eq!(reply.header("access-control-allow-origin"), allowed, "{origin}");
    }
}

#[test]
fn the_card_of_the_mcp_server_says_where_it_is_and_what_it_speaks() {
    let card = "[card]\norganization = 'Acme'\ndocumentation_url = 'https://acme.example/docs'\n";
    let fixture = ServerFixture::configured(&with_credentials(&format!("{PUBLIC}{card}")));
    let shown = fixture.get(MCP_CARD_PATH);
    assert_eq!(
        shown.json(),
        json!({
            "$schema": "https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json",
            "name": "com.example.agents/sabir",
            "version": env!("CARGO_PKG_VERSION"),
            "title": "Acme",
            "description": "The agents of this server as tools: ask one, wait for its task, answer its questions",
            "websiteUrl": "https://acme.example/docs",
            "remotes": [{
                "type": "streamable-http",
                "url": "https://agents.example.com/a2a-server/mcp",
                "supportedProtocolVersions": ["2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26"],
            }],
        })
    );
    for (header, expected) in [
        ("content-type", MCP_CARD),
        ("access-control-allow-origin", "*"),
        ("cache-control", "public, max-age=30, must-revalidate"),
    ] {
        assert_eq!(shown.header(header), Some(expected), "{header}");
    }
    let known = fixture.ask("GET", MCP_CARD_PATH, &[("If-None-Match", shown.header("etag").unwrap())], &Value::Null);
    assert_eq!((known.status, known.text().as_str()), (304, ""));
    let posted = fixture.ask("POST", MCP_CARD_PATH, &[], &json!({}));
    assert_eq!((posted.status, posted.header("allow")), (405, Some("GET, HEAD")));
}

#[test]
fn without_a_public_address_the_card_of_the_mcp_server_is_for_callers() {
    let fixture = ServerFixture::configured(&with_credentials(""));
    let refused = fixture.get(MCP_CARD_PATH);
    assert_eq!(refused.status, 401, "{}", refused.text());
    assert!(refused.header("www-authenticate").is_some_and(|value| value.starts_with("Bearer")));
    let shown = fixture.ask("GET", MCP_CARD_PATH, &[("Authorization", "Bearer alice")], &Value::Null);
    let url = format!("http://{}/mcp", fixture.server.address);
    let (name, found) = (shown.json()["name"].clone(), shown.json()["remotes"][0]["url"].clone());
    assert_eq!((shown.status, name, found), (200, json!("localhost/sabir"), json!(url)));
    assert_eq!(shown.header("cache-control"), Some("private, no-cache"));
    assert_eq!(shown.header("access-control-allow-origin"), None);
}

#[test]
fn a_server_without_mcp_lists_none() {
    let fixture = ServerFixture::configured(&format!("[mcp]\nenabled = false\n{PUBLIC}{AGENTS}"));
    let shown = ask(&fixture, &[]);
    assert_eq!(agents(&shown), ["coder", "demo"]);
    assert!(!shown.text().contains("mcp"), "{}", shown.text());
    assert_eq!(fixture.get(MCP_CARD_PATH).status, 404);
}
