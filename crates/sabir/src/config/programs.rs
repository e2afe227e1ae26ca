//! What follows from the kind of an agent: the defaults of programs, and what does not go together.
//!
//! A program that would wait for an answer which nobody can give is refused at the start, not found hanging later.

use sabir_agents::kinds::{PLAIN_SYNTAX, ProgramInfo, ProjectSettings, Questions};
use sabir_agents::program::settings::{Delegate, Kind};
use sabir_agents::prompt::Approve;

use super::agent_settings::AGENT_SETTINGS;
use super::origin::{Configured, Problem, ValueOrigin};
use super::raw::Raw;
use super::sections::{AgentConfig, AgentKind, DelegateTo};
use super::settings::{ForWhom, row_of};
use super::{openai_agents, remote_agents};

/// Fills in the defaults of the kind, and tells what is wrong.
pub fn complete(agent: &mut Configured<AgentConfig>) -> Vec<Problem> {
    match agent.subject.kind {
        AgentKind::Demo | AgentKind::Conformance => refuse(agent),
        AgentKind::A2a => {
            let mut problems = refuse(agent);
            problems.extend(remote_agents::check(agent));
            problems
        }
        AgentKind::OpenAi => {
            let mut problems = refuse(agent);
            fill(agent, "max_concurrent", "64");
            fill(agent, "queue", "1000");
            fill(agent, "timeout", "20m");
            fill(agent, "api_key_name", "Authorization");
            problems.extend(openai_agents::check(agent));
            problems
        }
        AgentKind::Program(kind) => {
            let mut problems = refuse(agent);
            problems.extend(complete_program(agent, kind.info()));
            problems
        }
    }
}

fn complete_program(agent: &mut Configured<AgentConfig>, known: &ProgramInfo) -> Vec<Problem> {
    let mut problems = Vec::new();
    fill(agent, "max_concurrent", "4");
    fill(agent, "queue", "1000");
    fill(agent, "timeout", "20m");
    fill(agent, "mode", known.default_mode().name());
    // Of any program it is not known whether it writes, and many of them only answer.
    let is_any_program = matches!(known.kind, Kind::Generic | Kind::Command);
    fill(agent, "shared_workspace", if is_any_program { "parallel" } else { "queue" });

    if known.needs_command() && agent.subject.program.command.is_empty() {
        problems.push(lacks_command(agent, known));
    }
    let mode = agent.subject.program.mode;
    match known.mode_info(mode) {
        None => {
            let modes: Vec<&str> = known.modes.iter().map(|way| way.mode.name()).collect();
            let words = format!("is \"{}\"; {} has {} only", mode.name(), known.name, modes.join(" and "));
            problems.push(Problem::of(&agent.value("mode").origin, "mode", &words));
        }
        Some(way) => {
            // Whoever answers a program's questions keeps its standard input open, and many programs read that to its end.
            let asks = match known.kind {
                Kind::Generic => agent.subject.program.approval_pattern.is_some(),
                _ => way.questions == Questions::Asked,
            };
            fill(agent, "approve", if asks { "ask" } else { "none" });
            if way.questions == Questions::Never && agent.subject.program.approve == Approve::Ask {
                let words = cannot_ask(known, mode.name());
                problems.push(Problem::of(&agent.value("approve").origin, "approve", &words));
            }
        }
    }
    let delegates = agent.subject.program.delegate != DelegateTo::Nobody;
    if delegates && known.mode_info(mode).is_some() && !Delegate::is_known_for(known.kind, mode) {
        let words = format!(
            "is for kinds claude-code and codex, and for programs in mode acp; Sabir cannot tell {} in mode {} where the \
             agents are",
            known.name,
            mode.name()
        );
        problems.push(Problem::of(&agent.value("delegate").origin, "delegate", &words));
    }
    let is_plain = known.mode_info(mode).is_some_and(|way| way.prompts == PLAIN_SYNTAX);
    let program = &agent.subject.program;
    let has_no_use = |key: &str| match key {
        "trust_prompts" if is_plain && program.trust_prompts => {
            Some(format!("has no use: for {} every text is only text", known.name))
        }
        "trust_workspace" if program.trust_workspace && known.project == ProjectSettings::AsTheyAre => {
            Some(format!("is for kinds claude-code and codex; {} is started as it is", known.name))
        }
        "approval_pattern" | "approval_response" if known.kind != Kind::Generic => {
            Some(format!("is for kind generic; {} does not ask in plain lines", known.name))
        }
        "prompt" if known.kind != Kind::Generic => {
            Some(format!("is for kind generic; {} knows how it gets its message", known.name))
        }
        _ => None,
    };
    for key in ["approval_pattern", "approval_response", "prompt", "trust_prompts", "trust_workspace"] {
        let origin = &agent.value(key).origin;
        if let Some(words) = has_no_use(key).filter(|_| *origin != ValueOrigin::Default) {
            problems.push(Problem::of(origin, key, &words));
        }
    }
    problems
}

