//! Warm programs: processes that wait for the next message of their context.
//!
//! If its protocol takes several prompts in one process, a program stays for a while after its turn, so that the next
//! message of the conversation needs no start. It belongs to one agent, one caller and one context. Its output is read and
//! discarded meanwhile; its requests are refused. It is ended when its time is over, when too many wait, when the next turn
//! needs another program or session, and with Sabir. If the next turn of its context does not use it, that turn waits until
//! it is gone: two programs must not work in one session.
//!
//! ```text
//! keep ──> waiting ──> take: the next turn runs in it
//!            │
//!            └──> ending: time over, too many, does not fit, closed its output, printed too much ──> gone
//! ```

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sabir_engine::ProgramCredential;
use sabir_model::{ContextId, Owner};
use tokio::sync::{oneshot, watch};
use tokio::time::{Instant, sleep_until, timeout};

use super::reuse_key::ReuseKey;
use crate::adapter::Adapter;
use crate::process::{Child, Descendants, Output};

/// How many programs may wait at the same time, over all agents: each may use some hundred megabytes.
const MAX_WAITING: usize = 8;

/// How long the rest of an incomplete line may take before the next turn begins.
const REST_OF_LINE: Duration = Duration::from_secs(1);

/// The programs that wait. Clones share them.
#[derive(Clone, Default)]
pub struct WarmPrograms(Arc<Mutex<Waiting>>);

#[derive(Default)]
struct Waiting {
    /// Oldest first. Programs that are being ended stay here until they are gone.
    entries: VecDeque<Entry>,
    last_number: u64,
    /// The server stops: no program waits any more.
    is_closed: bool,
}

struct Entry {
    number: u64,
    key: WarmKey,
    reuse_key: ReuseKey,
    /// Hands the program to a turn. Dropping it ends the program. `None`: the program is being ended, or has a turn again.
    request: Option<oneshot::Sender<oneshot::Sender<RunningProgram>>>,
    /// Closed when the program has ended or has a turn again.
    gone: watch::Receiver<()>,
}

/// Whose program it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct WarmKey {
    pub agent: String,
    pub owner: Owner,
    pub context: ContextId,
}

/// A running program with its adapter.
pub(super) struct RunningProgram {
    pub child: Child,
    pub adapter: Box<dyn Adapter>,
    /// Its processes before it did any work.
    pub own_processes: Descendants,
    /// With which it asks other agents, if it may. It ends with the program.
    pub credential: Option<Arc<ProgramCredential>>,
}

impl WarmPrograms {
    /// Lets a program wait for the next turn, for at most this long.
    pub(super) fn keep(&self, key: WarmKey, reuse_key: ReuseKey, program: RunningProgram, limit: Duration) {
        let (request, requested) = oneshot::channel();
        let (going, gone) = watch::channel(());
        let number = {
            let mut waiting = self.waiting();
            waiting.last_number += 1;
            let number = waiting.last_number;
            for older in waiting.entries.iter_mut().filter(|entry| entry.key == key) {
                older.request = None;
            }
            // Without a sender the program ends at once.
            let request = (!waiting.is_closed).then_some(request);
            waiting.entries.push_back(Entry { number, key, reuse_key, request, gone });
            let count = waiting.entries.iter().filter(|entry| entry.request.is_some()).count();
            let oldest = waiting.entries.iter_mut().filter(|entry| entry.request.is_some());
            for entry in oldest.take(count.saturating_sub(MAX_WAITING)) {
                entry.request = None;
            }
            number
        };
        let warm = self.clone();
        tokio::spawn(async move {
            wait(program, requested, Instant::now() + limit).await;
            warm.waiting().entries.retain(|entry| entry.number != number);
            drop(going);
        });
    }

    /// Takes the waiting program, if its `reuse_key` matches. Any other program with this key is gone when this returns.
    pub(super) async fn take(&self, key: &WarmKey, reuse_key: &ReuseKey) -> Option<RunningProgram> {
        let mut given = None;
        let mut leaving = Vec::new();
        for entry in self.waiting().entries.iter_mut().filter(|entry| entry.key == *key) {
            let request = entry.request.take().filter(|_| entry.reuse_key == *reuse_key);
            if let Some(request) = request {
                let (give, program) = oneshot::channel();
                given = request.send(give).is_ok().then_some(program);
            }
            leaving.push(entry.gone.clone());
        }
        let program = match given {
            Some(given) => given.await.ok(),
            None => None,
        };
        all_gone(leaving).await;
        program
    }

    /// Ends all programs, and returns when they have ended. Programs whose turn ends later are ended, too.
    pub async fn close(&self) {
        let ending = {
            let mut waiting = self.waiting();
            waiting.is_closed = true;
            let end = |entry: &mut Entry| {
                entry.request = None;
                entry.gone.clone()
            };
            waiting.entries.iter_mut().map(end).collect()
        };
        all_gone(ending).await;
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn all_gone(leaving: Vec<watch::Receiver<()>>) {
    for mut gone in leaving {
        // Nothing is ever sent: this resolves when the sender is dropped.
        let _ = gone.changed().await;
    }
}

impl fmt::Debug for WarmPrograms {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "WarmPrograms({})", self.waiting().entries.len())
    }
}

/// Waits until a turn takes the program, or ends it.
async fn wait(
    mut program: RunningProgram,
    mut requested: oneshot::Receiver<oneshot::Sender<RunningProgram>>,
    until: Instant,
) {
    let request = loop {
        tokio::select! {
            biased;
            // Read its output first: none of it belongs to the next turn.
            output = program.child.next() => {
                if !program.on_line_between_turns(output).await {
                    break None;
                }
            }
            request = &mut requested => break request.ok(),
            () = sleep_until(until) => break None,
        }
    };
    match request {
        Some(give) => {
            if let Err(program) = give.send(program) {
                program.end().await;
            }
        }
        None => program.end().await,
    }
}

impl RunningProgram {
    /// Reads all output until now: later output belongs to the next turn. `false`: the program cannot have another turn.
    pub async fn catch_up(&mut self) -> bool {
        loop {
            match timeout(REST_OF_LINE, self.child.next_available()).await {
                Ok(None) => return self.adapter.awaits_next_turn(),
                Ok(Some(output)) => {
                    if !self.on_line_between_turns(output).await {
                        return false;
                    }
                }
                Err(_) => return false,
            }
        }
    }

    /// Ends the program, and returns when it is gone.
    pub async fn end(mut self) {
        self.child.close_input();
        self.child.stop().await;
    }

    /// Whether the program still waits for a turn after this output.
    async fn on_line_between_turns(&mut self, output: Output) -> bool {
        match output {
            Output::Line(line) => {
                for answer in self.adapter.on_line_between_turns(&line) {
                    let _ = self.child.write_line(&answer).await;
                }
                self.adapter.awaits_next_turn()
            }
            Output::LineTooLong(_) => true,
            Output::LimitReached | Output::Closed => false,
        }
    }
}
