//! One MCP server for the time of one turn: its tools, and calls of them.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use sabir_model::Json;
use sabir_outbound::Service;
use serde::Serialize;
use serde_json::json;
use serde_json::value::RawValue;
use tokio::time::timeout;

use super::http::HttpConnection;
use super::messages::{self, Call, Cancelled, Initialize, List};
use super::stdio::StdioConnection;
use super::tool_result::ToolResult;
use crate::lenient_json::Object;
use crate::program::Host;
use crate::protocols::jsonrpc::{self, Header, Incoming};

/// A server as the operator describes it.
#[derive(Clone)]
pub struct ToolServerSettings {
    /// Its name for the operator and in front of tools that two servers have.
    pub name: String,
    pub transport: Transport,
    /// For one call of a tool.
    pub timeout: Duration,
}

#[derive(Clone)]
pub enum Transport {
    /// A program that is started for each turn.
    Program {
        command: Vec<String>,
        /// Variables of its environment, besides those that are passed on.
        environment: Vec<(String, String)>,
        /// Names of variables that are passed on, besides those that every program needs.
        pass: Vec<String>,
        folder: PathBuf,
    },
    Http(Service),
}

/// A tool as its server describes it.
#[derive(Debug, Clone)]
pub(crate) struct Tool {
    pub(crate) name: String,
    pub(crate) description: Option<String>,
    /// The JSON Schema of its arguments.
    pub(crate) schema: Option<Json>,
}

/// Why a server did not do what was asked of it, in words that follow its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct McpError {
    words: String,
    /// It is of no use any more.
    is_lost: bool,
}

impl fmt::Display for McpError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.words)
    }
}

/// A server that is connected.
pub(crate) struct ToolServer {
    settings: ToolServerSettings,
    connection: Connection,
    next_id: u64,
    lost: Option<McpError>,
}

enum Connection {
    Stdio(Box<StdioConnection>),
    Http(HttpConnection),
}

/// What a message means for whoever waits for a response.
pub(super) enum Answered {
    /// It is the response.
    Ours,
    /// It is a request of the server, and this is the answer.
    Write(String),
    NotForUs,
}

/// How long a server may take until it has listed its tools.
const START_LIMIT: Duration = Duration::from_secs(30);
const MOST_PAGES: usize = 32;
/// A model cannot choose among more.
const MOST_TOOLS: usize = 256;

impl McpError {
    pub(super) fn refused(words: impl Into<String>) -> Self {
        McpError { words: words.into(), is_lost: false }
    }

    pub(super) fn lost(words: impl Into<String>) -> Self {
        McpError { words: words.into(), is_lost: true }
    }
}

impl ToolServer {
    /// Connects and lists the tools.
    pub(crate) async fn open(settings: ToolServerSettings, host: &Host) -> Result<(Self, Vec<Tool>), McpError> {
        let opening = async {
            let connection = match &settings.transport {
                Transport::Program { command, environment, pass, folder } => {
                    let variables = (environment.as_slice(), pass.as_slice());
                    let connection = StdioConnection::open(host, command, variables, folder.clone()).await?;
                    Connection::Stdio(Box::new(connection))
                }
                Transport::Http(service) => Connection::Http(HttpConnection::new(service.clone(), settings.timeout)),
            };
            let mut server = ToolServer { settings, connection, next_id: 1, lost: None };
            match server.greet().await {
                Ok(tools) => Ok((server, tools)),
                Err(error) => {
                    server.close().await;
                    Err(error)
                }
            }
        };
        timeout(START_LIMIT, opening).await.unwrap_or_else(|_| {
            Err(McpError::lost(format!("it did not list its tools within {} s", START_LIMIT.as_secs())))
        })
    }

    pub(crate) fn name(&self) -> &str {
        &self.settings.name
    }

    /// Calls a tool. Whatever goes wrong is a result that the model reads.
    pub(crate) async fn call(&mut self, tool: &str, arguments: &RawValue) -> ToolResult {
        let called = match &self.lost {
            Some(error) => Err(error.clone()),
            None => self.try_call(tool, arguments).await,
        };
        called.unwrap_or_else(|error| {
            let result = ToolResult::error(format!("the tool server {} failed: {error}", self.settings.name));
            if error.is_lost {
                self.lost = Some(error);
            }
            result
        })
    }

