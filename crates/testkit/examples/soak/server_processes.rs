//! The processes of the server: started, killed or stopped, and started again on the same file with other settings.

use std::fs::File;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, RwLock};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use sabir_testkit::process::{SabirOptions, SabirProcess};

use crate::nodes::Nodes;
use crate::promise;

/// What runs may take to finish after SIGTERM; short, so that some do not.
const GRACE: Duration = Duration::from_millis(1500);
/// What they have of it at least; the rest is for settling those that do not, and for the last answers.
pub const WORK_GRACE: Duration = Duration::from_millis(500);
/// What a busy machine may add.
const BUSY: Duration = Duration::from_secs(3);
/// How long settled tasks are kept where retention is on.
pub const MAX_AGE: Duration = Duration::from_secs(1);

pub struct ServerProcesses {
    binary: PathBuf,
    folder: PathBuf,
    store: ServerStore,
    pub log: PathBuf,
    now: RwLock<Option<SocketAddr>>,
    /// Counts every start and every end, just before the signal is sent.
    epoch: AtomicU64,
    pub pid: AtomicU64,
    pub is_over: AtomicBool,
    all: Mutex<Vec<ServerProcess>>,
    /// When the disk was full: from and until, the last one perhaps for ever.
    full: Mutex<Vec<(i64, i64)>>,
}

/// Where the tasks are.
pub enum ServerStore {
    File(PathBuf),
    /// A database that several nodes share. Each of them is a process that ends and begins by itself.
    Shared(Box<Nodes>),
}

/// One process of the server; times in milliseconds since 1970.
#[derive(Debug, Clone, Copy)]
pub struct ServerProcess {
    /// Which one of the nodes it is; always 0 if there is one server.
    pub node: usize,
    pub is_node: bool,
    /// 0 until it is ready.
    pid: u32,
    pub settings: Settings,
    /// When it was started.
    pub began: i64,
    /// When it was ready.
    pub ready: i64,
    pub end: Option<End>,
}

#[derive(Debug, Clone, Copy)]
pub struct End {
    pub how: How,
    /// When the signal was sent.
    pub from: i64,
    /// When the process was gone.
    pub gone: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    Killed,
    Stopped,
}

/// The settings that differ from process to process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    pub recovery: Recovery,
    pub retention: Retention,
}

/// What becomes of tasks that were running when the last process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recovery {
    Fail,
    Requeue,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retention {
    KeepAll,
    /// Settled tasks are deleted when they are older than `MAX_AGE`.
    Sweep,
}

impl Settings {
    pub const PLAIN: Settings = Settings { recovery: Recovery::Fail, retention: Retention::KeepAll };
}

impl ServerProcesses {
    /// The server works in the folder.
    pub fn new(binary: &Path, folder: &Path, store: ServerStore) -> Self {
        Self {
            binary: binary.to_owned(),
            folder: folder.to_owned(),
            store,
            log: folder.join("server.log"),
            now: RwLock::new(None),
            epoch: AtomicU64::new(0),
            pid: AtomicU64::new(0),
            is_over: AtomicBool::new(false),
            all: Mutex::new(Vec::new()),
            full: Mutex::new(Vec::new()),
        }
    }

    /// The nodes, if there are several.
    pub fn nodes(&self) -> Option<&Nodes> {
        match &self.store {
            ServerStore::File(_) => None,
            ServerStore::Shared(nodes) => Some(nodes),
        }
    }

    /// Starts the server, or all nodes.
    pub fn start_all(&self, settings: Settings) -> Vec<SabirProcess> {
        let count = self.nodes().map_or(1, |nodes| nodes.count);
        (0..count).map(|node| self.start_node(node, settings)).collect()
    }

    pub fn start(&self, settings: Settings) -> SabirProcess {
        self.start_node(0, settings)
    }

    pub fn start_node(&self, node: usize, settings: Settings) -> SabirProcess {
        let log = File::options().create(true).append(true).open(&self.log).expect("the log can be written");
        let instant = Instant::now();
        let is_node = self.nodes().is_some();
        let process = ServerProcess { node, is_node, pid: 0, settings, began: now(), ready: i64::MAX, end: None };
        // Known before it begins, since it may sweep before it is ready.
        self.all().push(process);
        let server = self.options(node, settings).start_with(Stdio::from(log));
        let took = instant.elapsed();
        promise::STARTS.check(took < Duration::from_secs(10), || format!("it took {took:?}"));
        if let Some(process) = self.all().last_mut() {
            (process.ready, process.pid) = (now(), server.pid());
        }
        self.pid.store(server.pid().into(), Ordering::SeqCst);
        let address = match self.nodes() {
            // That one more is there disturbs nobody.
            Some(nodes) => {
                nodes.add(server.address);
                nodes.address()
            }
            None => {
                self.epoch.fetch_add(1, Ordering::SeqCst);
                server.address
            }
        };
        *self.now.write().expect("nobody panics over it") = Some(address);
        server
    }

