//! Whether a turn can reuse a program that runs already.
//!
//! A program learns most of what it may do when it starts: from its command line, its environment, the request that opens
//! its session, and its settings files. If any of that has changed, the next turn needs a new process; otherwise a new rule
//! would not apply as long as the conversation lasts.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::Host;
use super::invocation::invocation;
use super::settings::Settings;
use super::turn::environment_of;
use crate::prompt::{Approve, Prompt, Workspace};

/// Settings files of programs, relative to the workspace and to the home folder of their user.
const SETTINGS_FILES: [&str; 14] = [
    ".claude/settings.json",
    ".claude/settings.local.json",
    ".mcp.json",
    ".codex/config.toml",
    ".codex/rules/default.rules",
    ".config/goose/config.yaml",
    ".config/goose/permission.yaml",
    ".config/opencode/opencode.json",
    ".gemini/settings.json",
    ".opencode/opencode.json",
    ".qwen/settings.json",
    ".vibe/config.toml",
    "opencode.json",
    "opencode.jsonc",
];

/// Variables with another folder for the settings of a user, and the name of the file there.
const MOVED_SETTINGS: [(&str, &str); 2] = [("CLAUDE_CONFIG_DIR", "settings.json"), ("CODEX_HOME", "config.toml")];

/// Two turns with equal keys can use the same process. The key holds secrets, so it has no `Debug`.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct ReuseKey {
    session: Option<String>,
    start: Start,
}

/// What is decided when a program is started.
#[derive(Clone, PartialEq, Eq)]
struct Start {
    folder: PathBuf,
    command: Vec<String>,
    environment: Vec<(OsString, OsString)>,
    model: Option<String>,
    instructions: Option<String>,
    approve: Approve,
    trusts_prompts: bool,
    workspace: Workspace,
    files: Vec<Option<Version>>,
}

/// The version of a file: its length and when it was written.
type Version = (u64, Option<SystemTime>);

impl ReuseKey {
    /// The key of the program for this prompt. Text and files of the message do not matter.
    pub fn new(settings: &Settings, host: &Host, prompt: &Prompt) -> Self {
        let start = Prompt { text: String::new(), files: Vec::new(), session: None, ..prompt.clone() };
        let invocation = invocation(settings, start.clone(), Vec::new());
        let environment = environment_of(settings, host, invocation.environment);
        let files = settings_files(&start.folder, &environment).iter().map(|file| version(file)).collect();
        let start = Start {
            folder: start.folder,
            command: invocation.command,
            environment,
            model: start.model,
            instructions: start.instructions,
            approve: start.approve,
            trusts_prompts: start.trusts_prompts,
            workspace: start.workspace,
            files,
        };
        Self { session: prompt.session.clone(), start }
    }

    /// The same key with this session.
    pub fn with_session(self, session: Option<String>) -> Self {
        Self { session, ..self }
    }
}

fn settings_files(folder: &Path, environment: &[(OsString, OsString)]) -> Vec<PathBuf> {
    let variable = |name: &str| {
        let found = environment.iter().rfind(|(known, _)| known == OsStr::new(name));
        found.map(|(_, value)| Path::new(value))
    };
    let places = [Some(folder), variable("HOME")].into_iter().flatten();
    let usual = places.flat_map(|place| SETTINGS_FILES.iter().map(move |name| place.join(name)));
    let moved = MOVED_SETTINGS.iter().filter_map(|(place, name)| Some(variable(place)?.join(name)));
    usual.chain(moved).collect()
}

fn version(file: &Path) -> Option<Version> {
    let about = std::fs::metadata(file).ok()?;
    Some((about.len(), about.modified().ok()))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn settings_of_the_workspace_and_of_the_user_are_looked_at() {
        let home = tempfile::tempdir().unwrap();
        let (folder, user, moved) = (home.path().join("work"), home.path().join("user"), home.path().join("moved"));
        let environment: Vec<(OsString, OsString)> =
            vec![("HOME".into(), user.clone().into()), ("CLAUDE_CONFIG_DIR".into(), moved.clone().into())];
        let versions = || -> Vec<Option<Version>> {
            settings_files(&folder, &environment).iter().map(|file| version(file)).collect()
        };
        for (place, name, is_looked_at) in [
            (&folder, ".claude/settings.local.json", true),
            (&user, ".claude/settings.json", true),
            (&user, ".codex/config.toml", true),
            (&moved, "settings.json", true),
            (&folder, "README.md", false),
        ] {
            let before = versions();
            let file = place.join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(&file, "{}").unwrap();
            assert_eq!(versions() != before, is_looked_at, "{}", file.display());
            let written = versions();
            fs::write(&file, "{\"permissions\":{}}").unwrap();
            assert_eq!(versions() != written, is_looked_at, "{} again", file.display());
        }
    }
}
