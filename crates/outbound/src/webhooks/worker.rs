//! A worker delivers what one webhook has to send, event by event, until it is at the end of the log, an attempt fails,
//! or its turn is over.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use futures_util::FutureExt;
use sabir_model::{Recorded, Seq, Task, Timestamp, TraceContext};
use sabir_store::{DeliveryKind, Due, Failure, GivenUpNo, StoreError};

use super::attempt::{Attempt, FailedAttempt};
use super::backoff;
use super::delivery_id::delivery_id;
use super::dispatcher::Shared;
use super::headers::DeliveryHead;
use super::log_reader::{LogReader, NextEvent, ReadError};
use super::payload;
use super::secrets::WebhookSecrets;

/// After so many deliveries, or so long, a worker makes room for others of the same receiver. The number is large because
/// every turn begins by folding the task from its first event.
const TURN: usize = 128;
const TURN_TIME: Duration = Duration::from_secs(1);

/// What a worker learnt of the receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It answered, with whatever status, after so long.
    Answers(Duration),
    /// It could not be reached.
    Unreachable,
    /// Nothing was sent.
    Nothing,
}

/// `read_at`: when `due` was read. If that is long ago, this process was frozen meanwhile: another node may have the delivery by now, so
/// nothing is sent, and the dispatcher looks again.
pub(super) async fn work(shared: Arc<Shared>, due: Due, read_at: Instant) -> Verdict {
    let mut verdict = Verdict::Nothing;
    if read_at.elapsed() > STALE {
        return verdict;
    }
    let worker = Worker { shared: &shared, due: &due };
    worker.finish(worker.deliver(&mut verdict)).await;
    verdict
}

/// Gives up the events that have waited too long for a receiver that could not be reached since then, and sends nothing.
pub(super) async fn give_up_old(shared: Arc<Shared>, due: Due, dead_since: Timestamp) -> Verdict {
    let worker = Worker { shared: &shared, due: &due };
    worker.finish(worker.give_up_old(dead_since)).await;
    Verdict::Nothing
}

const STORE_PAUSE: Duration = Duration::from_secs(1);
/// What was read longer ago may be somebody else's: less than the time after which others take over the work of a silent node.
const STALE: Duration = Duration::from_secs(3);

struct Worker<'a> {
    shared: &'a Shared,
    due: &'a Due,
}

/// How the next event has fared so far.
struct Trouble {
    attempts: u32,
    failing_since: Option<Timestamp>,
}

