//! Where a caller wants to be told: webhooks of a task.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{PushConfigId, TaskId};

#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PushConfig {
    /// `None` until the engine gives it the task's id.
    pub id: Option<PushConfigId>,
    /// `None` in a send that makes the task.
    pub task: Option<TaskId>,
    pub url: String,
    pub token: Option<String>,
    pub authentication: Option<PushAuthentication>,
}

/// Which events a webhook gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PushEvents {
    /// Every status but `submitted`.
    #[default]
    Statuses,
    /// Every event.
    All,
}

#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PushAuthentication {
    pub schemes: Vec<String>,
    pub credentials: Option<String>,
}

/// A secret that is there, in a log or a panic.
const NOT_SHOWN: &str = "(not shown)";

/// Without the secrets: the token, and the path and query of the URL, which may hold one.
impl fmt::Debug for PushConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PushConfig { id, task, url, token, authentication } = self;
        let end = url.find("://").map_or(0, |at| at + 3);
        let authority = url[end..].find(['/', '?', '#']).map_or(url.as_str(), |at| &url[..end + at]);
        // A user and a password may stand before the host.
        let shown = if authority.contains('@') { NOT_SHOWN } else { authority };
        f.debug_struct("PushConfig")
            .field("id", id)
            .field("task", task)
            .field("url", &shown)
            .field("token", &token.as_ref().map(|_| NOT_SHOWN))
            .field("authentication", authentication)
            .finish()
    }
}

impl fmt::Debug for PushAuthentication {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PushAuthentication { schemes, credentials } = self;
        let credentials = credentials.as_ref().map(|_| NOT_SHOWN);
        f.debug_struct("PushAuthentication").field("schemes", schemes).field("credentials", &credentials).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_not_printed() {
        for (url, shown) in [
            ("https://host:8443/hook/geheim?key=geheim", "https://host:8443"),
            ("https://host?geheim", "https://host"),
            ("https://user:geheim@host/", NOT_SHOWN),
            ("host/geheim", "host"),
        ] {
            let config = PushConfig {
                id: PushConfigId::parse("c1").ok(),
                task: None,
                url: url.to_owned(),
                token: Some("geheim".to_owned()),
                authentication: Some(PushAuthentication {
                    schemes: vec!["Bearer".to_owned()],
                    credentials: Some("geheim".to_owned()),
                }),
            };
            let text = format!("{config:?} {config:#?}");
            assert!(!text.contains("geheim"), "{text}");
            assert!(text.contains(&format!("url: \"{shown}\"")) && text.contains("Bearer"), "{text}");
        }
    }
}
