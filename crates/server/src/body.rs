//! Bodies: what comes in within its limit, and the two forms of what goes out.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures_util::Stream;
use http::request::Parts;
use http::{HeaderMap, Version, header};
use http_body_util::BodyExt;
use hyper::body::{Body as _, Frame, Incoming, SizeHint};
use sabir_model::Error;

/// What a response carries.
pub(crate) enum Body {
    Whole(Option<Bytes>),
    /// Events as they come.
    Stream(Pin<Box<dyn Stream<Item = Bytes> + Send>>),
}

impl Body {
    pub(crate) fn empty() -> Self {
        Self::Whole(None)
    }
}

impl From<Vec<u8>> for Body {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Whole((!bytes.is_empty()).then(|| Bytes::from(bytes)))
    }
}

impl hyper::body::Body for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match &mut *self {
            Body::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Body::Stream(stream) => stream.as_mut().poll_next(cx).map(|next| next.map(|bytes| Ok(Frame::data(bytes)))),
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Body::Whole(None))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Body::Whole(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, Bytes::len) as u64),
            Body::Stream(_) => SizeHint::default(),
        }
    }
}

/// A body that stops coming for so long is given up.
const PATIENCE: Duration = Duration::from_secs(30);
/// What is still taken of a body that is too large, so that its sender gets to read the answer.
const DRAINED: usize = 64 * 1024 * 1024;
const DRAINED_FOR: Duration = Duration::from_secs(5);

/// Reads a body that must be JSON, or nothing.
pub(crate) async fn read(parts: &Parts, mut body: Incoming, limit: usize) -> Result<Bytes, Error> {
    if body.is_end_stream() {
        return Ok(Bytes::new());
    }
    check_type(&parts.headers)?;
    // An announced size is refused before anything is read. Over HTTP/2 the sender would see its stream
    // reset before it sees the answer, so there the body is let pass.
    if body.size_hint().lower() > limit as u64 {
        if parts.version == Version::HTTP_2 {
            drain(body).await;
        }
        return Err(Error::TooLarge { limit });
    }
    let Some(first) = next(&mut body).await? else { return Ok(Bytes::new()) };
    if first.len() > limit {
        drain(body).await;
        return Err(Error::TooLarge { limit });
    }
    // Most bodies come in one piece and need no copy.
    if body.is_end_stream() {
        return Ok(first);
    }
    let mut whole = Vec::from(first);
    while let Some(more) = next(&mut body).await? {
        if whole.len() + more.len() > limit {
            drain(body).await;
            return Err(Error::TooLarge { limit });
        }
        whole.extend_from_slice(&more);
    }
    Ok(Bytes::from(whole))
}

async fn next(body: &mut Incoming) -> Result<Option<Bytes>, Error> {
    loop {
        let frame = match tokio::time::timeout(PATIENCE, body.frame()).await {
            Ok(Some(Ok(frame))) => frame,
            Ok(Some(Err(error))) => return Err(Error::BrokenBody(format!("the body broke off: {error}"))),
            Ok(None) => return Ok(None),
            Err(_) => return Err(Error::BrokenBody(format!("the body stopped coming for {PATIENCE:?}"))),
        };
        if let Ok(data) = frame.into_data() {
            return Ok(Some(data));
        }
    }
}

async fn drain(mut body: Incoming) {
    let all = async {
        let mut seen = 0;
        while let Some(Ok(frame)) = body.frame().await {
            seen += frame.data_ref().map_or(0, Bytes::len);
            if seen > DRAINED {
                return;
            }
        }
    };
    let _ = tokio::time::timeout(DRAINED_FOR, all).await;
}

fn check_type(headers: &HeaderMap) -> Result<(), Error> {
    let text =
        |name| headers.get(name).map(|value| String::from_utf8_lossy(value.as_bytes()).trim().to_ascii_lowercase());
    if let Some(encoding) = text(header::CONTENT_ENCODING)
        && !encoding.is_empty()
        && encoding != "identity"
    {
        return Err(Error::UnsupportedMediaType(format!("send the body as it is, not as {}", cut(&encoding))));
    }
    let Some(declared) = text(header::CONTENT_TYPE).filter(|declared| !declared.is_empty()) else { return Ok(()) };
    let essence = declared.split(';').next().unwrap_or_default().trim();
    if essence == "application/json" || essence.ends_with("+json") {
        return Ok(());
    }
    Err(Error::UnsupportedMediaType(format!("send application/json, not {}", cut(essence))))
}

/// An error repeats at most 200 characters of the caller's input.
fn cut(text: &str) -> String {
    text.chars().take(200).collect()
}
