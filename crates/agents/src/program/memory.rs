//! What is remembered of a context between turns: the program's own session, and where it was held.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Memory {
    pub session: String,
    pub folder: PathBuf,
}

impl Memory {
    /// Another kind of agent, or an older version, may have left something else.
    pub fn parse(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    pub fn text(session: &str, folder: &Path) -> String {
        let memory = Memory { session: session.into(), folder: folder.into() };
        serde_json::to_string(&memory).unwrap_or_default()
    }
}
