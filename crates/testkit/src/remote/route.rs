//! What is at a path.

use serde_json::{Map, Value, json};

use super::card;
use super::connection::RawRequest;
use super::protocol::{Operation, RemoteBinding, RemoteProtocol};
use super::server::Settings;

pub(super) struct Route {
    pub protocol: Option<RemoteProtocol>,
    pub target: Target,
}

pub(super) enum Target {
    /// With the path of the card.
    Card(String),
    JsonRpc,
    HttpJson {
        operation: Option<Operation>,
        params: Map<String, Value>,
    },
    Nowhere,
}

pub(super) fn locate(settings: &Settings, request: &RawRequest) -> Route {
    let (path, query) = request.path.split_once('?').unwrap_or((&request.path, ""));
    let nowhere = Route { protocol: None, target: Target::Nowhere };
    let Some(path) = path.strip_prefix(settings.mount.as_str()) else {
        return nowhere;
    };
    if request.method == "GET" && [card::PATH, card::OLD_PATH].contains(&path) {
        return Route { protocol: None, target: Target::Card(path.to_owned()) };
    }
    // The first protocol is at the root, so the others are tried before it.
    for (index, protocol) in settings.protocols.iter().enumerate().rev() {
        let Some(rest) = path.strip_prefix(settings.interface_path(index, *protocol).as_str()) else {
            continue;
        };
        let target = match protocol.binding() {
            RemoteBinding::JsonRpc if rest.is_empty() || rest == "/" => Target::JsonRpc,
            RemoteBinding::JsonRpc => continue,
            RemoteBinding::HttpJson => http_json(settings, *protocol, &request.method, rest, query),
        };
        return Route { protocol: Some(*protocol), target };
    }
    nowhere
}

/// What was asked for, as far as it can be told.
pub(super) fn operation(route: &Route, json: Option<&Value>) -> Option<Operation> {
    match &route.target {
        Target::Card(_) => Some(Operation::Card),
        Target::JsonRpc => route.protocol?.operation_of(json?.get("method")?.as_str()?),
        Target::HttpJson { operation, .. } => *operation,
        Target::Nowhere => None,
    }
}

fn http_json(settings: &Settings, protocol: RemoteProtocol, method: &str, path: &str, query: &str) -> Target {
    let prefix = match (&settings.tenant, protocol.is_v1()) {
        (Some(tenant), true) => format!("/{tenant}"),
        (None, true) => String::new(),
        (_, false) => "/v1".to_owned(),
    };
    let unknown = Target::HttpJson { operation: None, params: Map::new() };
    let Some(path) = path.strip_prefix(&prefix).and_then(|path| path.strip_prefix('/')) else {
        return unknown;
    };
    let segments: Vec<String> = path.split('/').map(decode).collect();
    let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
    let mut params = Map::new();
    if method == "GET" || method == "DELETE" {
        for (name, value) in query.split('&').filter_map(|pair| pair.split_once('=')) {
            params.insert(decode(name), json!(decode(value)));
        }
    }
    let mut named = |name: &str, value: &str| drop(params.insert(name.to_owned(), json!(value)));
    let (task_name, config_name) = if protocol.is_v1() { ("taskId", "id") } else { ("id", "pushNotificationConfigId") };
    let operation = match (method, segments.as_slice()) {
        ("POST", ["message:send"]) => Some(Operation::Send),
        ("POST", ["message:stream"]) => Some(Operation::Stream),
        ("GET", ["tasks"]) if protocol.is_v1() => Some(Operation::List),
        ("GET", ["extendedAgentCard"]) if protocol.is_v1() => Some(Operation::ExtendedCard),
        ("GET", ["card"]) if !protocol.is_v1() => Some(Operation::ExtendedCard),
        ("GET" | "POST", ["tasks", last]) => {
            let (id, action) = last.rsplit_once(':').unwrap_or((last, ""));
            let operation = match (method, action) {
                ("POST", "cancel") => Some(Operation::Cancel),
                (_, "subscribe") => Some(Operation::Subscribe),
                ("GET", _) => Some(Operation::Get),
                _ => None,
            };
            named("id", if operation == Some(Operation::Get) { last } else { id });
            operation
        }
        (_, ["tasks", task, "pushNotificationConfigs"]) => {
            named(task_name, task);
            match method {
                "POST" => Some(Operation::SetPush),
                "GET" => Some(Operation::ListPush),
                _ => None,
            }
        }
        (_, ["tasks", task, "pushNotificationConfigs", config]) => {
            named(task_name, task);
            named(config_name, config);
            match method {
                "GET" => Some(Operation::GetPush),
                "DELETE" => Some(Operation::DeletePush),
                _ => None,
            }
        }
        _ => None,
    };
    Target::HttpJson { operation, params }
}

/// Resolves `%20` and the like.
pub(super) fn decode(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut decoded = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let code = (bytes[at] == b'%').then(|| text.get(at + 1..at + 3)).flatten();
        match code.and_then(|code| u8::from_str_radix(code, 16).ok()) {
            Some(byte) => {
                decoded.push(byte);
                at += 3;
            }
            None => {
                decoded.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&decoded).into_owned()
}
