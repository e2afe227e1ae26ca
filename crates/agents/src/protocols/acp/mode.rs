//! Which of a program's modes uses tools without asking.

use crate::lenient_json::Object;

/// Words in the id or name of a mode that asks nothing. Copilot's `autopilot` is not among them: it also continues without
/// waiting for its caller.
const FULL_ACCESS: [&str; 4] = ["yolo", "bypasspermissions", "autoapprove", "fullaccess"];

/// Goose calls this mode `auto`. Other programs use that name for a mode in which they decide by themselves whether to ask;
/// the description tells them apart.
const GOOSE_AUTO: (&str, &str) = ("auto", "Automatically approve tool calls");

/// The mode to change to, unless the session is in it already.
pub(super) fn full_access(session: &Object) -> Option<String> {
    let modes = session.object("modes");
    let id = modes.objects("availableModes").iter().find(|mode| is_full_access(mode))?.non_empty_text("id")?;
    (modes.non_empty_text("currentModeId").as_ref() != Some(&id)).then_some(id)
}

fn is_full_access(mode: &Object) -> bool {
    let is_named_so = ["id", "name"].iter().filter_map(|member| mode.non_empty_text(member)).any(|name| {
        let letters: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
        let letters = letters.to_ascii_lowercase();
        FULL_ACCESS.iter().any(|word| letters.contains(word))
    });
    let (id, description) = (mode.non_empty_text("id"), mode.non_empty_text("description"));
    is_named_so || (id.as_deref(), description.as_deref()) == (Some(GOOSE_AUTO.0), Some(GOOSE_AUTO.1))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn the_modes_of_known_programs() {
        for (modes, expected) in [
            (vec!["default", "autoEdit", "yolo", "plan"], Some("yolo")),
            (vec!["default", "acceptEdits", "plan", "auto"], None),
            (vec!["default", "acceptEdits", "bypassPermissions"], Some("bypassPermissions")),
            (vec!["read-only", "workspace-write", "agent", "agent-full-access"], Some("agent-full-access")),
            (vec!["read-only", "auto", "full-access"], Some("full-access")),
            (vec!["ask", "accept-edits", "auto-approve"], Some("auto-approve")),
            (vec!["https://a/session-modes#agent", "https://a/session-modes#autopilot"], None),
            (vec![], None),
        ] {
            let available: Vec<Value> = modes.iter().map(|id| json!({"id": id, "name": id})).collect();
            let session = json!({"modes": {"currentModeId": modes.first(), "availableModes": available}});
            assert_eq!(full_access(&Object::of(&session)).as_deref(), expected, "{modes:?}");
        }
    }

    #[test]
    fn a_mode_that_is_set_already_is_left() {
        let session = json!({"modes": {"currentModeId": "yolo", "availableModes": [{"id": "yolo"}]}});
        assert_eq!(full_access(&Object::of(&session)), None);
    }

    #[test]
    fn auto_is_full_access_in_goose_only() {
        let session = |description: &str| {
            let mode = json!({"id": "auto", "description": description});
            Object::of(&json!({"modes": {"currentModeId": "x", "availableModes": [mode]}}))
        };
        assert_eq!(full_access(&session("Automatically approve tool calls")).as_deref(), Some("auto"));
        assert_eq!(full_access(&session("Claude handles permission decisions")), None);
    }
}
