//! The line that says how a task stands and for how long somebody waits. It is drawn again in its place, and gone before
//! anything else is written.

use std::io::{self, Write};
use std::time::{Duration, Instant};

use rustix::termios::tcgetwinsize;

/// What is over sooner needs no line.
const QUICK: Duration = Duration::from_millis(300);
/// A little longer than the longest wait before the next try.
const PASSING: Duration = Duration::from_secs(20);
/// Where a terminal does not say how wide it is.
const USUAL_WIDTH: usize = 80;
const CLEAR: &str = "\r\u{1b}[K";

pub struct ProgressLine {
    is_enabled: bool,
    is_drawn: bool,
    since: Instant,
    text: String,
    /// Shown instead, until then.
    passing: Option<(String, Instant)>,
}

impl ProgressLine {
    /// `is_enabled`: stderr is a terminal on which lines can be drawn again.
    pub fn new(is_enabled: bool) -> Self {
        ProgressLine { is_enabled, is_drawn: false, since: Instant::now(), text: String::new(), passing: None }
    }

    /// One line of harmless text.
    pub fn set(&mut self, text: String) {
        self.text = text;
        self.passing = None;
    }

    /// The same for something that is over when nothing is said of it any more.
    pub fn set_for_a_while(&mut self, text: String) {
        self.passing = Some((text, Instant::now() + PASSING));
    }

    pub fn draw(&mut self) {
        let elapsed = self.since.elapsed();
        self.passing.take_if(|(_, until)| Instant::now() >= *until);
        let text = self.passing.as_ref().map_or(&self.text, |(text, _)| text);
        if !self.is_enabled || text.is_empty() || elapsed < QUICK {
            return;
        }
        let width = tcgetwinsize(io::stderr()).map_or(0, |size| usize::from(size.ws_col));
        let width = if width == 0 { USUAL_WIDTH } else { width };
        write(&format!("{CLEAR}{}", line(text, elapsed, width)));
        self.is_drawn = true;
    }

    pub fn clear(&mut self) {
        if std::mem::take(&mut self.is_drawn) {
            write(CLEAR);
        }
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        self.clear();
    }
}

/// Whoever closes stderr has seen enough.
fn write(text: &str) {
    let mut out = io::stderr().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// `12 s  working: reading main.py`, no wider than the terminal: a line that wraps could not be erased.
fn line(text: &str, elapsed: Duration, width: usize) -> String {
    let seconds = elapsed.as_secs();
    let time = match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, seconds) => format!("{seconds} s"),
        (0, minutes, seconds) => format!("{minutes}:{seconds:02} min"),
        (hours, minutes, _) => format!("{hours}:{minutes:02} h"),
    };
    let mut room = width.saturating_sub(1);
    let mut shown = String::new();
    for letter in format!("{time}  {text}").chars() {
        // Letters of many scripts are two columns wide.
        let columns = if letter.is_ascii() { 1 } else { 2 };
        if columns > room {
            break;
        }
        room -= columns;
        shown.push(letter);
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_is_never_wider_than_the_terminal() {
        for (text, seconds, width, expected) in [
            ("working", 3, 80, "3 s  working"),
            ("working", 75, 80, "1:15 min  working"),
            ("working", 7260, 80, "2:01 h  working"),
            ("working: long words", 3, 12, "3 s  workin"),
            ("日本語", 3, 10, "3 s  日本"),
            ("x", 3, 0, ""),
        ] {
            assert_eq!(line(text, Duration::from_secs(seconds), width), expected);
        }
    }
}
