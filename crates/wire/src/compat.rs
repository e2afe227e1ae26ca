//! The settings that bend behaviour for clients which grew up elsewhere.

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Compat {
    /// Every body is read as its dialect says, on every mount.
    pub strict: bool,
    pub cancel_terminal: CancelTerminal,
    pub terminal_message: TerminalMessage,
}

/// What a cancel of a finished task is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CancelTerminal {
    /// By mount and spelling, so that every client finds what its own page promised.
    #[default]
    Auto,
    /// The error of the protocol.
    Error,
    /// The task as it is.
    Noop,
}

/// What a message to a finished task is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TerminalMessage {
    #[default]
    Error,
    /// A new task in the same context.
    NewTask,
}
