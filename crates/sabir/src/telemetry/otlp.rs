//! The protobuf messages of OTLP, as far as spans need them. Numbers and names are those of `opentelemetry/proto/trace/v1`
//! and `collector/trace/v1`; a test of the whole server decodes what is sent with the published messages.

use super::span::{EndedSpan, SpanKind, Value};

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct ExportRequest {
    #[prost(message, repeated, tag = "1")]
    pub resource_spans: Vec<ResourceSpans>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct ResourceSpans {
    #[prost(message, optional, tag = "1")]
    pub resource: Option<Resource>,
    #[prost(message, repeated, tag = "2")]
    pub scope_spans: Vec<ScopeSpans>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Resource {
    #[prost(message, repeated, tag = "1")]
    pub attributes: Vec<KeyValue>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct ScopeSpans {
    #[prost(message, optional, tag = "1")]
    pub scope: Option<Scope>,
    #[prost(message, repeated, tag = "2")]
    pub spans: Vec<Span>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Scope {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(string, tag = "2")]
    pub version: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Span {
    #[prost(bytes = "vec", tag = "1")]
    pub trace_id: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    pub span_id: Vec<u8>,
    #[prost(string, tag = "3")]
    pub trace_state: String,
    #[prost(bytes = "vec", tag = "4")]
    pub parent_span_id: Vec<u8>,
    #[prost(string, tag = "5")]
    pub name: String,
    #[prost(int32, tag = "6")]
    pub kind: i32,
    #[prost(fixed64, tag = "7")]
    pub start_time_unix_nano: u64,
    #[prost(fixed64, tag = "8")]
    pub end_time_unix_nano: u64,
    #[prost(message, repeated, tag = "9")]
    pub attributes: Vec<KeyValue>,
    #[prost(message, repeated, tag = "13")]
    pub links: Vec<Link>,
    #[prost(message, optional, tag = "15")]
    pub status: Option<Status>,
    #[prost(fixed32, tag = "16")]
    pub flags: u32,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Link {
    #[prost(bytes = "vec", tag = "1")]
    pub trace_id: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    pub span_id: Vec<u8>,
    #[prost(string, tag = "3")]
    pub trace_state: String,
    #[prost(fixed32, tag = "6")]
    pub flags: u32,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Status {
    #[prost(string, tag = "2")]
    pub message: String,
    #[prost(int32, tag = "3")]
    pub code: i32,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct KeyValue {
    #[prost(string, tag = "1")]
    pub key: String,
    #[prost(message, optional, tag = "2")]
    pub value: Option<AnyValue>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct AnyValue {
    #[prost(oneof = "any_value::Value", tags = "1, 2, 3")]
    pub value: Option<any_value::Value>,
}

pub(super) mod any_value {
    #[derive(Clone, PartialEq, prost::Oneof)]
    pub enum Value {
        #[prost(string, tag = "1")]
        Text(String),
        #[prost(bool, tag = "2")]
        Flag(bool),
        #[prost(int64, tag = "3")]
        Number(i64),
    }
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct ExportResponse {
    #[prost(message, optional, tag = "1")]
    pub partial_success: Option<PartialSuccess>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct PartialSuccess {
    #[prost(int64, tag = "1")]
    pub rejected_spans: i64,
    #[prost(string, tag = "2")]
    pub error_message: String,
}

/// The status of a span that has failed.
const ERROR: i32 = 2;

pub(super) fn attribute(key: &str, value: Value) -> KeyValue {
    let value = match value {
        Value::Text(text) => any_value::Value::Text(text.into_owned()),
        Value::Number(number) => any_value::Value::Number(number),
        Value::Flag(flag) => any_value::Value::Flag(flag),
    };
    KeyValue { key: key.to_owned(), value: Some(AnyValue { value: Some(value) }) }
}

impl From<EndedSpan> for Span {
    fn from(span: EndedSpan) -> Self {
        let nanoseconds = |time: std::time::Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        Span {
            trace_id: span.trace.to_be_bytes().to_vec(),
            span_id: span.id.to_be_bytes().to_vec(),
            trace_state: span.state.unwrap_or_default(),
            parent_span_id: span.parent.map(|id| id.to_be_bytes().to_vec()).unwrap_or_default(),
            name: span.name.into_owned(),
            kind: match span.kind {
                SpanKind::Internal => 1,
                SpanKind::Server => 2,
            },
            start_time_unix_nano: nanoseconds(span.start),
            end_time_unix_nano: nanoseconds(span.end),
            attributes: span.attributes.into_iter().map(|(name, value)| attribute(name, value)).collect(),
            links: span.links.iter().map(Link::from).collect(),
            status: span.error.map(|message| Status { message, code: ERROR }),
            flags: u32::from(span.flags),
        }
    }
}

impl From<&sabir_model::TraceContext> for Link {
    fn from(context: &sabir_model::TraceContext) -> Self {
        let trace = u128::from_str_radix(context.trace_id(), 16).unwrap_or_default();
        let span = u64::from_str_radix(context.span_id(), 16).unwrap_or_default();
        Link {
            trace_id: trace.to_be_bytes().to_vec(),
            span_id: span.to_be_bytes().to_vec(),
            trace_state: context.tracestate().unwrap_or_default().to_owned(),
            flags: u32::from(context.flags()),
        }
    }
}
