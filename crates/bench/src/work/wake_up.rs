//! A task with a reader at its own server and one at another server of the same store. What is timed is how much later the
//! second one gets each event.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::check::{Order, Wrong};
use crate::connection::Connection;
use crate::place::Place;
use crate::request::Request;
use crate::stage::{PATIENCE, Tally};

/// Between two chunks: so far apart that each has a wake-up of its own.
const PAUSE: Duration = Duration::from_millis(40);
/// The second reader joins while the task is still quiet.
const QUIET: Duration = Duration::from_millis(300);

/// So many tasks at the same time, each with so many chunks. The operations are the events that both readers got. None where
/// there are no streams.
pub async fn round(
    place: &Place,
    other: &Place,
    tasks: u64,
    chunks: u64,
    first_number: u64,
) -> Result<Option<Tally>, Wrong> {
    let mut all = JoinSet::new();
    for number in first_number..first_number + tasks {
        let text = format!("slow {} stream {chunks} {}", QUIET.as_secs_f64(), PAUSE.as_millis());
        let Some(begin) = place.stream(&text) else { return Ok(None) };
        all.spawn(one(place.clone(), other.clone(), begin, chunks, number));
    }
    let limit = PATIENCE + PAUSE * 2 * chunks as u32;
    let mut tally = Tally::default();
    while let Some(joined) = timeout(limit, all.join_next()).await.unwrap_or(None) {
        match joined {
            Ok(Ok(delays)) => {
                tally.operations += delays.len() as u64;
                delays.into_iter().for_each(|delay| tally.latency.record(delay));
            }
            Ok(Err(wrong)) => tally.wrong(&wrong),
            Err(error) => tally.wrong(&format!("a reader broke: {error}")),
        }
    }
    if !all.is_empty() {
        tally.wrong(&format!("{} tasks got no end", all.len()));
    }
    Ok(Some(tally))
}

async fn one(place: Place, other: Place, mut begin: Request, chunks: u64, number: u64) -> Result<Vec<Duration>, Wrong> {
    let mut own = Connection::open(place.address).await?;
    own.stream(begin.numbered(number)).await?;
    let mut own_order = Order::new(chunks, place.spelling());
    let frame = own.frame().await?.ok_or_else(|| Wrong::Lost("a stream ended at once".into()))?;
    let id = place.task_id(frame.data).ok_or_else(|| Wrong::event("an event names no task", frame.data))?;
    own_order.take(frame)?;

    let mut away = Connection::open(other.address).await?;
    let subscribe = other.subscribe(&id).expect("who has streams can subscribe");
    away.stream(Request::new(subscribe).numbered(number)).await?;
    let mut away_order = Order::new(chunks, other.spelling());
    let frame = away.frame().await?.ok_or_else(|| Wrong::Lost("a reader got nothing".into()))?;
    away_order.take(frame)?;

    let (at_home, at_other) = tokio::join!(arrivals(own, own_order), arrivals(away, away_order));
    let (at_home, at_other) = (at_home?, at_other?);
    Ok(at_other.iter().filter_map(|(id, there)| Some(there.saturating_duration_since(*at_home.get(id)?))).collect())
}

/// When each event came, by its number.
async fn arrivals(mut connection: Connection, mut order: Order) -> Result<HashMap<u64, Instant>, Wrong> {
    let mut arrivals = HashMap::new();
    while connection
        .frames(|frame| {
            arrivals.extend(frame.id.map(|id| (id, Instant::now())));
            order.take(frame)
        })
        .await?
    {}
    order.end()?;
    Ok(arrivals)
}
