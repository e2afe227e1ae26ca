//! Replies of HTTP/1.1, read from bytes that come in any pieces.
//!
//! It knows what a load generator needs and no more: the status, the media type, and a body that is counted, chunked
//! or ends with the connection. Nothing is allocated once the buffers have grown.

use memchr::{memchr, memmem};

/// What has come from the server and is not yet taken.
#[derive(Debug, Default)]
pub struct Incoming {
    buffer: Vec<u8>,
    taken: usize,
    stage: Stage,
}

#[derive(Debug, Clone, Copy, Default, PartialEq)]
enum Stage {
    #[default]
    Head,
    Counted(u64),
    ChunkSize,
    Chunk(u64),
    /// The line break after a chunk.
    ChunkEnd,
    Trailers,
    UntilClose,
    Over,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Head {
    pub status: u16,
    pub is_event_stream: bool,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Progress {
    /// More must be read from the connection.
    Wanting,
    /// The body is complete.
    Over,
}

#[derive(Debug, PartialEq, thiserror::Error)]
#[error("not HTTP/1.1: {0}")]
pub struct Malformed(&'static str);

/// No head and no line of a chunk is that long.
const LONGEST_HEAD: usize = 64 * 1024;

impl Incoming {
    /// Where the next bytes of the connection go.
    pub fn room(&mut self) -> &mut Vec<u8> {
        if self.taken == self.buffer.len() {
            self.buffer.clear();
            self.taken = 0;
        } else if self.taken > 64 * 1024 {
            self.buffer.drain(..self.taken);
            self.taken = 0;
        }
        self.buffer.reserve(16 * 1024);
        &mut self.buffer
    }

    /// Makes ready for the next reply on the same connection.
    pub fn next_reply(&mut self) {
        self.stage = Stage::Head;
    }

    /// Whether bytes are left that no reply claimed.
    pub fn has_more(&self) -> bool {
        self.taken < self.buffer.len()
    }

    /// The head, once it is there. Interim replies (1xx) are skipped.
    pub fn head(&mut self) -> Result<Option<Head>, Malformed> {
        loop {
            let bytes = &self.buffer[self.taken..];
            let Some(end) = memmem::find(bytes, b"\r\n\r\n") else {
                return if bytes.len() > LONGEST_HEAD { Err(Malformed("an endless head")) } else { Ok(None) };
            };
            let (head, stage) = parse(&bytes[..end + 2])?;
            self.taken += end + 4;
            if head.status >= 200 {
                self.stage = stage;
                return Ok(Some(head));
            }
        }
    }

    /// Moves what is there of the body to the end of `out`.
    pub fn body(&mut self, out: &mut Vec<u8>) -> Result<Progress, Malformed> {
        loop {
            let bytes = &self.buffer[self.taken..];
            match self.stage {
                Stage::Over | Stage::Counted(0) => {
                    self.stage = Stage::Over;
                    return Ok(Progress::Over);
                }
                _ if bytes.is_empty() => return Ok(Progress::Wanting),
                Stage::Head => return Err(Malformed("a body without a head")),
                Stage::Counted(left) => {
                    let count = take(bytes, left, out);
                    self.taken += count;
                    self.stage = Stage::Counted(left - count as u64);
                }
                Stage::Chunk(left) => {
                    let count = take(bytes, left, out);
                    self.taken += count;
                    let left = left - count as u64;
                    self.stage = if left == 0 { Stage::ChunkEnd } else { Stage::Chunk(left) };
                }
                Stage::UntilClose => {
                    out.extend_from_slice(bytes);
                    self.taken = self.buffer.len();
                }
                Stage::ChunkSize | Stage::ChunkEnd | Stage::Trailers => {
                    let Some(end) = memchr(b'\n', bytes) else {
                        let is_endless = bytes.len() > LONGEST_HEAD;
                        return if is_endless { Err(Malformed("an endless line")) } else { Ok(Progress::Wanting) };
                    };
                    self.stage = after_line(self.stage, bytes[..end].trim_ascii())?;
                    self.taken += end + 1;
                }
            }
        }
    }

    /// The connection has closed: whether the reply is complete all the same.
    pub fn ends_here(&mut self) -> bool {
        let ends = matches!(self.stage, Stage::UntilClose | Stage::Over);
        self.stage = if ends { Stage::Over } else { self.stage };
        ends
    }
}

fn take(bytes: &[u8], left: u64, out: &mut Vec<u8>) -> usize {
    let count = usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len());
    out.extend_from_slice(&bytes[..count]);
    count
}

fn after_line(stage: Stage, line: &[u8]) -> Result<Stage, Malformed> {
    Ok(match stage {
        Stage::ChunkSize => match chunk_size(line)? {
            0 => Stage::Trailers,
            size => Stage::Chunk(size),
        },
        Stage::ChunkEnd if line.is_empty() => Stage::ChunkSize,
        Stage::ChunkEnd => return Err(Malformed("a chunk is longer than it says")),
        _ if line.is_empty() => Stage::Over,
        _ => Stage::Trailers,
    })
}

fn chunk_size(line: &[u8]) -> Result<u64, Malformed> {
    let digits = line.split(|byte| *byte == b';').next().unwrap_or_default();
    let text = std::str::from_utf8(digits).map_err(|_| Malformed("a chunk without size"))?;
    u64::from_str_radix(text.trim(), 16).map_err(|_| Malformed("a chunk without size"))
}

/// `head` ends with the line break of its last line.
fn parse(head: &[u8]) -> Result<(Head, Stage), Malformed> {
    let mut lines = head.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii_end);
    let status_line = lines.next().unwrap_or_default();
    let rest = status_line.strip_prefix(b"HTTP/1.").ok_or(Malformed("no status line"))?;
    let digits = rest.get(2..5).ok_or(Malformed("no status"))?;
    let status = number(digits).and_then(|status| u16::try_from(status).ok()).ok_or(Malformed("no status"))?;

    let mut stage = Stage::UntilClose;
    let mut is_event_stream = false;
    for line in lines {
        let Some(colon) = memchr(b':', line) else { continue };
        let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
        if name.eq_ignore_ascii_case(b"content-length") && stage != Stage::ChunkSize {
            stage = Stage::Counted(number(value).ok_or(Malformed("a length that is no number"))?);
        } else if name.eq_ignore_ascii_case(b"transfer-encoding") && value.eq_ignore_ascii_case(b"chunked") {
            stage = Stage::ChunkSize;
        } else if name.eq_ignore_ascii_case(b"content-type") {
            is_event_stream = value.len() >= 17 && value[..17].eq_ignore_ascii_case(b"text/event-stream");
        }
    }
    if status == 204 || status == 304 {
        stage = Stage::Over;
    }
    Ok((Head { status, is_event_stream }, stage))
}

pub(crate) fn number(digits: &[u8]) -> Option<u64> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const COUNTED: &str = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\ncontent-length: 11\r\n\r\nhello world";
    const CHUNKED: &str = "HTTP/1.1 200 OK\r\ncontent-type: Text/Event-Stream; charset=utf-8\r\nTransfer-Encoding: chunked\r\n\r\n\
                           5\r\nhello\r\n6;ext=1\r\n world\r\n0\r\nX-Trailer: 1\r\n\r\n";
    const INTERIM: &str = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n";
    const EMPTY: &str = "HTTP/1.1 204 No Content\r\n\r\n";

