//! The remote agents behind the fronts. They live in this process, so they outlive every server process.
//!
//! Each changes what it does wrong again and again (`upstream_faults`), and remembers when it did what, so that a failed
//! task can be held against it. What truly became of every message is in `RemoteAgent::tasks`.

use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use sabir_testkit::remote::{Faults, RemoteAgent, TasksAfterDeath};

use crate::agents::{Agent, FRONTS, Kind};
use crate::random::Random;
use crate::server_processes::{self, ServerProcesses};
use crate::upstream_faults::{self, Trouble};

pub struct Upstreams {
    /// In the order of the fronts.
    all: Vec<Upstream>,
    seed: u64,
}

pub struct Upstream {
    front: &'static Agent,
    pub remote: RemoteAgent,
    periods: Mutex<Vec<Period>>,
}

/// A time in which a remote agent had one kind of trouble; in milliseconds since 1970.
#[derive(Debug, Clone, Copy)]
struct Period {
    trouble: Trouble,
    from: i64,
    until: i64,
}

/// Whether a remote agent was gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Restart {
    Yes,
    No,
}

/// How long one kind of trouble lasts, in milliseconds.
const SHORTEST: u64 = 150;
const LONGEST: u64 = 2000;
/// How long a remote agent is gone whose connections are reset and nothing else.
const BLINK: Duration = Duration::from_millis(30);
/// How long trouble may be felt after it: connections that were reset are noticed when they are used next.
const AFTERMATH_MS: i64 = 500;
/// How much of the past is reported.
const REPORTED_MS: i64 = 5000;

impl Upstreams {
    pub fn start(seed: u64) -> Self {
        let start = |front: &'static Agent| {
            let Kind::Front(protocol) = front.kind else { unreachable!("a front stands for a remote agent") };
            Upstream { front, remote: RemoteAgent::start(protocol), periods: Mutex::default() }
        };
        Self { all: FRONTS.iter().map(start).collect(), seed }
    }

    pub fn of(&self, front: &Agent) -> &RemoteAgent {
        &self.upstream(front).remote
    }

    pub fn upstream(&self, front: &Agent) -> &Upstream {
        self.all.iter().find(|upstream| upstream.front == front).expect("each front has a remote agent")
    }

    pub fn all(&self) -> impl Iterator<Item = (&'static Agent, &Upstream)> {
        self.all.iter().map(|upstream| (upstream.front, upstream))
    }

    pub fn open_connections(&self) -> usize {
        self.all.iter().map(|upstream| upstream.remote.open_connections()).sum()
    }

    /// Makes trouble until the traffic is over.
    pub fn run(&self, processes: &ServerProcesses) {
        thread::scope(|scope| {
            for (place, upstream) in self.all.iter().enumerate() {
                let random = Random::new(self.seed ^ ((place as u64 + 1) << 48));
                scope.spawn(move || upstream.run(processes, random));
            }
        });
    }
}

impl Upstream {
    fn run(&self, processes: &ServerProcesses, mut random: Random) {
        let mut event_ids = upstream_faults::event_ids(&mut random);
        while !processes.is_over() {
            let until = Instant::now() + Duration::from_millis(random.between(SHORTEST, LONGEST));
            let (trouble, faults) = upstream_faults::at_random(&mut random);
            self.begin(trouble, Faults { event_ids, ..faults });
            while Instant::now() < until && !processes.is_over() {
                thread::sleep(Duration::from_millis(10));
            }
            if self.end(trouble) == Restart::Yes {
                // A server that comes back may be a newer one.
                event_ids = upstream_faults::event_ids(&mut random);
            }
            // They are not looked at, and a long run has many.
            self.remote.forget_requests();
        }
        self.remote.set_faults(Faults { event_ids, ..Faults::default() });
        self.remote.come_back();
    }

    fn begin(&self, trouble: Trouble, faults: Faults) {
        self.periods().push(Period { trouble, from: server_processes::now(), until: i64::MAX });
        self.remote.set_faults(faults);
        if trouble == Trouble::Gone {
            self.remote.die(TasksAfterDeath::Kept);
        }
    }

    fn end(&self, trouble: Trouble) -> Restart {
        if trouble == Trouble::Silent {
            // Streams that have fallen silent stay so until their connections end.
            self.remote.die(TasksAfterDeath::Kept);
            thread::sleep(BLINK);
        }
        let restart = if self.remote.is_listening() { Restart::No } else { Restart::Yes };
        self.remote.come_back();
        if let Some(period) = self.periods().last_mut() {
            period.until = server_processes::now();
        }
        restart
    }

    /// Whether there was any of these troubles between these times, or shortly before.
    pub fn had(&self, troubles: &[Trouble], from: i64, until: i64) -> bool {
        self.periods().iter().any(|period| {
            let overlaps = period.from <= until && period.until.saturating_add(AFTERMATH_MS) >= from;
            overlaps && troubles.contains(&period.trouble)
        })
    }

    /// What happened around this time, for the report.
    pub fn around(&self, time: i64) -> String {
        let is_near = |period: &&Period| period.from <= time && period.until.saturating_add(REPORTED_MS) >= time;
        let near: Vec<String> = self
            .periods()
            .iter()
            .filter(is_near)
            .map(|period| format!("{:?} from {} until {}", period.trouble, period.from, period.until))
            .collect();
        near.join(", ")
    }

    fn periods(&self) -> std::sync::MutexGuard<'_, Vec<Period>> {
        self.periods.lock().expect("nobody panics over it")
    }
}
