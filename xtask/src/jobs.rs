//! What can be run, by name, and which command runs what.

use crate::clients::{CLIENTS, Client};
use crate::programs::{PROGRAMS, Program};

#[derive(Clone, Copy)]
pub enum Job {
    Format,
    Lints,
    Arrows,
    Dependencies,
    Compatibility,
    Workspace,
    /// The tests of the crates that start no process.
    QuickTests,
    /// The commands of README and docs.
    Documents,
    /// A client suite, through one binding.
    Client(&'static Client, &'static str),
    /// A coding program behind a real server.
    Agent(&'static Program),
    /// What the suites before have left behind.
    Leftovers,
}

impl Job {
    pub fn name(&self) -> String {
        match self {
            Job::Format => "format".to_owned(),
            Job::Lints => "lints".to_owned(),
            Job::Arrows => "arrows".to_owned(),
            Job::Dependencies => "dependencies".to_owned(),
            Job::Compatibility => "compatibility".to_owned(),
            Job::Workspace => "workspace".to_owned(),
            Job::QuickTests => "quick-tests".to_owned(),
            Job::Documents => "documents".to_owned(),
            Job::Client(client, binding) => format!("{}-{binding}", client.name),
            Job::Agent(program) => format!("agents-{}", program.name),
            Job::Leftovers => "leftovers".to_owned(),
        }
    }
}

pub fn check() -> Vec<Job> {
    vec![Job::Format, Job::Lints, Job::Arrows, Job::Dependencies, Job::Compatibility]
}

pub fn test() -> Vec<Job> {
    let clients =
        CLIENTS.iter().flat_map(|client| client.bindings.iter().map(move |binding| Job::Client(client, binding)));
    let agents = PROGRAMS.iter().map(Job::Agent);
    let first = [Job::Arrows, Job::Compatibility, Job::Workspace];
    first.into_iter().chain(clients).chain(agents).chain([Job::Documents, Job::Leftovers]).collect()
}

/// What every push can run: under two minutes once it is compiled, and nothing is downloaded.
pub fn quick() -> Vec<Job> {
    vec![Job::Format, Job::Arrows, Job::Dependencies, Job::Compatibility, Job::QuickTests, Job::Leftovers]
}

/// The jobs whose name contains one of the words, and for the word `clients` all of theirs; without words, all of them.
/// Whatever runs, it is looked for leftovers.
pub fn named(jobs: Vec<Job>, words: &[&str]) -> Vec<Job> {
    let names = |job: &Job, word: &str| match job {
        Job::Client(..) if word == "clients" => true,
        _ => job.name().contains(word),
    };
    let is_meant = |job: &Job| words.is_empty() || words.iter().any(|word| names(job, word));
    let mut named: Vec<Job> = jobs.into_iter().filter(is_meant).collect();
    if !named.is_empty() && !named.iter().any(|job| matches!(job, Job::Leftovers)) {
        named.push(Job::Leftovers);
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
            (&["python-1.3.0"], "python-1.3.0-jsonrpc python-1.3.0-http_json leftovers"),
            (&["js-0.3.13-json", "workspace"], "workspace js-0.3.13-jsonrpc leftovers"),
            (&["clients"], ALL_CLIENTS),
            (&["agents"], "agents-claude-code agents-codex agents-gemini agents-goose leftovers"),
            (&["no such"], ""),
        ] {
            assert_eq!(names(named(test(), words)), expected, "{words:?}");
        }
        assert_eq!(names(named(test(), &[])), names(test()));
    }

    const ALL_CLIENTS: &str = "python-1.3.0-jsonrpc python-1.3.0-http_json python-0.3.26-jsonrpc python-0.3.26-http_json \
        python-0.2.16-jsonrpc js-1.3.0-jsonrpc js-1.3.0-http_json js-0.3.14-jsonrpc js-0.3.14-http_json \
        js-0.3.13-jsonrpc js-0.3.13-http_json js-0.2.5-jsonrpc leftovers";

    fn names(jobs: Vec<Job>) -> String {
        jobs.iter().map(Job::name).collect::<Vec<_>>().join(" ")
    }
}
