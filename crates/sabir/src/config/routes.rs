//! Routing: do the agents that it names exist, and what do the names of other servers say of it?

use sabir_agents::program::settings::Kind;
use sabir_agents::routing::Profile;
use serde_json::json;

use super::agents::{agent_kind, default_of};
use super::borrowed::{BorrowedRoute, Said};
use super::described::Described;
use super::nearest::nearest;
use super::origin::{Origin, Problem};
use super::raw::Raw;
use super::sections::{Agent, AgentKind, Config};

/// A route of borrowed names, as a setting.
pub struct Wanted {
    pub key: &'static str,
    pub names: String,
    pub raw: Raw,
}

/// What the borrowed names want. `hire` makes the agent of a kind that nobody else runs, for the name that asks for it;
/// `None` means that there can be no such agent.
pub fn wanted(
    said: &Said,
    agents: &[Described<Agent>],
    mut hire: impl FnMut(Kind, &str) -> Option<String>,
    problems: &mut Vec<Problem>,
    warnings: &mut Vec<String>,
) -> Vec<Wanted> {
    let mut wanted = Vec::new();
    for BorrowedRoute { key, adapter, model } in &said.routes {
        let names: Vec<&str> = [adapter, model].into_iter().flatten().map(|(name, _)| *name).collect();
        let agent = match adapter {
            None => default_of(agents.iter().map(|agent| &agent.subject)).map(|agent| agent.id.clone()),
            Some((name, word)) => match find(agents, word) {
                Some(id) => Some(id),
                None => match agent_kind(&Raw::Word(word.clone())) {
                    Ok((AgentKind::Program(kind), _)) => hire(kind, name).or_else(|| {
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
        let built_in = agents.iter().map(|agent| &agent.subject).find(|known| known.id == agent && !is_program(known));
        let mut members = vec![("agent".to_owned(), Raw::Text(agent))];
        match (model, built_in) {
            (Some((name, _)), Some(built_in)) => {
                warnings.push(format!("{name} is ignored, since the agent {} has no models", built_in.id));
                if adapter.is_none() {
                    continue;
                }
            }
            (Some((_, model)), None) => members.push(("model".to_owned(), Raw::Text(model.clone()))),
            (None, _) => {}
        }
        wanted.push(Wanted { key, names: names.join(", "), raw: Raw::Table(members) });
    }
    wanted
}

/// The agent of this id, or else the first of this kind.
fn find(agents: &[Described<Agent>], word: &str) -> Option<String> {
    let agents = || agents.iter().map(|agent| &agent.subject);
    let by_id = agents().find(|agent| agent.id == word);
    by_id.or_else(|| agents().find(|agent| agent.kind.name() == word)).map(|agent| agent.id.clone())
}

/// Drops the routes of the file, since its agents do not run. Answers with what to tell of them.
pub fn forget_those_of_the_file(layers: &mut Described<Config>) -> Vec<String> {
    let mut warnings = Vec::new();
    for profile in Profile::ALL {
        let key = format!("routing.{}", profile.name());
        let shown = layers.values.iter_mut().find(|shown| shown.key == key).expect("every setting has a value");
        if let Origin::File { .. } = shown.origin {
            warnings.push(format!("{}: {key} is ignored, since other agents run than the file lists", shown.origin));
            (shown.value, shown.origin) = (json!(null), Origin::Default);
            layers.subject.routing.forget(profile);
        }
    }
    warnings
}

/// Routes to agents that do not exist, or with a model to one that has none.
pub fn check(layers: &Described<Config>) -> Vec<Problem> {
    let config = &layers.subject;
    let agents = || config.agents.iter().chain(&config.backstage);
    let mut problems = Vec::new();
    for profile in Profile::ALL {
        let Some(route) = config.routing.of(profile) else { continue };
        let words = match agents().find(|agent| agent.id == route.agent) {
            None => unknown(&route.agent, agents()),
            Some(agent) if route.model.is_some() && !is_program(agent) => {
                format!("has a model, but the agent {} of kind {} has none", agent.id, agent.kind.name())
            }
            Some(_) => continue,
        };
        let key = format!("routing.{}", profile.name());
        problems.push(Problem::of(&layers.shown(&key).origin, &key, &words));
    }
    problems
}

fn is_program(agent: &Agent) -> bool {
    matches!(agent.kind, AgentKind::Program(_))
}

fn unknown<'a>(id: &str, agents: impl Iterator<Item = &'a Agent>) -> String {
    let ids: Vec<&str> = agents.map(|agent| agent.id.as_str()).collect();
    let hint = nearest(id, ids.iter().copied()).map_or(String::new(), |near| format!("; did you mean \"{near}\"?"));
    format!("names the agent {}, which does not exist; there are {}{hint}", Raw::Text(id.to_owned()), ids.join(", "))
}

/// Whether borrowed names may set this: they are stronger than the file and weaker than the rest.
pub fn may_borrow(origin: &Origin) -> bool {
    matches!(origin, Origin::Default | Origin::File { .. })
}
