//! Runs git for Sabir itself: under a guard like any program, and without obeying the repository's settings.
//!
//! Settings of a repository can name commands: filters, hooks, a file system monitor, diff drivers, helpers. A program that
//! can write there, for example in an earlier task, could run them without permission. So git runs in one of two ways. The
//! few commands that need the repository's own settings never touch a file of the tree, and all settings that run something
//! are switched off. All other commands use a git directory that Sabir makes (`OwnGitDir`): it shares only the repository's
//! objects. Settings of the operator (`~/.gitconfig`, `/etc/gitconfig`) always apply, so filters such as LFS work if they
//! are installed for the user.
//!
//! Every command has a time limit. A repository may be on a mount that does not respond, and its settings may include a pipe
//! that nobody writes to: git would wait for ever, and so would every task that needs its worktree.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use super::Host;
use super::blocking::{self, NoAnswer, blocking};
use super::remove_folder::remove_folder;
use crate::adapter::Exit;
use crate::process::{Child, Launch, environment, lease_is_over};

/// How long git commands may take. A run that is stopped ends its commands sooner.
#[derive(Debug, Clone, Copy)]
pub struct GitLimits {
    /// Commands that look something up or set a ref: milliseconds, or seconds on a busy machine.
    pub short: Duration,
    /// Commands that read or write every file of a tree: minutes for the largest repositories on slow disks.
    pub long: Duration,
}

impl Default for GitLimits {
    fn default() -> Self {
        Self { short: Duration::from_secs(60), long: Duration::from_secs(600) }
    }
}

/// How long git may take to end after SIGTERM.
const STOP_GRACE: Duration = Duration::from_secs(2);
/// When Sabir stops waiting for git to end: it hangs in the kernel, where no signal reaches it.
const STOP_LIMIT: Duration = Duration::from_secs(15);

/// How many bytes most commands may print.
const SHORT: usize = 1 << 20;

/// How many bytes a list of refs may have: some ten thousand refs.
const LONGEST_LIST: usize = 16 << 20;

/// Variables that say where the operator's settings are.
const PASSED: [&str; 3] = ["GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM"];

/// Environment of every command, and of the commands that git starts.
const ALWAYS: [&str; 6] = [
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    // Keep the file even if its line breaks cannot be restored.
    "core.safecrlf=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "submodule.recurse=false",
];

/// Settings of a repository about the encoding of its files and where they come from. None of them names a command.
const COPIED: &str = "^(core\\.(autocrlf|eol|filemode|symlinks|ignorecase|precomposeunicode|bigfilethreshold|\
    sparsecheckout|sparsecheckoutcone)|remote\\..*\\.(url|lfsurl)|lfs\\.url)$";

/// Why a git command has failed.
#[derive(Debug)]
pub enum GitError {
    /// The command exceeded its time limit and was ended.
    TimedOut { command: String, limit: Duration },
    /// The result is not needed any more, so the command was ended, or not started.
    Stopped,
    /// The command failed.
    Failed { command: String, exit: Exit, stderr: String },
    /// Anything else, in words for the log.
    Other(String),
}

impl GitError {
    /// The text for the caller of a task. Everything else is for the log: callers must not learn paths of the server.
    pub(super) fn for_caller(&self) -> Option<String> {
        match self {
            GitError::TimedOut { .. } => Some(self.to_string()),
            GitError::Stopped | GitError::Failed { .. } | GitError::Other(_) => None,
        }
    }
}

impl fmt::Display for GitError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GitError::TimedOut { command, limit } => {
                write!(out, "git {command} did not end within {} s and was ended", limit.as_secs_f64())
            }
            GitError::Stopped => out.write_str("git was ended, since its result is not wanted any more"),
            GitError::Failed { command, stderr, .. } => write!(out, "git {command}: {stderr}"),
            GitError::Other(reason) => out.write_str(reason),
        }
    }
}

impl std::error::Error for GitError {}

impl From<String> for GitError {
    fn from(reason: String) -> Self {
        GitError::Other(reason)
    }
}

impl From<NoAnswer> for GitError {
    fn from(error: NoAnswer) -> Self {
        GitError::Other(error.to_string())
    }
}

/// An error of the file system with its path.
pub(super) fn at_path(path: &Path, error: io::Error) -> GitError {
    GitError::Other(format!("{}: {error}", path.display()))
}

