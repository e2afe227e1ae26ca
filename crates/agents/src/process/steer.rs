//! Sabir's end of the socket to a guard: one task per program, which lives until the guard is gone.
//!
//! It sends orders, keeps the input that the program does not want yet, and learns how the program ended. The guard is
//! never sent more input than a window, so what a program does not read waits here, where it is counted.

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

use super::frames::{News, Order, PIECE};
use super::guard::{GIVE_UP, GRACE};
use super::leftovers::{self, Mark};
use crate::protocol::Exit;

/// How much input may lie in the guard.
const WINDOW: usize = 4 * PIECE;

/// Output that is still in the pipes when the program is gone is read for so long. Only somebody who escaped the guard can
/// keep them open longer.
pub(super) const LINGER: Duration = Duration::from_millis(500);

/// What a `Child` wants.
pub(super) enum Wish {
    Order(Order),
    /// The guard does not do its work; it has to go, and the program's group with it.
    Force,
}

/// What a `Child` knows of its input without asking.
#[derive(Default)]
pub(super) struct Input {
    /// Bytes that the program has not taken yet.
    pub(super) waiting: AtomicUsize,
    pub(super) is_closed: AtomicBool,
}

pub(super) struct Steer {
    socket: UnixStream,
    guard: tokio::process::Child,
    /// The program, whose number is also the one of its group.
    program: Option<Pid>,
    input: Arc<Input>,
    /// Input, and its end, which the guard has no room for yet.
    queue: VecDeque<Order>,
    /// Bytes in the guard that the program has not taken.
    in_guard: usize,
    /// Bytes of the socket.
    outgoing: Vec<u8>,
    incoming: Vec<u8>,
    ended: Option<Exit>,
}

impl Steer {
    pub(super) fn new(socket: UnixStream, guard: tokio::process::Child, program: i32, input: Arc<Input>) -> Self {
        Self {
            socket,
            guard,
            program: Pid::from_raw(program),
            input,
            queue: VecDeque::new(),
            in_guard: 0,
            outgoing: Vec::new(),
            incoming: Vec::new(),
            ended: None,
        }
    }

    /// Until the guard is gone, which `exit` then shows. `complaining` reads the program's standard error.
    pub(super) async fn run(
        mut self,
        mut wishes: mpsc::UnboundedReceiver<Wish>,
        mut complaining: JoinHandle<()>,
        mark: Mark,
        exit: watch::Sender<Option<Exit>>,
    ) {
        let status = self.attend(&mut wishes).await;
        self.input.is_closed.store(true, Ordering::Relaxed);
        // The guard's last words are in the socket, whose other end is closed now.
        let _ = timeout(LINGER, self.socket.read_to_end(&mut self.incoming)).await;
        self.hear();
        if self.ended.is_none() {
            tracing::warn!(guard = %status, "the guard of a program was ended by somebody else; the program is killed");
            self.kill_group();
            let _ = tokio::task::spawn_blocking(move || leftovers::end(&mark)).await;
        }
        // Who asks for the complaint after the end wants all of it.
        let _ = timeout(LINGER, &mut complaining).await;
        complaining.abort();
        exit.send_replace(Some(self.ended.unwrap_or_else(|| from_status(status))));
    }

    async fn attend(&mut self, wishes: &mut mpsc::UnboundedReceiver<Wish>) -> ExitStatus {
        let mut is_wanted = true;
        let mut is_heard = true;
        let mut force_at: Option<Instant> = None;
        loop {
            self.load();
            tokio::select! {
                status = self.guard.wait() => return status.unwrap_or_default(),
                wish = wishes.recv(), if is_wanted => match wish {
                    Some(Wish::Order(order @ (Order::Input(_) | Order::CloseInput))) => self.queue.push_back(order),
                    Some(Wish::Order(order)) => order.write(&mut self.outgoing),
                    Some(Wish::Force) => self.force(),
                    // The `Child` was dropped. The guard sees the end of its orders and does the rest.
                    None => {
                        is_wanted = false;
                        force_at = Some(Instant::now() + GRACE + GIVE_UP + GRACE);
                        self.queue.clear();
                        self.outgoing.clear();
                        let _ = self.socket.shutdown().await;
                    }
                },
                ready = self.socket.writable(), if !self.outgoing.is_empty() => {
                    if ready.and_then(|()| self.send()).is_err() {
                        self.outgoing.clear();
                    }
                }
                ready = self.socket.readable(), if is_heard => match ready.and_then(|()| self.receive()) {
                    Ok(Reception::More) => self.hear(),
                    Ok(Reception::End) | Err(_) => is_heard = false,
                },
                () = sleep_until(force_at.unwrap_or_else(Instant::now)), if force_at.is_some() => {
                    force_at = None;
                    self.force();
                }
            }
        }
    }

    /// Hands to the guard what it has room for.
    fn load(&mut self) {
        while self.in_guard < WINDOW {
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

    fn hear(&mut self) {
        let (whole, _) = self.incoming.as_chunks::<{ News::LENGTH }>();
        let news: Vec<Option<News>> = whole.iter().map(|bytes| News::parse(*bytes)).collect();
        self.incoming.drain(..news.len() * News::LENGTH);
        for news in news.into_iter().flatten() {
            match news {
                News::Fed(count) => {
                    self.in_guard -= count as usize;
                    self.input.waiting.fetch_sub(count as usize, Ordering::Relaxed);
                }
                News::InputClosed => {
                    self.input.is_closed.store(true, Ordering::Relaxed);
                    self.queue.clear();
                }
                News::Ended(exit) => self.ended = Some(exit),
                // Said once, at the start, and heard there.
                News::Started(_) | News::NotStarted(_) => {}
            }
        }
    }

    fn force(&mut self) {
        let _ = self.guard.start_kill();
        self.kill_group();
    }

    fn kill_group(&self) {
        if let Some(program) = self.program {
            let _ = kill_process_group(program, Signal::KILL);
        }
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
