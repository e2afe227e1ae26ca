//! What a program says about itself in its response to `initialize`.

use crate::lenient_json::Object;

#[derive(Debug, Default)]
pub(super) struct Initialized {
    /// The name that it gives itself.
    pub(super) program: Option<String>,
    /// How it resumes a session. `None`: it cannot.
    pub(super) resume_method: Option<&'static str>,
    pub(super) takes_images: bool,
    /// Whether it reaches MCP servers by HTTP. All programs start them themselves.
    pub(super) knows_http_servers: bool,
    /// The names of its authentication methods.
    pub(super) logins: Vec<String>,
}

impl Initialized {
    /// Reads the result of `initialize`.
    pub(super) fn of(result: &Object) -> Self {
        let capabilities = result.object("agentCapabilities");
        Self {
            program: result.object("agentInfo").non_empty_text("name"),
            resume_method: resume_method(&capabilities),
            knows_http_servers: capabilities.object("mcpCapabilities").is_true("http"),
            takes_images: capabilities.object("promptCapabilities").is_true("image"),
            logins: result.objects("authMethods").iter().filter_map(|login| login.non_empty_text("name")).collect(),
        }
    }
}

fn resume_method(capabilities: &Object) -> Option<&'static str> {
    match (capabilities.is_true("loadSession"), capabilities.object("sessionCapabilities").has("resume")) {
        (true, _) => Some("session/load"),
        (false, true) => Some("session/resume"),
        (false, false) => None,
    }
}
