//! Tasks that another node drives. Their topics are fed from the log: after a hint that the log has grown, and at intervals,
//! since hints may be lost.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};

use futures_util::{StreamExt, stream};
use sabir_model::{RunState, Seq, Task};
use sabir_store::{Hints, Store, StoreError, TaskNo, TaskOwner, TaskProgress};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use super::Membership;
use crate::LogEntry;
use crate::engine::{Core, Engine};
use crate::feed::Lease;
use crate::sharded::lock;
use crate::topic::{Reload, TopicKey};

/// A topic that is further behind than this is read anew instead of event by event.
const MAX_CATCH_UP: u64 = 1024;
/// How many events are read at once.
const PAGE: usize = 256;
/// How many topics catch up at the same time.
const AT_ONCE: usize = 16;

/// A task that a caller wants something of, with its topic as new as the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Loaded {
    Missing,
    /// This node drives the task, or may: nobody else does.
    Here,
    /// Nobody drives the task, but something is to run. Whoever adds a message leaves it so.
    Left,
    /// Another node drives the task.
    Elsewhere,
}

/// The topics that somebody on this node waits for, by number of their task.
#[derive(Default)]
pub(crate) struct Followed {
    topics: Mutex<HashMap<TaskNo, FollowedTopic>>,
    /// Notified when a topic was added.
    added: Notify,
}

struct FollowedTopic {
    key: TopicKey,
    readers: usize,
    /// Nobody has looked at the log since it was added.
    is_new: bool,
}

/// Keeps a topic followed.
pub(crate) struct FollowGuard {
    followed: Arc<Followed>,
    no: TaskNo,
}

impl Drop for FollowGuard {
    fn drop(&mut self) {
        let mut topics = lock(&self.followed.topics);
        if let Some(topic) = topics.get_mut(&self.no) {
            topic.readers -= 1;
            if topic.readers == 0 {
                topics.remove(&self.no);
            }
        }
    }
}

impl Followed {
    fn add(self: &Arc<Self>, no: TaskNo, key: &TopicKey) -> FollowGuard {
        let mut topics = lock(&self.topics);
        let new = || FollowedTopic { key: key.clone(), readers: 0, is_new: true };
        let topic = topics.entry(no).or_insert_with(new);
        topic.readers += 1;
        if topic.key != *key {
            // The task has another owner since, and nobody may see the rest of it by the old key.
            (topic.key, topic.is_new) = (key.clone(), true);
        }
        drop(topics);
        self.added.notify_one();
        FollowGuard { followed: self.clone(), no }
    }

    /// The topics that these hints concern, and those that were added since the last look.
    fn concerned(&self, hints: &Hints) -> Vec<(TaskNo, TopicKey)> {
        let mut topics = lock(&self.topics);
        if hints.all {
            topics.values_mut().for_each(|topic| topic.is_new = false);
            return topics.iter().map(|(no, topic)| (*no, topic.key.clone())).collect();
        }
        let mut concerned = Vec::new();
        for (no, topic) in topics.iter_mut() {
            if std::mem::take(&mut topic.is_new) {
                concerned.push((*no, topic.key.clone()));
            }
        }
        for no in &hints.tasks {
            if let Some(topic) = topics.get(no) {
                concerned.push((*no, topic.key.clone()));
            }
        }
        concerned
    }
}

impl Core {
    /// Keeps the topic as new as the store, as long as the guard exists. `None`: this engine is alone.
    pub(crate) fn follow(&self, lease: &Lease) -> Option<FollowGuard> {
        let membership = self.membership.as_ref()?;
        Some(membership.followed.add(lease.no()?, &lease.key))
    }
}

impl Engine {
    /// Loads the topic of a task. Beside other nodes, a topic without a driver may be older than the store, so it catches up.
    pub(crate) async fn load(&self, lease: &Lease) -> Result<Loaded, StoreError> {
        let store = &*self.core.store;
        if !lease.load(store).await? {
            return Ok(Loaded::Missing);
        }
        let Some(membership) = self.core.membership.as_ref().filter(|_| lease.driver().is_none()) else {
            return Ok(Loaded::Here);
        };
        let Some(no) = lease.no() else { return Ok(Loaded::Missing) };
        let known = lease.position().seq;
        let progress = membership.cluster.progress(vec![no]).await?.pop();
        let Some(progress) = progress.filter(|progress| progress.belongs_to == lease.key.owner) else {
            // It was deleted, or given to another owner, and whoever opens its topic next must not find this one.
            self.core.topic_cache.forget(lease);
            self.core.feed.detach(lease);
            return Ok(Loaded::Missing);
        };
        catch_up(store, lease, &progress, known).await?;
        Ok(match progress.owner {
            // This node has just claimed it, or its driver was lost: recovery decides about its run and its inbox first.
            TaskOwner::ThisNode
                if lease.driver().is_none() && (progress.has_message || lease.with_task(has_run) == Some(true)) =>
            {
                Loaded::Left
            }
            TaskOwner::Nobody | TaskOwner::ThisNode => Loaded::Here,
            TaskOwner::Left => Loaded::Left,
            TaskOwner::Other(_) => Loaded::Elsewhere,
        })
    }

