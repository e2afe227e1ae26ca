//! Sabir's end of the socket to a guard: one task per program, which lives until the guard is gone.
//!
//! It sends orders, queues input, and learns how the program ended. It never sends the guard more input than a window, so
//! what the program does not read waits here, where it is counted.

use std::collections::VecDeque;
use std::io;
use std::process::ExitStatus;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until, timeout};

use super::frames::{GuardEvent, Order, PIECE};
use super::guard::{GIVE_UP, GRACE};
use super::lease::GuardLease;
use super::leftovers;
use super::mark::Mark;
use crate::adapter::Exit;

/// How many bytes of input may be in the guard.
const WINDOW: usize = 4 * PIECE;

/// How long output is still read from the pipes after the program is gone. Only a process that escaped the guard can keep
/// them open longer.
pub(super) const LINGER: Duration = Duration::from_millis(500);

/// How long a guard may take to kill. One that takes longer was stopped by its program, or hangs; then Sabir kills.
const KILL_LIMIT: Duration = Duration::from_secs(1);

/// The state of a program's input, shared with its `Child`.
#[derive(Default)]
pub(super) struct Input {
    /// Bytes that the program has not read yet.
    pub(super) waiting: AtomicUsize,
    pub(super) is_closed: AtomicBool,
}

pub(super) struct GuardLink {
    socket: UnixStream,
    guard: tokio::process::Child,
    /// The program's process id, which is also its process group.
    program: Option<Pid>,
    mark: Mark,
    lease: GuardLease,
    /// The newest deadline, until it is in `outgoing`.
    deadline: Option<Order>,
    input: Arc<Input>,
    /// Input, and the order to close it, that do not fit into the window yet.
    queue: VecDeque<Order>,
    /// Bytes of input in the guard that the program has not read.
    in_guard: usize,
    /// Bytes to be written to the socket; `incoming` are those that were read.
    outgoing: Vec<u8>,
    incoming: Vec<u8>,
    ended: Option<Exit>,
}

impl GuardLink {
    pub(super) fn new(
        socket: UnixStream,
        guard: tokio::process::Child,
        program: i32,
        mark: Mark,
        lease: GuardLease,
        input: Arc<Input>,
    ) -> Self {
        Self {
            socket,
            guard,
            program: Pid::from_raw(program),
            mark,
            lease,
            deadline: None,
            input,
            queue: VecDeque::new(),
            in_guard: 0,
            outgoing: Vec::new(),
            incoming: Vec::new(),
            ended: None,
        }
    }

    /// Runs until the guard is gone, then sends the program's exit. `stderr_reader` reads the program's standard error;
    /// `gone` is called when no process is left.
    pub(super) async fn run(
        mut self,
        mut orders: mpsc::UnboundedReceiver<Order>,
        mut stderr_reader: JoinHandle<()>,
        gone: impl FnOnce(),
        exit: watch::Sender<Option<Exit>>,
    ) {
        let status = self.serve_orders(&mut orders).await;
        self.input.is_closed.store(true, Ordering::Relaxed);
        // The guard's last events are still in the socket.
        let _ = timeout(LINGER, self.socket.read_to_end(&mut self.incoming)).await;
        self.read_events();
        if self.ended.is_none() {
            tracing::warn!(guard = %status, "a program has lost its guard; it is killed");
            self.kill_all().await;
        }
        // Standard error must be complete when the exit is known.
        let _ = timeout(LINGER, &mut stderr_reader).await;
        stderr_reader.abort();
        gone();
        exit.send_replace(Some(self.ended.unwrap_or_else(|| from_status(status))));
    }

