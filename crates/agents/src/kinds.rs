//! The programs that we know: what they are called, how they can be talked to, what they need.
//!
//! One row per kind of the configuration. `sabir agents`, the start-up checks and whoever runs a program all read it,
//! so a program that changes its command line changes one row.

use crate::program::settings::{Kind, Mode, Settings};

/// What is known of a kind.
#[derive(Debug)]
pub struct ProgramInfo {
    pub kind: Kind,
    /// Its name in the configuration and on cards.
    pub name: &'static str,
    /// How it can be talked to; the first is the one that is used when nobody says.
    pub modes: &'static [ModeInfo],
    /// Environment names that it is given, beside those that every program gets.
    pub pass: &'static [&'static str],
    /// What makes it print its version and nothing else.
    pub version: &'static str,
    /// How a person gets it and logs in.
    pub install: &'static str,
    /// The settings that a workspace can bring along for it, and which it can be started without.
    pub project: ProjectSettings,
}

/// One way to talk to a program.
#[derive(Debug)]
pub struct ModeInfo {
    pub mode: Mode,
    /// What is started. `None`: the operator has to say.
    pub program: Option<&'static str>,
    /// What makes it speak the Agent Client Protocol. The other modes have arguments that depend on the turn.
    pub arguments: &'static [&'static str],
    pub questions: Questions,
    pub killed_question: KilledQuestion,
    /// What it does when its input is closed after its turn.
    pub after_turn: AfterTurn,
    pub resume_delay: ResumeDelay,
    pub prompts: PromptSyntax,
}

/// What becomes of a question for permission when its program is killed while the question is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KilledQuestion {
    /// The program has not stored that it asked. When its session is resumed in the middle of the turn
    /// (`Prompt::resumes_turn`), it asks the model for the next step again, and its caller for permission. This was shown
    /// with the real program.
    AskedAgain,
    /// Nobody can answer it any more.
    Lost,
}

/// What a program does when its turn is over and its input is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AfterTurn {
    Exits,
    /// It waits for more, and is ended.
    Stays,
}

/// When a session that has just begun can be resumed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResumeDelay {
    None,
    /// Gemini names the file of a session after its id and the minute, and opens a new one before it loads the old: within
    /// the minute in which a session began, loading it overwrites it (seen with 0.61.0).
    UntilNextMinute,
}

/// Settings of a workspace, whose author is whoever may change its files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProjectSettings {
    /// None that we know how to leave out.
    AsTheyAre,
    ClaudeCode,
    Codex,
}

/// What a program looks for in a prompt before its model sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PromptSyntax {
    /// Signs that make the first word of the text a command.
    pub command_signs: &'static str,
    /// A path at the start is taken for a command, too.
    pub takes_paths_for_commands: bool,
    pub files: FileMentions,
}

/// Where an `@` makes a program read the file that it names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileMentions {
    Never,
    /// At the start of a word.
    AfterBlank,
    /// Within words as well, unless there is a backslash before it.
    Anywhere,
}

/// The text is nothing but text.
pub const PLAIN_SYNTAX: PromptSyntax =
    PromptSyntax { command_signs: "", takes_paths_for_commands: false, files: FileMentions::Never };

pub const CLAUDE_SYNTAX: PromptSyntax =
    PromptSyntax { command_signs: "/", takes_paths_for_commands: false, files: FileMentions::AfterBlank };

/// Of programs that we have not seen, or not in full: all that any of the others does.
pub const UNKNOWN_SYNTAX: PromptSyntax =
    PromptSyntax { command_signs: "/", takes_paths_for_commands: true, files: FileMentions::Anywhere };

const GEMINI_ACP_SYNTAX: PromptSyntax =
    PromptSyntax { command_signs: "/$", takes_paths_for_commands: false, files: FileMentions::Never };

const GEMINI_SYNTAX: PromptSyntax =
    PromptSyntax { command_signs: "/", takes_paths_for_commands: false, files: FileMentions::Anywhere };

/// OpenCode drops a text that begins with a slash and is no command of its; it never reaches the model.
const SLASH_SYNTAX: PromptSyntax =
    PromptSyntax { command_signs: "/", takes_paths_for_commands: true, files: FileMentions::Never };

/// Whether a program that needs permission can ask for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Questions {
    Asked,
    /// It goes without, or it does not do it.
    Never,
}

impl ProgramInfo {
    pub fn default_mode(&self) -> Mode {
        self.modes[0].mode
    }

    pub fn mode_info(&self, mode: Mode) -> Option<&'static ModeInfo> {
        self.modes.iter().find(|way| way.mode == mode)
    }

    /// Whether the configuration has to name the program.
    pub fn needs_command(&self) -> bool {
        self.modes.iter().any(|way| way.program.is_none())
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
    /// What is known of the program. All that depends on the kind is asked here.
    pub fn info(&self) -> &'static ProgramInfo {
        self.kind.info()
    }

    /// How it is talked to. `None`: the kind does not have this mode.
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

/// The program of these settings and its first arguments. `command` stands for the program of the kind; what makes it
/// speak the Agent Client Protocol comes behind, unless the command ends with it already.
///
/// Empty only where the configuration should have named a program and has not.
pub fn launch(settings: &Settings) -> Vec<String> {
    let way = settings.mode_info();
    let own = || way.and_then(|way| way.program).map(|program| vec![program.to_owned()]);
    let mut line = settings.command.clone().or_else(own).unwrap_or_default();
    let arguments: Vec<String> =
        way.map_or(&[][..], |way| way.arguments).iter().map(|word| (*word).to_owned()).collect();
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
        // It asks in plain lines, which approval_pattern tells from the rest.
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
            let ways = known.modes.iter().map(|way| {
                let program = way.program.unwrap_or("?");
                let asks = match (way.questions, way.killed_question) {
                    (Questions::Never, _) => "",
                    (Questions::Asked, KilledQuestion::Lost) => " asks",
                    (Questions::Asked, KilledQuestion::AskedAgain) => " asks again",
                };
                format!("{}:{program}{asks}", way.mode.name())
            });
            format!("{} {}", known.name, ways.collect::<Vec<_>>().join(", "))
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
