//! Any program that prints lines as Claude Code does, or the simpler ones of old, and that may ask for leave in plain
//! text.
//!
//! Only a line that is no JSON can be such a question: an answer that mentions `[Y/n]` is none. Its input stays open
//! where it may ask.

use crate::protocol::{Approve, Prompt, Protocol, Step};
use crate::update::{Choice, ChoiceKind, Question, Reply};
use crate::vocabulary::approval::Approval;
use crate::vocabulary::claude::ClaudeCode;
use crate::vocabulary::object::Object;
use crate::vocabulary::one_shot::{Vocabulary, tell};
use crate::vocabulary::opening::{last_argument, with_instructions};

/// The task alone, as the last argument; the operator's own come before it.
pub fn arguments(prompt: &Prompt) -> Vec<String> {
    positional(prompt)
}

/// What stands behind the flags.
pub(super) fn positional(prompt: &Prompt) -> Vec<String> {
    last_argument(with_instructions(prompt))
}

const YES: &str = "yes";
const NO: &str = "no";
/// What such programs read for no, however they want yes to be spelled.
const NO_RESPONSE: &str = "n";

pub struct Generic {
    approval: Approval,
    may_ask: bool,
    lines: ClaudeCode,
    questions: u64,
    is_over: bool,
}

impl Generic {
    pub fn new(prompt: &Prompt, approval: Approval) -> Self {
        Self {
            approval,
            may_ask: prompt.approve == Approve::Ask,
            lines: ClaudeCode::new(prompt),
            questions: 0,
            is_over: false,
        }
    }

    fn question(&mut self, line: &str) -> Question {
        self.questions += 1;
        let choice = |id: &str, name: &str, kind| Choice { id: id.to_owned(), name: name.to_owned(), kind };
        Question {
            id: format!("question-{}", self.questions),
            text: line.trim().to_owned(),
            tool: None,
            input: None,
            choices: vec![choice(YES, "Yes", ChoiceKind::AllowOnce), choice(NO, "No", ChoiceKind::RejectOnce)],
        }
    }
}

impl Protocol for Generic {
    fn begin(&mut self) -> Vec<Step> {
        if self.may_ask { vec![] } else { vec![Step::CloseInput] }
    }

    fn asks_in_plain_text(&self) -> bool {
        self.may_ask && !self.is_over
    }

    fn is_question(&self, line: &str) -> bool {
        // A JSON line that was cut is no question either.
        self.asks_in_plain_text() && !line.trim_start().starts_with('{') && self.approval.asks(line)
    }

    fn hear(&mut self, line: &str) -> Vec<Step> {
        let Some(object) = Object::parse(line) else {
            return if self.is_question(line) { vec![Step::Ask(self.question(line))] } else { vec![] };
        };
        let was_over = self.is_over;
        let mut steps = tell(self.lines.read(&object), &mut self.is_over);
        // It may wait for more; there will be none.
        if self.may_ask && self.is_over && !was_over {
            steps.push(Step::CloseInput);
        }
        steps
    }

    fn answer(&mut self, _question: &Question, reply: &Reply) -> Vec<Step> {
        let response = match reply {
            Reply::Chosen { choice, .. } if choice == YES => self.approval.yes().to_owned(),
            Reply::Chosen { .. } | Reply::Nobody => NO_RESPONSE.to_owned(),
            // An empty line would take what the program proposes, and a second one would answer its next question.
            Reply::Said(words) if words.trim().is_empty() => NO_RESPONSE.to_owned(),
            Reply::Said(words) => words.split_whitespace().collect::<Vec<_>>().join(" "),
        };
        vec![Step::Write(response)]
    }
}
