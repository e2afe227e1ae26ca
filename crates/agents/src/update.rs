//! Updates, questions and replies: what programs report while they work, independent of their format.

use sabir_model::Json;
pub use sabir_model::{Choice, ChoiceKind};

/// One report of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Update {
    /// The program is ready. Programs may repeat this at every turn.
    Init {
        session: Option<String>,
        model: Option<String>,
    },
    /// The next piece of its answer.
    Text(String),
    /// A piece of its thoughts, which are not part of the answer.
    Thought(String),
    ToolUse {
        id: String,
        name: String,
        input: Option<Json>,
    },
    /// A tool has ended; `name` if the program repeats it.
    ToolResult {
        id: String,
        name: Option<String>,
        output: String,
        is_error: bool,
    },
    /// Progress as text for people: a retry, a denied tool.
    Progress(String),
    /// The usage of this turn so far. The last one counts.
    Usage(TurnUsage),
    /// The program wrote a file that the caller may want.
    File(String),
    /// A line that is not in the format of the program.
    NotUnderstood(String),
    /// The session to be resumed does not exist any more.
    SessionGone,
    /// The turn is completed.
    Done {
        summary: Option<String>,
    },
    /// The turn has failed; the text is for the caller.
    Failed(String),
    /// The turn was interrupted.
    Interrupted,
}

/// Tokens and cost of one turn.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TurnUsage {
    pub input_tokens: u64,
    pub output_tokens: u64,
    /// US dollars, if the program reports them.
    pub cost: Option<f64>,
}

impl Eq for TurnUsage {}

/// A question that the program wants answered before it continues.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// The program's own id.
    pub id: String,
    /// Text for people, such as `Run "rm -rf build"?`
    pub text: String,
    pub tool: Option<String>,
    /// The input of the tool.
    pub input: Option<Json>,
    /// The possible answers. Empty: any text.
    pub choices: Vec<Choice>,
}

impl Question {
    /// Whether both ask for the same tool with the same input, byte for byte.
    pub fn asks_for_the_same(&self, other: &Question) -> bool {
        let input = |question: &Question| question.input.as_ref().map(|input| input.as_str().to_owned());
        self.tool.is_some() && self.tool == other.tool && input(self) == input(other)
    }
}

/// The answer of the caller or of the policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// One of the question's choices, by its id, with an optional comment.
    Chosen { choice: String, comment: Option<String> },
    /// Free text, for a question without choices.
    Text(String),
    /// Nobody will answer: the task was canceled, or the time is up.
    Unanswered,
}
