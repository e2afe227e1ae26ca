//! What the client writes. What it reads is plain JSON-RPC.

use serde::Serialize;
use serde_json::value::RawValue;

/// The revision that the client asks for; every server of an earlier one answers with its own.
pub(super) const VERSION: &str = "2025-06-18";

#[derive(Serialize)]
struct Request<'a, P> {
    jsonrpc: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<u64>,
    method: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    params: Option<P>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Initialize {
    protocol_version: &'static str,
    capabilities: Empty,
    client_info: ClientInfo,
}

#[derive(Serialize)]
struct Empty {}

#[derive(Serialize)]
struct ClientInfo {
    name: &'static str,
    version: &'static str,
}

/// `tools/list`, from the beginning or from where the page before ended.
#[derive(Serialize)]
pub(super) struct List<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cursor: Option<&'a str>,
}

#[derive(Serialize)]
pub(super) struct Call<'a> {
    pub(super) name: &'a str,
    /// Byte for byte what the model wrote.
    pub(super) arguments: &'a RawValue,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Cancelled {
    pub(super) request_id: u64,
    pub(super) reason: &'static str,
}

impl Initialize {
    pub(super) fn new() -> Self {
        let client_info = ClientInfo { name: "sabir", version: env!("CARGO_PKG_VERSION") };
        Initialize { protocol_version: VERSION, capabilities: Empty {}, client_info }
    }
}

pub(super) fn request(id: u64, method: &str, params: impl Serialize) -> String {
    line(&Request { jsonrpc: "2.0", id: Some(id), method, params: Some(params) })
}

pub(super) fn notification(method: &str, params: Option<impl Serialize>) -> String {
    line(&Request { jsonrpc: "2.0", id: None, method, params })
}

fn line(message: &impl Serialize) -> String {
    serde_json::to_string(message).expect("texts and JSON are always JSON")
}
