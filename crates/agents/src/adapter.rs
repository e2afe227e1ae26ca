//! An adapter translates between Sabir and one kind of program. It does no input or output itself.
//!
//! It receives the program's output lines and returns steps: what to write, to report or to ask. `program::run` performs
//! the steps. So every adapter can be tested on recorded runs, and one piece of code runs all programs. There are two
//! families: `output_formats` for programs that are started once per turn and only print, and `protocols` for programs that
//! talk in both directions.

use crate::prompt::Prompt;
use crate::protocols::{Attachment, all_of};
use crate::update::{Question, Reply, TurnUsage, Update};

/// What to do next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Report it to the caller of the task.
    Report(Update),
    /// Write a line to the program's standard input. The line break is not included.
    Write(String),
    /// Ask the caller. The program waits for `Adapter::answer`.
    Ask(Question),
    /// The program no longer waits for the answer to the question with this id.
    Withdraw(String),
    /// Close the program's standard input; many programs exit only then.
    CloseInput,
}

pub trait Adapter: Send {
    /// The program has just been started.
    fn begin(&mut self) -> Vec<Step>;

    /// A line of the program's standard output, without its line break. Unknown lines are no error.
    fn on_line(&mut self, line: &str) -> Vec<Step>;

    /// Whether the program prints plain text. Lines that arrive together may then be reported together.
    fn prints_plain_text(&self) -> bool {
        false
    }

    /// Whether the program may now ask in a line without a line break.
    fn asks_in_plain_text(&self) -> bool {
        false
    }

    /// Whether a line that stays incomplete is a question, as programs ask on a terminal.
    fn is_question(&self, _partial_line: &str) -> bool {
        false
    }

    /// Whether an incomplete line shows that the program no longer waits for its answer.
    fn continues_without_answer(&self, _partial_line: &str) -> bool {
        false
    }

    /// The answer to a question that this adapter returned.
    fn answer(&mut self, _question: &Question, _reply: &Reply) -> Vec<Step> {
        Vec::new()
    }

    /// Whether another process of the program can resume its session, as far as the program has said.
    fn is_resumable(&self) -> bool {
        false
    }

    /// Whether `Update::Init` is reported before the prompt is written. The program cannot have done any work by then.
    fn reports_session_first(&self) -> bool {
        false
    }

    /// The usage of the turn so far, for programs that report it only with their result.
    fn usage_so_far(&self) -> Option<TurnUsage> {
        None
    }

    /// Whether the program has completed its turn and waits for another in the same process.
    fn awaits_next_turn(&self) -> bool {
        false
    }

    /// Begins another turn in the same process. `None`: the program does not wait for one.
    fn next_turn(&mut self, prompt: &Prompt, attachments: &[Attachment]) -> Option<Vec<Step>> {
        let attachments = all_of(prompt, attachments.to_vec());
        self.awaits_next_turn().then(|| self.begin_next_turn(prompt.clone(), attachments))
    }

    /// What `next_turn` does once it is clear that the program waits. `attachments` has all files of the prompt.
    fn begin_next_turn(&mut self, _prompt: Prompt, _attachments: Vec<Attachment>) -> Vec<Step> {
        Vec::new()
    }

    /// A line that arrives between two turns, when nobody can be asked. Returns the lines to write.
    fn on_line_between_turns(&mut self, _line: &str) -> Vec<String> {
        Vec::new()
    }

    /// Asks the program to stop its turn. No steps: the program has to be signalled.
    fn interrupt(&mut self) -> Vec<Step> {
        Vec::new()
    }

    /// The program has exited before its turn was over: what that means. `None`: it is a failure, and the caller of this
    /// method describes it.
    fn on_exit(&mut self, _exit: &Exit) -> Option<Update> {
        None
    }
}

/// How a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    Code(i32),
    Signal(i32),
}
