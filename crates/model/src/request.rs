//! What is known of the request that carried a message, beside the message itself.
//!
//! It is stored with the message, so that a turn that waits for its slot, or runs after a restart, gets it too. No dialect
//! spells it.

use std::num::{NonZeroU64, NonZeroU128};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{Caller, Delegated};

/// What an agent can ask of the request that brought a message.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RequestContext {
    /// Who sent it. `None`: the owner of the task, of whom no more is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caller: Option<Caller>,
    /// The extensions that the request activates: it names them, and the agent's card declares them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extensions: Vec<String>,
    /// The media types that the caller can use in the answer. Empty: it did not say.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub accepted_output: Vec<String>,
    /// The trace that the request belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<TraceContext>,
    /// Which tasks it comes from. `None`: no program has sent it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delegated: Option<Arc<Delegated>>,
}

impl RequestContext {
    /// Whether nothing is known.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// About how many bytes of text it holds.
    pub fn weight(&self) -> usize {
        let caller = self
            .caller
            .as_ref()
            .map_or(0, |caller| caller.owner.as_key().len() + texts(caller.scopes.as_deref().unwrap_or_default()));
        let trace =
            self.trace.as_ref().map_or(0, |trace| trace.parent.len() + trace.state.as_deref().map_or(0, str::len));
        let delegated = self.delegated.as_ref().map_or(0, |delegated| delegated.weight());
        caller + texts(&self.extensions) + texts(&self.accepted_output) + trace + delegated
    }
}

fn texts(all: &[String]) -> usize {
    all.iter().map(|text| text.len() + size_of::<String>()).sum()
}

/// Where a request stands in a distributed trace, as [W3C Trace Context](https://www.w3.org/TR/trace-context/) has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceContext {
    parent: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    state: Option<String>,
}

/// Longer lists of other systems' state are dropped, as the standard allows.
const MAX_STATE: usize = 512;

impl TraceContext {
    /// Reads the two headers. `None` where `traceparent` is not valid; then the standard says to go on without a trace.
    pub fn parse(traceparent: &str, tracestate: Option<&str>) -> Option<Self> {
        let parent = traceparent.trim();
        let mut fields = parent.split('-');
        let (version, trace, span, flags) = (fields.next()?, fields.next()?, fields.next()?, fields.next()?);
        // Later versions may have more fields; version 00 has these four.
        let has_more = fields.next().is_some();
        let is_valid = is_hex(version, 2)
            && version != "ff"
            && is_id(trace, 32)
            && is_id(span, 16)
            && is_hex(flags, 2)
            && (version != "00" || !has_more)
            && parent.len() <= MAX_STATE
            && parent.bytes().all(|byte| byte.is_ascii_graphic());
        let is_usable = |state: &&str| {
            !state.is_empty() && state.len() <= MAX_STATE && state.bytes().all(|byte| matches!(byte, b' '..=b'~'))
        };
        let state = tracestate.map(str::trim).filter(is_usable).map(str::to_owned);
        is_valid.then(|| Self { parent: parent.to_owned(), state })
    }

    /// The context of a span of ours. `flags` and `state` are those that requests get which belong to the span.
    pub fn of_span(trace: NonZeroU128, span: NonZeroU64, flags: u8, state: Option<&str>) -> Self {
        Self { parent: format!("00-{trace:032x}-{span:016x}-{flags:02x}"), state: state.map(str::to_owned) }
    }

    /// The value of `traceparent`, for requests that the agent makes.
    pub fn traceparent(&self) -> &str {
        &self.parent
    }

    /// The value of `tracestate`, if there is one.
    pub fn tracestate(&self) -> Option<&str> {
        self.state.as_deref()
    }

    /// The id of the whole trace: 32 hexadecimal digits.
    pub fn trace_id(&self) -> &str {
        self.parent.split('-').nth(1).unwrap_or_default()
    }

    /// The id of the span that the request belongs to: 16 hexadecimal digits.
    pub fn span_id(&self) -> &str {
        self.parent.split('-').nth(2).unwrap_or_default()
    }

    /// The flags. Bit 0 says that the trace is recorded.
    pub fn flags(&self) -> u8 {
        self.parent.split('-').nth(3).and_then(|flags| u8::from_str_radix(flags, 16).ok()).unwrap_or(0)
    }
}

fn is_hex(text: &str, length: usize) -> bool {
    text.len() == length && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

fn is_id(text: &str, length: usize) -> bool {
    is_hex(text, length) && text.bytes().any(|byte| byte != b'0')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_valid_traceparent_is_a_trace() {
        const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
        let long = format!("00-{TRACE}-b7ad6b7169203331-01-{}", "x".repeat(600));
        for (parent, expected) in [
            ("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", true),
            (" 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00 ", true),
            ("01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-later", true),
            ("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-later", false),
            ("ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", false),
            ("00-00000000000000000000000000000000-b7ad6b7169203331-01", false),
            ("00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01", false),
            ("00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01", false),
            ("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331", false),
            ("01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-\0", false),
            (long.as_str(), false),
            ("", false),
        ] {
            let trace = TraceContext::parse(parent, None);
            assert_eq!(trace.as_ref().map(TraceContext::traceparent), expected.then_some(parent.trim()), "{parent}");
            assert!(trace.is_none_or(|trace| trace.trace_id() == TRACE));
        }
    }

    #[test]
    fn a_request_that_was_stored_before_delegation_reads_as_before() {
        let stored = r#"{"extensions":["a"]}"#;
        let request: RequestContext = serde_json::from_str(stored).unwrap();
        assert_eq!((request.delegated.as_ref(), serde_json::to_string(&request).unwrap()), (None, stored.to_owned()));
    }

    #[test]
    fn a_tracestate_that_cannot_be_used_is_dropped() {
        let long = "a".repeat(513);
        for (state, expected) in [
            (None, None),
            (Some("rojo=00f067aa0ba902b7,congo=t61"), Some("rojo=00f067aa0ba902b7,congo=t61")),
            (Some(" a=b "), Some("a=b")),
            (Some(""), None),
            (Some("a=\nb=c"), None),
            (Some(long.as_str()), None),
        ] {
            let trace = TraceContext::parse("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", state).unwrap();
            assert_eq!(trace.tracestate(), expected, "{state:?}");
        }
    }

    #[test]
    fn the_context_of_a_span_is_a_valid_traceparent() {
        let (trace, span) = (NonZeroU128::new(0xabc).unwrap(), NonZeroU64::new(0x12).unwrap());
        let context = TraceContext::of_span(trace, span, 1, Some("a=1"));
        assert_eq!(context.traceparent(), "00-00000000000000000000000000000abc-0000000000000012-01");
        assert_eq!(TraceContext::parse(context.traceparent(), context.tracestate()), Some(context.clone()));
        assert_eq!((context.span_id(), context.flags()), ("0000000000000012", 1));
    }
}