    /// Whether what the topic shows is the newest: its driver is here, or there are no other nodes. While an append is in
    /// progress, other nodes may show what it stored before this one does, and no reader may see an older task after that.
    pub(crate) fn is_current(&self, lease: &Lease) -> bool {
        self.core.membership.is_none() || lease.is_whole()
    }

    /// Listens to other nodes, and looks at the store at intervals.
    pub(super) fn keep_following(&self, membership: &Membership) {
        let (cluster, followed) = (membership.cluster.clone(), membership.followed.clone());
        let core = Arc::downgrade(&self.core);
        let mut left = self.core.left.subscribe();
        tokio::spawn(async move {
            // Between two looks at everything there may be any number of hints, which must not put the next one off.
            let mut next_look = Instant::now() + cluster.poll_interval();
            loop {
                let hints = tokio::select! {
                    hints = cluster.hints() => match hints {
                        Ok(hints) => hints,
                        Err(StoreError::Closed) => return,
                        Err(_) => Hints { all: true, ..Hints::default() },
                    },
                    () = followed.added.notified() => Hints::default(),
                    () = sleep_until(next_look) => Hints { all: true, forwarded: true, ..Hints::default() },
                    _ = left.wait_for(|left| *left) => return,
                };
                let is_look = hints.all;
                let Some(core) = core.upgrade() else { return };
                Engine { core }.take_hints(hints).await;
                if is_look {
                    next_look = Instant::now() + cluster.poll_interval();
                }
            }
        });
    }

    async fn take_hints(&self, hints: Hints) {
        let Some(membership) = &self.core.membership else { return };
        if hints.forwarded || hints.all {
            membership.forwards_changed.notify_waiters();
            self.accept_forwarded();
        }
        if hints.left || hints.all {
            membership.claim_soon();
        }
        let concerned = membership.followed.concerned(&hints);
        let foreign: HashMap<TaskNo, (Lease, Seq)> = concerned
            .into_iter()
            .filter_map(|(no, TopicKey { owner, agent, task })| {
                let lease = self.core.feed.find(&owner, Some(&agent), &task)?;
                let known = lease.position().seq;
                lease.driver().is_none().then_some((no, (lease, known)))
            })
            .collect();
        if foreign.is_empty() {
            return;
        }
        let progress = match membership.cluster.progress(foreign.keys().copied().collect()).await {
            Ok(progress) => progress,
            Err(error) => return tracing::warn!(%error, "cannot look at tasks of other nodes; will try again"),
        };
        let is_of_topic = |progress: &TaskProgress| {
            foreign.get(&progress.task).is_some_and(|(lease, _)| lease.key.owner == progress.belongs_to)
        };
        let progress: Vec<TaskProgress> = progress.into_iter().filter(is_of_topic).collect();
        let found: HashSet<TaskNo> = progress.iter().map(|progress| progress.task).collect();
        let catch_up_all = stream::iter(progress).for_each_concurrent(AT_ONCE, |progress| {
            let followed = foreign.get(&progress.task);
            async move {
                if let Some((lease, known)) = followed
                    && let Err(error) = catch_up(&*self.core.store, lease, &progress, *known).await
                {
                    tracing::warn!(task = %lease.key.task, %error, "cannot read a task of another node; will try again");
                }
            }
        });
        catch_up_all.await;
        // Retention has deleted the others, or an operator has given them to another owner.
        for (no, (lease, _)) in foreign {
            if !found.contains(&no) {
                lease.abandon();
            }
        }
    }
}

/// Whether a run is due or under way.
fn has_run(task: &Task) -> bool {
    matches!(task.run_state(), RunState::Queued | RunState::Active)
}

/// Shows what the log has more than the topic, unless the task has a driver here by now. `known_before`: how far the topic was
/// before the store was asked for the progress; it may be further by now, since others look too.
async fn catch_up(
    store: &dyn Store,
    lease: &Lease,
    progress: &TaskProgress,
    known_before: Seq,
) -> Result<(), StoreError> {
    if progress.seq < known_before {
        // The database has lost events, after a failover to a standby that was behind.
        lease.reload_foreign(store, progress.task, Reload::Always).await?;
    }
    loop {
        let known = lease.position().seq;
        if progress.seq <= known {
            break;
        }
        if progress.seq - known > MAX_CATCH_UP {
            lease.reload_foreign(store, progress.task, Reload::IfNewer).await?;
            break;
        }
        let events = store.events(progress.task, known, PAGE).await?;
        // What is newer than the progress comes with the next look: the inbox may have changed with it.
        let events = events.into_iter().filter(|recorded| recorded.seq <= progress.seq);
        let entries: Vec<Arc<LogEntry>> =
            events.map(|recorded| Arc::new(LogEntry::new(recorded.seq, recorded.event))).collect();
        if entries.is_empty() || !lease.show_foreign(&entries) {
            break;
        }
    }
    lease.set_foreign_activity(progress.has_message, progress.has_answer);
    Ok(())
}
