//! Memory and file descriptors of the server, looked at again and again.

use std::fs;
use std::sync::Mutex;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use crate::promise;
use crate::server_processes::ServerProcesses;
use crate::upstreams::Upstreams;

const PAUSE: Duration = Duration::from_millis(200);
/// What a process may grow by after its first half: far less than what passes through it.
const GROWTH: u64 = 16 << 20;
/// What it may ever hold.
const MOST: u64 = 256 << 20;
/// Four connections for each client at most, and what the server has of its own.
const FILES: usize = 4 * crate::phase::CLIENTS as usize + 64;
/// Connections of the store that are opened when they are needed first.
const READERS: usize = 8;
/// Connections to receivers of webhooks, which are kept for a while.
const WEBHOOKS: usize = 24;
/// Connections to remote agents which those have closed already.
const CLOSING: usize = 32;
/// What closing may take.
const PATIENCE: Duration = Duration::from_secs(10);

#[derive(Default)]
pub struct Sampler {
    samples: Mutex<Vec<Sample>>,
}

#[derive(Clone, Copy)]
pub struct Sample {
    pid: u64,
    pub resident: u64,
    pub files: usize,
}

impl Sampler {
    /// Until the traffic is over.
    pub fn run(&self, processes: &ServerProcesses, upstreams: &Upstreams) {
        while !processes.is_over() {
            self.take(processes.pid.load(Ordering::SeqCst), upstreams);
            thread::sleep(PAUSE);
        }
    }

    fn take(&self, pid: u64, upstreams: &Upstreams) {
        let before = upstreams.open_connections();
        if let Some(sample) = sample(pid) {
            let files = FILES + CLOSING + before.max(upstreams.open_connections());
            let is_bounded = sample.resident <= MOST;
            promise::MEMORY.check(is_bounded, || format!("{} MiB", sample.resident >> 20));
            promise::FILES.check(sample.files <= files, || format!("{} files are open", sample.files));
            self.samples.lock().expect("nobody panics over it").push(sample);
        }
    }

    /// The most that the server held so far.
    pub fn most(&self) -> Option<Sample> {
        self.samples.lock().expect("nobody panics over it").iter().max_by_key(|sample| sample.resident).copied()
    }

    /// The process did not grow in its second half, and closed its files when all clients had gone.
    pub fn check_process(&self, pid: u64, at_start: Option<Sample>, upstreams: &Upstreams) {
        let samples: Vec<Sample> = {
            let samples = self.samples.lock().expect("nobody panics over it");
            samples.iter().filter(|sample| sample.pid == pid).copied().collect()
        };
        let (first, second) = samples.split_at(samples.len() / 2);
        let most = |samples: &[Sample]| samples.iter().map(|sample| sample.resident).max().unwrap_or(0);
        let (first, second) = (most(first), most(second));
        // A process that has just been started has no first half.
        let is_flat = samples.len() < 2 || second <= first + first / 4 + GROWTH;
        promise::MEMORY.check(is_flat, || {
            format!("{} MiB in the first half of the longest process, {} MiB in the second", first >> 20, second >> 20)
        });
        let Some(at_start) = at_start else { return };
        let began = Instant::now();
        let mut files = usize::MAX;
        while began.elapsed() < PATIENCE {
            // Connections to remote agents are kept for a while.
            let kept = upstreams.open_connections();
            files = sample(pid).map_or(usize::MAX, |sample| sample.files.saturating_sub(kept));
            if files <= at_start.files + READERS + WEBHOOKS {
                break;
            }
            thread::sleep(PAUSE);
        }
        promise::FILES.check(files <= at_start.files + READERS + WEBHOOKS, || {
            format!("{} at the start, {files} when all clients had gone", at_start.files)
        });
    }
}

pub fn sample(pid: u64) -> Option<Sample> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
    let kilobytes: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    let files = fs::read_dir(format!("/proc/{pid}/fd")).ok()?.count();
    Some(Sample { pid, resident: kilobytes * 1024, files })
}
