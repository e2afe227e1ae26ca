//! How a program is invoked for one turn: its command line, its environment, its adapter.

use super::settings::{Kind, Mode, Settings};
use crate::adapter::Adapter;
use crate::kinds;
use crate::output_formats;
use crate::prompt::{Approve, Prompt};
use crate::protocols::{Acp, Attachment, ClaudeControl, CodexServer};

pub(super) struct Invocation {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Environment variables for this turn, besides the configured ones.
    pub environment: Vec<(String, String)>,
    pub adapter: Box<dyn Adapter>,
}

pub(super) fn invocation(settings: &Settings, prompt: Prompt, attachments: Vec<Attachment>) -> Invocation {
    let kind = settings.info().kind;
    let mut command = kinds::launch(settings);
    let mut environment = output_formats::environment(kind, &prompt);
    if settings.mode != Mode::OneShot {
        let_goose_ask(kind, prompt.approve, &mut environment);
    }
    let adapter: Box<dyn Adapter> = match (settings.mode, kind) {
        (Mode::OneShot, _) => {
            let (arguments, adapter) = output_formats::configured(settings, &prompt);
            command.extend(arguments);
            return Invocation { command, environment, adapter };
        }
        (Mode::Duplex, Kind::Codex) => {
            command.extend(CodexServer::arguments(&prompt));
            Box::new(CodexServer::new(prompt, attachments))
        }
        (Mode::Duplex, _) => {
            command.extend(ClaudeControl::arguments(&prompt));
            environment.extend(ClaudeControl::environment(&prompt));
            Box::new(ClaudeControl::new(prompt, attachments))
        }
        (Mode::Acp, _) => Box::new(Acp::new(prompt, attachments)),
    };
    command.extend(settings.arguments.iter().cloned());
    Invocation { command, environment, adapter }
}

/// Makes goose ask, since here somebody answers. If everything is refused, the answer to its question says so.
fn let_goose_ask(kind: Kind, approve: Approve, environment: &mut [(String, String)]) {
    if kind != Kind::Goose || approve == Approve::All {
        return;
    }
    for (name, value) in environment {
        if name == "GOOSE_MODE" {
            *value = "approve".into();
        }
    }
}
