//! Which ids agents can have: an id is a part of paths, and some paths are the server's own.

/// First path segments that mean something else, now or in a later version.
pub const RESERVED_AGENT_IDS: [&str; 15] = [
    "a2a",
    "v1",
    "agents",
    "console",
    "tasks",
    "message",
    "metrics",
    "healthz",
    "readyz",
    "openapi.json",
    "agent",
    ".well-known",
    "mcp",
    "admin",
    "health",
];

/// Whether an id can be a path segment as it is.
pub fn is_path_segment(id: &str) -> bool {
    let is_plain = id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte));
    // Clients fold `.` and `..` away before they send a path.
    is_plain && (1..=64).contains(&id.len()) && id != "." && id != ".."
}
