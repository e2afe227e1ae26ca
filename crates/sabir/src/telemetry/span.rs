//! Spans, from their start until they are in the queue.
//!
//! A span ends when it is dropped, so one cannot be forgotten. One that is not recorded has its ids, for what it causes, and
//! nothing else.

use std::borrow::Cow;
use std::num::{NonZeroU64, NonZeroU128};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use sabir_model::TraceContext;

use super::ids::{new_span_id, new_trace_id};
use super::queue::SpanQueue;
use super::sampler::{SAMPLED, Sampler};

/// Longer texts are cut: names of tools and ids may be what a caller or an agent makes of them.
const LONGEST_TEXT: usize = 1024;

/// More links are dropped.
const MOST_LINKS: usize = 128;

/// Starts spans.
pub(super) struct Tracer {
    pub(super) sampler: Sampler,
    pub(super) queue: Arc<SpanQueue>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SpanKind {
    Internal,
    Server,
}

/// The value of an attribute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Value {
    Text(Cow<'static, str>),
    Number(i64),
    Flag(bool),
}

impl Value {
    pub(super) fn text(text: &str) -> Self {
        Value::Text(Cow::Owned(cut(text).to_owned()))
    }
}

pub(super) fn cut(text: &str) -> &str {
    let mut end = text.len().min(LONGEST_TEXT);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// A span that has not ended.
pub(super) struct Span {
    tracer: Arc<Tracer>,
    trace: NonZeroU128,
    id: NonZeroU64,
    flags: u8,
    state: Option<String>,
    /// `None`: it is not recorded.
    record: Option<Box<Record>>,
}

struct Record {
    span: EndedSpan,
    began: Instant,
}

/// A span as the exporter gets it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct EndedSpan {
    pub(super) trace: u128,
    pub(super) id: u64,
    pub(super) flags: u8,
    pub(super) state: Option<String>,
    pub(super) parent: Option<u64>,
    pub(super) name: Cow<'static, str>,
    pub(super) kind: SpanKind,
    /// Since 1970.
    pub(super) start: Duration,
    pub(super) end: Duration,
    pub(super) attributes: Vec<(&'static str, Value)>,
    pub(super) links: Vec<TraceContext>,
    /// Why it failed.
    pub(super) error: Option<String>,
}

impl Tracer {
    /// A span below this parent, or the first of a new trace.
    pub(super) fn start(
        self: &Arc<Self>,
        parent: Option<&TraceContext>,
        kind: SpanKind,
        name: impl Into<Cow<'static, str>>,
    ) -> Span {
        let ids = parent.and_then(|parent| {
            let trace = u128::from_str_radix(parent.trace_id(), 16).ok().and_then(NonZeroU128::new)?;
            Some((trace, u64::from_str_radix(parent.span_id(), 16).ok()?))
        });
        let trace = ids.map_or_else(new_trace_id, |(trace, _)| trace);
        let id = new_span_id();
        let is_sampled = self.sampler.samples(parent, trace.get());
        let flags = if is_sampled { SAMPLED } else { 0 };
        let state = parent.and_then(TraceContext::tracestate).map(str::to_owned);
        let record = is_sampled.then(|| {
            let start = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            let span = EndedSpan {
                trace: trace.get(),
                id: id.get(),
                flags,
                state: state.clone(),
                parent: ids.map(|(_, span)| span),
                name: name.into(),
                kind,
                start,
                end: start,
                attributes: Vec::with_capacity(12),
                links: Vec::new(),
                error: None,
            };
            Box::new(Record { span, began: Instant::now() })
        });
        Span { tracer: self.clone(), trace, id, flags, state, record }
    }
}

impl Span {
    /// For what belongs to this span.
    pub(super) fn context(&self) -> TraceContext {
        TraceContext::of_span(self.trace, self.id, self.flags, self.state.as_deref())
    }

    /// A span below this one.
    pub(super) fn child(&self, kind: SpanKind, name: impl Into<Cow<'static, str>>) -> Span {
        self.tracer.start(Some(&self.context()), kind, name)
    }

    pub(super) fn rename(&mut self, name: impl Into<Cow<'static, str>>) {
        if let Some(record) = &mut self.record {
            record.span.name = name.into();
        }
    }

    /// Sets an attribute, instead of an earlier value.
    pub(super) fn set(&mut self, name: &'static str, value: Value) {
        let Some(record) = &mut self.record else { return };
        let attributes = &mut record.span.attributes;
        match attributes.iter_mut().find(|(known, _)| *known == name) {
            Some((_, known)) => *known = value,
            None => attributes.push((name, value)),
        }
    }

    pub(super) fn set_text(&mut self, name: &'static str, text: Option<&str>) {
        if let Some(text) = text.filter(|_| self.record.is_some()) {
            self.set(name, Value::text(text));
        }
    }

    pub(super) fn set_word(&mut self, name: &'static str, word: &'static str) {
        self.set(name, Value::Text(Cow::Borrowed(word)));
    }

    pub(super) fn link(&mut self, context: &TraceContext) {
        if let Some(record) = &mut self.record
            && record.span.links.len() < MOST_LINKS
        {
            record.span.links.push(context.clone());
        }
    }

    /// `kind` is one of few words; the sentence is for people.
    pub(super) fn fail(&mut self, kind: String, sentence: &str) {
        self.set("error.type", Value::Text(Cow::Owned(kind)));
        if let Some(record) = &mut self.record {
            record.span.error = Some(cut(sentence).to_owned());
        }
    }
}

impl Drop for Span {
    fn drop(&mut self) {
        if let Some(record) = self.record.take() {
            let Record { mut span, began } = *record;
            span.end = span.start + began.elapsed();
            self.tracer.queue.push(span);
        }
    }
}

#[cfg(test)]
impl EndedSpan {
    pub(super) fn named(name: impl Into<Cow<'static, str>>) -> Self {
        EndedSpan {
            trace: 1,
            id: 2,
            flags: SAMPLED,
            state: None,
            parent: None,
            name: name.into(),
            kind: SpanKind::Internal,
            start: Duration::ZERO,
            end: Duration::ZERO,
            attributes: Vec::new(),
            links: Vec::new(),
            error: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::settings::BatchSettings;
    use super::*;

    fn tracer(sampler: &str) -> Arc<Tracer> {
        let queue = Arc::new(SpanQueue::new(&BatchSettings::default()));
        Arc::new(Tracer { sampler: Sampler::parse(sampler, None).unwrap(), queue })
    }

    #[test]
    fn a_span_below_a_parent_stays_in_its_trace() {
        let tracer = tracer("parentbased_always_on");
        let parent =
            TraceContext::parse("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", Some("a=1")).unwrap();
        let mut span = tracer.start(Some(&parent), SpanKind::Server, "POST");
        span.rename("GetTask");
        span.set_text("a2a.task.id", Some("t"));
        span.set_text("a2a.task.id", Some("u"));
        let context = span.context();
        drop(span);
        assert_eq!((context.trace_id(), context.tracestate()), (parent.trace_id(), Some("a=1")));
        assert_ne!(context.span_id(), parent.span_id());
        let [span] = &tracer.queue.take()[..] else { panic!("one span") };
        assert_eq!((span.parent, &*span.name), (Some(0xb7ad6b7169203331), "GetTask"));
        assert_eq!(span.attributes, [("a2a.task.id", Value::text("u"))]);
    }

    #[test]
    fn nothing_below_a_span_that_is_not_recorded_is_recorded() {
        for sampler in ["always_off", "parentbased_always_off"] {
            let tracer = tracer(sampler);
            let span = tracer.start(None, SpanKind::Internal, "run");
            let child = span.child(SpanKind::Internal, "tool");
            assert_eq!((span.context().flags(), child.context().flags()), (0, 0));
            assert_eq!(span.context().trace_id(), child.context().trace_id());
            drop((child, span));
            assert!(tracer.queue.is_empty(), "{sampler}");
        }
    }

    #[test]
    fn long_texts_are_cut_at_a_character() {
        let Value::Text(text) = Value::text(&"ä".repeat(LONGEST_TEXT)) else { panic!() };
        assert_eq!(text.len(), LONGEST_TEXT);
        let Value::Text(text) = Value::text(&format!("a{}", "ä".repeat(LONGEST_TEXT))) else { panic!() };
        assert_eq!(text.len(), LONGEST_TEXT - 1);
    }
}
