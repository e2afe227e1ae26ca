//! A real Postgres and a real PgBouncer for tests, from Debian's packages, in a temporary folder.
//!
//! Each runs below a small shell that holds the other end of a pipe. When the test process ends, in order or by a signal, the
//! pipe closes, and the shell ends the server and deletes its folder. So nothing is left behind, also by `Postgres::shared`.

use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// Says what a missing Postgres means: `required` is for runs that must not skip anything.
pub const REQUIRED_VARIABLE: &str = "TESTKIT_POSTGRES";

const INSTALL: &str = "apt-get install -y postgresql pgbouncer";
const START_LIMIT: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(10);
/// The superuser of the databases, and the account that runs the servers if the tests run as root, which both refuse.
const USER: &str = "postgres";

/// A running Postgres. It ends, and its data is deleted, when this is dropped.
pub struct Postgres {
    // Before the folder, since fields are dropped in this order.
    guard: Option<Guard>,
    folder: TempDir,
    programs: PathBuf,
    port: u16,
    durability: Durability,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Durability {
    /// Nothing is flushed, which is several times faster.
    Off,
    On,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Address {
    Any,
    /// Clients know it already.
    Same,
}

/// How a server is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopMode {
    /// Waits until every client has closed its connection.
    Smart,
    /// Ends all connections, and writes everything out.
    Fast,
    /// Like a crash: the next start recovers from the log.
    Immediate,
}

impl Postgres {
    /// Starts one that forgets what it wrote in a power cut. `None` if Postgres is not installed; if `TESTKIT_POSTGRES` is
    /// `required`, that panics.
    pub fn start() -> Option<Self> {
        Self::start_with(Durability::Off)
    }

    /// Starts one that flushes every commit, for measurements.
    pub fn start_durable() -> Option<Self> {
        Self::start_with(Durability::On)
    }

    /// One for all tests of this process, which use a `fresh_database` each.
    pub fn shared() -> Option<&'static Self> {
        static SHARED: OnceLock<Option<Postgres>> = OnceLock::new();
        SHARED.get_or_init(Self::start).as_ref()
    }

    fn start_with(durability: Durability) -> Option<Self> {
        let Some(programs) = programs() else {
            let is_required = std::env::var(REQUIRED_VARIABLE).is_ok_and(|value| value == "required");
            assert!(!is_required, "{REQUIRED_VARIABLE} is required, but there is no Postgres: {INSTALL}");
            return None;
        };
        // The path of a Unix socket has at most 107 bytes.
        let folder = tempfile::Builder::new().prefix("pg-").tempdir_in("/tmp").expect("a temporary folder can be made");
        give_to_server_account(folder.path());
        let data = folder.path().join("data");
        let made = as_server_account(&programs.join("initdb"))
            .args(["--username", USER, "--auth=trust", "--no-sync", "--encoding=UTF8", "--locale=C", "-D"])
            .arg(&data)
            .current_dir(folder.path())
            .output()
            .expect("initdb can be run");
        assert!(made.status.success(), "initdb failed: {}", String::from_utf8_lossy(&made.stderr));
        let mut postgres = Self { folder, programs, port: free_port(), durability, guard: None };
        postgres.start_at(Address::Any);
        Some(postgres)
    }

    /// Starts it again after `stop`, at the same address with the same data.
    pub fn start_again(&mut self) {
        self.start_at(Address::Same);
    }

    fn start_at(&mut self, address: Address) {
        assert!(self.guard.is_none(), "Postgres is running");
        let started = Instant::now();
        self.guard = Some(self.launch());
        while !self.is_ready() {
            let log = fs::read_to_string(self.log()).unwrap_or_default();
            assert!(started.elapsed() < START_LIMIT, "Postgres does not start:\n{log}");
            // Somebody else has got the port since it was chosen, or still has it.
            if log.contains("could not create any TCP/IP sockets") {
                drop(self.guard.take());
                match address {
                    Address::Any => self.port = free_port(),
                    Address::Same => thread::sleep(10 * POLL),
                }
                self.guard = Some(self.launch());
            }
            thread::sleep(POLL);
        }
    }

    fn launch(&self) -> Guard {
        let _ = fs::remove_file(self.log());
        let mut command = vec![
            text(&self.programs.join("postgres")),
            "-D".to_owned(),
            text(&self.data()),
            "-k".to_owned(),
            text(self.folder.path()),
            "-p".to_owned(),
            self.port.to_string(),
        ];
        // Each line of the log names its database.
        let log_lines = "log_line_prefix=%m [%p] %d ";
        let mut settings = vec!["listen_addresses=127.0.0.1", "max_connections=400", "shared_buffers=64MB", log_lines];
        if self.durability == Durability::Off {
            settings.extend(["fsync=off", "synchronous_commit=off", "full_page_writes=off"]);
        }
        command.extend(settings.into_iter().flat_map(|setting| ["-c".to_owned(), setting.to_owned()]));
        Guard::start(&command, "QUIT", self.folder.path(), &self.log())
    }

