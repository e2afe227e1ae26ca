//! The guard: a small process between Sabir and a program.
//!
//! Its standard input is the socket to Sabir. It passes input to the program, signals the program when Sabir orders it, and
//! when the socket closes it ends the program and all that the program has started. If Sabir has set a deadline and does not
//! renew it in time, the guard pauses the program (`pause.rs`). The program's output does not pass through it. Plain threads
//! and blocking calls: it has to start at once, stay small and be easy to trust.

use std::collections::HashSet;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::{ChildStdin, Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{
    Pid, Resource, Rlimit, Signal, WaitOptions, WaitStatus, getrlimit, kill_process, kill_process_group, setrlimit,
    test_kill_process_group,
};

use super::deadline::Deadline;
use super::frames::{Ending, GuardEvent, Order};
use super::pause::Pause;
use super::process_table;
use crate::adapter::Exit;

/// How long processes have between SIGTERM and SIGKILL when Sabir is gone or the program has ended.
pub(super) const GRACE: Duration = Duration::from_secs(2);
/// When the guard stops waiting: some processes cannot be killed, because they changed their user or hang in the kernel.
pub(super) const GIVE_UP: Duration = Duration::from_secs(5);
/// How often the guard checks while processes end.
pub(super) const ROUND: Duration = Duration::from_millis(10);
/// Stack size of the threads, which do next to nothing.
const STACK: usize = 128 * 1024;

/// Runs a program until it and all that it started are gone. `arguments` has options of the guard, then the program and its
/// arguments. Exits with the program's code, or with 128 plus the signal, as shells do.
pub fn guard(mut arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let mut first = arguments.next();
    let mut mark = None;
    let mut deadline = None;
    // A program is always a path, so none has the name of an option.
    while let Some(option) = first.as_ref().and_then(|first| first.to_str()).filter(|first| first.starts_with("--")) {
        match option {
            super::OPEN_FILES => limit_open_files(arguments.next().and_then(|limit| limit.to_str()?.parse().ok())),
            super::MARKED => mark = arguments.next(),
            super::RUN_UNTIL => {
                // Unreadable, it counts as reached: the program waits for the next one.
                let nanoseconds = arguments.next().and_then(|text| text.to_str()?.parse().ok()).unwrap_or_default();
                deadline = Some(Deadline::from_nanoseconds(nanoseconds));
            }
            _ => break,
        }
        first = arguments.next();
    }
    let Some(program) = first else {
        eprintln!("sabir: {} needs a program", super::GUARD);
        return ExitCode::from(2);
    };
    let name = program.clone();
    let mut command = Command::new(program);
    command.args(arguments);
    if let Some(mark) = mark {
        // The mark is for the program, not for the guard, which exits by itself.
        command.env(super::MARK, mark);
    }
    match run(&mut command, Pause::new(deadline)) {
        Ok(Exit::Code(code)) => ExitCode::from(u8::try_from(code).unwrap_or(u8::MAX)),
        Ok(Exit::Signal(signal)) => ExitCode::from(u8::try_from(128 + signal).unwrap_or(u8::MAX)),
        Err(error) => {
            eprintln!("sabir: {} cannot be started: {error}", name.display());
            ExitCode::from(127)
        }
    }
}

/// Lowers the limit: Sabir has raised its own, and some programs cannot cope with the raised one.
fn limit_open_files(limit: Option<u64>) {
    let maximum = getrlimit(Resource::Nofile).maximum;
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit, maximum });
}

fn run(program: &mut Command, pause: Pause) -> io::Result<Exit> {
    let socket = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let sabir = SabirSocket(Arc::new(Mutex::new(socket.try_clone()?)));
    // A new session has no terminal. So a program cannot wait for a password there, and Ctrl-C reaches only Sabir, which
    // then decides about its programs.
    let _ = rustix::process::setsid();
    process_table::adopt_orphans();
    rename_process();
    let started = start(program, pause, socket, &sabir).inspect_err(|error| {
        sabir.send(GuardEvent::NotStarted(error.raw_os_error().unwrap_or(Errno::INVAL.raw_os_error())));
    });
    let Some((tree, events)) = started? else { return Ok(Exit::Signal(Signal::KILL.as_raw())) };
    close_own_output()?;
    let exit = tree.wait_until_gone(&events);
    sabir.send(GuardEvent::Ended(exit));
    Ok(exit)
}

