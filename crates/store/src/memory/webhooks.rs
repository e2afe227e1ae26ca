//! Webhooks and deliveries of the store in memory: the plain meaning of `crate::outbox`.

use std::collections::BTreeMap;
use std::sync::Arc;

use sabir_model::{PushConfigId, Seq, Timestamp};
use tokio::sync::Notify;

use super::{MemoryState, MemoryStore, MemoryTask, answer};
use crate::{
    Delivery, DeliveryCounts, DeliveryKind, Due, Failure, GivenUpNo, MAX_WEBHOOKS, Outbox, StoreError, StoreFuture,
    TaskNo, Webhook, WebhookEvents, WebhookNo, WebhookSet,
};

#[derive(Default)]
pub(super) struct Webhooks {
    last_webhook: u64,
    last_given_up: u64,
    all: BTreeMap<u64, Row>,
    given_up: BTreeMap<u64, GivenUp>,
}

struct Row {
    task: TaskNo,
    settings: Webhook,
    sent: Seq,
    due: Option<Timestamp>,
    attempts: u32,
    failing_since: Option<Timestamp>,
    reason: Option<String>,
}

struct GivenUp {
    task: TaskNo,
    webhook: PushConfigId,
    event: Seq,
    attempts: u32,
    failure: Failure,
    due: Option<Timestamp>,
}

impl Webhooks {
    pub fn of(&self, task: TaskNo) -> Vec<Webhook> {
        self.all.values().filter(|row| row.task == task).map(|row| row.settings.clone()).collect()
    }

    pub fn set(&mut self, entry: &MemoryTask, settings: Webhook, now: Timestamp) -> WebhookSet {
        let (task, last) = (entry.row.no, entry.row.seq);
        let before = self.all.iter().find(|(_, row)| row.task == task && row.settings.id == settings.id);
        let count = self.all.values().filter(|row| row.task == task).count();
        if before.is_none() && count >= MAX_WEBHOOKS {
            return WebhookSet::TooMany;
        }
        let (sent, due) = match before {
            Some((_, Row { sent, due: Some(_), .. })) => (*sent, Some(now)),
            _ if entry.row.state.is_terminal() => (last.saturating_sub(1), Some(now)),
            _ => (last, None),
        };
        self.insert(task, settings, sent, due);
        WebhookSet::Done
    }

    pub fn insert(&mut self, task: TaskNo, settings: Webhook, sent: Seq, due: Option<Timestamp>) {
        self.all.retain(|_, row| row.task != task || row.settings.id != settings.id);
        self.last_webhook += 1;
        let row = Row { task, settings, sent, due, attempts: 0, failing_since: None, reason: None };
        self.all.insert(self.last_webhook, row);
    }

    pub fn remove(&mut self, task: TaskNo, id: Option<&PushConfigId>) {
        let goes = |of: TaskNo, webhook: &PushConfigId| of == task && id.is_none_or(|id| webhook == id);
        self.all.retain(|_, row| !goes(row.task, &row.settings.id));
        self.given_up.retain(|_, row| !goes(row.task, &row.webhook));
    }

    /// Events were appended. Says whether something became due.
    pub fn appended(&mut self, task: TaskNo, has_status: bool, now: Timestamp) -> bool {
        let mut is_due = false;
        for row in self.all.values_mut().filter(|row| row.task == task && row.due.is_none()) {
            if has_status || row.settings.events == WebhookEvents::All {
                row.due = Some(now);
                is_due = true;
            }
        }
        is_due
    }

    pub fn has_due(&self, task: TaskNo) -> bool {
        self.all.values().any(|row| row.task == task && row.due.is_some())
    }

    fn advance(&mut self, number: u64, sent: Seq, last: Seq, now: Timestamp) -> bool {
        let Some(row) = self.all.get_mut(&number).filter(|row| row.due.is_some()) else { return false };
        row.sent = row.sent.max(sent);
        row.due = (last > sent).then_some(now);
        (row.attempts, row.failing_since, row.reason) = (0, None, None);
        true
    }

    /// How many have something to send, and since when the first of them waits.
    pub fn pending(&self) -> (u64, Option<Timestamp>) {
        let pending = self.all.values().filter_map(|row| row.due.map(|due| row.failing_since.unwrap_or(due)));
        (pending.clone().count() as u64, pending.min())
    }

    pub fn given_up_count(&self) -> u64 {
        self.given_up.len() as u64
    }

    fn receiver_of(&self, given_up: &GivenUp) -> Option<(u64, &Row)> {
        let is_it = |row: &Row| row.task == given_up.task && row.settings.id == given_up.webhook;
        self.all.iter().find(|(_, row)| is_it(row)).map(|(number, row)| (*number, row))
    }
}