    async fn serve_orders(&mut self, orders: &mut mpsc::UnboundedReceiver<Order>) -> ExitStatus {
        let mut has_orders = true;
        let mut is_readable = true;
        // When the program and all that it started should be gone.
        let mut gone_by: Option<Instant> = None;
        let mut stopped = std::pin::pin!(leftovers::until_stopped(self.guard.id()));
        let mut watches_guard = true;
        loop {
            self.send_queued();
            tokio::select! {
                status = self.guard.wait() => return status.unwrap_or_default(),
                order = orders.recv(), if has_orders => match order {
                    Some(order @ (Order::Input(_) | Order::CloseInput)) => self.queue.push_back(order),
                    Some(order) => {
                        if matches!(order, Order::Kill) {
                            gone_by.get_or_insert_with(|| Instant::now() + KILL_LIMIT);
                        }
                        order.write(&mut self.outgoing);
                    }
                    // The `Child` was dropped. The guard sees the end of its orders and ends the program.
                    None => {
                        has_orders = false;
                        gone_by.get_or_insert_with(|| Instant::now() + GRACE + KILL_LIMIT);
                        self.queue.clear();
                        self.deadline = None;
                        self.outgoing.clear();
                        let _ = self.socket.shutdown().await;
                    }
                },
                deadline = self.lease.next_order(), if has_orders => self.deadline = Some(deadline),
                ready = self.socket.writable(), if !self.outgoing.is_empty() => {
                    if ready.and_then(|()| self.send()).is_err() {
                        self.outgoing.clear();
                    }
                }
                ready = self.socket.readable(), if is_readable => match ready.and_then(|()| self.receive()) {
                    Ok(Reception::More) => self.read_events(),
                    Ok(Reception::End) | Err(_) => is_readable = false,
                },
                () = stopped.as_mut(), if watches_guard => {
                    watches_guard = false;
                    gone_by = Some(Instant::now());
                }
                () = sleep_until(gone_by.unwrap_or_else(Instant::now)), if gone_by.is_some() => {
                    tracing::warn!(guard = self.guard.id(), "the guard of a program does not do its work; both are killed");
                    self.kill_all().await;
                    let _ = self.guard.start_kill();
                    if let Ok(status) = timeout(GIVE_UP, self.guard.wait()).await {
                        return status.unwrap_or_default();
                    }
                    // The folder and the context must not stay locked for ever.
                    tracing::error!(guard = self.guard.id(), "the guard of a program cannot be killed; it is left behind");
                    self.ended = Some(Exit::Signal(Signal::KILL.as_raw()));
                    return ExitStatus::default();
                }
            }
        }
    }

    /// Sends the newest deadline, then queued input, as much as fits into the window. A deadline waits while the socket is
    /// full, where the next one replaces it, and input waits for the deadline.
    fn send_queued(&mut self) {
        if self.outgoing.is_empty()
            && let Some(deadline) = self.deadline.take()
        {
            deadline.write(&mut self.outgoing);
        }
        while self.deadline.is_none() && self.in_guard < WINDOW {
            match self.queue.pop_front() {
                Some(order) => {
                    if let Order::Input(piece) = &order {
                        self.in_guard += piece.len();
                    }
                    order.write(&mut self.outgoing);
                }
                None => return,
            }
        }
    }

    fn send(&mut self) -> io::Result<()> {
        match self.socket.try_write(&self.outgoing) {
            Ok(count) => {
                self.outgoing.drain(..count);
                Ok(())
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn receive(&mut self) -> io::Result<Reception> {
        let mut chunk = [0; 256];
        match self.socket.try_read(&mut chunk) {
            Ok(0) => Ok(Reception::End),
            Ok(count) => {
                self.incoming.extend_from_slice(&chunk[..count]);
                Ok(Reception::More)
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(Reception::More),
            Err(error) => Err(error),
        }
    }

    fn read_events(&mut self) {
        let (whole, _) = self.incoming.as_chunks::<{ GuardEvent::LENGTH }>();
        let events: Vec<Option<GuardEvent>> = whole.iter().map(|bytes| GuardEvent::parse(*bytes)).collect();
        self.incoming.drain(..events.len() * GuardEvent::LENGTH);
        for events in events.into_iter().flatten() {
            match events {
                GuardEvent::Fed(count) => {
                    self.in_guard -= count as usize;
                    self.input.waiting.fetch_sub(count as usize, Ordering::Relaxed);
                }
                GuardEvent::InputClosed => {
                    self.input.is_closed.store(true, Ordering::Relaxed);
                    self.queue.clear();
                }
                GuardEvent::Ended(exit) => self.ended = Some(exit),
                // `launch` reads this first event.
                GuardEvent::Started(_) | GuardEvent::NotStarted(_) => {}
            }
        }
    }

    /// Kills what the guard should have killed.
    async fn kill_all(&self) {
        if let Some(program) = self.program {
            let _ = kill_process_group(program, Signal::KILL);
        }
        let mark = self.mark.clone();
        let _ = tokio::task::spawn_blocking(move || leftovers::end(&mark)).await;
    }
}

/// Whether the guard may have more to say.
enum Reception {
    More,
    End,
}

fn from_status(status: ExitStatus) -> Exit {
    use std::os::unix::process::ExitStatusExt;
    match status.signal() {
        Some(signal) => Exit::Signal(signal),
        None => Exit::Code(status.code().unwrap_or_default()),
    }
}
