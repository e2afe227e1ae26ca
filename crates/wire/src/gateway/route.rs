//! A request to the gateway, and its answer.

use sabir_model::{AgentId, Answer, Call, Cancel, Error, Get, OnFinishedCancel, Task, TaskId, Wanted};
use serde::Serialize;

use super::send::{self, Submission};
use super::task::write_task;
use crate::beside::{self, Agent, Behaviour};
use crate::errors::GatewayText;
use crate::version::VersionHeader;
use crate::{Decoded, Head, KnownAgents, TerminalMessage, Voice, json};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    pub agent: AgentId,
    pub(crate) asked: Asked,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Asked {
    Send,
    /// The same, with decisions about these targets and nothing else: the run that waits for them goes on.
    Decide(Vec<String>),
    Task(TaskId),
    Cancel(TaskId),
}

impl Route {
    pub(crate) fn voice(&self) -> Voice<'static> {
        Voice::gateway(self.asked.clone())
    }

    /// Reads one request; `body` is empty where there is none.
    pub fn decode(&self, head: &Head<'_>, body: &[u8], agents: &dyn KnownAgents) -> Decoded<'static> {
        let mut voice = self.voice();
        let call = self.read(head, body, agents, &mut voice);
        Decoded { call, voice }
    }

    fn read(
        &self,
        head: &Head<'_>,
        body: &[u8],
        agents: &dyn KnownAgents,
        voice: &mut Voice<'static>,
    ) -> Result<Call, Error> {
        if !VersionHeader::of(head).is_missing() {
            return Err(Error::InvalidRequest(
                "the gateway is no version of A2A; leave A2A-Version out, or call /a2a/rest".to_owned(),
            ));
        }
        let agent = Some(self.agent.clone());
        let mut call = match &self.asked {
            Asked::Send | Asked::Decide(_) => {
                let Submission { send, targets } = send::read(json::check_text(body)?)?;
                if let Some(targets) = targets {
                    *voice = Voice::gateway(Asked::Decide(targets));
                }
                Call::Send(send)
            }
            Asked::Task(task) => Call::Get(Get { agent, task: task.clone(), history: None, earlier: Wanted::Yes }),
            Asked::Cancel(task) => {
                let on_finished = OnFinishedCancel::Refuse;
                Call::Cancel(Cancel { agent, task: task.clone(), metadata: None, on_finished })
            }
        };
        let named = match &mut call {
            Call::Send(send) => send.idempotency.take(),
            _ => None,
        };
        let behaviour = Behaviour {
            agent: Agent::InPath(&self.agent),
            finished_cancel: OnFinishedCancel::Refuse,
            finished_send: TerminalMessage::NewTask,
        };
        beside::complete(&mut call, head, &behaviour, agents)?;
        if let Call::Send(send) = &mut call {
            send.idempotency = send.idempotency.take().or(named);
        }
        Ok(call)
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Submitted<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    context_id: Option<&'a str>,
    task_id: &'a str,
    status: &'static str,
    /// Each of several decisions.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    decisions: Vec<Decided<'a>>,
}

/// What became of one of several decisions.
#[derive(Serialize)]
struct Decided<'a> {
    target_id: &'a str,
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<GatewayText<'a>>,
}

const FORWARDED: &str = "decision_forwarded";
const REFUSED: &str = "refused";

/// Appends the answer, and returns its status.
pub(crate) fn write_answer<S>(asked: &Asked, answer: &Answer<S>, out: &mut Vec<u8>) -> Result<u16, Error> {
    let submitted = |task: &Task, context_id: Option<&str>, status: &'static str, out: &mut Vec<u8>| {
        json::write(&Submitted { context_id, task_id: task.id.as_str(), status, decisions: Vec::new() }, out);
        Ok(202)
    };
    match (asked, answer) {
        (Asked::Send, Answer::Task(task)) => submitted(task, Some(task.context.as_str()), "submitted", out),
        (Asked::Decide(_), Answer::Task(task)) => submitted(task, Some(task.context.as_str()), FORWARDED, out),
        (Asked::Decide(targets), Answer::Answered(task, results)) => {
            let decided = targets.iter().zip(results).map(|(target_id, result)| match result {
                Ok(()) => Decided { target_id, status: FORWARDED, error: None },
                Err(error) => Decided { target_id, status: REFUSED, error: Some(GatewayText(error)) },
            });
            let (context_id, task_id) = (Some(task.context.as_str()), task.id.as_str());
            json::write(&Submitted { context_id, task_id, status: FORWARDED, decisions: decided.collect() }, out);
            Ok(202)
        }
        (Asked::Cancel(_), Answer::Task(task)) => submitted(task, None, "cancel_requested", out),
        (Asked::Task(_), Answer::Conversation(task, earlier)) => {
            write_task(task, earlier, out);
            Ok(200)
        }
        _ => Err(Error::internal("the gateway has no words for this answer")),
    }
}
