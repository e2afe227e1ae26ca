//! The span of a run, and those of its tools, by the names of the GenAI conventions.
//!
//! A run is below the call that caused it, so that what the agent calls is in the caller's trace, and it links to that call
//! and to every other one that it got an answer from: a run may outlive its call by hours, and begin again after a restart.

use std::borrow::Cow;
use std::sync::Arc;

use sabir_engine::{ObservedRun, RunEnd, RunObserver, RunStart};
use sabir_model::{Message, ToolCall, ToolPhase, TraceContext};
use sabir_wire::state_name;

use super::span::{Span, SpanKind, Tracer, Value, cut};

/// Tools that a run may have open; agents that never tell how one ended would pile them up.
const MOST_OPEN_TOOLS: usize = 256;

/// The longest name of a tool that is in the name of a span.
const LONGEST_TOOL_NAME: usize = 64;

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
    /// By the id of the tool call, which is cut: it is the agent's word too.
    tools: Vec<(String, Span)>,
    has_ended: bool,
}

impl ObservedRun for RunSpan {
    fn trace(&self) -> TraceContext {
        self.span.context()
    }

    fn tool(&mut self, call: &ToolCall) {
        let id = cut(&call.id);
        let place = self.tools.iter().position(|(known, _)| known == id);
        let mut tool = match place {
            Some(place) => self.tools.swap_remove(place).1,
            None => self.start_tool(call),
        };
        match call.phase {
            ToolPhase::Started if self.tools.len() < MOST_OPEN_TOOLS => self.tools.push((id.to_owned(), tool)),
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
        let mut tool = self.span.child(SpanKind::Internal, tool_span_name(&call.name));
        tool.set_word("gen_ai.operation.name", "execute_tool");
        tool.set_text("gen_ai.tool.name", Some(&call.name));
        tool.set_text("gen_ai.tool.call.id", Some(&call.id));
        tool
    }
}

/// Collectors group spans by their names, so these are few and short. Some programs call a whole shell command the name of a
/// tool.
fn tool_span_name(tool: &str) -> Cow<'static, str> {
    let is_of_word = |byte: u8| byte.is_ascii_alphanumeric() || b"_.:/-".contains(&byte);
    match (1..=LONGEST_TOOL_NAME).contains(&tool.len()) && tool.bytes().all(is_of_word) {
        true => Cow::Owned(format!("execute_tool {tool}")),
        false => Cow::Borrowed("execute_tool"),
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

#[cfg(test)]
mod tests {
    use super::super::queue::SpanQueue;
    use super::super::sampler::Sampler;
    use super::super::settings::BatchSettings;
    use super::super::span::EndedSpan;
    use super::*;

    #[test]
    fn only_a_short_word_is_in_the_name_of_a_span() {
        let longest = "x".repeat(LONGEST_TOOL_NAME);
        for named in ["grep", "mcp__files/read-all.v2:now", &longest] {
            assert_eq!(tool_span_name(named), format!("execute_tool {named}"));
        }
        let too_long = "x".repeat(LONGEST_TOOL_NAME + 1);
        for plain in ["", "rm -rf /", "cat a\n", "lücke", "$(id)", &too_long] {
            assert_eq!(tool_span_name(plain), "execute_tool");
        }
    }

    /// A run that reports these, and its spans.
    fn spans_of(calls: impl IntoIterator<Item = ToolCall>, check: impl Fn(&RunSpan)) -> Vec<EndedSpan> {
        let settings = BatchSettings { size: 10_000, queue: 10_000, ..BatchSettings::default() };
        let sampler = Sampler::parse("always_on", None).unwrap();
        let tracer = Arc::new(Tracer { sampler, queue: Arc::new(SpanQueue::new(&settings)) });
        let span = tracer.start(None, SpanKind::Internal, "invoke_agent a");
        let mut run = RunSpan { span, tools: Vec::new(), has_ended: false };
        for call in calls {
            run.tool(&call);
            check(&run);
        }
        drop(run);
        tracer.queue.take()
    }

    fn call(id: &str, name: &str, phase: ToolPhase) -> ToolCall {
        ToolCall { id: id.to_owned(), name: name.to_owned(), phase, args: None, result: None, error: None }
    }

    #[test]
    fn what_an_agent_makes_up_takes_little_memory() {
        let huge = "y z".repeat(1 << 18);
        let calls = [call(&huge, &huge, ToolPhase::Started), call(&huge, &huge, ToolPhase::Failed)];
        let spans = spans_of(calls, |run| {
            for (id, _) in &run.tools {
                assert!(id.capacity() <= 1024, "{}", id.capacity());
            }
        });
        let [tool, _] = &spans[..] else { panic!("one tool and its run: {}", spans.len()) };
        assert_eq!((&*tool.name, tool.error.as_deref()), ("execute_tool", Some("the tool failed")));
        for name in ["gen_ai.tool.name", "gen_ai.tool.call.id"] {
            let value = tool.attributes.iter().find(|(known, _)| *known == name).map(|(_, value)| value);
            assert_eq!(value, Some(&Value::text(&huge)), "{name}");
        }
    }

    #[test]
    fn tools_that_never_end_do_not_pile_up() {
        let calls = (0..3000).map(|number| call(&number.to_string(), "grep", ToolPhase::Started));
        let spans = spans_of(calls, |run| assert!(run.tools.len() <= MOST_OPEN_TOOLS));
        assert_eq!(spans.iter().filter(|span| span.name == "execute_tool grep").count(), 3000);
    }
}
