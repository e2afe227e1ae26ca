//! The table of known programs: their names, their modes, and what they need.
//!
//! One row per `kind` of the configuration. `sabir agents`, the start-up checks and `program` all read it, so a new command
//! line changes one row.

use crate::program::settings::{Kind, Mode, Settings};

/// What Sabir knows about a kind of program.
#[derive(Debug)]
pub struct ProgramInfo {
    pub kind: Kind,
    /// Its name in the configuration and on cards.
    pub name: &'static str,
    /// The modes that it supports. The first is the default.
    pub modes: &'static [ModeInfo],
    /// Environment variables that are passed on, besides those for every program.
    pub pass: &'static [&'static str],
    /// The argument that makes it print its version.
    pub version: &'static str,
    /// How to install it and log in.
    pub install: &'static str,
    /// The settings in a workspace that it can be started without.
    pub project: ProjectSettings,
}

/// What Sabir knows about one mode of a program.
#[derive(Debug)]
pub struct ModeInfo {
    pub mode: Mode,
    /// The executable. `None`: the operator has to configure it.
    pub program: Option<&'static str>,
    /// Arguments for the Agent Client Protocol. In other modes the arguments depend on the turn.
    pub arguments: &'static [&'static str],
    pub questions: Questions,
    pub killed_question: KilledQuestion,
    /// What it does when its input is closed after the turn.
    pub after_turn: AfterTurn,
    pub resume_delay: ResumeDelay,
    pub prompts: PromptSyntax,
}

/// What happens to an open question for permission if its program is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KilledQuestion {
    /// The program asks again when its session is resumed in the middle of the turn (`Prompt::resumes_turn`): it has not
    /// stored the question, so it repeats the model's step. Tests with the real program show this.
    AskedAgain,
    /// The question is lost, and nobody can answer it any more.
    Lost,
}

/// What a program does when its turn is over and its input is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AfterTurn {
    Exits,
    /// It waits for more input, and has to be ended.
    Stays,
}

/// How long a new session cannot be resumed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResumeDelay {
    None,
    /// Gemini names the file of a session after its id and the minute, and opens a new one before it loads the old: within
    /// the minute in which a session began, loading it overwrites it (seen with 0.61.0).
    UntilNextMinute,
}

/// Settings in a workspace, which anybody who can change its files can write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProjectSettings {
    /// No settings that Sabir can keep from the program.
    AsTheyAre,
    ClaudeCode,
    Codex,
}

/// What a program interprets in a prompt before its model sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PromptSyntax {
    /// Characters that make the first word of the text a command.
    pub command_signs: &'static str,
    /// A path at the start is read as a command, too.
    pub takes_paths_for_commands: bool,
    pub files: FileMentions,
}

/// Where an `@` makes a program read the file that it names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileMentions {
    Never,
    /// At the start of a word.
    AfterBlank,
    /// Within words as well, unless a backslash precedes it.
    Anywhere,
}

/// The program interprets nothing.
pub const PLAIN_SYNTAX: PromptSyntax =
    PromptSyntax { command_signs: "", takes_paths_for_commands: false, files: FileMentions::Never };

pub const CLAUDE_SYNTAX: PromptSyntax =
    PromptSyntax { command_signs: "/", takes_paths_for_commands: false, files: FileMentions::AfterBlank };

/// For programs whose syntax is unknown: everything that any known program interprets.
pub const UNKNOWN_SYNTAX: PromptSyntax =
    PromptSyntax { command_signs: "/", takes_paths_for_commands: true, files: FileMentions::Anywhere };

const GEMINI_ACP_SYNTAX: PromptSyntax =
    PromptSyntax { command_signs: "/$", takes_paths_for_commands: false, files: FileMentions::Never };

const GEMINI_SYNTAX: PromptSyntax =
    PromptSyntax { command_signs: "/", takes_paths_for_commands: false, files: FileMentions::Anywhere };

/// OpenCode drops a text that begins with a slash and is no known command.
const SLASH_SYNTAX: PromptSyntax =
    PromptSyntax { command_signs: "/", takes_paths_for_commands: true, files: FileMentions::Never };

/// Whether a program that needs permission can ask for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Questions {
    Asked,
    /// It acts without permission, or not at all.
    Never,
}

