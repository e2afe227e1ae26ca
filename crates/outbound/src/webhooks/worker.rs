//! A worker delivers what one webhook has to send, event by event, until it is at the end of the log or an attempt fails.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use sabir_model::{Event, Recorded, Seq, Task, Timestamp};
use sabir_store::{Due, Failure, StoreError};

use super::attempt::{Attempt, FailedAttempt};
use super::backoff;
use super::delivery_id::delivery_id;
use super::dispatcher::Shared;
use super::headers::DeliveryHead;
use super::payload::{self, is_wanted};
use super::secrets::WebhookSecrets;

/// Events that are read together.
const PAGE: usize = 32;
/// After so many deliveries a worker makes room for others of the same receiver.
const TURN: usize = 16;

/// What a worker learnt of the receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It answered, with whatever status.
    Answers,
    /// It could not be reached.
    Unreachable,
    /// Nothing was sent.
    Nothing,
}

pub(super) async fn work(shared: Arc<Shared>, due: Due) -> Verdict {
    let mut verdict = Verdict::Nothing;
    let worker = Worker { shared: &shared, due: &due };
    if let Err(error) = worker.deliver(&mut verdict).await {
        let (task_no, webhook) = (due.task.0, &due.settings.id);
        tracing::warn!(task_no, %webhook, %error, "a webhook cannot be read or noted; it will be tried again");
        // The store has trouble and the webhook is still due: this must not become a busy loop.
        tokio::time::sleep(STORE_PAUSE).await;
    }
    verdict
}

const STORE_PAUSE: Duration = Duration::from_secs(1);

struct Worker<'a> {
    shared: &'a Shared,
    due: &'a Due,
}

