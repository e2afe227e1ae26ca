//! The agents: from `[[agent]]` tables, from one word (`--agent demo`), or the demo agent when nobody says.
//!
//! An id becomes a path segment and a tenant, so it must not look like a path that the server has already.

use sabir_agents::kinds::KNOWN;
use sabir_agents::program::settings::Kind;
use sabir_model::{Extension, Skill};
use serde_json::json;

use super::agent_settings::{AGENT_SETTINGS, EXTENSION_SETTINGS, SKILL_SETTINGS, agent_setting};
use super::borrowed::{For, Force, Hint, Said};
use super::described::{Described, repeated, segment};
use super::file::{AgentTable, File};
use super::kinds::{Read, said, wrong};
use super::nearest::nearest;
use super::origin::{Origin, Problem};
use super::programs;
use super::raw::Raw;
use super::routes::{self, Wanted};
use super::sections::{Agent, AgentCard, AgentKind};

/// Agents that one word names, strongest first.
pub struct Wishes {
    pub flag: Option<(Origin, Raw)>,
    pub variable: Option<(Origin, Raw)>,
}

/// What the server runs.
pub struct Gathered {
    pub source: Source,
    pub agents: Vec<Described<Agent>>,
    /// Those that only routing reaches.
    pub backstage: Vec<Described<Agent>>,
    /// Routes that borrowed names ask for.
    pub routes: Vec<Wanted>,
}

/// Where the agents come from.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Source {
    File,
    /// The file lists none.
    NoFile,
    /// The file lists others, which a wish replaces.
    InsteadOfFile,
}

/// A wish replaces the list of the file by one agent; borrowed names describe an agent only where the file lists
/// none, since the servers that they come from had one agent and no list.
pub fn gather(
    file: &File,
    wishes: Wishes,
    borrowed: &Said,
    problems: &mut Vec<Problem>,
    warnings: &mut Vec<String>,
) -> Gathered {
    let listed = read_tables(file, problems);
    let mut wished = Vec::new();
    for (origin, raw) in [wishes.flag, wishes.variable].into_iter().flatten() {
        match single(&raw, origin) {
            Ok(agent) => wished.push(agent),
            Err(problem) => problems.push(problem),
        }
    }
    if wished.is_empty() && !file.agents.is_empty() {
        let names = borrowed.kind.iter().map(|(name, _)| *name).chain(borrowed.hints.iter().map(|hint| hint.name));
        for name in names.chain(borrowed.force.iter().map(|(name, _)| *name)) {
            warnings.push(format!("{name} is ignored, since {} lists the agents", file.name));
        }
        let routes = routes::wanted(borrowed, &listed, |_, _| None, problems, warnings);
        return Gathered { source: Source::File, agents: listed, backstage: Vec::new(), routes };
    }

    let choice = match (wished.into_iter().next(), &borrowed.kind) {
        (Some(agent), _) => Ok((agent, Chosen::Here)),
        (None, None) => Ok((default_agent(), Chosen::Here)),
        (None, Some((name, raw))) => {
            single(raw, Origin::Borrowed((*name).to_owned())).map(|agent| (agent, Chosen::Borrowed(name)))
        }
    };
    let (mut agent, chosen) = choice.unwrap_or_else(|problem| {
        problems.push(problem);
        (default_agent(), Chosen::Here)
    });
    let mut crew = Crew { borrowed, chosen, backstage: Vec::new(), problems: Vec::new() };
    crew.describe(&mut agent, Place::OnStage(warnings));
    let agents = vec![agent];
    let routes = routes::wanted(borrowed, &agents, |kind, name| Some(crew.hire(kind, name)), problems, warnings);
    problems.append(&mut crew.problems);
    let source = if file.agents.is_empty() { Source::NoFile } else { Source::InsteadOfFile };
    Gathered { source, agents, backstage: crew.backstage, routes }
}

