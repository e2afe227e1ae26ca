//! What one caller may have, so that it cannot use up what all share. A limit that is not set costs nothing.
//!
//! | limit                       | counted                                            | released                              |
//! |-----------------------------|----------------------------------------------------|---------------------------------------|
//! | `Limits::tasks_per_caller`  | tasks of an owner at the agent that they are addressed to: queued or working | when a task ends or waits for its caller; counted again when it resumes |
//! | `CallerLimits::open_streams`| streams of a caller                                | when the reader drops its stream      |
//! | `CallerLimits::stored_bytes`| what the tasks of an owner take in the store (`stored_bytes`) | when retention deletes tasks |
//! | `Limits::message_bytes`, `Limits::message_parts` | one message                   | nothing is kept                       |
//!
//! Only new tasks are refused, and by `stored_bytes` follow-up messages too, except to a task that waits for its caller. An
//! answer resumes its task beyond the limit: work that has begun can always be finished.

mod message_size;
mod places;
mod stored_bytes;

use sabir_model::{AgentId, Caller, CallerKey, Error, Owner};

pub(crate) use message_size::check_message_size;
pub(crate) use places::{Place, Places};
pub(crate) use stored_bytes::StoredBytes;

use crate::engine::{Core, Engine, RegisteredAgent};
use crate::topic::TopicKey;

/// The tasks of an owner at an agent.
pub(crate) type TaskPlace = Place<(Owner, AgentId)>;
pub(crate) type StreamPlace = Place<CallerKey>;

/// What one caller may have of the whole server; by default anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct CallerLimits {
    /// Streams that it reads at the same time.
    pub open_streams: Option<usize>,
    /// Bytes that its tasks take in the store.
    pub stored_bytes: Option<u64>,
}

impl CallerLimits {
    /// Streams that a caller reads at the same time; `None`: any number.
    pub fn open_streams(mut self, streams: impl Into<Option<usize>>) -> Self {
        self.open_streams = streams.into();
        self
    }

    /// Bytes that the tasks of an owner may take in the store before new ones are refused; `None`: any number. Callers
    /// without a credential are one owner.
    pub fn stored_bytes(mut self, bytes: impl Into<Option<u64>>) -> Self {
        self.stored_bytes = bytes.into();
        self
    }
}

/// When a caller may try again that has too many tasks or streams, in seconds. Nobody knows when one of them ends.
const RETRY_AFTER: u32 = 5;

impl Core {
    /// Takes a place for a task that exists, beyond the limit. `None`: the agent has no such limit.
    pub(crate) fn place_for_known_task(&self, task: &TopicKey) -> Option<TaskPlace> {
        let addressed = self.agents.binary_search_by(|registered| registered.hosted.id.cmp(&task.agent)).ok()?;
        self.agents[addressed].hosted.limits.tasks_per_caller?;
        Some(self.task_places.take((task.owner.clone(), task.agent.clone())))
    }
}

impl Engine {
    /// Takes a place for a new task of this owner. `None`: the agent has no such limit.
    pub(crate) fn place_for_new_task(
        &self,
        owner: &Owner,
        addressed: &RegisteredAgent,
    ) -> Result<Option<TaskPlace>, Error> {
        let Some(limit) = addressed.hosted.limits.tasks_per_caller else { return Ok(None) };
        let agent = &addressed.hosted.id;
        match self.core.task_places.take_within((owner.clone(), agent.clone()), limit) {
            Some(place) => Ok(Some(place)),
            None => Err(Error::LimitReached {
                sentence: format!(
                    "at most {} at once for you on agent {agent}; wait for one to end, or cancel one",
                    counted(limit, "task")
                ),
                retry_after: RETRY_AFTER,
            }),
        }
    }

    /// Takes a place for a stream. `None`: there is no such limit.
    pub(crate) fn place_for_stream(&self, caller: &Caller) -> Result<Option<StreamPlace>, Error> {
        let Some(limit) = self.core.settings.limits.open_streams else { return Ok(None) };
        match self.core.stream_places.take_within(CallerKey::from(caller), limit) {
            Some(place) => Ok(Some(place)),
            None => Err(Error::LimitReached {
                sentence: format!(
                    "at most {} at once for you; close one, or send without streaming and get the task",
                    counted(limit, "stream")
                ),
                retry_after: RETRY_AFTER,
            }),
        }
    }

    /// How many tasks and streams count against limits now, over all callers.
    pub fn counted_against_limits(&self) -> (usize, usize) {
        (self.core.task_places.total(), self.core.stream_places.total())
    }
}

fn counted(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}
