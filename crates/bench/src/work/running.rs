//! Tasks with many events that are still at work, beside some that have ended: a page of a list, all together.
//!
//! A task has its events from its first turn, and works on because another message waits for it by then.

use tokio::task::JoinSet;

use crate::check::{Order, Wrong};
use crate::connection::Connection;
use crate::place::{PAGE, Place};
use crate::probe::TEXT;
use crate::request::Request;

/// So many tasks work; the rest of a page has ended.
const TASKS: u64 = 20;
/// The first turn begins so late that the second message is there before it ends.
const LEAD_IN: f64 = 0.5;
/// Long enough for any measurement; it is canceled after it.
const WORKS_FOR: &str = "slow 3600 bench";

pub struct Running {
    place: Place,
    ids: Vec<String>,
}

impl Running {
    /// Makes the tasks, each with so many chunks. None where the dialect has no lists.
    pub async fn begin(place: &Place, chunks: u64) -> Result<Option<Self>, Wrong> {
        if place.list("").is_none() {
            return Ok(None);
        }
        let mut connection = Connection::open(place.address).await?;
        let mut send = place.send(TEXT);
        for number in 0..PAGE - TASKS {
            let reply = connection.exchange(send.numbered(900_000_000_000 + number)).await?;
            if !place.spelling().is_completed(reply.body) {
                return Err(Wrong::reply("a task did not end", reply.status, reply.body));
            }
        }
        let mut beginning = JoinSet::new();
        for number in 0..TASKS {
            beginning.spawn(begin(place.clone(), chunks, 900_000_001_000 + number * 2));
        }
        let mut ids = vec![];
        while let Some(joined) = beginning.join_next().await {
            ids.push(joined.map_err(|error| Wrong::Lost(format!("a task broke: {error}")))??);
        }
        Ok(Some(Self { place: place.clone(), ids }))
    }

    /// Cancels them. Each is at work until then.
    pub async fn end(&self) -> Result<(), Wrong> {
        let mut connection = Connection::open(self.place.address).await?;
        for id in &self.ids {
            let mut cancel = Request::new(self.place.cancel(id));
            let reply = connection.exchange(cancel.numbered(0)).await?;
            if !self.place.spelling().is_canceled(reply.body) {
                return Err(Wrong::reply("a task did not work until it was canceled", reply.status, reply.body));
            }
        }
        Ok(())
    }
}

/// One task that has all its chunks and works on.
async fn begin(place: Place, chunks: u64, number: u64) -> Result<String, Wrong> {
    let mut stream = Connection::open(place.address).await?;
    let text = format!("slow {LEAD_IN} stream {chunks} 0");
    let mut begin = place.stream(&text).expect("who has lists has streams");
    stream.stream(begin.numbered(number)).await?;
    let mut order = Order::new(chunks, place.spelling());
    let id = loop {
        let frame = stream.frame().await?.ok_or_else(|| Wrong::Lost("a stream ended at once".into()))?;
        order.take(frame)?;
        if let Some(id) = place.task_id(frame.data) {
            break id;
        }
    };
    let mut follow_up = place.follow_up(&id, WORKS_FOR).expect("who has lists has follow-ups");
    let mut connection = Connection::open(place.address).await?;
    let reply = connection.exchange(follow_up.numbered(number + 1)).await?;
    if reply.status != 200 || place.task_id(reply.body).as_deref() != Some(id.as_str()) {
        return Err(Wrong::reply("a message to a task that works was not taken", reply.status, reply.body));
    }
    while !order.has_all_chunks() {
        if !stream.frames(|frame| order.take(frame)).await? {
            return Err(Wrong::Lost("a task ended although a message waited for it".into()));
        }
    }
    Ok(id)
}
