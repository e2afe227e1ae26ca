//! Git, run for Sabir itself: under a guard like any program, and without obeying the repository.
//!
//! Settings of a repository can name commands: filters, hooks, a file system monitor, diff drivers, helpers. Whoever can
//! write there, such as a program in an earlier task, would have them run without anybody's permission. So git runs in one
//! of two ways. The few commands that need the repository's own settings never touch a file of the tree, and what could be
//! run by them is switched off. All others run with a git directory that Sabir makes for them (`OwnGitDir`): it shares the
//! repository's objects and nothing else. Settings of the operator (`~/.gitconfig`, `/etc/gitconfig`) always hold, so
//! filters such as LFS work where they are installed for the user.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::Host;
use crate::process::{Launch, environment};
use crate::protocol::Exit;

/// What most commands may print.
const SHORT: usize = 1 << 20;

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

/// Runs git.
#[derive(Clone)]
pub(super) struct Git(pub Host);

/// What a command printed, as far as it was wanted.
pub(super) struct Printed {
    pub bytes: Vec<u8>,
    pub is_cut: bool,
}

impl Git {
    /// A command that needs the repository around a folder, and no file of its tree.
    pub async fn in_repository(&self, folder: &Path, arguments: &[&OsStr]) -> Result<String, String> {
        let off = ["credential.helper=", "core.sshCommand=false", "core.gitProxy=", "core.askPass=", "core.pager=cat"];
        let settings = off.iter().flat_map(|setting| [OsStr::new("-c"), OsStr::new(setting)]);
        let arguments: Vec<&OsStr> = settings.chain(arguments.iter().copied()).collect();
        let printed = self.run(folder, &[], &arguments, "", SHORT).await?;
        Ok(String::from_utf8_lossy(&printed.bytes).trim_end_matches('\n').to_owned())
    }

    /// The hash that git gives to a text, which nobody can find a second text for.
    pub async fn hash(&self, text: &str) -> Result<String, String> {
        let arguments = ["hash-object", "--stdin"].map(OsStr::new);
        let printed = self.run(Path::new("/"), &[], &arguments, text, SHORT).await?;
        Ok(String::from_utf8_lossy(&printed.bytes).trim_end().to_owned())
    }

    async fn run(
        &self,
        folder: &Path,
        variables: &[(OsString, OsString)],
        arguments: &[&OsStr],
        input: &str,
        limit: usize,
    ) -> Result<Printed, String> {
        let fixed =
            [("LC_ALL", "C"), ("GIT_TERMINAL_PROMPT", "0"), ("GIT_NO_LAZY_FETCH", "1"), ("GIT_ASKPASS", "true")];
        let fixed = fixed.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let mut environment = environment(self.0.variables.iter().cloned(), &PASSED.map(str::to_owned), &fixed);
        environment.extend(variables.iter().cloned());
        let always = ALWAYS.iter().flat_map(|setting| ["-c", setting]);
        let before =
            ["--no-pager", "-c", "user.name=Sabir", "-c", "user.email=sabir@localhost"].into_iter().chain(always);
        let launch = Launch {
            guard: self.0.guard.clone(),
            program: "git".into(),
            arguments: before.map(OsStr::new).chain(arguments.iter().copied()).map(OsStr::to_owned).collect(),
            folder: folder.to_owned(),
            environment,
            max_line: SHORT,
            max_output: u64::MAX,
            stop_grace: Duration::from_secs(2),
            open_files: self.0.open_files,
        };
        let mut child = launch.start().await.map_err(|error| format!("git cannot be run: {error}"))?;
        if !input.is_empty() {
            child.write_line(input).await.map_err(|error| format!("git does not read: {error}"))?;
        }
        child.close_input();
        let (bytes, is_cut) = child.read_up_to(limit).await;
        let exit = if is_cut { child.stop().await } else { child.exit().await };
        if exit != Exit::Code(0) && !is_cut {
            let is_command = |argument: &&&OsStr| {
                argument.to_str().is_some_and(|text| !text.starts_with('-') && !text.contains('='))
            };
            let command = arguments.iter().find(is_command).unwrap_or(&OsStr::new("")).display();
            return Err(format!("git {command}: {}", child.complaint()));
        }
        Ok(Printed { bytes, is_cut })
    }
}

