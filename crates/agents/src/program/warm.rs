//! Programs that wait for the next message of their context.
//!
//! Where a protocol takes several prompts in one process, a program that has finished its turn stays for a while, so that
//! the next message of the conversation costs no start. It belongs to one agent, one caller and one context. What it
//! prints meanwhile is read and thrown away; what it asks is refused. It is ended when its time is over, when too many
//! wait, when the next turn needs another folder, model or session, and with Sabir.
//!
//! ```text
//! keep ──> waiting ──> take: the next turn runs in it
//!            │
//!            └──> ended: time over, too many, does not fit, closed its output, printed too much
//! ```

use std::collections::VecDeque;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sabir_model::{ContextId, Owner};
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep_until};

use crate::process::{Child, Output};
use crate::protocol::Protocol;

/// How many programs wait at the same time, over all agents: each may hold some hundred megabytes.
const MAX_WAITING: usize = 8;

/// The programs that wait. A copy is the same.
#[derive(Clone, Default)]
pub struct Warm(Arc<Mutex<Waiting>>);

#[derive(Default)]
struct Waiting {
    /// Oldest first.
    entries: VecDeque<Entry>,
    last_number: u64,
    /// The server stops: nobody waits any more.
    is_closed: bool,
}

struct Entry {
    number: u64,
    place: Place,
    fit: Fit,
    /// Dropping it ends the program.
    orders: oneshot::Sender<Order>,
}

impl Entry {
    /// Ends the program. The receiver hears when it is gone.
    fn end(self) -> oneshot::Receiver<()> {
        let (done, gone) = oneshot::channel();
        let _ = self.orders.send(Order::End(done));
        gone
    }
}

/// Whose program it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    pub agent: String,
    pub owner: Owner,
    pub context: ContextId,
}

/// What a turn needs of a program that runs already. All else is the same for every turn of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fit {
    pub folder: PathBuf,
    pub model: Option<String>,
    pub session: Option<String>,
}

/// A program between two turns.
pub(super) struct Program {
    pub child: Child,
    pub protocol: Box<dyn Protocol>,
}

enum Order {
    Give(oneshot::Sender<Program>),
    /// Answered when the program is gone.
    End(oneshot::Sender<()>),
}

impl Warm {
    /// Lets a program wait for the next turn, for at most this long.
    pub(super) fn keep(&self, place: Place, fit: Fit, program: Program, limit: Duration) {
        let (orders, ordered) = oneshot::channel();
        let number = {
            let mut waiting = self.waiting();
            if waiting.is_closed {
                // Without orders it ends at once.
                drop(orders);
                tokio::spawn(wait(program, ordered, Instant::now()));
                return;
            }
            waiting.last_number += 1;
            let number = waiting.last_number;
            waiting.entries.retain(|entry| entry.place != place);
            while waiting.entries.len() >= MAX_WAITING {
                waiting.entries.pop_front();
            }
            waiting.entries.push_back(Entry { number, place, fit, orders });
            number
        };
        let warm = self.clone();
        tokio::spawn(async move {
            wait(program, ordered, Instant::now() + limit).await;
            warm.waiting().entries.retain(|entry| entry.number != number);
        });
    }

    /// The program that waits there, if it fits. One that does not is gone when this returns: two programs must not work in
    /// one session.
    pub(super) async fn take(&self, place: &Place, fit: &Fit) -> Option<Program> {
        let entry = {
            let mut waiting = self.waiting();
            let index = waiting.entries.iter().position(|entry| entry.place == *place)?;
            waiting.entries.remove(index)?
        };
        if entry.fit != *fit {
            let _ = entry.end().await;
            return None;
        }
        let (give, given) = oneshot::channel();
        entry.orders.send(Order::Give(give)).ok()?;
        given.await.ok()
    }

    /// Ends all of them, and returns when they have ended. Programs whose turn ends later do not wait either.
    pub async fn close(&self) {
        let entries = {
            let mut waiting = self.waiting();
            waiting.is_closed = true;
            std::mem::take(&mut waiting.entries)
        };
        let ending: Vec<oneshot::Receiver<()>> = entries.into_iter().map(Entry::end).collect();
        for gone in ending {
            let _ = gone.await;
        }
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Warm {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Warm({})", self.waiting().entries.len())
    }
}

async fn wait(mut program: Program, mut ordered: oneshot::Receiver<Order>, until: Instant) {
    let order = loop {
        tokio::select! {
            biased;
            // First what it has said: nothing of it may be taken for the next turn.
            output = program.child.next() => match output {
                Output::Line(line) => {
                    for answer in program.protocol.hear_between_turns(&line) {
                        let _ = program.child.write_line(&answer).await;
                    }
                    if !program.protocol.awaits_next_turn() {
                        break None;
                    }
                }
                Output::Dropped(_) => {}
                Output::TooMuch | Output::Closed => break None,
            },
            order = &mut ordered => break order.ok(),
            () = sleep_until(until) => break None,
        }
    };
    match order {
        Some(Order::Give(give)) => {
            if let Err(mut program) = give.send(program) {
                program.child.stop().await;
            }
        }
        Some(Order::End(done)) => {
            program.end().await;
            let _ = done.send(());
        }
        None => program.end().await,
    }
}

impl Program {
    async fn end(mut self) {
        self.child.close_input();
        self.child.stop().await;
    }
}