    #[test]
    fn replies_in_any_pieces() {
        for (reply, expected) in
            [(COUNTED, "200 hello world"), (CHUNKED, "200 events hello world"), (INTERIM, "202 "), (EMPTY, "204 ")]
        {
            for cut in 0..=reply.len() {
                let (first, second) = reply.as_bytes().split_at(cut);
                assert_eq!(read(&[first, second], 1), [expected], "cut at {cut}");
            }
            let bytes: Vec<&[u8]> = reply.as_bytes().chunks(1).collect();
            assert_eq!(read(&bytes, 1), [expected]);
        }
    }

    #[test]
    fn replies_on_one_connection_follow_each_other() {
        let all = [COUNTED, CHUNKED, INTERIM, EMPTY, COUNTED].concat();
        let expected = ["200 hello world", "200 events hello world", "202 ", "204 ", "200 hello world"];
        for size in 1..=all.len() {
            let pieces: Vec<&[u8]> = all.as_bytes().chunks(size).collect();
            assert_eq!(read(&pieces, 5), expected, "in pieces of {size}");
        }
    }

    #[test]
    fn a_body_may_end_with_the_connection() {
        let mut incoming = Incoming::default();
        incoming.room().extend_from_slice(b"HTTP/1.0 200 OK\r\n\r\nall of it");
        let mut body = vec![];
        assert_eq!(incoming.head().unwrap().unwrap().status, 200);
        assert_eq!(incoming.body(&mut body), Ok(Progress::Wanting));
        assert!(incoming.ends_here());
        assert_eq!((incoming.body(&mut body), body.as_slice()), (Ok(Progress::Over), b"all of it".as_slice()));
    }

    #[test]
    fn a_counted_body_may_not() {
        let mut incoming = Incoming::default();
        incoming.room().extend_from_slice(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n1");
        incoming.head().unwrap().unwrap();
        incoming.body(&mut vec![]).unwrap();
        assert!(!incoming.ends_here());
    }

    #[test]
    fn what_is_not_http_is_refused() {
        for (reply, expected) in [
            ("SSH-2.0-OpenSSH\r\n\r\n", "no status line"),
            ("HTTP/1.1 abc\r\n\r\n", "no status"),
            ("HTTP/1.1 200 OK\r\ncontent-length: many\r\n\r\n", "a length that is no number"),
            ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nxyz\r\n", "a chunk without size"),
            ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\nab\r\n", "a chunk is longer than it says"),
        ] {
            let mut incoming = Incoming::default();
            incoming.room().extend_from_slice(reply.as_bytes());
            let refused = incoming.head().and_then(|_| incoming.body(&mut vec![])).unwrap_err();
            assert_eq!(refused, Malformed(expected), "{reply:?}");
        }
    }

    /// Reads so many replies: the status, what it is, and the body.
    fn read(pieces: &[&[u8]], count: usize) -> Vec<String> {
        let mut incoming = Incoming::default();
        let mut pieces = pieces.iter();
        let mut replies = vec![];
        while replies.len() < count {
            incoming.next_reply();
            let head = loop {
                match incoming.head().unwrap() {
                    Some(head) => break head,
                    None => incoming.room().extend_from_slice(pieces.next().expect("the head is complete")),
                }
            };
            let mut body = vec![];
            while incoming.body(&mut body).unwrap() == Progress::Wanting {
                incoming.room().extend_from_slice(pieces.next().expect("the body is complete"));
            }
            let kind = if head.is_event_stream { "events " } else { "" };
            replies.push(format!("{} {kind}{}", head.status, String::from_utf8(body).unwrap()));
        }
        assert!(!incoming.has_more() && pieces.next().is_none_or(|piece| piece.is_empty()));
        replies
    }
}
