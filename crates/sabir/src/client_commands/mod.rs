//! The commands that talk to an agent: `send`, `watch`, `get`, `list`, `cancel`, `answer` and `acp`.
//!
//! A command finds its server (`connection`), makes its calls with `outbound::remote`, and shows what comes (`view`).
//! What follows a task goes through `interaction`. A command ends with an `Exit`, or with a `Failure` that is printed here.

mod connection;
mod credentials;
mod failure;
mod invocation;
mod raw;
mod words;

mod file_name;
mod files;
mod media_type;
mod message;
mod part_text;
mod received_task;

mod interrupts;
mod json_view;
mod keyboard;
mod progress_line;
mod prompts;
mod text_view;
mod view;

mod interaction;

mod acp;
mod answer;
mod cancel;
mod get;
mod list;
mod send;
mod watch;

use std::process::ExitCode;
use std::time::Duration;

pub use acp::acp;
pub use answer::answer;
pub use cancel::cancel;
pub use connection::ServerAddress;
pub use credentials::Credentials;
pub use failure::Failure;
pub use get::get;
pub use list::list;
pub use send::send;
pub use watch::watch;

use sabir_model::Timestamp;

use crate::cli::{Format, FormatOptions};
use crate::exit::Exit;
use crate::local_server::Load;
use crate::process_environment::{ClientVariables, Terminals};
use json_view::{JsonView, print_json};
use prompts::Prompts;
use text_view::TextView;
use view::View;

/// What all commands are given.
pub struct Surroundings {
    pub variables: ClientVariables,
    pub terminals: Terminals,
    pub load: Load,
}

impl Surroundings {
    /// For people or for programs.
    fn format(&self, options: &FormatOptions) -> Format {
        let by_stdout = if self.terminals.stdout { Format::Text } else { Format::Json };
        options.format.unwrap_or(by_stdout)
    }

    fn view(&self, format: Format) -> Box<dyn View> {
        match format {
            Format::Text => Box::new(TextView::new(self.terminals)),
            Format::Json => Box::new(JsonView::new(self.terminals)),
        }
    }

    /// Somebody who can be asked: a person who reads text and has a keyboard.
    fn prompts(&self, format: Format) -> Option<Prompts> {
        let is_person = format == Format::Text && self.terminals.stdin && self.terminals.stderr;
        is_person.then(Prompts::new)
    }
}

/// Runs a command to its end, and tells why it failed if it did: on stderr, and for programs as the last line of stdout.
pub fn run(
    around: &Surroundings,
    format: &FormatOptions,
    command: impl AsyncFnOnce(&Surroundings) -> Result<Exit, Failure>,
) -> ExitCode {
    let failure = match runtime().block_on(command(around)) {
        Ok(exit) => return exit.into(),
        Err(failure) if failure.is_silent() => return failure.exit.into(),
        Err(failure) => failure,
    };
    if around.format(format) == Format::Json {
        // The exit code says it as well.
        let _ = print_json(&failure.envelope(), around.terminals);
    }
    failure.print();
    failure.exit.into()
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("the system gives a process its timers")
}

/// When a status was set. Not every server says it.
fn time_text(time: Timestamp) -> Option<String> {
    (time != Timestamp::default()).then(|| time.to_string())
}

/// A call that may not take longer than somebody wants to wait.
async fn within<T>(timeout: Option<Duration>, call: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    match timeout {
        None => call.await,
        Some(timeout) => match tokio::time::timeout(timeout, call).await {
            Ok(outcome) => outcome,
            Err(_) => Err(Failure::timeout(format!("no answer within {timeout:?}"))),
        },
    }
}
