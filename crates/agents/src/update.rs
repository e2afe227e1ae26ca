//! What a program tells while it works, whatever words it has for it.

use sabir_model::Json;
pub use sabir_model::{Choice, ChoiceKind};

/// One thing that a program said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Update {
    /// It is up. Programs may say so again at every turn.
    Init {
        session: Option<String>,
        model: Option<String>,
    },
    /// The next piece of its answer.
    Text(String),
    /// A piece of what it thinks, which is not its answer.
    Thought(String),
    ToolUse {
        id: String,
        name: String,
        input: Option<Json>,
    },
    /// A tool has come to an end; `name` where the program repeats it.
    ToolResult {
        id: String,
        name: Option<String>,
        output: String,
        is_error: bool,
    },
    /// How it goes, in words for people: a retry, a denied tool.
    Progress(String),
    /// What this turn has used so far. The last word counts.
    Usage(TurnUsage),
    /// It touched a file that its caller may want to have.
    File(String),
    /// A line that means nothing in the words which the program should use.
    NotUnderstood(String),
    /// The session that was to be resumed is not there any more.
    SessionGone,
    /// The turn is over and went well.
    Done {
        summary: Option<String>,
    },
    /// The turn is over and did not; the text is for the caller.
    Failed(String),
    /// The turn is over because it was interrupted.
    Interrupted,
}

/// Tokens and money of one turn.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TurnUsage {
    pub input_tokens: u64,
    pub output_tokens: u64,
    /// US dollars, where the program knows.
    pub cost: Option<f64>,
}

impl Eq for TurnUsage {}

/// What a program wants to know before it goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// The program's own name for it.
    pub id: String,
    /// In words for people, such as `Run "rm -rf build"?`
    pub text: String,
    pub tool: Option<String>,
    /// What the tool would be called with.
    pub input: Option<Json>,
    /// What can be answered; at least one, unless any text will do.
    pub choices: Vec<Choice>,
}

impl Question {
    /// Whether both ask for the same tool with the same input, byte for byte.
    pub fn asks_for_the_same(&self, other: &Question) -> bool {
        let input = |question: &Question| question.input.as_ref().map(|input| input.as_str().to_owned());
        self.tool.is_some() && self.tool == other.tool && input(self) == input(other)
    }
}

/// What the caller, or the policy, has answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// One of the question's choices, by its id, and what was said with it.
    Chosen { choice: String, comment: Option<String> },
    /// Free words, to a question that takes any.
    Text(String),
    /// Nobody will answer: the task was canceled or the time is up.
    Unanswered,
}