/// Runs git.
#[derive(Clone)]
pub(super) struct Git {
    host: Host,
    /// When its sender is dropped, commands are ended and no more are started.
    wanted: Option<watch::Receiver<()>>,
}

/// The output of a command, up to its limit.
pub(super) struct Printed {
    pub bytes: Vec<u8>,
    pub is_cut: bool,
}

/// How a command ended.
enum Ran {
    Ended(Printed, Exit),
    TimedOut,
    Stopped,
}

impl Git {
    pub fn new(host: &Host) -> Self {
        Self { host: host.clone(), wanted: None }
    }

    /// Like `new`, but commands run only as long as somebody holds the sender.
    pub fn while_wanted(host: &Host, wanted: watch::Receiver<()>) -> Self {
        Self { host: host.clone(), wanted: Some(wanted) }
    }

    /// Resolves when the sender is dropped.
    pub async fn until_unwanted(&self) {
        match self.wanted.clone() {
            Some(mut wanted) => while wanted.changed().await.is_ok() {},
            None => std::future::pending().await,
        }
    }

    /// Runs a command that needs the repository of a folder, but no file of its tree.
    pub async fn in_repository(&self, folder: &Path, arguments: &[&OsStr]) -> Result<String, GitError> {
        let off = ["credential.helper=", "core.sshCommand=false", "core.gitProxy=", "core.askPass=", "core.pager=cat"];
        let settings = off.iter().flat_map(|setting| [OsStr::new("-c"), OsStr::new(setting)]);
        let arguments: Vec<&OsStr> = settings.chain(arguments.iter().copied()).collect();
        let printed = self.run(folder, &[], &arguments, "", SHORT, self.host.git_limits.short).await?;
        Ok(String::from_utf8_lossy(&printed.bytes).trim_end_matches('\n').to_owned())
    }

    /// Like `in_repository`, for output that may be long.
    pub async fn list_in_repository(&self, git_dir: &Path, arguments: &[&str]) -> Result<Vec<u8>, GitError> {
        let place = OsString::from_iter([OsStr::new("--git-dir="), git_dir.as_os_str()]);
        let arguments: Vec<&OsStr> = std::iter::once(&*place).chain(arguments.iter().map(OsStr::new)).collect();
        Ok(self.run(git_dir, &[], &arguments, "", LONGEST_LIST, self.host.git_limits.short).await?.bytes)
    }

    /// The hash of a text as git computes it, which has no collisions in practice.
    pub async fn hash(&self, text: &str) -> Result<String, GitError> {
        let arguments = ["hash-object", "--stdin"].map(OsStr::new);
        let printed = self.run(Path::new("/"), &[], &arguments, text, SHORT, self.host.git_limits.short).await?;
        Ok(String::from_utf8_lossy(&printed.bytes).trim_end().to_owned())
    }

    async fn run(
        &self,
        folder: &Path,
        variables: &[(OsString, OsString)],
        arguments: &[&OsStr],
        input: &str,
        longest: usize,
        limit: Duration,
    ) -> Result<Printed, GitError> {
        let is_command =
            |argument: &&&OsStr| argument.to_str().is_some_and(|text| !text.starts_with('-') && !text.contains('='));
        let command = arguments.iter().find(is_command).unwrap_or(&OsStr::new("")).display().to_string();
        if self.wanted.as_ref().is_some_and(|wanted| wanted.has_changed().is_err()) {
            return Err(GitError::Stopped);
        }
        let launch = self.launch(folder, variables, arguments);
        // A start takes long only while the lease is over, and nothing runs then that could leave a lock.
        let started = tokio::select! {
            started = launch.start() => started,
            () = sleep(limit) => return Err(GitError::TimedOut { command, limit }),
            () = self.until_unwanted(), if lease_is_over() => return Err(GitError::Stopped),
        };
        let mut child = started.map_err(|error| format!("git cannot be run: {error}"))?;
        let ran = tokio::select! {
            ran = run_to_end(&mut child, input, longest) => ran?,
            () = sleep(limit) => Ran::TimedOut,
            () = self.until_unwanted() => Ran::Stopped,
        };
        match ran {
            Ran::Ended(printed, exit) if exit == Exit::Code(0) || printed.is_cut => Ok(printed),
            Ran::Ended(_, exit) => Err(GitError::Failed { command, exit, stderr: child.stderr_tail() }),
            ran => {
                // Git releases its locks when it exits.
                let _ = timeout(STOP_LIMIT, child.stop()).await;
                Err(match ran {
                    Ran::TimedOut => GitError::TimedOut { command, limit },
                    _ => GitError::Stopped,
                })
            }
        }
    }