/// Sets what nobody has set.
fn fill(agent: &mut Configured<AgentConfig>, key: &str, text: &str) {
    if agent.is_default(key) {
        let set = agent.set(row_of(&AGENT_SETTINGS, key), &Raw::untyped(text), ValueOrigin::Default);
        set.expect("the defaults of kinds fit");
    }
}

fn lacks_command(agent: &Configured<AgentConfig>, known: &ProgramInfo) -> Problem {
    let origin = &agent.value("kind").origin;
    let remedy = match origin {
        ValueOrigin::EnvAlias(_) => "set AGENT_BINARY",
        ValueOrigin::File { .. } => "add command = [\"program\", \"argument\"]",
        _ => "describe it in sabir.toml, with command = [\"program\", \"argument\"] in its [[agent]]",
    };
    Problem::of(origin, "kind", &format!("is \"{}\", which needs a command; {remedy}", known.name))
}

fn cannot_ask(known: &ProgramInfo, mode: &str) -> String {
    let asking = known.modes.iter().find(|way| way.questions == Questions::Asked);
    let other = asking.map_or(String::new(), |way| format!("mode = \"{}\", or ", way.mode.name()));
    format!(
        "is \"ask\", but {} cannot ask in mode {mode}; use {other}approve = \"all\" or approve = \"none\"",
        known.name
    )
}

/// A setting that does nothing is worse than one that is refused. Those that nobody set are not shown either.
fn refuse(agent: &mut Configured<AgentConfig>) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (for_whom, words) in KINDS_OF_SETTINGS {
        if fits(agent.subject.kind, for_whom) {
            continue;
        }
        let words = format!("{words}; an agent of kind {} has no use for it", agent.subject.kind.name());
        let is_refused = |key: &str| AGENT_SETTINGS.iter().any(|row| row.key == key && row.for_whom == for_whom);
        let refused: Vec<_> = agent.values.extract_if(.., |value| is_refused(&value.key)).collect();
        let set = refused.iter().filter(|value| value.origin != ValueOrigin::Default);
        problems.extend(set.map(|value| Problem::of(&value.origin, &value.key, &words)));
    }
    problems
}

/// Settings that not every kind has, in words that follow their name.
const KINDS_OF_SETTINGS: [(ForWhom, &str); 6] = [
    (ForWhom::Demo, "is for the demo agent"),
    (ForWhom::Programs, "is for programs"),
    (ForWhom::Remotes, "is for remote agents (kind a2a)"),
    (ForWhom::OpenAi, "is for models behind a server (kind openai)"),
    (ForWhom::ProgramsAndOpenAi, "is for programs and for models behind a server (kind openai)"),
    (ForWhom::RemotesAndOpenAi, "is for remote agents (kind a2a) and models behind a server (kind openai)"),
];

fn fits(kind: AgentKind, for_whom: ForWhom) -> bool {
    match for_whom {
        ForWhom::All => true,
        ForWhom::Demo => kind == AgentKind::Demo,
        ForWhom::Programs => matches!(kind, AgentKind::Program(_)),
        ForWhom::Remotes => kind == AgentKind::A2a,
        ForWhom::OpenAi => kind == AgentKind::OpenAi,
        ForWhom::ProgramsAndOpenAi => matches!(kind, AgentKind::Program(_) | AgentKind::OpenAi),
        ForWhom::RemotesAndOpenAi => matches!(kind, AgentKind::A2a | AgentKind::OpenAi),
    }
}
