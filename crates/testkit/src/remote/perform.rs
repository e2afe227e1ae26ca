//! What the calls do.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::agent::{self, Announce, Plan, Step};
use super::call::{Artifacts, Call, Delivery, ListQuery, SendCall};
use super::connection::Connection;
use super::errors::{ErrorKind, RemoteError};
use super::faults::EventIds;
use super::planted_effects;
use super::protocol::RemoteProtocol;
use super::push;
use super::server::Server;
use super::task::{PushConfig, RemoteMessage, RemotePart, RemoteRole, RemoteState, RemoteTask};
use super::tasks::{Look, TaskIds, new_id};

pub(super) enum Outcome {
    Task(RemoteTask),
    Message(RemoteMessage),
    Page(Page),
    Push {
        task_id: String,
        config: PushConfig,
    },
    /// The task has none.
    NoPush,
    PushList {
        task_id: String,
        configs: Vec<PushConfig>,
    },
    Deleted,
    Card(Value),
    Stream(Source),
}

pub(super) struct Page {
    pub tasks: Vec<RemoteTask>,
    pub artifacts: Artifacts,
    pub next_token: String,
    pub size: usize,
    pub total: usize,
}

/// Where the frames of a stream come from.
pub(super) enum Source {
    Message(RemoteMessage),
    Task { id: String, first: Option<RemoteTask>, seen: usize },
}

/// How long a thread waits before it looks whether its connection is over.
const SLICE: Duration = Duration::from_millis(50);

pub(super) fn perform(
    server: &Arc<Server>,
    connection: &Connection,
    protocol: RemoteProtocol,
    call: Call,
) -> Result<Outcome, RemoteError> {
    let tasks = &server.tasks;
    let find = |id: &str| tasks.get(id).ok_or_else(|| RemoteError::task_not_found(id));
    match call {
        Call::Send(call) => send(server, connection, protocol, call),
        Call::Get { id, history_length } => Ok(Outcome::Task(find(&id)?.with_history(history_length))),
        Call::List(query) => list(tasks.all(), query).map(Outcome::Page),
        Call::Cancel { id } if server.faults().ignore_cancel => find(&id).map(Outcome::Task),
        Call::Cancel { id } => tasks.cancel(&id).map(Outcome::Task),
        Call::Subscribe { id, after } => subscribe(server, protocol, &id, after),
        Call::ExtendedCard => planted_effects::extended_card(server, protocol),
        push_call if !server.settings.offers_push => {
            drop(push_call);
            Err(RemoteError::new(ErrorKind::PushNotSupported))
        }
        Call::SetPush { task_id, config } => {
            set_push(server, protocol, &task_id, config.clone())?;
            Ok(Outcome::Push { task_id, config })
        }
        Call::GetPush { task_id, id } => {
            let configs = find(&task_id)?.push_configs;
            let found = configs.into_iter().find(|config| id.as_ref().is_none_or(|id| *id == config.id));
            match (found, id) {
                (Some(config), _) => Ok(Outcome::Push { task_id, config }),
                (None, None) => Ok(Outcome::NoPush),
                (None, Some(_)) => Err(RemoteError::task_not_found(&task_id)),
            }
        }
        Call::ListPush { task_id } => {
            let configs = find(&task_id)?.push_configs;
            Ok(Outcome::PushList { task_id, configs })
        }
        Call::DeletePush { task_id, id } => {
            let deleted = tasks.change_push(&task_id, |configs| {
                configs.retain(|config| id.as_ref().is_some_and(|id| *id != config.id));
            });
            deleted.map(|()| Outcome::Deleted).ok_or_else(|| RemoteError::task_not_found(&task_id))
        }
    }
}

fn send(
    server: &Arc<Server>,
    connection: &Connection,
    protocol: RemoteProtocol,
    call: SendCall,
) -> Result<Outcome, RemoteError> {
    let in_v01 = protocol == RemoteProtocol::V01JsonRpc;
    let plan = match agent::plan(&call.message) {
        // A message that continues a task, and any in 0.1, needs a task for its answer.
        Plan::Reply(text) if in_v01 || call.message.task_id.is_some() => {
            Plan::Work(vec![Step::Settle(RemoteState::Completed, Some(text))])
        }
        plan => plan,
    };
    let mut steps = match plan {
        Plan::Reply(text) => {
            let reply = RemoteMessage {
                id: new_id("message"),
                role: RemoteRole::Agent,
                parts: vec![RemotePart::Text(text)],
                context_id: Some(call.message.context_id.unwrap_or_else(|| new_id("context"))),
                task_id: None,
            };
            return Ok(match call.delivery {
                Delivery::Stream => Outcome::Stream(Source::Message(reply)),
                Delivery::WhenSettled | Delivery::Immediately => Outcome::Message(reply),
            });
        }
        Plan::Work(steps) => steps,
    };
    if call.push.is_some() && !server.settings.offers_push {
        return Err(RemoteError::new(ErrorKind::PushNotSupported));
    }
    let mut ids = if in_v01 { TaskIds::MadeByClient } else { TaskIds::MadeByServer };
    let mut message = call.message;
    if server.faults().odd_ids {
        steps.iter_mut().for_each(make_odd);
        if message.task_id.is_none() {
            ids = TaskIds::MadeByClient;
            message.task_id = Some(odd(&new_id("task")));
            message.context_id.get_or_insert_with(|| odd(&new_id("context")));
        }
    }
    let by_key = || server.tasks.joined(&server.task_of_key(call.key.as_ref()?)?);
    let by_message = || server.tasks.with_message(&message.id).filter(|_| server.settings.deduplicates);
    let accepted = match by_key().or_else(by_message) {
        Some(accepted) => accepted,
        None => server.tasks.accept(message, ids)?,
    };
    let id = accepted.task.id.clone();
    if let Some(key) = call.key {
        server.note_key(key, id.clone());
    }
    if let Some(mut config) = call.push {
        if config.id.is_empty() {
            config.id = id.clone();
        }
        set_push(server, protocol, &id, config)?;
    }
    if let Some(run) = accepted.run {
        let announce = if accepted.is_new { Announce::Work } else { Announce::Nothing };
        agent::start(server.tasks.downgrade(), run, announce, steps);
    }
    match call.delivery {
        Delivery::Stream => {
            let first = Some(accepted.task.with_history(call.history_length));
            Ok(Outcome::Stream(Source::Task { id, first, seen: accepted.seen }))
        }
        Delivery::WhenSettled if !server.faults().submitted_first => {
            let task = wait_until_settled(server, connection, &id)?;
            Ok(Outcome::Task(task.with_history(call.history_length)))
        }
        Delivery::WhenSettled | Delivery::Immediately => {
            Ok(Outcome::Task(accepted.task.with_history(call.history_length)))
        }
    }
}

