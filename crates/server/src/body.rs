//! What a response carries, in pieces small enough that a client which does not read pins little of it.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::Stream;
use hyper::body::{Frame, SizeHint};

use crate::connections::{Answering, Exchange};

/// The largest piece that is handed to the connection at once.
pub(crate) const PIECE: usize = 32 * 1024;

pub(crate) struct Body {
    content: Content,
    /// Ends when the body does.
    exchange: Option<Exchange>,
}

enum Content {
    Whole(Bytes),
    /// Events as they come.
    Stream(Pin<Box<dyn Stream<Item = Bytes> + Send>>),
}

impl Body {
    pub(crate) fn empty() -> Self {
        Self::from(Vec::new())
    }

    pub(crate) fn stream(stream: impl Stream<Item = Bytes> + Send + 'static) -> Self {
        Self { content: Content::Stream(Box::pin(stream)), exchange: None }
    }

    /// Of this exchange, which ends when the body has been written or given up.
    pub(crate) fn of(mut self, exchange: Exchange) -> Self {
        exchange.answer_with(match self.content {
            Content::Whole(_) => Answering::Whole,
            Content::Stream(_) => Answering::Stream,
        });
        self.exchange = Some(exchange);
        self
    }
}

impl From<Vec<u8>> for Body {
    fn from(bytes: Vec<u8>) -> Self {
        Self { content: Content::Whole(Bytes::from(bytes)), exchange: None }
    }
}

impl hyper::body::Body for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let this = &mut *self;
        match &mut this.content {
            Content::Whole(bytes) if bytes.is_empty() => Poll::Ready(None),
            Content::Whole(bytes) => {
                if let Some(exchange) = &this.exchange {
                    exchange.progress();
                }
                let piece = bytes.split_to(bytes.len().min(PIECE));
                Poll::Ready(Some(Ok(Frame::data(piece))))
            }
            Content::Stream(stream) => {
                stream.as_mut().poll_next(cx).map(|next| next.map(|bytes| Ok(Frame::data(bytes))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(&self.content, Content::Whole(bytes) if bytes.is_empty())
    }

    fn size_hint(&self) -> SizeHint {
        match &self.content {
            Content::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Content::Stream(_) => SizeHint::default(),
        }
    }
}