    /// The eighth line of this file says how far the start is.
    fn is_ready(&self) -> bool {
        let status = fs::read_to_string(self.data().join("postmaster.pid")).unwrap_or_default();
        status.lines().nth(7).is_some_and(|state| state.trim() == "ready")
    }

    /// Stops it and waits until it has ended. The data stays.
    pub fn stop(&mut self, mode: StopMode) {
        let signal = match mode {
            StopMode::Smart => "TERM",
            StopMode::Fast => "INT",
            StopMode::Immediate => "QUIT",
        };
        self.guard.take().expect("Postgres is running").stop(signal);
    }

    /// Makes a database and returns its URL.
    pub fn database(&self, name: &str) -> String {
        self.execute("postgres", &format!("CREATE DATABASE \"{name}\""));
        self.url_of(name)
    }

    /// Makes a database with a name that no other one has, and returns its URL.
    pub fn fresh_database(&self) -> String {
        static MADE: AtomicU64 = AtomicU64::new(0);
        self.database(&format!("test_{}", MADE.fetch_add(1, Ordering::Relaxed)))
    }

    /// The URL of a database, over TCP.
    pub fn url_of(&self, database: &str) -> String {
        format!("postgres://{USER}@127.0.0.1:{}/{database}", self.port)
    }

    /// The URL of a database, over the Unix socket.
    pub fn socket_url_of(&self, database: &str) -> String {
        let folder = text(self.folder.path()).replace('/', "%2F");
        format!("postgres://{USER}@{folder}:{}/{database}", self.port)
    }

    pub fn address(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.port).into()
    }

    /// Ends the connections that this condition over `pg_stat_activity` is true for, such as `datname = 'a'`, and returns how
    /// many there were.
    pub fn terminate_backends(&self, condition: &str) -> usize {
        let sql = format!(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity \
             WHERE pid <> pg_backend_pid() AND backend_type = 'client backend' AND ({condition})"
        );
        self.execute("postgres", &sql).parse().expect("a count is a number")
    }

    /// Runs SQL with psql and returns its rows, without titles. The database is its name or its URL.
    pub fn execute(&self, database: &str, sql: &str) -> String {
        let done = Command::new(self.programs.join("psql"))
            .args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-U", USER, "-h", "127.0.0.1"])
            .args(["-p", &self.port.to_string(), "-d", database, "-c", sql])
            .output()
            .expect("psql can be run");
        assert!(done.status.success(), "{sql}: {}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8_lossy(&done.stdout).trim_end().to_owned()
    }

    /// The process that has started all others.
    pub fn pid(&self) -> u32 {
        let status = fs::read_to_string(self.data().join("postmaster.pid")).unwrap_or_default();
        status.lines().next().and_then(|pid| pid.trim().parse().ok()).expect("Postgres is running")
    }

    /// What the server has logged since its last start.
    pub fn log_text(&self) -> String {
        fs::read_to_string(self.log()).unwrap_or_default()
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    fn log(&self) -> PathBuf {
        self.folder.path().join("log")
    }
}

/// Makes a database on a server that somebody else has started; the URL is that of any of its databases.
pub fn create_database(server: &str, name: &str) -> io::Result<()> {
    let psql = programs().map_or("psql".into(), |folder| folder.join("psql"));
    let sql = format!("CREATE DATABASE \"{name}\"");
    let done = Command::new(psql).args(["-X", "-q", "-v", "ON_ERROR_STOP=1", "-d", server, "-c", &sql]).output()?;
    match done.status.success() {
        true => Ok(()),
        false => Err(io::Error::other(String::from_utf8_lossy(&done.stderr).into_owned())),
    }
}

/// A pooler in transaction mode before a Postgres: LISTEN and prepared statements do not work through it.
pub struct PgBouncer {
    guard: Option<Guard>,
    folder: TempDir,
    port: u16,
}

impl PgBouncer {
    /// `None` if it is not installed; if `TESTKIT_POSTGRES` is `required`, that panics.
    pub fn start(postgres: &Postgres) -> Option<Self> {
        Self::start_with_pool(postgres, 20)
    }

    /// The same with so many connections to each database.
    pub fn start_with_pool(postgres: &Postgres, connections: usize) -> Option<Self> {
        let program = find_program("pgbouncer", &[Path::new("/usr/sbin"), Path::new("/usr/bin")]);
        let Some(program) = program else {
            let is_required = std::env::var(REQUIRED_VARIABLE).is_ok_and(|value| value == "required");
            assert!(!is_required, "{REQUIRED_VARIABLE} is required, but there is no PgBouncer: {INSTALL}");
            return None;
        };
        let folder =
            tempfile::Builder::new().prefix("pgb-").tempdir_in("/tmp").expect("a temporary folder can be made");
        let mut bouncer = Self { folder, port: free_port(), guard: None };
        let path = bouncer.folder.path();
        let settings = path.join("pgbouncer.ini");
        let (server, port) = (postgres.port, bouncer.port);
        let text_of_settings = format!(
            "[databases]\n* = host=127.0.0.1 port={server} user={USER}\n\n[pgbouncer]\npool_mode = transaction\n\
             listen_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\nauth_type = any\nmax_client_conn = 500\n\
             default_pool_size = {connections}\nignore_startup_parameters = extra_float_digits\n"
        );
        fs::write(&settings, text_of_settings).expect("its settings can be written");
        give_to_server_account(path);
        give_to_server_account(&settings);
        let log = path.join("log");
        let guard = Guard::start(&[text(&program), text(&settings)], "TERM", path, &log);
        bouncer.guard = Some(guard);
        let started = Instant::now();
        while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
            let log = fs::read_to_string(&log).unwrap_or_default();
            assert!(started.elapsed() < START_LIMIT, "PgBouncer does not start:\n{log}");
            thread::sleep(POLL);
        }
        Some(bouncer)
    }

    /// The URL of a database through it.
    pub fn url_of(&self, database: &str) -> String {
        format!("postgres://{USER}@127.0.0.1:{}/{database}", self.port)
    }
}