/// A git directory of Sabir's own for the tree of a repository: its objects, and no setting of it that names a command. It
/// goes when it is dropped.
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
    ) -> Result<Self, String> {
        let of_repository = |arguments: &[&str]| {
            let place = OsString::from_iter([OsStr::new("--git-dir="), common.as_os_str()]);
            let arguments: Vec<OsString> = arguments.iter().map(OsString::from).collect();
            async move {
                let all: Vec<&OsStr> = std::iter::once(&*place).chain(arguments.iter().map(|word| &**word)).collect();
                git.in_repository(common, &all).await
            }
        };
        let format = of_repository(&["rev-parse", "--show-object-format"]).await?;
        // Without any such setting the command fails.
        let copied = of_repository(&["config", "--includes", "--null", "--get-regexp", COPIED]).await;
        let mut settings: Vec<(String, OsString)> = Vec::new();
        for entry in copied.unwrap_or_default().split('\0').filter(|entry| !entry.is_empty()) {
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
        let own = Self { git, folder, tree: tree.to_owned(), variables };
        own.write(&format, tree_data, common).map_err(|error| format!("{}: {error}", own.folder.display()))?;
        Ok(own)
    }

    fn write(&self, format: &str, tree_data: &Path, common: &Path) -> io::Result<()> {
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
        for (from, name) in [(common, "exclude"), (common, "attributes"), (tree_data, "sparse-checkout")] {
            copy_file(&from.join("info").join(name), &self.folder.join("info").join(name))?;
        }
        Ok(())
    }

    /// Takes over the index that a program has worked with. Whether it has left one.
    pub fn take_index(&self, tree_data: &Path) -> io::Result<bool> {
        // An index may be split, with most of it in a second file.
        for entry in fs::read_dir(tree_data)?.flatten() {
            if entry.file_name().as_encoded_bytes().starts_with(b"sharedindex.") {
                copy_file(&entry.path(), &self.folder.join(entry.file_name()))?;
            }
        }
        copy_file(&tree_data.join("index"), &self.folder.join("index"))
    }

    /// Hands the index over to the tree.
    pub fn give_index(&self, tree_data: &Path) -> io::Result<()> {
        copy_file(&self.folder.join("index"), &tree_data.join("index")).map(drop)
    }

    pub async fn git(&self, arguments: &[&str]) -> Result<String, String> {
        let printed = self.output(arguments, SHORT).await?;
        Ok(String::from_utf8_lossy(&printed.bytes).trim_end_matches('\n').to_owned())
    }

    pub async fn output(&self, arguments: &[&str], limit: usize) -> Result<Printed, String> {
        let place = [("--git-dir=", &self.folder), ("--work-tree=", &self.tree)]
            .map(|(option, path)| OsString::from_iter([OsStr::new(option), path.as_os_str()]));
        let arguments: Vec<&OsStr> =
            place.iter().map(|word| &**word).chain(arguments.iter().map(|word| OsStr::new(*word))).collect();
        self.git.run(&self.tree, &self.variables, &arguments, "", limit).await
    }
}

impl Drop for OwnGitDir<'_> {
    fn drop(&mut self) {
        let _ = remove_folder(&self.folder);
    }
}

/// Removes a folder with all that is in it, if it is there. Some tools write-protect the folders that they make.
pub(super) fn remove_folder(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            allow_writing(folder);
            fs::remove_dir_all(folder)
        }
        removed => removed,
    }
}

fn allow_writing(folder: &Path) {
    let _ = fs::set_permissions(folder, fs::Permissions::from_mode(0o700));
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            allow_writing(&entry.path());
        }
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
