//! The lines of the standard input, each bounded, and those of the standard output. Both have a thread of their own: a pipe that
//! nobody serves must not hold up anything else.

use std::io::{self, BufRead, Read, Write};

use tokio::sync::mpsc;

/// A prompt may hold files; one that is longer is read past.
const LONGEST_LINE: u64 = 64 << 20;
/// Lines that wait for an editor that reads slowly. Whoever has more to say waits.
const MOST_WAITING: usize = 64;

/// What has come in.
#[derive(Debug, PartialEq, Eq)]
pub enum Line {
    Text(Vec<u8>),
    /// Longer than a message may be; nothing of it was kept.
    TooLong,
}

/// What a line that is too long is answered with.
pub fn too_long() -> String {
    format!("a message is longer than {} MiB", LONGEST_LINE >> 20)
}

/// The lines of the editor, until it closes its end.
pub fn input() -> mpsc::Receiver<Line> {
    let (sender, lines) = mpsc::channel(16);
    std::thread::spawn(move || {
        let mut input = io::stdin().lock();
        while let Ok(Some(line)) = next_line(&mut input, LONGEST_LINE) {
            if sender.blocking_send(line).is_err() {
                return;
            }
        }
    });
    lines
}

fn next_line(input: &mut dyn BufRead, longest: u64) -> io::Result<Option<Line>> {
    let mut line = Vec::new();
    if (&mut *input).take(longest + 1).read_until(b'\n', &mut line)? == 0 {
        return Ok(None);
    }
    if line.last() == Some(&b'\n') || line.len() as u64 <= longest {
        return Ok(Some(Line::Text(line)));
    }
    drop(line);
    loop {
        let bytes = input.fill_buf()?;
        let end = bytes.iter().position(|byte| *byte == b'\n');
        let length = bytes.len();
        input.consume(end.map_or(length, |end| end + 1));
        if end.is_some() || length == 0 {
            return Ok(Some(Line::TooLong));
        }
    }
}

/// Writes lines to the editor. The second half resolves when all are written, or when the editor reads no more.
pub fn output() -> (mpsc::Sender<Vec<u8>>, tokio::sync::oneshot::Receiver<()>) {
    let (sender, mut lines) = mpsc::channel::<Vec<u8>>(MOST_WAITING);
    let (closed, over) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || {
        let mut out = io::stdout().lock();
        while let Some(mut line) = lines.blocking_recv() {
            line.push(b'\n');
            if out.write_all(&line).and_then(|()| out.flush()).is_err() {
                break;
            }
        }
        drop(lines);
        let _ = closed.send(());
    });
    (sender, over)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_is_too_long_is_passed_over() {
        let text = |text: &str| Some(Line::Text(text.as_bytes().to_vec()));
        let mut input = io::BufReader::with_capacity(3, &b"1234\n12345\n\n123456789\nx"[..]);
        let mut next = || next_line(&mut input, 4).unwrap();
        assert_eq!(next(), text("1234\n"));
        assert_eq!(next(), Some(Line::TooLong));
        assert_eq!(next(), text("\n"));
        assert_eq!(next(), Some(Line::TooLong));
        assert_eq!(next(), text("x"));
        assert_eq!(next(), None);
        assert_eq!(next_line(&mut &b"12345"[..], 4).unwrap(), Some(Line::TooLong));
    }
}