    /// Ends the program, or gives the session back. Returns when that is done.
    pub(crate) async fn close(self) {
        match self.connection {
            Connection::Stdio(connection) => connection.close().await,
            Connection::Http(connection) => connection.close().await,
        }
    }

    async fn try_call(&mut self, tool: &str, arguments: &RawValue) -> Result<ToolResult, McpError> {
        let id = self.next_id;
        let limit = self.settings.timeout;
        match timeout(limit, self.request("tools/call", Call { name: tool, arguments })).await {
            Ok(line) => Ok(ToolResult::read(&result(&line?)?)),
            Err(_) => {
                let cancelled = Cancelled { request_id: id, reason: "it took too long" };
                let _ = timeout(CANCEL_LIMIT, self.notify("notifications/cancelled", Some(cancelled))).await;
                Err(McpError::refused(format!("it did not answer within {} s", limit.as_secs_f32())))
            }
        }
    }

    async fn greet(&mut self) -> Result<Vec<Tool>, McpError> {
        let line = self.request("initialize", Initialize::new()).await?;
        let about = result(&line)?;
        if let (Connection::Http(connection), Some(version)) = (&mut self.connection, about.text("protocolVersion")) {
            connection.agree_on(version);
        }
        self.notify("notifications/initialized", None::<()>).await?;
        let mut tools = Vec::new();
        let mut cursor: Option<String> = None;
        for _ in 0..MOST_PAGES {
            let line = self.request("tools/list", List { cursor: cursor.as_deref() }).await?;
            let page = result(&line)?;
            tools.extend(page.objects("tools").iter().filter_map(|tool| {
                let name = tool.non_empty_text("name")?;
                let schema = tool.json("inputSchema").filter(Json::is_object);
                Some(Tool { name, description: tool.non_empty_text("description"), schema })
            }));
            cursor = page.non_empty_text("nextCursor");
            if cursor.is_none() || tools.len() >= MOST_TOOLS {
                break;
            }
        }
        tools.truncate(MOST_TOOLS);
        Ok(tools)
    }

    async fn request(&mut self, method: &str, params: impl Serialize) -> Result<String, McpError> {
        let id = self.next_id;
        self.next_id += 1;
        let line = messages::request(id, method, params);
        match &mut self.connection {
            Connection::Stdio(connection) => {
                connection.send(&line).await?;
                connection.response(id).await
            }
            Connection::Http(connection) => connection.exchange(&line, id).await,
        }
    }

    async fn notify(&mut self, method: &str, params: Option<impl Serialize>) -> Result<(), McpError> {
        let line = messages::notification(method, params);
        match &mut self.connection {
            Connection::Stdio(connection) => connection.send(&line).await,
            Connection::Http(connection) => connection.notify(&line).await,
        }
    }
}

/// Nobody waits longer to tell a server that its answer has no use any more.
const CANCEL_LIMIT: Duration = Duration::from_secs(1);

/// What a response says.
fn result(line: &str) -> Result<Object<'_>, McpError> {
    match jsonrpc::parse(line) {
        Some(Incoming::Answer { outcome: Ok(result), .. }) => Ok(result),
        Some(Incoming::Answer { outcome: Err(error), .. }) => {
            Err(McpError::refused(format!("it refused the request: {} ({})", error.message, error.code)))
        }
        _ => Err(McpError::refused("its answer is not a response of MCP")),
    }
}

pub(super) fn read_message(line: &str, expected: u64) -> Answered {
    match jsonrpc::parse(line) {
        Some(Incoming::Answer { id, .. }) if id == expected => Answered::Ours,
        Some(Incoming::Request { id, method, .. }) if method == "ping" => {
            Answered::Write(jsonrpc::result(Header::Version2, &id, json!({})))
        }
        Some(Incoming::Request { id, .. }) => Answered::Write(jsonrpc::method_not_found(Header::Version2, &id)),
        _ => Answered::NotForUs,
    }
}
