//! Tells the operator of refused credentials, in few lines: a stranger must not be able to fill the disk with them.
//! For the same reason they are not in the audit log.

use std::net::IpAddr;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Between two lines there is at least this time.
const INTERVAL: Duration = Duration::from_secs(10);

#[derive(Default)]
pub(crate) struct RefusalLog(Mutex<LineLimit>);

#[derive(Default)]
struct LineLimit {
    last: Option<Instant>,
    /// Refusals since the last line.
    count: u64,
}

impl RefusalLog {
    pub(crate) fn note(&self, peer: Option<IpAddr>) {
        let mut limit = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(count) = limit.add(Instant::now()) {
            drop(limit);
            let peer = peer.map(|peer| peer.to_string()).unwrap_or_default();
            tracing::info!(peer, count, "a request without a valid credential was refused");
        }
    }
}

impl LineLimit {
    /// How many refusals the next line stands for; `None`: it is too early for a line.
    fn add(&mut self, now: Instant) -> Option<u64> {
        self.count += 1;
        if self.last.is_some_and(|last| now.duration_since(last) < INTERVAL) {
            return None;
        }
        self.last = Some(now);
        Some(std::mem::take(&mut self.count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_one_line_for_many_refusals() {
        let (mut limit, start) = (LineLimit::default(), Instant::now());
        let lines: Vec<_> = (0..30_u64).filter_map(|second| limit.add(start + Duration::from_secs(second))).collect();
        assert_eq!(lines, [1, 10, 10]);
    }
}
