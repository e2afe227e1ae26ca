//! One task that streams, one reader that keeps up, and many beside it that never read.

use std::time::{Duration, Instant};

use tokio::task::JoinSet;

use crate::check::{Order, Wrong};
use crate::connection::Connection;
use crate::place::Place;
use crate::request::Request;
use crate::run::Progress;
use crate::stage::Tally;

/// So many connect at the same time.
const AT_ONCE: usize = 50;

pub struct Round {
    /// What the reader that keeps up got.
    pub tally: Tally,
    /// From its first chunk to its end.
    pub time: Duration,
    /// What the server used more of at that end than before the first chunk.
    pub grown: Option<u64>,
}

/// None where there are no streams.
pub async fn round(
    place: &Place,
    stalled: usize,
    chunks: u64,
    number: u64,
    resident: impl Fn() -> Option<u64>,
    progress: &mut dyn FnMut(Progress),
) -> Result<Option<Round>, Wrong> {
    // The others come while the task is still quiet.
    let quiet = Duration::from_millis(1000 + stalled as u64 * 4);
    let text = format!("slow {} stream {chunks} 0", quiet.as_secs_f64());
    let Some(mut begin) = place.stream(&text) else { return Ok(None) };
    let mut reader = Connection::open(place.address).await?;
    let began = Instant::now();
    reader.stream(begin.numbered(number)).await?;
    let mut order = Order::new(chunks, place.spelling());
    let id = loop {
        let frame = reader.frame().await?.ok_or_else(|| Wrong::Lost("a stream ended at once".into()))?;
        order.take(frame)?;
        if let Some(id) = place.task_id(frame.data) {
            break id;
        }
    };
    let mut open = vec![];
    for group in (0..stalled).collect::<Vec<_>>().chunks(AT_ONCE) {
        let mut opening = JoinSet::new();
        for _ in group {
            opening.spawn(never_read(place.clone(), id.clone(), number));
        }
        while let Some(joined) = opening.join_next().await {
            open.push(joined.map_err(|error| Wrong::Lost(format!("a reader broke: {error}")))??);
        }
        progress(Progress { done: open.len() as u64, elapsed: began.elapsed() });
    }
    if began.elapsed() > quiet {
        return Err(Wrong::Lost(format!("{stalled} readers took longer than {quiet:?} to join; use fewer")));
    }
    let before = resident();
    let mut tally = Tally::default();
    let (mut first, early) = (None, order.frames());
    let read = async {
        while reader
            .frames(|frame| {
                first.get_or_insert_with(Instant::now);
                order.take(frame)
            })
            .await?
        {}
        order.end()
    };
    if let Err(wrong) = read.await {
        tally.wrong(&wrong);
    }
    let grown = resident().zip(before).map(|(after, before)| after.saturating_sub(before));
    tally.operations = order.frames() - early;
    let time = first.map_or(Duration::ZERO, |first| first.elapsed());
    tally.latency.record(time);
    // Until here, so that the server had to keep them.
    drop(open);
    Ok(Some(Round { tally, time, grown }))
}

/// A reader that gets the head of its stream and nothing more.
async fn never_read(place: Place, id: String, number: u64) -> Result<Connection, Wrong> {
    let mut connection = Connection::open_narrow(place.address).await?;
    let subscribe = place.subscribe(&id).expect("who has streams can subscribe");
    connection.stream(Request::new(subscribe).numbered(number)).await?;
    Ok(connection)
}
