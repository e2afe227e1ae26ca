//! Starts a program under a guard.

use std::any::Any;
use std::error::Error;
use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::io::Errno;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::process::Command;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, sleep_until};

use super::child::{Child, Held};
use super::deadline::Deadline;
use super::frames::GuardEvent;
use super::guard_link::{GuardLink, Input};
use super::lease::GuardLease;
use super::leftovers::{self, KnownGuard};
use super::lines::Lines;
use super::mark::Mark;
use super::stderr_tail::StderrTail;
use super::{GUARD, MARKED, OPEN_FILES, RUN_UNTIL, resolve};

/// How long a guard may take to report whether its program runs, not counting the time when it must not start it.
const START_LIMIT: Duration = Duration::from_secs(30);

/// What to run, and within which limits.
#[derive(Debug, Clone)]
pub struct Launch {
    /// The `sabir` binary. On Linux `/proc/self/exe` is the running one, even if the file has been replaced since.
    pub guard: PathBuf,
    /// A name to look up in the environment's `PATH`, or a path relative to the folder.
    pub program: OsString,
    pub arguments: Vec<OsString>,
    pub folder: PathBuf,
    /// The complete environment: nothing else of Sabir's own is passed on.
    pub environment: Vec<(OsString, OsString)>,
    /// A longer line is dropped.
    pub max_line: usize,
    /// What the program may print in all, in bytes.
    pub max_output: u64,
    /// How long it may take to end after SIGTERM.
    pub stop_grace: Duration,
    /// How many files it may open; `None`: as many as Sabir.
    pub open_files: Option<u64>,
}

impl Launch {
    /// Starts the program, which runs when this returns. Waits while the lease is over.
    pub async fn start(self) -> Result<Child, LaunchError> {
        self.start_holding(None).await
    }

    /// Like `start`, and keeps a value until the program and all that it started are gone. Dropping the future ends a
    /// program that is about to start.
    pub async fn start_holding(self, held: Option<Box<dyn Any + Send>>) -> Result<Child, LaunchError> {
        let (mut started, starting) = oneshot::channel();
        let guard = self.guard.clone();
        // A separate task, so that a start that was begun is always finished or undone.
        tokio::spawn(async move {
            let held = Arc::new(Mutex::new(held));
            let child = self.start_unless(started.closed(), held).await;
            let _ = started.send(child);
        });
        starting.await.unwrap_or_else(|_| {
            let source = io::Error::other("the server stops");
            Err(LaunchError::Guard { guard, source })
        })
    }

    async fn start_unless(self, unwanted: impl Future<Output = ()>, held: Held) -> Result<Child, LaunchError> {
        let folder = resolve::folder(&self.folder)?;
        let program = resolve::program(&self.program, &folder, &self.environment)?;
        let no_guard = |source| LaunchError::Guard { guard: self.guard.clone(), source };
        let (ours, theirs) = std::os::unix::net::UnixStream::pair().map_err(no_guard)?;
        ours.set_nonblocking(true).map_err(no_guard)?;
        let mut socket = UnixStream::from_std(ours).map_err(no_guard)?;
        let mark = Mark::new();
        let mut command = Command::new(&self.guard);
        command.arg(GUARD).arg(MARKED).arg(mark.as_str());
        if let Some(limit) = self.open_files {
            command.arg(OPEN_FILES).arg(limit.to_string());
        }
        let mut lease = GuardLease::new();
        if let Some(deadline) = lease.deadline() {
            command.arg(RUN_UNTIL).arg(deadline.as_nanoseconds().to_string());
        }
        command
            .arg(&program)
            .args(&self.arguments)
            .current_dir(&folder)
            .env_clear()
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::from(std::os::fd::OwnedFd::from(theirs)))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let spawned = KnownGuard::spawn(|| command.spawn());
        // The command holds the guard's end of the socket, which must be open only in the guard.
        drop(command);
        let (mut guard, known) = spawned.map_err(|source| match source.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied => no_guard(source),
            // Too many arguments, a zero byte in one, no more processes: the program itself would fail the same way.
            _ => LaunchError::Refused { program: program.clone(), source },
        })?;
        let answer = tokio::select! {
            biased;
            answer = first_event(&mut socket, &mut lease) => answer,
            () = unwanted => Err(io::ErrorKind::Interrupted.into()),
            () = leftovers::until_stopped(guard.id()) => Err(io::Error::other("its program has stopped it")),
        };
        let process = match answer {
            Ok(Some(GuardEvent::Started(process))) => process,
            Ok(Some(GuardEvent::NotStarted(reason))) => {
                let _ = guard.wait().await;
                return Err(LaunchError::Refused { program, source: io::Error::from_raw_os_error(reason) });
            }
            answer => {
                // The program may already run, and may have killed or stopped its guard.
                let leftover = mark.clone();
                let _ = tokio::task::spawn_blocking(move || leftovers::end(&leftover)).await;
                let _ = guard.start_kill();
                let _ = guard.wait().await;
                // The guard may have started the program after the first sweep.
                let _ = tokio::task::spawn_blocking(move || leftovers::end(&mark)).await;
                let source = match answer {
                    Err(error) => error,
                    Ok(_) => io::Error::other("it does not speak as a guard does"),
                };
                return Err(no_guard(source));
            }
        };
        let pid = guard.id().unwrap_or_default();
        let stdout = guard.stdout.take().expect("it is piped");
        let stderr = guard.stderr.take().expect("it is piped");
        let stderr_tail = StderrTail::default();
        let stderr_reader = tokio::spawn(stderr_tail.clone().read_from(stderr));
        let input = Arc::new(Input::default());
        let (orders, ordered) = mpsc::unbounded_channel();
        let (exit_sender, exit) = watch::channel(None);
        let guard_link = GuardLink::new(socket, guard, process, mark, lease, Arc::clone(&input));
        let until_gone = Arc::clone(&held);
        tokio::spawn(async move {
            let gone = move || {
                drop(known);
                until_gone.lock().unwrap_or_else(PoisonError::into_inner).take();
            };
            guard_link.run(ordered, stderr_reader, gone, exit_sender).await;
        });
        Ok(Child {
            pid,
            stdout,
            lines: Lines::new(self.max_line, self.max_output),
            stderr_tail,
            orders,
            input,
            exit,
            linger_until: None,
            stop_grace: self.stop_grace,
            held,
        })
    }
}

