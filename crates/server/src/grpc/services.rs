//! The services beside A2A: health, which everybody may ask, and reflection.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::stream;
use http::{HeaderMap, HeaderValue, Response, header};
use http_body_util::BodyExt;
use hyper::body::Frame;
use sabir_engine::{Engine, Health};
use sabir_model::Error;
use sabir_wire::Responder;
use sabir_wire::grpc::{
    GRPC, GrpcStatus, HealthCall, HealthMethod, HealthStatus, MessagePrefix, PREFIX_LENGTH, reflect,
};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use super::trailers::trailers_of;
use crate::body::Body;
use crate::incoming::BodySource;

/// How often a watcher's server looks at itself.
const BETWEEN_CHECKS: Duration = Duration::from_secs(1);
/// A reflection stream that asks nothing for so long is over.
const REFLECTION_IDLE: Duration = Duration::from_secs(60);
/// No question of a reflection client is longer.
const LONGEST_QUESTION: usize = 64 * 1024;

/// Answers a request of the health service.
pub(crate) async fn health(
    engine: &Engine,
    watchers: &Arc<Semaphore>,
    method: HealthMethod,
    call: HealthCall,
) -> Result<Response<Body>, Error> {
    let whole = |frame: Vec<u8>| response(Body::from(frame).with_trailers(trailers_of(&GrpcStatus::ok())));
    match method {
        HealthMethod::List => Ok(whole(status_of(engine).await.list_frame())),
        HealthMethod::Watch => {
            let place = watchers.clone().try_acquire_owned().map_err(|_| Error::LimitReached {
                sentence: "too many watch the health of this server; ask with Check instead".to_owned(),
                retry_after: 5,
            })?;
            Ok(response(Body::stream(watch(engine.clone(), call, place))))
        }
        HealthMethod::Check if !call.is_known() => Err(Error::ServiceNotFound),
        HealthMethod::Check => Ok(whole(status_of(engine).await.frame())),
    }
}

async fn status_of(engine: &Engine) -> HealthStatus {
    match engine.health().await {
        Health::Ready => HealthStatus::Serving,
        Health::Stopping | Health::StoreDown(_) => HealthStatus::NotServing,
    }
}

/// Each change, until the server stops.
fn watch(
    engine: Engine,
    call: HealthCall,
    place: OwnedSemaphorePermit,
) -> impl futures_util::Stream<Item = Frame<Bytes>> + Send {
    struct Watch {
        engine: Engine,
        call: HealthCall,
        told: Option<HealthStatus>,
        is_over: bool,
        _place: OwnedSemaphorePermit,
    }
    let watch = Watch { engine, call, told: None, is_over: false, _place: place };
    stream::unfold(watch, |mut watch| async move {
        if watch.is_over {
            return None;
        }
        loop {
            if watch.told.is_some() {
                if watch.engine.health().await == Health::Stopping {
                    watch.is_over = true;
                    return Some((Frame::trailers(trailers_of(&GrpcStatus::ok())), watch));
                }
                tokio::time::sleep(BETWEEN_CHECKS).await;
            }
            let now = watch.call.status(status_of(&watch.engine).await);
            if watch.told.replace(now) != Some(now) {
                return Some((Frame::data(Bytes::from(now.frame())), watch));
            }
        }
    })
}

/// Answers each question of a reflection stream as it comes.
pub(crate) fn reflection(engine: Engine, body: BodySource, responder: Responder<'static>) -> Response<Body> {
    let questions = Questions { engine, body, pending: BytesMut::new(), responder, is_over: false };
    response(Body::stream(stream::unfold(questions, |mut questions| async move {
        let frame = questions.next_answer().await?;
        Some((frame, questions))
    })))
}

struct Questions {
    engine: Engine,
    body: BodySource,
    /// Bytes of a message that is not complete.
    pending: BytesMut,
    responder: Responder<'static>,
    is_over: bool,
}

impl Questions {
    async fn next_answer(&mut self) -> Option<Frame<Bytes>> {
        if self.is_over {
            return None;
        }
        let answer = match self.next_question().await {
            Ok(Some(question)) => reflect(&question),
            Ok(None) => return Some(self.end(None)),
            Err(error) => Err(error),
        };
        Some(match answer {
            Ok(answer) => Frame::data(Bytes::from(answer)),
            Err(error) => self.end(Some(&error)),
        })
    }

    fn end(&mut self, error: Option<&Error>) -> Frame<Bytes> {
        self.is_over = true;
        Frame::trailers(self.responder.end_status(error).as_ref().map_or_else(HeaderMap::new, trailers_of))
    }

    /// `None`: the client has no more.
    async fn next_question(&mut self) -> Result<Option<Bytes>, Error> {
        let deadline = Instant::now() + REFLECTION_IDLE;
        loop {
            if let Some(prefix) = self.pending.first_chunk::<PREFIX_LENGTH>() {
                let broken = |why: &str| Error::BrokenBody(why.to_owned());
                let prefix = MessagePrefix::read(*prefix).ok_or_else(|| broken("a message has no prefix of gRPC"))?;
                if prefix.is_compressed {
                    return Err(Error::Unsupported("send questions of this service without compression".to_owned()));
                }
                if prefix.length > LONGEST_QUESTION {
                    return Err(Error::TooLarge { limit: LONGEST_QUESTION });
                }
                if self.pending.len() >= PREFIX_LENGTH + prefix.length {
                    let message = self.pending.split_to(PREFIX_LENGTH + prefix.length).freeze();
                    return Ok(Some(message.slice(PREFIX_LENGTH..)));
                }
            }
            let next = tokio::time::timeout(BETWEEN_CHECKS, self.body.frame()).await;
            match next {
                Ok(Some(Ok(frame))) => {
                    if let Ok(data) = frame.into_data() {
                        self.pending.extend_from_slice(&data);
                    }
                }
                Ok(Some(Err(error))) => return Err(Error::BrokenBody(format!("the body broke off: {error}"))),
                Ok(None) if self.pending.is_empty() => return Ok(None),
                Ok(None) => return Err(Error::BrokenBody("the body ends in the middle of a message".to_owned())),
                // A client that asks nothing does not hold the server back when it stops.
                Err(_) if self.engine.health().await == Health::Stopping => return Ok(None),
                Err(_) if Instant::now() < deadline => {}
                Err(_) if self.pending.is_empty() => return Ok(None),
                Err(_) => return Err(Error::BrokenBody("the message came too slowly".to_owned())),
            }
        }
    }
}

fn response(body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(GRPC));
    response
}
