//! Writing a stream, frame by frame, with all that can go wrong on the way.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use super::answer::{Envelope, Place};
use super::connection::Connection;
use super::errors::{ErrorKind, RemoteError};
use super::faults::{Cut, DeathWhen, Ending, EventIds, Faults, StreamDrop, Swap};
use super::perform::Source;
use super::planted::PlantedFault;
use super::planted_stream::{Frame, FrameBender, FrameKind};
use super::protocol::Operation;
use super::server::Server;
use super::spelling;
use super::sse::{self, Content};
use super::task::{RemoteTask, TaskEvent};
use super::tasks::Look;

pub(super) struct StreamReply {
    pub envelope: Envelope,
    pub operation: Operation,
    pub content: StreamContent,
}

pub(super) enum StreamContent {
    Events(Source),
    /// The one frame of a stream that does not begin.
    Refusal(RemoteError),
}

/// Why there are no more frames.
enum Stop {
    Ending(Ending),
    /// The connection is over.
    Over,
}

impl From<io::Error> for Stop {
    fn from(_: io::Error) -> Self {
        Self::Over
    }
}

/// How long a thread waits before it looks whether its connection is over.
const SLICE: Duration = Duration::from_millis(20);

/// Writes all of it; says how the connection goes on, `None` if it is over.
pub(super) fn write(server: &Arc<Server>, connection: &Connection, reply: StreamReply) -> Option<Ending> {
    let media_type = match server.settings.planted {
        Some(PlantedFault::StreamContentType) => "application/json",
        _ => "text/event-stream",
    };
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: {media_type}\r\nCache-Control: no-cache\r\nTransfer-Encoding: chunked\r\n\r\n"
    );
    connection.write(head.as_bytes()).ok()?;
    let mut writer = StreamWriter { server, connection, envelope: reply.envelope, made: 0, sent: 0, held: None };
    let written = match reply.content {
        StreamContent::Events(source) => writer.events(source, reply.operation),
        StreamContent::Refusal(error) => writer.error(&error),
    };
    let ending = match written.and_then(|()| writer.flush()) {
        Ok(()) => Ending::Complete,
        Err(Stop::Ending(ending)) => ending,
        Err(Stop::Over) => return None,
    };
    if ending == Ending::Complete {
        connection.write(b"0\r\n\r\n").ok()?;
    }
    Some(ending)
}

struct StreamWriter<'a> {
    server: &'a Arc<Server>,
    connection: &'a Connection,
    envelope: Envelope,
    /// Frames that were made, and those that were sent.
    made: usize,
    sent: usize,
    /// Waits for the next one to go before it.
    held: Option<Vec<u8>>,
}

