//! Many connections that do the same thing over and over: warm-up, the measured time, the end.
//!
//! Each worker keeps its own tally, so nothing is shared on the hot path but the phase and a counter for progress.
//! An operation counts when it began in the measured time; a wrong one counts whenever it happened.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::check::Wrong;
use crate::histogram::Histogram;
use crate::place::Place;
use crate::run::Progress;

/// How long the last operations may take after the end.
pub const PATIENCE: Duration = Duration::from_secs(30);
pub const TICK: Duration = Duration::from_millis(200);
/// A worker whose server is gone gives up after so many tries.
const TRIES: u32 = 5;

const WARMING: u8 = 0;
const MEASURING: u8 = 1;
const ENDING: u8 = 2;

/// A connection on which one operation follows the other.
pub trait Connect: Sized + Send {
    fn connect(place: &Place) -> impl Future<Output = Result<Self, Wrong>> + Send;
}

/// One thing that is done over and over on a connection.
pub trait Operation: Send + 'static {
    type Connection: Connect;

    fn once(
        &mut self,
        connection: &mut Self::Connection,
        number: u64,
    ) -> impl Future<Output = Result<Done, Wrong>> + Send;
}

#[derive(Debug, Clone, Copy)]
pub struct Done {
    pub operations: u64,
    /// When the first event of a stream came.
    pub first: Option<Instant>,
}

impl Done {
    pub const ONE: Done = Done { operations: 1, first: None };
}

#[derive(Debug, Default)]
pub struct Tally {
    pub operations: u64,
    pub wrong: u64,
    pub first_wrong: Option<String>,
    pub latency: Histogram,
    pub first_event: Histogram,
}

impl Tally {
    pub fn wrong(&mut self, wrong: &impl std::fmt::Display) {
        self.wrong += 1;
        self.first_wrong.get_or_insert_with(|| wrong.to_string());
    }

    pub fn add(&mut self, other: Tally) {
        self.operations += other.operations;
        self.wrong += other.wrong;
        self.first_wrong = self.first_wrong.take().or(other.first_wrong);
        self.latency.add(&other.latency);
        self.first_event.add(&other.first_event);
    }
}

pub struct Stage {
    phase: AtomicU8,
    next: AtomicU64,
    done: AtomicU64,
    /// No operation with this number or a later one begins.
    end: u64,
}

/// How long a stage lasts.
#[derive(Debug, Clone, Copy)]
pub enum Extent {
    Time(Duration),
    Count(u64),
}

impl Extent {
    fn warm_up(self) -> Duration {
        match self {
            Extent::Time(time) => (time / 5).min(Duration::from_secs(1)),
            Extent::Count(_) => Duration::ZERO,
        }
    }
}

pub struct Outcome<O> {
    pub tally: Tally,
    pub operations: Vec<O>,
    pub started: Instant,
}

/// Runs all operations at the same time. `begin` is called when the measured time begins.
pub async fn perform<O: Operation>(
    place: &Place,
    operations: Vec<O>,
    extent: Extent,
    begin: impl FnOnce(),
    progress: &mut dyn FnMut(Progress),
) -> Outcome<O> {
    let end = match extent {
        Extent::Time(_) => u64::MAX,
        Extent::Count(count) => count + 1,
    };
    let stage = Arc::new(Stage {
        phase: AtomicU8::new(WARMING),
        // The probe was number 0.
        next: AtomicU64::new(1),
        done: AtomicU64::new(0),
        end,
    });
    let warm_up = extent.warm_up();
    if warm_up.is_zero() {
        stage.phase.store(MEASURING, Relaxed);
    }
    let mut workers = JoinSet::new();
    for operation in operations {
        workers.spawn(work(stage.clone(), place.clone(), operation));
    }
    sleep(warm_up).await;
    begin();
    let started = Instant::now();
    stage.phase.store(MEASURING, Relaxed);

    let mut outcome = Outcome { tally: Tally::default(), operations: vec![], started };
    let until = match extent {
        Extent::Time(time) => Some(started + time),
        Extent::Count(_) => None,
    };
    let mut gather = |joined: Result<(Tally, O), tokio::task::JoinError>| match joined {
        Ok((tally, operation)) => {
            outcome.tally.add(tally);
            outcome.operations.push(operation);
        }
        Err(error) => outcome.tally.wrong(&format!("a worker broke: {error}")),
    };
    let mut moved = (0, Instant::now());
    loop {
        let left = until.map_or(TICK, |until| until.saturating_duration_since(Instant::now()).min(TICK));
        if left.is_zero() {
            break;
        }
        match timeout(left, workers.join_next()).await {
            Ok(Some(joined)) => gather(joined),
            Ok(None) => break,
            Err(_) => {
                let done = stage.done.load(Relaxed);
                progress(Progress { done, elapsed: started.elapsed() });
                if done != moved.0 {
                    moved = (done, Instant::now());
                } else if until.is_none() && moved.1.elapsed() > PATIENCE {
                    // The server is silent; those who wait for it are counted below.
                    break;
                }
            }
        }
    }
    stage.phase.store(ENDING, Relaxed);
    let deadline = Instant::now() + PATIENCE;
    loop {
        match timeout(deadline.saturating_duration_since(Instant::now()), workers.join_next()).await {
            Ok(Some(joined)) => gather(joined),
            Ok(None) => break,
            Err(_) => {
                let count = workers.len() as u64;
                outcome.tally.wrong(&format!("no answer within {} s on {count} connections", PATIENCE.as_secs()));
                outcome.tally.wrong += count - 1;
                break;
            }
        }
    }
    outcome
}

async fn work<O: Operation>(stage: Arc<Stage>, place: Place, mut operation: O) -> (Tally, O) {
    let mut tally = Tally::default();
    let mut failures = 0;
    while failures < TRIES && stage.phase.load(Relaxed) != ENDING && stage.next.load(Relaxed) < stage.end {
        let mut connection = match O::Connection::connect(&place).await {
            Ok(connection) => connection,
            Err(wrong) => {
                tally.wrong(&format!("cannot connect to {}: {wrong}", place.authority));
                failures += 1;
                sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        while stage.phase.load(Relaxed) != ENDING {
            let number = stage.next.fetch_add(1, Relaxed);
            if number >= stage.end {
                break;
            }
            let counts = stage.phase.load(Relaxed) == MEASURING;
            let began = Instant::now();
            match operation.once(&mut connection, number).await {
                Ok(done) => {
                    failures = 0;
                    if counts {
                        tally.operations += done.operations;
                        tally.latency.record(began.elapsed());
                        if let Some(first) = done.first {
                            tally.first_event.record(first - began);
                        }
                    }
                    stage.done.fetch_add(done.operations, Relaxed);
                }
                Err(wrong) => {
                    tally.wrong(&wrong);
                    failures += 1;
                    // What is left of a wrong reply would be taken for the next one.
                    break;
                }
            }
        }
    }
    (tally, operation)
}
