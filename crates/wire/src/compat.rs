//! Settings for clients that expect the behaviour of another server.

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Compat {
    /// Every body is read strictly, on every mount.
    pub strict: bool,
    pub cancel_terminal: CancelTerminal,
    pub terminal_message: TerminalMessage,
}

/// The answer to a cancel of a finished task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CancelTerminal {
    /// By mount and member name, as each mount is documented for its clients.
    #[default]
    Auto,
    /// The error of the protocol.
    Error,
    /// The task as it is.
    Noop,
}

/// The answer to a message to a finished task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TerminalMessage {
    #[default]
    Error,
    /// A new task in the same context.
    NewTask,
}
