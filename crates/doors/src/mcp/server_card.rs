//! The card of the MCP server: what a program reads before it connects, as the draft of MCP for discovery has it.
//!
//! It says where the server is and what it speaks. Tools are not in it: those are the caller's, and `tools/list` has them.

use serde::Serialize;

use super::client::{McpTransport, McpVersion};
use super::door::McpDoor;
use crate::words::one_line;

const SCHEMA: &str = "https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json";
/// The longest title that the schema allows, without the mark that it was cut.
const LONGEST_TITLE: usize = 99;

/// Where the server is, and who offers it.
#[derive(Debug, Clone, Copy)]
pub struct McpPlace<'a> {
    /// Where clients reach the door.
    pub url: &'a str,
    /// The domain of whoever offers it; `None`: it is for this machine.
    pub domain: Option<&'a str>,
    /// The name of the server among those of the domain.
    pub name: &'a str,
    /// What people read.
    pub title: &'a str,
    /// Where people read more.
    pub website: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ServerCard<'a> {
    #[serde(rename = "$schema")]
    schema: &'static str,
    name: String,
    version: &'a str,
    title: String,
    description: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    website_url: Option<&'a str>,
    remotes: [Remote<'a>; 1],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Remote<'a> {
    r#type: &'static str,
    url: &'a str,
    supported_protocol_versions: Vec<&'static str>,
}

impl McpDoor {
    /// What the door is for, in the hundred characters that a card allows.
    pub const DESCRIPTION: &'static str =
        "The agents of this server as tools: ask one, wait for its task, answer its questions";

    /// The card, as JSON.
    pub fn server_card(&self, place: &McpPlace<'_>) -> Vec<u8> {
        let card = ServerCard {
            schema: SCHEMA,
            name: format!("{}/{}", namespace(place.domain), place.name),
            version: &self.settings.version,
            title: one_line(place.title, LONGEST_TITLE),
            description: Self::DESCRIPTION,
            website_url: place.website,
            remotes: [Remote {
                r#type: "streamable-http",
                url: place.url,
                supported_protocol_versions: McpVersion::names(McpTransport::Http),
            }],
        };
        serde_json::to_vec(&card).expect("texts can be written as JSON")
    }
}

/// The domain, its last word first, in the characters that names may have.
fn namespace(domain: Option<&str>) -> String {
    let reversed: Vec<&str> = domain.unwrap_or("localhost").split('.').rev().collect();
    let allowed = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '.' | '-') { c } else { '-' };
    reversed.join(".").chars().map(allowed).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_domains_from_their_end() {
        for (domain, expected) in [
            (Some("agents.example.com"), "com.example.agents"),
            (Some("a_b.example"), "example.a-b"),
            (None, "localhost"),
        ] {
            assert_eq!(namespace(domain), expected);
        }
        assert!(McpDoor::DESCRIPTION.len() <= 100);
    }
}
