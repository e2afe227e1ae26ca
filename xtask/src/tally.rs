//! How many tests passed and failed: counted, read from the output of others, and printed.

use std::fmt;
use std::ops::AddAssign;

#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub struct Tally {
    pub passed: u64,
    pub failed: u64,
}

impl Tally {
    pub const PASSED: Tally = Tally { passed: 1, failed: 0 };
    pub const FAILED: Tally = Tally { passed: 0, failed: 1 };

    /// Reads the line `3 passed, 1 failed`, the last one of a client suite and of ours.
    pub fn parse(line: &str) -> Option<Tally> {
        let (passed, failed) = line.trim().split_once(" passed, ")?;
        Some(Tally { passed: passed.parse().ok()?, failed: failed.strip_suffix(" failed")?.parse().ok()? })
    }

    /// Reads `test result: ok. 3 passed; 1 failed; 0 ignored; ...`, which ends each test binary's output.
    pub fn parse_test_result(line: &str) -> Option<Tally> {
        let (_, counts) = line.split_once("test result: ")?;
        Some(Tally { passed: number_before(counts, " passed;")?, failed: number_before(counts, " failed;")? })
    }
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Tally) {
        self.passed += other.passed;
        self.failed += other.failed;
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed", self.passed, self.failed)
    }
}

fn number_before(text: &str, mark: &str) -> Option<u64> {
    let (before, _) = text.split_once(mark)?;
    before.rsplit(' ').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_read_from_lines() {
        for (line, expected) in [
            ("12 passed, 3 failed", "12 passed, 3 failed"),
            ("  0 passed, 0 failed\r\n", "0 passed, 0 failed"),
            ("ok - 12 passed, 3 failed", "none"),
            ("12 passed, 3 failed, 1 left", "none"),
            ("", "none"),
        ] {
            assert_eq!(say(Tally::parse(line)), expected, "{line:?}");
        }
    }

    #[test]
    fn test_results_are_read_from_lines() {
        let rest = "0 ignored; 0 measured; 0 filtered out; finished in 0.01s";
        for (line, expected) in [
            (format!("test result: ok. 7 passed; 0 failed; {rest}"), "7 passed, 0 failed"),
            (format!("test result: FAILED. 5 passed; 2 failed; {rest}"), "5 passed, 2 failed"),
            (format!("test result: \u{1b}[32mok\u{1b}[m. 7 passed; 0 failed; {rest}"), "7 passed, 0 failed"),
            ("test result_of_a_call ... ok".to_owned(), "none"),
        ] {
            assert_eq!(say(Tally::parse_test_result(&line)), expected, "{line:?}");
        }
    }

    fn say(tally: Option<Tally>) -> String {
        tally.map_or("none".to_owned(), |tally| tally.to_string())
    }
}
