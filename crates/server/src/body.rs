//! What a response carries: something whole, or events as they come.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::{Stream, StreamExt};
use http::HeaderMap;
use hyper::body::{Frame, SizeHint};
use sabir_model::Error;

use crate::connections::{Answering, Exchange};
use crate::grpc::Compressor;
use crate::pieces::Pieces;

pub(crate) struct Body {
    content: BodyContent,
    /// Behind something whole. A stream has its own.
    trailers: Option<HeaderMap>,
    /// Ends when the body does.
    exchange: Option<Exchange>,
}

enum BodyContent {
    Whole(Pieces),
    /// Events as they come, and trailers at the end where the binding has them.
    Stream(Pin<Box<dyn Stream<Item = Frame<Bytes>> + Send>>),
}

impl Body {
    pub(crate) fn empty() -> Self {
        Self::from(Vec::new())
    }

    pub(crate) fn stream(stream: impl Stream<Item = Frame<Bytes>> + Send + 'static) -> Self {
        Self { content: BodyContent::Stream(Box::pin(stream)), trailers: None, exchange: None }
    }

    pub(crate) fn with_trailers(self, trailers: HeaderMap) -> Self {
        Self { trailers: Some(trailers), ..self }
    }

    /// With its messages compressed. Something whole that is large stays as it is.
    pub(crate) fn compressed(self, mut compressor: Compressor) -> Self {
        let content = match self.content {
            BodyContent::Whole(pieces) => BodyContent::Whole(pieces.map_small(|bytes| compressor.feed(bytes))),
            BodyContent::Stream(stream) => {
                let compressed = stream.filter_map(move |frame| {
                    let frame = match frame.into_data() {
                        Ok(bytes) => Some(compressor.feed(bytes)).filter(|bytes| !bytes.is_empty()).map(Frame::data),
                        Err(trailers) => Some(trailers),
                    };
                    std::future::ready(frame)
                });
                BodyContent::Stream(Box::pin(compressed))
            }
        };
        Self { content, ..self }
    }

    /// With the trailers as its last bytes.
    pub(crate) fn with_trailers_inside(mut self, write: fn(&HeaderMap) -> Bytes) -> Self {
        self.content = match self.content {
            BodyContent::Whole(mut pieces) => {
                if let Some(trailers) = self.trailers.take() {
                    pieces.append(&write(&trailers));
                }
                BodyContent::Whole(pieces)
            }
            BodyContent::Stream(stream) => BodyContent::Stream(Box::pin(stream.map(move |frame| {
                let trailers = frame.trailers_ref().map(write);
                trailers.map_or(frame, Frame::data)
            }))),
        };
        self
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
        Self { content: BodyContent::Whole(pieces), trailers: None, exchange: None }
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
                let next = pieces.next().transpose().map(|piece| piece.map(Frame::data));
                Poll::Ready(next.or_else(|| this.trailers.take().map(|trailers| Ok(Frame::trailers(trailers)))))
            }
            BodyContent::Stream(stream) => stream.as_mut().poll_next(cx).map(|next| next.map(Ok)),
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(&self.content, BodyContent::Whole(pieces) if pieces.is_empty()) && self.trailers.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        match &self.content {
            // A length would say that nothing follows.
            BodyContent::Whole(_) if self.trailers.is_some() => SizeHint::default(),
            BodyContent::Whole(pieces) => SizeHint::with_exact(pieces.len() as u64),
            BodyContent::Stream(_) => SizeHint::default(),
        }
    }
}
