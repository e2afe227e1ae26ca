//! The span of a run, and those of its tools, by the names of the GenAI conventions.
//!
//! A run is below the call that caused it, so that what the agent calls is in the caller's trace, and it links to that call
//! and to every other one that it got an answer from: a run may outlive its call by hours, and begin again after a restart.

use std::sync::Arc;

use sabir_engine::{ObservedRun, RunEnd, RunObserver, RunStart};
use sabir_model::{Message, ToolCall, ToolPhase, TraceContext};
use sabir_wire::state_name;

use super::span::{Span, SpanKind, Tracer, Value};

/// Tools that a run may have open; agents that never tell how one ended would pile them up.
const MOST_OPEN_TOOLS: usize = 256;

pub(super) struct RunSpans(pub(super) Arc<Tracer>);

impl RunObserver for RunSpans {
    fn begin(&self, run: &RunStart<'_>) -> Box<dyn ObservedRun> {
        let cause = trace_of(run.message);
        let mut span = self.0.start(cause, SpanKind::Internal, format!("invoke_agent {}", run.executor));
        if let Some(cause) = cause {
            span.link(cause);
        }
        span.set_word("gen_ai.operation.name", "invoke_agent");
        span.set_text("gen_ai.agent.name", Some(run.executor.as_str()));
        span.set_text("gen_ai.conversation.id", Some(run.context.as_str()));
        span.set_text("gen_ai.request.model", run.model);
        span.set_text("a2a.task.id", Some(run.task.as_str()));
        span.set_text("a2a.tenant", Some(run.agent.as_str()));
        span.set_text("a2a.message.id", Some(run.message.id.as_str()));
        if run.is_resumed {
            span.set("sabir.run.resumed", Value::Flag(true));
        }
        Box::new(RunSpan { span, tools: Vec::new(), has_ended: false })
    }
}

struct RunSpan {
    span: Span,
    /// By the id of the tool call.
    tools: Vec<(String, Span)>,
    has_ended: bool,
}

impl ObservedRun for RunSpan {
    fn trace(&self) -> TraceContext {
        self.span.context()
    }

    fn tool(&mut self, call: &ToolCall) {
        let place = self.tools.iter().position(|(id, _)| *id == call.id);
        let mut tool = match place {
            Some(place) => self.tools.swap_remove(place).1,
            None => self.start_tool(call),
        };
        match call.phase {
            ToolPhase::Started if self.tools.len() < MOST_OPEN_TOOLS => self.tools.push((call.id.clone(), tool)),
            ToolPhase::Started | ToolPhase::Completed => {}
            ToolPhase::Failed => tool.fail("tool_failed".to_owned(), "the tool failed"),
        }
    }

    fn answered(&mut self, answer: &Message) {
        if let Some(cause) = trace_of(answer) {
            self.span.link(cause);
        }
    }

    fn end(mut self: Box<Self>, end: &RunEnd) {
        self.has_ended = true;
        let span = &mut self.span;
        span.set_word("a2a.task.state", state_name(end.state));
        if let Some(usage) = end.usage {
            let tokens = |count: u64| Value::Number(i64::try_from(count).unwrap_or(i64::MAX));
            span.set("gen_ai.usage.input_tokens", tokens(usage.input_tokens));
            span.set("gen_ai.usage.output_tokens", tokens(usage.output_tokens));
        }
        if let Some(failure) = end.failure {
            span.fail(failure.name().to_owned(), failure.sentence());
        }
    }
}

impl RunSpan {
    fn start_tool(&self, call: &ToolCall) -> Span {
        let mut tool = self.span.child(SpanKind::Internal, format!("execute_tool {}", call.name));
        tool.set_word("gen_ai.operation.name", "execute_tool");
        tool.set_text("gen_ai.tool.name", Some(&call.name));
        tool.set_text("gen_ai.tool.call.id", Some(&call.id));
        tool
    }
}

impl Drop for RunSpan {
    fn drop(&mut self) {
        if !self.has_ended {
            self.span.fail("interrupted".to_owned(), "the server stopped before the run had ended");
        }
    }
}

fn trace_of(message: &Message) -> Option<&TraceContext> {
    message.request.as_ref()?.trace.as_ref()
}
