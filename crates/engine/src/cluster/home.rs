//! The home of a context: the node where an agent keeps the sessions of its conversations on a disk. And the bound of tasks that
//! wait for another node, or for their context.

use std::sync::Arc;

use sabir_model::{ContextId, Error};

use crate::Locality;
use crate::engine::{Engine, RegisteredAgent};
use crate::executor::Executor;
use crate::schedule::Queued;
use crate::topic::TopicKey;
use crate::wait_reason::WaitReason;

impl Engine {
    /// The node that should run the tasks of this context, if it is another one. A node that is gone is still the home of a
    /// context that needs it: the task is left for it, and whoever takes the task up ends it with a reason.
    pub(crate) async fn home_elsewhere(
        &self,
        addressed: &RegisteredAgent,
        TopicKey { owner, agent, .. }: &TopicKey,
        context: &ContextId,
    ) -> Result<Option<Arc<str>>, Error> {
        let locality = addressed.hosted.agent.locality();
        let Some(membership) = self.core.membership.as_ref().filter(|_| locality != Locality::Anywhere) else {
            return Ok(None);
        };
        let home = membership.cluster.home(owner, agent, context).await?;
        Ok(home.filter(|home| !home.is_gone || locality == Locality::NeedsHome).map(|home| home.node))
    }

    /// Whether a task that would wait for a slot of this node is left for any node instead. Where the runs of an agent are counted on
    /// all nodes, one that waits here would count as well, and other nodes could not use what is free.
    pub(crate) fn is_left_for_slot<T>(&self, executor: &Executor, queued: &Queued<T>) -> bool {
        self.core.membership.is_some()
            && executor.agent.hosted.limits.concurrent_total.is_some()
            && matches!(queued.wait_reason(), WaitReason::Slots { .. })
    }

    /// Refuses a task that would be left, if as many of its agent are left already as may wait in its queue.
    pub(crate) async fn check_left(&self, addressed: &RegisteredAgent) -> Result<(), Error> {
        let Some(membership) = &self.core.membership else { return Ok(()) };
        let left = membership.cluster.left_tasks(&addressed.hosted.id).await?;
        match left >= addressed.hosted.limits.queue as u64 {
            true => Err(Error::Busy(addressed.hosted.id.clone())),
            false => Ok(()),
        }
    }
}
