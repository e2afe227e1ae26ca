//! The agents: from `[[agent]]` tables, from one word (`--agent demo`), or the demo agent when nobody says.
//!
//! An id becomes a path segment and a tenant, so it must not look like a path that the server has already.

use sabir_agents::kinds::PROGRAMS;
use sabir_model::{Extension, Skill, scope};
use sabir_server::{RESERVED_AGENT_IDS, is_path_segment};
use serde_json::json;

use super::agent_settings::{AGENT_SETTINGS, EXTENSION_SETTINGS, SKILL_SETTINGS};
use super::alias_agents::{AliasAgents, KindFrom};
use super::env_aliases::AliasValues;
use super::file::{File, tables_of};
use super::origin::{Configured, Problem, ValueOrigin, repeated};
use super::programs;
use super::raw::{Raw, RawTable};
use super::routes::{self, AliasRoute};
use super::sections::{AgentConfig, AgentKind};
use super::settings::{Setting, row_of};
use super::values::{Read, ValueKind, nearest};

/// What the server runs.
pub struct AgentsConfig {
    pub source: Source,
    pub agents: Vec<Configured<AgentConfig>>,
    /// Those that only routing reaches.
    pub routed_agents: Vec<Configured<AgentConfig>>,
    /// Routes that environment aliases ask for.
    pub routes: Vec<AliasRoute>,
}

/// Where the agents come from.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Source {
    File,
    /// The file lists none.
    NoFile,
    /// The file lists others, which one word replaces.
    InsteadOfFile,
}

/// A kind that a flag or a variable chooses replaces the list of the file by one agent. Environment aliases describe an
/// agent only where the file lists none, since the servers that they come from had one agent and no list.
///
/// `proxied` is the agent of `sabir proxy`, which stands for all others. `chosen` are the kinds that `--agent` and `SABIR_AGENT`
/// name, strongest first.
pub fn collect(
    file: &File,
    proxied: Option<Configured<AgentConfig>>,
    chosen: Vec<(ValueOrigin, Raw)>,
    aliases: &AliasValues,
    problems: &mut Vec<Problem>,
    warnings: &mut Vec<String>,
) -> AgentsConfig {
    let list = file.root.entries.iter().find(|entry| entry.key == "agent");
    let tables = list.map_or(Vec::new(), |list| tables_of(&file.name, "agent", list, problems));
    let listed = read_tables(&file.name, &tables, problems);
    let mut single = proxied;
    for (origin, raw) in chosen {
        match agent_of_kind(&raw, origin) {
            Ok(agent) => single = single.or(Some(agent)),
            Err(problem) => problems.push(problem),
        }
    }
    if single.is_none() && !tables.is_empty() {
        let ignored = aliases.agent_names();
        warnings.extend(ignored.map(|name| format!("{name} is ignored, since {} lists the agents", file.name)));
        let routes = routes::from_aliases(aliases, &listed, |_, _| None, problems, warnings);
        return AgentsConfig { source: Source::File, agents: listed, routed_agents: Vec::new(), routes };
    }

    let choice = match (single, &aliases.kind) {
        (Some(agent), _) => Ok((agent, KindFrom::Sabir)),
        (None, None) => Ok((default_agent(), KindFrom::Sabir)),
        (None, Some((name, raw))) => {
            agent_of_kind(raw, ValueOrigin::EnvAlias((*name).to_owned())).map(|agent| (agent, KindFrom::Alias(name)))
        }
    };
    let (agent, kind_from) = choice.unwrap_or_else(|problem| {
        problems.push(problem);
        (default_agent(), KindFrom::Sabir)
    });
    let mut described = AliasAgents::new(aliases, kind_from);
    let agents = vec![described.describe_main(agent, warnings)];
    let add = |kind, name: &str| Some(described.add_routed(kind, name));
    let routes = routes::from_aliases(aliases, &agents, add, problems, warnings);
    problems.append(&mut described.problems);
    let source = if tables.is_empty() { Source::NoFile } else { Source::InsteadOfFile };
    AgentsConfig { source, agents, routed_agents: described.routed, routes }
}

