//! Webhooks that clients set: with a message, or for a task that is there already.

use crate::client::{CallResult, Client};
use crate::dialect_client::{DialectClient, Operation, STREAMING_DIALECTS, Webhook};
use crate::ledger::{WebhookRecord, WebhookTask};

/// So many of a hundred messages bring a webhook along.
const SHARE: u64 = 35;
/// A task with more events has webhooks for its statuses only: they are sent one after the other.
const FEW: u64 = 60;

impl Client<'_> {
    /// A webhook for a message with this text, or none. The gateway has no webhooks.
    pub fn webhook_of_message(&mut self, dialect: &DialectClient, text: &str) -> Option<Webhook> {
        if !dialect.can_stream() || !self.random.percent(SHARE) {
            return None;
        }
        let wants_all = self.random.percent(30) && has_few_events(text);
        Some(self.new_webhook(dialect, wants_all, WebhookTask::OfMessage(text.to_owned())))
    }

    /// Sets a webhook for a task of some client, whatever has become of that.
    pub fn set_webhook(&mut self) {
        let Some(task) = self.pools.recent.look(&mut self.random) else { return };
        // Those without streams have no webhooks.
        let dialect = self.random.one_of(STREAMING_DIALECTS);
        let webhook = self.new_webhook(dialect, false, WebhookTask::Task(task.clone()));
        // A task has no more than twenty.
        let too_many = dialect.not_asked_code();
        if let CallResult::Answer(_) = self.call(dialect, &Operation::SetWebhook(&task, &webhook), &[], &[too_many]) {
            self.ledger.record_webhook_set(&webhook.name);
        }
    }

    fn new_webhook(&mut self, dialect: &DialectClient, wants_all: bool, task: WebhookTask) -> Webhook {
        let name = self.new_name();
        let url = self.receivers.url(&name, &mut self.random);
        self.ledger.record_webhook(&name, WebhookRecord { task, dialect: dialect.index(), wants_all, set_at: None });
        Webhook { name, url, wants_all }
    }
}

fn has_few_events(text: &str) -> bool {
    let mut words = text.split(' ').skip_while(|word| *word != "stream").skip(1);
    words.next().and_then(|count| count.parse().ok()).unwrap_or(0) <= FEW
}
