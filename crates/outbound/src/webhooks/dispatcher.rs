//! The dispatcher: decides which webhooks are worked on now, so that no receiver delays another.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use sabir_model::Timestamp;
use sabir_store::{Due, GivenUpNo, Outbox, Store, StoreError, WebhookNo};
use tokio::task::JoinSet;

use super::attempt::LONGEST_WAIT;
use super::counts::DeliveryCounts;
use super::log_reader::Memory;
use super::receiver::{DeadSince, Pace, Receiver};
use super::seal::SealKey;
use super::signature::Signer;
use super::worker::{self, Verdict, after, before, between, now};
use crate::client::Client;

#[derive(Clone)]
pub struct DispatcherSettings {
    /// For one delivery, from the look-up to the answer.
    pub timeout: Duration,
    /// Deliveries under way to one receiver.
    pub per_receiver: usize,
    /// Deliveries under way in all.
    pub total: usize,
    /// Bytes of tasks and bodies that deliveries under way have in memory, besides those of small tasks.
    pub bytes: usize,
    /// Before the second attempt; each further wait is twice as long.
    pub first_delay: Duration,
    pub longest_delay: Duration,
    /// An event that cannot be delivered for so long is not tried any more.
    pub give_up_after: Duration,
    pub seal_key: Option<SealKey>,
    pub signer: Signer,
    /// Where deliveries are counted.
    pub counts: DeliveryCounts,
}

impl Default for DispatcherSettings {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(15),
            per_receiver: 64,
            total: 512,
            bytes: 128 << 20,
            first_delay: Duration::from_secs(1),
            longest_delay: Duration::from_secs(3600),
            give_up_after: Duration::from_secs(24 * 3600),
            seal_key: None,
            signer: Signer::default(),
            counts: DeliveryCounts::default(),
        }
    }
}

/// What every worker needs.
pub(super) struct Shared {
    pub store: Arc<dyn Store>,
    pub outbox: Arc<dyn Outbox>,
    pub client: Client,
    pub settings: DispatcherSettings,
    pub counts: DeliveryCounts,
    pub memory: Memory,
    is_stopping: AtomicBool,
}

impl Shared {
    /// Workers finish the delivery that is under way, and begin no other.
    pub fn is_stopping(&self) -> bool {
        self.is_stopping.load(Ordering::Relaxed)
    }
}

pub struct Dispatcher {
    shared: Arc<Shared>,
    receivers: HashMap<String, Receiver>,
    in_flight: HashSet<Job>,
    workers: JoinSet<Finished>,
    clock: Option<(Timestamp, Instant)>,
}

/// A worker has one of these at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Job {
    Webhook(WebhookNo),
    Retry(GivenUpNo),
}

struct Finished {
    receiver: String,
    job: Job,
    verdict: Verdict,
}

/// What is to become of something that is due.
#[derive(Debug, Clone, Copy)]
enum Plan {
    /// What is due was read then.
    Deliver { read_at: Instant },
    /// The receiver could not be reached since then. Events that have waited too long are given up untried: there may be more of
    /// them than probes go out.
    GiveUp { dead_since: Timestamp },
}

/// Whether a receiver can take more, and after how long there is something to do.
enum StartedAt {
    Waits(Duration),
    HasNoRoom(Duration),
}

/// When the store cannot be read, it is asked again after this.
const STORE_PAUSE: Duration = Duration::from_secs(1);
/// Whatever wakes it or not, it looks this often: a clock may have been set.
const LONGEST_SLEEP: Duration = Duration::from_secs(60);
/// When the server stops, deliveries that are due begin for so long.
const LAST_PASS: Duration = Duration::from_secs(1);
/// After that, for deliveries that are under way.
const LAST_MOMENT: Duration = Duration::from_secs(1);
/// Webhooks of a dead receiver that are looked through at the same time for events to give up.
const GIVE_UP_BATCH: usize = 16;
/// A look at all receivers costs time for each of them. It is followed by a pause of so many times that time, so that
/// thousands of receivers do not keep a processor busy.
const REST: u32 = 4;
/// Clocks drift, and are corrected by a little all the time.
const CLOCK_TOLERANCE: Duration = Duration::from_secs(1);

