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

use super::frames::{Ending, News, Order};
use super::kin;
use crate::protocol::Exit;

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
    let sabir = Sabir(Arc::new(Mutex::new(socket.try_clone()?)));
    // A session of its own has no terminal. So a program cannot ask the operator for a password there and wait for ever, and
    // Ctrl-C is for Sabir, which then decides what becomes of its programs.
    let _ = rustix::process::setsid();
    kin::adopt_orphans();
    go_by_another_name();
    let started = start(program, socket, &sabir).inspect_err(|error| {
        sabir.tell(News::NotStarted(error.raw_os_error().unwrap_or(Errno::INVAL.raw_os_error())));
    });
    let (family, happenings) = started?;
    let_go_of_the_output()?;
    let exit = family.watch_over(&happenings);
    sabir.tell(News::Ended(exit));
    Ok(exit)
}

/// Starts the program and those who serve it.
fn start(program: &mut Command, socket: File, sabir: &Sabir) -> io::Result<(Family, Happenings)> {
    let mut child = program.stdin(Stdio::piped()).process_group(0).spawn()?;
    let process = i32::try_from(child.id()).ok().and_then(Pid::from_raw).expect("a process id is a positive number");
    let stdin = child.stdin.take().expect("it is piped");
    let (sender, receiver) = mpsc::channel();
    let (input, pieces) = mpsc::channel();
    let reaping = sender.clone();
    let obeying = sender.clone();
    let feeding = sabir.clone();
    let served = serve("reap", move || reap(process, &reaping))
        .and_then(|()| serve("feed", move || feed(stdin, &pieces, &feeding)))
        .and_then(|()| serve("obey", move || obey(socket, input, &obeying)));
    if let Err(error) = served {
        let _ = kill_process_group(process, Signal::KILL);
        let _ = child.wait();
        return Err(error);
    }
    sabir.tell(News::Started(process.as_raw_pid()));
    let family = Family { program: process, exit: None, has_children: true, warned: HashSet::new() };
    Ok((family, Happenings { receiver, _sender: sender }))
}

fn serve(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    thread::Builder::new().name(name.to_owned()).stack_size(STACK).spawn(work).map(drop)
}

/// Whoever ends all of Sabir by its name, with `pkill -9 sabir`, should not end the guards with it: they have work to do then.
fn go_by_another_name() {
    #[cfg(target_os = "linux")]
    let _ = std::fs::write("/proc/self/comm", "agent-guard");
}

/// The program has its output now. Were it open here too, Sabir could not see that the program closes it.
fn let_go_of_the_output() -> io::Result<()> {
    let nowhere = File::options().write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdout(&nowhere)?;
    rustix::stdio::dup2_stderr(&nowhere)?;
    Ok(())
}

/// The way back to Sabir. Nobody may listen there: then there is nobody to be told.
#[derive(Clone)]
struct Sabir(Arc<Mutex<File>>);

impl Sabir {
    fn tell(&self, news: News) {
        let _ = self.0.lock().unwrap_or_else(PoisonError::into_inner).write_all(&news.bytes());
    }
}

enum Happening {
    Terminate,
    Kill,
    /// Sabir has closed the socket, or is no more.
    SabirGone,
    ProgramEnded(Exit),
    /// There is nobody left below us.
    Childless,
}

struct Happenings {
    receiver: Receiver<Happening>,
    /// So that waiting is waiting, also when all threads are through.
    _sender: Sender<Happening>,
}

impl Happenings {
    /// The next one; at the latest, once something is about to end, after a round.
    fn next(&self, deadline: Option<Instant>) -> Option<Happening> {
        match deadline {
            None => self.receiver.recv().ok(),
            Some(_) => self.receiver.recv_timeout(ROUND).ok(),
        }
    }
}