impl Worker<'_> {
    async fn finish(&self, work: impl Future<Output = Result<(), StoreError>>) {
        let done = std::panic::AssertUnwindSafe(work).catch_unwind().await;
        // What panics once may panic again: it must wait like any other failure.
        let done = match done {
            Ok(done) => done,
            Err(_) => self.has_panicked().await,
        };
        if let Err(error) = done {
            let (task_no, webhook) = (self.due.task.0, &self.due.settings.id);
            tracing::warn!(task_no, %webhook, %error, "a webhook cannot be read or noted; it will be tried again");
            // The store has trouble and the webhook is still due: this must not become a busy loop.
            tokio::time::sleep(STORE_PAUSE).await;
        }
    }

    async fn deliver(&self, verdict: &mut Verdict) -> Result<(), StoreError> {
        if let Some((given_up, event)) = self.due.retry {
            return self.deliver_again(given_up, event, verdict).await;
        }
        let began = Instant::now();
        let mut log = LogReader::new(self.shared, self.due.task, self.due.settings.events, self.due.sent);
        let mut trouble = Trouble { attempts: self.due.attempts, failing_since: self.due.failing_since };
        for _ in 0..TURN {
            let NextEvent { recorded, task, handled } = match log.next().await {
                Ok(Some(next)) => next,
                Ok(None) => {
                    self.shared.outbox.delivered(self.due.webhook, log.handled(), now()).await?;
                    return Ok(());
                }
                Err(ReadError::Damaged(reason)) => return self.give_up_rest(&reason).await,
                Err(ReadError::Store(error)) => return Err(error),
            };
            let attempt = self.attempt(&task, &recorded, trouble.attempts, verdict).await;
            match attempt {
                Attempt::Delivered(_) => {
                    self.shared.counts.count_delivered();
                    let stands = self.shared.outbox.delivered(self.due.webhook, handled, now()).await?;
                    if !stands || self.shared.is_stopping() || began.elapsed() >= TURN_TIME {
                        return Ok(());
                    }
                    log.keep(task, handled);
                    trouble = Trouble { attempts: 0, failing_since: None };
                }
                Attempt::Failed(failed) => {
                    // An artifact has no time of its own; the status before it is older.
                    let stored = task.status.time;
                    return self.failed(recorded.seq, stored, &trouble, failed).await;
                }
            }
        }
        Ok(())
    }

    async fn deliver_again(&self, given_up: GivenUpNo, event: Seq, verdict: &mut Verdict) -> Result<(), StoreError> {
        let mut log = LogReader::new(self.shared, self.due.task, self.due.settings.events, event.saturating_sub(1));
        let failure = match log.exactly(event).await {
            Ok(Some(NextEvent { recorded, task, .. })) => {
                match self.attempt(&task, &recorded, self.due.attempts, verdict).await {
                    Attempt::Delivered(_) => {
                        self.shared.counts.count_delivered();
                        None
                    }
                    Attempt::Failed(failed) => {
                        self.shared.counts.count_failed();
                        Some(failed.reason)
                    }
                }
            }
            Ok(None) => Some("the event is not in the log".to_owned()),
            Err(ReadError::Damaged(reason)) => Some(reason),
            Err(ReadError::Store(error)) => return Err(error),
        };
        let failure = failure.map(|reason| Failure { reason, time: now() });
        self.shared.outbox.retried(given_up, failure).await
    }

    /// `task` is as of the event.
    async fn attempt(&self, task: &Task, recorded: &Recorded, attempts: u32, verdict: &mut Verdict) -> Attempt {
        let settings = &self.due.settings;
        let key = self.shared.settings.seal_key.as_ref();
        let began = Instant::now();
        let attempt = match WebhookSecrets::unseal(key, &settings.url, &settings.secrets) {
            Err(error) => Attempt::Failed(FailedAttempt {
                reason: error.to_string(),
                has_answered: false,
                is_permanent: false,
                retry_after: None,
            }),
            Ok(secrets) => {
                let attempt = self.post(task, recorded, &secrets).await;
                *verdict = Verdict::of(&attempt, began.elapsed());
                attempt
            }
        };
        let (millis, attempts) = (began.elapsed().as_millis(), attempts + 1);
        // The URL is not logged: its path or query may hold a secret.
        let (task, webhook, receiver, event) = (&task.id, &settings.id, &settings.receiver, recorded.seq);
        match &attempt {
            Attempt::Delivered(status) => {
                let status = status.as_u16();
                tracing::info!(%task, %webhook, receiver, event, status, millis, "webhook delivered");
            }
            Attempt::Failed(FailedAttempt { reason, .. }) => {
                tracing::warn!(%task, %webhook, receiver, event, attempts, millis, reason, "webhook not delivered");
            }
        }
        attempt
    }

    async fn post(&self, task: &Task, recorded: &Recorded, secrets: &WebhookSecrets) -> Attempt {
        let settings = &self.due.settings;
        let body = payload::body(settings.dialect, task, recorded);
        let id = delivery_id(self.due.task, &task.id, &settings.id, recorded.seq);
        let timestamp = now().as_millis() / 1000;
        let trace = trace_of(task);
        let head = DeliveryHead { id: &id, timestamp, dialect: settings.dialect, secrets, trace };
        let headers = head.headers(&body, &self.shared.settings.signer);
        let answer = self.shared.client.post(&settings.url, headers, body.bytes, self.shared.settings.timeout).await;
        Attempt::of(answer, timestamp)
    }

    async fn failed(
        &self,
        event: Seq,
        stored: Timestamp,
        trouble: &Trouble,
        failed: FailedAttempt,
    ) -> Result<(), StoreError> {
        self.shared.counts.count_failed();
        let settings = &self.shared.settings;
        let time = now();
        // An event has waited in vain since it was stored or since the first failure, whichever is later.
        let began = trouble.failing_since.map_or(time, |since| since.max(stored));
        let failing_for = between(began, time);
        let left = settings.give_up_after.saturating_sub(failing_for);
        let failure = Failure { reason: failed.reason, time };
        if failed.is_permanent || left.is_zero() {
            return self.give_up(event, failure).await;
        }
        let longest = backoff::longest(settings.longest_delay, failing_for);
        let delay = backoff::delay(settings.first_delay, longest, trouble.attempts);
        // Whatever a receiver asks for, the last attempt is made when the time is up.
        let delay = delay.max(failed.retry_after.unwrap_or_default().min(left));
        self.shared.outbox.postpone(self.due.webhook, failure, after(time, delay)).await
    }

    async fn give_up(&self, event: Seq, failure: Failure) -> Result<(), StoreError> {
        self.shared.counts.count_given_up();
        let (task_no, webhook) = (self.due.task.0, &self.due.settings.id);
        tracing::error!(task_no, %webhook, event, reason = failure.reason, "webhook given up; `sabir push list` shows it");
        self.shared.outbox.give_up(self.due.webhook, event, failure).await
    }

    async fn give_up_old(&self, dead_since: Timestamp) -> Result<(), StoreError> {
        let mut log = LogReader::new(self.shared, self.due.task, self.due.settings.events, self.due.sent);
        let since = self.due.failing_since.map_or(dead_since, |since| since.min(dead_since));
        for _ in 0..TURN {
            let NextEvent { recorded, task, handled } = match log.next().await {
                Ok(Some(next)) => next,
                Ok(None) => {
                    self.shared.outbox.delivered(self.due.webhook, log.handled(), now()).await?;
                    return Ok(());
                }
                Err(ReadError::Damaged(reason)) => return self.give_up_rest(&reason).await,
                Err(ReadError::Store(error)) => return Err(error),
            };
            let (time, stored) = (now(), task.status.time);
            if between(since.max(stored), time) < self.shared.settings.give_up_after {
                // In its place, so that it is found when its own time is up.
                self.shared.outbox.retry(DeliveryKind::Pending, self.due.webhook.0, stored).await?;
                return Ok(());
            }
            let failure = Failure { reason: "the receiver could not be reached in time".to_owned(), time };
            self.give_up(recorded.seq, failure).await?;
            log.keep(task, handled);
        }
        Ok(())
    }

    async fn has_panicked(&self) -> Result<(), StoreError> {
        let (task_no, webhook) = (self.due.task.0, &self.due.settings.id);
        tracing::error!(task_no, %webhook, "a delivery failed by a fault of this program; it will be tried again");
        self.shared.counts.count_failed();
        let time = now();
        let failure = Failure { reason: "a fault of this program".to_owned(), time };
        match self.due.retry {
            Some((given_up, _)) => self.shared.outbox.retried(given_up, Some(failure)).await,
            None => {
                let settings = &self.shared.settings;
                let delay = backoff::delay(settings.first_delay, settings.longest_delay, self.due.attempts);
                self.shared.outbox.postpone(self.due.webhook, failure, after(time, delay)).await
            }
        }
    }

    /// The log cannot be read any further, so nothing behind can ever be sent.
    async fn give_up_rest(&self, reason: &str) -> Result<(), StoreError> {
        let last = self.shared.store.load(self.due.task).await?.map_or(self.due.sent, |task| task.seq);
        self.shared.counts.count_given_up();
        let failure = Failure { reason: reason.to_owned(), time: now() };
        self.shared.outbox.give_up(self.due.webhook, last, failure).await
    }
}