/// Says on the terminal, whatever the test runner does with output, that tests did not run.
pub fn report_skipped(tests: usize) {
    let line = format!("{tests} tests skipped: no Postgres ({INSTALL})\n");
    let _ = std::io::stderr().write_all(line.as_bytes());
}

/// A server below its shell.
struct Guard {
    shell: Child,
    /// A line in it is the signal that the server gets. If it closes without one, the folder is deleted too.
    orders: Option<ChildStdin>,
    /// What ends the server at once.
    end_signal: &'static str,
}

impl Guard {
    fn start(command: &[String], end_signal: &'static str, folder: &Path, log: &Path) -> Self {
        const SCRIPT: &str = r#"
            end_signal=$1; folder=$2; log=$3; shift 3
            "$@" >"$log" 2>&1 </dev/null & server=$!
            if read -r signal; then kill -s "$signal" $server; wait $server
            else kill -s "$end_signal" $server; wait $server; rm -rf "$folder"; fi"#;
        let mut shell = as_server_account(Path::new("/bin/sh"))
            .args(["-c", SCRIPT, "guard", end_signal])
            .args([folder, log])
            .args(command)
            .current_dir(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // Ctrl-C is for the test process, which ends this one.
            .process_group(0)
            .spawn()
            .expect("a shell can be started");
        let orders = shell.stdin.take();
        Self { shell, orders, end_signal }
    }

    /// Waits until the server has ended.
    fn stop(&mut self, signal: &str) {
        if let Some(mut orders) = self.orders.take() {
            let _ = writeln!(orders, "{signal}");
            drop(orders);
            let _ = self.shell.wait();
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.stop(self.end_signal);
    }
}

/// The folder with the programs of the newest Postgres on this machine.
fn programs() -> Option<PathBuf> {
    if is_root() && server_account().is_none() {
        return None;
    }
    let version = |folder: &PathBuf| folder.parent()?.file_name()?.to_str()?.parse::<u32>().ok();
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut folders: Vec<PathBuf> = versions.map(|entry| entry.path().join("bin")).collect();
    folders.sort_by_key(version);
    let folders: Vec<&Path> = folders.iter().rev().map(PathBuf::as_path).collect();
    let initdb = find_program("initdb", &folders)?;
    // What is in the PATH may be a link; the other programs are beside the file itself.
    fs::canonicalize(initdb).ok()?.parent().map(Path::to_owned)
}

/// In these folders, then in the PATH.
fn find_program(name: &str, folders: &[&Path]) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let in_path = std::env::split_paths(&path).map(|folder| folder.join(name));
    folders.iter().map(|folder| folder.join(name)).chain(in_path).find(|file| file.is_file())
}

/// Postgres and PgBouncer refuse to run as root.
fn as_server_account(program: &Path) -> Command {
    let mut command = Command::new(program);
    if let Some((user, group)) = server_account().filter(|_| is_root()) {
        command.uid(user).gid(group);
    }
    command
}

fn give_to_server_account(path: &Path) {
    if let Some((user, group)) = server_account().filter(|_| is_root()) {
        chown(path, Some(user), Some(group)).expect("root can give files away");
    }
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// The user and the group of the account that Debian's package makes.
fn server_account() -> Option<(u32, u32)> {
    let accounts = fs::read_to_string("/etc/passwd").ok()?;
    let account = accounts.lines().find(|line| line.split(':').next() == Some(USER))?;
    let mut fields = account.split(':').skip(2);
    Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
}

/// A port of loopback for a server that is told its port. Nobody gets it for an outgoing connection or by asking for any, so it can be
/// used again after a stop.
pub fn free_port() -> u16 {
    // Below those that Linux gives away.
    const FIRST: u64 = 15_000;
    const COUNT: u64 = 17_000;
    let start = RandomState::new().hash_one(0) % COUNT;
    let mut ports = (start..start + COUNT).map(|number| (FIRST + number % COUNT) as u16);
    ports.find(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok()).expect("loopback has a free port")
}

fn text(path: &Path) -> String {
    path.to_str().expect("paths of tests are text").to_owned()
}