/// Who chose the agent.
#[derive(Clone, Copy)]
enum Chosen {
    Here,
    /// A name of another server, where programs do all without asking unless they are told otherwise.
    Borrowed(&'static str),
}

/// Agents that borrowed names describe.
struct Crew<'a> {
    borrowed: &'a Said,
    chosen: Chosen,
    backstage: Vec<Described<Agent>>,
    problems: Vec<Problem>,
}

enum Place<'a> {
    /// The one agent. Names that are not used are told here.
    OnStage(&'a mut Vec<String>),
    Backstage,
}

impl Crew<'_> {
    /// The id of a further agent of this kind, which `name` asks for.
    fn hire(&mut self, kind: Kind, name: &str) -> String {
        let id = kind.known().name;
        if !self.backstage.iter().any(|agent| agent.subject.id == id) {
            let origin = Origin::Borrowed(name.to_owned());
            let mut agent = single(&Raw::Word(id.to_owned()), origin).expect("kinds are kinds and ids");
            self.describe(&mut agent, Place::Backstage);
            self.backstage.push(agent);
        }
        id.to_owned()
    }

    fn describe(&mut self, agent: &mut Described<Agent>, place: Place) {
        let is_backstage = matches!(place, Place::Backstage);
        let mut ignored = Vec::new();
        for hint in &self.borrowed.hints {
            // A model belongs to the program that it was written for.
            if is_backstage && hint.key == "model" {
                continue;
            }
            if let Some(reason) = irrelevant(hint.of, &agent.subject) {
                ignored.push(format!("{} is ignored, since {reason}", hint.name));
                continue;
            }
            let origin = Origin::Borrowed(hint.name.to_owned());
            match &hint.value {
                Ok(raw) => match agent.set(agent_setting(hint.key), raw, origin) {
                    Ok(()) => follow(agent, hint),
                    Err(problem) => ignored.push(problem.as_warning()),
                },
                Err(words) => self.problems.push(Problem::of(&origin, hint.key, words)),
            }
        }
        if let Chosen::Borrowed(_) = self.chosen {
            agent.subject.card = AgentCard::OfCodingProgram;
        }
        ignored.extend(self.allow(agent));
        let_work_at_once(agent);
        self.problems.extend(programs::settle(agent));
        if let Place::OnStage(warnings) = place {
            warnings.extend(ignored);
        }
    }

    /// Lets the agent do all, if that is what the borrowed names mean.
    fn allow(&self, agent: &mut Described<Agent>) -> Option<String> {
        let (origin, approve) = match (self.borrowed.force, self.chosen) {
            (Some((name, Force::All)), _) => (name, "all"),
            (None, Chosen::Borrowed(name)) => (name, "all"),
            // Its questions are answered only where somebody says so; whoever could ask asks by default.
            (Some((name, Force::Ask)), _) if agent.subject.kind == AgentKind::Program(Kind::Generic) => (name, "ask"),
            _ => return None,
        };
        match (irrelevant(For::Programs, &agent.subject), self.borrowed.force) {
            (Some(reason), Some((name, _))) => return Some(format!("{name} is ignored, since {reason}")),
            (Some(_), None) => return None,
            (None, _) => {}
        }
        let raw = Raw::Word(approve.to_owned());
        agent
            .set(agent_setting("approve"), &raw, Origin::Borrowed(origin.to_owned()))
            .expect("it is a word for approve");
        let is_said = self.borrowed.force.is_some();
        (!is_said).then(|| {
            format!(
                "{origin} alone means approve = \"all\": callers can make {} do everything that you can, without a \
                 question; AGENT_FORCE=false makes it ask where it can, AGENT_FORCE=true says that this is meant",
                agent.subject.kind.name()
            )
        })
    }
}

/// Programs that borrowed names choose work at the same time, as they did where the names come from.
fn let_work_at_once(agent: &mut Described<Agent>) {
    let origin = agent.shown("kind").origin.clone();
    if let (Origin::Borrowed(_), AgentKind::Program(_)) = (&origin, agent.subject.kind) {
        let raw = Raw::Word("parallel".to_owned());
        agent.set(agent_setting("shared_workspace"), &raw, origin).expect("parallel is a word for it");
    }
}