/// One agent of a kind, with the kind as its id.
pub fn agent_of_kind(kind: &Raw, origin: ValueOrigin) -> Result<Configured<AgentConfig>, Problem> {
    let mut agent = Configured::new(AgentConfig::default(), &AGENT_SETTINGS);
    agent.set(row_of(&AGENT_SETTINGS, "kind"), kind, origin.clone())?;
    let needs_more = match agent.subject.kind {
        AgentKind::A2a => Some("is \"a2a\", which needs the address of the remote agent; use `sabir proxy URL`"),
        AgentKind::OpenAi => {
            Some("is \"openai\", which needs base_url and model; describe it in sabir.toml, in an [[agent]]")
        }
        _ => None,
    };
    if let Some(words) = needs_more {
        return Err(Problem::of(&origin, "kind", words));
    }
    agent.set(row_of(&AGENT_SETTINGS, "id"), kind, origin)?;
    Ok(agent)
}

/// Who gets messages that name no agent.
pub fn default_of<'a>(agents: impl Iterator<Item = &'a AgentConfig>) -> Option<&'a AgentConfig> {
    agents.min_by_key(|agent| (!agent.default, agent.id.as_str()))
}

/// Refuses an id that the file would not take, in words that follow its name.
pub fn check_agent_id(id: &str) -> Result<(), String> {
    agent_id().read(&Raw::Text(id.to_owned())).map(|_| ())
}

/// An id that can be a path segment and is not one of the server's own.
pub fn agent_id() -> ValueKind<String> {
    ValueKind::new(json!({"type": "string"}), |raw| {
        let id = raw.as_text().unwrap_or_default();
        if !is_path_segment(id) {
            return Err(raw.unexpected("1 to 64 letters, digits, dots, dashes and underscores"));
        }
        if RESERVED_AGENT_IDS.contains(&id) {
            return Err(format!(
                "is {raw}, which is a path of the server; not allowed are {}",
                RESERVED_AGENT_IDS.join(", ")
            ));
        }
        Ok((id.to_owned(), json!(id)))
    })
}

/// The name of a scope that is no right by itself.
pub fn scope_name() -> ValueKind<String> {
    ValueKind::new(json!({"type": "string"}), |raw| {
        let name = raw.as_text().unwrap_or_default();
        let is_plain = name.bytes().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\' | b','));
        if !is_plain || name.is_empty() || name.len() > 128 {
            return Err(raw.unexpected("the name of a scope: at most 128 visible characters without quotes and commas"));
        }
        if [scope::RUN, scope::READ, scope::ADMIN].contains(&name) {
            return Err(format!(
                "is {raw}, which callers have for other reasons; use a scope of its own, such as approve"
            ));
        }
        Ok((name.to_owned(), json!(name)))
    })
}

pub fn agent_kind() -> ValueKind<AgentKind> {
    let names: Vec<&str> = kinds().map(AgentKind::name).collect();
    ValueKind::new(json!({"enum": names}), parse_kind)
}

pub fn parse_kind(raw: &Raw) -> Read<AgentKind> {
    let word = raw.as_text().unwrap_or_default();
    if let Some(kind) = kinds().find(|kind| kind.name() == word) {
        return Ok((kind, json!(word)));
    }
    let names: Vec<&str> = kinds().map(AgentKind::name).collect();
    let hint = nearest(word, names.iter().copied()).map_or(String::new(), |near| format!("; did you mean \"{near}\"?"));
    Err(format!("is {raw}, which is no kind of agent; there are {}{hint}", names.join(", ")))
}

fn kinds() -> impl Iterator<Item = AgentKind> {
    let built_in = [AgentKind::Demo, AgentKind::Conformance, AgentKind::A2a, AgentKind::OpenAi];
    built_in.into_iter().chain(PROGRAMS.iter().map(|known| AgentKind::Program(known.kind)))
}

/// What nobody has described further.
fn default_agent() -> Configured<AgentConfig> {
    agent_of_kind(&Raw::untyped("demo"), ValueOrigin::Default).expect("demo is a kind and an id")
}