/// The trace of the caller's last message, which the newest events of the task come from.
fn trace_of(task: &Task) -> Option<&TraceContext> {
    let mut requests = task.history.iter().rev().filter_map(|message| message.request.as_deref());
    requests.find_map(|request| request.trace.as_ref())
}

impl Verdict {
    fn of(attempt: &Attempt, took: Duration) -> Self {
        match attempt {
            // It was not even dialled: the guard refused the URL.
            Attempt::Failed(FailedAttempt { has_answered: false, is_permanent: true, .. }) => Verdict::Nothing,
            Attempt::Failed(FailedAttempt { has_answered: false, .. }) => Verdict::Unreachable,
            Attempt::Delivered(_) | Attempt::Failed(_) => Verdict::Answers(took),
        }
    }
}

pub(super) fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

/// Nothing, if the first is the later one.
pub(super) fn between(first: Timestamp, second: Timestamp) -> Duration {
    Duration::from_millis(u64::try_from(second.as_millis().saturating_sub(first.as_millis())).unwrap_or(0))
}

pub(super) fn before(time: Timestamp, delay: Duration) -> Timestamp {
    Timestamp::from_millis(time.as_millis().saturating_sub(i64::try_from(delay.as_millis()).unwrap_or(i64::MAX)))
}

pub(super) fn after(time: Timestamp, delay: Duration) -> Timestamp {
    Timestamp::from_millis(time.as_millis().saturating_add(i64::try_from(delay.as_millis()).unwrap_or(i64::MAX)))
}