impl ProgramInfo {
    pub fn default_mode(&self) -> Mode {
        self.modes[0].mode
    }

    pub fn mode_info(&self, mode: Mode) -> Option<&'static ModeInfo> {
        self.modes.iter().find(|mode_info| mode_info.mode == mode)
    }

    /// Whether the configuration has to name the program.
    pub fn needs_command(&self) -> bool {
        self.modes.iter().any(|mode_info| mode_info.program.is_none())
    }
}

impl Kind {
    pub fn info(self) -> &'static ProgramInfo {
        PROGRAMS.iter().find(|known| known.kind == self).expect("every kind has a row")
    }

    pub fn named(name: &str) -> Option<Kind> {
        PROGRAMS.iter().find(|known| known.name == name).map(|known| known.kind)
    }
}

impl Settings {
    /// The row of the program's kind.
    pub fn info(&self) -> &'static ProgramInfo {
        self.kind.info()
    }

    /// The configured mode. `None`: the kind does not have this mode.
    pub fn mode_info(&self) -> Option<&'static ModeInfo> {
        self.info().mode_info(self.mode)
    }
}

impl Mode {
    /// Its name in the configuration.
    pub fn name(self) -> &'static str {
        match self {
            Mode::Acp => "acp",
            Mode::Duplex => "duplex",
            Mode::OneShot => "oneshot",
        }
    }
}

/// The program of these settings and its first arguments. A configured `command` replaces the program of the kind. Arguments
/// for the Agent Client Protocol follow, unless the command ends with them already.
///
/// Empty only if the configuration lacks a program.
pub fn launch(settings: &Settings) -> Vec<String> {
    let mode_info = settings.mode_info();
    let own = || mode_info.and_then(|mode_info| mode_info.program).map(|program| vec![program.to_owned()]);
    let mut line = settings.command.clone().or_else(own).unwrap_or_default();
    let arguments: Vec<String> =
        mode_info.map_or(&[][..], |mode_info| mode_info.arguments).iter().map(|word| (*word).to_owned()).collect();
    if !line.is_empty() && !line[1..].ends_with(&arguments) {
        line.extend(arguments);
    }
    line
}

