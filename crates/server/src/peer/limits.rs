//! How much one peer may have at the same time, so that it cannot take all connections from the others.
//!
//! What is counted is connections, and for peers that come through a trusted proxy, whose connections are shared,
//! requests that are not answered to their end.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use sabir_model::network_of;

use super::AddressRange;

/// How many connections one peer may have open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerLimit {
    pub most: usize,
    /// Peers whose connections are not limited: this machine itself, and proxies.
    pub exempt: Vec<AddressRange>,
}

impl PeerLimit {
    pub(crate) fn exempts(&self, peer: IpAddr) -> bool {
        self.exempt.iter().any(|range| range.contains(peer))
    }
}

/// How much each peer has now, by its network.
#[derive(Default)]
pub(crate) struct PeerCounts(HashMap<IpAddr, usize>);

impl PeerCounts {
    /// Whether the peer had fewer than `most`; if so, it has one more until `leave`.
    pub(crate) fn try_enter(&mut self, peer: IpAddr, most: usize) -> bool {
        let count = self.0.entry(network_of(peer)).or_default();
        let has_room = *count < most;
        *count += usize::from(has_room);
        has_room
    }

    pub(crate) fn leave(&mut self, peer: IpAddr) {
        let network = network_of(peer);
        if let Some(count) = self.0.get_mut(&network) {
            *count -= 1;
            if *count == 0 {
                self.0.remove(&network);
            }
        }
    }
}

/// Requests of peers that come through proxies.
#[derive(Default)]
pub(crate) struct RequestsInFlight(Mutex<PeerCounts>);

/// One request, until it is dropped.
pub(crate) struct RequestInFlight {
    all: Arc<RequestsInFlight>,
    peer: IpAddr,
}

impl RequestsInFlight {
    /// `None`: the peer has as many as it may have.
    pub(crate) fn try_enter(self: &Arc<Self>, peer: IpAddr, most: usize) -> Option<RequestInFlight> {
        let has_room = self.0.lock().unwrap_or_else(PoisonError::into_inner).try_enter(peer, most);
        has_room.then(|| RequestInFlight { all: self.clone(), peer })
    }
}

impl Drop for RequestInFlight {
    fn drop(&mut self) {
        self.all.0.lock().unwrap_or_else(PoisonError::into_inner).leave(self.peer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_peer_has_a_count_of_its_own() {
        let mut counts = PeerCounts::default();
        for (peer, has_room) in [
            ("192.0.2.1", true),
            ("192.0.2.1", true),
            ("192.0.2.1", false),
            ("::ffff:192.0.2.1", false),
            ("192.0.2.2", true),
            ("2001:db8::1", true),
            ("2001:db8::2", true),
            ("2001:db8::3:0:0:4", false),
            ("2001:db8:0:1::1", true),
        ] {
            assert_eq!(counts.try_enter(peer.parse().unwrap(), 2), has_room, "{peer}");
        }
        counts.leave("192.0.2.1".parse().unwrap());
        assert!(counts.try_enter("192.0.2.1".parse().unwrap(), 2));
        for peer in ["192.0.2.1", "192.0.2.1", "192.0.2.2", "2001:db8::9", "2001:db8::9", "2001:db8:0:1::9"] {
            counts.leave(peer.parse().unwrap());
        }
        assert!(counts.0.is_empty(), "nothing is kept of those who left");
    }
}
