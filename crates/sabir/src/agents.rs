//! `sabir agents`: what is configured, and what is installed on this machine.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use sabir_agents::kinds::{PROGRAMS, ProgramInfo};
use sabir_agents::prompt::Approve;
use serde_json::{Value, json};

use crate::config::{AgentConfig, AgentKind, Audience, Config};
use crate::machine::Machine;

pub fn show(config: &Config, machine: &Machine, audience: Audience) -> String {
    let configured = config.all_agents();
    let configured: Vec<ConfiguredAgent> = configured.map(|agent| ConfiguredAgent::of(agent, machine)).collect();
    let installed = look(machine);
    match audience {
        Audience::Person => {
            let installed = table(&["kind", "program", "path", "version", ""], installed.iter().map(Installed::row));
            let titles = ["id", "kind", "mode", "program", "workspace", "approve"];
            let configured = table(&titles, configured.iter().map(ConfiguredAgent::row));
            format!("Configured\n\n{configured}\nKnown programs\n\n{installed}")
        }
        Audience::Program => {
            let objects = configured.iter().map(ConfiguredAgent::object).chain(installed.iter().map(Installed::object));
            format!("[\n{}\n]\n", objects.collect::<Vec<_>>().join(",\n"))
        }
    }
}

/// An agent that serve would run.
struct ConfiguredAgent {
    id: String,
    kind: &'static str,
    executor: Executor,
}

/// What does the work.
enum Executor {
    BuiltIn,
    Program(ConfiguredProgram),
    /// The address of a remote agent, or of the server of a model.
    Remote(String),
}

struct ConfiguredProgram {
    mode: &'static str,
    name: String,
    workspace: PathBuf,
    approve: &'static str,
}

impl ConfiguredAgent {
    fn of(agent: &AgentConfig, machine: &Machine) -> Self {
        let executor = match agent.kind {
            AgentKind::Demo | AgentKind::Conformance => Executor::BuiltIn,
            AgentKind::A2a => Executor::Remote(agent.remote.url.clone().unwrap_or_default()),
            AgentKind::OpenAi => Executor::Remote(agent.remote.url.clone().unwrap_or_default()),
            AgentKind::Program(kind) => {
                let own = kind.info().mode_info(agent.program.mode).and_then(|way| way.program);
                Executor::Program(ConfiguredProgram {
                    mode: agent.program.mode.name(),
                    name: agent.program.command.first().map(String::as_str).or(own).unwrap_or_default().to_owned(),
                    workspace: machine.absolute(&agent.program.workspace),
                    approve: match agent.program.approve {
                        Approve::Ask => "ask",
                        Approve::All => "all",
                        Approve::None => "none",
                    },
                })
            }
        };
        Self { id: agent.id.clone(), kind: agent.kind.name(), executor }
    }

    fn row(&self) -> Vec<String> {
        let mut row = vec![self.id.clone(), self.kind.to_owned()];
        match &self.executor {
            Executor::BuiltIn => row.extend(["-", "(built in)", "-", "-"].map(str::to_owned)),
            Executor::Remote(url) => row.extend(["-", url, "-", "-"].map(str::to_owned)),
            Executor::Program(program) => {
                let workspace = program.workspace.display().to_string();
                row.extend([program.mode.to_owned(), program.name.clone(), workspace, program.approve.to_owned()]);
            }
        }
        row
    }

    fn object(&self) -> String {
        let (program, url) = match &self.executor {
            Executor::BuiltIn => (None, None),
            Executor::Program(program) => (Some(program), None),
            Executor::Remote(url) => (None, Some(url)),
        };
        object(&[
            ("list", json!("configured")),
            ("id", json!(self.id)),
            ("kind", json!(self.kind)),
            ("mode", json!(program.map(|program| program.mode))),
            ("program", json!(program.map(|program| &program.name))),
            ("workspace", json!(program.map(|program| program.workspace.to_string_lossy()))),
            ("approve", json!(program.map(|program| program.approve))),
            ("url", json!(url)),
        ])
    }
}

/// A program that we know by name, and what is here of it.
struct Installed {
    kind: &'static str,
    program: &'static str,
    path: Option<PathBuf>,
    version: Result<String, String>,
}

impl Installed {
    fn row(&self) -> Vec<String> {
        let path = self.path.as_ref().map_or("-".to_owned(), |path| path.display().to_string());
        let (version, outcome) = match &self.version {
            Ok(version) => (version.clone(), "ready".to_owned()),
            Err(why) => ("-".to_owned(), why.clone()),
        };
        vec![self.kind.to_owned(), self.program.to_owned(), path, version, outcome]
    }

    fn object(&self) -> String {
        object(&[
            ("list", json!("known")),
            ("kind", json!(self.kind)),
            ("program", json!(self.program)),
            ("path", json!(self.path.as_ref().map(|path| path.to_string_lossy()))),
            ("version", json!(self.version.as_ref().ok())),
            ("ready", json!(self.version.is_ok())),
            ("why", json!(self.version.as_ref().err())),
        ])
    }
}

