//! How a program is talked to in one turn: its command line, its environment, its protocol.

use super::settings::{Kind, Mode, Settings};
use crate::duplex::{Acp, Attachment, ClaudeControl, CodexServer};
use crate::kinds;
use crate::protocol::{Approve, Prompt, Protocol};
use crate::vocabulary;

pub(super) struct Talk {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// What it needs in its environment for this turn, beside what is configured.
    pub environment: Vec<(String, String)>,
    pub protocol: Box<dyn Protocol>,
}

pub(super) fn talk(settings: &Settings, prompt: Prompt, attachments: Vec<Attachment>) -> Talk {
    let kind = settings.known().kind;
    let mut command = kinds::launch(settings);
    let mut environment = vocabulary::environment(kind, &prompt);
    if settings.mode != Mode::OneShot {
        let_it_ask(kind, prompt.approve, &mut environment);
    }
    let protocol: Box<dyn Protocol> = match (settings.mode, kind) {
        (Mode::OneShot, _) => {
            let (arguments, protocol) = vocabulary::configured(settings, &prompt);
            command.extend(arguments);
            return Talk { command, environment, protocol };
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
    Talk { command, environment, protocol }
}

/// Here somebody answers: a program that would not ask by itself is told that it may. Who is refused everything is refused
/// by the answer, so that the program knows.
fn let_it_ask(kind: Kind, approve: Approve, environment: &mut [(String, String)]) {
    if kind != Kind::Goose || approve == Approve::All {
        return;
    }
    for (name, value) in environment {
        if name == "GOOSE_MODE" {
            *value = "approve".into();
        }
    }
}
