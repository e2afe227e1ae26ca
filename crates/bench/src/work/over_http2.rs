//! Messages and streams over HTTP/2, as JSON-RPC or as gRPC: one call at a time on each connection, as over HTTP/1.1.

use std::time::Instant;

use crate::check::{Order, Spelling, Wrong};
use crate::connection::Reply;
use crate::http2::{Http2, Http2Request};
use crate::place::Place;
use crate::probe::{Agent, TEXT};
use crate::stage::{Done, Operation};
use crate::work::send;

pub struct Send {
    request: Http2Request,
    place: Place,
    agent: Agent,
}

impl Send {
    pub fn new(place: &Place, agent: Agent) -> Self {
        Self { request: Http2Request::new(place, place.send(TEXT)), place: place.clone(), agent }
    }
}

impl Operation for Send {
    type Connection = Http2;

    async fn once(&mut self, connection: &mut Http2, number: u64) -> Result<Done, Wrong> {
        let reply = connection.send(&mut self.request, number).await?;
        let (status, body) = (reply.status, reply.whole().await?);
        send::answered(&Reply { status, body: &body }, &self.place, self.agent, number)?;
        Ok(Done::ONE)
    }
}

pub struct Stream {
    request: Http2Request,
    spelling: Spelling,
    chunks: u64,
}

impl Stream {
    /// None where there are no streams.
    pub fn new(place: &Place, chunks: u64) -> Option<Self> {
        let request = Http2Request::new(place, place.stream(&format!("stream {chunks} 0"))?);
        Some(Self { request, spelling: place.spelling(), chunks })
    }
}

impl Operation for Stream {
    type Connection = Http2;

    async fn once(&mut self, connection: &mut Http2, number: u64) -> Result<Done, Wrong> {
        let mut events = connection.stream(&mut self.request, number).await?;
        let mut order = Order::new(self.chunks, self.spelling);
        let mut first = None;
        while let Some(frame) = events.frame().await? {
            first.get_or_insert_with(Instant::now);
            order.take(frame)?;
        }
        order.end()?;
        Ok(Done { operations: order.frames(), first })
    }
}
