//! The output of a suite in another language: a line per case, and its own count at the end.

use std::process::Command;
use std::time::Duration;

use anyhow::Result;

use crate::command::{self, Ended};
use crate::tally::Tally;

/// Runs the suite to its end or its limit, shows what failed, and counts.
pub fn tally(suite: &mut Command, limit: Duration) -> Result<Tally> {
    let mut suite_output = SuiteOutput::default();
    let ended = command::follow(suite, limit, |line| suite_output.line(line))?;
    Ok(suite_output.tally(&ended))
}

/// The output of the suite so far.
#[derive(Default)]
struct SuiteOutput {
    cases: Tally,
    total: Option<Tally>,
}

impl SuiteOutput {
    fn line(&mut self, line: &str) {
        if line.starts_with("skipped - ") {
            println!("    {line}");
        } else if line.starts_with("not ok - ") {
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
    use std::time::Instant;

    use super::*;

    #[test]
    fn the_output_of_a_suite_is_counted() {
        for (script, expected) in [
            ("echo 'ok - a'; echo '1 passed, 0 failed'", "1 passed, 0 failed"),
            ("echo 'ok - a'; echo 'not ok - b: why'; echo '1 passed, 1 failed'; exit 1", "1 passed, 1 failed"),
            ("echo 'ok - a'; echo 'ok - b'; exit 1", "2 passed, 1 failed"),
            ("echo 'ok - a'; echo '1 passed, 0 failed'; exit 1", "1 passed, 1 failed"),
            ("echo '0 passed, 0 failed'", "0 passed, 1 failed"),
            ("true", "0 passed, 1 failed"),
            // A process that is left behind with the output in its hands.
            ("echo 'ok - a'; sleep 15 & echo '1 passed, 0 failed'", "1 passed, 0 failed"),
        ] {
            let mut shell = Command::new("sh");
            let began = Instant::now();
            let tally = tally(shell.args(["-c", script]), Duration::from_secs(20)).unwrap();
            assert_eq!(tally.to_string(), expected, "{script}");
            assert!(began.elapsed() < Duration::from_secs(12), "{script}");
        }
    }
}
