//! The server's lives: started, killed or asked to stop, and started again on the same file.

use std::fs::File;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, RwLock};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use sabir_testkit::process::{Options, Sabir};

use crate::promise;

/// What runs may take to finish after SIGTERM; short, so that some do not.
pub const GRACE: Duration = Duration::from_millis(1500);
/// What the server may take beyond it to store the last words.
const LAST_WORDS: Duration = Duration::from_secs(3);

pub struct Lives {
    options: Options,
    pub log: PathBuf,
    now: RwLock<Option<SocketAddr>>,
    /// Counts every beginning and every end, just before the signal is sent.
    epoch: AtomicU64,
    pub pid: AtomicU64,
    pub is_over: AtomicBool,
    pub ends: Mutex<Vec<End>>,
}

/// How a life ended; times in milliseconds since 1970.
#[derive(Debug, Clone, Copy)]
pub struct End {
    pub how: How,
    /// When the signal was sent.
    pub from: i64,
    /// When the process was gone.
    pub gone: i64,
    /// When the next one was ready.
    pub until: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    Killed,
    Stopped,
}

impl Lives {
    pub fn new(binary: &str, folder: &Path) -> Self {
        let grace = format!("{}ms", GRACE.as_millis());
        Self {
            options: Options::new(binary, folder).variable("SABIR_SERVER_GRACE", &grace),
            log: folder.join("server.log"),
            now: RwLock::new(None),
            epoch: AtomicU64::new(0),
            pid: AtomicU64::new(0),
            is_over: AtomicBool::new(false),
            ends: Mutex::new(Vec::new()),
        }
    }

    pub fn start(&self) -> Sabir {
        let log = File::options().create(true).append(true).open(&self.log).expect("the log can be written");
        let began = Instant::now();
        let server = self.options.start_with(Stdio::from(log));
        let took = began.elapsed();
        promise::STARTS.check(took < Duration::from_secs(10), || format!("it took {took:?}"));
        if let Some(end) = self.ends.lock().expect("nobody panics over it").last_mut() {
            end.until = now();
        }
        self.pid.store(server.pid().into(), Ordering::SeqCst);
        self.epoch.fetch_add(1, Ordering::SeqCst);
        *self.now.write().expect("nobody panics over it") = Some(server.address);
        server
    }

    pub fn end(&self, mut server: Sabir, how: How) {
        *self.now.write().expect("nobody panics over it") = None;
        self.pid.store(0, Ordering::SeqCst);
        self.epoch.fetch_add(1, Ordering::SeqCst);
        let from = now();
        match how {
            How::Killed => server.kill(),
            How::Stopped => {
                let began = Instant::now();
                server.terminate();
                let status = server.wait(Duration::from_secs(60));
                let took = began.elapsed();
                promise::STOPS.check(status.success() && took < GRACE + LAST_WORDS, || format!("{status} in {took:?}"));
            }
        }
        let gone = now();
        self.ends.lock().expect("nobody panics over it").push(End { how, from, gone, until: i64::MAX });
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

    pub fn is_over(&self) -> bool {
        self.is_over.load(Ordering::SeqCst)
    }
}

pub fn now() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_millis() as i64)
}
