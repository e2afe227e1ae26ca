//! The agents: from `[[agent]]` tables, from one word (`--agent demo`), or the demo agent when nobody says.
//!
//! An id becomes a path segment and a tenant, so it must not look like a path that the server has already.

use sabir_model::{Extension, Skill};
use serde_json::json;

use super::agent_settings::{AGENT_SETTINGS, EXTENSION_SETTINGS, SKILL_SETTINGS, agent_setting};
use super::borrowed::Said;
use super::described::{Described, repeated, segment};
use super::file::{AgentTable, File};
use super::kinds::{Read, choice, said, wrong};
use super::nearest::nearest;
use super::origin::{Origin, Problem};
use super::raw::Raw;
use super::sections::{Agent, AgentKind};

/// Agents that one word names, strongest first.
pub struct Wishes {
    pub flag: Option<(Origin, Raw)>,
    pub variable: Option<(Origin, Raw)>,
}

/// What the server runs. A wish replaces the list of the file by one agent; borrowed names describe an agent
/// only where the file lists none, since the servers that they come from had one agent and no list.
pub fn gather(
    file: &File,
    wishes: Wishes,
    borrowed: &Said,
    problems: &mut Vec<Problem>,
    warnings: &mut Vec<String>,
) -> Vec<Described<Agent>> {
    let listed = read_tables(file, problems);
    let mut wished = Vec::new();
    for (origin, raw) in [wishes.flag, wishes.variable].into_iter().flatten() {
        match single(&raw, origin) {
            Ok(agent) => wished.push(agent),
            Err(problem) => problems.push(problem),
        }
    }
    if wished.is_empty() && !file.agents.is_empty() {
        let kind = borrowed.kind.iter().map(|(name, _)| *name);
        for name in kind.chain(borrowed.limits.iter().map(|(_, name, _)| *name)) {
            warnings.push(format!("{name} is ignored, since {} lists the agents", file.name));
        }
        return listed;
    }
    let mut agent = match (wished.into_iter().next(), &borrowed.kind) {
        (Some(agent), _) => agent,
        (None, None) => default_agent(),
        (None, Some((name, raw))) => single(raw, Origin::Borrowed((*name).to_owned())).unwrap_or_else(|problem| {
            warnings.push(problem.as_warning());
            default_agent()
        }),
    };
    for (key, name, raw) in &borrowed.limits {
        if let Err(problem) = agent.set(agent_setting(key), raw, Origin::Borrowed((*name).to_owned())) {
            warnings.push(problem.as_warning());
        }
    }
    vec![agent]
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
    let Some(word) = said(raw) else {
        return choice(raw, &KINDS);
    };
    if LATER_KINDS.contains(&word) {
        return Err(format!("is {raw}, which comes in a later version; this one has demo and conformance"));
    }
    let known = KINDS.iter().map(|(word, _)| *word).chain(LATER_KINDS);
    match (KINDS.iter().any(|(kind, _)| *kind == word), nearest(word, known)) {
        (false, Some(near)) => Err(format!("is {raw}, which is no kind of agent; did you mean \"{near}\"?")),
        _ => choice(raw, &KINDS),
    }
}

const ID: &str = "1 to 64 letters, digits, dots, dashes and underscores";

/// First path segments that mean something else.
const RESERVED: [&str; 12] = [
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
];

const KINDS: [(&str, AgentKind); 2] = [("demo", AgentKind::Demo), ("conformance", AgentKind::Conformance)];

const LATER_KINDS: [&str; 9] =
    ["claude-code", "codex", "gemini", "cursor", "opencode", "vibe", "command", "acp", "a2a"];

/// One agent of a kind, with the kind as its id.
fn single(kind: &Raw, origin: Origin) -> Result<Described<Agent>, Problem> {
    let mut agent = Described::new(blank(), AGENT_SETTINGS);
    agent.set(agent_setting("kind"), kind, origin.clone())?;
    agent.set(agent_setting("id"), kind, origin)?;
    Ok(agent)
}

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
        for id in ["", ".", "..", "a/b", "a b", "é", &"x".repeat(65), "a2a", ".well-known", "openapi.json"] {
            assert!(agent_id(&Raw::Text(id.to_owned())).is_err(), "{id:?}");
        }
    }

    #[test]
    fn kinds_now_later_and_never() {
        for (word, expected) in [
            ("demo", "ok"),
            ("conformance", "ok"),
            ("claude-code", "is \"claude-code\", which comes in a later version; this one has demo and conformance"),
            ("dmeo", "is \"dmeo\", which is no kind of agent; did you mean \"demo\"?"),
            ("claude_code", "is \"claude_code\", which is no kind of agent; did you mean \"claude-code\"?"),
            ("banana", "is \"banana\"; expected demo or conformance"),
        ] {
            let read = agent_kind(&Raw::Word(word.to_owned()));
            assert_eq!(read.map_or_else(|words| words, |_| "ok".to_owned()), expected, "{word:?}");
        }
    }
}
