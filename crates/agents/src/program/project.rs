//! What Sabir takes from the settings of an untrusted workspace: rules that restrict the program, and instructions.
//!
//! The settings of a workspace come with its content: anybody who can change a file of the repository could add a hook, an
//! allow rule or a server, and the program would run it. So the program starts without these settings. This module reads the
//! rules that only restrict the program, and the instructions that the program would skip, and passes them on.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use serde_json::Value;

use super::regular_file::read_up_to;
use crate::prompt::ProjectRules;

/// Claude Code's settings of a workspace, shared and personal.
const CLAUDE_SETTINGS: [&str; 2] = [".claude/settings.json", ".claude/settings.local.json"];

/// Larger settings files are ignored; nobody writes as many rules.
const LONGEST_SETTINGS: u64 = 1 << 20;

/// The file with instructions for Codex.
const INSTRUCTIONS: &str = "AGENTS.md";

/// Codex reads no more than this either.
const LONGEST_INSTRUCTIONS: u64 = 32 * 1024;

/// The deny and ask rules in a workspace's settings for Claude Code.
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
            // Claude Code skips such a file, too.
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

/// Makes a path in a rule absolute. `/x` in the workspace's own settings means the workspace; in the settings that Sabir
/// passes on, the same is `//` and the full path.
fn from_root(rule: &str, folder: &Path) -> String {
    match rule.split_once("(/") {
        Some((tool, path)) if tool != "Bash" && !path.starts_with('/') => {
            format!("{tool}(/{}/{path}", folder.display())
        }
        _ => rule.to_owned(),
    }
}

/// The text of the workspace's `AGENTS.md`, unless it is a link.
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
