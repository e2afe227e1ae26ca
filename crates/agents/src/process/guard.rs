//! The guard: a small process between Sabir and a program.
//!
//! Its standard input is the socket to Sabir. It feeds the program from there, signals the program when it is told to, and
//! when the socket closes it ends the program and all that the program has started. The program's output does not pass
//! through it. Plain threads and blocking calls: it has to start at once, stay small and be easy to trust.

use std::collections::HashSet;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::{ChildStdin, Command, ExitCode, Stdio};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{
    Pid, Resource, Rlimit, Signal, WaitOptions, WaitStatus, getrlimit, kill_process, kill_process_group, setrlimit,
    test_kill_process_group,
};

use super::frames::{Ending, GuardEvent, Order};
use super::process_table;
use crate::adapter::Exit;

/// What is left has so long after SIGTERM, when Sabir is gone or the program has ended.
pub(super) const GRACE: Duration = Duration::from_secs(2);
/// Some processes cannot be killed: they belong to somebody else now, or hang in the kernel. We do not wait for ever.
pub(super) const GIVE_UP: Duration = Duration::from_secs(5);
/// How often we look again while things end.
pub(super) const ROUND: Duration = Duration::from_millis(10);
/// The threads do next to nothing.
const STACK: usize = 128 * 1024;

/// Runs a program until it and all that it started is gone. The arguments are the program's, behind options of the guard.
/// Ends with the program's code, or with 128 and the signal that ended it, as shells say it.
pub fn guard(mut arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let mut first = arguments.next();
    let mut mark = None;
    // A program is always a path, so none has the name of an option.
    while let Some(option) = first.as_ref().and_then(|first| first.to_str()).filter(|first| first.starts_with("--")) {
        match option {
            super::OPEN_FILES => limit_open_files(arguments.next().and_then(|limit| limit.to_str()?.parse().ok())),
            super::MARKED => mark = arguments.next(),
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
        // In the program's environment and not in the guard's: the guard ends by itself.
        command.env(super::MARK, mark);
    }
    match run(&mut command) {
        Ok(Exit::Code(code)) => ExitCode::from(u8::try_from(code).unwrap_or(u8::MAX)),
        Ok(Exit::Signal(signal)) => ExitCode::from(u8::try_from(128 + signal).unwrap_or(u8::MAX)),
        Err(error) => {
            eprintln!("sabir: {} cannot be started: {error}", name.display());
            ExitCode::from(127)
        }
    }
}

/// Sabir has raised its own limit, which not every program can bear.
fn limit_open_files(limit: Option<u64>) {
    let maximum = getrlimit(Resource::Nofile).maximum;
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit, maximum });
}

fn run(program: &mut Command) -> io::Result<Exit> {
    let socket = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let sabir = SabirSocket(Arc::new(Mutex::new(socket.try_clone()?)));
    // A session of its own has no terminal. So a program cannot ask the operator for a password there and wait for ever, and
    // Ctrl-C is for Sabir, which then decides what becomes of its programs.
    let _ = rustix::process::setsid();
    process_table::adopt_orphans();
    rename_process();
    let started = start(program, socket, &sabir).inspect_err(|error| {
        sabir.send(GuardEvent::NotStarted(error.raw_os_error().unwrap_or(Errno::INVAL.raw_os_error())));
    });
    let (tree, events) = started?;
    close_own_output()?;
    let exit = tree.wait_until_gone(&events);
    sabir.send(GuardEvent::Ended(exit));
    Ok(exit)
}

/// Starts the program and those who serve it.
fn start(program: &mut Command, socket: File, sabir: &SabirSocket) -> io::Result<(ProcessTree, Events)> {
    let mut child = program.stdin(Stdio::piped()).process_group(0).spawn()?;
    let process = i32::try_from(child.id()).ok().and_then(Pid::from_raw).expect("a process id is a positive number");
    let stdin = child.stdin.take().expect("it is piped");
    let (sender, receiver) = mpsc::channel();
    let (input, pieces) = mpsc::channel();
    let reap_events = sender.clone();
    let order_events = sender.clone();
    let input_socket = sabir.clone();
    let served = spawn_thread("reap", move || reap(process, &reap_events))
        .and_then(|()| spawn_thread("input", move || write_input(stdin, &pieces, &input_socket)))
        .and_then(|()| spawn_thread("orders", move || read_orders(socket, input, &order_events)));
    if let Err(error) = served {
        let _ = kill_process_group(process, Signal::KILL);
        let _ = child.wait();
        return Err(error);
    }
    sabir.send(GuardEvent::Started(process.as_raw_pid()));
    let tree = ProcessTree { program: process, exit: None, has_children: true, terminated: HashSet::new() };
    Ok((tree, Events { receiver, _sender: sender }))
}

