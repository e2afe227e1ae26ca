//! Decoding a request to the gateway, and writing its answer.

use sabir_model::{AgentId, Answer, Call, Cancel, Error, Get, OnFinishedCancel, Task, TaskId, Wanted};
use serde::Serialize;

use super::send::{self, Submission};
use super::task::write_task;
use crate::call_context::{self, AgentSource, CallContext};
use crate::errors::GatewayText;
use crate::version::VersionHeader;
use crate::{Decoded, KnownAgents, RequestHead, Responder, TerminalMessage, json};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GatewayRoute {
    pub agent: AgentId,
    pub(crate) operation: GatewayOperation,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum GatewayOperation {
    Send,
    /// A send of nothing but decisions about these targets: they answer the run that waits.
    Decide(Vec<String>),
    Get(TaskId),
    Cancel(TaskId),
}

impl GatewayRoute {
    pub(crate) fn responder(&self) -> Responder<'static> {
        Responder::gateway(self.operation.clone())
    }

    /// Reads one request; `body` is empty where there is none.
    pub fn decode(&self, head: &RequestHead<'_>, body: &[u8], agents: &dyn KnownAgents) -> Decoded<'static> {
        if !VersionHeader::of(head).is_missing() {
            let error = Error::InvalidRequest(
                "the gateway is no version of A2A; leave A2A-Version out, or call /a2a/rest".to_owned(),
            );
            return Decoded { call: Err(error), responder: self.responder() };
        }
        let agent = Some(self.agent.clone());
        let (call, responder) = match &self.operation {
            GatewayOperation::Send | GatewayOperation::Decide(_) => match json::check_text(body).and_then(send::read) {
                Ok(Submission { send, targets }) => {
                    let responder = targets.map(|targets| Responder::gateway(GatewayOperation::Decide(targets)));
                    (Call::Send(send), responder.unwrap_or_else(|| self.responder()))
                }
                Err(error) => return Decoded { call: Err(error), responder: self.responder() },
            },
            GatewayOperation::Get(task) => {
                let get = Get { agent, task: task.clone(), history: None, earlier: Wanted::Yes };
                (Call::Get(get), self.responder())
            }
            GatewayOperation::Cancel(task) => {
                let on_finished = OnFinishedCancel::Refuse;
                let cancel = Cancel { agent, task: task.clone(), metadata: None, on_finished };
                (Call::Cancel(cancel), self.responder())
            }
        };
        Decoded { call: self.complete(call, head, agents), responder }
    }

    fn complete(&self, mut call: Call, head: &RequestHead<'_>, agents: &dyn KnownAgents) -> Result<Call, Error> {
        // The ids of decisions make a key; the header `Idempotency-Key` wins over it.
        let key_of_decisions = match &mut call {
            Call::Send(send) => send.idempotency.take(),
            _ => None,
        };
        let context = CallContext {
            agent: AgentSource::Path(&self.agent),
            on_finished_cancel: OnFinishedCancel::Refuse,
            on_finished_send: TerminalMessage::NewTask,
        };
        call_context::apply(&mut call, head, &context, agents)?;
        if let Call::Send(send) = &mut call {
            send.idempotency = send.idempotency.take().or(key_of_decisions);
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
    /// The result of each of several decisions.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    decisions: Vec<DecisionResult<'a>>,
}

/// The result of one decision.
#[derive(Serialize)]
struct DecisionResult<'a> {
    target_id: &'a str,
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<GatewayText<'a>>,
}

const FORWARDED: &str = "decision_forwarded";
const REFUSED: &str = "refused";

/// Appends the answer, and returns its status.
pub(crate) fn write_answer<S>(
    operation: &GatewayOperation,
    answer: &Answer<S>,
    out: &mut Vec<u8>,
) -> Result<u16, Error> {
    let submitted = |task: &Task, context_id: Option<&str>, status: &'static str, out: &mut Vec<u8>| {
        json::write(&Submitted { context_id, task_id: task.id.as_str(), status, decisions: Vec::new() }, out);
        Ok(202)
    };
    match (operation, answer) {
        (GatewayOperation::Send, Answer::Task(task)) => submitted(task, Some(task.context.as_str()), "submitted", out),
        (GatewayOperation::Decide(_), Answer::Task(task)) => {
            submitted(task, Some(task.context.as_str()), FORWARDED, out)
        }
        (GatewayOperation::Decide(targets), Answer::Answered(task, results)) => {
            let results_by_target = targets.iter().zip(results).map(|(target_id, result)| match result {
                Ok(()) => DecisionResult { target_id, status: FORWARDED, error: None },
                Err(error) => DecisionResult { target_id, status: REFUSED, error: Some(GatewayText(error)) },
            });
            let (context_id, task_id) = (Some(task.context.as_str()), task.id.as_str());
            json::write(
                &Submitted { context_id, task_id, status: FORWARDED, decisions: results_by_target.collect() },
                out,
            );
            Ok(202)
        }
        (GatewayOperation::Cancel(_), Answer::Task(task)) => submitted(task, None, "cancel_requested", out),
        (GatewayOperation::Get(_), Answer::Conversation(task, earlier)) => {
            write_task(task, earlier, out);
            Ok(200)
        }
        _ => Err(Error::internal("the gateway cannot write this answer")),
    }
}
