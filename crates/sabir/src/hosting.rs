//! Agents, made from their configuration.

use std::sync::Arc;
use std::time::Duration;

use anyhow::anyhow;
use sabir_agents::program::Host;
use sabir_agents::program::settings::{ASKS_AGAIN_WITHIN, Delegate, Kind, Settings};
use sabir_agents::remote::RemoteAgentSettings;
use sabir_agents::routing::{Profile, Routes};
use sabir_agents::{ConformanceAgent, DemoAgent, OpenAiAgent, ProgramAgent, RemoteAgent};
use sabir_engine::{Agent, Hosted, Inputs, Limits, Recovery, Route, Router};
use sabir_model::AgentId;
use sabir_outbound::remote::Remote;

use crate::about::describe;
use crate::config::{self, AgentKind, Config, DelegateTo, default_of};
use crate::descriptors::Descriptors;
use crate::machine::Machine;
use crate::upstream;

/// What agents need of the environment, which only `process_environment.rs` reads.
#[derive(Debug, Clone)]
pub struct Surroundings {
    /// `TCK_STREAMING_TIMEOUT`, for the conformance agent.
    pub streaming_timeout: Duration,
    pub machine: Machine,
    pub host: Host,
    pub descriptors: Descriptors,
}

/// The agents of a server.
pub struct HostedAgents {
    /// Those that have an address.
    pub hosted: Vec<Hosted>,
    /// Those that only routing reaches.
    pub routed: Vec<Hosted>,
}

pub fn host(config: &Config, surroundings: &Surroundings) -> anyhow::Result<HostedAgents> {
    let host_all = |agents: &[config::AgentConfig]| -> anyhow::Result<Vec<Hosted>> {
        agents.iter().map(|agent| hosted_with_limits(agent, config, make(agent, config, surroundings)?)).collect()
    };
    let mut agents = HostedAgents { hosted: host_all(&config.agents)?, routed: host_all(&config.routed_agents)? };
    let default = default_of(config.agents.iter()).map(|agent| agent.id.as_str());
    let router = router(config)?;
    if let Some(default) = agents.hosted.iter_mut().find(|agent| Some(agent.id.as_str()) == default) {
        default.router = router;
    }
    Ok(agents)
}

/// The configuration has checked that the routes lead to agents.
fn router(config: &Config) -> anyhow::Result<Option<Arc<dyn Router>>> {
    let mut routes = Vec::new();
    for profile in Profile::ALL {
        if let Some(config::RouteConfig { agent, model }) = config.routing.of(profile) {
            routes.push((profile, Route { agent: agent_id(agent)?, model: model.clone() }));
        }
    }
    Ok((!routes.is_empty()).then(|| Arc::new(Routes(routes)) as Arc<dyn Router>))
}

fn agent_id(id: &str) -> anyhow::Result<AgentId> {
    AgentId::parse(id).map_err(|why| anyhow!("the agent id {id:?} {why}"))
}

/// One agent alone, whatever routing says.
pub fn host_one(agent: &config::AgentConfig, config: &Config, surroundings: &Surroundings) -> anyhow::Result<Hosted> {
    hosted_with_limits(agent, config, make(agent, config, surroundings)?)
}

/// The one place where an agent comes into being.
fn make(agent: &config::AgentConfig, config: &Config, surroundings: &Surroundings) -> anyhow::Result<Arc<dyn Agent>> {
    let takes = if config.compat.strict { Inputs::Listed } else { Inputs::Anything };
    Ok(match agent.kind {
        AgentKind::Demo => Arc::new(demo(agent, takes)),
        AgentKind::Conformance => Arc::new(ConformanceAgent::new(surroundings.streaming_timeout)),
        AgentKind::A2a => {
            let settings = RemoteAgentSettings {
                refresh: agent.remote.card_refresh,
                repeats_unknown: config.recovery.running == Recovery::Requeue,
            };
            let remote = Remote::new(upstream::remote_settings(&agent.remote, &surroundings.machine)?)?;
            Arc::new(RemoteAgent::new(remote, settings))
        }
        AgentKind::OpenAi => {
            let settings = upstream::openai_settings(agent, &surroundings.machine)?;
            Arc::new(OpenAiAgent::new(settings, surroundings.host.clone()))
        }
        AgentKind::Program(kind) => {
            let settings = program_settings(&agent.program, kind, &surroundings.machine);
            let about = match agent.card {
                config::AgentCard::OfProgram => sabir_agents::about(kind, &agent.program.command),
                config::AgentCard::OfCodingProgram => sabir_agents::coding_program(kind),
            };
            Arc::new(ProgramAgent::new(&agent.id, settings, about, surroundings.host.clone()))
        }
    })
}

fn demo(agent: &config::AgentConfig, takes: Inputs) -> DemoAgent {
    let demo = DemoAgent::new(takes);
    if agent.stored_first { demo.stored_first() } else { demo }
}

