//! `session/load`: the tasks of a context, told again.
//!
//! A server that numbers its events and keeps them tells a finished task again as it happened, event by event. Of all others the
//! history is shown first, then what was made. Messages of the user are in no event, so they come from the history: each one behind
//! the message of the agent that it followed.

use std::sync::Arc;

use sabir_model::{Call, Event, Message, MessageId, OnFinishedSubscribe, Role, Subscribe, Task};
use sabir_wire::PeerResponse;

use super::presenter::Presenter;
use super::server::log;
use crate::client_commands::connection::Connection;

/// The cursor before the first event.
const BEFORE_THE_FIRST: &str = "0";
const FIRST: &str = "1";

/// Shows a task with its history and all that it has made.
pub async fn show(connection: &Connection, presenter: &mut Presenter, task: &Task) {
    presenter.set_task(task.id.clone());
    let mut history = History { messages: task.history.clone().into() };
    if task.status.state.is_terminal() && from_log(connection, presenter, task, &mut history).await {
        return;
    }
    while let Some(message) = history.messages.pop_front() {
        presenter.message(&message).await;
    }
    for artifact in &task.artifacts {
        presenter.artifact(artifact).await;
    }
    // What a task asks, and what it is doing now, is told by whoever follows it from here on.
    if task.status.state.is_terminal() {
        presenter.status(&task.status).await;
    }
}

/// What of the history is not shown yet.
struct History {
    messages: std::collections::VecDeque<Arc<Message>>,
}

impl History {
    /// What the user said next.
    async fn show_user(&mut self, presenter: &mut Presenter) {
        while self.messages.front().is_some_and(|message| message.role == Role::User) {
            if let Some(message) = self.messages.pop_front() {
                presenter.message(&message).await;
            }
        }
    }

    /// The agent says this now: what the user said before it is shown first.
    async fn show_until(&mut self, id: &MessageId, presenter: &mut Presenter) {
        let Some(place) = self.messages.iter().position(|message| message.id == *id) else { return };
        for message in self.messages.drain(..=place).filter(|message| message.role == Role::User).collect::<Vec<_>>() {
            presenter.message(&message).await;
        }
    }
}

/// Whether the task was shown from the log. `false`: nothing was shown.
async fn from_log(connection: &Connection, presenter: &mut Presenter, task: &Task, history: &mut History) -> bool {
    let call = Call::Subscribe(Subscribe {
        agent: None,
        task: task.id.clone(),
        after: None,
        on_finished: OnFinishedSubscribe::ShowEnd,
    });
    let Ok(mut stream) = connection.remote.stream(&call, Some(BEFORE_THE_FIRST)).await else { return false };
    match stream.next().await {
        Ok(Some(first)) if first.id.as_deref() == Some(FIRST) => {}
        // It has no such cursor, and shows how the task stands.
        _ => return false,
    }
    history.show_user(presenter).await;
    loop {
        let frame = match stream.next().await {
            Ok(Some(frame)) => frame,
            Ok(None) => break,
            Err(error) => {
                log(&format!("task {} cannot be read to its end: {error}", task.id));
                presenter.note("What follows in this task could not be read; load the session again to see it.").await;
                break;
            }
        };
        match frame.received.response {
            PeerResponse::Event { event, .. } => match *event {
                Event::Status(change) => {
                    let id = change.status.message.as_ref().map(|message| message.id.clone());
                    if let Some(id) = &id {
                        history.show_until(id, presenter).await;
                    }
                    presenter.status(&change.status).await;
                    if id.is_some() {
                        history.show_user(presenter).await;
                    }
                }
                Event::Artifact(chunk) => presenter.artifact(&chunk.artifact).await,
                Event::Created(_) => {}
            },
            PeerResponse::FinalEvent { .. }
            | PeerResponse::Task(_)
            | PeerResponse::Message(_)
            | PeerResponse::Page { .. }
            | PeerResponse::PushConfig(_)
            | PeerResponse::PushConfigs(_)
            | PeerResponse::Card(_)
            | PeerResponse::Empty => {}
        }
    }
    while let Some(message) = history.messages.pop_front() {
        if message.role == Role::User {
            presenter.message(&message).await;
        }
    }
    true
}
