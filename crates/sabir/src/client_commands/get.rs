//! `sabir get`: shows a task as it is now.

use std::io;

use sabir_model::{Call, Get, Role, Task, Wanted};
use sabir_wire::Payload;

use super::connection::Connection;
use super::failure::Failure;
use super::json_view::print_line;
use super::part_text::parts_text;
use super::text_view::TextView;
use super::{Surroundings, files, time_text, within, words};
use crate::cli::{Format, GetOptions};
use crate::exit::Exit;
use crate::process_environment::Terminals;
use crate::terminal_text::visible;

pub async fn get(options: &GetOptions, around: &Surroundings) -> Result<Exit, Failure> {
    let GetOptions { server, protocol, show, .. } = options;
    let (url, task) = words::only_task(&options.words, server)?;
    let call = Call::Get(Get { agent: None, task, history: show.history, earlier: Wanted::No });
    let asking = async { Connection::open(url, server, protocol, None, around).await?.task(call).await };
    let task = within(options.timeout, asking).await?;
    let format = around.format(&show.format);
    let shown = match format {
        Format::Json => print_line(Payload::Task(&task), around.terminals),
        Format::Text => print_task(&task, show.history.is_some(), around.terminals),
    };
    shown.map_err(|error| Failure::of_output(&error))?;
    if let Some(folder) = &show.output {
        let mut view = around.view(format);
        for path in files::save(folder, task.artifacts.iter().flat_map(|artifact| &artifact.parts))? {
            view.saved(&path);
        }
    }
    Ok(Exit::Done)
}

fn print_task(task: &Task, with_history: bool, terminals: Terminals) -> io::Result<()> {
    let mut view = TextView::new(terminals);
    let since = time_text(task.status.time).map(|time| format!(" since {time}")).unwrap_or_default();
    let state = format!("{}{since}", task.status.state.name());
    for (name, value) in [("task", task.id.as_str()), ("context", task.context.as_str()), ("state", &state)] {
        view.line(&format!("{name:<9}{}", visible(value)))?;
    }
    if let Some(message) = &task.status.message {
        view.line("")?;
        view.line(&parts_text(&message.parts))?;
    }
    if with_history {
        for message in &task.history {
            let who = match message.role {
                Role::User => "caller",
                Role::Agent => "agent",
            };
            view.line(&format!("\n{who}: {}", parts_text(&message.parts)))?;
        }
    }
    for artifact in &task.artifacts {
        let name = artifact.name.as_deref().map(visible).unwrap_or_default();
        view.line(&format!("\nartifact {}", if name.is_empty() { visible(artifact.id.as_str()) } else { name }))?;
        view.parts(&artifact.parts)?;
    }
    view.end_line()
}
