//! The dispatcher: decides which webhooks are worked on now, so that no receiver delays another.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use sabir_model::Timestamp;
use sabir_store::{Due, Outbox, Store, StoreError, UndeliveredNo, WebhookNo};
use tokio::task::JoinSet;

use super::counts::DeliveryCounts;
use super::receiver::Receiver;
use super::seal::SealKey;
use super::signature::Signer;
use super::worker::{self, Verdict, now};
use crate::client::Client;

#[derive(Clone)]
pub struct DispatcherSettings {
    /// For one delivery, from the look-up to the answer.
    pub timeout: Duration,
    /// Deliveries under way to one receiver.
    pub per_receiver: usize,
    /// Deliveries under way in all.
    pub total: usize,
    /// Before the second attempt; each further wait is twice as long.
    pub first_delay: Duration,
    pub longest_delay: Duration,
    /// An event that cannot be delivered for so long is not tried any more.
    pub give_up_after: Duration,
    pub seal_key: Option<SealKey>,
    pub signer: Signer,
}

impl Default for DispatcherSettings {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(15),
            per_receiver: 8,
            total: 512,
            first_delay: Duration::from_secs(1),
            longest_delay: Duration::from_secs(3600),
            give_up_after: Duration::from_secs(24 * 3600),
            seal_key: None,
            signer: Signer::default(),
        }
    }
}

/// What every worker needs.
pub(super) struct Shared {
    pub store: Arc<dyn Store>,
    pub outbox: Arc<dyn Outbox>,
    pub client: Client,
    pub settings: DispatcherSettings,
    pub counts: Arc<DeliveryCounts>,
}

pub struct Dispatcher {
    shared: Arc<Shared>,
    receivers: HashMap<String, Receiver>,
    in_flight: HashSet<Job>,
    workers: JoinSet<Finished>,
}

/// A worker has one of these at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Job {
    Webhook(WebhookNo),
    Retry(UndeliveredNo),
}

struct Finished {
    receiver: String,
    job: Job,
    verdict: Verdict,
}

/// When the store cannot be read, it is asked again after this.
const STORE_PAUSE: Duration = Duration::from_secs(1);
/// Whatever wakes it or not, it looks this often: a clock may have been set.
const LONGEST_SLEEP: Duration = Duration::from_secs(60);

impl Dispatcher {
    pub fn new(store: Arc<dyn Store>, outbox: Arc<dyn Outbox>, client: Client, settings: DispatcherSettings) -> Self {
        let shared = Shared { store, outbox, client, settings, counts: Arc::default() };
        Self { shared: Arc::new(shared), receivers: HashMap::new(), in_flight: HashSet::new(), workers: JoinSet::new() }
    }

    pub fn counts(&self) -> Arc<DeliveryCounts> {
        self.shared.counts.clone()
    }

    /// Delivers until `stop` resolves. Deliveries that are under way then get a moment to be noted; one that is not will
    /// be repeated after the next start, with the same id.
    pub async fn run(mut self, stop: impl Future<Output = ()>) {
        let signal = self.shared.outbox.due_signal();
        tokio::pin!(stop);
        loop {
            let wake = match self.start_due().await {
                Ok(wake) => wake,
                Err(error) => {
                    tracing::warn!(%error, "cannot read which webhooks are due; will try again");
                    Some(Instant::now() + STORE_PAUSE)
                }
            };
            let wake = wake.unwrap_or_else(|| Instant::now() + LONGEST_SLEEP);
            tokio::select! {
                () = &mut stop => break,
                () = signal.notified() => {}
                () = tokio::time::sleep_until(wake.min(Instant::now() + LONGEST_SLEEP).into()) => {}
                Some(finished) = self.workers.join_next() => {
                    self.note(finished);
                    while let Some(finished) = self.workers.try_join_next() {
                        self.note(finished);
                    }
                }
            }
        }
        let rest = async { while self.workers.join_next().await.is_some() {} };
        if tokio::time::timeout(LAST_MOMENT, rest).await.is_err() {
            tracing::info!("deliveries of webhooks were cut off; they will be repeated after the next start");
        }
    }

    /// Starts what may be started now. Says when something becomes due that is not yet.
    async fn start_due(&mut self) -> Result<Option<Instant>, StoreError> {
        let mut wake: Option<Instant> = None;
        let mut wake_at = |moment: Instant| wake = Some(wake.map_or(moment, |wake| wake.min(moment)));
        for (name, earliest) in self.shared.outbox.receivers().await? {
            let (time, instant) = (now(), Instant::now());
            if earliest > time {
                wake_at(instant + until(time, earliest));
                continue;
            }
            let room = self.shared.settings.total.saturating_sub(self.in_flight.len());
            let receiver = self.receivers.entry(name.clone()).or_default();
            if let Some(moment) = receiver.pause(instant) {
                wake_at(moment);
                continue;
            }
            let free = receiver.free(self.shared.settings.per_receiver, instant).min(room);
            if free == 0 {
                // A worker that finishes makes room.
                continue;
            }
            let due = self.shared.outbox.due(&name, time, receiver.in_flight + free).await?;
            let mut started = 0;
            for due in due {
                let job = due.retry.map_or(Job::Webhook(due.webhook), |(number, _)| Job::Retry(number));
                if started < free && self.in_flight.insert(job) {
                    started += 1;
                    self.start(name.clone(), job, due);
                }
            }
        }
        self.receivers.retain(|_, receiver| !receiver.is_forgettable());
        Ok(wake)
    }

    fn start(&mut self, receiver: String, job: Job, due: Due) {
        self.receivers.entry(receiver.clone()).or_default().in_flight += 1;
        let shared = self.shared.clone();
        self.workers.spawn(async move {
            // In a task of its own, so that a panic is not one of the dispatcher's.
            let verdict = tokio::spawn(worker::work(shared, due)).await.unwrap_or(Verdict::Nothing);
            Finished { receiver, job, verdict }
        });
    }

    fn note(&mut self, finished: Result<Finished, tokio::task::JoinError>) {
        let Ok(Finished { receiver, job, verdict }) = finished else { return };
        self.in_flight.remove(&job);
        let receiver = self.receivers.entry(receiver).or_default();
        receiver.in_flight = receiver.in_flight.saturating_sub(1);
        match verdict {
            Verdict::Answers => receiver.has_answered(),
            Verdict::Unreachable => receiver.has_failed(Instant::now()),
            Verdict::Nothing => {}
        }
    }
}

/// For deliveries that are under way when the server stops.
const LAST_MOMENT: Duration = Duration::from_secs(2);

fn until(now: Timestamp, later: Timestamp) -> Duration {
    Duration::from_millis(u64::try_from(later.as_millis() - now.as_millis()).unwrap_or(0))
}
