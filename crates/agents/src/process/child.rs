//! A program that runs: what it says, what it is told, how it ends.

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

/// What a program has not read waits in memory up to this. No honest prompt is as long.
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
    /// Until when output is waited for after the end.
    pub(super) linger_until: Option<Instant>,
    pub(super) stop_grace: Duration,
    pub(super) held: Held,
}

/// Something that is dropped when a program and all that it started are gone.
pub(super) type Held = Arc<Mutex<Option<Box<dyn Any + Send>>>>;

/// What came next on a program's standard output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Output {
    /// Without its end; bytes that are no text are replaced.
    Line(String),
    /// A line of so many bytes, which was longer than allowed.
    LineTooLong(usize),
    /// More came than is allowed in all. Nothing more is read: the program is to be stopped.
    LimitReached,
    /// Nothing more will come, though the program may still run.
    Closed,
}

impl Child {
    /// The process id of the guard.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Writes a line to the program's standard input. What the program does not read at once waits, so nobody has to wait for
    /// it here. An error: it will never be read, or far too much waits already.
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

    /// Nothing more will be written. What was written before is still read.
    pub fn close_input(&mut self) {
        if !self.input.is_closed.swap(true, Ordering::Relaxed) {
            self.order(Order::CloseInput);
        }
    }

    /// Another turn begins: the program may print as much as in the first.
    pub fn reset_output_limit(&mut self) {
        self.lines.reset_limit();
    }

    /// What the program says next. May be canceled: nothing is lost.
    pub async fn next(&mut self) -> Output {
        loop {
            if let Some(output) = self.lines.next() {
                return output;
            }
            self.read().await;
        }
    }

    /// What the program has said already, and the rest of a line that has begun. `None`: nothing.
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

    /// Whether all that the program has said was handed over.
    pub fn has_no_output(&self) -> bool {
        let waiting = rustix::io::ioctl_fionread(&self.stdout).unwrap_or_default();
        waiting == 0 && self.lines.is_empty()
    }

    /// A line that has come already, if the next thing that the program said is one.
    pub fn take_whole_line(&mut self) -> Option<String> {
        self.lines.take_whole_line()
    }

    /// A line that has begun and whose end has not come, if it is like this: people are asked so. What comes behind is a line
    /// of its own.
    pub fn take_partial_line(&mut self, is_wanted: impl FnOnce(&str) -> bool) -> Option<String> {
        self.lines.take_partial_line(is_wanted)
    }

    /// All that the program prints, as it is, and whether there is more than so many bytes. Then the rest is not read.
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

    /// Waits until the program and all that it started are gone. May be canceled. A program that prints ends only if
    /// somebody reads: this does not.
    pub async fn exit(&mut self) -> Exit {
        match self.exit.wait_for(Option::is_some).await.as_deref() {
            Ok(Some(exit)) => *exit,
            // Only a runtime that shuts down stops the task that would know. The guard does its work then.
            _ => Exit::Signal(rustix::process::Signal::KILL.as_raw()),
        }
    }

    /// Ends the program: SIGTERM, and SIGKILL when the time of grace is over. Returns when everything is gone. What it says
    /// meanwhile is let go.
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
        // Where the guard does not do this, it is done without the guard.
        self.order(Order::Kill);
        self.drain_until_exit().await
    }

    /// Keeps something until the program and all that it started are gone, also when this `Child` is dropped before.
    /// Instead of what was kept until now, which is dropped.
    pub fn hold(&self, held: Option<Box<dyn Any + Send>>) {
        let before = std::mem::replace(&mut *self.held.lock().unwrap_or_else(PoisonError::into_inner), held);
        drop(before);
    }

    /// How the program is to be ended from now on if Sabir is gone.
    pub fn end_on_sabir_exit(&mut self, how: Ending) {
        self.order(Order::OnSabirExit(how));
    }

    /// The last lines of the program's standard error. After its end: all that came.
    pub fn stderr_tail(&self) -> String {
        self.stderr_tail.text()
    }

    fn write(&self, piece: Vec<u8>) -> io::Result<()> {
        let sent = self.orders.send(Order::Input(piece));
        sent.map_err(|_| io::Error::new(io::ErrorKind::BrokenPipe, "the program has ended"))
    }

    fn order(&self, order: Order) {
        // Who has ended needs no orders.
        let _ = self.orders.send(order);
    }

    /// Reads on, or finds that nothing will come. Once the program is gone, only somebody who escaped its guard can hold the
    /// pipe open, and is not waited for.
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
                    // A program that prints without end is always ready. Without a pause its reader would keep a thread for
                    // megabytes at a time, and neither signals nor timers of the server would be heard.
                    tokio::task::yield_now().await;
                }
                Ok(0) | Err(_) => self.lines.end(),
            },
            () = gone => self.lines.end(),
        }
    }

    /// Waits for the end and reads meanwhile, so that a program which wants to say something first is not held up.
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
