//! Signals: what asks a server to stop, and how urgently.
//!
//! SIGTERM and Ctrl-C ask to stop. SIGHUP means two things: to a program with a terminal, that its terminal has closed;
//! to a service, that its configuration has changed. Of that only the files of TLS can be read again.

use std::fs::File;
use std::sync::Arc;

use anyhow::Context;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::Notify;

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopRequest {
    Stop,
    /// By Ctrl-C.
    Interrupt,
}

pub struct Signals {
    terminate: Signal,
    interrupt: Signal,
    /// `None`: whoever started Sabir wants it to outlive the terminal, as `nohup` does.
    hangup: Option<Signal>,
    has_terminal: bool,
    /// Who reads files again on SIGHUP.
    reload: Arc<Notify>,
}

impl Signals {
    pub fn new(reload: Arc<Notify>) -> anyhow::Result<Self> {
        let hangup = match is_hangup_ignored() {
            true => None,
            false => Some(signal(SignalKind::hangup()).context("cannot listen for SIGHUP")?),
        };
        Ok(Self {
            terminate: signal(SignalKind::terminate()).context("cannot listen for SIGTERM")?,
            interrupt: signal(SignalKind::interrupt()).context("cannot listen for Ctrl-C")?,
            hangup,
            // Asked now: once it has closed, it cannot be opened any more.
            has_terminal: File::open("/dev/tty").is_ok(),
            reload,
        })
    }

    pub async fn next(&mut self) -> StopRequest {
        loop {
            tokio::select! {
                _ = self.terminate.recv() => return StopRequest::Stop,
                _ = self.interrupt.recv() => return StopRequest::Interrupt,
                () = received(&mut self.hangup) => {
                    if self.has_terminal {
                        return StopRequest::Stop;
                    }
                    self.reload.notify_one();
                }
            }
        }
    }
}

async fn received(signal: &mut Option<Signal>) {
    match signal {
        Some(signal) => drop(signal.recv().await),
        None => std::future::pending().await,
    }
}

/// Whether SIGHUP was already ignored when Sabir was started. Only Linux tells.
fn is_hangup_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    // SIGHUP is 1, the lowest bit.
    ignored.is_some_and(|mask| mask & 1 == 1)
}
