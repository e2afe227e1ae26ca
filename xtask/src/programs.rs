//! The coding programs that run behind a real server. A new one is a new row, a `package-NAME.json` and a row of the
//! suite's own table, both in `tests/agents`.

pub struct Program {
    /// Its kind in the configuration.
    pub name: &'static str,
    pub binary: &'static str,
    /// What it prints for `--version`, among other words.
    pub version: &'static str,
    /// How large its folder is once it is installed, about.
    pub megabytes: u32,
    pub lock: Lock,
    pub finish: Finish,
    /// The program that it asks in the cases of delegation.
    pub asks: Option<&'static str>,
}

/// What the lock file of a program has.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Lock {
    /// Every package.
    Whole,
    /// No packages of other platforms: no registry has them, and `npm ci` would insist on them.
    ThisPlatform,
}

/// What is left to do when the packages lie there. The scripts of packages do not run by themselves: some compile and
/// some download, for parts that nobody here uses.
#[derive(Clone, Copy)]
pub enum Finish {
    Nothing,
    /// This script of the package puts the program in its place.
    Script(&'static str),
}

pub const PROGRAMS: &[Program] = &[
    Program {
        name: "claude-code",
        binary: "claude",
        version: "2.1.325",
        megabytes: 350,
        lock: Lock::Whole,
        finish: Finish::Script("@anthropic-ai/claude-code/install.cjs"),
        asks: Some("codex"),
    },
    Program {
        name: "codex",
        binary: "codex",
        version: "0.166.0",
        megabytes: 440,
        lock: Lock::Whole,
        finish: Finish::Nothing,
        asks: Some("claude-code"),
    },
    Program {
        name: "gemini",
        binary: "gemini",
        version: "0.61.0",
        megabytes: 100,
        lock: Lock::Whole,
        finish: Finish::Nothing,
        asks: None,
    },
    // The package, 0.20.1, has a number of its own.
    Program {
        name: "goose",
        binary: "goose",
        version: "1.34.0",
        megabytes: 550,
        lock: Lock::ThisPlatform,
        finish: Finish::Nothing,
        asks: None,
    },
];
