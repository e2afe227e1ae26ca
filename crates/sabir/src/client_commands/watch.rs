//! `sabir watch`: follows a task that exists.

use super::connection::Connection;
use super::failure::Failure;
use super::interaction::Interaction;
use super::{Surroundings, within, words};
use crate::cli::WatchOptions;
use crate::exit::Exit;

pub async fn watch(options: &WatchOptions, around: &Surroundings) -> Result<Exit, Failure> {
    let WatchOptions { server, protocol, wait, show, .. } = options;
    let (url, task) = words::only_task(&options.words, server)?;
    let opening = async {
        let connection = Connection::open(url, server, protocol, wait.poll_interval, around).await?;
        // A server that is away in the middle of a task is waited for; one that was never there is not.
        connection.discovered().await?;
        Ok(connection)
    };
    let connection = within(wait.timeout, opening).await?;
    let format = around.format(&show.format);
    let mut view = around.view(format);
    Interaction::new(&connection, &mut *view, around.prompts(format), wait, show)?.watch(task).await
}