impl Dispatcher {
    pub fn new(store: Arc<dyn Store>, outbox: Arc<dyn Outbox>, client: Client, settings: DispatcherSettings) -> Self {
        let (memory, counts) = (Memory::new(settings.bytes), settings.counts.clone());
        let shared = Shared { store, outbox, client, settings, counts, memory, is_stopping: AtomicBool::new(false) };
        Self {
            shared: Arc::new(shared),
            receivers: HashMap::new(),
            in_flight: HashSet::new(),
            workers: JoinSet::new(),
            clock: None,
        }
    }

    pub fn counts(&self) -> DeliveryCounts {
        self.shared.counts.clone()
    }

    /// Delivers until `stop` resolves, and then for a moment what is due. One that is not noted by the end will be repeated
    /// after the next start, with the same id.
    pub async fn run(mut self, stop: impl Future<Output = ()>) {
        let signal = self.shared.outbox.due_signal();
        tokio::pin!(stop);
        loop {
            let began = Instant::now();
            let sleep = match self.start_due().await {
                Ok(sleep) => sleep.min(LONGEST_SLEEP),
                Err(error) => {
                    tracing::warn!(%error, "cannot read which webhooks are due; will try again");
                    STORE_PAUSE
                }
            };
            let rest = (began.elapsed() * REST).min(STORE_PAUSE);
            tokio::select! {
                () = &mut stop => break,
                () = tokio::time::sleep(rest) => {}
            }
            tokio::select! {
                () = &mut stop => break,
                () = signal.notified() => {}
                () = tokio::time::sleep(sleep.saturating_sub(rest)) => {}
                Some(finished) = self.workers.join_next() => self.note(finished),
            }
            while let Some(finished) = self.workers.try_join_next() {
                self.note(finished);
            }
        }
        let _ = tokio::time::timeout(LAST_PASS, self.deliver_rest()).await;
        self.shared.is_stopping.store(true, Ordering::Relaxed);
        let rest = async { while self.workers.join_next().await.is_some() {} };
        if tokio::time::timeout(LAST_MOMENT, rest).await.is_err() {
            tracing::info!("deliveries of webhooks were cut off; they will be repeated after the next start");
        }
    }

    /// Delivers until nothing more can be delivered now.
    async fn deliver_rest(&mut self) {
        while self.start_due().await.is_ok() && !self.workers.is_empty() {
            if let Some(finished) = self.workers.join_next().await {
                self.note(finished);
            }
        }
    }

    /// Starts what may be started now. Says after how long something becomes due that is not yet.
    async fn start_due(&mut self) -> Result<Duration, StoreError> {
        self.check_clock().await?;
        let (time, instant) = (now(), Instant::now());
        let mut sleep = LONGEST_SLEEP;
        self.shared.outbox.ignore(HashSet::new());
        let listed = self.shared.outbox.receivers().await?;
        let names: HashSet<&str> = listed.iter().map(|(name, _)| name.as_str()).collect();
        // Nothing has to be known of a receiver that nothing is to be sent to.
        self.receivers.retain(|name, receiver| receiver.in_flight > 0 || names.contains(name.as_str()));
        let mut due_receivers = Vec::with_capacity(listed.len());
        for (name, earliest) in &listed {
            match between(time, *earliest) {
                Duration::ZERO => {
                    let rank = self.receivers.entry(name.clone()).or_default().rank();
                    due_receivers.push((rank, *earliest, name.as_str()));
                }
                wait => sleep = sleep.min(wait),
            }
        }
        // The last places go to those who have the least and answer quickest.
        due_receivers.sort();
        let mut by_pace = [0; Pace::ALL.len()];
        for receiver in self.receivers.values() {
            by_pace[receiver.pace as usize] += receiver.in_flight;
        }
        let mut has_failed = None;
        let mut without_room = HashSet::new();
        for (_, _, name) in due_receivers {
            match self.start_at(name, &mut by_pace, time, instant).await {
                Ok(StartedAt::Waits(wait)) => sleep = sleep.min(wait),
                Ok(StartedAt::HasNoRoom(wait)) => {
                    sleep = sleep.min(wait);
                    without_room.insert(name.to_owned());
                }
                // It may be this receiver's rows alone.
                Err(error) => has_failed = Some(error),
            }
        }
        // What becomes due there is found when there is room again.
        self.shared.outbox.ignore(without_room);
        has_failed.map_or(Ok(sleep), Err)
    }

