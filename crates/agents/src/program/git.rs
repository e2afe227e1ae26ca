//! Git, run for Sabir itself: under a guard like any program, and without obeying the repository.
//!
//! Settings of a repository can name commands: filters, hooks, a file system monitor, diff drivers, helpers. Whoever can
//! write there, such as a program in an earlier task, would have them run without anybody's permission. So git runs in one
//! of two ways. The few commands that need the repository's own settings never touch a file of the tree, and what could be
//! run by them is switched off. All others run with a git directory that Sabir makes for them (`OwnGitDir`): it shares the
//! repository's objects and nothing else. Settings of the operator (`~/.gitconfig`, `/etc/gitconfig`) always hold, so
//! filters such as LFS work where they are installed for the user.
//!
//! Every command has a time limit. A repository may lie on a mount that does not answer, and its settings may include a pipe
//! that nobody writes to: git would wait for ever, and with it every task that waits for its worktree.

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
use crate::process::{Child, Launch, environment};

/// How long git commands may take. A run that is stopped ends the ones that it waits for sooner.
#[derive(Debug, Clone, Copy)]
pub struct GitLimits {
    /// Commands that look something up or set a ref: milliseconds, or seconds on a machine that has too much to do.
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
/// Then nothing of it is waited for any more: it hangs in the kernel, where no signal reaches it.
const STOP_LIMIT: Duration = Duration::from_secs(15);

/// What most commands may print.
const SHORT: usize = 1 << 20;

/// What a list of refs may take: some ten thousand.
const LONGEST_LIST: usize = 16 << 20;

/// Variables of the operator's that say where the operator's settings are.
const PASSED: [&str; 3] = ["GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM"];

/// Holds for every command, and for commands that git starts.
const ALWAYS: [&str; 6] = [
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    // A line end that cannot be restored is no reason to lose the file.
    "core.safecrlf=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "submodule.recurse=false",
];

/// Settings of a repository that say how its files are spelled and where they come from. None of them names a command.
const COPIED: &str = "^(core\\.(autocrlf|eol|filemode|symlinks|ignorecase|precomposeunicode|bigfilethreshold|\
    sparsecheckout|sparsecheckoutcone)|remote\\..*\\.(url|lfsurl)|lfs\\.url)$";

/// Why git has not done what it should.
#[derive(Debug)]
pub enum GitError {
    /// The command did not end in its time, and was ended.
    TimedOut { command: String, limit: Duration },
    /// Nobody wants the result any more, so the command was ended, or not even started.
    Stopped,
    /// The command failed.
    Failed { command: String, exit: Exit, complaint: String },
    /// Anything else, in words for the log.
    Other(String),
}

impl GitError {
    /// What the caller of a task may know of it. All else is for the log: where things lie is the operator's business.
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
            GitError::Failed { command, complaint, .. } => write!(out, "git {command}: {complaint}"),
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

/// An error of the file system, and where it happened.
pub(super) fn at_path(path: &Path, error: io::Error) -> GitError {
    GitError::Other(format!("{}: {error}", path.display()))
}

/// Runs git.
#[derive(Clone)]
pub(super) struct Git {
    host: Host,
    /// When its sender is gone, commands are ended and no more are started.
    wanted: Option<watch::Receiver<()>>,
}

/// What a command printed, as far as it was wanted.
pub(super) struct Printed {
    pub bytes: Vec<u8>,
    pub is_cut: bool,
}

/// How a command came to its end.
enum Ran {
    Ended(Printed, Exit),
    TimedOut,
    Stopped,
}

impl Git {
    pub fn new(host: &Host) -> Self {
        Self { host: host.clone(), wanted: None }
    }

    /// The same, as long as somebody holds the sender.
    pub fn while_wanted(host: &Host, wanted: watch::Receiver<()>) -> Self {
        Self { host: host.clone(), wanted: Some(wanted) }
    }

    /// Resolves when the result is not wanted any more.
    pub async fn until_unwanted(&self) {
        match self.wanted.clone() {
            Some(mut wanted) => while wanted.changed().await.is_ok() {},
            None => std::future::pending().await,
        }
    }

