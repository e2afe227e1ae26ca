//! The parameters of ACP's methods. Members that are not named here are the editor's own.

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::content::ContentBlock;
use super::json_rpc::RpcError;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Initialize {
    /// Whatever it is, the answer names the version that is spoken here.
    #[serde(rename = "protocolVersion")]
    pub _protocol_version: u16,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Authenticate {
    pub method_id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NewSession {
    pub cwd: String,
    #[serde(default)]
    pub mcp_servers: Vec<IgnoredAny>,
}

/// Of `session/load` and `session/resume`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OpenSession {
    pub session_id: String,
    pub cwd: String,
    #[serde(default)]
    pub mcp_servers: Vec<IgnoredAny>,
}

#[derive(Deserialize, Default)]
pub struct ListSessions {
    #[serde(default)]
    pub cwd: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Prompt {
    pub session_id: String,
    pub prompt: Vec<ContentBlock>,
    /// A prompt that comes again with its id joins the first.
    #[serde(default)]
    pub message_id: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CancelSession {
    pub session_id: String,
}

/// The folder of a session.
pub fn folder(cwd: String) -> Result<String, RpcError> {
    // Windows has drives, and shares of other machines.
    let mut letters = cwd.chars();
    let has_drive = letters.next().is_some_and(|first| first.is_ascii_alphabetic()) && letters.next() == Some(':');
    match cwd.starts_with(['/', '\\']) || has_drive {
        true => Ok(cwd),
        false => Err(RpcError::invalid_params("cwd: must be an absolute path")),
    }
}
