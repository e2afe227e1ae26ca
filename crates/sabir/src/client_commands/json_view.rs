//! For programs: one line of JSON for each event, as A2A 1.0 has it, and the whole task at the end.

use std::io::{self, Write};
use std::path::Path;

use sabir_model::{Chunk, Event, Message, Part, Status, StatusChange, Task};
use sabir_outbound::remote::Update;
use sabir_wire::{Dialect, Payload, V1};

use super::received_task::ReceivedTask;
use super::view::View;
use crate::process_environment::Terminals;
use crate::terminal_text::{visible, visible_json};

pub struct JsonView {
    terminals: Terminals,
}

impl JsonView {
    pub fn new(terminals: Terminals) -> Self {
        JsonView { terminals }
    }

    fn event(&self, received: &ReceivedTask, event: &Event) -> io::Result<()> {
        match &received.ids {
            Some((task, context)) => print_line(Payload::Event { task, context, event }, self.terminals),
            None => Ok(()),
        }
    }
}

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
        self.event(received, &event)
    }

    fn replied(&mut self, message: &Message) -> io::Result<()> {
        print_line(Payload::Message(message), self.terminals)
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
        self.event(received, &Event::Status(change))
    }

    fn wants_task(&self) -> bool {
        true
    }

    fn task(&mut self, task: &Task) -> io::Result<()> {
        print_line(Payload::SendResult(task), self.terminals)
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

/// Each line is there as soon as its event is.
pub fn print_line(payload: Payload<'_>, terminals: Terminals) -> io::Result<()> {
    let mut line = Vec::new();
    V1.encode(payload, &mut line);
    // JSON that is only carried may hold line ends between its tokens.
    for byte in line.iter_mut().filter(|byte| matches!(byte, b'\n' | b'\r')) {
        *byte = b' ';
    }
    line.push(b'\n');
    print_json(&String::from_utf8(line).expect("JSON is text"), terminals)
}

/// Byte for byte for programs; on a terminal with escapes for what would steer it.
pub fn print_json(json: &str, terminals: Terminals) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match terminals.stdout {
        true => out.write_all(visible_json(json).as_bytes())?,
        false => out.write_all(json.as_bytes())?,
    }
    out.flush()
}
