//! Questions to the person at the terminal: what to answer to the agent, and what Ctrl-C means.

use std::io::{self, Write};

use sabir_model::{Choice, Status};

use super::interrupts::Interrupts;
use super::keyboard::Keyboard;
use super::part_text::parts_text;
use crate::terminal_text::{visible, visible_lines};

pub struct Prompts {
    keyboard: Keyboard,
}

/// What somebody does at a prompt.
#[derive(Debug, PartialEq, Eq)]
pub enum Typed {
    Line(String),
    /// Ctrl-D.
    End,
    /// Ctrl-C.
    Interrupt,
}

/// What Ctrl-C means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wish {
    Cancel,
    Detach,
    Continue,
}

impl Prompts {
    pub fn new() -> Self {
        Prompts { keyboard: Keyboard::new() }
    }

    pub async fn ask(&mut self, prompt: &str, interrupts: &mut Interrupts) -> Typed {
        let mut out = io::stderr();
        let _ = write!(out, "{prompt}").and_then(|()| out.flush());
        let typed = tokio::select! {
            line = self.keyboard.line() => line.map_or(Typed::End, Typed::Line),
            () = interrupts.next() => Typed::Interrupt,
        };
        if !matches!(typed, Typed::Line(_)) {
            // The cursor stands behind the prompt.
            let _ = writeln!(out);
        }
        typed
    }

    /// After a Ctrl-C. A second one detaches.
    pub async fn wish(&mut self, interrupts: &mut Interrupts) -> Wish {
        loop {
            let prompt = "Cancel the task (c), detach from it (d), or continue (Enter)? ";
            let line = match self.ask(prompt, interrupts).await {
                Typed::Line(line) => line,
                Typed::End | Typed::Interrupt => return Wish::Detach,
            };
            match line.to_ascii_lowercase().as_str() {
                "" => return Wish::Continue,
                "c" | "cancel" => return Wish::Cancel,
                "d" | "detach" => return Wish::Detach,
                _ => {}
            }
        }
    }
}

/// The question of a task that waits, with the answers that it offers. What a tool would get comes first and is never shortened:
/// whoever grants it permission answers for all of it.
pub fn question_text(status: &Status) -> String {
    let Some(message) = status.message.as_deref() else { return "The agent waits for an answer.".to_owned() };
    let words = message.parts.iter().filter(|part| part.as_text().is_some()).cloned().collect::<Vec<_>>();
    let words = parts_text(&words);
    let words = if words.is_empty() { visible_lines(&message.question_text()) } else { words };
    let choices = message.question_choices();
    let line = |(place, choice): (usize, &Choice)| format!("\n  {}  {}", place + 1, visible(&choice.name));
    let tool = message.tool_text().map(|tool| tool + "\n").unwrap_or_default();
    format!("{tool}{words}{}", choices.iter().enumerate().map(line).collect::<String>())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use sabir_model::{Json, Message, MessageId, Part, Role, State, Timestamp};

    use super::*;

    #[test]
    fn a_question_is_shown_with_its_choices() {
        let data = |text: &str| Part::data(Json::parse(text).unwrap());
        let choices = r#"{"kind":"question","question":"Run it?","choices":[
            {"id":"a","name":"Allow\u001b[2J","kind":"allow_once"},{"id":"r","name":"Reject","kind":"reject_once"}]}"#;
        let permission = r#"{"kind":"question","type":"permission","question":"Run it?","tool":"Bash\u009b",
            "input":{"command":"rm -rf /@"},"choices":[{"id":"a","name":"Allow","kind":"allow_once"}]}"#;
        let permission = permission.replace('@', "\u{202e}");
        let permission = permission.as_str();
        for (parts, expected) in [
            (vec![Part::text("Which day?\u{1b}")], "Which day?\u{fffd}"),
            (vec![Part::text("Run it?"), data(choices)], "Run it?\n  1  Allow\u{fffd}[2J\n  2  Reject"),
            (vec![data(choices)], "Run it?\n  1  Allow\u{fffd}[2J\n  2  Reject"),
            (
                vec![Part::text("Run it?"), data(permission)],
                "tool Bash\u{fffd} with {\n  \"command\": \"rm -rf /\u{fffd}\"\n}\nRun it?\n  1  Allow",
            ),
            // It asks for words, whatever it says of a tool.
            (vec![Part::text("Which?"), data(&permission.replace("permission", "input"))], "Which?\n  1  Allow"),
        ] {
            let message = Message::new(MessageId::parse("m").unwrap(), Role::Agent, parts);
            let status =
                Status { state: State::InputRequired, message: Some(Arc::new(message)), time: Timestamp::default() };
            assert_eq!(question_text(&status), expected);
        }
    }
}