/// Looks for every known program, at the same time: some take seconds to say their version.
fn look(machine: &Machine) -> Vec<Installed> {
    thread::scope(|scope| {
        let looking: Vec<_> = PROGRAMS
            .iter()
            .filter_map(|known| Some((known, known.modes[0].program?)))
            .map(|(known, program)| scope.spawn(move || look_for(known, program, machine)))
            .collect();
        looking.into_iter().map(|thread| thread.join().expect("looking does not panic")).collect()
    })
}

fn look_for(known: &'static ProgramInfo, program: &'static str, machine: &Machine) -> Installed {
    let (path, version) = match machine.find(program) {
        Err(absent) => (None, Err(format!("{absent}; to install it: {}", known.install))),
        Ok(path) => {
            let version = version(&path, known.version);
            (Some(path), version)
        }
    };
    Installed { kind: known.name, program, path, version }
}

/// The longest that a program may think about its version.
const PATIENCE: Duration = Duration::from_secs(10);

/// What is said beyond this is no version.
const LONGEST: u64 = 4096;

/// What the program says of its version, or why it says nothing.
pub fn version(program: &Path, argument: &str) -> Result<String, String> {
    let started =
        Command::new(program).arg(argument).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = started.map_err(|error| format!("cannot be started: {error}"))?;
    let output = first_line_of(child.stdout.take().expect("it is piped"));
    let errors = first_line_of(child.stderr.take().expect("it is piped"));
    let status = end(&mut child).ok_or_else(|| format!("{argument} took more than {} s", PATIENCE.as_secs()))?;
    // What it started may hold the pipes for longer; nobody waits for that.
    let moment = Duration::from_millis(500);
    let line = |receiver: std::sync::mpsc::Receiver<String>| receiver.recv_timeout(moment).unwrap_or_default();
    match (status.success(), line(output), line(errors)) {
        (true, version, _) if !version.is_empty() => Ok(version),
        (true, ..) => Err(format!("{argument} says nothing")),
        (false, _, complaint) => Err(format!("{argument} failed ({status}): {complaint}")),
    }
}

/// Reads in a thread of its own, so that a program which says much is not held up.
fn first_line_of(pipe: impl Read + Send + 'static) -> std::sync::mpsc::Receiver<String> {
    let (sender, receiver) = std::sync::mpsc::channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let mut pipe = pipe.take(LONGEST);
        let _ = pipe.read_to_end(&mut bytes);
        let text = String::from_utf8_lossy(&bytes);
        let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
        let line = line.chars().filter(|letter| !letter.is_control()).take(100).collect();
        // Whoever asked may have given up.
        let _ = sender.send(line);
        let _ = std::io::copy(&mut pipe.into_inner(), &mut std::io::sink());
    });
    receiver
}

/// Waits for its end, or ends it.
fn end(child: &mut Child) -> Option<ExitStatus> {
    let start = Instant::now();
    while start.elapsed() < PATIENCE {
        if let Ok(Some(status)) = child.try_wait() {
            return Some(status);
        }
        thread::sleep(Duration::from_millis(10));
    }
    let _ = child.kill();
    let _ = child.wait();
    None
}

/// Columns under their titles, each as wide as its widest cell; the last may be as long as it likes.
pub fn table(titles: &[&str], rows: impl Iterator<Item = Vec<String>>) -> String {
    let titles = titles.iter().map(|title| (*title).to_uppercase()).collect();
    let rows: Vec<Vec<String>> = std::iter::once(titles).chain(rows).collect();
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut out = String::new();
    for row in &rows {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
        out += &format!("  {}\n", cells.collect::<Vec<_>>().join("  ").trim_end());
    }
    out
}

/// Written out, since a map would sort its members by name.
pub fn object(members: &[(&str, Value)]) -> String {
    let members = members.iter().map(|(name, value)| format!("{}:{value}", json!(name)));
    format!("{{{}}}", members.collect::<Vec<_>>().join(","))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ProgramConfig;

    #[test]
    fn a_person_reads_columns() {
        let mut coder = AgentConfig::new("coder", AgentKind::Program(sabir_agents::program::settings::Kind::Codex));
        coder.program =
            ProgramConfig { approve: Approve::All, workspace: "repository".into(), ..ProgramConfig::default() };
        let mut friend = AgentConfig::new("friend", AgentKind::A2a);
        friend.remote.url = Some("https://a.b".to_owned());
        let agents = vec![coder, AgentConfig::new("demo", AgentKind::Demo), friend];
        let machine = Machine { path: "/nowhere".into(), folder: "/start".into() };
        let shown = show(&Config { agents, ..Config::default() }, &machine, Audience::Person);
        let expected = "Configured

  ID      KIND   MODE     PROGRAM      WORKSPACE          APPROVE
  coder   codex  oneshot  codex        /start/repository  all
  demo    demo   -        (built in)   -                  -
  friend  a2a    -        https://a.b  -                  -

Known programs

  KIND         PROGRAM       PATH  VERSION
  claude-code  claude        -     -        is not on the PATH; to install it: npm install -g @anthropic-ai/claude-code";
        assert!(shown.starts_with(expected), "{shown}");
    }
}
