//! Many streams on one HTTP/2 connection, and cancels that must get through between them.

use std::time::{Duration, Instant};

use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::check::Wrong;
use crate::http2::{Http2, Http2Request, Reply};
use crate::place::Place;
use crate::request::Request;
use crate::run::Progress;
use crate::stage::{Connect, PATIENCE, Tally};

/// So many are opened at the same time.
const AT_ONCE: usize = 50;
/// So many cancels are timed, while the other streams are open.
const TIMED: usize = 50;
/// Long enough for any measurement; all are canceled.
const WORKS_FOR: &str = "slow 3600 bench";

pub struct Outcome {
    /// Streams that ended as they should. The latency is that of cancels.
    pub tally: Tally,
    /// What the server used more of when all were open than before.
    pub grown: Option<u64>,
    pub time: Duration,
}

/// A stream that is open, and its task.
struct Open {
    id: String,
    events: Reply,
    first_event: Duration,
}

/// Opens the streams, cancels some of the tasks one after the other and then all the rest. None where there are no
/// streams.
pub async fn all(
    place: &Place,
    count: usize,
    resident: impl Fn() -> Option<u64>,
    progress: &mut dyn FnMut(Progress),
) -> Result<Option<Outcome>, Wrong> {
    if place.stream(WORKS_FOR).is_none() {
        return Ok(None);
    }
    let mut connection = Http2::connect(place).await?;
    let before = resident();
    let began = Instant::now();
    let mut tally = Tally::default();
    let mut open = vec![];
    for group in (0..count).collect::<Vec<_>>().chunks(AT_ONCE) {
        let mut opening = JoinSet::new();
        for number in group {
            opening.spawn(begin(connection.clone(), place.clone(), *number as u64 + 1));
        }
        while let Some(joined) = opening.join_next().await {
            let stream = joined.map_err(|error| Wrong::Lost(format!("a stream broke: {error}")))??;
            tally.first_event.record(stream.first_event);
            open.push(stream);
        }
        progress(Progress { done: open.len() as u64, elapsed: began.elapsed() });
    }
    let grown = resident().zip(before).map(|(after, before)| after.saturating_sub(before));
    for (place_in_line, stream) in open.into_iter().enumerate() {
        let asked = Instant::now();
        let ended = timeout(PATIENCE, cancel(&mut connection, place, &stream.id)).await;
        let ended = ended.unwrap_or_else(|_| Err(Wrong::Lost("a cancel got no answer".into())));
        if place_in_line < TIMED {
            tally.latency.record(asked.elapsed());
        }
        let ended = match ended {
            Ok(()) => timeout(PATIENCE, has_end(stream.events, place)).await.unwrap_or_else(|_| Err(no_end())),
            Err(wrong) => Err(wrong),
        };
        match ended {
            Ok(()) => tally.operations += 1,
            Err(wrong) => tally.wrong(&wrong),
        }
    }
    Ok(Some(Outcome { tally, grown, time: began.elapsed() }))
}

async fn begin(mut connection: Http2, place: Place, number: u64) -> Result<Open, Wrong> {
    let mut request = Http2Request::new(&place, place.stream(WORKS_FOR).expect("it has streams"));
    let asked = Instant::now();
    let mut events = connection.stream(&mut request, number).await?;
    loop {
        let frame = events.frame().await?.ok_or_else(|| Wrong::Lost("a stream ended at once".into()))?;
        if let Some(id) = place.task_id(frame.data) {
            return Ok(Open { id, events, first_event: asked.elapsed() });
        }
    }
}

async fn cancel(connection: &mut Http2, place: &Place, id: &str) -> Result<(), Wrong> {
    let mut request = Http2Request::new(place, Request::new(place.cancel(id)));
    let reply = connection.send(&mut request, 0).await?;
    let status = reply.status;
    let body = reply.whole().await?;
    match status == 200 && place.spelling().is_canceled(&body) {
        true => Ok(()),
        false => Err(Wrong::reply("a task was not canceled", status, &body)),
    }
}

/// Reads the stream to its end, which tells of the cancel.
async fn has_end(mut events: Reply, place: &Place) -> Result<(), Wrong> {
    let mut is_told = false;
    while let Some(frame) = events.frame().await? {
        is_told = place.spelling().is_canceled(frame.data);
    }
    if is_told { Ok(()) } else { Err(no_end()) }
}

fn no_end() -> Wrong {
    Wrong::Lost("the stream of a canceled task did not end with that".into())
}
