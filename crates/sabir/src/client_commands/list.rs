//! `sabir list`: the tasks of a server, page by page.

use std::io::{self, Write};

use sabir_model::{Call, List, Task, Wanted};
use sabir_outbound::remote::RemoteError;
use sabir_wire::{Payload, PeerResponse};

use super::connection::Connection;
use super::failure::Failure;
use super::json_view::print_line;
use super::part_text::parts_text;
use super::{Surroundings, time_text, within};
use crate::agents::table;
use crate::cli::{Format, ListOptions, state_name};
use crate::exit::Exit;
use crate::terminal_text::visible;

/// What A2A allows.
const LARGEST_PAGE: u32 = 100;
/// Of what an agent says of a task, in a table.
const LONGEST_WORDS: usize = 50;

pub async fn list(options: &ListOptions, around: &Surroundings) -> Result<Exit, Failure> {
    let tasks = within(options.timeout, tasks(options, around)).await?;
    let shown = match around.format(&options.format) {
        Format::Json => tasks.iter().try_for_each(|task| print_line(Payload::Task(task), around.terminals)),
        Format::Text => io::stdout().write_all(lines(&tasks).as_bytes()),
    };
    shown.map_err(|error| Failure::of_output(&error))?;
    Ok(Exit::Done)
}

async fn tasks(options: &ListOptions, around: &Surroundings) -> Result<Vec<Task>, Failure> {
    let url = options.url.as_deref();
    let connection = Connection::open(url, &options.server, &options.protocol, None, around).await?;
    let limit = options.limit as usize;
    let call = Call::List(List {
        agent: None,
        context: options.context_id.clone(),
        state: options.state,
        since: options.since,
        page_size: options.limit.min(LARGEST_PAGE),
        from: None,
        history: options.history,
        artifacts: if options.artifacts { Wanted::Yes } else { Wanted::No },
    });
    let (mut tasks, mut token): (Vec<Task>, Option<String>) = (Vec::new(), None);
    loop {
        let received = connection.remote.call_page(&call, token.as_deref()).await;
        let response = received.map_err(|error| failure(&connection, &error))?.response;
        let PeerResponse::Page { page, next } = response else {
            return Err(Failure::strange("the server answered with something else than a list"));
        };
        let is_empty = page.tasks.is_empty();
        tasks.extend(page.tasks);
        // A server that repeats a page would never come to an end.
        if tasks.len() >= limit || is_empty || next.is_none() || next == token {
            tasks.truncate(limit);
            return Ok(tasks);
        }
        token = next;
    }
}

fn failure(connection: &Connection, error: &RemoteError) -> Failure {
    let failure = connection.failure(error);
    match error {
        RemoteError::NotInVersion(_) => failure.with_hint("only A2A 1.0 can list tasks"),
        _ => failure,
    }
}

fn lines(tasks: &[Task]) -> String {
    if tasks.is_empty() {
        return "There are no such tasks.\n".to_owned();
    }
    let row = |task: &Task| {
        let words = task.status.message.as_ref().map(|message| parts_text(&message.parts)).unwrap_or_default();
        let words = visible(words.lines().next().unwrap_or_default());
        let short: String = words.chars().take(LONGEST_WORDS).collect();
        vec![
            visible(task.id.as_str()),
            state_name(task.status.state).to_owned(),
            time_text(task.status.time).unwrap_or_default(),
            visible(task.context.as_str()),
            short,
        ]
    };
    table(&["task", "state", "since", "context", "words"], tasks.iter().map(row))
}
