//! The agents that the server hosts, and what the program among them leaves behind.
//!
//! Two demo agents, a program that asks in the middle of its turn, and fronts for remote agents (`upstreams`). The program
//! writes down when it runs and which answers it reads, so that the server's log can be held against what was really done.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use sabir_testkit::remote::RemoteProtocol;

use crate::upstreams::Upstreams;

#[derive(Debug, PartialEq, Eq)]
pub struct Agent {
    pub id: &'static str,
    pub kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Demo,
    /// A shell script. Words that begin with `approve` make it ask.
    Program,
    /// Stands for a remote agent that speaks this protocol.
    Front(RemoteProtocol),
}

impl Kind {
    pub fn is_front(self) -> bool {
        matches!(self, Kind::Front(_))
    }

    /// Whether a question ends its turn, so that the task waits until somebody answers.
    pub fn waits_for_answers(self) -> bool {
        self != Kind::Program
    }
}

/// Messages that name no agent go to the first.
pub static AGENTS: [Agent; 7] = [
    Agent { id: "demo", kind: Kind::Demo },
    Agent { id: "second", kind: Kind::Demo },
    Agent { id: "program", kind: Kind::Program },
    Agent { id: "front-v1", kind: Kind::Front(RemoteProtocol::V1JsonRpc) },
    Agent { id: "front-v1-rest", kind: Kind::Front(RemoteProtocol::V1HttpJson) },
    Agent { id: "front-v03", kind: Kind::Front(RemoteProtocol::V03JsonRpc) },
    Agent { id: "front-v01", kind: Kind::Front(RemoteProtocol::V01JsonRpc) },
];

pub static DEFAULT: &Agent = &AGENTS[0];
pub static PROGRAM: &Agent = &AGENTS[2];
pub static FRONTS: &[Agent] = AGENTS.split_at(3).1;

/// How long the program's question is open; then it counts as denied.
pub const APPROVAL_TIMEOUT_MS: u64 = 1500;

/// The text that the program answers with, whatever it was told. It says so before it asks: printing more would withdraw its
/// question.
pub const PROGRAM_ANSWER: &str = "still here";

const SCRIPT: &str = r#"#!/bin/sh
for text; do :; done
text=${text%%
*}
note() { printf '%s\t%s\n' "$(date +%s%3N)" "$2" >> "$RECORDS/$1"; }
note runs "$text"
echo '{"type":"system/init"}'
case $text in
approve\ *)
    echo '{"type":"assistant","message":{"content":"still here"}}'
    echo "Run ${text#approve }? [Y/n]"
    read -r answer || exit 1
    note answers "${text#approve }	$answer" ;;
*)
    echo '{"type":"assistant","message":{"content":"still here"}}' ;;
esac
echo '{"type":"result","summary":"done"}'
"#;

/// Puts the program and the configuration of all agents into the folder that the server is started in.
pub fn set_up(folder: &Path, upstreams: &Upstreams) -> io::Result<()> {
    let program = folder.join("program");
    fs::write(&program, SCRIPT)?;
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755))?;
    let mut config = String::new();
    for agent in &AGENTS {
        config += &format!("[[agent]]\nid = \"{}\"\ndefault = {}\n", agent.id, agent == DEFAULT);
        config += &match agent.kind {
            Kind::Demo => "kind = \"demo\"\n".to_owned(),
            Kind::Program => format!(
                "kind = \"generic\"\ncommand = [{program:?}]\nworkspace = {folder:?}\nmax_concurrent = 8\napprove = \"ask\"\n\
                 approval_timeout = \"{APPROVAL_TIMEOUT_MS}ms\"\nenv = {{ RECORDS = {folder:?} }}\n"
            ),
            // The remote agent changes its card at times.
            Kind::Front(_) => {
                format!("kind = \"a2a\"\nurl = {:?}\ncard_refresh = \"500ms\"\n", upstreams.of(agent).url())
            }
        };
    }
    fs::write(folder.join("sabir.toml"), config)
}

/// What the program wrote down; times in milliseconds since 1970.
#[derive(Default)]
pub struct Records {
    /// When it was started, and the first line of what it was told.
    pub runs: Vec<(i64, String)>,
    /// What it asked about, and the answer that it read.
    pub answers: Vec<(i64, String, String)>,
}

impl Records {
    pub fn read(folder: &Path) -> Self {
        let lines = |name: &str| -> Vec<(i64, String)> {
            let text = fs::read_to_string(folder.join(name)).unwrap_or_default();
            let read =
                |line: &str| line.split_once('\t').and_then(|(time, rest)| Some((time.parse().ok()?, rest.to_owned())));
            text.lines().filter_map(read).collect()
        };
        let answer = |(time, line): (i64, String)| {
            let (asked, answer) = line.split_once('\t')?;
            Some((time, asked.to_owned(), answer.to_owned()))
        };
        Self { runs: lines("runs"), answers: lines("answers").into_iter().filter_map(answer).collect() }
    }
}
