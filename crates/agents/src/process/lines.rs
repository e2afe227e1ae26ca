//! Splits a program's output into lines, within limits.
//!
//! A program may print anything: a hundred megabytes without a line break, invalid UTF-8, output without end. At most one
//! line and one read are held in memory.

use super::child::Output;

/// How much is read at once.
const READ: usize = 32 * 1024;

pub(super) struct Lines {
    max_line: usize,
    max_output: u64,
    /// How many bytes the program may still print.
    left: u64,
    chunk: Box<[u8]>,
    /// The part of the chunk that is not split yet.
    from: usize,
    to: usize,
    /// The beginning of an incomplete line.
    partial: Vec<u8>,
    /// How many bytes of a line that is too long were dropped.
    skipped: usize,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Open,
    /// The program printed more than it may.
    LimitReached,
    /// The output has ended, but the last line may not be returned yet.
    Ended,
    Closed,
}

impl Lines {
    pub(super) fn new(max_line: usize, max_output: u64) -> Self {
        Self {
            max_line,
            max_output,
            left: max_output,
            chunk: vec![0; READ].into_boxed_slice(),
            from: 0,
            to: 0,
            partial: Vec::new(),
            skipped: 0,
            state: State::Open,
        }
    }

    /// The buffer to read into, when `next` returned nothing.
    pub(super) fn read_buffer(&mut self) -> &mut [u8] {
        debug_assert!(self.from == self.to, "what came before is cut first");
        &mut self.chunk
    }

    /// This many bytes were read into `read_buffer`.
    pub(super) fn received(&mut self, count: usize) {
        let allowed = usize::try_from(self.left).unwrap_or(usize::MAX);
        if count > allowed {
            self.state = State::LimitReached;
        }
        self.from = 0;
        self.to = count.min(allowed);
        self.left -= self.to as u64;
    }

    /// Resets the limit of the whole output.
    pub(super) fn reset_limit(&mut self) {
        self.left = self.max_output;
    }

    /// The output has ended.
    pub(super) fn end(&mut self) {
        if self.state == State::Open {
            self.state = State::Ended;
        }
    }

    /// The next complete output.
    pub(super) fn next(&mut self) -> Option<Output> {
        while self.from < self.to {
            let rest = &self.chunk[self.from..self.to];
            match rest.iter().position(|byte| *byte == b'\n') {
                Some(length) => {
                    self.take(length);
                    self.from += 1;
                    return Some(self.line());
                }
                None => self.take(rest.len()),
            }
        }
        match self.state {
            State::Open => None,
            State::LimitReached => {
                self.state = State::Closed;
                Some(Output::LimitReached)
            }
            State::Ended => {
                self.state = State::Closed;
                let is_partial = self.skipped > 0 || !self.partial.is_empty();
                Some(if is_partial { self.line() } else { Output::Closed })
            }
            State::Closed => Some(Output::Closed),
        }
    }

    /// Whether everything was returned, and no line is incomplete.
    pub(super) fn is_empty(&self) -> bool {
        self.from == self.to && self.partial.is_empty() && self.skipped == 0
    }

    /// The next output, if it is a complete line.
    pub(super) fn take_whole_line(&mut self) -> Option<String> {
        let length = self.chunk[self.from..self.to].iter().position(|byte| *byte == b'\n')?;
        let is_short = self.skipped == 0 && self.partial.len() + length <= self.max_line;
        match is_short.then(|| self.next())? {
            Some(Output::Line(line)) => Some(line),
            _ => None,
        }
    }

    /// Takes an incomplete line if `is_wanted` accepts it. What follows is a line of its own.
    pub(super) fn take_partial_line(&mut self, is_wanted: impl FnOnce(&str) -> bool) -> Option<String> {
        let is_partial = self.from == self.to && self.skipped == 0 && self.state == State::Open;
        let text = String::from_utf8_lossy(if is_partial { &self.partial } else { &[] }).into_owned();
        let is_taken = !text.is_empty() && is_wanted(&text);
        is_taken.then(|| {
            self.partial.clear();
            text
        })
    }

