//! Many readers of one task: all of them are there before its chunks come, and all of them get everything.

use std::time::{Duration, Instant};

use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::check::{Order, Wrong};
use crate::connection::Connection;
use crate::place::Place;
use crate::process::Used;
use crate::request::Request;
use crate::stage::{PATIENCE, Tally};

pub struct Round {
    pub tally: Tally,
    /// From the first chunk that anyone got to the end of the last reader.
    pub time: Duration,
    /// Processor time of the server while the chunks were delivered.
    pub processor_time: Option<Duration>,
}

/// One task with so many chunks and so many readers. None where there are no streams.
pub async fn round(
    place: &Place,
    readers: usize,
    chunks: u64,
    number: u64,
    used: impl Fn() -> Option<Used>,
) -> Result<Option<Round>, Wrong> {
    // The readers come while the task is still quiet.
    let quiet = Duration::from_millis(500 + readers as u64 * 2);
    let text = format!("slow {} stream {chunks} 0", quiet.as_secs_f64());
    let Some(mut begin) = place.stream(&text) else { return Ok(None) };
    let mut author = Connection::open(place.address).await?;
    let began = Instant::now();
    author.stream(begin.numbered(number)).await?;
    let id = loop {
        let frame = author.frame().await?.ok_or_else(|| Wrong::Lost("a stream ended at once".into()))?;
        if let Some(id) = place.task_id(frame.data) {
            break id;
        }
    };
    // It is done as a reader; the others are those who are counted.
    drop(author);

    let mut joined = vec![];
    for _ in 0..readers {
        let mut connection = Connection::open(place.address).await?;
        let subscribe = place.subscribe(&id).expect("who has streams can subscribe");
        connection.stream(Request::new(subscribe).numbered(number)).await?;
        let mut order = Order::new(chunks, place.spelling());
        let frame = connection.frame().await?.ok_or_else(|| Wrong::Lost("a reader got nothing".into()))?;
        order.take(frame)?;
        joined.push((connection, order));
    }
    if began.elapsed() > quiet {
        return Err(Wrong::Lost(format!("{readers} readers took longer than {quiet:?} to join; use fewer")));
    }
    let before = used();
    let mut tasks = JoinSet::new();
    for (mut connection, mut order) in joined {
        tasks.spawn(async move {
            let early = order.frames();
            let mut first = None;
            while connection
                .frames(|frame| {
                    first.get_or_insert_with(Instant::now);
                    order.take(frame)
                })
                .await?
            {}
            order.end()?;
            Ok::<_, Wrong>((order.frames() - early, first.unwrap_or_else(Instant::now)))
        });
    }
    let mut tally = Tally::default();
    let mut start: Option<Instant> = None;
    let mut ends = vec![];
    while let Some(joined) = timeout(quiet + PATIENCE, tasks.join_next()).await.unwrap_or(None) {
        match joined {
            Ok(Ok((deliveries, first))) => {
                tally.operations += deliveries;
                start = Some(start.map_or(first, |start| start.min(first)));
                ends.push(Instant::now());
            }
            Ok(Err(wrong)) => tally.wrong(&wrong),
            Err(error) => tally.wrong(&format!("a reader broke: {error}")),
        }
    }
    if !tasks.is_empty() {
        tally.wrong(&format!("{} readers got no end", tasks.len()));
    }
    let start = start.unwrap_or_else(Instant::now);
    for end in &ends {
        tally.latency.record(*end - start);
    }
    let time = ends.last().map_or(Duration::ZERO, |end| *end - start);
    let processor_time = used().zip(before).map(|(after, before)| after.since(before));
    Ok(Some(Round { tally, time, processor_time }))
}