/// Why a name does not speak of this agent.
fn irrelevant(of: For, agent: &Agent) -> Option<String> {
    match (of, agent.kind) {
        (For::All, _) | (For::Programs, AgentKind::Program(_)) => None,
        (For::Kind(kind), AgentKind::Program(own)) if own == kind => None,
        (For::Nameless, AgentKind::Program(own)) if own.known().needs_command() => None,
        (For::Programs, own) => Some(format!("the agent is of kind {}, which is no program", own.name())),
        (For::Kind(kind), own) => Some(format!("the agent is of kind {}, not {}", own.name(), kind.known().name)),
        (For::Nameless, own) => Some(format!("the agent is of kind {}, which takes no other program", own.name())),
    }
}

/// The program that `VIBE_BINARY_PATH` names is the one for people; the Agent Client Protocol has one of its own.
fn follow(agent: &mut Described<Agent>, hint: &Hint) {
    let is_vibe = hint.key == "command" && agent.subject.kind == AgentKind::Program(Kind::Vibe);
    let speaks_acp = agent.subject.program.command.first().is_some_and(|program| program.ends_with("-acp"));
    if is_vibe && !speaks_acp {
        let (raw, origin) = (Raw::Word("oneshot".to_owned()), Origin::Borrowed(hint.name.to_owned()));
        agent.set(agent_setting("mode"), &raw, origin).expect("oneshot is a mode");
    }
}

/// Who gets messages that name no agent.
pub fn default_of<'a>(agents: impl Iterator<Item = &'a Agent>) -> Option<&'a Agent> {
    agents.min_by_key(|agent| (!agent.default, agent.id.as_str()))
}

/// An id that can be a path segment and is not one of the server's own.
pub fn agent_id(raw: &Raw) -> Read<String> {
    let id = said(raw).ok_or_else(|| wrong(raw, ID))?;
    let is_plain = id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte));
    // Clients fold `.` and `..` away before they send a path.
    if !is_plain || !(1..=64).contains(&id.len()) || id == "." || id == ".." {
        return Err(wrong(raw, ID));
    }
    if RESERVED.contains(&id) {
        return Err(format!("is {raw}, which is a path of the server; not allowed are {}", RESERVED.join(", ")));
    }
    Ok((id.to_owned(), json!(id)))
}

pub fn agent_kind(raw: &Raw) -> Read<AgentKind> {
    let word = said(raw).unwrap_or_default();
    let kinds = || BUILT_IN.into_iter().chain(KNOWN.iter().map(|known| AgentKind::Program(known.kind)));
    if let Some(kind) = kinds().find(|kind| kind.name() == word) {
        return Ok((kind, json!(word)));
    }
    if LATER_KINDS.contains(&word) {
        return Err(format!("is {raw}, which comes in a later version"));
    }
    let names: Vec<&str> = kinds().map(AgentKind::name).collect();
    let hint = nearest(word, names.iter().copied()).map_or(String::new(), |near| format!("; did you mean \"{near}\"?"));
    Err(format!("is {raw}, which is no kind of agent; there are {}{hint}", names.join(", ")))
}

const ID: &str = "1 to 64 letters, digits, dots, dashes and underscores";

/// First path segments that mean something else.
const RESERVED: [&str; 15] = [
    "a2a",
    "v1",
    "agents",
    "console",
    "tasks",
    "message",
    "metrics",
    "healthz",
    "readyz",
    "openapi.json",
    "agent",
    ".well-known",
    "mcp",
    "admin",
    "health",
];

const BUILT_IN: [AgentKind; 2] = [AgentKind::Demo, AgentKind::Conformance];

const LATER_KINDS: [&str; 1] = ["a2a"];

/// One agent of a kind, with the kind as its id.
fn single(kind: &Raw, origin: Origin) -> Result<Described<Agent>, Problem> {
    let mut agent = Described::new(blank(), AGENT_SETTINGS);
    agent.set(agent_setting("kind"), kind, origin.clone())?;
    agent.set(agent_setting("id"), kind, origin)?;
    Ok(agent)
}

