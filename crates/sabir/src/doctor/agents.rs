//! The agents: whether their programs are here, and whether remote ones answer.

use std::time::Duration;

use sabir_agents::program::settings::Kind;

use crate::config::{AgentConfig, AgentKind};
use crate::{agent_check, agents, upstream};

use super::Subject;
use super::finding::{Area, Finding, Level};

const AREA: Area = Area::Agents;

/// What programs may take for a word, beside the limit of a check.
pub const ASKING: Duration = Duration::from_secs(90);

/// The agent at this place of the configuration.
pub fn check(subject: &Subject, place: usize) -> Vec<Finding> {
    let Some(agent) = subject.loaded.config.all_agents().nth(place) else { return Vec::new() };
    let machine = &subject.surroundings.machine;
    if let Some(missing) = subject.loaded.first_missing(agent, machine) {
        let mut finding = Finding::of_words(AREA, Level::Problem, &missing);
        finding.what = format!("{}: {}", agent.id, finding.what);
        return vec![finding];
    }
    vec![match agent.kind {
        AgentKind::Demo | AgentKind::Conformance => Finding::ok(AREA, format!("{} is built in", agent.id)),
        AgentKind::Program(kind) => program(subject, agent, kind),
        AgentKind::A2a => remote(subject, agent),
        AgentKind::OpenAi => model_server(subject, agent),
    }]
}

fn program(subject: &Subject, agent: &AgentConfig, kind: Kind) -> Finding {
    let known = kind.info();
    let own = known.mode_info(agent.program.mode).and_then(|way| way.program);
    let name = agent.program.command.first().map(String::as_str).or(own).unwrap_or_default();
    let path = match subject.surroundings.machine.find(name) {
        Ok(path) => path,
        Err(absent) => {
            return Finding::problem(
                AREA,
                format!("{}: {name} {absent}", agent.id),
                format!("install it: {}", known.install),
            );
        }
    };
    let shown = path.display();
    // Nobody knows what a program of the operator's own does with a flag.
    if matches!(kind, Kind::Generic | Kind::Command | Kind::Acp) {
        return Finding::ok(AREA, format!("{} runs {shown}", agent.id));
    }
    match agents::version(&path, known.version) {
        Ok(version) => Finding::ok(AREA, format!("{} runs {shown}, version {version}", agent.id)),
        Err(why) => Finding::warning(
            AREA,
            format!("{}: {shown} {why}", agent.id),
            format!(
                "run it once in a terminal, as the user and with the environment of sabir; or install it again: {}",
                known.install
            ),
        ),
    }
}

fn remote(subject: &Subject, agent: &AgentConfig) -> Finding {
    let url = agent.remote.url.as_deref().or(agent.remote.card_url.as_deref()).unwrap_or("its endpoint");
    if subject.options.offline {
        return Finding::ok(AREA, format!("{}: {url} was not checked (--offline)", agent.id));
    }
    match upstream::discover(&agent.remote, &subject.surroundings.machine) {
        Ok(Ok(found)) => {
            let protocol = &found.endpoint.protocol;
            Finding::ok(AREA, format!("{}: {url} answers, and speaks A2A {protocol}", agent.id))
        }
        Ok(Err(error)) => Finding::problem(
            AREA,
            format!("{}: {url} cannot be used: {error}", agent.id),
            format!("see that it runs, and what `sabir card {url}` says"),
        ),
        Err(error) => Finding::problem(AREA, format!("{}: {error:#}", agent.id), "correct its [[agent]]"),
    }
}

fn model_server(subject: &Subject, agent: &AgentConfig) -> Finding {
    let url = agent.remote.url.as_deref().unwrap_or_default();
    if subject.options.offline {
        return Finding::ok(AREA, format!("{}: {url} was not checked (--offline)", agent.id));
    }
    match upstream::probe_models(&agent.remote, &subject.surroundings.machine) {
        Ok(Ok(401 | 403)) => Finding::problem(
            AREA,
            format!("{}: {url} does not accept its credential", agent.id),
            "correct api_key_env, or the variable that it names",
        ),
        Ok(Ok(_)) => Finding::ok(AREA, format!("{}: {url} answers", agent.id)),
        Ok(Err(error)) => Finding::problem(
            AREA,
            format!("{}: {url} cannot be used: {error}", agent.id),
            "see that the server runs, and correct base_url",
        ),
        Err(error) => Finding::problem(AREA, format!("{}: {error:#}", agent.id), "correct its [[agent]]"),
    }
}

/// Asks each program for a word.
pub fn ask(subject: &Subject) -> Vec<Finding> {
    match agent_check::check(&subject.loaded, &subject.surroundings, None) {
        Ok(checked) => checked.iter().map(answer).collect(),
        Err(error) => vec![Finding::problem(AREA, format!("{error:#}"), "run `sabir agents --check`")],
    }
}

fn answer(checked: &agent_check::Checked) -> Finding {
    match checked.verdict() {
        Ok(answer) => Finding::ok(AREA, format!("{} answers: {answer}", checked.id())),
        Err((words, remedy)) => Finding::problem(AREA, format!("{}: {words}", checked.id()), remedy),
    }
}
