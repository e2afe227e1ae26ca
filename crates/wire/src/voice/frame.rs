//! Answers as server-sent events: one line each, with the number of the event where it has one.
//!
//! An event is spelled once per dialect and shared; each subscriber's envelope is written around the shared bytes.

use std::io::Write;

use sabir_model::{ContextId, Error, Event, Message, Seq, Task, TaskId};

use super::{Manner, Reply, Voice};
use crate::{Shown, percent, work};

pub const EVENT_STREAM: &str = "text/event-stream";

/// A comment that keeps a quiet stream open; no client sees it.
pub const KEEP_ALIVE: &[u8] = b": keep-alive\n\n";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Frames {
    /// Each a whole JSON-RPC answer.
    Enveloped,
    /// The event alone.
    Bare,
}

impl Frames {
    pub fn wanted(query: Option<&str>) -> Self {
        let bare = percent::parameters(query).any(|parameter| parameter == ("envelope", "none"));
        if bare { Frames::Bare } else { Frames::Enveloped }
    }
}

impl Voice<'_> {
    /// The place of this dialect among the shared spellings of an event.
    pub fn slot(&self) -> usize {
        self.dialect.slot()
    }

    /// An event as this dialect spells it, for every subscriber with the same slot.
    pub fn spell(&self, task: &TaskId, context: &ContextId, event: &Event) -> Vec<u8> {
        let mut payload = Vec::with_capacity(512);
        self.dialect.encode(Shown::Event { task, context, event }, &mut payload);
        one_line(&mut payload, 0);
        payload
    }

    /// Whether this dialect shows with the event what its task has made.
    pub fn wants_task(&self, event: &Event) -> bool {
        self.dialect.ends_with_task() && event.status().is_some_and(|status| status.state.is_terminal())
    }

    /// An event that wants its task.
    pub fn spell_end(&self, task: &Task, event: &Event) -> Vec<u8> {
        let mut payload = Vec::with_capacity(512);
        self.dialect.encode(Shown::End { task, event }, &mut payload);
        one_line(&mut payload, 0);
        payload
    }

    /// A frame around an event that `spell` has spelled. Only events that are stored have a number.
    pub fn frame(&self, seq: Option<Seq>, payload: &[u8], out: &mut Vec<u8>) {
        out.reserve(payload.len() + 128);
        self.open_frame(seq, out);
        out.extend_from_slice(payload);
        self.close_frame(out);
    }

    /// How many bytes `frame` writes around an event, at most. It is the caller who chooses the id in there, so whoever
    /// limits how much is written at once must count them.
    pub fn envelope_len(&self) -> usize {
        let mut envelope = Vec::with_capacity(128);
        self.frame(Some(Seq::MAX), b"", &mut envelope);
        envelope.len()
    }

    /// The first frame of a subscription: the task as it is now.
    pub fn snapshot(&self, task: &Task, out: &mut Vec<u8>) {
        self.open_frame(Some(task.seq), out);
        let start = out.len();
        self.spelling(task).encode(Shown::Snapshot(task), out);
        one_line(out, start);
        self.close_frame(out);
    }

    /// The one frame of a stream that made no task.
    pub fn reply_frame(&self, message: &Message, out: &mut Vec<u8>) {
        self.open_frame(None, out);
        let start = out.len();
        self.dialect.encode(Shown::Reply(message), out);
        one_line(out, start);
        self.close_frame(out);
    }

    /// The last frame of a stream that cannot go on.
    pub fn error_frame(&self, error: &Error, out: &mut Vec<u8>) {
        out.extend_from_slice(b"event: error\ndata: ");
        let start = out.len();
        self.error_body(error, self.frames(), out);
        one_line(out, start);
        out.extend_from_slice(b"\n\n");
    }

    /// A stream that is over with its first frame.
    pub(super) fn only_frame(&self, write: impl FnOnce(&mut Vec<u8>)) -> Reply {
        let mut body = Vec::with_capacity(512);
        write(&mut body);
        Reply { status: 200, content_type: EVENT_STREAM, retry_after: None, allow: None, body }
    }

    pub(super) fn frames(&self) -> Frames {
        match &self.manner {
            Manner::JsonRpc { frames, .. } => *frames,
            Manner::HttpJson(_) | Manner::Gateway(_) => Frames::Bare,
        }
    }

    pub(super) fn open_frame(&self, seq: Option<Seq>, out: &mut Vec<u8>) {
        if let Some(seq) = seq {
            writeln!(out, "id: {seq}").expect("a Vec takes everything");
        }
        out.extend_from_slice(b"data: ");
        if self.frames() == Frames::Enveloped {
            let start = out.len();
            self.open(out);
            // The id is the caller's.
            one_line(out, start);
        }
    }

    pub(super) fn close_frame(&self, out: &mut Vec<u8>) {
        if self.frames() == Frames::Enveloped {
            self.close(out);
        }
        out.extend_from_slice(b"\n\n");
    }
}

/// A frame is one line. Carried JSON may hold line ends between its tokens, never inside of them; inside of
/// strings it may hold characters that some clients take for line ends too, and those are escaped.
pub(super) fn one_line(out: &mut Vec<u8>, start: usize) {
    work::visit(out.len() - start);
    // Nearly every spelling has none of them. Without a branch for each byte, many are looked at with one instruction.
    let is_end = |byte: u8| (byte == b'\n') | (byte == b'\r') | (byte == 0xc2) | (byte == 0xe2);
    if !out[start..].iter().fold(false, |found, byte| found | is_end(*byte)) {
        return;
    }
    let mut has_unusual_ends = false;
    for byte in &mut out[start..] {
        match *byte {
            b'\n' | b'\r' => *byte = b' ',
            0xc2 | 0xe2 => has_unusual_ends = true,
            _ => {}
        }
    }
    if has_unusual_ends {
        work::visit(out.len() - start);
        let json = out.split_off(start);
        let mut rest = json.as_slice();
        while let Some((first, others)) = rest.split_first() {
            let (escape, length): (&[u8], usize) = match rest {
                [0xc2, 0x85, ..] => (b"\\u0085", 2),
                [0xe2, 0x80, 0xa8, ..] => (b"\\u2028", 3),
                [0xe2, 0x80, 0xa9, ..] => (b"\\u2029", 3),
                _ => {
                    out.push(*first);
                    rest = others;
                    continue;
                }
            };
            out.extend_from_slice(escape);
            rest = &rest[length..];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_one_line_for_every_client() {
        for (json, expected) in [
            ("{\"a\":1}", "{\"a\":1}"),
            ("{\n \"a\":\r\n1}", "{  \"a\":  1}"),
            ("\"line\u{2028}end\u{2029}s\u{85}!\"", "\"line\\u2028end\\u2029s\\u0085!\""),
            ("\"\u{2027}\u{e9}\u{a0}\u{20ac}\"", "\"\u{2027}\u{e9}\u{a0}\u{20ac}\""),
        ] {
            let mut out = format!("data: {json}").into_bytes();
            one_line(&mut out, 6);
            assert_eq!(String::from_utf8(out).unwrap(), format!("data: {expected}"));
        }
    }
}
