//! A Postgres server for one test alone, which may crash or have other settings.

use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

use sabir_testkit::postgres::free_port;
use tempfile::TempDir;

use crate::postgres_server::new_database;

/// A server of its own, since others should not crash with it.
pub struct Server {
    pub folder: TempDir,
    programs: PathBuf,
    pub user: Option<(u32, u32)>,
    /// Where it listens if its settings say so.
    pub port: u16,
}

/// So often a port is tried that somebody else has got meanwhile.
const TRIES: usize = 50;
const PAUSE: Duration = Duration::from_millis(200);

impl Server {
    /// With these settings for a free port, beside the usual ones. `None`: no Postgres is installed.
    pub fn start(settings: impl Fn(u16) -> String) -> Option<Self> {
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
        let mut server = Self { folder, programs, user, port: free_port() };
        let data = server.data();
        server.run("initdb", &["-A", "trust", "-U", "postgres", "--no-sync", "-D", &data]);
        for _ in 0..TRIES {
            server.write_settings(&settings(server.port));
            match server.try_control(&["start"]) {
                Outcome::Done => return Some(server),
                Outcome::PortIsTaken => server.port = free_port(),
            }
        }
        panic!("no port stays free")
    }

    pub fn write_settings(&self, settings: &str) {
        std::fs::write(self.folder.path().join("data/postgresql.auto.conf"), settings).expect("settings");
    }

    pub fn data(&self) -> String {
        self.folder.path().join("data").display().to_string()
    }

    /// Others know its port, so that is waited for.
    pub fn control(&self, args: &[&str]) {
        let is_done = (0..TRIES).any(|_| match self.try_control(args) {
            Outcome::Done => true,
            Outcome::PortIsTaken => {
                sleep(PAUSE);
                false
            }
        });
        assert!(is_done, "somebody else has its port {}", self.port);
    }

    fn try_control(&self, args: &[&str]) -> Outcome {
        let folder = self.folder.path().display().to_string();
        let options = format!("-k {folder} -c max_connections=60");
        let (data, log) = (self.data(), format!("{folder}/log"));
        let all = ["-w", "-D", &data, "-l", &log, "-o", &options];
        let _ = std::fs::remove_file(&log);
        match try_output(self.as_user(&self.programs.join("pg_ctl")).args([&all, args].concat())) {
            Ok(_) => Outcome::Done,
            Err(failure) => {
                let log = std::fs::read_to_string(&log).unwrap_or_default();
                assert!(log.contains("could not create any TCP/IP sockets"), "{failure}\n{log}");
                Outcome::PortIsTaken
            }
        }
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

/// What became of a start.
enum Outcome {
    Done,
    PortIsTaken,
}

fn output(command: &mut Command) -> String {
    try_output(command).unwrap_or_else(|failure| panic!("{failure}"))
}

fn try_output(command: &mut Command) -> Result<String, String> {
    // A server must not keep a pipe of ours open, so its output goes to a file.
    let file = tempfile::NamedTempFile::new().expect("a file");
    let done = command.stdout(file.reopen().expect("a file")).stderr(std::process::Stdio::null()).status();
    let text = std::fs::read_to_string(file.path()).unwrap_or_default();
    match done {
        Ok(status) if status.success() => Ok(text.trim_end().to_owned()),
        _ => Err(format!("{command:?}: {text}")),
    }
}