/// Starts the program and the guard's threads. `None`: Sabir is gone, and the program is not started.
fn start(
    program: &mut Command,
    mut pause: Pause,
    socket: File,
    sabir: &SabirSocket,
) -> io::Result<Option<(ProcessTree, Events)>> {
    let (sender, receiver) = mpsc::channel();
    let (input, pieces) = mpsc::channel();
    let order_events = sender.clone();
    spawn_thread("orders", move || read_orders(socket, input, &order_events))?;
    let reap_events = sender.clone();
    let events = Events { receiver, _sender: sender };
    // After the deadline another server may run the same task, and even a short moment is too long.
    while pause.is_over() {
        match events.next(None) {
            Some(Event::RunUntil(deadline)) => pause.set_deadline(deadline),
            _ => return Ok(None),
        }
    }
    let mut child = program.stdin(Stdio::piped()).process_group(0).spawn()?;
    let process = i32::try_from(child.id()).ok().and_then(Pid::from_raw).expect("a process id is a positive number");
    let stdin = child.stdin.take().expect("it is piped");
    let reaped = pause.reaped();
    let input_socket = sabir.clone();
    let served = spawn_thread("reap", move || reap(process, &reaped, &reap_events))
        .and_then(|()| spawn_thread("input", move || write_input(stdin, &pieces, &input_socket)));
    if let Err(error) = served {
        let _ = kill_process_group(process, Signal::KILL);
        let _ = child.wait();
        return Err(error);
    }
    sabir.send(GuardEvent::Started(process.as_raw_pid()));
    let tree = ProcessTree { program: process, exit: None, has_children: true, terminated: HashSet::new(), pause };
    Ok(Some((tree, events)))
}

fn spawn_thread(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    thread::Builder::new().name(name.to_owned()).stack_size(STACK).spawn(work).map(drop)
}

/// Renames the guard, so that `pkill -9 sabir` does not hit it: it still has to end its program then.
fn rename_process() {
    #[cfg(target_os = "linux")]
    let _ = std::fs::write("/proc/self/comm", "agent-guard");
}

/// Closes the guard's copy of the output. Otherwise Sabir would not notice when the program closes it.
fn close_own_output() -> io::Result<()> {
    let nowhere = File::options().write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdout(&nowhere)?;
    rustix::stdio::dup2_stderr(&nowhere)?;
    Ok(())
}

/// The socket to Sabir, for sending. Errors are ignored: Sabir may be gone.
#[derive(Clone)]
struct SabirSocket(Arc<Mutex<File>>);

impl SabirSocket {
    fn send(&self, event: GuardEvent) {
        let _ = self.0.lock().unwrap_or_else(PoisonError::into_inner).write_all(&event.bytes());
    }
}

enum Event {
    Terminate,
    Kill,
    RunUntil(Deadline),
    /// Sabir has closed the socket or is gone.
    SabirGone,
    ProgramEnded(Exit),
    /// The guard has no children left.
    Childless,
}

struct Events {
    receiver: Receiver<Event>,
    /// Keeps the channel open, so that `recv` blocks even after all threads have ended.
    _sender: Sender<Event>,
}

impl Events {
    /// The next event, or `None` after this long.
    fn next(&self, limit: Option<Duration>) -> Option<Event> {
        match limit {
            None => self.receiver.recv().ok(),
            Some(limit) => self.receiver.recv_timeout(limit).ok(),
        }
    }
}

/// A thread: reads Sabir's orders. It hands input to another thread, so that a program that does not read cannot delay a
/// signal. Sabir limits how much input is in transit.
fn read_orders(mut socket: File, input: Sender<Vec<u8>>, events: &Sender<Event>) {
    let mut input = Some(input);
    let mut ending = Ending::Graceful;
    loop {
        let event = match Order::read(&mut socket) {
            Ok(Order::Input(bytes)) => {
                let _ = input.as_ref().map(|input| input.send(bytes));
                continue;
            }
            Ok(Order::CloseInput) => {
                input = None;
                continue;
            }
            Ok(Order::Terminate) => Event::Terminate,
            Ok(Order::Kill) => Event::Kill,
            Ok(Order::RunUntil(deadline)) => Event::RunUntil(deadline),
            Ok(Order::OnSabirExit(how)) => {
                ending = how;
                continue;
            }
            Err(_) if ending == Ending::Kill => {
                let _ = events.send(Event::Kill);
                // Keep its input open: a program that sees the end of its input may act before the signal arrives.
                std::mem::forget(input);
                return;
            }
            Err(_) => {
                let _ = events.send(Event::SabirGone);
                return;
            }
        };
        let _ = events.send(event);
    }
}

/// A thread: writes the program's input until it is closed.
fn write_input(mut stdin: ChildStdin, pieces: &Receiver<Vec<u8>>, sabir: &SabirSocket) {
    for piece in pieces {
        if stdin.write_all(&piece).is_err() {
            sabir.send(GuardEvent::InputClosed);
            return;
        }
        sabir.send(GuardEvent::Fed(u32::try_from(piece.len()).expect("a piece is short")));
    }
}

