//! Tells the operator of refused credentials, in few lines: a stranger must not be able to fill the disk with them.
//! For the same reason they are not in the audit log.

use std::net::IpAddr;

use crate::log_limit::LogLimit;

#[derive(Default)]
pub(crate) struct RefusalLog(LogLimit);

impl RefusalLog {
    pub(crate) fn note(&self, peer: Option<IpAddr>) {
        if let Some(count) = self.0.due() {
            let peer = peer.map(|peer| peer.to_string()).unwrap_or_default();
            tracing::info!(peer, count, "a request without a valid credential was refused");
        }
    }
}
