//! Bodies: what comes in within its limit, and the two forms of what goes out.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::Stream;
use http::{HeaderMap, header};
use http_body_util::{BodyExt, LengthLimitError, Limited};
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

/// Reads a body that must be JSON, or nothing.
pub(crate) async fn read(headers: &HeaderMap, body: Incoming, limit: usize) -> Result<Bytes, Error> {
    if body.is_end_stream() {
        return Ok(Bytes::new());
    }
    check_type(headers)?;
    // An announced size is refused before anything is read.
    if body.size_hint().lower() > limit as u64 {
        return Err(Error::TooLarge { limit });
    }
    match Limited::new(body, limit).collect().await {
        Ok(body) => Ok(body.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(Error::TooLarge { limit }),
        Err(error) => Err(Error::BrokenBody(format!("the body broke off: {error}"))),
    }
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
