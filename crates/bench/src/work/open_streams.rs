//! Many streams that are open at the same time and have nothing to say, until all of them get their end.

use std::time::{Duration, Instant};

use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::check::{Order, Wrong};
use crate::connection::Connection;
use crate::place::Place;
use crate::run::Progress;
use crate::stage::{PATIENCE, Tally};

/// So many connect at the same time.
const AT_ONCE: usize = 50;

pub struct Outcome {
    pub tally: Tally,
    /// What the server used more of when all were open than before.
    pub grown: Option<u64>,
    pub time: Duration,
}

/// Opens the streams, looks, and reads them to the end. None where there are no streams.
pub async fn all(
    place: &Place,
    count: usize,
    resident: impl Fn() -> Option<u64>,
    progress: &mut dyn FnMut(Progress),
) -> Result<Option<Outcome>, Wrong> {
    // Everybody is there before the first one ends.
    let quiet = Duration::from_secs(3) + Duration::from_millis(count as u64 * 2);
    let text = format!("slow {} bench", quiet.as_secs_f64());
    if place.stream(&text).is_none() {
        return Ok(None);
    }
    let before = resident();
    let began = Instant::now();
    let mut tally = Tally::default();
    let mut open = vec![];
    for group in (0..count).collect::<Vec<_>>().chunks(AT_ONCE) {
        let mut opening = JoinSet::new();
        for number in group {
            opening.spawn(begin(place.clone(), text.clone(), *number as u64 + 1));
        }
        while let Some(joined) = opening.join_next().await {
            match joined {
                Ok(Ok(stream)) => open.push(stream),
                Ok(Err(wrong)) => tally.wrong(&wrong),
                Err(error) => tally.wrong(&format!("a stream broke: {error}")),
            }
        }
        progress(Progress { done: open.len() as u64, elapsed: began.elapsed() });
    }
    if began.elapsed() > quiet {
        return Err(Wrong::Lost(format!("{count} streams took longer than {quiet:?} to open; use fewer")));
    }
    let grown = resident().zip(before).map(|(after, before)| after.saturating_sub(before));
    let mut reading = JoinSet::new();
    for (mut connection, mut order) in open {
        reading.spawn(async move {
            while connection.frames(|frame| order.take(frame)).await? {}
            order.end()
        });
    }
    let deadline = began + quiet * 2 + PATIENCE;
    let left = || deadline.saturating_duration_since(Instant::now());
    while let Some(joined) = timeout(left(), reading.join_next()).await.unwrap_or(None) {
        match joined {
            Ok(Ok(())) => tally.operations += 1,
            Ok(Err(wrong)) => tally.wrong(&wrong),
            Err(error) => tally.wrong(&format!("a stream broke: {error}")),
        }
    }
    if !reading.is_empty() {
        tally.wrong(&format!("{} streams got no end", reading.len()));
    }
    Ok(Some(Outcome { tally, grown, time: began.elapsed() }))
}

/// A stream that has come as far as it will for a while: submitted, working.
async fn begin(place: Place, text: String, number: u64) -> Result<(Connection, Order), Wrong> {
    let mut connection = Connection::open(place.address).await?;
    let mut request = place.stream(&text).expect("it has streams");
    connection.stream(request.numbered(number)).await?;
    let mut order = Order::new(0, place.spelling());
    for _ in 0..2 {
        let frame = connection.frame().await?.ok_or_else(|| Wrong::Lost("a stream ended at once".into()))?;
        order.take(frame)?;
    }
    Ok((connection, order))
}
