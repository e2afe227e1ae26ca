//! A message whose answer comes in chunks, read to the end.

use std::time::Instant;

use crate::check::{Order, Spelling, Wrong};
use crate::connection::Connection;
use crate::place::Place;
use crate::request::Request;
use crate::stage::{Done, Operation};

pub struct Stream {
    request: Request,
    spelling: Spelling,
    chunks: u64,
}

impl Stream {
    /// None where there are no streams.
    pub fn new(place: &Place, chunks: u64) -> Option<Self> {
        let request = place.stream(&format!("stream {chunks} 0"))?;
        Some(Self { request, spelling: place.spelling(), chunks })
    }
}

impl Operation for Stream {
    type Connection = Connection;

    async fn once(&mut self, connection: &mut Connection, number: u64) -> Result<Done, Wrong> {
        connection.stream(self.request.numbered(number)).await?;
        let mut order = Order::new(self.chunks, self.spelling);
        let mut first = None;
        while connection
            .frames(|frame| {
                first.get_or_insert_with(Instant::now);
                order.take(frame)
            })
            .await?
        {}
        order.end()?;
        Ok(Done { operations: order.frames(), first })
    }
}
