//! For programs: one line of JSON for each event, as A2A 1.0 has it, and the whole task at the end.

use std::io::{self, Write};
use std::path::Path;

use sabir_model::{Chunk, Event, Message, Part, Status, StatusChange, Task};
use sabir_outbound::remote::Update;
use sabir_wire::{Dialect, Payload, V1};

use super::received_task::ReceivedTask;
use super::view::View;
use crate::terminal_text::visible;

#[derive(Default)]
pub struct JsonView;

impl View for JsonView {
    fn update(&mut self, received: &ReceivedTask, update: &Update) -> io::Result<()> {
        let event = match update {
            Update::Progress(change) => Event::Status(change.clone()),
            Update::Artifact { artifact, append, last, metadata } => Event::Artifact(Chunk {
                index: 0,
                artifact: artifact.clone().into(),
                append: *append,
                last: *last,
                metadata: metadata.clone(),
            }),
        };
        print_event(received, &event)
    }

    fn replied(&mut self, message: &Message) -> io::Result<()> {
        print_line(Payload::Message(message))
    }

    fn over(&mut self, received: &ReceivedTask, status: &Status, _last_words: Option<&[Part]>) -> io::Result<()> {
        let change = StatusChange {
            status: status.clone(),
            is_final: true,
            input: Vec::new(),
            begins_turn: false,
            usage: None,
            metadata: None,
        };
        print_event(received, &Event::Status(change))
    }

    fn wants_task(&self) -> bool {
        true
    }

    fn task(&mut self, task: &Task) -> io::Result<()> {
        print_line(Payload::SendResult(task))
    }

    fn saved(&mut self, path: &Path) {
        eprintln!("sabir: saved {}", path.display());
    }

    fn remark(&mut self, _text: &str) {}

    fn warn(&mut self, text: &str) {
        eprintln!("sabir: {text}");
    }

    fn trouble(&mut self, text: &str) {
        self.warn(&format!("the connection is lost, it is opened again ({})", visible(text)));
    }
}

fn print_event(received: &ReceivedTask, event: &Event) -> io::Result<()> {
    match &received.ids {
        Some((task, context)) => print_line(Payload::Event { task, context, event }),
        None => Ok(()),
    }
}

/// Each line is there as soon as its event is.
pub fn print_line(payload: Payload<'_>) -> io::Result<()> {
    let mut line = Vec::new();
    V1.encode(payload, &mut line);
    // JSON that is only carried may hold line ends between its tokens.
    for byte in line.iter_mut().filter(|byte| matches!(byte, b'\n' | b'\r')) {
        *byte = b' ';
    }
    line.push(b'\n');
    let mut out = io::stdout().lock();
    out.write_all(&line)?;
    out.flush()
}
