//! Any program: its output is the answer, and its exit status says whether it succeeded.

use crate::adapter::{Adapter, Exit, Step};
use crate::output_formats::arguments::with_instructions;
use crate::prompt::Prompt;
use crate::update::Update;

/// No arguments; the prompt goes to standard input.
pub fn arguments(_prompt: &Prompt) -> Vec<String> {
    vec![]
}

pub struct Plain {
    input: Option<String>,
    has_spoken: bool,
}

impl Plain {
    pub fn new(prompt: &Prompt) -> Self {
        Self { input: Some(with_instructions(prompt)), has_spoken: false }
    }
}

impl Adapter for Plain {
    fn begin(&mut self) -> Vec<Step> {
        self.input.take().map(Step::Write).into_iter().chain([Step::CloseInput]).collect()
    }

    fn prints_plain_text(&self) -> bool {
        true
    }

    /// Puts a line break before each line but the first, so that the last line has none after it.
    fn on_line(&mut self, line: &str) -> Vec<Step> {
        let text = if self.has_spoken { format!("\n{line}") } else { line.to_owned() };
        self.has_spoken = true;
        if text.is_empty() { vec![] } else { vec![Step::Report(Update::Text(text))] }
    }

    fn on_exit(&mut self, exit: &Exit) -> Option<Update> {
        (*exit == Exit::Code(0)).then_some(Update::Done { summary: None })
    }
}
