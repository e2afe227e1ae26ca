//! What an engine does beside others on the same store. An engine that has its store for itself does none of this.
//!
//! | file          | its idea                                                                                     |
//! |---------------|----------------------------------------------------------------------------------------------|
//! | `contention.rs` | the pauses of a caller whose task others change at the same time                            |
//! | `follow.rs`   | tasks that other nodes drive are read from the log, when somebody here waits for them         |
//! | `forward.rs`  | messages and cancels for tasks that other nodes drive, and those that others forward to us    |
//! | `members.rs`  | the nodes, for operators                                                                      |
//! | `takeover.rs` | tasks of dead nodes, and tasks that were left, are run here                                   |
//! | `home.rs`     | the node where the sessions of a context are                                                  |
//! | `lease.rs`    | without a confirmed lease no run begins; whoever was declared dead gives up its runs          |
//!
//! The store decides who owns a task (`sabir_store::Cluster`). The engine never asks whether it may write: every append
//! names what it needs, and a refusal says who has the task.

mod contention;
mod follow;
mod forward;
mod home;
mod lease;
mod members;
mod takeover;

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};

use sabir_store::{Cluster, ForwardNo, TaskNo};
use tokio::sync::{Notify, watch};

pub(crate) use contention::Contention;
pub(crate) use follow::{FollowGuard, Followed, Loaded};
pub(crate) use forward::{Forwarding, OutgoingMessage};
pub use lease::LeaseObserver;

use crate::engine::Engine;
use crate::in_flight::InFlightGuard;

/// The part of an engine that knows of other nodes.
pub(crate) struct Membership {
    pub(crate) cluster: Arc<dyn Cluster>,
    pub(crate) followed: Arc<Followed>,
    observer: Option<Arc<dyn LeaseObserver>>,
    /// The incarnation of this node that has nothing left of the one before.
    confirmed: watch::Sender<u64>,
    /// Notified when something may have become of forwarded calls.
    forwards_changed: Notify,
    /// Notified when there may be something to claim.
    claimable: Notify,
    /// Notified when a claim has failed, and nobody knows what was claimed.
    claim_failed: Arc<Notify>,
    /// Forwarded calls that this node works on.
    accepted: Mutex<HashSet<ForwardNo>>,
    /// Messages that this node has forwarded and waits for, with the guards of their sends.
    sent: Mutex<HashMap<ForwardNo, Vec<Arc<InFlightGuard>>>>,
    /// Tasks without a driver that this node keeps: those that it has just claimed, and those that are over while something that their
    /// last turn has started still works.
    pub(crate) held: Mutex<HashSet<TaskNo>>,
}

impl Membership {
    pub(crate) fn new(cluster: Arc<dyn Cluster>, observer: Option<Arc<dyn LeaseObserver>>) -> Self {
        Self {
            cluster,
            observer,
            confirmed: watch::Sender::new(0),
            followed: Arc::default(),
            forwards_changed: Notify::new(),
            claimable: Notify::new(),
            claim_failed: Arc::default(),
            accepted: Mutex::default(),
            sent: Mutex::default(),
            held: Mutex::default(),
        }
    }

    /// Looks for tasks to claim soon.
    pub(crate) fn claim_soon(&self) {
        self.claimable.notify_one();
    }
}

impl Engine {
    /// Takes up what other nodes have left, and begins to listen to them.
    pub(crate) fn join_cluster(&self) {
        let Some(membership) = &self.core.membership else { return };
        self.keep_lease(membership);
        self.keep_claiming(membership);
        self.keep_finding_orphans(membership);
        self.keep_following(membership);
    }
}
