//! A running program: its output, its input, and how it ends.

use std::any::Any;
use std::io;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::process::ChildStdout;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep_until, timeout};

use super::frames::{Ending, Order, PIECE};
use super::guard_link::{Input, LINGER};
use super::lines::Lines;
use super::stderr_tail::StderrTail;
use crate::adapter::Exit;

/// Input that the program has not read yet waits in memory, up to this many bytes. No honest prompt is as long.
const MAX_WAITING: usize = 64 * 1024 * 1024;

/// A running program. When it is dropped, the program and all that it started are ended.
pub struct Child {
    pub(super) pid: u32,
    pub(super) stdout: ChildStdout,
    pub(super) lines: Lines,
    pub(super) stderr_tail: StderrTail,
    pub(super) orders: mpsc::UnboundedSender<Order>,
    pub(super) input: Arc<Input>,
    pub(super) exit: watch::Receiver<Option<Exit>>,
    /// Until when output is still read after the program has ended.
    pub(super) linger_until: Option<Instant>,
    pub(super) stop_grace: Duration,
    pub(super) held: Held,
}

/// Something that is dropped when a program and all that it started are gone.
pub(super) type Held = Arc<Mutex<Option<Box<dyn Any + Send>>>>;

/// The next thing on a program's standard output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Output {
    /// Without its line break; invalid UTF-8 is replaced.
    Line(String),
    /// A line was longer than allowed and was dropped; this is its length in bytes.
    LineTooLong(usize),
    /// The program printed more than it may in all. Nothing more is read; the caller should stop the program.
    LimitReached,
    /// The output has ended, though the program may still run.
    Closed,
}

impl Child {
    /// The process id of the guard.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Writes a line to the program's standard input. It never waits for the program: unread input is queued. Fails if the
    /// input is closed or if far too much is queued already.
    pub async fn write_line(&mut self, line: &str) -> io::Result<()> {
        let length = line.len() + 1;
        if self.input.is_closed.load(Ordering::Relaxed) {
            return Err(io::Error::new(io::ErrorKind::BrokenPipe, "the input of the program is closed"));
        }
        if self.input.waiting.load(Ordering::Relaxed) + length > MAX_WAITING {
            return Err(io::Error::other("the program does not read its input"));
        }
        self.input.waiting.fetch_add(length, Ordering::Relaxed);
        let mut rest = line.as_bytes();
        while rest.len() >= PIECE {
            let (piece, behind) = rest.split_at(PIECE);
            self.write(piece.to_vec())?;
            rest = behind;
        }
        self.write([rest, b"\n"].concat())
    }

    /// Closes the program's standard input. The program still reads what was written before.
    pub fn close_input(&mut self) {
        if !self.input.is_closed.swap(true, Ordering::Relaxed) {
            self.order(Order::CloseInput);
        }
    }

    /// Begins another turn: the program may again print as much as in the first.
    pub fn reset_output_limit(&mut self) {
        self.lines.reset_limit();
    }

    /// The next output. Cancel-safe.
    pub async fn next(&mut self) -> Output {
        loop {
            if let Some(output) = self.lines.next() {
                return output;
            }
            self.read().await;
        }
    }

    /// Output that has arrived already; waits only for the rest of an incomplete line. `None`: there is none.
    pub async fn next_available(&mut self) -> Option<Output> {
        loop {
            if let Some(output) = self.lines.next() {
                return Some(output);
            }
            if self.has_no_output() {
                return None;
            }
            self.read().await;
        }
    }

    /// Whether no output is left to read, neither here nor in the pipe.
    pub fn has_no_output(&self) -> bool {
        let waiting = rustix::io::ioctl_fionread(&self.stdout).unwrap_or_default();
        waiting == 0 && self.lines.is_empty()
    }

    /// The next output, if it is a line that has arrived already.
    pub fn take_whole_line(&mut self) -> Option<String> {
        self.lines.take_whole_line()
    }

    /// Takes an incomplete line if `is_wanted` accepts it: programs ask people in lines without a line break. What follows
    /// is a line of its own.
    pub fn take_partial_line(&mut self, is_wanted: impl FnOnce(&str) -> bool) -> Option<String> {
        self.lines.take_partial_line(is_wanted)
    }

