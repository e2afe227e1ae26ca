//! Fixtures that the tests of the bindings share.

use std::fs;
use std::path::Path;

use sabir_model::AgentId;
use serde_json::Value;

use crate::{KnownAgents, RequestHead};

/// A server with these three agents.
pub(crate) struct ThreeAgents;

const IDS: [&str; 3] = ["alpha", "b 2", "harbour-north"];

impl KnownAgents for ThreeAgents {
    fn knows(&self, id: &str) -> bool {
        IDS.contains(&id)
    }

    fn ids(&self) -> Vec<AgentId> {
        IDS.map(|id| AgentId::parse(id).unwrap()).to_vec()
    }
}

pub(crate) fn golden_text(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("golden").join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

pub(crate) fn golden(path: &str) -> Value {
    serde_json::from_str(&golden_text(path)).unwrap()
}

/// The head of a golden request.
pub(crate) fn head(request: &Value) -> RequestHead<'_> {
    let (path, query) = match request["path"].as_str().unwrap().split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (request["path"].as_str().unwrap(), None),
    };
    let version = request["headers"]["A2A-Version"].as_str();
    RequestHead { verb: request["method"].as_str().unwrap(), path, query, version, ..RequestHead::default() }
}

pub(crate) fn json(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(bytes)))
}
