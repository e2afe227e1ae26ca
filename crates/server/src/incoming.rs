//! The body of a request: read within its limits of size, time and memory, or let pass unread.
//!
//! A client that writes its whole request before it reads anything must still get an answer that came early, such as a
//! refusal for size. So the answer is sent at once, and what is left of the body is taken from the connection aside and
//! forgotten, up to a limit, since a connection that is closed with unread bytes loses its answer.

use std::error::Error as StdError;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, header};
use http_body_util::BodyExt;
use http_body_util::combinators::UnsyncBoxBody;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use sabir_model::Error;
use sabir_wire::excerpt;
use tokio::time::Instant;

use crate::budget::{Budget, Reservation};

/// Who sends less than this, on average over `Timeouts::body`, is given up.
const LEAST_PER_SECOND: f64 = 512.0;
/// The whole body has twice `Timeouts::body`, and the time that its largest size takes at this speed.
const SLOWEST_PER_SECOND: f64 = 32.0 * 1024.0;
/// What is still taken of a body that nobody wants, and for how long.
const DRAINED: usize = 64 * 1024 * 1024;
const DRAINED_FOR: Duration = Duration::from_secs(30);

type BoxError = Box<dyn StdError + Send + Sync>;

/// Where the body of a request comes from.
pub(crate) enum BodySource {
    Connection(Incoming),
    /// From whoever mounts this server in one of their own.
    Mounted(UnsyncBoxBody<Bytes, BoxError>),
}

impl Body for BodySource {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match &mut *self {
            BodySource::Connection(body) => {
                Pin::new(body).poll_frame(context).map(|frame| frame.map(|frame| frame.map_err(Into::into)))
            }
            BodySource::Mounted(body) => Pin::new(body).poll_frame(context),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            BodySource::Connection(body) => body.is_end_stream(),
            BodySource::Mounted(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            BodySource::Connection(body) => body.size_hint(),
            BodySource::Mounted(body) => body.size_hint(),
        }
    }
}

/// The body of a request, as far as it has not been read.
pub(crate) struct RequestBody {
    incoming: BodySource,
    /// Its client waits for a `100 Continue` before it sends anything.
    is_withheld: bool,
}

/// A body that has been read, and the memory that is reserved for it.
pub(crate) struct Received {
    bytes: Bytes,
    _reserved: Option<Reservation>,
}

impl Received {
    pub(crate) fn nothing() -> Self {
        Self { bytes: Bytes::new(), _reserved: None }
    }

    pub(crate) fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// With memory for what is made of them.
    pub(crate) fn reserving(self, budget: &Arc<Budget>, weight: usize) -> Result<Self, Error> {
        let mut reserved = self._reserved.unwrap_or_else(|| budget.nothing());
        reserved.grow_to(self.bytes.len() + weight)?;
        Ok(Self { bytes: self.bytes, _reserved: Some(reserved) })
    }

    /// With what was made of the bytes.
    pub(crate) fn with_bytes(self, bytes: Bytes) -> Self {
        Self { bytes, ..self }
    }
}

impl std::ops::Deref for Received {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

pub(crate) struct BodyLimits<'a> {
    pub(crate) size: usize,
    /// In this time a reasonable part must come.
    pub(crate) patience: Duration,
    pub(crate) budget: &'a Arc<Budget>,
}

impl RequestBody {
    pub(crate) fn new(parts: &Parts, incoming: BodySource) -> Self {
        Self { incoming, is_withheld: parts.headers.contains_key(header::EXPECT) }
    }

    /// With nothing left to read.
    pub(crate) fn empty() -> Self {
        let empty = http_body_util::Empty::new().map_err(|never| match never {}).boxed_unsync();
        Self { incoming: BodySource::Mounted(empty), is_withheld: false }
    }

    /// For a service that reads by itself.
    pub(crate) fn into_source(self) -> BodySource {
        self.incoming
    }

    /// Reads a body that must be JSON, or nothing.
    pub(crate) async fn read_json(&mut self, headers: &HeaderMap, limits: &BodyLimits<'_>) -> Result<Received, Error> {
        if !self.incoming.is_end_stream() {
            check_type(headers)?;
        }
        self.read(limits).await
    }