impl MemoryState {
    fn advance(&mut self, number: u64, sent: Option<Seq>, now: Timestamp) -> bool {
        let task = self.webhooks.all.get(&number).map(|row| row.task);
        let last = task.and_then(|task| self.tasks.get(&task)).map_or(0, |entry| entry.row.seq);
        self.webhooks.advance(number, sent.unwrap_or(last), last, now)
    }

    fn delivery(&self, kind: DeliveryKind, number: u64) -> Option<Delivery> {
        let given_up = match kind {
            DeliveryKind::Pending => None,
            DeliveryKind::GivenUp => Some(self.webhooks.given_up.get(&number)?),
        };
        let webhook = match given_up {
            Some(given_up) => self.webhooks.receiver_of(given_up)?.1,
            None => self.webhooks.all.get(&number).filter(|row| row.due.is_some())?,
        };
        let entry = self.tasks.get(&webhook.task)?;
        Some(Delivery {
            kind,
            number,
            task_no: webhook.task,
            task: entry.row.task.clone(),
            agent: entry.row.agent.clone(),
            webhook: webhook.settings.id.clone(),
            url: webhook.settings.url.clone(),
            event: given_up.map_or(webhook.sent, |given_up| given_up.event),
            attempts: given_up.map_or(webhook.attempts, |given_up| given_up.attempts),
            reason: given_up.map_or(webhook.reason.clone(), |given_up| Some(given_up.failure.reason.clone())),
            since: given_up.map_or(webhook.failing_since, |given_up| Some(given_up.failure.time)),
            next: given_up.map_or(webhook.due, |given_up| given_up.due),
        })
    }
}

impl Outbox for MemoryStore {
    fn due_signal(&self) -> Arc<Notify> {
        self.due.clone()
    }

