//! Whether a reply is right, without parsing it.
//!
//! The hot path looks for a few members and words in the bytes as they are. That is enough, since the requests are
//! ours: no text of ours holds these words, and every text is different. White space is as the server likes it.

use memchr::memmem;

use crate::grpc;
use crate::http::Malformed;

/// Why an operation does not count.
#[derive(Debug, thiserror::Error)]
pub enum Wrong {
    #[error("{0}")]
    Lost(String),
    #[error(transparent)]
    Malformed(#[from] Malformed),
    #[error("{0}")]
    Reply(String),
}

impl From<std::io::Error> for Wrong {
    fn from(error: std::io::Error) -> Self {
        Wrong::Lost(format!("the connection broke: {error}"))
    }
}

impl Wrong {
    pub fn reply(what: &str, status: u16, body: &[u8]) -> Self {
        Wrong::Reply(format!("{what}: {status} {}", shortened(body)))
    }

    pub fn event(what: impl std::fmt::Display, data: &[u8]) -> Self {
        Wrong::Reply(format!("{what}: {}", shortened(data)))
    }
}

/// So much of a body as fits a line.
pub fn shortened(body: &[u8]) -> String {
    const LONGEST: usize = 300;
    let text = String::from_utf8_lossy(&body[..body.len().min(LONGEST)]);
    let dots = if body.len() > LONGEST { "..." } else { "" };
    format!("{}{dots}", text.escape_debug().to_string().replace("\\\"", "\""))
}

pub fn has(body: &[u8], word: &[u8]) -> bool {
    memmem::find(body, word).is_some()
}

pub fn count(body: &[u8], word: &[u8]) -> usize {
    memmem::find_iter(body, word).count()
}

/// What follows the first member of this name; `quoted` is the name with its quotes.
pub fn member<'a>(body: &'a [u8], quoted: &[u8]) -> Option<&'a [u8]> {
    let at = memmem::find(body, quoted)? + quoted.len();
    let rest = body[at..].trim_ascii_start().strip_prefix(b":")?;
    Some(rest.trim_ascii_start())
}

/// The first string of this name. Ids and tokens have no escapes.
pub fn string<'a>(body: &'a [u8], quoted: &[u8]) -> Option<&'a [u8]> {
    let rest = member(body, quoted)?.strip_prefix(b"\"")?;
    rest.split(|byte| *byte == b'"').next()
}

pub fn is_true(body: &[u8], quoted: &[u8]) -> bool {
    member(body, quoted).is_some_and(|rest| rest.starts_with(b"true"))
}

pub fn whole_number(body: &[u8], quoted: &[u8]) -> Option<u64> {
    let rest = member(body, quoted)?;
    let end = rest.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(rest.len());
    crate::http::number(&rest[..end])
}

/// How a dialect spells what we look for.
#[derive(Debug, Clone, Copy)]
pub enum Spelling {
    /// The last states, with their quotes.
    Json {
        completed: &'static [u8],
        canceled: &'static [u8],
    },
    Protobuf,
}

/// A piece of an answer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Chunk {
    /// None if its text is not as the demo agent writes it.
    pub number: Option<u64>,
    pub is_appended: bool,
    pub is_last: bool,
}

impl Spelling {
    pub fn is_completed(self, body: &[u8]) -> bool {
        match self {
            Spelling::Json { completed, .. } => has(body, completed),
            Spelling::Protobuf => grpc::state(body) == Some(grpc::COMPLETED),
        }
    }

    pub fn is_canceled(self, body: &[u8]) -> bool {
        match self {
            Spelling::Json { canceled, .. } => has(body, canceled),
            Spelling::Protobuf => grpc::state(body) == Some(grpc::CANCELED),
        }
    }

    fn chunk(self, event: &[u8]) -> Option<Chunk> {
        match self {
            Spelling::Json { .. } => {
                let rest = &event[memmem::find(event, b"\"chunk ")? + 7..];
                let end = rest.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(rest.len());
                Some(Chunk {
                    number: crate::http::number(&rest[..end]).filter(|_| rest[end..].starts_with(b"\\n\"")),
                    is_appended: is_true(event, b"\"append\""),
                    is_last: is_true(event, b"\"lastChunk\""),
                })
            }
            Spelling::Protobuf => grpc::chunk(event),
        }
    }
}

/// The events of one task as one reader gets them: numbers without gaps, chunks complete and in order, the end last.
#[derive(Debug)]
pub struct Order {
    chunks: u64,
    spelling: Spelling,
    seen: u64,
    last_id: Option<u64>,
    frames: u64,
    is_over: bool,
}

impl Order {
    pub fn new(chunks: u64, spelling: Spelling) -> Self {
        Self { chunks, spelling, seen: 0, last_id: None, frames: 0, is_over: false }
    }

    pub fn take(&mut self, frame: crate::sse::Frame<'_>) -> Result<(), Wrong> {
        let data = frame.data;
        let is_first = self.frames == 0;
        self.frames += 1;
        if self.is_over {
            return Err(Wrong::event("an event after the last one", data));
        }
        match (self.last_id, frame.id) {
            (Some(last), Some(id)) if id != last + 1 => {
                return Err(Wrong::event(format!("event {id} follows event {last}"), data));
            }
            (Some(last), None) => return Err(Wrong::event(format!("after event {last} one has no number"), data)),
            (None, Some(id)) if !is_first => return Err(Wrong::event(format!("only event {id} has a number"), data)),
            _ => self.last_id = frame.id,
        }
        // The last event comes first here: 0.1 repeats all chunks in it.
        if self.spelling.is_completed(data) {
            self.is_over = true;
            return Ok(());
        }
        match self.spelling.chunk(data) {
            Some(chunk) => self.chunk(chunk, data),
            None => Ok(()),
        }
    }