fn read_tables(file: &str, tables: &[&RawTable], problems: &mut Vec<Problem>) -> Vec<Configured<AgentConfig>> {
    let mut agents: Vec<Configured<AgentConfig>> = Vec::new();
    for table in tables {
        let new = read_table(file, table, problems);
        problems.extend(repeated(file, "agents", "id", &agents, &new));
        let is_default = |old: &&Configured<AgentConfig>| old.subject.default && new.subject.default;
        if let (Some(line), Some(old)) = (new.line("default"), agents.iter().find(is_default)) {
            let words = format!("there are two default agents; \"{}\" is one", old.subject.id);
            problems.push(Problem::in_file(file, line, &words));
        }
        agents.push(new);
    }
    agents
}

fn read_table(file: &str, table: &RawTable, problems: &mut Vec<Problem>) -> Configured<AgentConfig> {
    let below = ["skill", "extension"];
    let mut agent =
        Configured::read_table(AgentConfig::default(), &AGENT_SETTINGS, "agent", &below, file, table, problems);
    agent.subject.skills =
        read_parts(&mut agent, &SKILL_SETTINGS, ("skill", "id"), file, table, problems, Skill::default);
    let blank = || Extension { uri: String::new(), description: None, required: false, params: None };
    agent.subject.extensions =
        read_parts(&mut agent, &EXTENSION_SETTINGS, ("extension", "uri"), file, table, problems, blank);
    // Nothing follows from a kind that does not exist.
    if agent.line("kind").is_some() {
        problems.extend(programs::complete(&mut agent));
    }
    agent
}

/// The tables of a list below an agent. `key` tells them apart.
fn read_parts<P>(
    agent: &mut Configured<AgentConfig>,
    settings: &[Setting<P>],
    (name, key): (&str, &str),
    file: &str,
    table: &RawTable,
    problems: &mut Vec<Problem>,
    blank: fn() -> P,
) -> Vec<P> {
    let path = format!("agent.{name}");
    let mut parts: Vec<Configured<P>> = Vec::new();
    for list in table.entries.iter().filter(|entry| entry.key == name) {
        for table in tables_of(file, &path, list, problems) {
            let new = Configured::read_table(blank(), settings, &path, &[], file, table, problems);
            problems.extend(repeated(file, &format!("{name}s"), key, &parts, &new));
            parts.push(new);
        }
    }
    let mut absorb = |part: Configured<P>| {
        let id = part.value(key).value.as_str().unwrap_or_default().to_owned();
        agent.absorb(&format!("{name}.{}", segment(&id)), part)
    };
    parts.into_iter().map(&mut absorb).collect()
}

/// A name as a part of a key: in quotes where TOML would want them.
fn segment(name: &str) -> String {
    let is_bare = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
    if !name.is_empty() && name.bytes().all(is_bare) { name.to_owned() } else { json!(name).to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_path_segments_of_their_own() {
        let is_id = |id: &str| agent_id().read(&Raw::Text(id.to_owned())).is_ok();
        for id in ["a", "demo", "Coder-2_b.x", &"x".repeat(64)] {
            assert!(is_id(id), "{id:?}");
        }
        for id in ["", ".", "..", "a/b", "a b", "é", &"x".repeat(65)].into_iter().chain(RESERVED_AGENT_IDS) {
            assert!(!is_id(id), "{id:?}");
        }
    }

    #[test]
    fn unknown_kinds_get_a_list_and_a_hint() {
        let all = "demo, conformance, a2a, openai, claude-code, codex, gemini, opencode, goose, copilot, qwen, vibe, cursor, acp, \
                   generic, command";
        let unknown =
            |word: &str, hint: &str| format!("is \"{word}\", which is no kind of agent; there are {all}{hint}");
        for (word, expected) in [
            ("demo", "ok".to_owned()),
            ("conformance", "ok".to_owned()),
            ("claude-code", "ok".to_owned()),
            ("command", "ok".to_owned()),
            ("a2a", "ok".to_owned()),
            ("dmeo", unknown("dmeo", "; did you mean \"demo\"?")),
            ("claude_code", unknown("claude_code", "; did you mean \"claude-code\"?")),
            ("banana", unknown("banana", "")),
        ] {
            let read = agent_kind().read(&Raw::untyped(word));
            assert_eq!(read.map_or_else(|words| words, |_| "ok".to_owned()), expected, "{word:?}");
        }
    }
}
