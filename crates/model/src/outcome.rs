//! How a turn ends, for agents, the engine and the log alike.

use crate::State;

/// `M` is what is said with it: parts where an agent says it, a message where it is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome<M> {
    /// The task is done.
    Completed(M),
    /// It could not be done.
    Failed(M),
    /// The agent does not do it.
    Rejected(M),
    /// It was stopped.
    Canceled(M),
    /// The turn ends by asking; the next message starts another one.
    InputRequired(M),
    /// The same, for credentials.
    AuthRequired(M),
}

/// What a task needs from its caller before it can go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Required {
    /// Words, a choice or a file.
    Input,
    /// Credentials, or another proof of permission.
    Auth,
}

impl Required {
    /// The state of a task that waits for it.
    pub fn state(self) -> State {
        match self {
            Required::Input => State::InputRequired,
            Required::Auth => State::AuthRequired,
        }
    }

    /// What a task in this state waits for, if it waits.
    pub fn of(state: State) -> Option<Self> {
        match state {
            State::InputRequired => Some(Required::Input),
            State::AuthRequired => Some(Required::Auth),
            State::Submitted
            | State::Working
            | State::Completed
            | State::Failed
            | State::Canceled
            | State::Rejected => None,
        }
    }
}

impl<M> Outcome<M> {
    /// The state of the task then.
    pub fn state(&self) -> State {
        match self {
            Outcome::Completed(_) => State::Completed,
            Outcome::Failed(_) => State::Failed,
            Outcome::Rejected(_) => State::Rejected,
            Outcome::Canceled(_) => State::Canceled,
            Outcome::InputRequired(_) => State::InputRequired,
            Outcome::AuthRequired(_) => State::AuthRequired,
        }
    }

    /// The same ending, said in another form.
    pub fn map<N>(self, change: impl FnOnce(M) -> N) -> Outcome<N> {
        match self {
            Outcome::Completed(said) => Outcome::Completed(change(said)),
            Outcome::Failed(said) => Outcome::Failed(change(said)),
            Outcome::Rejected(said) => Outcome::Rejected(change(said)),
            Outcome::Canceled(said) => Outcome::Canceled(change(said)),
            Outcome::InputRequired(said) => Outcome::InputRequired(change(said)),
            Outcome::AuthRequired(said) => Outcome::AuthRequired(change(said)),
        }
    }

    /// What is said with it.
    pub fn into_inner(self) -> M {
        match self {
            Outcome::Completed(said)
            | Outcome::Failed(said)
            | Outcome::Rejected(said)
            | Outcome::Canceled(said)
            | Outcome::InputRequired(said)
            | Outcome::AuthRequired(said) => said,
        }
    }
}