    /// Reads a body of any kind.
    pub(crate) async fn read(&mut self, limits: &BodyLimits<'_>) -> Result<Received, Error> {
        if self.incoming.is_end_stream() {
            return Ok(Received::nothing());
        }
        let too_large = || Error::TooLarge { limit: limits.size };
        // An announced size is refused before anything is read.
        if self.incoming.size_hint().lower() > limits.size as u64 {
            return Err(too_large());
        }
        self.is_withheld = false;
        let mut pace = Pace::new(limits);
        let first = self.next(&mut pace).await?.unwrap_or_default();
        if first.len() > limits.size {
            return Err(too_large());
        }
        // Most bodies come in one piece and need no copy.
        if self.incoming.is_end_stream() {
            return Ok(Received { bytes: first, _reserved: None });
        }
        let mut reserved = limits.budget.nothing();
        let mut whole = Vec::from(first);
        while let Some(more) = self.next(&mut pace).await? {
            if whole.len() + more.len() > limits.size {
                return Err(too_large());
            }
            reserved.grow_to(whole.len() + more.len())?;
            whole.extend_from_slice(&more);
        }
        Ok(Received { bytes: Bytes::from(whole), _reserved: Some(reserved) })
    }

    async fn next(&mut self, pace: &mut Pace) -> Result<Option<Bytes>, Error> {
        loop {
            let frame = match tokio::time::timeout_at(pace.next_check(), self.incoming.frame()).await {
                Ok(Some(Ok(frame))) => frame,
                Ok(Some(Err(error))) => return Err(Error::BrokenBody(format!("the body broke off: {error}"))),
                Ok(None) => return Ok(None),
                Err(_) => {
                    pace.check()?;
                    continue;
                }
            };
            if let Ok(data) = frame.into_data() {
                pace.count(data.len())?;
                return Ok(Some(data));
            }
        }
    }

    /// Takes what is left from the connection, aside, so that its client comes to read the answer.
    pub(crate) fn drain_aside(mut self) {
        // Who waits for permission to send is not given it.
        if self.incoming.is_end_stream() || self.is_withheld {
            return;
        }
        tokio::spawn(async move {
            let all = async {
                let mut seen = 0;
                while let Some(Ok(frame)) = self.incoming.frame().await {
                    seen += frame.data_ref().map_or(0, Bytes::len);
                    if seen > DRAINED {
                        return;
                    }
                }
            };
            let _ = tokio::time::timeout(DRAINED_FOR, all).await;
        });
    }
}

/// Whether a body comes fast enough.
struct Pace {
    patience: Duration,
    /// When all of it must be there.
    deadline: Instant,
    /// Since when `seen` counts.
    since: Instant,
    seen: usize,
}

impl Pace {
    fn new(limits: &BodyLimits<'_>) -> Self {
        let now = Instant::now();
        let largest = Duration::from_secs_f64(limits.size as f64 / SLOWEST_PER_SECOND);
        Self { patience: limits.patience, deadline: now + limits.patience * 2 + largest, since: now, seen: 0 }
    }

    fn next_check(&self) -> Instant {
        self.deadline.min(self.since + self.patience)
    }

    fn count(&mut self, bytes: usize) -> Result<(), Error> {
        self.seen += bytes;
        if Instant::now() >= self.next_check() { self.check() } else { Ok(()) }
    }

    fn check(&mut self) -> Result<(), Error> {
        let now = Instant::now();
        let least = self.patience.as_secs_f64() * LEAST_PER_SECOND;
        if now >= self.deadline || (self.seen as f64) < least {
            return Err(Error::BrokenBody("the body came too slowly".into()));
        }
        (self.since, self.seen) = (now, 0);
        Ok(())
    }
}

fn check_type(headers: &HeaderMap) -> Result<(), Error> {
    let text =
        |name| headers.get(name).map(|value| String::from_utf8_lossy(value.as_bytes()).trim().to_ascii_lowercase());
    if let Some(encoding) = text(header::CONTENT_ENCODING)
        && !encoding.is_empty()
        && encoding != "identity"
    {
        return Err(Error::UnsupportedMediaType(format!("send the body as it is, not as {}", excerpt(&encoding))));
    }
    let Some(declared) = text(header::CONTENT_TYPE).filter(|declared| !declared.is_empty()) else { return Ok(()) };
    let essence = declared.split(';').next().unwrap_or_default().trim();
    if essence == "application/json" || essence.ends_with("+json") {
        return Ok(());
    }
    Err(Error::UnsupportedMediaType(format!("send application/json, not {}", excerpt(essence))))
}