    fn receivers(&self) -> StoreFuture<'_, Vec<(String, Timestamp)>> {
        let state = self.lock();
        let webhooks = &state.webhooks;
        let pending = webhooks.all.values().filter_map(|row| Some((row.settings.receiver.clone(), row.due?)));
        let retries = webhooks.given_up.values().filter_map(|given_up| {
            let (_, row) = webhooks.receiver_of(given_up)?;
            Some((row.settings.receiver.clone(), given_up.due?))
        });
        let mut receivers: Vec<(String, Timestamp)> = pending.chain(retries).collect();
        receivers.sort();
        receivers.dedup_by(|later, first| later.0 == first.0);
        answer(Ok(receivers))
    }

    fn due(&self, receiver: &str, now: Timestamp, limit: usize) -> StoreFuture<'_, Vec<Due>> {
        let state = self.lock();
        let webhooks = &state.webhooks;
        let read = |number: u64, row: &Row, due: Timestamp| Due {
            webhook: WebhookNo(number),
            task: row.task,
            settings: row.settings.clone(),
            due,
            sent: row.sent,
            attempts: row.attempts,
            failing_since: row.failing_since,
            retry: None,
        };
        let is_due = |time: Option<Timestamp>| time.filter(|time| *time <= now);
        let pending = webhooks.all.iter().filter(|(_, row)| row.settings.receiver == receiver);
        let mut pending: Vec<(Timestamp, u64, &Row)> =
            pending.filter_map(|(number, row)| Some((is_due(row.due)?, *number, row))).collect();
        pending.sort_by_key(|(time, number, _)| (*time, *number));
        let pending = pending.into_iter().take(limit).map(|(time, number, row)| read(number, row, time));
        let retries = webhooks.given_up.iter().filter_map(|(number, given_up)| {
            let (webhook, row) = webhooks.receiver_of(given_up).filter(|(_, row)| row.settings.receiver == receiver)?;
            let retry = Some((GivenUpNo(*number), given_up.event));
            let (attempts, failing_since) = (given_up.attempts, Some(given_up.failure.time));
            Some(Due { retry, attempts, failing_since, ..read(webhook, row, is_due(given_up.due)?) })
        });
        let mut due: Vec<Due> = pending.chain(retries).collect();
        due.sort_by_key(|due| (due.due, due.retry.map(|(number, _)| number)));
        due.truncate(limit);
        answer(Ok(due))
    }

    fn failing_since(&self, receiver: &str) -> StoreFuture<'_, Option<Timestamp>> {
        let state = self.lock();
        let rows = state.webhooks.all.values().filter(|row| row.settings.receiver == receiver && row.due.is_some());
        answer(Ok(rows.filter_map(|row| row.failing_since).min()))
    }

    fn delivered(&self, webhook: WebhookNo, sent: Seq, now: Timestamp) -> StoreFuture<'static, bool> {
        answer(Ok(self.lock().advance(webhook.0, Some(sent), now)))
    }

    fn postpone(&self, webhook: WebhookNo, failure: Failure, next: Timestamp) -> StoreFuture<'static, ()> {
        if let Some(row) = self.lock().webhooks.all.get_mut(&webhook.0).filter(|row| row.due.is_some()) {
            row.attempts += 1;
            row.failing_since.get_or_insert(failure.time);
            row.reason = Some(failure.reason);
            row.due = Some(next);
        }
        answer(Ok(()))
    }

    fn give_up(&self, webhook: WebhookNo, event: Seq, failure: Failure) -> StoreFuture<'static, ()> {
        let mut state = self.lock();
        let row = state.webhooks.all.get(&webhook.0).filter(|row| row.due.is_some());
        if let Some(row) = row {
            let since = row.failing_since.unwrap_or(failure.time);
            let given_up = GivenUp {
                task: row.task,
                webhook: row.settings.id.clone(),
                event,
                attempts: row.attempts + 1,
                failure: failure.clone(),
                due: None,
            };
            state.webhooks.last_given_up += 1;
            let number = state.webhooks.last_given_up;
            state.webhooks.given_up.insert(number, given_up);
            state.advance(webhook.0, Some(event), failure.time);
            if let Some(row) = state.webhooks.all.get_mut(&webhook.0) {
                (row.failing_since, row.reason) = (Some(since), Some(failure.reason));
            }
        }
        self.due.notify_one();
        answer(Ok(()))
    }

    fn retried(&self, given_up: GivenUpNo, failure: Option<Failure>) -> StoreFuture<'static, ()> {
        let mut state = self.lock();
        let rows = &mut state.webhooks.given_up;
        match failure {
            None => drop(rows.remove(&given_up.0)),
            Some(failure) => {
                if let Some(given_up) = rows.get_mut(&given_up.0) {
                    (given_up.attempts, given_up.failure, given_up.due) = (given_up.attempts + 1, failure, None);
                }
            }
        }
        answer(Ok(()))
    }

    fn clock_was_set(&self, now: Timestamp, latest: Timestamp) -> StoreFuture<'static, ()> {
        let mut state = self.lock();
        let Webhooks { all, given_up, .. } = &mut state.webhooks;
        for row in all.values_mut() {
            let bound = if row.attempts == 0 { now } else { latest };
            row.due = row.due.map(|due| if due > bound { now } else { due });
        }
        for given_up in given_up.values_mut() {
            given_up.due = given_up.due.map(|due| due.min(now));
        }
        self.due.notify_one();
        answer(Ok(()))
    }

    fn deliveries(&self, kind: DeliveryKind, after: u64, limit: usize) -> StoreFuture<'_, Vec<Delivery>> {
        let state = self.lock();
        let numbers: Vec<u64> = match kind {
            DeliveryKind::Pending => state.webhooks.all.keys().copied().collect(),
            DeliveryKind::GivenUp => state.webhooks.given_up.keys().copied().collect(),
        };
        let later = numbers.into_iter().filter(|number| *number > after);
        answer(Ok(later.filter_map(|number| state.delivery(kind, number)).take(limit).collect()))
    }

    fn delivery_counts(&self) -> StoreFuture<'_, DeliveryCounts> {
        let count =
            move |kind| async move { Ok::<_, StoreError>(self.deliveries(kind, 0, usize::MAX).await?.len() as u64) };
        Box::pin(async move {
            let (pending, given_up) = (count(DeliveryKind::Pending).await?, count(DeliveryKind::GivenUp).await?);
            Ok(DeliveryCounts { pending, given_up })
        })
    }

    fn retry(&self, kind: DeliveryKind, number: u64, now: Timestamp) -> StoreFuture<'static, bool> {
        let mut state = self.lock();
        let due = match kind {
            DeliveryKind::Pending => {
                let row = state.webhooks.all.get_mut(&number).filter(|row| row.due.is_some());
                row.map(|row| &mut row.due)
            }
            DeliveryKind::GivenUp => state.webhooks.given_up.get_mut(&number).map(|given_up| &mut given_up.due),
        };
        let is_found = due.map(|due| *due = Some(now)).is_some();
        self.due.notify_one();
        answer(Ok(is_found))
    }

    fn discard(&self, kind: DeliveryKind, number: u64, now: Timestamp) -> StoreFuture<'static, bool> {
        let mut state = self.lock();
        let is_found = match kind {
            DeliveryKind::Pending => state.advance(number, None, now),
            DeliveryKind::GivenUp => state.webhooks.given_up.remove(&number).is_some(),
        };
        self.due.notify_one();
        answer(Ok(is_found))
    }
}
