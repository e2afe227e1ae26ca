//! What the operator says of a remote agent.

use std::sync::Arc;
use std::time::Duration;

use http::HeaderMap;
use sabir_wire::{Binding, ProtocolVersion};

use crate::client::{ClientIdentity, Roots};
use crate::credentials::CredentialSettings;
use crate::guard::EgressPolicy;

/// Where a remote agent is, how it is spoken to, and how long it may take. `RemoteSettings::new` has the usual values.
#[derive(Clone)]
pub struct RemoteSettings {
    /// The server, or its card.
    pub url: String,
    /// Where the card is, if it is not at one of the well-known places below `url`.
    pub card_url: Option<String>,
    /// Where calls go, instead of where the card says.
    pub endpoint: Option<String>,
    /// Instead of the newest that the card names and Sabir knows.
    pub version: Option<ProtocolVersion>,
    /// In order of preference, before that of the card.
    pub bindings: Vec<Binding>,
    /// Instead of the tenant that the card names.
    pub tenant: Option<String>,
    /// What the agent is shown. A card may lead calls to another origin than `url`; that one is shown nothing, unless the
    /// operator wrote it (`endpoint`).
    pub credentials: CredentialSettings,
    /// What every request has besides, of no secret.
    pub headers: HeaderMap,
    /// The certificate to show to servers that ask for one.
    pub identity: Option<ClientIdentity>,
    pub roots: Roots,
    /// What the card may lead to elsewhere. What the operator wrote here is trusted in addition.
    pub policy: EgressPolicy,
    /// For a call whose answer does not wait for the agent.
    pub call_timeout: Duration,
    /// For the answer to a message, which may wait for the agent.
    pub send_timeout: Duration,
    /// A stream that is silent for this long is taken to be broken.
    pub stream_silence: Duration,
    /// Between two looks at a task that is being worked on, where the agent cannot stream. `None`: short at first, then
    /// longer.
    pub poll_interval: Option<Duration>,
    /// How long a task is followed without a sign of the remote agent.
    pub unreachable_timeout: Duration,
    /// The largest event of a stream, and the largest answer.
    pub largest_answer: usize,
    /// The largest task: about so many bytes of artifacts.
    pub largest_task: usize,
    pub observer: Option<Observer>,
}

/// Sees all that goes over the wire, but for credentials.
pub type Observer = Arc<dyn Fn(WireEvent<'_>) + Send + Sync>;

pub enum WireEvent<'a> {
    Request { verb: &'a str, url: &'a str, headers: &'a [(&'static str, String)], body: &'a [u8] },
    Response { status: u16, body: &'a [u8] },
    Frame { id: Option<&'a str>, data: &'a [u8] },
}

impl RemoteSettings {
    pub fn new(url: impl Into<String>) -> Self {
        RemoteSettings {
            url: url.into(),
            card_url: None,
            endpoint: None,
            version: None,
            bindings: Vec::new(),
            tenant: None,
            credentials: CredentialSettings::default(),
            headers: HeaderMap::new(),
            identity: None,
            roots: Roots::default(),
            policy: EgressPolicy::default(),
            call_timeout: Duration::from_secs(30),
            send_timeout: Duration::from_secs(600),
            stream_silence: Duration::from_secs(60),
            poll_interval: None,
            unreachable_timeout: Duration::from_secs(300),
            largest_answer: 16 << 20,
            largest_task: 64 << 20,
            observer: None,
        }
    }

    /// With this `unreachable_timeout`. No single call, and no silence of a stream, is borne for longer.
    pub fn unreachable_after(self, time: Duration) -> Self {
        RemoteSettings {
            unreachable_timeout: time,
            call_timeout: self.call_timeout.min(time),
            stream_silence: self.stream_silence.min(time),
            ..self
        }
    }
}
