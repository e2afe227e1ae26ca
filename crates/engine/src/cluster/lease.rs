//! The lease of this node. Other nodes take over its tasks when the lease has not been renewed for its grace time, so this
//! node begins no run without a confirmed lease, and gives up all its runs when it was declared dead.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::time::Instant;

use super::Membership;
use crate::drive::Control;
use crate::engine::{Core, Engine};

/// How long a stop waits for the database.
const LEAVE_TIME: Duration = Duration::from_secs(2);

/// Whoever has programs that must not run longer than the lease of their node. `sabir` wires the guards of programs here.
pub trait LeaseObserver: Send + Sync + 'static {
    /// The lease lasts until then.
    fn extended(&self, until: Instant);

    /// Others have all tasks of this node. Resolves when nothing works on them here any more; no run begins before that.
    fn lost(&self) -> BoxFuture<'static, ()>;
}

impl Engine {
    /// Tells the observer how long the lease lasts, and gives up all runs of this node when others have declared it dead.
    pub(super) fn keep_lease(&self, membership: &Membership) {
        let mut lease = membership.cluster.lease();
        let core = Arc::downgrade(&self.core);
        let observer = membership.observer.clone();
        let mut incarnation = lease.borrow().incarnation;
        membership.confirmed.send_replace(incarnation);
        tokio::spawn(async move {
            loop {
                let newest = *lease.borrow_and_update();
                if newest.incarnation != incarnation {
                    let Some(core) = core.upgrade() else { return };
                    let engine = Engine { core };
                    tracing::error!("this node was taken for dead, and others have its tasks; its runs stop");
                    engine.tell_drivers(|| Control::Lose { incarnation: newest.incarnation });
                    if let Some(observer) = &observer {
                        observer.lost().await;
                    }
                    incarnation = newest.incarnation;
                    if let Some(membership) = &engine.core.membership {
                        membership.confirmed.send_replace(incarnation);
                    }
                }
                if let Some(observer) = &observer {
                    observer.extended(newest.until);
                }
                if lease.changed().await.is_err() {
                    return;
                }
            }
        });
    }

    /// The last step of a stop, after webhooks were sent: other nodes may take what this one left at once.
    pub async fn leave_cluster(&self) {
        let Some(membership) = &self.core.membership else { return };
        self.core.left.send_replace(true);
        let left = tokio::time::timeout(LEAVE_TIME, membership.cluster.leave()).await;
        if !matches!(left, Ok(Ok(()))) {
            tracing::warn!("cannot tell the other nodes that this one stops; they will notice by themselves");
        }
    }
}

impl Core {
    /// How often this node has begun; 0 for an engine that is alone.
    pub(crate) fn incarnation(&self) -> u64 {
        self.membership.as_ref().map_or(0, |membership| membership.cluster.lease().borrow().incarnation)
    }

    /// Whether this node could not renew its lease in time, so that its programs are paused.
    pub(crate) fn has_lapsed_lease(&self) -> bool {
        self.membership.as_ref().is_some_and(|membership| membership.cluster.lease().borrow().until <= Instant::now())
    }

    /// Resolves when a run may begin. At once for an engine that is alone.
    pub(crate) async fn until_lease_confirmed(&self) {
        let Some(membership) = &self.membership else { return };
        let (mut lease, mut confirmed) = (membership.cluster.lease(), membership.confirmed.subscribe());
        loop {
            let newest = *lease.borrow_and_update();
            if newest.until > Instant::now() && newest.incarnation == *confirmed.borrow_and_update() {
                return;
            }
            let is_open = tokio::select! {
                changed = lease.changed() => changed.is_ok(),
                changed = confirmed.changed() => changed.is_ok(),
            };
            if !is_open {
                return;
            }
        }
    }
}
