//! The parts of an HTTP request, apart from its body, that decide how it is read.

#[derive(Debug, Clone, Copy, Default)]
pub struct RequestHead<'a> {
    /// `GET`, `POST`, ...
    pub verb: &'a str,
    /// Still percent-encoded.
    pub path: &'a str,
    pub query: Option<&'a str>,
    /// `A2A-Version`.
    pub version: Option<&'a str>,
    /// `Last-Event-ID`.
    pub last_event_id: Option<&'a str>,
    /// `Idempotency-Key`.
    pub idempotency_key: Option<&'a str>,
    /// `A2A-Extensions`: URIs with commas between them.
    pub extensions: Option<&'a str>,
    /// `Sabir-Push-Events`: which events the webhook gets that is set.
    pub push_events: Option<&'a str>,
    /// `traceparent`.
    pub trace_parent: Option<&'a str>,
    /// `tracestate`: what systems on the way add to the trace, with commas between them.
    pub trace_state: Option<&'a str>,
}
