//! How a program is talked to: a protocol is a machine without hands.
//!
//! It is given the program's lines and says what to write, tell or ask. Whoever runs the program does that, so each
//! protocol can be tested on recorded runs, and there is one way of running programs for all of them.

use std::path::PathBuf;

use crate::duplex::{Attachment, all_of};
use crate::update::{Question, Reply, Spent, Update};

/// What to do next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    Tell(Update),
    /// A line for the program's standard input, without its end.
    Write(String),
    /// To be answered with `Protocol::answer`; the program waits.
    Ask(Question),
    /// The program no longer waits for the answer to the question that it names so.
    Withdraw(String),
    /// Nothing more will be written; many programs end only then.
    CloseInput,
}

pub trait Protocol: Send {
    /// The program has just been started.
    fn begin(&mut self) -> Vec<Step>;

    /// A line of its standard output, without its end. Lines that are not for us are no error.
    fn hear(&mut self, line: &str) -> Vec<Step>;

    /// Whether what it prints is plain text, so that lines which came together may be told together.
    fn speaks_plain_text(&self) -> bool {
        false
    }

    /// Whether it may ask in a line that does not end, now.
    fn asks_in_plain_text(&self) -> bool {
        false
    }

    /// Whether a line that has begun and does not go on is a question, as programs ask on a terminal.
    fn is_question(&self, _begun: &str) -> bool {
        false
    }

    /// Whether a line that has begun shows that the program does not wait for its answer any more.
    fn goes_on_with(&self, _begun: &str) -> bool {
        false
    }

    /// The answer to a question of this protocol.
    fn answer(&mut self, _question: &Question, _reply: &Reply) -> Vec<Step> {
        Vec::new()
    }

    /// Whether another process of the program can resume its session, as far as the program has said.
    fn is_resumable(&self) -> bool {
        false
    }

    /// Whether `Update::Init` is told before the prompt is written, so that the program can have done nothing by then.
    fn is_introduced_first(&self) -> bool {
        false
    }

    /// What the turn has used of its model so far, where the program tells it only with its result.
    fn spent_so_far(&self) -> Option<Spent> {
        None
    }

    /// Whether the program has finished its turn well and waits for another in the same process.
    fn awaits_next_turn(&self) -> bool {
        false
    }

    /// Begins another turn in the same process. `None`: it does not wait for one.
    fn next_turn(&mut self, prompt: &Prompt, attachments: &[Attachment]) -> Option<Vec<Step>> {
        let attachments = all_of(prompt, attachments.to_vec());
        self.awaits_next_turn().then(|| self.begin_next_turn(prompt.clone(), attachments))
    }

    /// The same of a program that waits for one, with all files of the prompt.
    fn begin_next_turn(&mut self, _prompt: Prompt, _attachments: Vec<Attachment>) -> Vec<Step> {
        Vec::new()
    }

    /// A line that came between two turns, when nobody can be asked: what to write to it.
    fn hear_between_turns(&mut self, _line: &str) -> Vec<String> {
        Vec::new()
    }

    /// Asks the program to stop its turn by itself. Nothing: it has to be signalled.
    fn interrupt(&mut self) -> Vec<Step> {
        Vec::new()
    }

    /// The program has ended before its turn was over: what that means. `None`: it is a failure, and whoever ran it knows
    /// the words for it.
    fn ended(&mut self, _exit: &Exit) -> Option<Update> {
        None
    }
}

/// How a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    Code(i32),
    Signal(i32),
}

/// What a turn begins with, for programs that are told on the command line and for those that are told on stdin.
#[derive(Debug, Clone, Default)]
pub struct Prompt {
    /// A UUID that no other prompt has, by which a program can say when it begins with this one.
    pub id: Option<String>,
    pub text: String,
    /// Where it works.
    pub folder: PathBuf,
    /// The program's own session, to be resumed.
    pub session: Option<String>,
    /// The program was ended in the middle of a turn of that session, which goes on without a word: the text is not told
    /// again.
    pub resumes_turn: bool,
    pub model: Option<String>,
    /// What the operator adds to the program's own instructions.
    pub instructions: Option<String>,
    /// Whether tools may be used without asking.
    pub approve: Approve,
    /// Files of the message, as they lie in the workspace.
    pub files: Vec<PathBuf>,
    /// The program runs as root, to whom some programs refuse what they allow others.
    pub as_root: bool,
    /// The text may be a command of the program, and may name files for it to read.
    pub trusts_prompts: bool,
    /// Whether the program obeys the settings of its workspace.
    pub workspace: Workspace,
}

/// What counts of the settings that a workspace brings along for its program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Workspace {
    Trusted,
    /// Only what restricts the program, and instructions.
    Untrusted {
        rules: ProjectRules,
        instructions: Option<String>,
    },
}

impl Default for Workspace {
    fn default() -> Self {
        Workspace::Untrusted { rules: ProjectRules::default(), instructions: None }
    }
}

/// Rules about tools, in the words of the program.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProjectRules {
    pub deny: Vec<String>,
    pub ask: Vec<String>,
}

/// What happens when a program wants to use a tool that needs permission.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Approve {
    /// The caller is asked.
    #[default]
    Ask,
    /// Always yes.
    All,
    /// Always no.
    None,
}
