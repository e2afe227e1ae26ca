//! `sabir cancel`: cancels a task.

use std::io::{self, Write};

use sabir_model::{Call, Cancel, OnFinishedCancel};
use sabir_wire::Payload;

use super::connection::Connection;
use super::failure::Failure;
use super::json_view::print_line;
use super::{Surroundings, within, words};
use crate::cli::{CancelOptions, Format, state_name};
use crate::exit::Exit;
use crate::terminal_text::visible;

pub async fn cancel(options: &CancelOptions, around: &Surroundings) -> Result<Exit, Failure> {
    let CancelOptions { server, protocol, .. } = options;
    let (url, task) = words::only_task(&options.words, server)?;
    let metadata = options.metadata.clone();
    let call = Call::Cancel(Cancel { agent: None, task, metadata, on_finished: OnFinishedCancel::Refuse });
    let asking = async { Connection::open(url, server, protocol, None, around).await?.task(call).await };
    let task = within(options.timeout, asking).await?;
    let shown = match around.format(&options.format) {
        Format::Json => print_line(Payload::Task(&task)),
        Format::Text => writeln!(
            io::stdout(),
            "{}: task {} in context {}",
            state_name(task.status.state),
            visible(task.id.as_str()),
            visible(task.context.as_str())
        ),
    };
    shown.map_err(|error| Failure::of_output(&error))?;
    Ok(Exit::Done)
}