    /// Whether the stream may end now.
    pub fn end(&self) -> Result<(), Wrong> {
        if !self.is_over {
            return Err(Wrong::Reply(format!("a stream ended after {} events, before its task", self.frames)));
        }
        if self.seen != self.chunks {
            return Err(Wrong::Reply(format!("a stream had {} of {} chunks", self.seen, self.chunks)));
        }
        Ok(())
    }

    pub fn frames(&self) -> u64 {
        self.frames
    }

    /// Whether every chunk has come.
    pub fn has_all_chunks(&self) -> bool {
        self.seen == self.chunks
    }

    fn chunk(&mut self, chunk: Chunk, data: &[u8]) -> Result<(), Wrong> {
        let expected = self.seen + 1;
        if chunk.number != Some(expected) || expected > self.chunks {
            return Err(Wrong::event(format!("chunk {expected} of {} was due", self.chunks), data));
        }
        if chunk.is_appended != (expected > 1) {
            return Err(Wrong::event(format!("`append` is wrong at chunk {expected}"), data));
        }
        if chunk.is_last != (expected == self.chunks) {
            return Err(Wrong::event(format!("`lastChunk` is wrong at chunk {expected} of {}", self.chunks), data));
        }
        self.seen = expected;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sse::Frame;

    #[test]
    fn members_are_found_however_they_are_spaced() {
        for (body, expected) in [
            (r#"{"a":1,"append":true}"#, "true none none"),
            (r#"{"append" : true, "id" : "x", "total":12}"#, "true x 12"),
            (r#"{"append":false,"id":"","total":7"#, "false  7"),
            (r#"{"append":"true","id":7,"total":"7"}"#, "false none none"),
        ] {
            let body = body.as_bytes();
            let id = string(body, b"\"id\"").map_or("none".into(), String::from_utf8_lossy);
            let total = whole_number(body, b"\"total\"").map_or("none".to_owned(), |total| total.to_string());
            assert_eq!(format!("{} {id} {total}", is_true(body, b"\"append\"")), expected);
        }
    }

    #[test]
    fn what_a_reader_may_get() {
        let two = "1 task; 2 working; 3 chunk 1; 4 chunk 2 append last; 5 done";
        for (events, expected) in [
            (two.to_owned(), "fine"),
            (two.replace("1 task; ", ""), "fine"),
            ("- task; - chunk 1; - chunk 2 append last; - done".to_owned(), "fine"),
            (two.replace("2 working; ", ""), "event 3 follows event 1"),
            (two.replace("2 working; ", "- working; "), "after event 1 one has no number"),
            (two.replace("1 task", "- task"), "only event 2 has a number"),
            (two.replace("3 chunk 1; 4", "3"), "chunk 1 of 2 was due"),
            (two.replace("chunk 2", "chunk 3"), "chunk 2 of 2 was due"),
            (two.replace("chunk 1", "chunk 1 append"), "`append` is wrong at chunk 1"),
            (two.replace(" append", ""), "`append` is wrong at chunk 2"),
            (two.replace(" last", ""), "`lastChunk` is wrong at chunk 2 of 2"),
            (two.replace("chunk 1", "chunk 1 last"), "`lastChunk` is wrong at chunk 1 of 2"),
            (two.replace("4 chunk 2 append last; 5", "4"), "a stream had 1 of 2 chunks"),
            (two.replace("; 5 done", ""), "a stream ended after 4 events, before its task"),
            (format!("{two}; 6 working"), "an event after the last one"),
        ] {
            assert_eq!(say(&events), expected, "{events}");
        }
    }

    #[test]
    fn a_long_body_is_shortened() {
        assert_eq!(shortened(b"{\"a\":\"b\"}\n"), "{\"a\":\"b\"}\\n");
        assert_eq!(shortened(&[b'x'; 400]).len(), 303);
    }

    fn say(events: &str) -> String {
        let spelling = Spelling::Json { completed: b"\"completed\"", canceled: b"\"canceled\"" };
        let mut order = Order::new(2, spelling);
        let mut all = || {
            for event in events.split("; ") {
                let (id, rest) = event.split_once(' ').unwrap();
                let data = match rest.strip_prefix("chunk ") {
                    None if rest == "done" => r#"{"state": "completed", "text": "chunk 1\nchunk 2\n"}"#.to_owned(),
                    None => format!(r#"{{"state":"{rest}"}}"#),
                    Some(chunk) => {
                        let append = if chunk.contains("append") { r#","append": true"# } else { "" };
                        let last = if chunk.contains("last") { r#","lastChunk":true"# } else { "" };
                        format!(r#"{{"text":"chunk {}\n"{append}{last}}}"#, &chunk[..1])
                    }
                };
                order.take(Frame { id: id.parse().ok(), data: data.as_bytes() })?;
            }
            order.end()
        };
        match all() {
            Ok(()) => "fine".to_owned(),
            Err(wrong) => wrong.to_string().split(": ").next().unwrap().to_owned(),
        }
    }
}