pub static PROGRAMS: [ProgramInfo; 12] = [
    ProgramInfo {
        kind: Kind::ClaudeCode,
        name: "claude-code",
        modes: &[
            ModeInfo { killed_question: KilledQuestion::AskedAgain, ..duplex("claude", CLAUDE_SYNTAX) },
            one_shot("claude", CLAUDE_SYNTAX),
        ],
        pass: &["ANTHROPIC_*", "CLAUDE_*"],
        version: "--version",
        install: "npm install -g @anthropic-ai/claude-code, then run claude once to log in",
        project: ProjectSettings::ClaudeCode,
    },
    ProgramInfo {
        kind: Kind::Codex,
        name: "codex",
        modes: &[duplex("codex", PLAIN_SYNTAX), one_shot("codex", PLAIN_SYNTAX)],
        pass: &["CODEX_*", "OPENAI_*"],
        version: "--version",
        install: "npm install -g @openai/codex, then codex login",
        project: ProjectSettings::Codex,
    },
    ProgramInfo {
        kind: Kind::Gemini,
        name: "gemini",
        modes: &[
            ModeInfo { resume_delay: ResumeDelay::UntilNextMinute, ..acp("gemini", &["--acp"], GEMINI_ACP_SYNTAX) },
            one_shot("gemini", GEMINI_SYNTAX),
        ],
        pass: &["GEMINI_*", "GOOGLE_*"],
        version: "--version",
        install: "npm install -g @google/gemini-cli, then run gemini once to log in or set GEMINI_API_KEY",
        project: ProjectSettings::AsTheyAre,
    },
    ProgramInfo {
        kind: Kind::Opencode,
        name: "opencode",
        modes: &[acp("opencode", &["acp"], SLASH_SYNTAX), one_shot("opencode", SLASH_SYNTAX)],
        pass: &["OPENCODE_*", "ANTHROPIC_*", "OPENAI_*", "GEMINI_*", "GOOGLE_*", "OPENROUTER_*", "GROQ_*", "MISTRAL_*"],
        version: "--version",
        install: "npm install -g opencode-ai, then opencode auth login",
        project: ProjectSettings::AsTheyAre,
    },
    ProgramInfo {
        kind: Kind::Goose,
        name: "goose",
        modes: &[
            ModeInfo { after_turn: AfterTurn::Stays, ..acp("goose", &["acp"], SLASH_SYNTAX) },
            ModeInfo { after_turn: AfterTurn::Stays, ..one_shot("goose", SLASH_SYNTAX) },
        ],
        pass: &["GOOSE_*", "OPENAI_*", "ANTHROPIC_*", "GOOGLE_*", "GEMINI_*", "OPENROUTER_*", "GROQ_*", "DATABRICKS_*"],
        version: "--version",
        install: "npm install -g @aaif/goose, then goose configure",
        project: ProjectSettings::AsTheyAre,
    },
    ProgramInfo {
        kind: Kind::Copilot,
        name: "copilot",
        modes: &[acp("copilot", &["--acp"], UNKNOWN_SYNTAX), one_shot("copilot", UNKNOWN_SYNTAX)],
        pass: &["COPILOT_*", "GITHUB_TOKEN", "GH_TOKEN"],
        version: "--version",
        install: "npm install -g @github/copilot, then run copilot once and /login, or set GITHUB_TOKEN",
        project: ProjectSettings::AsTheyAre,
    },
    ProgramInfo {
        kind: Kind::Qwen,
        name: "qwen",
        modes: &[acp("qwen", &["--acp"], UNKNOWN_SYNTAX), one_shot("qwen", UNKNOWN_SYNTAX)],
        pass: &["QWEN_*", "OPENAI_*", "DASHSCOPE_*"],
        version: "--version",
        install: "npm install -g @qwen-code/qwen-code (needs Node 22), then run qwen once to log in",
        project: ProjectSettings::AsTheyAre,
    },
    ProgramInfo {
        kind: Kind::Vibe,
        name: "vibe",
        modes: &[acp("vibe-acp", &[], UNKNOWN_SYNTAX), one_shot("vibe", UNKNOWN_SYNTAX)],
        pass: &["VIBE_*", "MISTRAL_*"],
        version: "--version",
        install: "pip install mistral-vibe (needs Python 3.12), then vibe --setup or set MISTRAL_API_KEY",
        project: ProjectSettings::AsTheyAre,
    },
    ProgramInfo {
        kind: Kind::Cursor,
        name: "cursor",
        modes: &[one_shot("cursor-agent", UNKNOWN_SYNTAX)],
        pass: &["CURSOR_*"],
        version: "--version",
        install: "get the command line program of Cursor, then cursor-agent login or set CURSOR_API_KEY",
        project: ProjectSettings::AsTheyAre,
    },
    ProgramInfo {
        kind: Kind::Acp,
        name: "acp",
        modes: &[ModeInfo { program: None, ..acp("", &[], UNKNOWN_SYNTAX) }],
        pass: &[],
        version: "--version",
        install: "install the program that command names",
        project: ProjectSettings::AsTheyAre,
    },
    ProgramInfo {
        kind: Kind::Generic,
        name: "generic",
        // It asks in plain text; approval_pattern says which lines are questions.
        modes: &[ModeInfo { program: None, questions: Questions::Asked, ..one_shot("", PLAIN_SYNTAX) }],
        pass: &[],
        version: "--version",
        install: "install the program that command names",
        project: ProjectSettings::AsTheyAre,
    },
    ProgramInfo {
        kind: Kind::Command,
        name: "command",
        modes: &[ModeInfo { program: None, ..one_shot("", PLAIN_SYNTAX) }],
        pass: &[],
        version: "--version",
        install: "install the program that command names",
        project: ProjectSettings::AsTheyAre,
    },
];

