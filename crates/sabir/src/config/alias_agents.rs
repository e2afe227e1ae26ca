//! Agents that environment names of other servers describe: the one that runs, and those that their routes name.

use sabir_agents::program::settings::Kind;

use super::agent_settings::AGENT_SETTINGS;
use super::agents::agent_of_kind;
use super::env_aliases::{AgentAlias, AliasValues, AppliesTo, Force};
use super::origin::{Configured, Problem, ValueOrigin};
use super::programs;
use super::raw::Raw;
use super::sections::{AgentCard, AgentConfig, AgentKind};
use super::settings::row_of;

/// Who chose the kind of the agent.
#[derive(Clone, Copy)]
pub enum KindFrom {
    /// Our own names, or nobody.
    Sabir,
    /// A name of another server, where programs do all without asking unless they are told otherwise.
    Alias(&'static str),
}

pub struct AliasAgents<'a> {
    aliases: &'a AliasValues,
    kind_from: KindFrom,
    /// Agents that only routing reaches.
    pub routed: Vec<Configured<AgentConfig>>,
    pub problems: Vec<Problem>,
}

impl<'a> AliasAgents<'a> {
    pub fn new(aliases: &'a AliasValues, kind_from: KindFrom) -> Self {
        AliasAgents { aliases, kind_from, routed: Vec::new(), problems: Vec::new() }
    }

    /// The one agent that has an address. The warnings say which names are not used.
    pub fn describe_main(
        &mut self,
        mut agent: Configured<AgentConfig>,
        warnings: &mut Vec<String>,
    ) -> Configured<AgentConfig> {
        warnings.extend(self.describe(&mut agent, |_| true));
        agent
    }

    /// The id of a further agent of this kind, which `name` asks for.
    pub fn add_routed(&mut self, kind: Kind, name: &str) -> String {
        let id = kind.info().name;
        if !self.routed.iter().any(|agent| agent.subject.id == id) {
            let origin = ValueOrigin::EnvAlias(name.to_owned());
            let mut agent = agent_of_kind(&Raw::untyped(id), origin).expect("kinds are kinds and ids");
            // A model belongs to the program that it was written for.
            self.describe(&mut agent, |alias| alias.key != "model");
            self.routed.push(agent);
        }
        id.to_owned()
    }

    /// Answers with warnings on names that are not used.
    fn describe(&mut self, agent: &mut Configured<AgentConfig>, is_meant: fn(&AgentAlias) -> bool) -> Vec<String> {
        let mut ignored = Vec::new();
        for alias in self.aliases.agent_settings.iter().filter(|alias| is_meant(alias)) {
            if let Some(reason) = why_not(alias.applies_to, &agent.subject) {
                ignored.push(format!("{} is ignored, since {reason}", alias.name));
                continue;
            }
            match &alias.value {
                Ok(raw) => match set(agent, alias.key, raw, alias.name) {
                    Ok(()) => choose_mode_of_vibe(agent, alias),
                    Err(problem) => ignored.push(problem.as_warning()),
                },
                Err(words) => {
                    self.problems.push(Problem::of(&ValueOrigin::EnvAlias(alias.name.to_owned()), alias.key, words));
                }
            }
        }
        if let KindFrom::Alias(_) = self.kind_from {
            agent.subject.card = AgentCard::OfCodingProgram;
        }
        ignored.extend(self.approve(agent));
        // Programs that such names choose work at the same time, as they did where the names come from.
        let origin = agent.value("kind").origin.clone();
        if let (ValueOrigin::EnvAlias(name), true) = (origin, agent.subject.is_program()) {
            set_word(agent, "shared_workspace", "parallel", &name);
        }
        self.problems.extend(programs::complete(agent));
        ignored
    }

    /// Lets the agent do all without asking, if that is what the names mean. Answers with a warning if it should be known.
    fn approve(&self, agent: &mut Configured<AgentConfig>) -> Option<String> {
        let force = self.aliases.force;
        let (name, approve) = match (force, self.kind_from) {
            (Some((name, Force::All)), _) => (name, "all"),
            (None, KindFrom::Alias(name)) => (name, "all"),
            // Its questions are answered only where somebody says so; whoever could ask asks by default.
            (Some((name, Force::Ask)), _) if agent.subject.kind == AgentKind::Program(Kind::Generic) => (name, "ask"),
            _ => return None,
        };
        if let Some(reason) = why_not(AppliesTo::Programs, &agent.subject) {
            return force.map(|(name, _)| format!("{name} is ignored, since {reason}"));
        }
        set_word(agent, "approve", approve, name);
        force.is_none().then(|| {
            format!(
                "{name} alone means approve = \"all\": callers can make {} do everything that you can, without a \
                 question; AGENT_FORCE=false makes it ask where it can, AGENT_FORCE=true says that this is meant",
                agent.subject.kind.name()
            )
        })
    }
}

/// The program that `VIBE_BINARY_PATH` names is the one for people; the Agent Client Protocol has one of its own.
fn choose_mode_of_vibe(agent: &mut Configured<AgentConfig>, alias: &AgentAlias) {
    let is_vibe = alias.key == "command" && agent.subject.kind == AgentKind::Program(Kind::Vibe);
    let speaks_acp = agent.subject.program.command.first().is_some_and(|program| program.ends_with("-acp"));
    if is_vibe && !speaks_acp {
        set_word(agent, "mode", "oneshot", alias.name);
    }
}

fn set(agent: &mut Configured<AgentConfig>, key: &str, raw: &Raw, name: &str) -> Result<(), Problem> {
    agent.set(row_of(&AGENT_SETTINGS, key), raw, ValueOrigin::EnvAlias(name.to_owned()))
}

fn set_word(agent: &mut Configured<AgentConfig>, key: &str, word: &str, name: &str) {
    set(agent, key, &Raw::untyped(word), name).expect("it is a word for this setting");
}

/// Why a name is not meant for this agent.
fn why_not(applies_to: AppliesTo, agent: &AgentConfig) -> Option<String> {
    let own = agent.kind.name();
    match (applies_to, agent.kind) {
        (AppliesTo::All, _) | (AppliesTo::Programs, AgentKind::Program(_)) => None,
        (AppliesTo::Kind(kind), AgentKind::Program(own)) if own == kind => None,
        (AppliesTo::KindsWithoutProgram, AgentKind::Program(own)) if own.info().needs_command() => None,
        (AppliesTo::Programs, _) => Some(format!("the agent is of kind {own}, which is no program")),
        (AppliesTo::Kind(kind), _) => Some(format!("the agent is of kind {own}, not {}", kind.info().name)),
        (AppliesTo::KindsWithoutProgram, _) => {
            Some(format!("the agent is of kind {own}, which takes no other program"))
        }
    }
}