/// What nobody has described further.
fn default_agent() -> Described<Agent> {
    single(&Raw::Word("demo".to_owned()), Origin::Default).expect("demo is a kind and an id")
}

/// What an agent is before anything is said of it.
fn blank() -> Agent {
    Agent::new("demo", AgentKind::Demo)
}

fn read_tables(file: &File, problems: &mut Vec<Problem>) -> Vec<Described<Agent>> {
    let mut agents: Vec<Described<Agent>> = Vec::new();
    for table in &file.agents {
        let new = read_table(file, table, problems);
        problems.extend(repeated(&file.name, "agents", "id", &agents, &new));
        let is_default = |old: &&Described<Agent>| old.subject.default && new.subject.default;
        if let (Some(line), Some(old)) = (new.line("default"), agents.iter().find(is_default)) {
            let words = format!("there are two default agents; \"{}\" is one", old.subject.id);
            problems.push(Problem::in_file(&file.name, line, &words));
        }
        agents.push(new);
    }
    agents
}

fn read_table(file: &File, table: &AgentTable, problems: &mut Vec<Problem>) -> Described<Agent> {
    let mut agent = Described::read(blank(), AGENT_SETTINGS, &file.name, &table.agent, problems);

    let mut skills: Vec<Described<Skill>> = Vec::new();
    for table in &table.skills {
        let new = Described::read(Skill::default(), SKILL_SETTINGS, &file.name, table, problems);
        problems.extend(repeated(&file.name, "skills", "id", &skills, &new));
        skills.push(new);
    }
    for skill in skills {
        let name = format!("skill.{}", segment(&skill.subject.id));
        let skill = agent.absorb(&name, skill);
        agent.subject.skills.push(skill);
    }

    let mut extensions: Vec<Described<Extension>> = Vec::new();
    for table in &table.extensions {
        let blank = Extension { uri: String::new(), description: None, required: false, params: None };
        let new = Described::read(blank, EXTENSION_SETTINGS, &file.name, table, problems);
        problems.extend(repeated(&file.name, "extensions", "uri", &extensions, &new));
        extensions.push(new);
    }
    for extension in extensions {
        let name = format!("extension.{}", segment(&extension.subject.uri));
        let extension = agent.absorb(&name, extension);
        agent.subject.extensions.push(extension);
    }
    // Nothing follows from a kind that does not exist.
    if agent.line("kind").is_some() {
        problems.extend(programs::settle(&mut agent));
    }
    agent
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_path_segments_of_their_own() {
        for id in ["a", "demo", "Coder-2_b.x", &"x".repeat(64)] {
            assert!(agent_id(&Raw::Text(id.to_owned())).is_ok(), "{id:?}");
        }
        for id in [
            "",
            ".",
            "..",
            "a/b",
            "a b",
            "é",
            &"x".repeat(65),
            "a2a",
            ".well-known",
            "openapi.json",
            "mcp",
            "admin",
            "health",
        ] {
            assert!(agent_id(&Raw::Text(id.to_owned())).is_err(), "{id:?}");
        }
    }

    #[test]
    fn kinds_now_later_and_never() {
        let all = "demo, conformance, claude-code, codex, gemini, opencode, goose, copilot, qwen, vibe, cursor, acp, \
                   generic, command";
        for (word, expected) in [
            ("demo", "ok".to_owned()),
            ("conformance", "ok".to_owned()),
            ("claude-code", "ok".to_owned()),
            ("command", "ok".to_owned()),
            ("a2a", "is \"a2a\", which comes in a later version".to_owned()),
            ("dmeo", format!("is \"dmeo\", which is no kind of agent; there are {all}; did you mean \"demo\"?")),
            (
                "claude_code",
                format!(
                    "is \"claude_code\", which is no kind of agent; there are {all}; did you mean \"claude-code\"?"
                ),
            ),
            ("banana", format!("is \"banana\", which is no kind of agent; there are {all}")),
        ] {
            let read = agent_kind(&Raw::Word(word.to_owned()));
            assert_eq!(read.map_or_else(|words| words, |_| "ok".to_owned()), expected, "{word:?}");
        }
    }
}