/// The first event of a guard. Sends new deadlines meanwhile: after a deadline the guard waits for the next one before it
/// starts its program.
async fn first_event(socket: &mut UnixStream, lease: &mut GuardLease) -> io::Result<Option<GuardEvent>> {
    let mut bytes = [0; GuardEvent::LENGTH];
    let (mut from_guard, mut to_guard) = socket.split();
    let mut reading = std::pin::pin!(from_guard.read_exact(&mut bytes));
    let mut limit = Instant::now() + START_LIMIT;
    loop {
        let deadline = lease.deadline();
        let is_held = || deadline.is_some_and(Deadline::is_over);
        tokio::select! {
            biased;
            read = reading.as_mut() => {
                read?;
                return Ok(GuardEvent::parse(bytes));
            }
            order = lease.next_order() => {
                let mut frame = Vec::new();
                order.write(&mut frame);
                if to_guard.write_all(&frame).await.is_err() {
                    // The guard has ended, as that of a very short program may have. What it said before is still to be read.
                    reading.as_mut().await?;
                    return Ok(GuardEvent::parse(bytes));
                }
                if is_held() {
                    limit = Instant::now() + START_LIMIT;
                }
            }
            () = sleep_until(limit) => match is_held() {
                true => limit = Instant::now() + START_LIMIT,
                false => return Err(io::Error::new(io::ErrorKind::TimedOut, "it does not answer")),
            },
        }
    }
}

/// Why a program does not run, in words for the operator.
#[derive(Debug)]
pub enum LaunchError {
    NoFolder(PathBuf),
    NotAFolder(PathBuf),
    NotInPath {
        program: OsString,
        path: OsString,
    },
    NoFile(PathBuf),
    NotExecutable(PathBuf),
    /// The file exists, but the operating system refuses to run it.
    Refused {
        program: PathBuf,
        source: io::Error,
    },
    /// The guard does not run, so the program was not tried.
    Guard {
        guard: PathBuf,
        source: io::Error,
    },
}

impl LaunchError {
    /// Whether the arguments, which include the prompt for some programs, are longer than the operating system allows.
    pub fn is_too_long(&self) -> bool {
        let too_long = Some(Errno::TOOBIG.raw_os_error());
        matches!(self, LaunchError::Refused { source, .. } if source.raw_os_error() == too_long)
    }
}

impl fmt::Display for LaunchError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LaunchError::NoFolder(folder) => {
                write!(out, "the folder {} does not exist; create it or choose another", folder.display())
            }
            LaunchError::NotAFolder(file) => write!(out, "{} is not a folder; choose another", file.display()),
            LaunchError::NotInPath { program, path } => {
                let (program, path) = (program.display(), path.display());
                write!(out, "{program} was not found in PATH ({path}); install it or give its full path")
            }
            LaunchError::NoFile(file) => {
                write!(out, "the program {} does not exist; install it or correct the path", file.display())
            }
            LaunchError::NotExecutable(file) => {
                let file = file.display();
                write!(out, "{file} is not executable; allow it with: chmod +x {file}")
            }
            // The file itself exists, so its interpreter is missing.
            LaunchError::Refused { program, source } if source.raw_os_error() == Some(Errno::NOENT.raw_os_error()) => {
                let program = program.display();
                write!(out, "{program} cannot be started: what it needs to run, named in its first line, is not there")
            }
            LaunchError::Refused { program, source } => {
                write!(out, "{} cannot be started: {source}", program.display())
            }
            LaunchError::Guard { guard, source } => {
                write!(out, "{} cannot be started as the guard of a program: {source}", guard.display())
            }
        }
    }
}

impl Error for LaunchError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            LaunchError::Refused { source, .. } | LaunchError::Guard { source, .. } => Some(source),
            _ => None,
        }
    }
}
