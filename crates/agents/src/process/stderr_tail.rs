//! The end of a program's standard error, which often says why the program failed.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncRead, AsyncReadExt};

const KEPT: usize = 2048;

/// The last bytes of a program's standard error. Clones share them.
#[derive(Clone, Default)]
pub(super) struct StderrTail(Arc<Mutex<Tail>>);

#[derive(Default)]
struct Tail {
    bytes: Vec<u8>,
    is_cut: bool,
}

impl StderrTail {
    /// Reads until the end, so that the program never blocks on a full pipe.
    pub(super) async fn read_from(self, mut stderr: impl AsyncRead + Unpin) {
        let mut chunk = vec![0; 2 * KEPT];
        while let Ok(count @ 1..) = stderr.read(&mut chunk).await {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).add(&chunk[..count]);
        }
    }

    /// Complete lines, unless a line is longer than what is kept.
    pub(super) fn text(&self) -> String {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).text()
    }
}

impl Tail {
    fn add(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        let surplus = self.bytes.len().saturating_sub(KEPT);
        self.is_cut |= surplus > 0;
        self.bytes.drain(..surplus);
    }

    fn text(&self) -> String {
        let half_line = match self.bytes.iter().position(|byte| *byte == b'\n') {
            Some(at) if self.is_cut && at + 1 < self.bytes.len() => at + 1,
            _ => 0,
        };
        String::from_utf8_lossy(&self.bytes[half_line..]).trim().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::{KEPT, Tail};

    fn check(pieces: &[&[u8]], expected: &str) {
        let mut tail = Tail::default();
        for piece in pieces {
            tail.add(piece);
            assert!(tail.bytes.len() <= KEPT);
        }
        assert_eq!(tail.text(), expected);
    }

    #[test]
    fn the_last_whole_lines_are_kept() {
        let long = vec![b'x'; KEPT];
        check(&[], "");
        check(&[b"no such", b" model\n"], "no such model");
        check(&[b"first\n", b"bad \xff byte\n"], "first\nbad \u{fffd} byte");
        check(&[b"lost\n", &long[10..], b"\nlast\n"], &format!("{}\nlast", "x".repeat(KEPT - 10)));
        check(&[&long, b"cut\nlast\n"], "last");
        check(&[&long, &long], &"x".repeat(KEPT));
        check(&[&long, b"\n"], &"x".repeat(KEPT - 1));
    }
}