impl Worker<'_> {
    async fn deliver(&self, verdict: &mut Verdict) -> Result<(), StoreError> {
        if let Some((undelivered, event)) = self.due.retry {
            return self.deliver_again(undelivered, event, verdict).await;
        }
        let mut sent = self.due.sent;
        let mut attempts = self.due.attempts;
        for _ in 0..TURN {
            let Some(next) = self.next(sent).await? else { return Ok(()) };
            let attempt = self.attempt(&next.recorded).await?;
            *verdict = Verdict::of(&attempt);
            match attempt {
                Attempt::Delivered(_) => {
                    self.shared.counts.count_delivered();
                    self.shared.outbox.delivered(self.due.webhook, next.skipped_to, now()).await?;
                    (sent, attempts) = (next.skipped_to, 0);
                }
                Attempt::Failed(failed) => return self.failed(&next.recorded, attempts, failed).await,
            }
        }
        Ok(())
    }

    /// The next event that is wanted. Without any, everything up to the end of the log is handled.
    async fn next(&self, mut sent: Seq) -> Result<Option<Next>, StoreError> {
        loop {
            let page = match self.shared.store.events(self.due.task, sent, PAGE).await {
                Ok(page) => page,
                Err(StoreError::Damaged { reason, .. }) => {
                    self.give_up_rest(&reason).await?;
                    return Ok(None);
                }
                Err(error) => return Err(error),
            };
            let Some(last) = page.last().map(|recorded| recorded.seq) else {
                self.shared.outbox.delivered(self.due.webhook, sent, now()).await?;
                return Ok(None);
            };
            let mut events = page.into_iter().skip_while(|recorded| !self.is_wanted(&recorded.event));
            let Some(recorded) = events.next() else {
                sent = last;
                continue;
            };
            let unwanted = events.take_while(|recorded| !self.is_wanted(&recorded.event)).last();
            let skipped_to = unwanted.map_or(recorded.seq, |unwanted| unwanted.seq);
            return Ok(Some(Next { recorded, skipped_to }));
        }
    }

    fn is_wanted(&self, event: &Event) -> bool {
        is_wanted(self.due.settings.events, event)
    }

    async fn deliver_again(
        &self,
        undelivered: sabir_store::UndeliveredNo,
        event: Seq,
        verdict: &mut Verdict,
    ) -> Result<(), StoreError> {
        let page = self.shared.store.events(self.due.task, event.saturating_sub(1), 1).await;
        let failure = match page {
            Ok(page) => match page.into_iter().next() {
                Some(recorded) => {
                    let attempt = self.attempt(&recorded).await?;
                    *verdict = Verdict::of(&attempt);
                    match attempt {
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
                None => Some("the event is not in the log".to_owned()),
            },
            Err(StoreError::Damaged { reason, .. }) => Some(reason),
            Err(error) => return Err(error),
        };
        let failure = failure.map(|reason| Failure { reason, time: now() });
        self.shared.outbox.retried(undelivered, failure).await
    }

    async fn attempt(&self, recorded: &Recorded) -> Result<Attempt, StoreError> {
        let Due { task: no, settings, attempts, .. } = self.due;
        let task = match self.shared.store.load_at(*no, recorded.seq).await {
            Ok(Some(task)) => task,
            Ok(None) => return Ok(unreadable("the event is not in the log")),
            Err(StoreError::Damaged { reason, .. }) => return Ok(unreadable(&reason)),
            Err(error) => return Err(error),
        };
        let key = self.shared.settings.seal_key.as_ref();
        let began = Instant::now();
        let attempt = match WebhookSecrets::unseal(key, &settings.url, &settings.secrets) {
            Err(error) => Attempt::Failed(FailedAttempt {
                reason: error.to_string(),
                // Nothing was learnt of the receiver.
                has_answered: true,
                is_permanent: false,
                retry_after: None,
            }),
            Ok(secrets) => self.post(&task, recorded, &secrets).await,
        };
        let (millis, attempts) = (began.elapsed().as_millis(), attempts + 1);
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
        Ok(attempt)
    }

    async fn post(&self, task: &Task, recorded: &Recorded, secrets: &WebhookSecrets) -> Attempt {
        let Due { task: no, settings, .. } = self.due;
        let body = payload::body(settings.dialect, task, recorded);
        let id = delivery_id(*no, &settings.id, recorded.seq);
        let timestamp = now().as_millis() / 1000;
        let head = DeliveryHead { id: &id, timestamp, dialect: settings.dialect, secrets };
        let headers = head.headers(&body, &self.shared.settings.signer);
        let answer = self.shared.client.post(&settings.url, headers, body.bytes, self.shared.settings.timeout).await;
        Attempt::of(answer, timestamp)
    }

    async fn failed(&self, recorded: &Recorded, attempts: u32, failed: FailedAttempt) -> Result<(), StoreError> {
        self.shared.counts.count_failed();
        let settings = &self.shared.settings;
        let time = now();
        let failure = Failure { reason: failed.reason, time };
        let began = began(recorded, self.due.failing_since).unwrap_or(time);
        let waited = Duration::from_millis(u64::try_from(time.as_millis() - began.as_millis()).unwrap_or(0));
        if failed.is_permanent || waited >= settings.give_up_after {
            self.shared.counts.count_given_up();
            let (task_no, webhook, event) = (self.due.task.0, &self.due.settings.id, recorded.seq);
            tracing::error!(task_no, %webhook, event, reason = failure.reason, "webhook given up; `sabir push list` shows it");
            return self.shared.outbox.give_up(self.due.webhook, recorded.seq, failure).await;
        }
        let delay = backoff::delay(settings.first_delay, settings.longest_delay, attempts);
        let delay = delay.max(failed.retry_after.unwrap_or_default());
        let delay = i64::try_from(delay.as_millis()).unwrap_or(i64::MAX);
        let next = Timestamp::from_millis(time.as_millis().saturating_add(delay));
        self.shared.outbox.postpone(self.due.webhook, failure, next).await
    }

    /// The log cannot be read any further, so nothing behind can ever be sent.
    async fn give_up_rest(&self, reason: &str) -> Result<(), StoreError> {
        let last = self.shared.store.load(self.due.task).await?.map_or(self.due.sent, |task| task.seq);
        self.shared.counts.count_given_up();
        let failure = Failure { reason: reason.to_owned(), time: now() };
        self.shared.outbox.give_up(self.due.webhook, last, failure).await
    }
}

/// An event to be sent.
struct Next {
    recorded: Recorded,
    /// Everything up to here is handled when it is delivered: events that are not wanted follow it.
    skipped_to: Seq,
}

impl Verdict {
    fn of(attempt: &Attempt) -> Self {
        match attempt {
            Attempt::Failed(FailedAttempt { has_answered: false, is_permanent: false, .. }) => Verdict::Unreachable,
            Attempt::Delivered(_) | Attempt::Failed(_) => Verdict::Answers,
        }
    }
}

/// Since when an event has waited in vain: since it was stored, or since the first failure, whichever is later. `None`: it
/// is tried for the first time.
fn began(recorded: &Recorded, failing_since: Option<Timestamp>) -> Option<Timestamp> {
    match &recorded.event {
        Event::Status(change) => failing_since.map(|since| since.max(change.status.time)),
        Event::Created(_) | Event::Artifact(_) => failing_since,
    }
}

fn unreadable(reason: &str) -> Attempt {
    Attempt::Failed(FailedAttempt {
        reason: reason.to_owned(),
        has_answered: true,
        is_permanent: true,
        retry_after: None,
    })
}

pub(super) fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}