    fn launch(&self, folder: &Path, variables: &[(OsString, OsString)], arguments: &[&OsStr]) -> Launch {
        let fixed =
            [("LC_ALL", "C"), ("GIT_TERMINAL_PROMPT", "0"), ("GIT_NO_LAZY_FETCH", "1"), ("GIT_ASKPASS", "true")];
        let fixed = fixed.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let mut environment = environment(self.host.variables.iter().cloned(), &PASSED.map(str::to_owned), &fixed);
        environment.extend(variables.iter().cloned());
        let always = ALWAYS.iter().flat_map(|setting| ["-c", setting]);
        let before =
            ["--no-pager", "-c", "user.name=Sabir", "-c", "user.email=sabir@localhost"].into_iter().chain(always);
        // Git itself changes to the folder: if that hangs, git can be ended, and this process is not stuck.
        let place = [OsStr::new("-C"), folder.as_os_str()];
        let arguments = before.map(OsStr::new).chain(place).chain(arguments.iter().copied());
        Launch {
            guard: self.host.guard.clone(),
            program: "git".into(),
            arguments: arguments.map(OsStr::to_owned).collect(),
            folder: "/".into(),
            environment,
            max_line: SHORT,
            max_output: u64::MAX,
            stop_grace: STOP_GRACE,
            open_files: self.host.open_files,
        }
    }
}

async fn run_to_end(child: &mut Child, input: &str, longest: usize) -> Result<Ran, GitError> {
    if !input.is_empty() {
        child.write_line(input).await.map_err(|error| format!("git does not read: {error}"))?;
    }
    child.close_input();
    let (bytes, is_cut) = child.read_up_to(longest).await;
    let exit = if is_cut { child.stop().await } else { child.exit().await };
    Ok(Ran::Ended(Printed { bytes, is_cut }, exit))
}

/// A git directory that Sabir makes for a tree of a repository. It has the repository's objects, and none of its settings
/// that name a command.
pub(super) struct OwnGitDir<'g> {
    git: &'g Git,
    folder: PathBuf,
    tree: PathBuf,
    variables: Vec<(OsString, OsString)>,
}

impl<'g> OwnGitDir<'g> {
    /// Makes one at `folder`, for the tree whose data the repository keeps in `tree_data`.
    pub async fn make(
        git: &'g Git,
        folder: PathBuf,
        tree: &Path,
        tree_data: &Path,
        common: &Path,
    ) -> Result<Self, GitError> {
        let of_repository = |arguments: &[&str]| {
            let place = OsString::from_iter([OsStr::new("--git-dir="), common.as_os_str()]);
            let arguments: Vec<OsString> = arguments.iter().map(OsString::from).collect();
            async move {
                let all: Vec<&OsStr> = std::iter::once(&*place).chain(arguments.iter().map(|word| &**word)).collect();
                git.in_repository(common, &all).await
            }
        };
        let format = of_repository(&["rev-parse", "--show-object-format"]).await?;
        let copied = match of_repository(&["config", "--includes", "--null", "--get-regexp", COPIED]).await {
            // There is no such setting.
            Err(GitError::Failed { .. }) => String::new(),
            copied => copied?,
        };
        let mut settings: Vec<(String, OsString)> = Vec::new();
        for entry in copied.split('\0').filter(|entry| !entry.is_empty()) {
            let (name, value) = entry.split_once('\n').unwrap_or((entry, "true"));
            settings.push((name.to_owned(), value.into()));
        }
        // Files that LFS stores belong to the repository.
        settings.push(("lfs.storage".into(), common.join("lfs").into()));
        let mut variables = vec![
            ("GIT_OBJECT_DIRECTORY".into(), common.join("objects").into()),
            ("GIT_CONFIG_COUNT".into(), settings.len().to_string().into()),
        ];
        for (number, (name, value)) in settings.into_iter().enumerate() {
            variables.push((format!("GIT_CONFIG_KEY_{number}").into(), name.into()));
            variables.push((format!("GIT_CONFIG_VALUE_{number}").into(), value));
        }
        let files = OwnFiles { folder: folder.clone(), tree_data: tree_data.to_owned(), common: common.to_owned() };
        let written = blocking(blocking::SHORT, move || files.write(&format)).await?;
        written.map_err(|error| at_path(&folder, error))?;
        Ok(Self { git, folder, tree: tree.to_owned(), variables })
    }

