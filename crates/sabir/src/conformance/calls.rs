//! The calls that are made of a server, as values of the model.

use sabir_model::{
    AgentId, Call, Cancel, ContextId, Delivery, Get, List, Message, MessageId, OnFinishedCancel, OnFinishedSubscribe,
    Part, PushCall, PushConfig, PushConfigId, PushEvents, Role, Send, State, Subscribe, TaskId, Wanted,
};
use sabir_wire::NEWEST_BIRTH;
use uuid::Uuid;

/// An id that nobody has used before.
pub fn new_id() -> String {
    Uuid::now_v7().to_string()
}

pub fn new_task_id() -> TaskId {
    TaskId::parse(new_id()).expect("a UUID is an id")
}

/// Where a message belongs.
#[derive(Debug, Clone, Default)]
pub struct Place {
    pub task: Option<TaskId>,
    pub context: Option<ContextId>,
}

pub fn send(tenant: Option<&AgentId>, text: &str, place: Place, delivery: Delivery) -> Call {
    let id = MessageId::parse(new_id()).expect("a UUID is an id");
    let mut message = Message::new(id, Role::User, vec![Part::text(text)]);
    message.task = place.task;
    message.context = place.context;
    let send = Send { agent: tenant.cloned(), delivery, ..Send::new(message, NEWEST_BIRTH) };
    Call::Send(Box::new(send))
}

pub fn get(tenant: Option<&AgentId>, task: &TaskId, history: Option<u32>) -> Call {
    Call::Get(Get { agent: tenant.cloned(), task: task.clone(), history, earlier: Wanted::No })
}

pub fn cancel(tenant: Option<&AgentId>, task: &TaskId) -> Call {
    let on_finished = OnFinishedCancel::Refuse;
    Call::Cancel(Cancel { agent: tenant.cloned(), task: task.clone(), metadata: None, on_finished })
}

pub fn subscribe(tenant: Option<&AgentId>, task: &TaskId) -> Call {
    let on_finished = OnFinishedSubscribe::Refuse;
    Call::Subscribe(Subscribe { agent: tenant.cloned(), task: task.clone(), after: None, on_finished })
}

/// What a list is asked for.
#[derive(Debug, Clone)]
pub struct ListFilter {
    pub context: Option<ContextId>,
    pub state: Option<State>,
    pub page_size: u32,
    pub artifacts: Wanted,
}

impl Default for ListFilter {
    fn default() -> Self {
        ListFilter { context: None, state: None, page_size: 50, artifacts: Wanted::No }
    }
}

pub fn list(tenant: Option<&AgentId>, filter: &ListFilter) -> Call {
    Call::List(List {
        agent: tenant.cloned(),
        context: filter.context.clone(),
        state: filter.state,
        since: None,
        page_size: filter.page_size,
        from: None,
        history: None,
        artifacts: filter.artifacts,
    })
}

pub fn set_push(tenant: Option<&AgentId>, task: &TaskId, id: Option<&PushConfigId>, url: &str) -> Call {
    let config = PushConfig {
        id: id.cloned(),
        task: Some(task.clone()),
        url: url.to_owned(),
        token: None,
        authentication: None,
    };
    Call::Push(PushCall::Set { agent: tenant.cloned(), config, born: NEWEST_BIRTH, events: PushEvents::Statuses })
}

pub fn get_push(tenant: Option<&AgentId>, task: &TaskId, config: Option<&PushConfigId>) -> Call {
    Call::Push(PushCall::Get { agent: tenant.cloned(), task: task.clone(), config: config.cloned() })
}

pub fn list_push(tenant: Option<&AgentId>, task: &TaskId) -> Call {
    Call::Push(PushCall::List { agent: tenant.cloned(), task: task.clone(), page_size: None, page_token: None })
}

pub fn delete_push(tenant: Option<&AgentId>, task: &TaskId, config: &PushConfigId) -> Call {
    Call::Push(PushCall::Delete { agent: tenant.cloned(), task: task.clone(), config: Some(config.clone()) })
}

pub fn extended_card(tenant: Option<&AgentId>) -> Call {
    Call::ExtendedCard { agent: tenant.cloned() }
}
