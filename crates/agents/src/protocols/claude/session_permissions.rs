//! What "always" makes the program remember: permissions of the running session, and nothing else.
//!
//! The program proposes updates of its permissions with each question, and most of them are for a settings file. A caller's
//! answer must not get there: every agent in the same folder, or of the same user, would obey it from then on.

use serde_json::{Value, json};

/// Updates of the program's permissions, all of them for its session.
pub(super) type SessionPermissions = Vec<Value>;

/// Modes that still ask for what matters.
const MODES: [&str; 3] = ["default", "acceptEdits", "plan"];

/// The proposed updates that add a permission, with the session as their destination whatever was proposed.
pub(super) fn for_session(proposed: Vec<Value>) -> SessionPermissions {
    proposed.into_iter().filter(adds_permission).map(into_session).collect()
}

fn adds_permission(update: &Value) -> bool {
    let text = |name: &str| update.get(name).and_then(Value::as_str);
    match text("type") {
        Some("addRules") => text("behavior") == Some("allow"),
        Some("addDirectories") => true,
        Some("setMode") => text("mode").is_some_and(|mode| MODES.contains(&mode)),
        // Replacing or removing rules may remove a denial.
        _ => false,
    }
}

fn into_session(mut update: Value) -> Value {
    update["destination"] = json!("session");
    update
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_destination_becomes_the_session() {
        let rule = |destination: Value| {
            json!({"type": "addRules", "rules": [{"toolName": "Bash", "ruleContent": "ls *"}], "behavior": "allow",
                "destination": destination})
        };
        for destination in ["session", "localSettings", "projectSettings", "userSettings", "cliArg", "new"] {
            assert_eq!(for_session(vec![rule(json!(destination))]), [rule(json!("session"))], "{destination}");
        }
        assert_eq!(for_session(vec![rule(json!(null))]), [rule(json!("session"))]);
        let directories = json!({"type": "addDirectories", "directories": ["/w"], "destination": "localSettings"});
        let expected = json!({"type": "addDirectories", "directories": ["/w"], "destination": "session"});
        assert_eq!(for_session(vec![directories]), [expected]);
    }

    #[test]
    fn only_what_adds_a_permission_is_passed_on() {
        for (update, is_passed) in [
            (json!({"type": "setMode", "mode": "acceptEdits"}), true),
            (json!({"type": "setMode", "mode": "bypassPermissions"}), false),
            (json!({"type": "setMode"}), false),
            (json!({"type": "addRules", "behavior": "deny"}), false),
            (json!({"type": "removeRules", "behavior": "deny"}), false),
            (json!({"type": "replaceRules", "behavior": "allow"}), false),
            (json!({"type": "removeDirectories"}), false),
            (json!("addRules"), false),
            (json!(null), false),
        ] {
            assert_eq!(for_session(vec![update.clone()]).len() == 1, is_passed, "{update}");
        }
    }
}
