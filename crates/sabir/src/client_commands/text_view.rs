//! For people: the text of the answer on stdout as it comes, and all else on stderr.

use std::io::{self, Write};
use std::path::Path;

use sabir_model::{ArtifactId, Message, Part, State, Status, Task, ToolCall, ToolPhase};
use sabir_outbound::remote::Update;

use super::part_text::{PartText, part_text, parts_text};
use super::progress_line::ProgressLine;
use super::received_task::ReceivedTask;
use super::view::View;
use crate::process_environment::Terminals;
use crate::terminal_text::visible;

/// Of what a tool was given.
const LONGEST_ARGUMENTS: usize = 100;

pub struct TextView {
    terminals: Terminals,
    progress: ProgressLine,
    /// Nothing stands in the current line of stdout.
    is_at_line_start: bool,
    /// The artifact whose text was written last.
    artifact: Option<ArtifactId>,
}

impl TextView {
    pub fn new(terminals: Terminals) -> Self {
        let progress = ProgressLine::new(terminals.stderr && terminals.redraws);
        TextView { terminals, progress, is_at_line_start: true, artifact: None }
    }

    /// The parts of an artifact or a message.
    pub fn parts(&mut self, parts: &[Part]) -> io::Result<()> {
        for part in parts {
            match part_text(part) {
                PartText::Flowing(text) => self.write(&text)?,
                PartText::Block(text) => {
                    self.end_line()?;
                    self.write(&format!("{text}\n"))?;
                }
            }
        }
        Ok(())
    }

    /// One line of the answer itself.
    pub fn line(&mut self, text: &str) -> io::Result<()> {
        self.end_line()?;
        self.write(&format!("{}\n", text.trim_end()))
    }

    pub fn end_line(&mut self) -> io::Result<()> {
        if self.is_at_line_start { Ok(()) } else { self.write("\n") }
    }

    fn write(&mut self, text: &str) -> io::Result<()> {
        if text.is_empty() {
            return Ok(());
        }
        self.progress.clear();
        self.is_at_line_start = text.ends_with('\n');
        let mut out = io::stdout().lock();
        out.write_all(text.as_bytes())?;
        out.flush()
    }

    /// A line on stderr. On a terminal it must not continue a line of the answer.
    fn aside(&mut self, text: &str) {
        self.pause();
        eprintln!("{text}");
    }

    fn tool(&mut self, call: &ToolCall) {
        let name = visible(&call.name);
        match (call.phase, &call.args, &call.error) {
            (ToolPhase::Started, Some(args), _) => {
                let args = visible(args.as_str());
                let short: String = args.chars().take(LONGEST_ARGUMENTS).collect();
                let dots = if short.len() < args.len() { "..." } else { "" };
                self.aside(&format!("tool {name} {short}{dots}"));
            }
            (ToolPhase::Started, None, _) => self.aside(&format!("tool {name}")),
            (ToolPhase::Failed, _, Some(error)) => self.aside(&format!("tool {name} failed: {}", visible(error))),
            (ToolPhase::Failed, _, None) => self.aside(&format!("tool {name} failed")),
            (ToolPhase::Completed, ..) => {}
        }
    }
}

impl View for TextView {
    fn update(&mut self, _received: &ReceivedTask, update: &Update) -> io::Result<()> {
        match update {
            Update::Artifact { artifact, append, .. } => {
                let is_same = self.artifact.as_ref() == Some(&artifact.id);
                // Another artifact, or this one from its beginning.
                if !is_same || !append {
                    self.end_line()?;
                }
                self.artifact = Some(artifact.id.clone());
                self.parts(&artifact.parts)
            }
            Update::Progress(change) => {
                let state = change.status.state.name();
                let message = change.status.message.as_deref();
                let words = message.map(|message| parts_text(&message.parts)).unwrap_or_default();
                let words = visible(words.lines().next().unwrap_or_default());
                self.progress.set(if words.is_empty() { state.to_owned() } else { format!("{state}: {words}") });
                if let Some(call) = message.and_then(ToolCall::in_message) {
                    self.tool(&call);
                }
                Ok(())
            }
        }
    }

    fn replied(&mut self, message: &Message) -> io::Result<()> {
        self.parts(&message.parts)?;
        self.end_line()
    }

    fn over(&mut self, _received: &ReceivedTask, status: &Status, last_words: Option<&[Part]>) -> io::Result<()> {
        // What is said of other states is told as a question or as a reason.
        if status.state == State::Completed {
            let words = status.message.as_ref().map(|message| message.parts.as_slice()).or(last_words);
            if let Some(parts) = words {
                self.end_line()?;
                self.parts(parts)?;
            }
        }
        self.end_line()
    }

    fn wants_task(&self) -> bool {
        false
    }

    fn task(&mut self, _task: &Task) -> io::Result<()> {
        Ok(())
    }

    fn saved(&mut self, path: &Path) {
        self.aside(&format!("saved {}", path.display()));
    }

    fn remark(&mut self, text: &str) {
        self.aside(text);
    }

    fn warn(&mut self, text: &str) {
        self.aside(&format!("sabir: {text}"));
    }

    fn trouble(&mut self, text: &str) {
        let text = format!("the connection is lost, it is opened again ({})", visible(text));
        if self.terminals.stderr && self.terminals.redraws {
            self.progress.set_for_a_while(text);
        } else {
            self.warn(&text);
        }
    }

    fn tick(&mut self) {
        // The line would be drawn over the last words of the answer.
        if self.is_at_line_start || !self.terminals.stdout {
            self.progress.draw();
        }
    }

    fn pause(&mut self) {
        self.progress.clear();
        if self.terminals.stdout {
            // Whoever closes stdout is found out with the next piece of the answer.
            let _ = self.end_line();
        }
    }
}

impl Drop for TextView {
    fn drop(&mut self) {
        // An error may come in the middle of a line.
        let _ = self.end_line();
    }
}