fn hosted_with_limits(agent: &config::AgentConfig, config: &Config, program: Arc<dyn Agent>) -> anyhow::Result<Hosted> {
    let mut hosted = Hosted::new(agent_id(&agent.id)?, program);
    hosted.limits = Limits::default()
        .concurrent(agent.max_concurrent)
        .concurrent_total(agent.max_concurrent_total)
        .queue(agent.queue)
        .max_parked(agent.max_parked)
        .timeout(agent.timeout)
        .idle_timeout(agent.idle_timeout)
        .tasks_per_caller(agent.tasks_per_caller.unwrap_or(config.limits.tasks_per_caller))
        .message_bytes(agent.message_bytes.unwrap_or(config.limits.message_bytes))
        .message_parts(agent.message_parts.unwrap_or(config.limits.message_parts));
    hosted.is_default = agent.default;
    hosted.is_listed = agent.listed;
    hosted.approver = agent.approver.as_deref().map(Arc::from);
    let agent = agent.clone();
    Ok(hosted.described_by(move |own| describe(own, &agent)))
}

/// A line that is longer than this is no message of a program, but something that it dumps.
const LONGEST_LINE: usize = 16 * 1024 * 1024;

/// How long a program may take to tidy up before it is killed.
const STOP_GRACE: Duration = Duration::from_secs(2);

fn program_settings(program: &config::ProgramConfig, kind: Kind, machine: &Machine) -> Settings {
    let own = kind.info().pass.iter().map(|name| (*name).to_owned());
    let mut command = program.command.clone();
    // The program is started in its workspace, which is not where its path begins.
    if let Some(first) = command.first_mut().filter(|first| first.contains('/')) {
        *first = machine.absolute(first.as_ref()).to_string_lossy().into_owned();
    }
    Settings {
        kind,
        mode: program.mode,
        command: (!command.is_empty()).then_some(command),
        arguments: program.arguments.clone(),
        model: program.model.clone(),
        instructions: program.instructions.clone(),
        workspace: machine.absolute(&program.workspace),
        roots: program.workspace_roots.iter().map(|root| machine.absolute(root)).collect(),
        isolation: program.isolation,
        shared_workspace: program.shared_workspace,
        approve: program.approve,
        approval_timeout: program.approval_timeout,
        hibernate_after: program.hibernate_after,
        asks_again_within: ASKS_AGAIN_WITHIN,
        environment: program.environment.clone(),
        pass: own.chain(program.pass_environment.iter().cloned()).collect(),
        tell_stderr: program.tell_stderr.unwrap_or(false),
        keep_files: program.keep_files,
        prompt_by: program.prompt_by,
        approval_pattern: program.approval_pattern.clone(),
        approval_response: program.approval_response.clone(),
        trusts_prompts: program.trust_prompts,
        trusts_workspace: program.trust_workspace,
        max_line: LONGEST_LINE.min(program.max_output),
        max_output: program.max_output as u64,
        stop_grace: STOP_GRACE,
        keep_warm: (!program.keep_warm.is_zero()).then_some(program.keep_warm),
        portable: program.portable,
        delegate: match &program.delegate {
            DelegateTo::Nobody => None,
            DelegateTo::All => Some(Delegate::All),
            // The configuration has checked that they exist.
            DelegateTo::Agents(ids) => {
                Some(Delegate::Agents(ids.iter().filter_map(|id| AgentId::parse(id.as_str()).ok()).collect()))
            }
        },
    }
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use sabir_engine::Effects;

    use super::*;

    #[test]
    fn what_is_relative_begins_where_sabir_was_started() {
        let machine = Machine { path: "".into(), folder: PathBuf::from("/start") };
        for (command, workspace, expected) in [
            (&[][..], ".", (None, "/start")),
            (&["bin/agent", "-v"], "repository", (Some("/start/bin/agent -v"), "/start/repository")),
            (&["agent"], "/srv", (Some("agent"), "/srv")),
            (&["/opt/agent"], "/srv", (Some("/opt/agent"), "/srv")),
        ] {
            let command = command.iter().map(|word| (*word).to_owned()).collect();
            let program =
                config::ProgramConfig { command, workspace: workspace.into(), ..config::ProgramConfig::default() };
            let settings = program_settings(&program, Kind::ClaudeCode, &machine);
            let line = settings.command.map(|words| words.join(" "));
            assert_eq!((line.as_deref(), settings.workspace.as_path()), (expected.0, Path::new(expected.1)));
            assert_eq!(settings.pass, ["ANTHROPIC_*", "CLAUDE_*"]);
        }
    }

    #[test]
    fn the_demo_agent_can_start_like_agents_that_act() {
        for (stored_first, expected) in [(false, Effects::ThroughTurn), (true, Effects::Anywhere)] {
            let agent = config::AgentConfig { stored_first, ..config::AgentConfig::new("demo", AgentKind::Demo) };
            assert_eq!(demo(&agent, Inputs::Anything).effects(), expected, "{stored_first}");
        }
    }
}
