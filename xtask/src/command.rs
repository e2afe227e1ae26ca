//! Running other programs: shown while they run, quoted when they fail.
//!
//! Whatever ends badly is told with the command line, how it ended and its last lines, so that nobody has to
//! run it again to see why.

use std::collections::VecDeque;
use std::fmt;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};

/// How many of the last lines of a program or a log are quoted.
const QUOTED_LINES: usize = 20;
const PAUSE: Duration = Duration::from_millis(50);
/// How often is looked whether a silent command has ended, and how long its last lines may take after that.
const LOOK_AGAIN: Duration = Duration::from_millis(200);
const LAST_LINES: Duration = Duration::from_secs(2);

/// Runs one step of a set-up quietly, and says how long it took; `remedy` is what to do if it fails.
pub fn step(command: &mut Command, limit: Duration, remedy: &str) -> Result<()> {
    println!("    $ {}", command_line(command));
    let started = Instant::now();
    let ended = follow(command, limit, |_| ()).map_err(|error| anyhow!("{error:#}\nWhat to do: {remedy}"))?;
    if !ended.is_success() {
        bail!("`{}` failed: {ended}\nWhat to do: {remedy}", command_line(command));
    }
    println!("      done in {}", seconds(started.elapsed()));
    Ok(())
}

/// What the command printed to stdout; an error when it failed.
pub fn output(command: &mut Command) -> Result<String> {
    let output = command.stdin(Stdio::null()).output().with_context(|| cannot_start(command))?;
    if !output.status.success() {
        let complaint = String::from_utf8_lossy(&output.stderr);
        bail!("`{}` failed: {}{}", command_line(command), output.status, quoted(complaint.lines()));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Runs the command to its end with its output passed through; an error when it failed.
pub fn shown(command: &mut Command) -> Result<()> {
    let status = command.stdin(Stdio::null()).status().with_context(|| cannot_start(command))?;
    if !status.success() {
        bail!("`{}` failed: {status}; its output is above", command_line(command));
    }
    Ok(())
}

/// Runs the command to its end or its limit, hands over each line of its output, and keeps the last ones.
pub fn follow(command: &mut Command, limit: Duration, mut each_line: impl FnMut(&str)) -> Result<Ended> {
    let deadline = Instant::now() + limit;
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().with_context(|| cannot_start(command))?;
    let (sender, lines) = mpsc::channel();
    send_lines(child.stdout.take().expect("stdout is piped"), sender.clone());
    send_lines(child.stderr.take().expect("stderr is piped"), sender);

    let mut last = VecDeque::new();
    let mut ended_at: Option<Instant> = None;
    while Instant::now() < deadline {
        let line = match lines.recv_timeout(deadline.saturating_duration_since(Instant::now()).min(LOOK_AGAIN)) {
            Ok(line) => line,
            Err(RecvTimeoutError::Disconnected) => break,
            // A process that the command has left behind may keep the pipe open for ever.
            Err(RecvTimeoutError::Timeout) => {
                if child.try_wait()?.is_some() && ended_at.get_or_insert_with(Instant::now).elapsed() > LAST_LINES {
                    break;
                }
                continue;
            }
        };
        each_line(&line);
        if last.len() == QUOTED_LINES {
            last.pop_front();
        }
        last.push_back(line);
    }
    let how = match wait(&mut child, deadline)? {
        Some(status) => How::Exited(status),
        None => {
            kill(&mut child)?;
            How::OutOfTime(limit)
        }
    };
    Ok(Ended { how, last })
}

/// Waits for the child to end; none when it still runs at the deadline.
pub fn wait(child: &mut Child, deadline: Instant) -> Result<Option<ExitStatus>> {
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if Instant::now() >= deadline {
            return Ok(None);
        }
        thread::sleep(PAUSE);
    }
}

pub fn kill(child: &mut Child) -> Result<()> {
    child.kill()?;
    child.wait()?;
    Ok(())
}

/// Sends each line of the text from a thread of its own, until the text ends.
pub fn send_lines(text: impl Read + Send + 'static, sender: Sender<String>) {
    thread::spawn(move || {
        for line in lines(text) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
}

/// The lines of a text that may hold anything, UTF-8 or not.
pub fn lines(text: impl Read) -> impl Iterator<Item = String> {
    BufReader::new(text)
        .split(b'\n')
        .map_while(Result::ok)
        .map(|line| String::from_utf8_lossy(&line).trim_end_matches('\r').to_owned())
}

/// Whether the program starts at all and is content.
pub fn works(command: &mut Command) -> bool {
    let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    quiet.status().is_ok_and(|status| status.success())
}

/// The last lines of the file, ready to follow a sentence.
pub fn last_lines(file: &Path) -> String {
    match std::fs::read(file) {
        Ok(text) if text.is_empty() => " (empty)".to_owned(),
        Ok(text) => quoted(String::from_utf8_lossy(&text).lines()),
        Err(error) => format!(" ({error})"),
    }
}

pub fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

/// How a followed command ended, and its last lines.
pub struct Ended {
    how: How,
    last: VecDeque<String>,
}

enum How {
    Exited(ExitStatus),
    OutOfTime(Duration),
}

impl Ended {
    pub fn is_success(&self) -> bool {
        matches!(self.how, How::Exited(status) if status.success())
    }
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.how {
            How::Exited(status) => write!(f, "{status}")?,
            How::OutOfTime(limit) => write!(f, "not over after {} s", limit.as_secs())?,
        }
        f.write_str(&quoted(self.last.iter().map(String::as_str)))
    }
}

fn quoted<'a>(lines: impl Iterator<Item = &'a str>) -> String {
    let lines: Vec<&str> = lines.filter(|line| !line.trim().is_empty()).collect();
    let last = &lines[lines.len().saturating_sub(QUOTED_LINES)..];
    last.iter().map(|line| format!("\n    | {line}")).collect()
}

fn command_line(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

fn cannot_start(command: &Command) -> String {
    format!("`{}` cannot be started", command_line(command))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_told_with_its_last_lines() {
        for (script, limit, expected) in [
            ("echo first; echo second >&2; exit 3", 20_000, "exit status: 3\n    | first\n    | second"),
            ("echo here; kill -9 $$", 20_000, "signal: 9 (SIGKILL)\n    | here"),
            // The limit holds although somebody else keeps the pipe open, or never stops talking.
            ("sleep 5 & wait", 1000, "not over after 1 s"),
            ("while :; do echo; done", 1000, "not over after 1 s"),
        ] {
            let ended = follow(Command::new("sh").args(["-c", script]), Duration::from_millis(limit), |_| ()).unwrap();
            let lines: Vec<String> = ended.to_string().lines().map(str::to_owned).collect();
            let mut expected: Vec<&str> = expected.lines().collect();
            let mut printed: Vec<&str> = lines.iter().map(String::as_str).collect();
            // Two pipes have no order between them.
            printed[1..].sort();
            expected[1..].sort();
            assert_eq!(printed, expected, "{script}");
        }
    }

    #[test]
    fn only_the_last_lines_are_quoted() {
        let ended = follow(Command::new("seq").arg("100"), Duration::from_secs(20), |_| ()).unwrap();
        assert!(ended.is_success());
        let printed = ended.to_string();
        assert_eq!(printed.lines().count(), 1 + QUOTED_LINES);
        assert!(printed.ends_with("| 100"), "{printed}");
    }

    #[test]
    fn a_missing_program_is_named() {
        let error = step(&mut Command::new("no-such-program"), Duration::from_secs(1), "install it").unwrap_err();
        assert!(error.to_string().contains("`no-such-program` cannot be started"), "{error:#}");
    }
}
