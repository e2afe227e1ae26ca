//! Routing: whether the agents that it names exist, and the routes that environment names of other servers ask for.

use sabir_agents::program::settings::Kind;
use sabir_agents::routing::Profile;
use serde_json::json;

use super::agents::{default_of, parse_kind};
use super::env_aliases::{AliasValues, RouteAlias};
use super::origin::{Configured, Problem, ValueOrigin};
use super::raw::{Raw, RawEntry, RawTable};
use super::sections::{AgentConfig, AgentKind, Config};
use super::values::nearest;

/// A route of environment aliases, as a setting.
pub struct AliasRoute {
    pub key: &'static str,
    pub names: String,
    pub raw: Raw,
}

/// `add` makes the agent of a kind that nobody else runs, for the name that asks for it; `None` means that there can be no
/// such agent.
pub fn from_aliases(
    aliases: &AliasValues,
    agents: &[Configured<AgentConfig>],
    mut add: impl FnMut(Kind, &str) -> Option<String>,
    problems: &mut Vec<Problem>,
    warnings: &mut Vec<String>,
) -> Vec<AliasRoute> {
    let mut routes = Vec::new();
    for RouteAlias { key, adapter, model } in &aliases.routes {
        let names: Vec<&str> = [adapter, model].into_iter().flatten().map(|(name, _)| *name).collect();
        let agent = match adapter {
            None => default_of(agents.iter().map(|agent| &agent.subject)).map(|agent| agent.id.clone()),
            Some((name, word)) => match find(agents, word) {
                Some(id) => Some(id),
                None => match parse_kind(&Raw::untyped(word)) {
                    Ok((AgentKind::Program(kind), _)) => add(kind, name).or_else(|| {
                        warnings.push(format!("{name} is ignored, since the file has no agent {word}"));
                        None
                    }),
                    Ok(_) => {
                        warnings.push(format!("{name} is ignored, since no agent {word} runs"));
                        None
                    }
                    Err(words) => {
                        problems.push(Problem::outside(format!("{name} {words}")));
                        None
                    }
                },
            },
        };
        let Some(agent) = agent else { continue };
        let built_in = agents.iter().map(|agent| &agent.subject).find(|known| known.id == agent && !known.has_models());
        let entry = |key: &str, value: &str| RawEntry { key: key.to_owned(), line: 0, value: Raw::untyped(value) };
        let mut entries = vec![entry("agent", &agent)];
        match (model, built_in) {
            (Some((name, _)), Some(built_in)) => {
                warnings.push(format!("{name} is ignored, since the agent {} has no models", built_in.id));
                if adapter.is_none() {
                    continue;
                }
            }
            (Some((_, model)), None) => entries.push(entry("model", model)),
            (None, _) => {}
        }
        let raw = Raw::Table(RawTable { line: 0, entries });
        routes.push(AliasRoute { key, names: names.join(", "), raw });
    }
    routes
}

/// The agent of this id, or else the first of this kind.
fn find(agents: &[Configured<AgentConfig>], word: &str) -> Option<String> {
    let agents = || agents.iter().map(|agent| &agent.subject);
    let by_id = agents().find(|agent| agent.id == word);
    by_id.or_else(|| agents().find(|agent| agent.kind.name() == word)).map(|agent| agent.id.clone())
}

/// Drops the routes of the file, since its agents do not run. Answers with what to tell of them.
pub fn drop_those_of_the_file(config: &mut Configured<Config>) -> Vec<String> {
    let mut warnings = Vec::new();
    for profile in Profile::ALL {
        let key = format!("routing.{}", profile.name());
        let current = config.value_mut(&key);
        if let ValueOrigin::File { .. } = current.origin {
            warnings.push(format!("{}: {key} is ignored, since other agents run than the file lists", current.origin));
            (current.value, current.origin) = (json!(null), ValueOrigin::Default);
            *config.subject.routing.of_mut(profile) = None;
        }
    }
    warnings
}

/// Routes to agents that do not exist, or with a model to one that has none.
pub fn check(config: &Configured<Config>) -> Vec<Problem> {
    let agents = || config.subject.all_agents();
    let mut problems = Vec::new();
    for profile in Profile::ALL {
        let Some(route) = config.subject.routing.of(profile) else { continue };
        let words = match agents().find(|agent| agent.id == route.agent) {
            None => unknown(&route.agent, agents()),
            Some(agent) if route.model.is_some() && !agent.has_models() => {
                format!("has a model, but the agent {} of kind {} has none", agent.id, agent.kind.name())
            }
            Some(_) => continue,
        };
        let key = format!("routing.{}", profile.name());
        problems.push(Problem::of(&config.value(&key).origin, &key, &words));
    }
    problems
}

pub fn unknown<'a>(id: &str, agents: impl Iterator<Item = &'a AgentConfig>) -> String {
    let ids: Vec<&str> = agents.map(|agent| agent.id.as_str()).collect();
    let hint = nearest(id, ids.iter().copied()).map_or(String::new(), |near| format!("; did you mean \"{near}\"?"));
    format!("names the agent {}, which does not exist; there are {}{hint}", Raw::Text(id.to_owned()), ids.join(", "))
}

/// Whether environment aliases may set this: they are stronger than the file and weaker than the rest.
pub fn yields_to_alias(origin: &ValueOrigin) -> bool {
    matches!(origin, ValueOrigin::Default | ValueOrigin::File { .. })
}