    /// Moves a piece of the chunk to the line, or drops both when the line gets too long.
    fn take(&mut self, length: usize) {
        let piece = &self.chunk[self.from..self.from + length];
        self.from += length;
        // One more than the limit: a CR before the line break does not count.
        if self.skipped > 0 || self.partial.len() + length > self.max_line.saturating_add(1) {
            self.skipped += self.partial.len() + length;
            self.partial = Vec::new();
        } else {
            self.partial.extend_from_slice(piece);
        }
    }

    fn line(&mut self) -> Output {
        let skipped = std::mem::take(&mut self.skipped);
        if skipped > 0 {
            return Output::LineTooLong(skipped);
        }
        let mut line = std::mem::take(&mut self.partial);
        if line.last() == Some(&b'\r') {
            line.pop();
        }
        if line.len() > self.max_line {
            return Output::LineTooLong(line.len());
        }
        Output::Line(String::from_utf8(line).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into()))
    }
}

#[cfg(test)]
mod tests {
    use super::{Lines, Output};

    fn check(limits: (usize, u64), pieces: &[&[u8]], expected: &str) {
        let mut lines = Lines::new(limits.0, limits.1);
        let mut seen = Vec::new();
        let mut coming = pieces.iter();
        loop {
            match lines.next() {
                Some(Output::Line(line)) => seen.push(line),
                Some(Output::Closed) => break,
                Some(other) => seen.push(format!("{other:?}")),
                None => match coming.next() {
                    Some(piece) => {
                        lines.read_buffer()[..piece.len()].copy_from_slice(piece);
                        lines.received(piece.len());
                    }
                    None => lines.end(),
                },
            }
        }
        assert_eq!(seen.join("|"), expected, "{limits:?} {pieces:?}");
    }

    #[test]
    fn lines_that_have_come_are_there_without_waiting() {
        let mut lines = Lines::new(3, 1000);
        lines.read_buffer()[..16].copy_from_slice(b"a\nbcd\ntoo long\ne");
        lines.received(16);
        assert_eq!((lines.take_whole_line(), lines.take_whole_line()), (Some("a".into()), Some("bcd".into())));
        assert_eq!(lines.take_whole_line(), None);
        assert_eq!(lines.next(), Some(Output::LineTooLong(8)));
        assert_eq!((lines.take_whole_line(), lines.next()), (None, None));
        lines.end();
        assert_eq!((lines.take_whole_line(), lines.next()), (None, Some(Output::Line("e".into()))));
    }

    #[test]
    fn output_is_cut_into_lines() {
        let wide = (100, 1000);
        for (limits, pieces, expected) in [
            (wide, &[][..], ""),
            (wide, &[&b"one\ntwo\n"[..]], "one|two"),
            (wide, &[b"o", b"ne\r", b"\ntwo"], "one|two"),
            (wide, &[b"\n\na\n"], "||a"),
            (wide, &[b"a\rb\r\r\n"], "a\rb\r"),
            (wide, &[b"\xff\xfeok\n"], "\u{fffd}\u{fffd}ok"),
            (wide, &[b"\xe2\x82", b"\xac\n"], "€"),
            ((3, 1000), &[b"abc\r\nabcd\nab\n"], "abc|LineTooLong(4)|ab"),
            ((3, 1000), &[b"abcdef", b"ghi", b"j\nk\n"], "LineTooLong(10)|k"),
            ((3, 1000), &[b"ok\nabcdef", b"ghi"], "ok|LineTooLong(9)"),
            ((0, 1000), &[b"\n\r\na\n"], "||LineTooLong(1)"),
            ((100, 4), &[b"ab\ncd\nef\n"], "ab|LimitReached"),
            ((100, 6), &[b"ab\ncd\n", b"ef\n", b"gh\n"], "ab|cd|LimitReached"),
            ((100, 6), &[b"ab\ncd\n"], "ab|cd"),
        ] {
            check(limits, pieces, expected);
        }
    }
}
