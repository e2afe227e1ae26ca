//! What a workspace that is not trusted may still say: what must not be done in it, and how to work in it.
//!
//! The settings of a workspace come with its content: whoever can change a file of the repository could add a hook, an allow
//! rule or a server, and the program would run it. So a program is started without them. What only restricts it is
//! read here and handed over, and so are instructions that the program leaves out with the rest.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use serde_json::Value;

use super::regular_file::read_up_to;
use crate::prompt::ProjectRules;

/// Claude Code's settings of a workspace, shared and personal.
const CLAUDE_SETTINGS: [&str; 2] = [".claude/settings.json", ".claude/settings.local.json"];

/// Nobody writes more rules than that.
const LONGEST_SETTINGS: u64 = 1 << 20;

/// Where a workspace tells Codex how to work.
const INSTRUCTIONS: &str = "AGENTS.md";

/// Codex reads no more of it either.
const LONGEST_INSTRUCTIONS: u64 = 32 * 1024;

/// The rules of a workspace's settings for Claude Code that forbid something or ask for it.
pub(super) fn claude_rules(folder: &Path) -> ProjectRules {
    let mut rules = ProjectRules::default();
    for name in CLAUDE_SETTINGS {
        let file = folder.join(name);
        let settings = match read_up_to(&file, LONGEST_SETTINGS) {
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            text => text.and_then(|text| Ok(serde_json::from_slice::<Value>(&text)?)),
        };
        let settings = match settings {
            Ok(settings) => settings,
            // Claude Code leaves such a file out, too.
            Err(error) => {
                tracing::warn!(%error, file = %file.display(), "settings of a workspace cannot be read");
                continue;
            }
        };
        rules.deny.extend(rules_of(&settings, "/permissions/deny", folder));
        rules.ask.extend(rules_of(&settings, "/permissions/ask", folder));
    }
    rules
}

fn rules_of(settings: &Value, pointer: &str, folder: &Path) -> Vec<String> {
    let rules = settings.pointer(pointer).and_then(Value::as_array).into_iter().flatten();
    rules.filter_map(Value::as_str).map(|rule| from_root(rule, folder)).collect()
}

/// A path with one slash begins at the workspace in its own settings, and elsewhere in ours: there two slashes and the whole
/// path say the same.
fn from_root(rule: &str, folder: &Path) -> String {
    match rule.split_once("(/") {
        Some((tool, path)) if tool != "Bash" && !path.starts_with('/') => {
            format!("{tool}(/{}/{path}", folder.display())
        }
        _ => rule.to_owned(),
    }
}

/// What the workspace's `AGENTS.md` says, unless it is a link to somewhere else.
pub(super) fn instructions(folder: &Path) -> Option<String> {
    let file = fs::canonicalize(folder.join(INSTRUCTIONS)).ok()?;
    let is_ours = fs::canonicalize(folder).is_ok_and(|folder| file.starts_with(folder));
    let text = is_ours.then(|| read_up_to(&file, LONGEST_INSTRUCTIONS).ok()).flatten()?;
    let text = String::from_utf8(text).ok()?;
    (!text.trim().is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::super::regular_file::make_pipe;
    use super::*;

    #[test]
    fn only_what_restricts_is_taken() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path();
        assert_eq!(claude_rules(folder), ProjectRules::default());
        fs::create_dir(folder.join(".claude")).unwrap();
        let shared = r#"{"permissions":{"allow":["Bash"],"deny":["Read(./.env)","Edit(/src/**)","Read(//etc/**)","Bash(/bin/rm *)",7],
            "ask":["WebFetch"]},"hooks":{},"env":{"A":"b"}}"#;
        fs::write(folder.join(".claude/settings.json"), shared).unwrap();
        fs::write(folder.join(".claude/settings.local.json"), r#"{"permissions":{"deny":["Write"]}}"#).unwrap();
        let rooted = format!("Edit(/{}/src/**)", folder.display());
        let deny = ["Read(./.env)", &rooted, "Read(//etc/**)", "Bash(/bin/rm *)", "Write"].map(str::to_owned);
        assert_eq!(claude_rules(folder), ProjectRules { deny: deny.into(), ask: vec!["WebFetch".to_owned()] });
        fs::write(folder.join(".claude/settings.json"), "{").unwrap();
        assert_eq!(claude_rules(folder).deny, ["Write"]);
        fs::remove_file(folder.join(".claude/settings.json")).unwrap();
        make_pipe(&folder.join(".claude/settings.json"));
        assert_eq!(claude_rules(folder).deny, ["Write"], "nobody writes to a pipe");
    }

    #[test]
    fn instructions_do_not_lead_out_of_the_workspace() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("work");
        fs::create_dir(&folder).unwrap();
        assert_eq!(instructions(&folder), None);
        fs::write(folder.join(INSTRUCTIONS), "be kind").unwrap();
        assert_eq!(instructions(&folder).as_deref(), Some("be kind"));
        fs::write(home.path().join("secret"), "x").unwrap();
        fs::remove_file(folder.join(INSTRUCTIONS)).unwrap();
        std::os::unix::fs::symlink("../secret", folder.join(INSTRUCTIONS)).unwrap();
        assert_eq!(instructions(&folder), None);
        fs::remove_file(folder.join(INSTRUCTIONS)).unwrap();
        make_pipe(&folder.join(INSTRUCTIONS));
        assert_eq!(instructions(&folder), None);
    }
}