    /// Starts what is due at one receiver.
    async fn start_at(
        &mut self,
        name: &str,
        by_pace: &mut [usize; Pace::ALL.len()],
        time: Timestamp,
        instant: Instant,
    ) -> Result<StartedAt, StoreError> {
        let settings = &self.shared.settings;
        let receiver = self.receivers.entry(name.to_owned()).or_default();
        if let Some(until) = receiver.pause(instant) {
            self.give_up_old(name, time).await?;
            return Ok(StartedAt::HasNoRoom(until.saturating_duration_since(instant)));
        }
        let (pace, in_flight) = (receiver.pace, receiver.in_flight);
        let free = receiver.free(settings.per_receiver, instant);
        let free = free.min(pace.room(settings.total, by_pace));
        if free == 0 {
            // A worker that finishes makes room.
            return Ok(StartedAt::HasNoRoom(LONGEST_SLEEP));
        }
        // Also what is due later: while a delivery is under way, it hides from `receivers` when the next one is due.
        let end = Timestamp::from_millis(i64::MAX);
        let read_at = Instant::now();
        let rows = self.shared.outbox.due(name, end, in_flight + free).await?;
        let mut started = 0;
        for due in rows {
            if started == free {
                break;
            }
            match between(time, due.due) {
                Duration::ZERO if self.start(name, due, Plan::Deliver { read_at }) => {
                    started += 1;
                    by_pace[pace as usize] += 1;
                }
                Duration::ZERO => {}
                wait => return Ok(StartedAt::Waits(wait)),
            }
        }
        Ok(StartedAt::Waits(LONGEST_SLEEP))
    }

    /// Gives up what has been due at a dead receiver for too long. A worker that finishes makes room for the next.
    async fn give_up_old(&mut self, name: &str, time: Timestamp) -> Result<(), StoreError> {
        let receiver = self.receivers.entry(name.to_owned()).or_default();
        let dead_since = match receiver.dead_since() {
            None => return Ok(()),
            Some(DeadSince::Stored(since)) => since,
            Some(DeadSince::Seen(since)) => {
                let stored = self.shared.outbox.failing_since(name).await?;
                let since = stored.map_or(since, |stored| stored.min(since));
                receiver.is_dead_since(since);
                since
            }
        };
        let latest = before(time, self.shared.settings.give_up_after);
        if dead_since > latest {
            return Ok(());
        }
        let rows = self.shared.outbox.due(name, latest, GIVE_UP_BATCH).await?;
        for due in rows.into_iter().filter(|due| due.retry.is_none()) {
            self.start(name, due, Plan::GiveUp { dead_since });
        }
        Ok(())
    }

    /// `false`: it is under way already.
    fn start(&mut self, name: &str, due: Due, plan: Plan) -> bool {
        let job = due.retry.map_or(Job::Webhook(due.webhook), |(number, _)| Job::Retry(number));
        if !self.in_flight.insert(job) {
            return false;
        }
        self.receivers.entry(name.to_owned()).or_default().in_flight += 1;
        let (shared, receiver) = (self.shared.clone(), name.to_owned());
        self.workers.spawn(async move {
            let verdict = match plan {
                Plan::Deliver { read_at } => worker::work(shared, due, read_at).await,
                Plan::GiveUp { dead_since } => worker::give_up_old(shared, due, dead_since).await,
            };
            Finished { receiver, job, verdict }
        });
        true
    }

    fn note(&mut self, finished: Result<Finished, tokio::task::JoinError>) {
        let Ok(Finished { receiver, job, verdict }) = finished else { return };
        self.in_flight.remove(&job);
        let receiver = self.receivers.entry(receiver).or_default();
        receiver.in_flight = receiver.in_flight.saturating_sub(1);
        match verdict {
            Verdict::Answers(took) => receiver.has_answered(took),
            Verdict::Unreachable => receiver.has_failed(Instant::now(), now()),
            Verdict::Nothing => {}
        }
    }

    /// At the start, and when the clock was set back, nothing may be due later than our own rules allow.
    async fn check_clock(&mut self) -> Result<(), StoreError> {
        let (time, instant) = (now(), Instant::now());
        let is_set_back = self.clock.is_none_or(|(last_time, last_instant)| {
            after(time, CLOCK_TOLERANCE) < after(last_time, instant - last_instant)
        });
        if is_set_back {
            let longest = self.shared.settings.longest_delay.max(LONGEST_WAIT);
            self.shared.outbox.clock_was_set(time, after(time, longest)).await?;
        }
        self.clock = Some((time, instant));
        Ok(())
    }
}
