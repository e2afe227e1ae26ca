//! Open files: as many as the system allows, shared out between connections and everything else.
//!
//! Shells and service managers start programs with a low limit that each may raise by itself. Sabir does so at its
//! start; the programs that it runs get the limit back that it was started with, since some of them cannot bear more.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// What the store, the log and the listeners hold open.
const OWN_FILES: u64 = 64;
/// What a running program costs: its guard's socket, two pipes, and what comes and goes at its start.
const FILES_PER_RUN: u64 = 8;
/// What is kept back at most, where programs do not need more.
const USUAL_RESERVE: u64 = 1024;
/// macOS takes no larger number, though it says that there is no limit.
const USUAL_MOST: u64 = 10_240;

/// How many files may be open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Descriptors {
    /// Before Sabir raised it.
    pub given: Option<u64>,
    pub limit: u64,
}

/// Raises the limit as far as it goes.
pub fn raise() -> Descriptors {
    let given = getrlimit(Resource::Nofile);
    let try_limit = |limit: Option<u64>| {
        let wanted = Rlimit { current: limit, maximum: given.maximum };
        setrlimit(Resource::Nofile, wanted).is_ok()
    };
    if !try_limit(given.maximum) {
        let _ = try_limit(Some(given.maximum.map_or(USUAL_MOST, |most| most.min(USUAL_MOST))));
    }
    let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    Descriptors { given: given.current, limit }
}

impl Descriptors {
    /// How many connections may be open while so many programs run.
    pub fn connections(&self, program_runs: usize) -> usize {
        let programs = (program_runs as u64).saturating_mul(FILES_PER_RUN);
        let usual = (self.limit / 4).min(USUAL_RESERVE);
        let reserve = OWN_FILES.saturating_add(programs).max(usual).min(self.limit / 2);
        usize::try_from(self.limit - reserve).unwrap_or(usize::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_leave_room_for_everything_else() {
        for (limit, runs, expected) in [
            (300, 0, 225),
            (300, 4, 204),
            (100, 0, 50),
            (1024, 0, 768),
            (1024, 100, 512),
            (20_000, 4, 18_976),
            (20_000, 400, 16_736),
            (1_048_576, 4, 1_047_552),
        ] {
            let descriptors = Descriptors { given: None, limit };
            assert_eq!(descriptors.connections(runs), expected, "{runs} runs of {limit}");
        }
    }
}
