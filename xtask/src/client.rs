//! One client suite through one binding, against a server of its own with an empty store.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::Result;

use crate::command::{self, Ended};
use crate::server::Server;
use crate::tally::Tally;

const LIMIT: Duration = Duration::from_secs(600);

/// Runs the suite; `command` is its program, `log` where the server's log goes.
pub fn run(mut command: Command, binding: &str, binary: &Path, log: &Path) -> Result<Tally> {
    let server = Server::start(binary, log)?;
    command.args(["--url", &server.url, "--binding", binding]);
    // Whatever proxy the machine has, the loopback interface is not behind it.
    command.env("NO_PROXY", "127.0.0.1").env("no_proxy", "127.0.0.1");
    let mut heard = Heard::default();
    let ended = command::follow(&mut command, LIMIT, |line| heard.line(line))?;
    let mut tally = heard.tally(&ended);
    if let Err(error) = server.stop() {
        println!("    FAILED: {error:#}");
        tally += Tally::FAILED;
    }
    if tally.failed > 0 {
        println!("    the end of the server's log, {}:{}", log.display(), command::last_lines(log));
    }
    Ok(tally)
}

/// What the suite has said so far.
#[derive(Default)]
struct Heard {
    cases: Tally,
    total: Option<Tally>,
}

impl Heard {
    fn line(&mut self, line: &str) {
        if line.starts_with("not ok - ") {
            println!("    {line}");
            self.cases += Tally::FAILED;
        } else if line.starts_with("ok - ") {
            self.cases += Tally::PASSED;
        } else if let Some(total) = Tally::parse(line) {
            self.total = Some(total);
        }
    }

    /// The suite's own count; what it leaves open counts as failed.
    fn tally(&self, ended: &Ended) -> Tally {
        let mut tally = self.total.unwrap_or(self.cases);
        let complaint = match self.total {
            None => Some("it ended without a count"),
            Some(total) if total.failed == 0 && !ended.is_success() => Some("no case failed, but the suite did"),
            Some(total) if total == Tally::default() => Some("no case ran"),
            Some(_) => None,
        };
        if let Some(complaint) = complaint {
            println!("    FAILED: {complaint}: {ended}");
            tally += Tally::FAILED;
        }
        tally
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_suite_says_is_counted() {
        for (script, expected) in [
            ("echo 'ok - a'; echo '1 passed, 0 failed'", "1 passed, 0 failed"),
            ("echo 'ok - a'; echo 'not ok - b: why'; echo '1 passed, 1 failed'; exit 1", "1 passed, 1 failed"),
            ("echo 'ok - a'; echo 'ok - b'; exit 1", "2 passed, 1 failed"),
            ("echo 'ok - a'; echo '1 passed, 0 failed'; exit 1", "1 passed, 1 failed"),
            ("echo '0 passed, 0 failed'", "0 passed, 1 failed"),
            ("true", "0 passed, 1 failed"),
        ] {
            let mut heard = Heard::default();
            let mut shell = Command::new("sh");
            let ended = command::follow(shell.args(["-c", script]), LIMIT, |line| heard.line(line)).unwrap();
            assert_eq!(heard.tally(&ended).to_string(), expected, "{script}");
        }
    }
}
