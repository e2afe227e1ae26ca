//! The tools of one turn: of all MCP servers that are configured, under names that models take.

use futures_util::future::join_all;
use sabir_model::Json;
use serde_json::value::RawValue;

use super::chat::{Function, FunctionSpec, ToolSpec};
use crate::mcp_client::{Tool, ToolResult, ToolServer, ToolServerSettings};
use crate::program::Host;

#[derive(Default)]
pub(super) struct Toolbox {
    servers: Vec<ToolServer>,
    /// As the model is told of them.
    specs: Vec<ToolSpec>,
    /// Where each is: the place of its server, and its name there.
    places: Vec<(usize, String)>,
}

/// OpenAI takes no longer name.
const LONGEST_NAME: usize = 64;

impl Toolbox {
    /// Connects to all servers at once. What is said of those that cannot be used is for the caller.
    pub(super) async fn open(settings: &[ToolServerSettings], host: &Host) -> (Self, Vec<String>) {
        let opened = join_all(settings.iter().map(|settings| ToolServer::open(settings.clone(), host))).await;
        let (mut servers, mut tools, mut notes) = (Vec::new(), Vec::new(), Vec::new());
        for (opened, settings) in opened.into_iter().zip(settings) {
            match opened {
                Ok((server, own)) => {
                    tools.extend(own.into_iter().map(|tool| (servers.len(), settings.name.as_str(), tool)));
                    servers.push(server);
                }
                Err(error) => {
                    tracing::warn!(server = settings.name, %error, "an MCP server cannot be used");
                    notes.push(format!("the tools of {} are not available", settings.name));
                }
            }
        }
        let names = names(&tools);
        let mut toolbox = Toolbox { servers, ..Toolbox::default() };
        for ((server, _, tool), name) in tools.into_iter().zip(names) {
            let no_arguments = || Json::parse(r#"{"type":"object","properties":{}}"#).expect("it is JSON");
            let parameters = tool.schema.unwrap_or_else(no_arguments);
            let function = FunctionSpec { name, description: tool.description, parameters };
            toolbox.specs.push(ToolSpec { kind: Function::Function, function });
            toolbox.places.push((server, tool.name));
        }
        (toolbox, notes)
    }

    pub(super) fn specs(&self) -> &[ToolSpec] {
        &self.specs
    }

    /// The server of a tool, by the name that the model knows.
    pub(super) fn server_of(&self, name: &str) -> Option<&str> {
        let (server, _) = self.place(name)?;
        Some(self.servers[*server].name())
    }

    pub(super) async fn call(&mut self, name: &str, arguments: &RawValue) -> ToolResult {
        let Some((server, tool)) = self.place(name).cloned() else {
            return ToolResult::error(format!("there is no tool {name:?}"));
        };
        self.servers[server].call(&tool, arguments).await
    }

    /// Ends the programs. Returns when they are gone.
    pub(super) async fn close(self) {
        join_all(self.servers.into_iter().map(ToolServer::close)).await;
    }

    fn place(&self, name: &str) -> Option<&(usize, String)> {
        self.specs.iter().zip(&self.places).find(|(spec, _)| spec.function.name == name).map(|(_, place)| place)
    }
}

/// The name of each tool for the model: its own, with that of its server before it where two servers have the same.
fn names(tools: &[(usize, &str, Tool)]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for (server, server_name, tool) in tools {
        let is_shared = tools.iter().any(|(other, _, known)| other != server && known.name == tool.name);
        let wanted = if is_shared { format!("{server_name}_{}", tool.name) } else { tool.name.clone() };
        let is_fit = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-');
        let mut name: String = wanted.chars().map(|letter| if is_fit(letter) { letter } else { '_' }).collect();
        name.truncate(LONGEST_NAME);
        let mut number = 2;
        while names.contains(&name) {
            let suffix = format!("_{number}");
            name.truncate(LONGEST_NAME - suffix.len());
            name.push_str(&suffix);
            number += 1;
        }
        names.push(name);
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_get_names_that_they_take() {
        let long = "x".repeat(80);
        for (tools, expected) in [
            (vec![(0, "files", "read"), (1, "web", "fetch")], vec!["read".to_owned(), "fetch".into()]),
            (vec![(0, "files", "read"), (1, "web", "read")], vec!["files_read".into(), "web_read".into()]),
            (vec![(0, "a", "read.file"), (0, "a", "read/file")], vec!["read_file".into(), "read_file_2".into()]),
            (vec![(0, "a", "été")], vec!["_t_".into()]),
            (
                vec![(0, "a", long.as_str()), (0, "a", long.as_str())],
                vec!["x".repeat(64), format!("{}_2", "x".repeat(62))],
            ),
        ] {
            let of = |name: &str| Tool { name: name.to_owned(), description: None, schema: None };
            let given: Vec<_> = tools.iter().map(|(server, title, name)| (*server, *title, of(name))).collect();
            assert_eq!(names(&given), expected, "{tools:?}");
        }
    }
}