/// A thread: hears what Sabir wants. Input is handed on, so that a program which does not read cannot hold up a signal. How
/// much is under way is Sabir's to limit.
fn obey(mut socket: File, input: Sender<Vec<u8>>, happenings: &Sender<Happening>) {
    let mut input = Some(input);
    let mut ending = Ending::Asked;
    loop {
        let happening = match Order::read(&mut socket) {
            Ok(Order::Input(bytes)) => {
                let _ = input.as_ref().map(|input| input.send(bytes));
                continue;
            }
            Ok(Order::CloseInput) => {
                input = None;
                continue;
            }
            Ok(Order::Terminate) => Happening::Terminate,
            Ok(Order::Kill) => Happening::Kill,
            Ok(Order::IfAlone(how)) => {
                ending = how;
                continue;
            }
            Err(_) if ending == Ending::AtOnce => {
                let _ = happenings.send(Happening::Kill);
                // Its input stays open: whoever sees the end of it may act before the signal comes.
                std::mem::forget(input);
                return;
            }
            Err(_) => {
                let _ = happenings.send(Happening::SabirGone);
                return;
            }
        };
        let _ = happenings.send(happening);
    }
}

/// A thread: writes the program's input until it is closed.
fn feed(mut stdin: ChildStdin, pieces: &Receiver<Vec<u8>>, sabir: &Sabir) {
    for piece in pieces {
        if stdin.write_all(&piece).is_err() {
            sabir.tell(News::InputClosed);
            return;
        }
        sabir.tell(News::Fed(u32::try_from(piece.len()).expect("a piece is short")));
    }
}

/// A thread: reaps whoever dies, orphans too, until nobody is left.
fn reap(program: Pid, happenings: &Sender<Happening>) {
    loop {
        match rustix::process::wait(WaitOptions::empty()) {
            Ok(Some((process, status))) if process == program => {
                let _ = happenings.send(Happening::ProgramEnded(exit(status)));
            }
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => {
                let _ = happenings.send(Happening::Childless);
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
struct Family {
    program: Pid,
    exit: Option<Exit>,
    has_children: bool,
    /// Who has had SIGTERM. Many programs take a second one for impatience.
    warned: HashSet<Pid>,
}

impl Family {
    /// Until all of them are gone.
    fn watch_over(mut self, happenings: &Happenings) -> Exit {
        let mut kill_at: Option<Instant> = None;
        while !self.is_gone() {
            let happening = happenings.next(kill_at);
            let now = Instant::now();
            let sooner = |at: Instant| Some(kill_at.map_or(at, |earlier| earlier.min(at)));
            match happening {
                Some(Happening::Terminate) => self.terminate(),
                Some(Happening::Kill) => kill_at = sooner(now),
                Some(Happening::SabirGone) => {
                    kill_at = sooner(now + GRACE);
                    self.terminate();
                }
                // Mostly nothing is left then, and we hear of that before the round is over.
                Some(Happening::ProgramEnded(exit)) => {
                    kill_at = sooner(now + GRACE);
                    self.exit = Some(exit);
                    continue;
                }
                Some(Happening::Childless) => self.has_children = false,
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
        if self.group_is_ours() && self.warned.insert(self.program) {
            let group = kin::descendants().into_iter().filter(|kin| kin.group == self.program.as_raw_pid());
            self.warned.extend(group.map(|kin| kin.process));
            let _ = kill_process_group(self.program, Signal::TERM);
            let _ = kill_process_group(self.program, Signal::CONT);
        }
        if self.exit.is_none() {
            return;
        }
        for kin in kin::descendants() {
            if self.warned.insert(kin.process) {
                let _ = kill_process(kin.process, Signal::TERM);
                let _ = kill_process(kin.process, Signal::CONT);
            }
        }
    }

    fn kill(&self) {
        if self.group_is_ours() {
            let _ = kill_process_group(self.program, Signal::KILL);
        }
        for kin in kin::descendants() {
            let _ = kill_process(kin.process, Signal::KILL);
        }
    }

    /// Once the program is reaped, its group may be gone and its number may be given to another. On Linux the rest of the
    /// group is found among the descendants then.
    fn group_is_ours(&self) -> bool {
        self.exit.is_none() || cfg!(not(target_os = "linux"))
    }
}
