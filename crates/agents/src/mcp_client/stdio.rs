//! A server that is a program: one message per line, on its standard input and output, under a guard like every program.

use std::path::PathBuf;
use std::time::Duration;

use tokio::time::timeout;

use super::server::{Answered, McpError, read_message};
use crate::process::{self, Child, Launch, Output, environment};
use crate::program::Host;

/// A longer message is no answer to a tool call that a model could read.
const LONGEST_LINE: usize = 16 * 1024 * 1024;
/// What a server may print in one turn.
const LARGEST_OUTPUT: u64 = 256 * 1024 * 1024;
/// How long it may take to end by itself, before it is told to.
const END_LIMIT: Duration = Duration::from_millis(500);
/// How long it may take then.
const STOP_GRACE: Duration = Duration::from_secs(2);

pub(super) struct StdioConnection {
    child: Child,
    is_closed: bool,
}

impl StdioConnection {
    pub(super) async fn open(
        host: &Host,
        command: &[String],
        (variables, pass): (&[(String, String)], &[String]),
        folder: PathBuf,
    ) -> Result<Self, McpError> {
        let Some((program, arguments)) = command.split_first() else {
            return Err(McpError::lost("it has no command"));
        };
        process::until_leftovers_are_gone().await;
        let launch = Launch {
            guard: host.guard.clone(),
            program: program.into(),
            arguments: arguments.iter().map(Into::into).collect(),
            folder,
            environment: environment(host.variables.iter().cloned(), pass, variables),
            max_line: LONGEST_LINE,
            max_output: LARGEST_OUTPUT,
            stop_grace: STOP_GRACE,
            open_files: host.open_files,
        };
        let child = launch.start().await.map_err(|error| McpError::lost(error.to_string()))?;
        Ok(StdioConnection { child, is_closed: false })
    }

    pub(super) async fn send(&mut self, line: &str) -> Result<(), McpError> {
        match self.child.write_line(line).await {
            Ok(()) => Ok(()),
            Err(error) => Err(self.lose(error.to_string())),
        }
    }

    /// The response to the request with this id.
    pub(super) async fn response(&mut self, id: u64) -> Result<String, McpError> {
        if self.is_closed {
            return Err(McpError::lost("it has ended"));
        }
        loop {
            let line = match self.child.next().await {
                Output::Line(line) => line,
                Output::LineTooLong(length) => {
                    return Err(McpError::refused(format!("its answer has {length} bytes, which is too much")));
                }
                Output::LimitReached => return Err(self.lose("it printed too much".to_owned())),
                Output::Closed => {
                    let last_words = self.child.stderr_tail();
                    tracing::warn!(last_words, "an MCP server has ended in the middle of a turn");
                    return Err(self.lose("it has ended".to_owned()));
                }
            };
            match read_message(&line, id) {
                Answered::Ours => return Ok(line),
                Answered::Write(answer) => self.send(&answer).await?,
                Answered::NotForUs => {}
            }
        }
    }

    /// Ends the program. Returns when it is gone.
    pub(super) async fn close(mut self) {
        self.child.close_input();
        // A server ends by itself when its input does, and may still read what was written before.
        let ending = async { while self.child.next().await != Output::Closed {} };
        let _ = timeout(END_LIMIT, ending).await;
        self.child.stop().await;
    }

    fn lose(&mut self, why: String) -> McpError {
        self.is_closed = true;
        McpError::lost(why)
    }
}
