//! A Postgres server for one test alone, which may crash or have other settings.

use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::postgres_server::new_database;

/// A server of its own, since others should not crash with it.
pub struct Server {
    pub folder: TempDir,
    programs: PathBuf,
    pub user: Option<(u32, u32)>,
}

impl Server {
    /// With these settings beside the usual ones. `None`: no Postgres is installed.
    pub fn start(settings: &str) -> Option<Self> {
        // Also checks that it is there if it is required.
        new_database()?;
        let programs = "for folder in $(dirname $(which initdb 2>/dev/null) 2>/dev/null) $(ls -d /usr/lib/postgresql/*/bin 2>/dev/null); \
            do test -x $folder/initdb && echo $folder; done | tail -1";
        let programs = PathBuf::from(output(Command::new("sh").args(["-c", programs])));
        let id = |args: &[&str]| output(Command::new("id").args(args)).parse::<u32>().expect("a number");
        let user = (id(&["-u"]) == 0).then(|| (id(&["-u", "postgres"]), id(&["-g", "postgres"])));
        let folder = tempfile::tempdir().expect("a temporary folder");
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o777)).expect("permissions");
        if let Some((uid, gid)) = user {
            chown(folder.path(), Some(uid), Some(gid)).expect("an owner");
        }
        let server = Self { folder, programs, user };
        let data = server.data();
        server.run("initdb", &["-A", "trust", "-U", "postgres", "--no-sync", "-D", &data]);
        std::fs::write(server.folder.path().join("data/postgresql.auto.conf"), settings).expect("settings");
        server.control(&["start"]);
        Some(server)
    }

    pub fn data(&self) -> String {
        self.folder.path().join("data").display().to_string()
    }

    pub fn control(&self, args: &[&str]) {
        let folder = self.folder.path().display().to_string();
        let options = format!("-k {folder} -c max_connections=60");
        let (data, log) = (self.data(), format!("{folder}/log"));
        let all = ["-w", "-D", &data, "-l", &log, "-o", &options];
        self.run("pg_ctl", &[&all, args].concat());
    }

    pub fn run(&self, program: &str, args: &[&str]) {
        output(self.as_user(&self.programs.join(program)).args(args));
    }

    pub fn as_user(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        if let Some((uid, gid)) = self.user {
            command.gid(gid).uid(uid);
        }
        command.current_dir(self.folder.path());
        command
    }

    pub fn url(&self) -> String {
        format!("host={} user=postgres dbname=postgres", self.folder.path().display())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.control(&["stop", "-m", "immediate"]);
    }
}

fn output(command: &mut Command) -> String {
    // A server must not keep a pipe of ours open, so its output goes to a file.
    let file = tempfile::NamedTempFile::new().expect("a file");
    let done = command.stdout(file.reopen().expect("a file")).stderr(std::process::Stdio::null()).status();
    let text = std::fs::read_to_string(file.path()).unwrap_or_default();
    assert!(done.is_ok_and(|status| status.success()), "{command:?}: {text}");
    text.trim_end().to_owned()
}
