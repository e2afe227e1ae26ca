//! A server over streamable HTTP: each request is a POST, and its answer is JSON or a short stream of events.

use std::time::Duration;

use sabir_outbound::remote::EventParser;
use sabir_outbound::{Service, ServiceError};

use super::server::{Answered, McpError, read_message};

/// A longer message is no answer to a tool call that a model could read.
pub(super) const LARGEST_MESSAGE: usize = 16 * 1024 * 1024;

pub(super) struct HttpConnection {
    service: Service,
    /// What the server wants to see with each request, if it keeps sessions.
    session: Option<String>,
    /// The revision that was agreed upon.
    version: Option<String>,
    /// For each step of an exchange; the whole has its own limit.
    patience: Duration,
}

const SESSION: &str = "mcp-session-id";
const VERSION: &str = "mcp-protocol-version";

impl HttpConnection {
    pub(super) fn new(service: Service, patience: Duration) -> Self {
        HttpConnection { service, session: None, version: None, patience }
    }

    pub(super) fn agree_on(&mut self, version: String) {
        self.version = Some(version);
    }

    /// Sends a message that has no answer.
    pub(super) async fn notify(&mut self, line: &str) -> Result<(), McpError> {
        self.post(line).await.map(drop)
    }

    /// Sends a request and reads its response.
    pub(super) async fn exchange(&mut self, line: &str, id: u64) -> Result<String, McpError> {
        let mut response = self.post(line).await?;
        if let Some(session) = response.headers.get(SESSION).and_then(|value| value.to_str().ok()) {
            self.session = Some(session.to_owned());
        }
        if !response.is_event_stream() {
            let body = response.complete(self.patience).await.map_err(|error| unreachable(&error.into()))?.body;
            let line = String::from_utf8_lossy(&body).into_owned();
            return match read_message(&line, id) {
                Answered::Ours => Ok(line),
                Answered::Write(_) | Answered::NotForUs => {
                    Err(McpError::refused("its answer is not a response of MCP"))
                }
            };
        }
        let mut parser = EventParser::new(LARGEST_MESSAGE);
        loop {
            let chunk = response.chunk(self.patience).await.map_err(|error| unreachable(&error.into()))?;
            let mut events = Vec::new();
            match &chunk {
                Some(bytes) => {
                    parser.feed(bytes, &mut events).map_err(|error| McpError::refused(error.to_string()))?;
                }
                None => parser.finish(&mut events),
            }
            for event in events {
                let line = String::from_utf8_lossy(&event.data).into_owned();
                match read_message(&line, id) {
                    Answered::Ours => return Ok(line),
                    Answered::Write(answer) => self.notify(&answer).await?,
                    Answered::NotForUs => {}
                }
            }
            if chunk.is_none() {
                return Err(McpError::refused("its stream ended without an answer"));
            }
        }
    }

    /// Gives the session back. A server that does not take it back forgets it by itself.
    pub(super) async fn close(self) {
        const SHORT: Duration = Duration::from_secs(1);
        if let Some(session) = &self.session {
            let version = self.version.as_deref().unwrap_or(super::messages::VERSION);
            let headers = [(SESSION, session.as_str()), (VERSION, version)];
            let _ = self.service.delete("", &headers, SHORT).await;
        }
    }

    async fn post(&self, line: &str) -> Result<sabir_outbound::OpenResponse, McpError> {
        let mut headers = vec![("content-type", "application/json"), ("accept", "application/json, text/event-stream")];
        headers.extend(self.session.as_deref().map(|session| (SESSION, session)));
        headers.extend(self.version.as_deref().map(|version| (VERSION, version)));
        let response = self.service.post("", &headers, line.as_bytes().to_vec(), self.patience).await;
        let response = response.map_err(|error| unreachable(&error))?;
        match response.status.as_u16() {
            200..=299 => Ok(response),
            401 | 403 => Err(McpError::lost("it does not accept the credential of this server")),
            404 if self.session.is_some() => Err(McpError::lost("it has forgotten the session")),
            status => Err(McpError::refused(format!("it answered with HTTP status {status}"))),
        }
    }
}

fn unreachable(error: &ServiceError) -> McpError {
    tracing::warn!(%error, "an MCP server cannot be reached");
    match error {
        ServiceError::Dial(error) => McpError::refused(format!("it cannot be reached: {error}")),
        ServiceError::Credential(_) | ServiceError::Settings(_) => {
            McpError::refused("this server has no valid credential for it now")
        }
    }
}