    /// Copies the index that a program has worked with. `false`: there is none.
    pub async fn take_index(&self, tree_data: &Path) -> Result<bool, GitError> {
        let (from, to) = (tree_data.to_owned(), self.folder.clone());
        let taken = blocking(blocking::LONG, move || {
            // An index may be split, with most of it in a second file.
            for entry in fs::read_dir(&from)?.flatten() {
                if entry.file_name().as_encoded_bytes().starts_with(b"sharedindex.") {
                    copy_file(&entry.path(), &to.join(entry.file_name()))?;
                }
            }
            copy_file(&from.join("index"), &to.join("index"))
        });
        // An index that cannot be read is ignored.
        Ok(taken.await?.unwrap_or(false))
    }

    /// Copies the index back to the tree.
    pub async fn give_index(&self, tree_data: &Path) -> Result<(), GitError> {
        let (from, to) = (self.folder.join("index"), tree_data.join("index"));
        let given = blocking(blocking::LONG, move || copy_file(&from, &to));
        given.await?.map(drop).map_err(|error| at_path(tree_data, error))
    }

    /// Writes a file for a command to read.
    pub async fn put(&self, name: &str, content: Vec<u8>) -> Result<PathBuf, GitError> {
        let file = self.folder.join(name);
        let path = file.clone();
        let written = blocking(blocking::SHORT, move || fs::write(path, content)).await?;
        written.map(|()| file).map_err(|error| at_path(&self.folder, error))
    }

    /// Removes it. If this fails, making the next one, or removing the tree, tries again.
    pub async fn remove(self) {
        let _ = blocking(blocking::SHORT, move || remove_folder(&self.folder)).await;
    }

    pub async fn git(&self, arguments: &[&str]) -> Result<String, GitError> {
        let printed = self.output(arguments, SHORT).await?;
        Ok(String::from_utf8_lossy(&printed.bytes).trim_end_matches('\n').to_owned())
    }

    pub async fn output(&self, arguments: &[&str], longest: usize) -> Result<Printed, GitError> {
        let place = [("--git-dir=", &self.folder), ("--work-tree=", &self.tree)]
            .map(|(option, path)| OsString::from_iter([OsStr::new(option), path.as_os_str()]));
        let arguments: Vec<&OsStr> =
            place.iter().map(|word| &**word).chain(arguments.iter().map(|word| OsStr::new(*word))).collect();
        self.git.run(&self.tree, &self.variables, &arguments, "", longest, self.git.host.git_limits.long).await
    }
}

/// The files of an `OwnGitDir`.
struct OwnFiles {
    folder: PathBuf,
    tree_data: PathBuf,
    common: PathBuf,
}

impl OwnFiles {
    fn write(&self, format: &str) -> io::Result<()> {
        remove_folder(&self.folder)?;
        fs::create_dir_all(self.folder.join("refs"))?;
        fs::create_dir_all(self.folder.join("info"))?;
        fs::write(self.folder.join("HEAD"), "ref: refs/heads/none\n")?;
        let version = if format == "sha1" { 0 } else { 1 };
        let mut config = format!("[core]\n\trepositoryformatversion = {version}\n\tbare = false\n");
        if version == 1 {
            config += &format!("[extensions]\n\tobjectFormat = {format}\n");
        }
        fs::write(self.folder.join("config"), config)?;
        let (common, tree_data) = (&self.common, &self.tree_data);
        for (from, name) in [(common, "exclude"), (common, "attributes"), (tree_data, "sparse-checkout")] {
            copy_file(&from.join("info").join(name), &self.folder.join("info").join(name))?;
        }
        Ok(())
    }
}

/// Copies a regular file, if there is one. Opening a pipe in its place would block.
fn copy_file(from: &Path, to: &Path) -> io::Result<bool> {
    let Some(about) = from.metadata().ok().filter(fs::Metadata::is_file) else { return Ok(false) };
    fs::copy(from, to)?;
    // Keep the modification time: git reads again all files that are not older than the index.
    fs::File::options().write(true).open(to)?.set_modified(about.modified()?)?;
    Ok(true)
}
