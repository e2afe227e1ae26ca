//! What can be run, by name, and which command runs what.

use crate::clients::{CLIENTS, Client, Kit};
use crate::programs::{PROGRAMS, Program};
use crate::sdk_servers::{SDK_SERVERS, SdkServer};
use crate::{acp, mcp, openai};

#[derive(Clone, Copy)]
pub enum TestJob {
    Format,
    Lints,
    Arrows,
    Dependencies,
    Publishing,
    /// Committed code that was generated.
    Generated,
    Compatibility,
    Workspace,
    /// The tests of the crates that start no process.
    QuickTests,
    /// The commands of README and docs.
    Documents,
    /// The console in a real browser.
    Console,
    /// `/metrics`, read by Prometheus.
    Observability,
    /// The official SDKs of MCP in one language.
    Mcp(Kit),
    /// The official client library of OpenAI.
    OpenAi,
    /// The official SDK of the Agent Client Protocol.
    Acp,
    /// A client suite, through one binding.
    Client(&'static Client, &'static str),
    /// The promises and the dialects, against several nodes on one Postgres.
    NodesTests,
    /// A client suite, against several nodes.
    NodesClient(&'static Client, &'static str),
    /// Sabir's client commands against a server of an SDK, through one binding.
    SdkServer(&'static SdkServer, &'static str),
    /// A coding program behind a real server.
    Agent(&'static Program),
    /// The archive, the Debian package and the images of a release.
    Packages,
    /// What the suites before have left behind.
    Leftovers,
}

impl TestJob {
    pub fn name(&self) -> String {
        match self {
            TestJob::Format => "format".to_owned(),
            TestJob::Lints => "lints".to_owned(),
            TestJob::Arrows => "arrows".to_owned(),
            TestJob::Dependencies => "dependencies".to_owned(),
            TestJob::Publishing => "publishing".to_owned(),
            TestJob::Generated => "generated".to_owned(),
            TestJob::Compatibility => "compatibility".to_owned(),
            TestJob::Workspace => "workspace".to_owned(),
            TestJob::QuickTests => "quick-tests".to_owned(),
            TestJob::Documents => "documents".to_owned(),
            TestJob::Console => "console".to_owned(),
            TestJob::Observability => "observability".to_owned(),
            TestJob::Mcp(kit) => mcp::name(*kit),
            TestJob::OpenAi => openai::NAME.to_owned(),
            TestJob::Acp => acp::NAME.to_owned(),
            TestJob::Client(client, binding) => format!("{}-{binding}", client.name),
            TestJob::NodesTests => "nodes-promises".to_owned(),
            TestJob::NodesClient(client, binding) => format!("nodes-{}-{binding}", client.name),
            TestJob::SdkServer(server, binding) => format!("servers-{}-{binding}", server.sdk),
            TestJob::Agent(program) => format!("agents-{}", program.name),
            TestJob::Packages => "packages".to_owned(),
            TestJob::Leftovers => "leftovers".to_owned(),
        }
    }