const fn acp(program: &'static str, arguments: &'static [&'static str], prompts: PromptSyntax) -> ModeInfo {
    ModeInfo { mode: Mode::Acp, arguments, questions: Questions::Asked, ..one_shot(program, prompts) }
}

const fn duplex(program: &'static str, prompts: PromptSyntax) -> ModeInfo {
    ModeInfo { mode: Mode::Duplex, questions: Questions::Asked, ..one_shot(program, prompts) }
}

const fn one_shot(program: &'static str, prompts: PromptSyntax) -> ModeInfo {
    ModeInfo {
        mode: Mode::OneShot,
        program: Some(program),
        arguments: &[],
        questions: Questions::Never,
        killed_question: KilledQuestion::Lost,
        after_turn: AfterTurn::Exits,
        resume_delay: ResumeDelay::None,
        prompts,
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::time::Duration;

    use super::*;
    use crate::program::settings::{Isolation, PromptBy, SharedWorkspace};
    use crate::prompt::Approve;

    fn settings(name: &str, mode: Mode, command: &[&str]) -> Settings {
        let command: Vec<String> = command.iter().map(|word| (*word).to_owned()).collect();
        Settings {
            kind: Kind::named(name).unwrap(),
            mode,
            command: (!command.is_empty()).then_some(command),
            arguments: Vec::new(),
            model: None,
            instructions: None,
            workspace: PathBuf::new(),
            roots: Vec::new(),
            isolation: Isolation::Shared,
            shared_workspace: SharedWorkspace::Queue,
            approve: Approve::Ask,
            approval_timeout: None,
            hibernate_after: None,
            asks_again_within: Duration::ZERO,
            environment: Vec::new(),
            pass: Vec::new(),
            approval_pattern: None,
            tell_stderr: false,
            keep_files: false,
            prompt_by: PromptBy::default(),
            approval_response: "y".to_owned(),
            trusts_prompts: false,
            trusts_workspace: false,
            max_line: 1,
            max_output: 1,
            stop_grace: Duration::ZERO,
            keep_warm: None,
            portable: false,
            delegate: None,
        }
    }

    #[test]
    fn a_kind_is_found_by_its_name_and_by_itself() {
        for known in &PROGRAMS {
            assert_eq!(Kind::named(known.name), Some(known.kind));
            assert_eq!(known.kind.info().name, known.name);
        }
        assert_eq!(Kind::named("claude"), None);
    }

    #[test]
    fn modes_of_every_kind_and_whether_they_can_ask() {
        let say = |known: &ProgramInfo| {
            let modes = known.modes.iter().map(|mode_info| {
                let program = mode_info.program.unwrap_or("?");
                let asks = match (mode_info.questions, mode_info.killed_question) {
                    (Questions::Never, _) => "",
                    (Questions::Asked, KilledQuestion::Lost) => " asks",
                    (Questions::Asked, KilledQuestion::AskedAgain) => " asks again",
                };
                format!("{}:{program}{asks}", mode_info.mode.name())
            });
            format!("{} {}", known.name, modes.collect::<Vec<_>>().join(", "))
        };
        let expected = "\
claude-code duplex:claude asks again, oneshot:claude
codex duplex:codex asks, oneshot:codex
gemini acp:gemini asks, oneshot:gemini
opencode acp:opencode asks, oneshot:opencode
goose acp:goose asks, oneshot:goose
copilot acp:copilot asks, oneshot:copilot
qwen acp:qwen asks, oneshot:qwen
vibe acp:vibe-acp asks, oneshot:vibe
cursor oneshot:cursor-agent
acp acp:? asks
generic oneshot:? asks
command oneshot:?";
        assert_eq!(PROGRAMS.iter().map(say).collect::<Vec<_>>().join("\n"), expected);
    }

    #[test]
    fn a_command_stands_for_the_program_and_keeps_what_the_mode_needs() {
        for (name, mode, command, expected) in [
            ("claude-code", Mode::Duplex, &[][..], "claude"),
            ("gemini", Mode::Acp, &[], "gemini --acp"),
            ("gemini", Mode::OneShot, &[], "gemini"),
            ("gemini", Mode::Acp, &["npx", "@google/gemini-cli"], "npx @google/gemini-cli --acp"),
            ("gemini", Mode::Acp, &["/opt/gemini", "--acp"], "/opt/gemini --acp"),
            ("opencode", Mode::Acp, &["acp"], "acp acp"),
            ("vibe", Mode::Acp, &[], "vibe-acp"),
            ("vibe", Mode::OneShot, &[], "vibe"),
            ("acp", Mode::Acp, &["my-agent", "--stdio"], "my-agent --stdio"),
            ("command", Mode::OneShot, &[], ""),
        ] {
            assert_eq!(launch(&settings(name, mode, command)).join(" "), expected, "{name} {mode:?} {command:?}");
        }
    }
}