fn spawn_thread(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    thread::Builder::new().name(name.to_owned()).stack_size(STACK).spawn(work).map(drop)
}

/// Whoever ends all of Sabir by its name, with `pkill -9 sabir`, should not end the guards with it: they have work to do then.
fn rename_process() {
    #[cfg(target_os = "linux")]
    let _ = std::fs::write("/proc/self/comm", "agent-guard");
}

/// The program has its output now. Were it open here too, Sabir could not see that the program closes it.
fn close_own_output() -> io::Result<()> {
    let nowhere = File::options().write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdout(&nowhere)?;
    rustix::stdio::dup2_stderr(&nowhere)?;
    Ok(())
}

/// The way back to Sabir. Nobody may listen there: then there is nobody to be told.
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
    /// Sabir has closed the socket, or is no more.
    SabirGone,
    ProgramEnded(Exit),
    /// There is nobody left below us.
    Childless,
}

struct Events {
    receiver: Receiver<Event>,
    /// So that waiting is waiting, also when all threads are through.
    _sender: Sender<Event>,
}

impl Events {
    /// The next one; at the latest, once something is about to end, after a round.
    fn next(&self, deadline: Option<Instant>) -> Option<Event> {
        match deadline {
            None => self.receiver.recv().ok(),
            Some(_) => self.receiver.recv_timeout(ROUND).ok(),
        }
    }
}

/// A thread: hears what Sabir wants. Input is handed on, so that a program which does not read cannot hold up a signal. How
/// much is under way is Sabir's to limit.
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
            Ok(Order::OnSabirExit(how)) => {
                ending = how;
                continue;
            }
            Err(_) if ending == Ending::Kill => {
                let _ = events.send(Event::Kill);
                // Its input stays open: whoever sees the end of it may act before the signal comes.
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

/// A thread: reaps whoever dies, orphans too, until nobody is left.
fn reap(program: Pid, events: &Sender<Event>) {
    loop {
        match rustix::process::wait(WaitOptions::empty()) {
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
    /// Who has had SIGTERM. Many programs take a second one for impatience.
    terminated: HashSet<Pid>,
}

impl ProcessTree {
    /// Until all of them are gone.
    fn wait_until_gone(mut self, events: &Events) -> Exit {
        let mut kill_at: Option<Instant> = None;
        while !self.is_gone() {
            let event = events.next(kill_at);
            let now = Instant::now();
            let sooner = |at: Instant| Some(kill_at.map_or(at, |earlier| earlier.min(at)));
            match event {
                Some(Event::Terminate) => self.terminate(),
                Some(Event::Kill) => kill_at = sooner(now),
                Some(Event::SabirGone) => {
                    kill_at = sooner(now + GRACE);
                    self.terminate();
                }
                // Mostly nothing is left then, and we hear of that before the round is over.
                Some(Event::ProgramEnded(exit)) => {
                    kill_at = sooner(now + GRACE);
                    self.exit = Some(exit);
                    continue;
                }
                Some(Event::Childless) => self.has_children = false,
                None if self.exit.is_some() => self.terminate(),
                None => {}
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

    fn is_gone(&self) -> bool {
        // Elsewhere than on Linux the rest of the group are not our children.
        self.exit.is_some()
            && !self.has_children
            && (cfg!(target_os = "linux") || test_kill_process_group(self.program).is_err())
    }

    /// Asks the group to end, or, when the program is no more, all who are left. What is stopped has to go on to hear it.
    fn terminate(&mut self) {
        if self.group_is_ours() && self.terminated.insert(self.program) {
            let group = process_table::descendants().into_iter().filter(|kin| kin.group == self.program.as_raw_pid());
            self.terminated.extend(group.map(|kin| kin.process));
            let _ = kill_process_group(self.program, Signal::TERM);
            let _ = kill_process_group(self.program, Signal::CONT);
        }
        if self.exit.is_none() {
            return;
        }
        for kin in process_table::descendants() {
            if self.terminated.insert(kin.process) {
                let _ = kill_process(kin.process, Signal::TERM);
                let _ = kill_process(kin.process, Signal::CONT);
            }
        }
    }

    fn kill(&self) {
        if self.group_is_ours() {
            let _ = kill_process_group(self.program, Signal::KILL);
        }
        for kin in process_table::descendants() {
            let _ = kill_process(kin.process, Signal::KILL);
        }
    }

    /// Once the program is reaped, its group may be gone and its number may be given to another. On Linux the rest of the
    /// group is found among the descendants then.
    fn group_is_ours(&self) -> bool {
        self.exit.is_none() || cfg!(not(target_os = "linux"))
    }
}
