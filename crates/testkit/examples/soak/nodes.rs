//! Several nodes on one Postgres behind a balancer, which clients see as one server.
//!
//! A node leaves the balancer just before its signal is sent, as one does that is taken out of service. So only requests that
//! were under way then may break.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

use sabir_testkit::balancer::{Balanced, Balancer};
use sabir_testkit::postgres::Postgres;
use sabir_testkit::process::SabirOptions;

/// How often a node says that it is alive, and how long it may be silent: short, so that there are many takeovers, but not
/// shorter than a busy machine may stand still.
const BEAT: Duration = Duration::from_secs(1);
const GRACE: Duration = Duration::from_secs(5);
/// How long after its end the tasks of a node may be settled by others, on a busy machine.
pub const TAKEOVER_MS: i64 = GRACE.as_millis() as i64 + 7000;

pub struct Nodes {
    pub count: usize,
    /// The database.
    url: String,
    backends: Mutex<Vec<SocketAddr>>,
    balancer: Balancer,
    _postgres: Postgres,
}

impl Nodes {
    /// `None`: there is no Postgres on this machine.
    pub fn new(count: usize) -> Option<Self> {
        let postgres = Postgres::start()?;
        let (url, balancer) = (postgres.fresh_database(), Balancer::start(Balanced::Requests, &[]));
        Some(Self { count, url, backends: Mutex::default(), balancer, _postgres: postgres })
    }

    pub fn address(&self) -> SocketAddr {
        self.balancer.address()
    }

    pub fn options(&self, options: SabirOptions, node: usize, folder: &Path) -> SabirOptions {
        let milliseconds = |time: Duration| format!("{}ms", time.as_millis());
        let mut options = options
            .variable("SABIR_CLUSTER_NODE_NAME", &name(node))
            .variable("SABIR_STORE_FOLDER", &folder.join(name(node)).display().to_string())
            .variable("SABIR_CLUSTER_BEAT", &milliseconds(BEAT))
            .variable("SABIR_CLUSTER_GRACE", &milliseconds(GRACE));
        options.store.clone_from(&self.url);
        options
    }

    pub fn add(&self, address: SocketAddr) {
        self.change(|backends| backends.push(address));
    }

    pub fn remove(&self, address: SocketAddr) {
        self.change(|backends| backends.retain(|backend| *backend != address));
    }

    fn change(&self, change: impl FnOnce(&mut Vec<SocketAddr>)) {
        let mut backends = self.backends.lock().expect("nobody panics over it");
        change(&mut backends);
        self.balancer.set_backends(&backends);
    }

    pub fn is_empty(&self) -> bool {
        self.backends.lock().expect("nobody panics over it").is_empty()
    }
}

pub fn name(node: usize) -> String {
    format!("n{node}")
}
