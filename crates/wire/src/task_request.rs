//! The params of get, cancel and subscribe, which mainly name a task. Every dialect reads its own spelling into this.

use sabir_model::{AgentId, Call, Cancel, Get, Json, OnFinishedCancel, OnFinishedSubscribe, Subscribe, TaskId, Wanted};

pub(crate) struct TaskRequest {
    pub(crate) agent: Option<AgentId>,
    pub(crate) task: TaskId,
    pub(crate) history: Option<u32>,
    pub(crate) metadata: Option<Json>,
}

impl TaskRequest {
    pub(crate) fn get(self) -> Call {
        Call::Get(Get { agent: self.agent, task: self.task, history: self.history, earlier: Wanted::No })
    }

    pub(crate) fn cancel(self) -> Call {
        Call::Cancel(Cancel {
            agent: self.agent,
            task: self.task,
            metadata: self.metadata,
            on_finished: OnFinishedCancel::Refuse,
        })
    }

    pub(crate) fn subscribe(self, on_finished: OnFinishedSubscribe) -> Call {
        Call::Subscribe(Subscribe { agent: self.agent, task: self.task, after: None, on_finished })
    }
}
