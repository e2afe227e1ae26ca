//! The MCP servers of an agent: a table of tables, by name.

use serde_json::{Map, Value, json};

use super::paths::command;
use super::raw::{Raw, RawEntry, RawTable};
use super::remote_agents::remote_url;
use super::secrets::secret_table;
use super::sections::McpServerConfig;
use super::table_values::{variable, variable_name, variables};
use super::values::{ValueKind, list};

const EXPECTED: &str = "a table of servers, such as { files = { command = [\"mcp-files\"] } }";
const KEYS: &str = "command, env, pass_env, url, token_env, headers";

pub fn mcp_servers() -> ValueKind<Vec<McpServerConfig>> {
    let server = json!({
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "command": command().schema,
            "env": variables().schema,
            "pass_env": list(variable_name()).schema,
            "url": remote_url().schema,
            "token_env": variable().schema,
            "headers": secret_table().schema,
        },
    });
    ValueKind::new(json!({"type": "object", "additionalProperties": server}), |raw| {
        let entries = match raw {
            Raw::Table(RawTable { entries, .. }) => entries.as_slice(),
            Raw::Untyped(text) if text.is_empty() => &[],
            raw => return Err(raw.unexpected(EXPECTED)),
        };
        let (mut servers, mut shown) = (Vec::new(), Map::new());
        for RawEntry { key: name, value, .. } in entries {
            let named = |words: String| format!("has the server {name}, which {words}");
            if !is_name(name) {
                return Err(named("needs another name: up to 32 letters, digits, dashes and underscores".to_owned()));
            }
            let Raw::Table(table) = value else { return Err(named(value.unexpected("a table"))) };
            let (server, value) = server_of(name, table).map_err(named)?;
            servers.push(server);
            shown.insert(name.clone(), value);
        }
        Ok((servers, Value::Object(shown)))
    })
}

fn server_of(name: &str, table: &RawTable) -> Result<(McpServerConfig, Value), String> {
    let mut server = McpServerConfig { name: name.to_owned(), ..McpServerConfig::default() };
    let mut shown = Map::new();
    for RawEntry { key, value, .. } in &table.entries {
        let named = |words: String| format!("has {key}, which {words}");
        let value = match key.as_str() {
            "command" => read(&command(), value, &mut server.command),
            "env" => read(&variables(), value, &mut server.environment),
            "pass_env" => read(&list(variable_name()), value, &mut server.pass_environment),
            "url" => read(&remote_url().map(Some), value, &mut server.url),
            "token_env" => read(&variable().map(Some), value, &mut server.token.variable),
            "headers" => read(&secret_table(), value, &mut server.headers),
            _ => return Err(format!("has the unknown key {key}; there are {KEYS}")),
        };
        shown.insert(key.clone(), value.map_err(named)?);
    }
    let has_program_keys = !server.environment.is_empty() || !server.pass_environment.is_empty();
    match (!server.command.is_empty(), &server.url) {
        (true, Some(_)) => Err("has a command and a url; leave one of them out".to_owned()),
        (false, None) => Err("has neither a command nor a url; add one of them".to_owned()),
        (true, None) if server.shows_secret() => {
            Err("has a command, and token_env and headers are for a url; use env or pass_env".to_owned())
        }
        (false, Some(_)) if has_program_keys => {
            Err("has a url, and env and pass_env are for a command; use token_env or headers".to_owned())
        }
        _ => Ok((server, Value::Object(shown))),
    }
}

fn read<V: 'static>(kind: &ValueKind<V>, raw: &Raw, field: &mut V) -> Result<Value, String> {
    let (value, shown) = kind.read(raw)?;
    *field = value;
    Ok(shown)
}

/// It stands before names of tools.
fn is_name(name: &str) -> bool {
    let is_fit = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    (1..=32).contains(&name.len()) && name.bytes().all(is_fit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::file::parse_toml;

    #[test]
    fn servers_in_every_spelling() {
        for (text, expected) in [
            ("a = {}", "{}"),
            ("a = { f = { command = ['x', '-y'] } }", r#"{"f":{"command":["x","-y"]}}"#),
            ("a.f.command = ['x']\na.f.env.K = 'secret'", r#"{"f":{"command":["x"],"env":{"K":"(not shown)"}}}"#),
            (
                "a.w = { url = 'http://localhost:1/mcp', token_env = 'T', headers = { X-Y = 'secret' } }",
                r#"{"w":{"headers":{"X-Y":"(not shown)"},"token_env":"T","url":"http://localhost:1/mcp"}}"#,
            ),
            ("a = 'x'", "is \"x\"; expected a table of servers, such as { files = { command = [\"mcp-files\"] } }"),
            ("a.f = 'x'", "has the server f, which is \"x\"; expected a table"),
            ("a.f = {}", "has the server f, which has neither a command nor a url; add one of them"),
            (
                "a.'x y' = {}",
                "has the server x y, which needs another name: up to 32 letters, digits, dashes and underscores",
            ),
            (
                "a.f = { cmd = 'x' }",
                "has the server f, which has the unknown key cmd; there are command, env, pass_env, url, token_env, headers",
            ),
            (
                "a.f = { command = [] }",
                "has the server f, which has command, which names no program; expected a list such as [\"my-agent\", \"--verbose\"]",
            ),
            (
                "a.f = { command = ['x'], url = 'http://a.b' }",
                "has the server f, which has a command and a url; leave one of them out",
            ),
            (
                "a.f = { command = ['x'], token_env = 'T' }",
                "has the server f, which has a command, and token_env and headers are for a url; use env or pass_env",
            ),
            (
                "a.f = { url = 'http://a.b', pass_env = ['T'] }",
                "has the server f, which has a url, and env and pass_env are for a command; use token_env or headers",
            ),
        ] {
            let raw = parse_toml(text).unwrap().entries.remove(0).value;
            let read = mcp_servers().read(&raw);
            assert_eq!(read.map_or_else(|words| words, |(_, shown)| shown.to_string()), expected, "{text}");
        }
    }
}