    /// Reads all output, up to `limit` bytes, and says whether there was more.
    pub async fn read_up_to(&mut self, limit: usize) -> (Vec<u8>, bool) {
        let mut bytes = Vec::new();
        let mut chunk = vec![0; 32 * 1024];
        let mut exit = self.exit.clone();
        let gone = async {
            let _ = exit.wait_for(Option::is_some).await;
            tokio::time::sleep(LINGER).await;
        };
        let mut gone = std::pin::pin!(gone);
        loop {
            let count = tokio::select! {
                biased;
                count = self.stdout.read(&mut chunk) => count.unwrap_or(0),
                () = gone.as_mut() => 0,
            };
            bytes.extend_from_slice(&chunk[..count]);
            if count == 0 || bytes.len() > limit {
                break;
            }
        }
        let is_cut = bytes.len() > limit;
        bytes.truncate(limit);
        (bytes, is_cut)
    }

    /// Becomes `Some` when the program and all that it started are gone, also after this `Child` was dropped.
    pub fn ended(&self) -> watch::Receiver<Option<Exit>> {
        self.exit.clone()
    }

    /// Waits until the program and all that it started are gone. Cancel-safe. It does not read output, and a program that
    /// prints may not end before somebody reads.
    pub async fn exit(&mut self) -> Exit {
        match self.exit.wait_for(Option::is_some).await.as_deref() {
            Ok(Some(exit)) => *exit,
            // Only a runtime that shuts down drops the sender. The guard ends the program then.
            _ => Exit::Signal(rustix::process::Signal::KILL.as_raw()),
        }
    }

    /// Ends the program: SIGTERM, and SIGKILL after the grace period. Returns when everything is gone. Output is discarded.
    pub async fn stop(&mut self) -> Exit {
        self.stop_within(self.stop_grace).await
    }

    /// The same, with less time between the signals.
    pub async fn stop_within(&mut self, grace: Duration) -> Exit {
        self.order(Order::Terminate);
        if let Ok(exit) = timeout(grace.min(self.stop_grace), self.drain_until_exit()).await {
            return exit;
        }
        self.kill().await
    }

    /// Ends the program by SIGKILL, before it notices anything. Returns when everything is gone.
    pub async fn kill(&mut self) -> Exit {
        // If the guard does not do it, `GuardLink` does.
        self.order(Order::Kill);
        self.drain_until_exit().await
    }

    /// Keeps a value until the program and all that it started are gone, even if this `Child` is dropped before. Drops the
    /// value that was kept until now.
    pub fn hold(&self, held: Option<Box<dyn Any + Send>>) {
        let before = std::mem::replace(&mut *self.held.lock().unwrap_or_else(PoisonError::into_inner), held);
        drop(before);
    }

    /// Sets how the guard ends the program if Sabir is gone.
    pub fn end_on_sabir_exit(&mut self, how: Ending) {
        self.order(Order::OnSabirExit(how));
    }

    /// The last lines of the program's standard error. Complete once the program has ended.
    pub fn stderr_tail(&self) -> String {
        self.stderr_tail.text()
    }

    fn write(&self, piece: Vec<u8>) -> io::Result<()> {
        let sent = self.orders.send(Order::Input(piece));
        sent.map_err(|_| io::Error::new(io::ErrorKind::BrokenPipe, "the program has ended"))
    }

    fn order(&self, order: Order) {
        // A program that has ended needs no orders.
        let _ = self.orders.send(order);
    }

    /// Reads more output or finds its end. Once the program is gone, only a process that escaped the guard can hold the pipe
    /// open; nobody waits for that one.
    async fn read(&mut self) {
        let gone = async {
            let _ = self.exit.wait_for(Option::is_some).await;
            let until = *self.linger_until.get_or_insert_with(|| Instant::now() + LINGER);
            sleep_until(until).await;
        };
        tokio::select! {
            biased;
            count = self.stdout.read(self.lines.read_buffer()) => match count {
                Ok(count @ 1..) => {
                    self.lines.received(count);
                    // A program that prints without end is always ready. Without a yield its reader would keep a thread for
                    // megabytes at a time and delay the server's signals and timers.
                    tokio::task::yield_now().await;
                }
                Ok(0) | Err(_) => self.lines.end(),
            },
            () = gone => self.lines.end(),
        }
    }

    /// Waits for the end and discards output meanwhile, so that the program is not blocked by a full pipe.
    async fn drain_until_exit(&mut self) -> Exit {
        let mut exit = self.exit.clone();
        let reading = async {
            while self.next().await != Output::Closed {}
            std::future::pending::<()>().await;
        };
        tokio::select! {
            _ = exit.wait_for(Option::is_some) => {}
            () = reading => {}
        }
        self.exit().await
    }
}
