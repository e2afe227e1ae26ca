//! What the agents of a configuration need of this machine: programs, folders, a git repository.
//!
//! `sabir config` shows a configuration that lacks them; `serve` asks here first. Whoever reads the one line should
//! know what is missing, which setting wants it, and what to do.

use std::ffi::OsStr;
use std::path::Path;

use sabir_agents::program::settings::{Isolation, Kind};

use crate::machine::Machine;

use super::layers::{Loaded, Problems};
use super::origin::Problem;
use super::sections::{Agent, AgentKind, Program};

impl Loaded {
    pub fn refuse_what_is_missing(&self, machine: &Machine) -> Result<(), Problems> {
        let mut problems = Vec::new();
        for agent in self.config.agents.iter().chain(&self.config.backstage) {
            if let AgentKind::Program(kind) = agent.kind {
                let misses = missing(agent, kind, machine);
                problems.extend(misses.into_iter().map(|Missing { key, words }| self.problem(agent, key, &words)));
            }
        }
        problems.sort_by_key(|problem| problem.line);
        match problems.is_empty() {
            true => Ok(()),
            false => Err(Problems(problems.into_iter().map(|problem| problem.text).collect())),
        }
    }

    /// The first thing that this agent needs and that is not here, with the remedy.
    pub fn missing_of(&self, agent: &Agent, machine: &Machine) -> Option<String> {
        let AgentKind::Program(kind) = agent.kind else { return None };
        let Missing { key, words } = missing(agent, kind, machine).into_iter().next()?;
        Some(self.problem(agent, key, &words).text)
    }

    fn problem(&self, agent: &Agent, key: &str, words: &str) -> Problem {
        let name = format!("agent.{}.{key}", agent.id);
        let shown = self.values.iter().find(|shown| shown.key == name);
        Problem::of(&shown.expect("every setting has a value").origin, key, words)
    }
}

/// Something that is not there. The words follow the name of the setting that wants it.
struct Missing {
    key: &'static str,
    words: String,
}

fn missing(agent: &Agent, kind: Kind, machine: &Machine) -> Vec<Missing> {
    let program = &agent.program;
    let mut missing = Vec::new();
    missing.extend(missing_program(program, kind, machine).map(|(key, words)| Missing { key, words }));
    let folders = std::iter::once(("workspace", &program.workspace));
    for (key, folder) in folders.chain(program.workspace_roots.iter().map(|root| ("workspace_roots", root))) {
        if !machine.absolute(folder).is_dir() {
            let words = format!("names {}, which is no folder; make it, or name another", folder.display());
            missing.push(Missing { key, words });
        }
    }
    if program.isolation == Isolation::Worktree {
        let words = missing_repository(&program.workspace, machine);
        missing.extend(words.map(|words| Missing { key: "isolation", words }));
    }
    missing
}

/// The setting to blame, and why its program cannot be run.
fn missing_program(program: &Program, kind: Kind, machine: &Machine) -> Option<(&'static str, String)> {
    let known = kind.known();
    let own = known.way(program.mode)?.program;
    let name = program.command.first().map(String::as_str).or(own)?;
    let absent = machine.find_on(path_of(program, machine), name).err()?;
    Some(match program.command.is_empty() {
        true => (
            "kind",
            format!(
                "is \"{}\", whose program {name} {absent}; install it ({}), \
                 or say where it is with command = [\"/path/to/{name}\"] in its [[agent]]",
                known.name, known.install
            ),
        ),
        false => ("command", format!("names {name}, which {absent}; install it, or write its whole path")),
    })
}

/// The `PATH` that the program itself will see.
fn path_of<'a>(program: &'a Program, machine: &'a Machine) -> &'a OsStr {
    let own = program.environment.iter().find(|(name, _)| name == "PATH");
    own.map_or(machine.path.as_os_str(), |(_, path)| OsStr::new(path))
}

fn missing_repository(workspace: &Path, machine: &Machine) -> Option<String> {
    if !machine.is_in_repository(workspace) {
        let shown = machine.absolute(workspace);
        let words = format!("is \"worktree\", but {} is not in a git repository", shown.display());
        return Some(format!("{words}; run git init there, or use isolation = \"none\""));
    }
    let absent = machine.find("git").err()?;
    Some(format!("is \"worktree\", which needs the program git; it {absent}"))
}
