//! The promises: how often each was put to the test, and who found it broken.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// How many offenders are shown, and how much of each.
const SHOWN: usize = 5;
const WIDTH: usize = 600;

pub struct Promise {
    pub words: &'static str,
    /// What is counted.
    unit: &'static str,
    kept: AtomicU64,
    broken: Mutex<Broken>,
    /// Why it cannot be put to the test on this machine.
    skipped: Mutex<Option<String>>,
}

#[derive(Default)]
struct Broken {
    count: u64,
    first: Vec<String>,
}

impl Promise {
    const fn new(words: &'static str, unit: &'static str) -> Self {
        let broken = Mutex::new(Broken { count: 0, first: Vec::new() });
        Self { words, unit, kept: AtomicU64::new(0), broken, skipped: Mutex::new(None) }
    }

    /// One test of it: the offender is told only when it fails.
    pub fn check(&self, is_kept: bool, offender: impl FnOnce() -> String) -> bool {
        if is_kept {
            self.kept.fetch_add(1, Ordering::Relaxed);
        } else {
            let mut broken = self.broken.lock().expect("nobody panics while counting");
            broken.count += 1;
            if broken.first.len() < SHOWN {
                broken.first.push(offender().chars().take(WIDTH).collect());
            }
        }
        is_kept
    }

    /// How often it was found kept.
    pub fn kept(&self) -> u64 {
        self.kept.load(Ordering::Relaxed)
    }

    pub fn breaks(&self) -> u64 {
        self.broken.lock().expect("nobody panics while counting").count
    }

    fn print(&self) -> bool {
        let kept = self.kept();
        let broken = self.broken.lock().expect("nobody panics while counting");
        if let Some(reason) = &*self.skipped.lock().expect("nobody panics while counting") {
            println!("{:<7} {:<58} {reason}", "skipped", self.words);
            return true;
        }
        // What was never put to the test has not been shown to hold.
        let is_held = broken.count == 0 && kept > 0;
        let mark = if is_held { "ok" } else { "FAILED" };
        let count = match broken.count {
            0 => format!("{kept} {}", self.unit),
            count => format!("{count} of {} {}", count + kept, self.unit),
        };
        println!("{mark:<7} {:<58} {count}", self.words);
        for offender in &broken.first {
            println!("          {offender}");
        }
        is_held
    }
}

macro_rules! promises {
    ($($(#[$doc:meta])* $name:ident: $words:literal, $unit:literal;)*) => {
        $($(#[$doc])* pub static $name: Promise = Promise::new($words, $unit);)*
        static ALL: &[&Promise] = &[$(&$name),*];
    };
}

promises! {
    KEPT: "nothing acknowledged is lost", "answers";
    STATES: "what was told of a task is in its log, an end stays the end", "answers";
    MADE: "what was told of artifacts is what was made", "answers";
    BYTES: "every frame seen is in the log under its number, same bytes", "frames";
    SNAPSHOTS: "a snapshot is the log up to its number", "snapshots";
    ORDER: "numbers have no gaps and are in order", "streams";
    PICKED_UP: "a stream that broke is picked up where it broke", "streams";
    ENDS: "a stream ends with its run, not before", "streams";
    SETTLED: "nobody is left working", "tasks";
    STORIES: "every log is the whole story of its turns", "tasks";
    INTERRUPTED: "only what ran in a crash is interrupted, and says so", "tasks";
    RERUN: "a task that runs again has one end, after three runs at most", "tasks";
    WAITING: "who waits keeps waiting, and can be answered", "tasks";
    FOLLOW_UPS: "a message to a working task is in its history, once", "messages";
    ASKED: "the answer that the log tells is the one that the program read", "questions";
    ACTED: "a program runs for what is stored, and no oftener than the log says", "runs";
    FRONTED: "what the remote agent made is what callers have", "tasks";
    FAULTED: "a front fails a task only for what its remote agent did", "failures";
    SENT_ONCE: "no message is sent to a remote agent twice", "messages";
    ENDED_THERE: "what is canceled here is canceled at the remote agent", "cancels";
    REFUSED: "what was refused was not done", "refusals";
    STOPPED: "cancel means stopped, and stays so", "cancels";
    ONCE: "one task for an Idempotency-Key, one answer too", "keys";
    UNASKED: "no task that nobody asked for, none made twice", "tasks";
    SWEPT: "retention takes settled tasks only, and for good", "tasks";
    TOTALS: "totals and pages of lists agree with the tasks", "lists";
    IN_TURN: "one run at a time in a context", "runs";
    ANSWERED: "every request is answered, and as it should", "requests";
    ARRIVES: "every webhook arrives, in order", "checks";
    SAME_ID: "a repeated delivery has the same id", "repetitions";
    MEMORY: "memory is flat", "samples";
    FILES: "file descriptors are flat", "samples";
    QUIET: "no panic and no error in the server's log", "lines";
    STOPS: "SIGTERM ends it in time, with exit code 0", "stops";
    STARTS: "it starts again on the same file", "starts";
    FULL: "on a full disk callers are refused with advice to try again", "refusals";
    ROOM: "when there is room again it works by itself", "times";
}

/// One line for each, and one for all. Whether all were held.
pub fn print() -> bool {
    let held = ALL.iter().filter(|promise| promise.print()).count();
    println!("{held} promises held, {} broken", ALL.len() - held);
    held == ALL.len()
}

/// These cannot be put to the test here.
pub fn skip(promises: &[&Promise], reason: &str) {
    for promise in promises {
        *promise.skipped.lock().expect("nobody panics while counting") = Some(reason.to_owned());
    }
}

/// How many times any of them was found broken so far.
pub fn breaks() -> u64 {
    ALL.iter().map(|promise| promise.breaks()).sum()
}