    /// A command that needs the repository around a folder, and no file of its tree.
    pub async fn in_repository(&self, folder: &Path, arguments: &[&OsStr]) -> Result<String, GitError> {
        let off = ["credential.helper=", "core.sshCommand=false", "core.gitProxy=", "core.askPass=", "core.pager=cat"];
        let settings = off.iter().flat_map(|setting| [OsStr::new("-c"), OsStr::new(setting)]);
        let arguments: Vec<&OsStr> = settings.chain(arguments.iter().copied()).collect();
        let printed = self.run(folder, &[], &arguments, "", SHORT, self.host.git_limits.short).await?;
        Ok(String::from_utf8_lossy(&printed.bytes).trim_end_matches('\n').to_owned())
    }

    /// The same for a list that may be long.
    pub async fn list_in_repository(&self, git_dir: &Path, arguments: &[&str]) -> Result<Vec<u8>, GitError> {
        let place = OsString::from_iter([OsStr::new("--git-dir="), git_dir.as_os_str()]);
        let arguments: Vec<&OsStr> = std::iter::once(&*place).chain(arguments.iter().map(OsStr::new)).collect();
        Ok(self.run(git_dir, &[], &arguments, "", LONGEST_LIST, self.host.git_limits.short).await?.bytes)
    }

    /// The hash that git gives to a text, which nobody can find a second text for.
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
        let mut child = launch.start().await.map_err(|error| format!("git cannot be run: {error}"))?;
        let ran = tokio::select! {
            ran = run_to_end(&mut child, input, longest) => ran?,
            () = sleep(limit) => Ran::TimedOut,
            () = self.until_unwanted() => Ran::Stopped,
        };
        match ran {
            Ran::Ended(printed, exit) if exit == Exit::Code(0) || printed.is_cut => Ok(printed),
            Ran::Ended(_, exit) => Err(GitError::Failed { command, exit, complaint: child.stderr_tail() }),
            ran => {
                // What git holds, such as locks, is free when it is gone.
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
        // Git itself goes to the folder: where that hangs, git can be ended, and this process could not.
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

/// A git directory of Sabir's own for the tree of a repository: its objects, and no setting of it that names a command.
pub(super) struct OwnGitDir<'g> {
    git: &'g Git,
    folder: PathBuf,
    tree: PathBuf,
    variables: Vec<(OsString, OsString)>,
}

impl<'g> OwnGitDir<'g> {
    /// Makes one at `folder`, for a tree about which the repository knows in `tree_data`.
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
        // Contents that LFS takes out of a file belong to the repository.
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

    /// Takes over the index that a program has worked with. Whether it has left one.
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
        // What cannot be read is no index.
        Ok(taken.await?.unwrap_or(false))
    }

    /// Hands the index over to the tree.
    pub async fn give_index(&self, tree_data: &Path) -> Result<(), GitError> {
        let (from, to) = (self.folder.join("index"), tree_data.join("index"));
        let given = blocking(blocking::LONG, move || copy_file(&from, &to));
        given.await?.map(drop).map_err(|error| at_path(tree_data, error))
    }

    /// A file of this content, for a command to read.
    pub async fn put(&self, name: &str, content: Vec<u8>) -> Result<PathBuf, GitError> {
        let file = self.folder.join(name);
        let path = file.clone();
        let written = blocking(blocking::SHORT, move || fs::write(path, content)).await?;
        written.map(|()| file).map_err(|error| at_path(&self.folder, error))
    }

    /// Removes it. Whoever makes the next one for the tree, or removes the tree, does that too.
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

/// What an `OwnGitDir` is made of.
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

/// Copies a file, if there is one. A pipe in its place would be waited for.
fn copy_file(from: &Path, to: &Path) -> io::Result<bool> {
    let Some(about) = from.metadata().ok().filter(fs::Metadata::is_file) else { return Ok(false) };
    fs::copy(from, to)?;
    // By the age of an index git knows which files it has to look at: those that are not older.
    fs::File::options().write(true).open(to)?.set_modified(about.modified()?)?;
    Ok(true)
}
