//! With which code a command exits that talks to an A2A server. Help, documents and programs have it from here.
//!
//! 0 to 5 mean what the specification of the official `a2a-cli` means by them, but for one thing: there, a task that failed
//! is a success of the command. Here scripts learn it from the code. 6 to 9 are free in that specification.

use std::process::ExitCode;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    Done,
    Failed,
    Usage,
    Unreachable,
    Unauthorized,
    Timeout,
    InputNeeded,
    Refused,
    Canceled,
    Unknown,
    Interrupted,
}

impl Exit {
    pub const ALL: [Exit; 11] = [
        Exit::Done,
        Exit::Failed,
        Exit::Usage,
        Exit::Unreachable,
        Exit::Unauthorized,
        Exit::Timeout,
        Exit::InputNeeded,
        Exit::Refused,
        Exit::Canceled,
        Exit::Unknown,
        Exit::Interrupted,
    ];

    pub fn code(self) -> u8 {
        match self {
            Exit::Done => 0,
            Exit::Failed => 1,
            Exit::Usage => 2,
            Exit::Unreachable => 3,
            Exit::Unauthorized => 4,
            Exit::Timeout => 5,
            Exit::InputNeeded => 6,
            Exit::Refused => 7,
            Exit::Canceled => 8,
            Exit::Unknown => 9,
            Exit::Interrupted => 130,
        }
    }

    /// One line for help and documents.
    pub fn meaning(self) -> &'static str {
        match self {
            Exit::Done => "done; also after --async, and when you detach from a task",
            Exit::Failed => "the task failed, or something else went wrong that has no code of its own",
            Exit::Usage => "the command line or the configuration is wrong",
            Exit::Unreachable => "the server cannot be reached, or there is no usable card",
            Exit::Unauthorized => "the server wants credentials, or refuses those that it got",
            Exit::Timeout => "--timeout has passed; the task continues",
            Exit::InputNeeded => "the task waits for an answer, and nobody is there to give it",
            Exit::Refused => "the server answered with an error, or the agent rejected the task",
            Exit::Canceled => "the task was canceled",
            Exit::Unknown => "nobody knows whether the message arrived: the connection broke before the answer",
            Exit::Interrupted => "Ctrl-C, where nobody could be asked what to do",
        }
    }

    /// The list below the flags of a command.
    pub fn help() -> String {
        let lines = Self::ALL.map(|exit| format!("\n  {:<4} {}", exit.code(), exit.meaning()));
        format!("Exit codes:{}", lines.concat())
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(exit.code())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documentation_has_the_same_table() {
        let page = include_str!("../../../docs/reference/command-line.md");
        for exit in Exit::ALL {
            let row = format!("| {} | {} |", exit.code(), exit.meaning());
            assert!(page.contains(&row), "no {row}");
        }
    }

    #[test]
    fn each_meaning_has_a_code_of_its_own() {
        let mut codes = Exit::ALL.map(Exit::code).to_vec();
        codes.dedup();
        assert_eq!(codes, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 130]);
    }
}
