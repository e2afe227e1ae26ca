//! The AI catalogue of a server: which agents it has, and where their cards are, and its MCP server.
//!
//! The format is that of the draft "AI Catalog" (specVersion 1.0, <https://ai-catalog.io>), which lists AI artifacts of any
//! kind. An entry repeats the name and the description of the card, since some readers of the draft want them; both come from
//! the same place, so they cannot differ. An MCP server is listed by its server card, as the draft of MCP for discovery has it.

use sabir_model::AgentId;
use serde::Serialize;

use crate::json;

/// The media type of the document.
pub const CATALOGUE_TYPE: &str = "application/ai-catalog+json";

const SPEC_VERSION: &str = "1.0";
const CARD_TYPE: &str = "application/a2a-agent-card+json";

/// The media type of the card of an MCP server.
pub const MCP_CARD_TYPE: &str = "application/mcp-server-card+json";

/// The last word of an MCP server's name, which its identifier ends with.
pub const MCP_SERVER_NAME: &str = "sabir";

/// What a catalogue says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Catalogue {
    /// Where clients reach the server, without a slash at the end.
    pub base: String,
    pub host: CatalogueHost,
    pub agents: Vec<CatalogueAgent>,
    /// `None`: the server has none.
    pub mcp: Option<CatalogueMcpServer>,
}

/// Who offers the agents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CatalogueHost {
    pub name: String,
    pub domain: Option<String>,
    pub documentation_url: Option<String>,
    pub logo_url: Option<String>,
}

/// One agent of the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CatalogueAgent {
    pub id: AgentId,
    pub name: String,
    pub description: String,
}

/// The MCP server in front of the agents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CatalogueMcpServer {
    /// The path of its card, from the base of the server.
    pub card_path: String,
    pub name: String,
    pub description: String,
}

/// Appends the document.
pub fn write_catalogue(catalogue: &Catalogue, out: &mut Vec<u8>) {
    let Catalogue { base, host, agents, mcp } = catalogue;
    let agent_entry = |agent: &'_ CatalogueAgent| Entry {
        identifier: identifier(base, &format!("agent:{}", agent.id)),
        r#type: CARD_TYPE,
        url: format!("{base}/agents/{}/.well-known/agent-card.json", agent.id),
        display_name: agent.name.clone(),
        description: Some(agent.description.clone()).filter(|description| !description.is_empty()),
    };
    let mcp_entry = |server: &'_ CatalogueMcpServer| Entry {
        identifier: identifier(base, &format!("mcp:{MCP_SERVER_NAME}")),
        r#type: MCP_CARD_TYPE,
        url: format!("{base}{}", server.card_path),
        display_name: server.name.clone(),
        description: Some(server.description.clone()),
    };
    let document = Document {
        spec_version: SPEC_VERSION,
        host: Host {
            display_name: &host.name,
            identifier: host.domain.as_deref(),
            documentation_url: host.documentation_url.as_deref(),
            logo_url: host.logo_url.as_deref(),
        },
        entries: agents.iter().map(agent_entry).chain(mcp.iter().map(mcp_entry)).collect(),
    };
    json::write(&document, out);
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Document<'a> {
    spec_version: &'a str,
    host: Host<'a>,
    entries: Vec<Entry>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Host<'a> {
    display_name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    identifier: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    documentation_url: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    logo_url: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    identifier: String,
    r#type: &'static str,
    url: String,
    display_name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
}

/// `urn:air:{publisher}:{namespace}:{name}`. The namespace begins with the port and the path of the server, if it has any:
/// several servers of one domain may have agents of the same id.
fn identifier(base: &str, name: &str) -> String {
    let (_, place) = base.split_once("://").unwrap_or(("", base));
    let (authority, path) = place.split_at(place.find('/').unwrap_or(place.len()));
    let mut identifier = "urn:air:".to_owned();
    for byte in authority.to_ascii_lowercase().bytes().chain(path.bytes()) {
        match byte {
            b'/' => identifier.push(':'),
            byte if byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@%".contains(&byte) => {
                identifier.push(char::from(byte));
            }
            byte => identifier += &format!("%{byte:02X}"),
        }
    }
    identifier + ":" + name
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agent(id: &str, description: &str) -> CatalogueAgent {
        CatalogueAgent { id: AgentId::parse(id).unwrap(), name: id.to_uppercase(), description: description.into() }
    }

    fn written(catalogue: &Catalogue) -> String {
        let mut out = Vec::new();
        write_catalogue(catalogue, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_catalogue_lists_the_cards_of_its_agents() {
        let host = CatalogueHost { name: "Acme \"AI\"".into(), domain: None, documentation_url: None, logo_url: None };
        let base = "https://agents.example.com".to_owned();
        let mut catalogue =
            Catalogue { base, host, agents: vec![agent("coder", "Writes code"), agent("demo", "")], mcp: None };
        assert_eq!(
            written(&catalogue),
            r#"{"specVersion":"1.0","host":{"displayName":"Acme \"AI\""},"entries":["#.to_owned()
                + r#"{"identifier":"urn:air:agents.example.com:agent:coder","type":"application/a2a-agent-card+json","#
                + r#""url":"https://agents.example.com/agents/coder/.well-known/agent-card.json","#
                + r#""displayName":"CODER","description":"Writes code"},"#
                + r#"{"identifier":"urn:air:agents.example.com:agent:demo","type":"application/a2a-agent-card+json","#
                + r#""url":"https://agents.example.com/agents/demo/.well-known/agent-card.json","displayName":"DEMO"}]}"#
        );
        catalogue.agents.clear();
        catalogue.mcp = Some(CatalogueMcpServer {
            card_path: "/mcp/server-card".into(),
            name: "Acme".into(),
            description: "Tools".into(),
        });
        catalogue.host = CatalogueHost {
            name: "Acme".into(),
            domain: Some("example.com".into()),
            documentation_url: Some("https://example.com/docs".into()),
            logo_url: Some("https://example.com/logo.svg".into()),
        };
        assert_eq!(
            written(&catalogue),
            r#"{"specVersion":"1.0","host":{"displayName":"Acme","identifier":"example.com","#.to_owned()
                + r#""documentationUrl":"https://example.com/docs","logoUrl":"https://example.com/logo.svg"},"entries":["#
                + r#"{"identifier":"urn:air:agents.example.com:mcp:sabir","type":"application/mcp-server-card+json","#
                + r#""url":"https://agents.example.com/mcp/server-card","displayName":"Acme","description":"Tools"}]}"#
        );
    }

    #[test]
    fn identifiers_of_servers_differ() {
        for (base, expected) in [
            ("https://Agents.Example.com", "urn:air:agents.example.com:agent:demo"),
            ("https://example.com:8443", "urn:air:example.com:8443:agent:demo"),
            ("https://example.com/team/A", "urn:air:example.com:team:A:agent:demo"),
            ("http://127.0.0.1:41242", "urn:air:127.0.0.1:41242:agent:demo"),
            ("http://[::1]:41242", "urn:air:%5B::1%5D:41242:agent:demo"),
            ("https://example.com/a%20b/ü?#", "urn:air:example.com:a%20b:%C3%BC%3F%23:agent:demo"),
        ] {
            assert_eq!(identifier(base, "agent:demo"), expected, "{base}");
        }
    }
}