    /// Whether it runs against the release binary.
    pub fn needs_server(&self) -> bool {
        match self {
            TestJob::Documents
            | TestJob::Console
            | TestJob::Observability
            | TestJob::Mcp(_)
            | TestJob::OpenAi
            | TestJob::Acp
            | TestJob::Client(..)
            | TestJob::NodesClient(..)
            | TestJob::SdkServer(..)
            | TestJob::Agent(_) => true,
            TestJob::Format
            | TestJob::Lints
            | TestJob::Arrows
            | TestJob::Dependencies
            | TestJob::Publishing
            | TestJob::Generated
            | TestJob::Compatibility
            | TestJob::Workspace
            | TestJob::QuickTests
            | TestJob::NodesTests
            | TestJob::Packages
            | TestJob::Leftovers => false,
        }
    }
}

pub fn check() -> Vec<TestJob> {
    vec![
        TestJob::Format,
        TestJob::Lints,
        TestJob::Arrows,
        TestJob::Dependencies,
        TestJob::Publishing,
        TestJob::Generated,
        TestJob::Compatibility,
    ]
}

pub fn test() -> Vec<TestJob> {
    let clients = || CLIENTS.iter().flat_map(|client| client.bindings.iter().map(move |binding| (client, *binding)));
    let alone = clients().map(|(client, binding)| TestJob::Client(client, binding));
    let nodes = clients().map(|(client, binding)| TestJob::NodesClient(client, binding));
    let servers = SDK_SERVERS
        .iter()
        .flat_map(|server| server.bindings.iter().map(move |binding| TestJob::SdkServer(server, binding)));
    let agents = PROGRAMS.iter().map(TestJob::Agent);
    let first = [TestJob::Arrows, TestJob::Compatibility, TestJob::Workspace];
    first
        .into_iter()
        .chain(alone)
        .chain([TestJob::NodesTests])
        .chain(nodes)
        .chain(servers)
        .chain(agents)
        .chain([TestJob::Mcp(Kit::Python), TestJob::Mcp(Kit::Node), TestJob::OpenAi, TestJob::Acp])
        .chain([TestJob::Documents, TestJob::Console, TestJob::Observability, TestJob::Packages, TestJob::Leftovers])
        .collect()
}

/// What every push can run: under two minutes once it is compiled, and nothing is downloaded.
pub fn quick() -> Vec<TestJob> {
    vec![
        TestJob::Format,
        TestJob::Arrows,
        TestJob::Dependencies,
        TestJob::Publishing,
        TestJob::Compatibility,
        TestJob::QuickTests,
        TestJob::Leftovers,
    ]
}

/// The jobs whose name contains one of the words, and for the word `clients` all of theirs; without words, all of them.
/// Whatever runs, it is looked for leftovers.
pub fn named(jobs: Vec<TestJob>, words: &[&str]) -> Vec<TestJob> {
    let names = |job: &TestJob, word: &str| match job {
        TestJob::Client(..) if word == "clients" => true,
        _ => job.name().contains(word),
    };
    let is_meant = |job: &TestJob| words.is_empty() || words.iter().any(|word| names(job, word));
    let mut named: Vec<TestJob> = jobs.into_iter().filter(is_meant).collect();
    if !named.is_empty() && !named.iter().any(|job| matches!(job, TestJob::Leftovers)) {
        named.push(TestJob::Leftovers);
    }
    named
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_choose_jobs() {
        for (words, expected) in [
            (&["arrows"][..], "arrows leftovers"),
            (
                &["python-1.3.0"],
                "python-1.3.0-jsonrpc python-1.3.0-http_json python-1.3.0-grpc nodes-python-1.3.0-jsonrpc \
                 nodes-python-1.3.0-http_json nodes-python-1.3.0-grpc \
                 servers-python-1.3.0-jsonrpc servers-python-1.3.0-http_json leftovers",
            ),
            (&["js-0.3.13-json", "workspace"], "workspace js-0.3.13-jsonrpc nodes-js-0.3.13-jsonrpc leftovers"),
            (&["clients"], ALL_CLIENTS),
            (&["n-grpc"], "reflection-grpc nodes-reflection-grpc leftovers"),
            (
                &["nodes-p"],
                "nodes-promises nodes-python-1.3.0-jsonrpc nodes-python-1.3.0-http_json nodes-python-1.3.0-grpc nodes-python-0.3.26-jsonrpc nodes-python-0.3.26-http_json nodes-python-0.3.26-grpc nodes-python-0.2.16-jsonrpc leftovers",
            ),
            (&["servers"], ALL_SERVERS),
            (&["agents"], "agents-claude-code agents-codex agents-gemini agents-goose leftovers"),
            (&["mcp"], "mcp-python mcp-js leftovers"),
            (&["openai"], "openai-python leftovers"),
            (&["acp"], "acp-python leftovers"),
            (&["packages"], "packages leftovers"),
            (&["no such"], ""),
        ] {
            assert_eq!(names(named(test(), words)), expected, "{words:?}");
        }
        assert_eq!(names(named(test(), &[])), names(test()));
    }

    const ALL_CLIENTS: &str = "python-1.3.0-jsonrpc python-1.3.0-http_json python-1.3.0-grpc python-0.3.26-jsonrpc \
        python-0.3.26-http_json python-0.3.26-grpc python-0.2.16-jsonrpc js-1.3.0-jsonrpc js-1.3.0-http_json \
        js-1.3.0-grpc js-0.3.14-jsonrpc js-0.3.14-http_json js-0.3.13-jsonrpc js-0.3.13-http_json js-0.2.5-jsonrpc \
        reflection-grpc leftovers";

    const ALL_SERVERS: &str = "servers-python-1.3.0-jsonrpc servers-python-1.3.0-http_json \
        servers-python-0.3.26-jsonrpc servers-python-0.3.26-http_json servers-python-0.2.16-jsonrpc \
        servers-js-1.3.0-jsonrpc servers-js-1.3.0-http_json servers-js-0.3.14-jsonrpc servers-js-0.3.14-http_json leftovers";

    fn names(jobs: Vec<TestJob>) -> String {
        jobs.iter().map(TestJob::name).collect::<Vec<_>>().join(" ")
    }
}