impl StreamWriter<'_> {
    fn events(&mut self, source: Source, operation: Operation) -> Result<(), Stop> {
        let protocol = self.envelope.protocol;
        let mut bender = FrameBender::new(self.server.settings.planted, protocol, operation);
        self.check()?;
        let (id, first, mut seen) = match source {
            Source::Message(message) => {
                let content = spelling::message_event(protocol, &message);
                return self.frame(Frame { kind: FrameKind::Message, content, id: 1 });
            }
            Source::Task { id, first, seen } => (id, first, seen),
        };
        let mut is_over = false;
        if let Some(task) = first {
            is_over = task.state.is_settled();
            self.task(&mut bender, task, seen)?;
        }
        while !is_over {
            let events = match self.server.tasks.events_after(&id, seen, SLICE) {
                Look::Found(events) => events,
                Look::Gone => break,
                Look::NotYet => {
                    if self.connection.is_over() {
                        return Err(Stop::Over);
                    }
                    // A fault may have come meanwhile.
                    self.check()?;
                    continue;
                }
            };
            let Some(task) = self.server.tasks.get(&id) else {
                break;
            };
            let count = events.len();
            for (index, event) in events.into_iter().enumerate() {
                seen += 1;
                let ends = matches!(event, TaskEvent::Status { state, .. } if state.is_settled());
                is_over = ends && index + 1 == count;
                let kind = match &event {
                    TaskEvent::Created(_) => FrameKind::Task,
                    TaskEvent::Status { .. } if is_over => FrameKind::LastStatus,
                    TaskEvent::Status { .. } => FrameKind::Status,
                    TaskEvent::Artifact { .. } => FrameKind::Artifact,
                };
                let content = spelling::event(protocol, &id, &task.context_id, &event);
                self.frames(bender.bend(Frame { kind, content, id: seen }))?;
            }
        }
        if self.server.settings.planted == Some(PlantedFault::StreamStaysOpen) {
            return self.stay_open();
        }
        Ok(())
    }

    fn task(&mut self, bender: &mut FrameBender, task: RemoteTask, seen: usize) -> Result<(), Stop> {
        let (id, context) = (task.id.clone(), task.context_id.clone());
        let event = TaskEvent::Created(Box::new(task));
        let content = spelling::event(self.envelope.protocol, &id, &context, &event);
        self.frames(bender.bend(Frame { kind: FrameKind::Task, content, id: seen }))
    }

    fn frames(&mut self, frames: Vec<Frame>) -> Result<(), Stop> {
        frames.into_iter().try_for_each(|frame| self.frame(frame))
    }

    fn frame(&mut self, frame: Frame) -> Result<(), Stop> {
        let faults = self.server.faults();
        let number = self.made;
        self.made += 1;
        let mut text = self.envelope.result(self.server, Place::Frame(number), frame.content);
        if let Some(huge) = faults.huge_frame.filter(|huge| huge.at == number) {
            pad(&mut text, huge.bytes);
        }
        let id = match faults.event_ids {
            EventIds::Absent => None,
            EventIds::Numbers | EventIds::Resumable => Some(frame.id.to_string()),
            EventIds::Opaque => Some(format!("event-{:x}", frame.id * 7919)),
        };
        let bytes = sse::frame(&faults.sse, id.as_deref(), Content::Result, &text);
        let waits = match faults.swap_frames {
            None => false,
            Some(Swap::At(at)) => at == number,
            Some(Swap::EveryPair) => self.held.is_none(),
        };
        if waits {
            self.held = Some(bytes);
            return Ok(());
        }
        for _ in 0..=faults.repeat_frames {
            self.send(&bytes)?;
        }
        self.flush()
    }

    /// Sends the frame that waits for another, if there is one.
    fn flush(&mut self) -> Result<(), Stop> {
        match self.held.take() {
            Some(bytes) => self.send(&bytes),
            None => Ok(()),
        }
    }

    fn error(&mut self, error: &RemoteError) -> Result<(), Stop> {
        let text = self.envelope.error(self.server, error);
        let bytes = sse::frame(&self.server.faults().sse, None, Content::Error, &text);
        Ok(self.chunks(&bytes)?)
    }

    fn send(&mut self, bytes: &[u8]) -> Result<(), Stop> {
        let mut bytes = bytes.to_vec();
        if self.sent == 0 && self.server.faults().sse.byte_order_mark {
            bytes.splice(0..0, sse::BYTE_ORDER_MARK.iter().copied());
        }
        if let Some((drop, length)) = self.server.change_faults(|faults| cut(faults, self.sent, &bytes)) {
            self.part(&bytes, length, drop.how)?;
            return Err(Stop::Ending(drop.how));
        }
        self.chunks(&bytes)?;
        self.sent += 1;
        self.check()
    }

    /// Writes whole frames, in pieces if that is asked for.
    fn chunks(&self, bytes: &[u8]) -> io::Result<()> {
        let faults = self.server.faults();
        for piece in bytes.chunks(faults.sse.split.unwrap_or(bytes.len()).max(1)) {
            let mut chunk = format!("{:x}\r\n", piece.len()).into_bytes();
            chunk.extend_from_slice(piece);
            chunk.extend_from_slice(b"\r\n");
            self.connection.write_slowly(&chunk, faults.drip)?;
        }
        Ok(())
    }

    /// Writes the beginning of a frame. A stream that only looks complete has whole chunks all the same.
    fn part(&self, bytes: &[u8], length: usize, how: Ending) -> io::Result<()> {
        let announced = if how == Ending::Complete { length } else { bytes.len() };
        let mut chunk = format!("{announced:x}\r\n").into_bytes();
        chunk.extend_from_slice(&bytes[..length]);
        if how == Ending::Complete {
            chunk.extend_from_slice(b"\r\n");
        }
        self.connection.write(&chunk)
    }

    /// Does what is due after so many frames.
    fn check(&mut self) -> Result<(), Stop> {
        let sent = self.sent;
        let due = self.server.change_faults(|faults| due(faults, sent));
        match due {
            None => Ok(()),
            Some(Due::Drop(how)) => Err(Stop::Ending(how)),
            Some(Due::Silence) => self.stay_open(),
            Some(Due::Error(code)) => {
                self.error(&RemoteError::new(ErrorKind::Other(code)))?;
                Err(Stop::Ending(Ending::Complete))
            }
            Some(Due::Death(death)) => {
                self.server.die(death.tasks, death.back_after);
                Err(Stop::Over)
            }
        }
    }

    /// Sends nothing more until the peer gives up.
    fn stay_open(&self) -> Result<(), Stop> {
        while !self.connection.is_over() {
            self.connection.pause(SLICE);
        }
        Err(Stop::Over)
    }
}

enum Due {
    Drop(Ending),
    Silence,
    Error(i64),
    Death(super::faults::Death),
}

fn due(faults: &mut Faults, sent: usize) -> Option<Due> {
    if let Some(death) = faults.death.filter(|death| death.when == DeathWhen::AfterFrames(sent)) {
        faults.death = None;
        return Some(Due::Death(death));
    }
    if let Some(drop) = &mut faults.drop_stream
        && drop.cut == Cut::BetweenFrames
        && sent >= drop.after
        && drop.times.take()
    {
        return Some(Due::Drop(drop.how));
    }
    if let Some(silence) = &mut faults.silence
        && sent >= silence.after
        && silence.times.take()
    {
        return Some(Due::Silence);
    }
    if let Some(error) = &mut faults.error_frame
        && sent >= error.after
        && error.times.take()
    {
        return Some(Due::Error(error.code));
    }
    None
}

/// How much of the next frame is sent if the stream breaks off in it.
fn cut(faults: &mut Faults, sent: usize, bytes: &[u8]) -> Option<(StreamDrop, usize)> {
    let drop = faults.drop_stream.as_mut().filter(|drop| sent >= drop.after && drop.times.is_left())?;
    let length = match drop.cut {
        Cut::BetweenFrames => return None,
        Cut::InFrame => bytes.len() / 2,
        // The first byte of a character of several, and nothing of its others.
        Cut::InCharacter => bytes.iter().skip(sse::BYTE_ORDER_MARK.len()).position(|byte| *byte >= 0xC0)? + 4,
    };
    drop.times.take().then_some((*drop, length))
}

/// Adds a member that no version knows.
fn pad(text: &mut String, bytes: usize) {
    if let Some(open) = text.strip_suffix('}') {
        let padding = "x".repeat(bytes.saturating_sub(text.len()));
        *text = format!("{open},\"padding\":\"{padding}\"}}");
    }
}
