//! What this machine has: programs, folders, git repositories, a name.
//!
//! `main` reads the environment and hands it over, so that the rest can be tested with folders of its own.

use std::ffi::{OsStr, OsString};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

#[derive(Debug, Clone)]
pub struct Machine {
    /// Where programs are looked for.
    pub path: OsString,
    /// Where sabir was started.
    pub folder: PathBuf,
}

/// Why a program cannot be run.
#[derive(Debug, Clone, PartialEq)]
pub enum Absent {
    NotOnPath,
    NoFile(PathBuf),
    NotExecutable(PathBuf),
}

impl Machine {
    /// Without a `PATH` the system looks into these folders.
    pub const USUAL_PATH: &str = "/bin:/usr/bin";

    /// Where a program is. A name with a slash is a path, which begins where sabir was started.
    pub fn find(&self, program: &str) -> Result<PathBuf, Absent> {
        self.find_on(&self.path, program)
    }

    /// The same with another `PATH`.
    pub fn find_on(&self, path: &OsStr, program: &str) -> Result<PathBuf, Absent> {
        if program.contains('/') {
            let file = self.absolute(Path::new(program));
            return match (file.is_file(), is_executable(&file)) {
                (false, _) => Err(Absent::NoFile(file)),
                (true, false) => Err(Absent::NotExecutable(file)),
                (true, true) => Ok(file),
            };
        }
        let files = || std::env::split_paths(path).map(|folder| self.absolute(&folder.join(program)));
        let found = files().find(|file| is_executable(file));
        let hint = || files().find(|file| file.is_file()).map_or(Absent::NotOnPath, Absent::NotExecutable);
        found.ok_or_else(hint)
    }

    pub fn absolute(&self, path: &Path) -> PathBuf {
        // A lone dot adds nothing to where we are.
        if path == Path::new(".") { self.folder.clone() } else { self.folder.join(path) }
    }

    /// Whether this folder is in a git repository.
    pub fn is_in_repository(&self, folder: &Path) -> bool {
        let folder = self.absolute(folder);
        let folder = folder.canonicalize().unwrap_or(folder);
        folder.ancestors().any(|folder| folder.join(".git").exists())
    }
}

/// The name that this machine has given itself.
pub fn own_name() -> Option<String> {
    rustix::system::uname().nodename().to_str().ok().map(str::to_owned)
}

fn is_executable(file: &Path) -> bool {
    file.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

impl std::fmt::Display for Absent {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Absent::NotOnPath => out.write_str("is not on the PATH"),
            Absent::NoFile(file) => write!(out, "is not there: {} is no file", file.display()),
            Absent::NotExecutable(file) => write!(out, "cannot be run: {} is not executable", file.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};

    use super::*;

    #[test]
    fn programs_are_found_by_name_and_by_path() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for (name, mode) in [("bin/tool", 0o755), ("other/tool", 0o755), ("bin/text", 0o644), ("other/only", 0o700)] {
            fs::create_dir_all(at(name).parent().unwrap()).unwrap();
            fs::write(at(name), "").unwrap();
            fs::set_permissions(at(name), Permissions::from_mode(mode)).unwrap();
        }
        let path = std::env::join_paths([at("bin"), at("other")]).unwrap();
        let machine = Machine { path, folder: folder.path().to_owned() };
        for (program, expected) in [
            ("tool", Ok(at("bin/tool"))),
            ("only", Ok(at("other/only"))),
            ("other/tool", Ok(at("other/tool"))),
            (at("bin/tool").to_str().unwrap(), Ok(at("bin/tool"))),
            ("none", Err(Absent::NotOnPath)),
            ("text", Err(Absent::NotExecutable(at("bin/text")))),
            ("./bin", Err(Absent::NoFile(at("./bin")))),
            ("bin/text", Err(Absent::NotExecutable(at("bin/text")))),
        ] {
            assert_eq!(machine.find(program), expected, "{program}");
        }
    }

    #[test]
    fn a_repository_holds_the_folders_below() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("repository/.git")).unwrap();
        fs::create_dir_all(folder.path().join("repository/source")).unwrap();
        let machine = Machine { path: OsString::new(), folder: folder.path().to_owned() };
        for (name, expected) in [(".", false), ("repository", true), ("repository/source", true), ("none", false)] {
            assert_eq!(machine.is_in_repository(Path::new(name)), expected, "{name}");
        }
    }
}
