//! What a response carries: something whole, or events as they come.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::Stream;
use hyper::body::{Frame, SizeHint};
use sabir_model::Error;

use crate::connections::{Answering, Exchange};
use crate::pieces::Pieces;

pub(crate) struct Body {
    content: BodyContent,
    /// Ends when the body does.
    exchange: Option<Exchange>,
}

enum BodyContent {
    Whole(Pieces),
    /// Events as they come.
    Stream(Pin<Box<dyn Stream<Item = Bytes> + Send>>),
}

impl Body {
    pub(crate) fn empty() -> Self {
        Self::from(Vec::new())
    }

    pub(crate) fn stream(stream: impl Stream<Item = Bytes> + Send + 'static) -> Self {
        Self { content: BodyContent::Stream(Box::pin(stream)), exchange: None }
    }

    /// Of this exchange, which ends when the body has been written or given up.
    pub(crate) fn of(mut self, exchange: Exchange) -> Self {
        exchange.answer_with(match self.content {
            BodyContent::Whole(_) => Answering::Whole,
            BodyContent::Stream(_) => Answering::Stream,
        });
        self.exchange = Some(exchange);
        self
    }
}

impl From<Vec<u8>> for Body {
    fn from(bytes: Vec<u8>) -> Self {
        Self::from(Pieces::small(bytes))
    }
}

impl From<Pieces> for Body {
    fn from(pieces: Pieces) -> Self {
        Self { content: BodyContent::Whole(pieces), exchange: None }
    }
}

impl hyper::body::Body for Body {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        let this = &mut *self;
        match &mut this.content {
            BodyContent::Whole(pieces) => {
                if let Some(exchange) = &this.exchange {
                    exchange.progress();
                }
                Poll::Ready(pieces.next().transpose().map(|piece| piece.map(Frame::data)))
            }
            BodyContent::Stream(stream) => {
                stream.as_mut().poll_next(cx).map(|next| next.map(|bytes| Ok(Frame::data(bytes))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(&self.content, BodyContent::Whole(pieces) if pieces.is_empty())
    }

    fn size_hint(&self) -> SizeHint {
        match &self.content {
            BodyContent::Whole(pieces) => SizeHint::with_exact(pieces.len() as u64),
            BodyContent::Stream(_) => SizeHint::default(),
        }
    }
}
