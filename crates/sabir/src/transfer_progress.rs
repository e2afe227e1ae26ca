//! A line on a terminal that says how far a long command is.

use std::io::Write;
use std::time::{Duration, Instant};

use crate::process_environment::Terminals;

/// Between two drawings.
const PAUSE: Duration = Duration::from_millis(200);
const WIDTH: u64 = 30;

/// Draws on the standard error, so that the standard output has the result alone.
pub struct ProgressLine {
    is_drawn: bool,
    last: Option<Instant>,
}

impl ProgressLine {
    /// Nothing is drawn where nobody would see it, or where lines cannot be erased.
    pub fn on(terminals: &Terminals) -> Self {
        Self { is_drawn: terminals.stderr && terminals.redraws, last: None }
    }

    #[cfg(test)]
    pub fn nowhere() -> Self {
        Self { is_drawn: false, last: None }
    }

    pub fn show(&mut self, what: &str, done: u64, all: u64) {
        let is_soon = self.last.is_some_and(|last| last.elapsed() < PAUSE);
        if !self.is_drawn || is_soon {
            return;
        }
        self.last = Some(Instant::now());
        let _ = write!(std::io::stderr(), "\r\x1b[K{}", line(what, done, all));
    }

    pub fn clear(&mut self) {
        if self.is_drawn && self.last.take().is_some() {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}

fn line(what: &str, done: u64, all: u64) -> String {
    let done = done.min(all);
    let filled = (done * WIDTH).checked_div(all).unwrap_or(WIDTH);
    let bar: String = (0..WIDTH).map(|place| if place < filled { '#' } else { '.' }).collect();
    let percent = (done * 100).checked_div(all).unwrap_or(100);
    format!("{what} [{bar}] {percent}% ({done} of {all})")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_how_much_is_done() {
        for (done, all, expected) in [
            (0, 0, "copying [##############################] 100% (0 of 0)"),
            (0, 10, "copying [..............................] 0% (0 of 10)"),
            (5, 10, "copying [###############...............] 50% (5 of 10)"),
            (12, 10, "copying [##############################] 100% (10 of 10)"),
        ] {
            assert_eq!(line("copying", done, all), expected);
        }
    }
}
