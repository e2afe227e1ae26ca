//! Any program that prints Claude Code's format, or its older, simpler form, and that may ask for permission in plain text.
//! `docs/guides/your-own-program.md` lists the lines.
//!
//! Only a line that is not JSON can be a question: JSON text that mentions `[Y/n]` is none. Sabir closes the program's
//! standard input at once, so that a program that reads it to the end continues, unless questions are answered there. Lines
//! that are not understood are reported, so that the author of the program sees them.

use crate::adapter::{Adapter, Step};
use crate::lenient_json::Object;
use crate::output_formats::approval::Approval;
use crate::output_formats::arguments::{last_argument, with_instructions};
use crate::output_formats::claude::ClaudeCode;
use crate::output_formats::one_shot::{OutputFormat, report};
use crate::prompt::{Approve, Prompt};
use crate::update::{Choice, ChoiceKind, Question, Reply, Update};

/// The prompt as the last argument; the operator's arguments come before it.
pub fn arguments(prompt: &Prompt) -> Vec<String> {
    positional(prompt)
}

/// The positional arguments.
pub(super) fn positional(prompt: &Prompt) -> Vec<String> {
    last_argument(with_instructions(prompt))
}

const YES: &str = "yes";
const NO: &str = "no";
/// The answer for no. Only the answer for yes can be configured.
const NO_RESPONSE: &str = "n";
const WITHDRAWN: &str = "The program printed more after its question, which withdraws the question";

pub struct Generic {
    approval: Approval,
    approve: Approve,
    /// What is written to its standard input first.
    input: Option<String>,
    lines: ClaudeCode,
    questions: u64,
    /// The open question, as far as the output shows.
    open: Option<String>,
    is_over: bool,
}

impl Generic {
    pub fn new(prompt: &Prompt, approval: Approval) -> Self {
        Self {
            approval,
            approve: prompt.approve,
            input: None,
            lines: ClaudeCode::new(prompt),
            questions: 0,
            open: None,
            is_over: false,
        }
    }

    /// The prompt goes to its standard input.
    pub fn with_stdin(self, input: String) -> Self {
        Self { input: Some(input), ..self }
    }

    /// Whether questions are answered: by the caller, or by the policy if the operator has configured their pattern.
    fn answers(&self) -> bool {
        self.approve == Approve::Ask || self.approval.is_configured()
    }

    fn question(&mut self, line: &str) -> Question {
        self.questions += 1;
        let id = format!("question-{}", self.questions);
        self.open = Some(id.clone());
        let choice = |id: &str, name: &str, kind| Choice { id: id.to_owned(), name: name.to_owned(), kind };
        Question {
            id,
            text: line.trim().to_owned(),
            tool: None,
            input: None,
            choices: vec![choice(YES, "Yes", ChoiceKind::AllowOnce), choice(NO, "No", ChoiceKind::RejectOnce)],
        }
    }
}

impl Adapter for Generic {
    fn begin(&mut self) -> Vec<Step> {
        let close = (!self.answers()).then_some(Step::CloseInput);
        self.input.take().map(Step::Write).into_iter().chain(close).collect()
    }

    fn asks_in_plain_text(&self) -> bool {
        self.answers() && !self.is_over
    }

    fn is_question(&self, line: &str) -> bool {
        // A truncated JSON line is no question either.
        self.asks_in_plain_text() && !line.trim_start().starts_with('{') && self.approval.asks(line)
    }

    fn continues_without_answer(&self, partial_line: &str) -> bool {
        // After its question a program may still print a prompt sign, such as "> ".
        self.open.is_some() && partial_line.contains(char::is_alphanumeric)
    }

    fn on_line(&mut self, line: &str) -> Vec<Step> {
        let mut steps = Vec::new();
        if self.continues_without_answer(line) {
            // The program does not read the answer any more, and an answer in its input would count for its next question.
            if let Some(question) = self.open.take() {
                steps.push(Step::Withdraw(question));
                // If the program still waits, the task shows why nobody is asked.
                steps.push(Step::Report(Update::Progress(WITHDRAWN.to_owned())));
            }
        }
        let Some(object) = Object::parse(line) else {
            steps.extend(match self.approve {
                _ if !self.is_question(line) => not_understood(line, self.is_over),
                Approve::Ask => vec![Step::Ask(self.question(line))],
                Approve::All => vec![Step::Write(self.approval.yes().to_owned())],
                Approve::None => vec![Step::Write(NO_RESPONSE.to_owned())],
            });
            return steps;
        };
        if !ClaudeCode::understands(&object) {
            steps.extend(not_understood(line, self.is_over));
            return steps;
        }
        let was_over = self.is_over;
        steps.extend(report(self.lines.read(&object), &mut self.is_over));
        // The program may wait for more input; there will be none.
        if self.answers() && self.is_over && !was_over {
            steps.push(Step::CloseInput);
        }
        steps
    }

    fn answer(&mut self, question: &Question, reply: &Reply) -> Vec<Step> {
        if self.open.take_if(|open| *open == question.id).is_none() {
            return Vec::new();
        }
        let response = match reply {
            Reply::Chosen { choice, .. } if choice == YES => self.approval.yes().to_owned(),
            Reply::Chosen { .. } | Reply::Unanswered => NO_RESPONSE.to_owned(),
            // An empty line would accept the program's default, and a second line would answer its next question.
            Reply::Text(words) if words.trim().is_empty() => NO_RESPONSE.to_owned(),
            Reply::Text(words) => words.split_whitespace().collect::<Vec<_>>().join(" "),
        };
        vec![Step::Write(response)]
    }
}

fn not_understood(line: &str, is_over: bool) -> Vec<Step> {
    // A prompt sign, such as "> ", means nothing.
    let is_silence = is_over || !line.contains(char::is_alphanumeric);
    if is_silence { vec![] } else { vec![Step::Report(Update::NotUnderstood(line.to_owned()))] }
}
