//! `sabir answer`: answers the question of a task that waits, and follows the task.

use std::io;

use sabir_model::{Call, Get, Wanted};

use super::connection::Connection;
use super::failure::Failure;
use super::interaction::Interaction;
use super::{Surroundings, message, within, words};
use crate::cli::AnswerOptions;
use crate::exit::Exit;
use crate::terminal_text::visible;

pub async fn answer(options: &AnswerOptions, around: &Surroundings) -> Result<Exit, Failure> {
    let AnswerOptions { server, protocol, wait, show, .. } = options;
    let (url, task, words) = words::split_task(&options.words, server)?;
    let format = around.format(&show.format);
    let prompts = around.prompts(format);
    let parts = message::parts(words, &options.parts, &mut io::stdin())?;
    if parts.is_empty() && prompts.is_none() {
        return Err(Failure::usage(
            "what is the answer? write it behind the task, or - to read it from the standard input",
        ));
    }
    let looking = async {
        let connection = Connection::open(url, server, protocol, wait.poll_interval, around).await?;
        let known = connection.discovered().await?;
        let call = Call::Get(Get { agent: None, task, history: Some(0), earlier: Wanted::No });
        let task = connection.task(call).await?;
        Ok((connection, known, task))
    };
    let (connection, known, task) = within(wait.timeout, looking).await?;
    let (id, state) = (visible(task.id.as_str()), task.status.state);
    if !state.is_waiting() {
        return Err(Failure::not_waiting(format!("task {id} does not wait for an answer, it is {}", state.name())));
    }
    let mut view = around.view(format);
    let interaction = Interaction::new(&connection, &mut *view, prompts, wait, show)?;
    if parts.is_empty() {
        return interaction.ask(&task).await;
    }
    let context = Some(task.context.clone());
    let send = message::answer(parts, task.id.clone(), context, &task.status, &known);
    interaction.answer(send, &task).await
}