    fn options(&self, node: usize, settings: Settings) -> SabirOptions {
        let mut options = SabirOptions::new(&self.binary.to_string_lossy(), &self.folder);
        match &self.store {
            ServerStore::File(file) => options.store = format!("sqlite:{}", file.display()),
            ServerStore::Shared(nodes) => options = nodes.options(options, node, &self.folder),
        }
        options = options.variable("PUSH_NOTIFICATION_ALLOWED_CIDRS", "127.0.0.0/8");
        options = options.variable("SABIR_SERVER_GRACE", &format!("{}ms", GRACE.as_millis()));
        if settings.recovery == Recovery::Requeue {
            options = options.variable("SABIR_RECOVERY_RUNNING", "requeue");
        }
        if settings.retention == Retention::Sweep {
            options = options.variable("SABIR_RETENTION_MAX_AGE", &format!("{}ms", MAX_AGE.as_millis()));
        }
        options
    }

    pub fn end(&self, mut server: SabirProcess, how: How) {
        if let Some(nodes) = self.nodes() {
            nodes.remove(server.address);
        }
        if self.nodes().is_none_or(Nodes::is_empty) {
            *self.now.write().expect("nobody panics over it") = None;
        }
        let pid = server.pid();
        let _ = self.pid.compare_exchange(pid.into(), 0, Ordering::SeqCst, Ordering::SeqCst);
        self.epoch.fetch_add(1, Ordering::SeqCst);
        let from = now();
        match how {
            How::Killed => server.kill(),
            How::Stopped => {
                let began = Instant::now();
                server.terminate();
                let status = server.wait(Duration::from_secs(60));
                let took = began.elapsed();
                promise::STOPS.check(status.success() && took < GRACE + BUSY, || format!("{status} in {took:?}"));
            }
        }
        if let Some(process) = self.all().iter_mut().rev().find(|process| process.pid == pid) {
            process.end = Some(End { how, from, gone: now() });
        }
    }

    /// All processes so far, the oldest first.
    pub fn so_far(&self) -> Vec<ServerProcess> {
        self.all().clone()
    }

    fn all(&self) -> std::sync::MutexGuard<'_, Vec<ServerProcess>> {
        self.all.lock().expect("nobody panics over it")
    }

    /// Where the server is, and in which epoch; none while there is none.
    pub fn server(&self) -> Option<(SocketAddr, u64)> {
        let now = self.now.read().expect("nobody panics over it");
        now.map(|address| (address, self.epoch.load(Ordering::SeqCst)))
    }

    /// Whether the server that was there in this epoch is there still, and nobody has signalled it.
    pub fn is_still(&self, epoch: u64) -> bool {
        self.epoch.load(Ordering::SeqCst) == epoch
    }

    /// The settings of the present process, or else of the last one.
    pub fn settings(&self) -> Settings {
        self.all().last().map_or(Settings::PLAIN, |process| process.settings)
    }

    /// Whether retention has been on at any time since this one.
    pub fn has_swept_since(&self, time: i64) -> bool {
        let sweeps = |process: &ServerProcess| process.settings.retention == Retention::Sweep;
        self.all().iter().any(|process| sweeps(process) && process.end.is_none_or(|end| end.gone >= time))
    }

    /// The disk is about to become full, or has room again.
    pub fn disk_is_full(&self, is_full: bool) {
        let mut full = self.full.lock().expect("nobody panics over it");
        match full.last_mut() {
            Some(last) if !is_full => last.1 = now(),
            _ if is_full => full.push((now(), i64::MAX)),
            _ => {}
        }
    }

    /// Whether the disk was full at any time since then.
    pub fn was_full_since(&self, time: i64) -> bool {
        self.full.lock().expect("nobody panics over it").iter().any(|(_, until)| *until >= time)
    }

    pub fn is_over(&self) -> bool {
        self.is_over.load(Ordering::SeqCst)
    }

    /// Ends the traffic when it is dropped, so that nobody waits for a server that could not be started.
    pub fn over_when_dropped(&self) -> OverWhenDropped<'_> {
        OverWhenDropped(self)
    }
}

pub struct OverWhenDropped<'a>(&'a ServerProcesses);

impl Drop for OverWhenDropped<'_> {
    fn drop(&mut self) {
        self.0.is_over.store(true, Ordering::SeqCst);
    }
}

pub fn now() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_millis() as i64)
}
