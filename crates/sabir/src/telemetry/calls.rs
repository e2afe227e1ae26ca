//! The span of a call: a SERVER span, named by the operation of 1.0 whatever version and binding it came by.

use std::fmt;
use std::sync::Arc;

use sabir_model::{Call, Error, PushCall, TaskId, TraceContext};
use sabir_server::{CallObserver, CallOperation, CallRequest, CallSubject, ObservedCall};
use sabir_wire::state_name;

use super::span::{Span, SpanKind, Tracer, Value};

pub(super) struct CallSpans(pub(super) Arc<Tracer>);

impl fmt::Debug for CallSpans {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("CallSpans")
    }
}

impl CallObserver for CallSpans {
    fn begin(&self, request: &CallRequest<'_>) -> Box<dyn ObservedCall> {
        // Only the verb is sure to be one of few, until the operation is known.
        let mut span = self.0.start(request.trace.as_ref(), SpanKind::Server, request.verb.to_owned());
        span.set_text("http.request.method", Some(request.verb));
        span.set_text("url.path", Some(request.path));
        if let Some(peer) = request.peer {
            span.set_text("client.address", Some(&peer.to_string()));
        }
        Box::new(CallSpan(span))
    }
}

struct CallSpan(Span);

impl ObservedCall for CallSpan {
    fn trace(&self) -> TraceContext {
        self.0.context()
    }

    fn decoded(&mut self, operation: &CallOperation<'_>) {
        let span = &mut self.0;
        if let Some(name) = operation.name {
            span.rename(name);
            span.set_word("a2a.method.name", name);
        }
        if let Some(version) = operation.version {
            span.set_word("a2a.protocol.version", version);
        }
        span.set_word("a2a.binding", operation.binding);
        let Some(call) = operation.call else { return };
        let agent = call.agent().map(|agent| agent.as_str());
        span.set_text("a2a.tenant", agent);
        span.set_text("gen_ai.agent.name", agent);
        span.set_text("a2a.task.id", task_of(call).map(TaskId::as_str));
        if let Call::Send(send) = call {
            span.set_text("a2a.message.id", send.message.id.as_ref().map(|id| id.as_str()));
            span.set_text("gen_ai.conversation.id", send.message.context.as_ref().map(|context| context.as_str()));
        }
    }

    fn about(&mut self, subject: &CallSubject<'_>) {
        let span = &mut self.0;
        span.set_text("gen_ai.agent.name", subject.agent.map(|agent| agent.as_str()));
        span.set_text("a2a.task.id", subject.task.map(|task| task.as_str()));
        span.set_text("gen_ai.conversation.id", subject.context.map(|context| context.as_str()));
        if let Some(state) = subject.state {
            span.set_word("a2a.task.state", state_name(state));
        }
    }

    fn failed(&mut self, error: &Error) {
        // The sentence of the error may repeat what the caller wrote; its kind does not.
        let kind = error.kind();
        self.0.fail(kind.replace(' ', "_"), kind);
    }

    fn responded(&mut self, status: u16) {
        self.0.set("http.response.status_code", Value::Number(status.into()));
    }
}

fn task_of(call: &Call) -> Option<&TaskId> {
    match call {
        Call::Send(send) => send.message.task.as_ref(),
        Call::Get(get) => Some(&get.task),
        Call::Cancel(cancel) => Some(&cancel.task),
        Call::Subscribe(subscribe) => Some(&subscribe.task),
        Call::Push(PushCall::Set { config, .. }) => config.task.as_ref(),
        Call::Push(PushCall::Get { task, .. } | PushCall::List { task, .. } | PushCall::Delete { task, .. }) => {
            Some(task)
        }
        Call::List(_) | Call::ExtendedCard { .. } => None,
    }
}
