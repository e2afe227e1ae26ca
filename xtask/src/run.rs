//! Runs jobs one after the other, says what runs now and how long it took, and adds it all up.
//!
//! Whatever cannot be set up has failed, and the rest still runs.

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};

use crate::builds_ahead::BuildsAhead;
use crate::client::Programs;
use crate::clients::Client;
use crate::command::seconds;
use crate::jobs::TestJob;
use crate::leftovers::StateBefore;
use crate::nodes::{Launcher, NodesSetup};
use crate::programs::PROGRAMS;
use crate::tally::Tally;
use crate::workspace::Workspace;
use crate::{
    acp, agents, arrows, client, compatibility, console, dependencies, documents, generated, identity_provider, lints,
    mcp, observability, openai, packages, publishing, sdk_server_suite, server, setup, setup_program, workspace_tests,
};

pub fn all(workspace: &Workspace, jobs: &[TestJob]) -> Tally {
    let is_checked = jobs.iter().any(|job| matches!(job, TestJob::Leftovers));
    let mut shared = SharedSetup { before: is_checked.then(|| StateBefore::look(workspace)), ..SharedSetup::default() };
    let mut results: Vec<(String, Tally, Duration)> = vec![];
    for job in jobs {
        println!("==> {}", job.name());
        let started = Instant::now();
        let tally = one(workspace, &mut shared, job, jobs).unwrap_or_else(|error| {
            println!("    FAILED: {error:#}");
            Tally::FAILED
        });
        let time = started.elapsed();
        println!("<== {}: {tally}, in {}\n", job.name(), seconds(time));
        results.push((job.name(), tally, time));
    }
    let mut total = Tally::default();
    for (name, tally, time) in results {
        let mark = if tally.failed > 0 { "FAILED" } else { "ok" };
        println!("{mark:<7} {name:<31} {:<24} {:>9}", tally.to_string(), seconds(time));
        total += tally;
    }
    total
}

/// `jobs` are all that run, this one among them.
fn one(workspace: &Workspace, shared: &mut SharedSetup, job: &TestJob, jobs: &[TestJob]) -> Result<Tally> {
    match job {
        TestJob::Format => lints::format(workspace).map(|()| Tally::PASSED),
        TestJob::Lints => lints::clippy(workspace).map(|()| Tally::PASSED),
        TestJob::Arrows => Ok(report_faults(&arrows::broken(workspace)?)),
        TestJob::Dependencies => Ok(report_faults(&dependencies::faults(workspace)?)),
        TestJob::Publishing => Ok(report_faults(&publishing::faults(&workspace.metadata))),
        TestJob::Generated => Ok(report_faults(&generated::faults(workspace)?)),
        TestJob::Compatibility => Ok(report_faults(&compatibility::faults(workspace)?)),
        TestJob::Workspace => {
            workspace_tests::compile(workspace)?;
            shared.builds_ahead = Some(BuildsAhead::start(workspace, jobs)?);
            workspace_tests::all(workspace)
        }
        TestJob::QuickTests => workspace_tests::quick(workspace),
        TestJob::Documents => documents::run(workspace, &shared.server(workspace)?),
        TestJob::Console => console::run(workspace, &shared.server(workspace)?),
        TestJob::Observability => observability::run(workspace, &shared.server(workspace)?),
        TestJob::Mcp(kit) => mcp::run(workspace, *kit, &shared.server(workspace)?),
        TestJob::OpenAi => openai::run(workspace, &shared.server(workspace)?),
        TestJob::Acp => acp::run(workspace, &shared.server(workspace)?),
        TestJob::Client(client, binding) => {
            let server = Launcher::Alone(shared.server(workspace)?);
            shared.run_client(workspace, client, binding, server, &job.name())
        }
        TestJob::NodesTests => shared.nodes(workspace)?.run_tests(workspace),
        TestJob::NodesClient(client, binding) => {
            let sabir = shared.server(workspace)?;
            let NodesSetup { cluster, postgres, .. } = shared.nodes(workspace)?;
            let server = Launcher::Nodes { sabir, cluster: cluster.clone(), postgres: postgres.clone() };
            shared.run_client(workspace, client, binding, server, &job.name())
        }
        TestJob::SdkServer(server, binding) => {
            let binary = shared.server(workspace)?;
            shared.set_up(workspace, server.client())?;
            let log = workspace.clients().join(format!("{}.log", job.name()));
            sdk_server_suite::run(workspace, server, binding, &binary, &log)
        }
        TestJob::Agent(program) => {
            let binary = shared.server(workspace)?;
            setup_program::ready(workspace, program)?;
            for asked in PROGRAMS.iter().filter(|known| program.asks == Some(known.name)) {
                setup_program::ready(workspace, asked)?;
            }
            agents::run(workspace, program, &binary)
        }
        TestJob::Packages => packages::run(workspace),
        TestJob::Leftovers => {
            if let Some(Ok(nodes)) = shared.nodes.take() {
                nodes.stop()?;
            }
            match shared.before.take() {
                Some(before) => Ok(report_faults(&before?.left())),
                None => Err(anyhow!("nobody has looked before the suites ran")),
            }
        }
    }
}

/// A check that gives a sentence for each thing that is wrong.
fn report_faults(faults: &[String]) -> Tally {
    for sentence in faults {
        println!("    FAILED: {sentence}");
    }
    if faults.is_empty() { Tally::PASSED } else { Tally::FAILED }
}

/// What is made once and used by several jobs; a failure is made once too.
#[derive(Default)]
struct SharedSetup {
    before: Option<Result<StateBefore>>,
    server: Option<Result<PathBuf, String>>,
    provider: Option<Result<PathBuf, String>>,
    clients: HashMap<&'static str, Result<(), String>>,
    nodes: Option<Result<NodesSetup, String>>,
    builds_ahead: Option<BuildsAhead>,
}

impl SharedSetup {
    fn server(&mut self, workspace: &Workspace) -> Result<PathBuf> {
        let build = || server::build(workspace).map_err(|error| format!("{error:#}"));
        self.server.get_or_insert_with(build).clone().map_err(|error| anyhow!(error))
    }

    fn provider(&mut self, workspace: &Workspace) -> Result<PathBuf> {
        let build = || identity_provider::build(workspace).map_err(|error| format!("{error:#}"));
        self.provider.get_or_insert_with(build).clone().map_err(|error| anyhow!(error))
    }

    fn nodes(&mut self, workspace: &Workspace) -> Result<&NodesSetup> {
        let start = || NodesSetup::start(workspace).map_err(|error| format!("{error:#}"));
        self.nodes.get_or_insert_with(start).as_ref().map_err(|error| anyhow!(error.clone()))
    }

    fn run_client(
        &mut self,
        workspace: &Workspace,
        client: &Client,
        binding: &str,
        server: Launcher,
        name: &str,
    ) -> Result<Tally> {
        let programs = Programs { server, provider: self.provider(workspace)? };
        self.set_up(workspace, client)?;
        let log = workspace.clients().join(format!("{name}.log"));
        client::run(setup::command(workspace, client), binding, &programs, &log, &workspace.temp)
    }

    fn set_up(&mut self, workspace: &Workspace, client: &Client) -> Result<()> {
        let set_up = || setup::ready(workspace, client).map_err(|error| format!("{error:#}"));
        self.clients.entry(client.name).or_insert_with(set_up).clone().map_err(|error| anyhow!(error))
    }
}
