//! `sabir list`: the tasks of a server, page by page.
//!
//! A page is gone when the next one is asked for: for programs it is printed by then, and a table needs only its short rows.

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
use crate::cli::{Format, ListOptions};
use crate::exit::Exit;
use crate::terminal_text::visible;

/// What A2A allows.
const LARGEST_PAGE: u32 = 100;
/// Of what an agent says of a task, in a table.
const LONGEST_WORDS: usize = 50;

pub async fn list(options: &ListOptions, around: &Surroundings) -> Result<Exit, Failure> {
    let written = |error: io::Error| Failure::of_output(&error);
    let format = around.format(&options.format);
    let mut rows = Vec::new();
    let take = |task: &Task| match format {
        Format::Json => print_line(Payload::Task(task), around.terminals).map_err(written),
        Format::Text => {
            rows.push(row(task));
            Ok(())
        }
    };
    within(options.timeout, each_task(options, around, take)).await?;
    if format == Format::Text {
        io::stdout().write_all(lines(rows).as_bytes()).map_err(written)?;
    }
    Ok(Exit::Done)
}

async fn each_task(
    options: &ListOptions,
    around: &Surroundings,
    mut take: impl FnMut(&Task) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let url = options.url.as_deref();
    let connection = Connection::open(url, &options.server, &options.protocol, None, around).await?;
    let mut left = options.limit as usize;
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
    let mut token: Option<String> = None;
    loop {
        let received = connection.remote.call_page(&call, token.as_deref()).await;
        let response = received.map_err(|error| failure(&connection, &error))?.response;
        let PeerResponse::Page { page, next } = response else {
            return Err(Failure::strange("the server answered with something else than a list"));
        };
        page.tasks.iter().take(left).try_for_each(&mut take)?;
        left = left.saturating_sub(page.tasks.len());
        // A server that repeats a page would never come to an end.
        if left == 0 || page.tasks.is_empty() || next.is_none() || next == token {
            return Ok(());
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

fn row(task: &Task) -> Vec<String> {
    let words = task.status.message.as_ref().map(|message| parts_text(&message.parts)).unwrap_or_default();
    let words = visible(words.lines().next().unwrap_or_default());
    let short: String = words.chars().take(LONGEST_WORDS).collect();
    vec![
        visible(task.id.as_str()),
        task.status.state.name().to_owned(),
        time_text(task.status.time).unwrap_or_default(),
        visible(task.context.as_str()),
        short,
    ]
}

fn lines(rows: Vec<Vec<String>>) -> String {
    if rows.is_empty() {
        return "There are no such tasks.\n".to_owned();
    }
    table(&["task", "state", "since", "context", "words"], rows.into_iter())
}
