//! One measurement from the first look at the card to the report.

use std::cell::Cell;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::check::Wrong;
use crate::connection::Connection;
use crate::options::{Dialect, Options, Workload};
use crate::place::Place;
use crate::probe::{self, Agent, Found};
use crate::process::{self, Used};
use crate::report::{Report, Server};
use crate::stage::{self, Extent, Operation, Outcome, Tally};
use crate::work::get::{Get, GetLive};
use crate::work::list::{List, Pages};
use crate::work::running::Running;
use crate::work::send::{self, Collect, Send, SilentReceiver};
use crate::work::stream::Stream;
use crate::work::{fanout, http2_streams, open_streams, over_http2, stalled, wake_up};

/// Why there is nothing to report.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(
        "{0} is no address of a server; write http://HOST:PORT, with the path below which its card lies if there is one"
    )]
    BadUrl(String),
    #[error("https is not measured; give the plain http address behind your TLS proxy")]
    Https,
    #[error("cannot connect to {0}: {1}; is the server running there?")]
    Unreachable(String, String),
    #[error("{0} does not answer within {1} s")]
    Silent(String, u64),
    #[error("{0} is not an A2A server: {1}")]
    NotA2a(String, String),
    #[error("the server's card has no interface for the dialect {0}; choose another with --dialect")]
    NoDoor(&'static str),
    #[error("the server refuses a message of the dialect {0}: {1}")]
    Refused(&'static str, String),
    #[error(
        "{0} needs an agent that knows the words of Sabir's demo agent (`stream N MS`, `slow S`); this one does not echo"
    )]
    NeedsDemo(&'static str),
    #[error("the dialect {0} has no {1}")]
    NotSpoken(&'static str, &'static str),
    #[error("{0} is not measured in the dialect {1}; send, stream and http2 are")]
    NotMeasured(&'static str, &'static str),
    #[error("wake-up needs another server on the same store: --other URL")]
    NoOther,
    #[error("there is no process {0} on this machine whose use could be read from /proc")]
    NoProcess(u32),
    #[error("{0} cannot be set up: {1}")]
    SetUp(&'static str, Wrong),
}

/// How far it is, while it runs.
#[derive(Debug, Clone, Copy)]
pub struct Progress {
    pub done: u64,
    pub elapsed: Duration,
}

/// Runs the workload; `progress` is called a few times a second.
pub async fn run(options: &Options, progress: &mut dyn FnMut(Progress)) -> Result<Report, Error> {
    if let Some(pid) = options.pid {
        Used::by(pid).ok_or(Error::NoProcess(pid))?;
    }
    if options.dialect.is_over_http2() && !options.workload.has_http2() {
        return Err(Error::NotMeasured(options.workload.name(), options.dialect.name()));
    }
    let found = probe::find(options).await?;
    let needs_demo = !matches!(
        options.workload,
        Workload::Send | Workload::Webhook | Workload::Get | Workload::List | Workload::ListNewest
    );
    if needs_demo && found.agent != Agent::Demo {
        return Err(Error::NeedsDemo(options.workload.name()));
    }
    let notice = match found.agent {
        Agent::Demo => None,
        Agent::Completes => Some("the agent does not echo: texts are not checked, only that tasks complete"),
        Agent::Answers => {
            Some("the agent does not complete a task at once: only that it answers without an error is checked")
        }
    };
    let mut measured = measure(options, &found, progress).await?;
    let counts_readers = matches!(options.workload, Workload::Fanout | Workload::Stalled);
    let connections = if counts_readers { options.readers } else { options.connections };
    let seconds = measured.time.as_secs_f64();
    let per = |total: f64, count: f64| if count > 0.0 { total / count } else { 0.0 };
    let tally = &mut measured.tally;
    let used = measured.processor_time;
    let server = options.pid.map(|pid| Server {
        cpu_us_per_operation: used.map(|used| tenths(per(used.as_secs_f64() * 1e6, tally.operations as f64), 100.0)),
        cores: used.map(|used| tenths(per(used.as_secs_f64(), seconds), 100.0)),
        rss: process::resident(pid).unwrap_or(0),
        rss_per_stream: measured.grown.map(|grown| grown / connections.max(1) as u64),
    });
    Ok(Report {
        url: options.url.clone(),
        workload: options.workload.name(),
        dialect: options.dialect.name(),
        connections,
        seconds: tenths(seconds, 1000.0),
        unit: options.workload.unit(),
        operations: tally.operations,
        per_second: tenths(per(tally.operations as f64, seconds), 10.0),
        wrong: tally.wrong,
        first_wrong: tally.first_wrong.take(),
        latency_us: tally.latency.summary(),
        first_event_us: tally.first_event.summary(),
        alone_per_second: measured.alone.map(|rate| tenths(rate, 10.0)),
        server,
        notices: notice.into_iter().map(str::to_owned).collect(),
    })
}

struct Measured {
    tally: Tally,
    time: Duration,
    processor_time: Option<Duration>,
    grown: Option<u64>,
    /// Operations per second without those who do not read.
    alone: Option<f64>,
}

async fn measure(options: &Options, found: &Found, progress: &mut dyn FnMut(Progress)) -> Result<Measured, Error> {
    let Found { place, agent } = found;
    let workers = options.connections as u64;
    let set_up = |wrong| Error::SetUp(options.workload.name(), wrong);
    let no_streams = || Error::NotSpoken(options.dialect.name(), "streams");
    match options.workload {
        Workload::Send if options.dialect.is_over_http2() => {
            let all = (0..workers).map(|_| over_http2::Send::new(place, *agent)).collect();
            Ok(load(options, place, all, progress).await.finish())
        }
        Workload::Send => {
            let all = (0..workers).map(|_| Send::new(place, *agent)).collect();
            let mut loaded = load(options, place, all, progress).await;
            if options.dialect == Dialect::Gateway {
                collect(&mut loaded, place, *agent).await;
            }
            Ok(loaded.finish())
        }
        Workload::Webhook => {
            let receiver = SilentReceiver::new().map_err(|error| set_up(error.into()))?;
            let all: Option<Vec<Send>> = (0..workers).map(|_| Send::with_webhook(place, *agent, &receiver)).collect();
            let all = all.ok_or_else(|| Error::NotSpoken(options.dialect.name(), "webhooks in a send"))?;
            Ok(load(options, place, all, progress).await.finish())
        }
        Workload::Get => {
            let mut connection = Connection::open(place.address).await.map_err(|error| set_up(error.into()))?;
            let mut all = vec![];
            for worker in 0..workers {
                all.push(Get::new(place, *agent, &mut connection, worker).await.map_err(set_up)?);
            }
            Ok(load(options, place, all, progress).await.finish())
        }
        Workload::GetLive => {
            let mut all = vec![];
            for worker in 0..workers {
                all.push(GetLive::new(place, worker).await.map_err(set_up)?.ok_or_else(no_streams)?);
            }
            let mut loaded = load(options, place, all, progress).await;
            loaded.pause();
            for live in &loaded.outcome.operations {
                if let Err(wrong) = live.cancel().await {
                    loaded.outcome.tally.wrong(&wrong);
                }
            }
            Ok(loaded.finish())
        }
        Workload::List | Workload::ListNewest => {
            let pages = if options.workload == Workload::List { Pages::All } else { Pages::Newest };
            let all: Option<Vec<List>> = (0..workers).map(|_| List::new(place, pages)).collect();
            let all = all.ok_or_else(|| Error::NotSpoken(options.dialect.name(), "lists"))?;
            Ok(load(options, place, all, progress).await.finish())
        }
        Workload::Stream if options.dialect.is_over_http2() => {
            let all: Option<Vec<_>> = (0..workers).map(|_| over_http2::Stream::new(place, options.chunks)).collect();
            Ok(load(options, place, all.ok_or_else(no_streams)?, progress).await.finish())
        }
        Workload::Stream => {
            let all: Option<Vec<Stream>> = (0..workers).map(|_| Stream::new(place, options.chunks)).collect();
            Ok(load(options, place, all.ok_or_else(no_streams)?, progress).await.finish())
        }
        Workload::Fanout => fan_out(options, place, progress).await,
        Workload::OpenStreams => {
            let resident = || options.pid.and_then(process::resident);
            let before = used(options);
            let outcome = open_streams::all(place, options.connections, resident, progress).await.map_err(set_up)?;
            let open_streams::Outcome { tally, grown, time } = outcome.ok_or_else(no_streams)?;
            let processor_time = used(options).zip(before).map(|(after, before)| after.since(before));
            Ok(Measured { tally, time, processor_time, grown, alone: None })
        }
        Workload::ListRunning => {
            let no_lists = || Error::NotSpoken(options.dialect.name(), "lists");
            let running = Running::begin(place, options.chunks).await.map_err(set_up)?.ok_or_else(no_lists)?;
            let all: Option<Vec<List>> = (0..workers).map(|_| List::new(place, Pages::All)).collect();
            let mut loaded = load(options, place, all.ok_or_else(no_lists)?, progress).await;
            loaded.pause();
            if let Err(wrong) = running.end().await {
                loaded.outcome.tally.wrong(&wrong);
            }
            Ok(loaded.finish())
        }
        Workload::Stalled => {
            let resident = || options.pid.and_then(process::resident);
            let (chunks, readers) = (options.chunks, options.readers);
            let alone = stalled::round(place, 0, chunks, 1, resident, progress).await.map_err(set_up)?;
            let alone = alone.ok_or_else(no_streams)?;
            let before = used(options);
            let round = stalled::round(place, readers, chunks, 2, resident, progress).await.map_err(set_up)?;
            let stalled::Round { mut tally, time, grown } = round.ok_or_else(no_streams)?;
            let processor_time = used(options).zip(before).map(|(after, before)| after.since(before));
            let rate = alone.tally.operations as f64 / alone.time.as_secs_f64().max(f64::EPSILON);
            tally.wrong += alone.tally.wrong;
            Ok(Measured { tally, time, processor_time, grown, alone: Some(rate) })
        }
        Workload::Http2 => {
            let resident = || options.pid.and_then(process::resident);
            let before = used(options);
            let outcome = http2_streams::all(place, options.connections, resident, progress).await.map_err(set_up)?;
            let http2_streams::Outcome { tally, grown, time } = outcome.ok_or_else(no_streams)?;
            let processor_time = used(options).zip(before).map(|(after, before)| after.since(before));
            Ok(Measured { tally, time, processor_time, grown, alone: None })
        }
        Workload::WakeUp => wake_ups(options, place, progress).await,
    }
}

/// Rounds of one task each, until the time is over.
async fn fan_out(options: &Options, place: &Place, progress: &mut dyn FnMut(Progress)) -> Result<Measured, Error> {
    let began = Instant::now();
    let mut total = Measured {
        tally: Tally::default(),
        time: Duration::ZERO,
        processor_time: Some(Duration::ZERO),
        grown: None,
        alone: None,
    };
    let mut number = 1;
    while number == 1 || began.elapsed() < options.duration {
        let round = fanout::round(place, options.readers, options.chunks, number, || used(options));
        let round = round.await.map_err(|wrong| Error::SetUp("fanout", wrong))?;
        let round = round.ok_or_else(|| Error::NotSpoken(options.dialect.name(), "streams"))?;
        total.tally.add(round.tally);
        total.time += round.time;
        total.processor_time = total.processor_time.zip(round.processor_time).map(|(sum, more)| sum + more);
        number += 1;
        progress(Progress { done: total.tally.operations, elapsed: began.elapsed() });
    }
    Ok(total)
}

/// Rounds of a few tasks each, until the time is over.
async fn wake_ups(options: &Options, place: &Place, progress: &mut dyn FnMut(Progress)) -> Result<Measured, Error> {
    let url = options.other.clone().ok_or(Error::NoOther)?;
    let other = probe::find(&Options { url, ..options.clone() }).await?.place;
    let tasks = options.connections as u64;
    let (began, before) = (Instant::now(), used(options));
    let mut tally = Tally::default();
    let mut number = 1;
    while number == 1 || began.elapsed() < options.duration {
        let round = wake_up::round(place, &other, tasks, options.chunks, number).await;
        let round = round.map_err(|wrong| Error::SetUp("wake-up", wrong))?;
        tally.add(round.ok_or_else(|| Error::NotSpoken(options.dialect.name(), "streams"))?);
        number += tasks;
        progress(Progress { done: tally.operations, elapsed: began.elapsed() });
    }
    let processor_time = used(options).zip(before).map(|(after, before)| after.since(before));
    Ok(Measured { tally, time: began.elapsed(), processor_time, grown: None, alone: None })
}

/// A closed loop that has run, with the clocks still going.
struct Loaded<O> {
    outcome: Outcome<O>,
    before: Option<Used>,
    pid: Option<u32>,
    paused: Option<(Duration, Option<Duration>)>,
}

async fn load<O: Operation>(
    options: &Options,
    place: &Place,
    all: Vec<O>,
    progress: &mut dyn FnMut(Progress),
) -> Loaded<O> {
    let before = Cell::new(None);
    let extent = options.count.map_or(Extent::Time(options.duration), Extent::Count);
    let outcome = stage::perform(place, all, extent, || before.set(used(options)), progress).await;
    Loaded { outcome, before: before.get(), pid: options.pid, paused: None }
}

impl<O> Loaded<O> {
    /// What comes from now on is not measured.
    fn pause(&mut self) {
        let now = self.pid.and_then(Used::by);
        let used = now.zip(self.before).map(|(after, before)| after.since(before));
        self.paused.get_or_insert((self.outcome.started.elapsed(), used));
    }

    fn finish(mut self) -> Measured {
        self.pause();
        let (time, processor_time) = self.paused.unwrap_or_default();
        Measured { tally: self.outcome.tally, time, processor_time, grown: None, alone: None }
    }
}

/// A gateway has only promised; the work is done when the last run is, and then every run is asked for.
async fn collect(loaded: &mut Loaded<Send>, place: &Place, agent: Agent) {
    let sends = std::mem::take(&mut loaded.outcome.operations);
    for (id, _) in sends.iter().filter_map(|send| send.promised.last()) {
        let settled = async {
            let mut connection = Connection::open(place.address).await?;
            send::settled(&mut connection, place, id).await
        };
        if let Err(wrong) = tokio::time::timeout(stage::PATIENCE, settled).await.unwrap_or(Ok(())) {
            loaded.outcome.tally.wrong(&wrong);
        }
    }
    loaded.pause();
    let workers = sends.len();
    let promised: Vec<_> = sends.into_iter().flat_map(|send| send.promised).collect();
    let count = Extent::Count(promised.len() as u64);
    let collect = Collect { promised: Arc::new(Mutex::new(promised)), place: place.clone(), agent };
    let collected = stage::perform(place, vec![collect; workers], count, || {}, &mut |_| {}).await;
    loaded.outcome.tally.wrong += collected.tally.wrong;
    let first = loaded.outcome.tally.first_wrong.take().or(collected.tally.first_wrong);
    loaded.outcome.tally.first_wrong = first;
}

fn used(options: &Options) -> Option<Used> {
    options.pid.and_then(Used::by)
}

fn tenths(value: f64, parts: f64) -> f64 {
    (value * parts).round() / parts
}
