//! The arguments, the environment and the output format of each kind of program.

use crate::adapter::Adapter;
use crate::output_formats::approval::Approval;
use crate::output_formats::arguments::with_instructions;
use crate::output_formats::one_shot::OneShot;
use crate::output_formats::{claude, codex, copilot, cursor, gemini, generic, goose, opencode, plain, qwen, vibe};
use crate::program::settings::{Kind, PromptBy, Settings};
use crate::prompt::{Approve, Prompt, Workspace};

/// The arguments of a program, and the adapter that reads its output.
pub fn one_shot(kind: Kind, prompt: &Prompt) -> (Vec<String>, Box<dyn Adapter>) {
    match kind {
        Kind::ClaudeCode => {
            (claude::arguments(prompt), OneShot::with_stdin(prompt.text.clone(), claude::ClaudeCode::new(prompt)))
        }
        Kind::Codex => (codex::arguments(prompt), OneShot::with_stdin(prompt.text.clone(), codex::Codex::new(prompt))),
        Kind::Gemini => {
            (gemini::arguments(prompt), OneShot::with_stdin(with_instructions(prompt), gemini::Gemini::new()))
        }
        Kind::Opencode => {
            (opencode::arguments(prompt), OneShot::with_stdin(with_instructions(prompt), opencode::Opencode::new()))
        }
        Kind::Goose => (goose::arguments(prompt), OneShot::with_stdin(prompt.text.clone(), goose::Goose::new(prompt))),
        Kind::Copilot => (copilot::arguments(prompt), OneShot::with_arguments(copilot::Copilot::new())),
        Kind::Qwen => {
            (qwen::arguments(prompt), OneShot::with_stdin(prompt.text.clone(), claude::ClaudeCode::new(prompt)))
        }
        Kind::Vibe => (vibe::arguments(prompt), OneShot::with_arguments(vibe::Vibe::new())),
        Kind::Cursor => (cursor::arguments(prompt), OneShot::with_arguments(cursor::Cursor::new(prompt))),
        Kind::Generic => (
            generic::arguments(prompt),
            Box::new(generic::Generic::new(prompt, Approval::default())) as Box<dyn Adapter>,
        ),
        // A program of kind `acp` has no output format of its own: its output is read as plain text.
        Kind::Acp | Kind::Command => (plain::arguments(prompt), Box::new(plain::Plain::new(prompt))),
    }
}

/// Like `one_shot`, with the operator's settings: further arguments, and how a program asks for permission.
pub fn configured(settings: &Settings, prompt: &Prompt) -> (Vec<String>, Box<dyn Adapter>) {
    let kind = settings.info().kind;
    let (mut arguments, mut adapter) = one_shot(kind, prompt);
    if kind == Kind::Generic {
        let approval = Approval::of(settings.approval_pattern.as_deref(), &settings.approval_response);
        let generic = generic::Generic::new(prompt, approval);
        adapter = match settings.prompt_by {
            PromptBy::Argument => Box::new(generic),
            PromptBy::Stdin => {
                arguments.clear();
                Box::new(generic.with_stdin(with_instructions(prompt)))
            }
        };
    }
    // The operator's flags go before positional arguments: nothing may follow the prompt, and a subcommand does not read
    // flags of its parent.
    let positional = match kind {
        Kind::Codex => codex::positional(prompt).len(),
        Kind::Cursor => cursor::positional(prompt).len(),
        Kind::Generic => arguments.len(),
        _ => 0,
    };
    let end_of_flags = arguments.len() - positional;
    arguments.splice(end_of_flags..end_of_flags, settings.arguments.iter().cloned());
    (arguments, adapter)
}

/// Settings for which a program has an environment variable and no flag.
pub fn environment(kind: Kind, prompt: &Prompt) -> Vec<(String, String)> {
    let model = |name: &str| prompt.model.iter().map(|model| (name.to_owned(), model.clone())).collect::<Vec<_>>();
    match kind {
        Kind::ClaudeCode => {
            let is_untrusted = matches!(prompt.workspace, Workspace::Untrusted { .. });
            let instructions = is_untrusted.then_some(claude::ADDED_INSTRUCTIONS);
            let mentions = (!prompt.trusts_prompts).then_some(claude::NO_FILE_MENTIONS);
            instructions.into_iter().chain(mentions).map(|name| (name.to_owned(), "1".to_owned())).collect()
        }
        // Without this, Gemini starts itself again as its own child.
        Kind::Gemini => vec![("GEMINI_CLI_NO_RELAUNCH".to_owned(), "true".to_owned())],
        Kind::Goose => {
            // In mode `approve` goose would ask on a terminal; `chat` uses no tools.
            let mode = if prompt.approve == Approve::All { "auto" } else { "chat" };
            [vec![("GOOSE_MODE".to_owned(), mode.to_owned())], model("GOOSE_MODEL")].concat()
        }
        Kind::Opencode => match prompt.approve {
            Approve::All => vec![],
            // Where nobody can be asked, opencode denies and stops by itself.
            Approve::Ask => vec![opencode::permission("ask")],
            Approve::None => vec![opencode::permission("deny")],
        },
        Kind::Vibe => model("VIBE_ACTIVE_MODEL"),
        _ => vec![],
    }
}
