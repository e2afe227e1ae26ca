//! What to measure.

use std::time::Duration;

#[derive(Debug, Clone)]
pub struct Options {
    /// `http://HOST[:PORT][/PATH]`; the card lies below it.
    pub url: String,
    pub workload: Workload,
    pub dialect: Dialect,
    pub connections: usize,
    pub duration: Duration,
    /// Ends after so many operations instead.
    pub count: Option<u64>,
    pub chunks: u64,
    pub readers: usize,
    /// Another server on the same store.
    pub other: Option<String>,
    /// The server's process on this machine, to say what it used.
    pub pid: Option<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Workload {
    Send,
    Webhook,
    Get,
    GetLive,
    List,
    ListNewest,
    Stream,
    Fanout,
    OpenStreams,
    ListRunning,
    Stalled,
    Http2,
    WakeUp,
}

impl Workload {
    pub const ALL: [Workload; 13] = [
        Workload::Send,
        Workload::Webhook,
        Workload::Get,
        Workload::GetLive,
        Workload::List,
        Workload::ListNewest,
        Workload::Stream,
        Workload::Fanout,
        Workload::OpenStreams,
        Workload::ListRunning,
        Workload::Stalled,
        Workload::Http2,
        Workload::WakeUp,
    ];

    pub fn named(name: &str) -> Option<Workload> {
        Workload::ALL.into_iter().find(|workload| workload.name() == name)
    }

    pub fn name(self) -> &'static str {
        match self {
            Workload::Send => "send",
            Workload::Webhook => "webhook",
            Workload::Get => "get",
            Workload::GetLive => "get-live",
            Workload::List => "list",
            Workload::ListNewest => "list-newest",
            Workload::Stream => "stream",
            Workload::Fanout => "fanout",
            Workload::OpenStreams => "open-streams",
            Workload::ListRunning => "list-running",
            Workload::Stalled => "stalled",
            Workload::Http2 => "http2",
            Workload::WakeUp => "wake-up",
        }
    }

    /// Whether it can be done over HTTP/2.
    pub fn has_http2(self) -> bool {
        matches!(self, Workload::Send | Workload::Stream | Workload::Http2)
    }

    /// What is counted.
    pub fn unit(self) -> &'static str {
        match self {
            Workload::Send
            | Workload::Webhook
            | Workload::Get
            | Workload::GetLive
            | Workload::List
            | Workload::ListNewest
            | Workload::ListRunning => "requests",
            Workload::Stream | Workload::Stalled | Workload::WakeUp => "events",
            Workload::Fanout => "deliveries",
            Workload::OpenStreams | Workload::Http2 => "streams",
        }
    }
}

/// A version of the protocol, and how it is carried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    V1,
    /// The same over HTTP/2, to tell what gRPC costs from what HTTP/2 costs.
    V1Http2,
    V03,
    V01,
    /// 1.0 as HTTP+JSON.
    Rest,
    /// The plain REST of agent gateways, which never waits.
    Gateway,
    /// 1.0 as gRPC.
    Grpc,
}

impl Dialect {
    pub const ALL: [Dialect; 7] =
        [Dialect::V1, Dialect::V1Http2, Dialect::V03, Dialect::V01, Dialect::Rest, Dialect::Gateway, Dialect::Grpc];

    pub fn named(name: &str) -> Option<Dialect> {
        Dialect::ALL.into_iter().find(|dialect| dialect.name() == name)
    }

    pub fn name(self) -> &'static str {
        match self {
            Dialect::V1 => "1.0",
            Dialect::V1Http2 => "1.0-http2",
            Dialect::V03 => "0.3",
            Dialect::V01 => "0.1",
            Dialect::Rest => "rest",
            Dialect::Gateway => "gateway",
            Dialect::Grpc => "grpc",
        }
    }

    /// Whether calls go over HTTP/2, on connections of their own.
    pub fn is_over_http2(self) -> bool {
        matches!(self, Dialect::V1Http2 | Dialect::Grpc)
    }
}