/// A thread: reaps dead children, adopted orphans too, until none is left. Counts them.
fn reap(program: Pid, reaped: &AtomicU64, events: &Sender<Event>) {
    loop {
        let ended = rustix::process::wait(WaitOptions::empty());
        reaped.fetch_add(1, Ordering::Relaxed);
        match ended {
            Ok(Some((process, status))) if process == program => {
                let _ = events.send(Event::ProgramEnded(exit(status)));
            }
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => {
                let _ = events.send(Event::Childless);
                return;
            }
        }
    }
}

fn exit(status: WaitStatus) -> Exit {
    match status.terminating_signal() {
        Some(signal) => Exit::Signal(signal),
        None => Exit::Code(status.exit_status().unwrap_or_default()),
    }
}

/// The program and all that it has started.
struct ProcessTree {
    program: Pid,
    exit: Option<Exit>,
    has_children: bool,
    /// Processes that got SIGTERM. Many programs treat a second one as a forced exit.
    terminated: HashSet<Pid>,
    pause: Pause,
}

impl ProcessTree {
    /// Waits until all of them are gone, and ends them when an event says so.
    fn wait_until_gone(mut self, events: &Events) -> Exit {
        let mut kill_at: Option<Instant> = None;
        while !self.is_gone() {
            let event = events.next(kill_at.map_or_else(|| self.pause.next_update(), |_| Some(ROUND)));
            let now = Instant::now();
            let sooner = |at: Instant| Some(kill_at.map_or(at, |earlier| earlier.min(at)));
            match event {
                Some(Event::RunUntil(deadline)) => self.pause.set_deadline(deadline),
                // It must not run again, not even to clean up: another server may run the task by now.
                Some(Event::Terminate) if self.pause.is_over() => kill_at = sooner(now),
                Some(Event::Terminate) => self.terminate(),
                Some(Event::Kill) => kill_at = sooner(now),
                Some(Event::SabirGone) => {
                    kill_at = sooner(now + self.grace());
                    if !self.pause.is_over() {
                        self.terminate();
                    }
                }
                // Usually nothing is left then, and `Childless` follows before the round is over.
                Some(Event::ProgramEnded(exit)) => {
                    kill_at = sooner(now + self.grace());
                    self.exit = Some(exit);
                    continue;
                }
                Some(Event::Childless) => self.has_children = false,
                None if self.exit.is_some() && kill_at.is_some_and(|at| now < at) => self.terminate(),
                None => {}
            }
            if kill_at.is_none() {
                self.pause.update(self.program);
            }
            if kill_at.is_some_and(|at| now >= at + GIVE_UP) {
                break;
            }
            if kill_at.is_some_and(|at| now >= at) {
                self.kill();
            }
        }
        self.exit.unwrap_or(Exit::Signal(Signal::KILL.as_raw()))
    }

    /// How long processes may take to end. None of them runs after the deadline.
    fn grace(&self) -> Duration {
        self.pause.time_left().map_or(GRACE, |left| left.min(GRACE))
    }

    fn is_gone(&self) -> bool {
        // On systems other than Linux, the rest of the group are not children of the guard.
        self.exit.is_some()
            && !self.has_children
            && (cfg!(target_os = "linux") || test_kill_process_group(self.program).is_err())
    }

    /// Sends SIGTERM to the group, or to all that is left once the program has ended. SIGCONT lets stopped processes receive
    /// it.
    fn terminate(&mut self) {
        if self.group_is_ours() && self.terminated.insert(self.program) {
            let group =
                process_table::descendants().into_iter().filter(|process| process.group == self.program.as_raw_pid());
            self.terminated.extend(group.map(|process| process.process));
            let _ = kill_process_group(self.program, Signal::TERM);
            let _ = kill_process_group(self.program, Signal::CONT);
        }
        if self.exit.is_none() {
            return;
        }
        for descendant in process_table::descendants() {
            if self.terminated.insert(descendant.process) {
                let _ = kill_process(descendant.process, Signal::TERM);
                let _ = kill_process(descendant.process, Signal::CONT);
            }
        }
    }

    fn kill(&self) {
        if self.group_is_ours() {
            let _ = kill_process_group(self.program, Signal::KILL);
        }
        for descendant in process_table::descendants() {
            let _ = kill_process(descendant.process, Signal::KILL);
        }
    }

    /// Once the program is reaped, its group may be gone and its id may be reused. On Linux the rest of the group is found
    /// among the descendants then.
    fn group_is_ours(&self) -> bool {
        self.exit.is_none() || cfg!(not(target_os = "linux"))
    }
}
