//! Server-sent events: each frame is one line of JSON, with the number of the event as its id.
//!
//! An event is encoded once per dialect, and all subscribers share the bytes; each subscriber's envelope is written
//! around them.

use std::io::Write;

use sabir_model::{ContextId, Error, Event, Message, Seq, Task, TaskId};

use super::{Envelope, FrameFormat, Reply, Responder};
use crate::grpc::GRPC;
use crate::{Dialect, Payload, work};

pub const EVENT_STREAM: &str = "text/event-stream";

/// A comment that keeps a quiet stream open; no client sees it.
const KEEP_ALIVE: &[u8] = b": keep-alive\n\n";

impl Responder<'_> {
    /// The place of this dialect among the shared encodings of an event.
    pub fn slot(&self) -> usize {
        self.dialect.slot()
    }

    /// Encodes an event, for every subscriber with the same slot.
    pub fn encode_event(&self, task: &TaskId, context: &ContextId, event: &Event) -> Vec<u8> {
        let mut payload = Vec::with_capacity(512);
        encode_frame(self.dialect, Payload::Event { task, context, event }, &mut payload);
        payload
    }

    /// Whether this dialect shows the artifacts of the task with this event; `encode_final_event` is for that.
    pub fn needs_task(&self, event: &Event) -> bool {
        self.dialect.final_event_needs_task() && event.status().is_some_and(|status| status.state.is_terminal())
    }

    /// Encodes an event together with the artifacts of its task.
    pub fn encode_final_event(&self, task: &Task, event: &Event) -> Vec<u8> {
        let mut payload = Vec::with_capacity(512);
        encode_frame(self.dialect, Payload::FinalEvent { task, event }, &mut payload);
        payload
    }

    /// Writes the frame around an encoded event. Only stored events have a number.
    pub fn write_frame(&self, seq: Option<Seq>, payload: &[u8], out: &mut Vec<u8>) {
        out.reserve(payload.len() + 128);
        let start = out.len();
        self.write_frame_start(seq, out);
        out.extend_from_slice(payload);
        self.write_frame_end(start, out);
    }

    /// How many bytes `write_frame` adds to a payload, at most. The caller chooses the id in there, so a limit on what
    /// is written at once must count them.
    pub fn max_frame_overhead(&self) -> usize {
        let mut frame = Vec::with_capacity(128);
        self.write_frame(Some(Seq::MAX), b"", &mut frame);
        frame.len()
    }

    /// Writes the first frame of a subscription: the task as it is now.
    pub fn write_snapshot_frame(&self, task: &Task, out: &mut Vec<u8>) {
        let start = out.len();
        self.write_frame_start(Some(task.seq), out);
        encode_frame(self.dialect_for(task), Payload::Snapshot(task), out);
        self.write_frame_end(start, out);
    }

    /// Writes the only frame of a stream that made no task.
    pub fn write_message_frame(&self, message: &Message, out: &mut Vec<u8>) {
        let start = out.len();
        self.write_frame_start(None, out);
        encode_frame(self.dialect, Payload::Message(message), out);
        self.write_frame_end(start, out);
    }

    /// Writes the last frame of a stream that cannot go on. gRPC has none; `end_status` says it there.
    pub fn write_error_frame(&self, error: &Error, out: &mut Vec<u8>) {
        if let Envelope::Grpc(_) = self.envelope {
            return;
        }
        out.extend_from_slice(b"event: error\ndata: ");
        let start = out.len();
        self.envelope.write_error(error, self.operation, self.envelope.frames(), out);
        make_one_line(out, start);
        out.extend_from_slice(b"\n\n");
    }

    /// A stream that ends with its first frame.
    pub(super) fn only_frame(&self, write: impl FnOnce(&mut Vec<u8>)) -> Reply {
        let mut body = Vec::with_capacity(512);
        write(&mut body);
        let (content_type, grpc_status) = (self.stream_content_type(), self.end_status(None));
        Reply { status: 200, content_type, retry_after: None, allow: None, grpc_status, body }
    }

    /// The media type of a stream.
    pub fn stream_content_type(&self) -> &'static str {
        match self.envelope {
            Envelope::Grpc(_) => GRPC,
            _ => EVENT_STREAM,
        }
    }

    /// What keeps a quiet stream open. Connections of gRPC do that by themselves.
    pub fn keep_alive(&self) -> Option<&'static [u8]> {
        match self.envelope {
            Envelope::Grpc(_) => None,
            _ => Some(KEEP_ALIVE),
        }
    }

    pub(super) fn write_frame_start(&self, seq: Option<Seq>, out: &mut Vec<u8>) {
        if let Envelope::Grpc(_) = self.envelope {
            return self.envelope.write_start(out);
        }
        if let Some(seq) = seq {
            writeln!(out, "id: {seq}").expect("a Vec takes everything");
        }
        out.extend_from_slice(b"data: ");
        if self.envelope.frames() == FrameFormat::Enveloped {
            let start = out.len();
            self.envelope.write_start(out);
            // The JSON-RPC id is the caller's text and may hold line ends.
            make_one_line(out, start);
        }
    }

    /// `start` is where `write_frame_start` began.
    pub(super) fn write_frame_end(&self, start: usize, out: &mut Vec<u8>) {
        if let Envelope::Grpc(_) = self.envelope {
            return self.envelope.write_end(start, out);
        }
        if self.envelope.frames() == FrameFormat::Enveloped {
            self.envelope.write_end(start, out);
        }
        out.extend_from_slice(b"\n\n");
    }
}

/// Appends the payload of a frame: one line, if the dialect is text.
pub(super) fn encode_frame(dialect: &dyn Dialect, payload: Payload<'_>, out: &mut Vec<u8>) {
    let start = out.len();
    dialect.encode(payload, out);
    if dialect.is_text() {
        make_one_line(out, start);
    }
}

/// Makes what follows `start` one line. Raw JSON may hold line ends between its tokens: they become spaces. Strings may
/// hold other characters that some clients take for line ends: they are escaped.
pub(super) fn make_one_line(out: &mut Vec<u8>, start: usize) {
    work::visit(out.len() - start);
    // Nearly no payload has line ends. Without a branch for each byte, one instruction looks at many bytes.
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
            make_one_line(&mut out, 6);
            assert_eq!(String::from_utf8(out).unwrap(), format!("data: {expected}"));
        }
    }
}
