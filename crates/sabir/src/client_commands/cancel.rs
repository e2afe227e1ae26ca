//! `sabir cancel`: cancels a task.

use std::io::{self, Write};

use sabir_model::{Call, Cancel, Get, OnFinishedCancel, State, Wanted};
use sabir_wire::Payload;

use super::connection::Connection;
use super::failure::Failure;
use super::json_view::print_line;
use super::{Surroundings, within, words};
use crate::cli::{CancelOptions, Format};
use crate::exit::Exit;
use crate::terminal_text::visible;

pub async fn cancel(options: &CancelOptions, around: &Surroundings) -> Result<Exit, Failure> {
    let CancelOptions { server, protocol, .. } = options;
    let (url, task) = words::only_task(&options.words, server)?;
    let metadata = options.metadata.clone();
    let on_finished = OnFinishedCancel::Refuse;
    let call = Call::Cancel(Cancel { agent: None, task: task.clone(), metadata, on_finished });
    let asking = async {
        let connection = Connection::open(url, server, protocol, None, around).await?;
        let refusal = match connection.task(call).await {
            Ok(task) => return Ok(task),
            Err(refusal) => refusal,
        };
        // Where the answer to a cancel was lost, the next one finds the task canceled already.
        let get = Call::Get(Get { agent: None, task, history: None, earlier: Wanted::No });
        match connection.task(get).await {
            Ok(task) if task.status.state == State::Canceled => Ok(task),
            _ => Err(refusal),
        }
    };
    let task = within(options.timeout, asking).await?;
    let shown = match around.format(&options.format) {
        Format::Json => print_line(Payload::Task(&task), around.terminals),
        Format::Text => writeln!(
            io::stdout(),
            "{}: task {} in context {}",
            task.status.state.name(),
            visible(task.id.as_str()),
            visible(task.context.as_str())
        ),
    };
    shown.map_err(|error| Failure::of_output(&error))?;
    Ok(Exit::Done)
}
