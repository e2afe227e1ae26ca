//! `sabir send`: sends a message, and follows the task that it makes or continues.

use std::io;

use sabir_model::{Call, Delivery, Send};
use sabir_outbound::remote::{Following, Mirror, Step};
use sabir_wire::{PeerResponse, ProtocolVersion};

use super::connection::Connection;
use super::failure::Failure;
use super::interaction::Interaction;
use super::received_task::ReceivedTask;
use super::view::View;
use super::{Surroundings, files, message, within, words};
use crate::cli::SendOptions;
use crate::exit::Exit;
use crate::terminal_text::visible;

pub async fn send(options: &SendOptions, around: &Surroundings) -> Result<Exit, Failure> {
    let SendOptions { server, protocol, wait, show, .. } = options;
    let (url, words) = words::split(&options.words, server);
    let parts = message::parts(words, &options.parts, &mut io::stdin())?;
    if parts.is_empty() {
        return Err(Failure::usage("there is nothing to send; write a text, or - to read it from the standard input"));
    }
    let connecting = async {
        let connection = Connection::open(url, server, protocol, wait.poll_interval, around).await?;
        let known = connection.discovered().await?;
        Ok((connection, known))
    };
    let (connection, known) = within(wait.timeout, connecting).await?;
    let mut send = message::send(parts, options.task_id.clone(), options.context_id.clone(), &known);
    send.metadata.clone_from(&options.metadata);
    send.history = show.history;
    let format = around.format(&show.format);
    let mut view = around.view(format);
    if options.is_async {
        let version = known.endpoint.protocol.version();
        return within(wait.timeout, send_only(&connection, &mut *view, send, version, options)).await;
    }
    Interaction::new(&connection, &mut *view, around.prompts(format), wait, show)?.send(send).await
}

/// Sends the message, and does not wait for what becomes of it.
async fn send_only(
    connection: &Connection,
    view: &mut dyn View,
    send: Send,
    version: ProtocolVersion,
    options: &SendOptions,
) -> Result<Exit, Failure> {
    let written = |error| Failure::of_output(&error);
    let response = match version {
        // A send of 0.1 is answered when the task ends, unless it is a stream.
        ProtocolVersion::V0_1 => first_of_stream(connection, send).await?,
        _ => {
            let call = Call::Send(Box::new(Send { delivery: Delivery::Immediately, ..send }));
            connection.remote.call(&call).await.map_err(|error| connection.failure(&error))?.response
        }
    };
    match response {
        PeerResponse::Message(message) => {
            view.replied(&message).map_err(written)?;
            if let Some(folder) = &options.show.output {
                for path in files::save(folder, message.parts.iter())? {
                    view.saved(&path);
                }
            }
        }
        PeerResponse::Task(task) => {
            view.task(&task).map_err(written)?;
            let (id, context) = (visible(task.id.as_str()), visible(task.context.as_str()));
            view.remark(&format!("{}: task {id} in context {context}", task.status.state.name()));
            view.remark(&format!("To watch it: {}", connection.invocation.command("watch", task.id.as_str(), "")));
        }
        _ => return Err(Failure::strange("the server answered with neither a task nor a message")),
    }
    Ok(Exit::Done)
}

async fn first_of_stream(connection: &Connection, send: Send) -> Result<PeerResponse, Failure> {
    let mut following = Following::send(connection.remote.clone(), send, Mirror::default());
    let mut received = ReceivedTask::default();
    loop {
        match following.next().await.map_err(|error| connection.failure(&error))? {
            Some(Step::Known { task, context }) => received.ids = Some((task, context)),
            Some(Step::Update(update)) => {
                received.take(&update).map_err(|error| connection.failure(&error))?;
            }
            Some(Step::Over { status, .. }) => received.status = Some(status),
            Some(Step::Replied(message)) => return Ok(PeerResponse::Message(message)),
            Some(Step::Trouble(_)) => {}
            None => return Err(Failure::strange("the server said nothing of the task")),
        }
        if let Some(task) = received.task() {
            return Ok(PeerResponse::Task(Box::new(task)));
        }
    }
}
