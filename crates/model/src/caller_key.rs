//! Who a limit per caller counts for.

use std::net::{IpAddr, Ipv6Addr};

use crate::{Caller, Owner};

/// The owner of a caller with a credential. Callers without one are told apart by their address, if it is known. A machine
/// has a whole /64 of IPv6 addresses, so these count as one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum CallerKey {
    /// Somebody with a credential, or nobody knows who.
    Owner(Owner),
    /// An IPv4 address, or the first of a /64.
    Peer(IpAddr),
}

impl From<&Caller> for CallerKey {
    fn from(caller: &Caller) -> Self {
        match caller.peer.filter(|_| caller.is_anonymous()) {
            Some(peer) => Self::Peer(network_of(peer)),
            None => Self::Owner(caller.owner.clone()),
        }
    }
}

/// Whom an address is counted with: one network of IPv6 has more addresses than anybody could count, and one owner.
pub fn network_of(peer: IpAddr) -> IpAddr {
    match peer.to_canonical() {
        IpAddr::V4(address) => IpAddr::V4(address),
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & (u128::MAX << 64))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn callers_without_a_credential_are_told_apart_by_their_network() {
        let from = |peer: &str| Caller::anonymous().from_peer(peer.parse().ok());
        let alice = |peer: &str| Caller::new("acme", "alice").from_peer(peer.parse().ok());
        for (one, other, same) in [
            (from("192.0.2.1"), from("192.0.2.1"), true),
            (from("192.0.2.1"), from("192.0.2.2"), false),
            (from("192.0.2.1"), from("::ffff:192.0.2.1"), true),
            (from("2001:db8:0:1::1"), from("2001:db8:0:1:ffff::9"), true),
            (from("2001:db8:0:1::1"), from("2001:db8:0:2::1"), false),
            (from("none"), from("nor this"), true),
            (from("none"), from("192.0.2.1"), false),
            (alice("192.0.2.1"), alice("192.0.2.2"), true),
            (alice("192.0.2.1"), from("192.0.2.1"), false),
            (alice("192.0.2.1"), Caller::new("acme", "bob").from_peer("192.0.2.1".parse().ok()), false),
        ] {
            assert_eq!(CallerKey::from(&one) == CallerKey::from(&other), same, "{one:?} {other:?}");
        }
    }
}