fn odd(id: &str) -> String {
    format!("o/d?d #1%2F&=;\u{e9}\"\\{id}")
}

fn make_odd(step: &mut Step) {
    if let Step::Chunk { artifact, .. } = step {
        artifact.id = odd(&artifact.id);
    }
}

fn wait_until_settled(server: &Server, connection: &Connection, id: &str) -> Result<RemoteTask, RemoteError> {
    loop {
        match server.tasks.settled(id, SLICE) {
            Look::Found(task) => return Ok(task),
            Look::NotYet if !connection.is_over() => {}
            Look::NotYet | Look::Gone => return Err(RemoteError::task_not_found(id)),
        }
    }
}

fn subscribe(
    server: &Server,
    protocol: RemoteProtocol,
    id: &str,
    after: Option<usize>,
) -> Result<Outcome, RemoteError> {
    let (task, seen) = server.tasks.snapshot(id).ok_or_else(|| RemoteError::task_not_found(id))?;
    let resumed = after.filter(|_| server.faults().event_ids == EventIds::Resumable);
    if let Some(after) = resumed {
        return Ok(Outcome::Stream(Source::Task { id: id.to_owned(), first: None, seen: after }));
    }
    if protocol.is_v1() && task.state.is_terminal() {
        return Err(RemoteError::of_task(ErrorKind::UnsupportedOperation, id, "the task is finished"));
    }
    Ok(Outcome::Stream(Source::Task { id: id.to_owned(), first: Some(task), seen }))
}

fn set_push(
    server: &Arc<Server>,
    protocol: RemoteProtocol,
    task_id: &str,
    config: PushConfig,
) -> Result<(), RemoteError> {
    let (id, added) = (config.id.clone(), config.clone());
    let seen = server.tasks.snapshot(task_id).map_or(0, |(_, seen)| seen);
    let set = server.tasks.change_push(task_id, |configs| {
        configs.retain(|known| known.id != id);
        configs.push(added);
    });
    set.ok_or_else(|| RemoteError::task_not_found(task_id))?;
    push::deliver(server, protocol, task_id, config, seen);
    Ok(())
}

const DEFAULT_PAGE: usize = 50;
const LARGEST_PAGE: usize = 100;

/// The newest first; the token of the next page is where this one ends.
fn list(mut tasks: Vec<RemoteTask>, query: ListQuery) -> Result<Page, RemoteError> {
    let size = query.page_size.unwrap_or(DEFAULT_PAGE);
    if !(1..=LARGEST_PAGE).contains(&size) {
        return Err(RemoteError::invalid("pageSize", "must be between 1 and 100"));
    }
    let place = |task: &RemoteTask| (task.status_time, task.id.clone());
    let after = match &query.page_token {
        None => None,
        Some(token) => {
            let place =
                token.split_once('.').and_then(|(time, id)| Some((u64::from_str_radix(time, 16).ok()?, id.to_owned())));
            Some(place.ok_or_else(|| RemoteError::invalid("pageToken", "is not from an earlier page"))?)
        }
    };
    tasks.retain(|task| {
        query.context_id.as_ref().is_none_or(|context| *context == task.context_id)
            && query.state.is_none_or(|state| state == task.state)
            && query.changed_since.is_none_or(|since| since <= task.status_time)
    });
    tasks.sort_by_key(|task| std::cmp::Reverse(place(task)));
    let total = tasks.len();
    tasks.retain(|task| after.as_ref().is_none_or(|after| place(task) < *after));
    let has_more = tasks.len() > size;
    tasks.truncate(size);
    let next_token = match tasks.last() {
        Some(last) if has_more => format!("{:x}.{}", last.status_time, last.id),
        _ => String::new(),
    };
    let tasks = tasks.into_iter().map(|task| task.with_history(query.history_length)).collect();
    Ok(Page { tasks, artifacts: query.artifacts, next_token, size, total })
}
