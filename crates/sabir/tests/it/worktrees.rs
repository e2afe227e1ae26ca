//! Worktrees of tasks: what is kept of them, by whom, and that no repository gets a command run by it.

mod git_failures;
mod hostile_repositories;
mod patches;
mod turns;

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use sabir_agents::program::worktree::{TaskName, Worktree};
use sabir_agents::program::worktrees::sweep;
use sabir_agents::program::{GitLimits, Host};
use sabir_model::Owner;

use crate::in_process;
use crate::program_fixture::{ProgramFixture, message, send, state, wait_for};

/// A repository with one commit, a home with settings of the operator, and a data directory.
struct RepositoryFixture {
    folder: tempfile::TempDir,
}

impl RepositoryFixture {
    fn empty() -> Self {
        let fixture = Self { folder: tempfile::tempdir().unwrap() };
        for name in ["repository", "home", "data"] {
            fs::create_dir(fixture.path(name)).unwrap();
        }
        fixture
    }

    fn new() -> Self {
        let fixture = Self::empty();
        fixture.git(&["init", "--quiet"]);
        fixture.write("sub/file", "one\n");
        fixture.commit();
        fixture
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn repository(&self) -> PathBuf {
        self.path("repository")
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.repository().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn commit(&self) {
        self.git(&["add", "."]);
        self.git(&["commit", "--quiet", "-m", "first"]);
    }

    fn git(&self, arguments: &[&str]) -> String {
        self.git_in(&self.repository(), arguments)
    }

    /// Git as people use it.
    fn git_in(&self, folder: &Path, arguments: &[&str]) -> String {
        let mut command = Command::new("git");
        command.arg("-C").arg(folder).args(["-c", "user.name=t", "-c", "user.email=t@example.com"]);
        command.env("HOME", self.path("home")).args(arguments);
        let output = command.output().unwrap();
        assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
    }

    /// A server on the data directory. A second one knows nothing of the first.
    fn server(&self) -> Host {
        let home = [("HOME", self.path("home").into_os_string()), ("ANTHROPIC_API_KEY", "secret".into())];
        let home = home.map(|(name, value)| (OsString::from(name), value));
        let others = std::env::vars_os().filter(|(name, _)| name != "HOME" && name != "XDG_CONFIG_HOME");
        Host {
            variables: others.chain(home).collect(),
            database: Some(self.path("data").join("sabir.db")),
            ..in_process::host(self.trees())
        }
    }

    /// The folder of worktrees.
    fn trees(&self) -> PathBuf {
        self.path("data").join("sabir.db-worktrees")
    }

    /// A pipe that nobody writes to, in the place of a file that the repository's settings include.
    fn include_a_pipe(&self) {
        make_pipe(&self.path("pipe"));
        self.git(&["config", "include.path", self.path("pipe").to_str().unwrap()]);
    }

    /// The settings of the repository, without git.
    fn exclude_the_pipe(&self) {
        let config = self.repository().join(".git/config");
        let text = fs::read_to_string(&config).unwrap();
        fs::write(config, text.split("[include]").next().unwrap()).unwrap();
    }

    /// Git commands of this fixture that run.
    fn running(&self) -> usize {
        let place = self.folder.path().to_str().unwrap();
        let processes = fs::read_dir("/proc").unwrap().flatten();
        let lines = processes.filter_map(|process| fs::read(process.path().join("cmdline")).ok());
        let is_ours = |line: &Vec<u8>| {
            let words: Vec<&[u8]> = line.split(|byte| *byte == 0).collect();
            words.iter().take(2).any(|word| word.ends_with(b"git"))
                && words.iter().any(|word| String::from_utf8_lossy(word).contains(place))
        };
        lines.filter(is_ours).count()
    }

    async fn open(&self, host: &Host, task: &str) -> Worktree {
        Worktree::open(host, &self.repository(), task_of(&Owner::anonymous(), "a", task)).await.unwrap()
    }

    fn refs(&self) -> Vec<String> {
        let list = self.git(&["for-each-ref", "--format=%(refname)", "refs/sabir"]);
        list.lines().map(str::to_owned).collect()
    }

    /// The one ref under which work is kept.
    fn work(&self) -> String {
        let refs = self.refs();
        let work: Vec<&String> = refs.iter().filter(|name| name.ends_with("/work")).collect();
        assert_eq!(work.len(), 1, "{refs:?}");
        work[0].clone()
    }

    /// Nothing is left but refs: no tree, no file beside the database, nothing that git knows of.
    fn assert_tidy(&self) {
        assert_eq!(fs::read_dir(self.path("data")).unwrap().count(), 0, "files are left");
        assert_eq!(self.git(&["worktree", "list"]).lines().count(), 1, "git knows of a tree");
        assert!(!self.repository().join(".git/sabir-worktrees").exists());
        assert!(self.repository().join(".git/worktrees").read_dir().map_or(0, Iterator::count) == 0);
    }
}

fn task_of<'a>(owner: &'a Owner, agent: &'a str, task: &'a str) -> TaskName<'a> {
    TaskName { owner, agent, task, number: None }
}

async fn kept(tree: Worktree) -> String {
    String::from_utf8(tree.keep().await.unwrap().unwrap()).unwrap()
}

fn make_pipe(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

fn make_executable(path: &Path) {
    fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
}
