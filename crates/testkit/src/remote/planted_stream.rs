//! What a planted fault does to the frames of a stream.

use serde_json::{Value, json};

use super::planted::PlantedFault as Fault;
use super::protocol::{Operation, RemoteProtocol};
use super::tamper;

/// A frame before it has an envelope.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Frame {
    pub kind: FrameKind,
    pub content: Value,
    /// The number of the event.
    pub id: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FrameKind {
    Task,
    Message,
    Status,
    /// The last status of a stream.
    LastStatus,
    Artifact,
}

/// Bends the frames of one stream.
pub(super) struct FrameBender {
    fault: Option<Fault>,
    protocol: RemoteProtocol,
    operation: Operation,
    seen: usize,
    has_artifact: bool,
    held: Vec<Frame>,
}

impl FrameBender {
    pub(super) fn new(fault: Option<Fault>, protocol: RemoteProtocol, operation: Operation) -> Self {
        Self { fault, protocol, operation, seen: 0, has_artifact: false, held: Vec::new() }
    }

    /// What is sent in place of a frame.
    pub(super) fn bend(&mut self, mut frame: Frame) -> Vec<Frame> {
        let is_first = self.seen == 0;
        self.seen += 1;
        let is_first_artifact = frame.kind == FrameKind::Artifact && !self.has_artifact;
        self.has_artifact |= is_first_artifact;
        match self.fault {
            Some(Fault::StreamArtifactFirst) if self.operation == Operation::Stream => match frame.kind {
                FrameKind::Artifact if is_first_artifact => {
                    let mut frames = vec![frame];
                    frames.append(&mut self.held);
                    return frames;
                }
                FrameKind::Task | FrameKind::Status if !self.has_artifact => {
                    self.held.push(frame);
                    return Vec::new();
                }
                _ => {
                    let mut frames = std::mem::take(&mut self.held);
                    frames.push(frame);
                    return frames;
                }
            },
            Some(Fault::StreamWithoutEnd) if frame.kind == FrameKind::LastStatus => return Vec::new(),
            Some(Fault::StreamAfterEnd) if frame.kind == FrameKind::LastStatus => {
                return vec![frame.clone(), frame];
            }
            Some(Fault::SubscribeWithoutSnapshot) if is_first && self.operation == Operation::Subscribe => {
                return Vec::new();
            }
            Some(Fault::AppendOnFirstChunk) if is_first_artifact => {
                let content = &mut frame.content;
                let update = if self.protocol.is_v1() { &mut content["artifactUpdate"] } else { content };
                update["append"] = json!(true);
            }
            Some(Fault::StreamForeignTask) if frame.kind != FrameKind::Task && frame.kind != FrameKind::Message => {
                tamper::name_task(&mut frame.content, self.protocol, "another-task");
            }
            Some(Fault::StreamWithoutFinal) => {
                tamper::change(&mut frame.content, "final", &mut |last| *last = json!(false));
            }
            _ => {}
        }
        vec![frame]
    }
}
