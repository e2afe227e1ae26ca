//! Qwen Code: Claude Code's output format with its own command line.

use crate::output_formats::arguments::{flag, strings};
use crate::prompt::{Approve, Prompt};

/// The prompt goes to its standard input.
pub fn arguments(prompt: &Prompt) -> Vec<String> {
    let mut arguments = strings(&["--output-format", "stream-json", "--include-partial-messages"]);
    arguments.extend(flag("model", prompt.model.as_ref()));
    arguments.extend(flag("append-system-prompt", prompt.instructions.as_ref()));
    arguments.extend(flag("resume", prompt.session.as_ref()));
    arguments.push(match prompt.approve {
        Approve::All => "--approval-mode=yolo".to_owned(),
        // The model does not get tools that need permission.
        Approve::Ask | Approve::None => "--approval-mode=default".to_owned(),
    });
    arguments
}
