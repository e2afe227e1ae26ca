//! What may be dialled: the rules, as plain values.
//!
//! By default: http and https to any port of any public address. The operator widens that by host names and by ranges of
//! addresses, and narrows it by ports.

use std::collections::HashSet;
use std::net::IpAddr;

use super::address::is_public;
use super::cidr::Cidr;
use super::host::Host;
use super::ports::Ports;
use super::refusal::Refusal;
use super::target::Target;

/// The egress policy of one purpose. It does not change during the life of a client.
#[derive(Debug, Clone, Default)]
pub struct EgressPolicy {
    hosts: HashSet<Host>,
    ranges: Vec<Cidr>,
    trusted: HashSet<(Host, u16)>,
    ports: Ports,
}

/// What remains to be checked of a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Approval {
    /// The operator named this host: whatever address it has is accepted.
    AnyAddress,
    /// Every address of this host must be allowed.
    CheckedAddress,
}

/// An entry of an allow-list that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MalformedEntry {
    #[error("`{0}` is not a host name or an address")]
    Host(String),
    #[error("`{0}` is not a range of addresses such as 10.0.0.0/8 or fd00::/8")]
    Range(String),
}

impl EgressPolicy {
    /// Accepts a host, whatever addresses it has. `entry` is a name or an address, without scheme and port.
    pub fn allow_host(&mut self, entry: &str) -> Result<(), MalformedEntry> {
        let host = match entry.parse() {
            Ok(IpAddr::V6(address)) => Host::Address(IpAddr::V6(address).to_canonical()),
            _ => Host::parse(entry).map_err(|_| MalformedEntry::Host(entry.to_owned()))?,
        };
        self.hosts.insert(host);
        Ok(())
    }

    /// Accepts the addresses of a range such as `10.0.0.0/8`, also where a name resolves to them.
    pub fn allow_range(&mut self, entry: &str) -> Result<(), MalformedEntry> {
        let range = Cidr::parse(entry).ok_or_else(|| MalformedEntry::Range(entry.to_owned()))?;
        self.ranges.push(range);
        Ok(())
    }

    /// Exempts one host and port that the operator wrote into the configuration, such as an upstream's.
    ///
    /// Only the policy of a client that dials what the operator wrote may have these: in the policy for webhooks, a
    /// caller could send the client there.
    pub fn trust(&mut self, host: Host, port: u16) {
        self.trusted.insert((host, port));
    }

    pub fn restrict_ports(&mut self, ports: Ports) {
        self.ports = ports;
    }

    /// What can be said of a target without knowing to which addresses a name resolves.
    pub fn check(&self, target: &Target) -> Result<Approval, Refusal> {
        if self.trusted.contains(&(target.host.clone(), target.port)) {
            return Ok(Approval::AnyAddress);
        }
        if !self.ports.allow(target.port) {
            return Err(Refusal::Port(target.port));
        }
        if self.hosts.contains(&target.host) {
            return Ok(Approval::AnyAddress);
        }
        match target.host {
            Host::Address(address) if !self.allows(address) => Err(Refusal::Address),
            _ => Ok(Approval::CheckedAddress),
        }
    }

    /// Whether an address may be dialled that no host name excuses.
    pub fn allows(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        is_public(address) || self.ranges.iter().any(|range| range.contains(address))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy() -> EgressPolicy {
        let mut policy = EgressPolicy::default();
        for host in ["hook-a", "Hook-B.Internal.", "127.0.0.9", "::7", "[::8]"] {
            policy.allow_host(host).unwrap();
        }
        for range in ["10.0.0.0/8", "fd00:1::/32"] {
            policy.allow_range(range).unwrap();
        }
        policy.trust(Host::parse("127.0.0.1").unwrap(), 9000);
        policy.trust(Host::parse("upstream").unwrap(), 25);
        policy.restrict_ports(Ports::NotOtherProtocols);
        policy
    }

    #[test]
    fn targets_by_policy() {
        use Approval::{AnyAddress, CheckedAddress};
        for (url, expected) in [
            ("http://hook-a/x", Ok(AnyAddress)),
            ("http://HOOK-A.:8080/x", Ok(AnyAddress)),
            ("https://hook-b.internal/", Ok(AnyAddress)),
            ("http://hook-a:25/", Err(Refusal::Port(25))),
            ("http://x.hook-a/", Ok(CheckedAddress)),
            ("http://127.0.0.9/", Ok(AnyAddress)),
            ("http://[::7]/", Ok(AnyAddress)),
            ("http://[::8]/", Ok(AnyAddress)),
            ("http://[::ffff:127.0.0.9]/", Ok(AnyAddress)),
            ("http://127.0.0.8/", Err(Refusal::Address)),
            ("http://10.1.2.3/", Ok(CheckedAddress)),
            ("http://[::ffff:10.1.2.3]/", Ok(CheckedAddress)),
            ("http://192.168.1.1/", Err(Refusal::Address)),
            ("http://[fd00:1::1]/", Ok(CheckedAddress)),
            ("http://[fd00:2::1]/", Err(Refusal::Address)),
            ("http://127.0.0.1:9000/", Ok(AnyAddress)),
            ("http://127.0.0.1:9001/", Err(Refusal::Address)),
            ("http://127.0.0.2:9000/", Err(Refusal::Address)),
            ("http://upstream:25/", Ok(AnyAddress)),
            ("http://upstream:22/", Err(Refusal::Port(22))),
            ("http://example.com:0/", Err(Refusal::Port(0))),
            ("http://example.com/", Ok(CheckedAddress)),
            ("https://8.8.8.8/", Ok(CheckedAddress)),
        ] {
            assert_eq!(policy().check(&Target::parse(url).expect(url)), expected, "{url}");
        }
    }

    #[test]
    fn malformed_entries_are_named() {
        let mut policy = EgressPolicy::default();
        for entry in ["", " hook", "http://hook", "hook:80", "hook/x", "*.example.com", "127.1", "bücher.example"] {
            let error = policy.allow_host(entry).expect_err(entry);
            assert!(error.to_string().contains(&format!("`{entry}`")), "{error}");
        }
        for entry in ["", "10.0.0.0/33", "hook-a", "10.0.0.0/8 "] {
            let error = policy.allow_range(entry).expect_err(entry);
            assert!(error.to_string().contains(&format!("`{entry}`")), "{error}");
        }
    }
}
