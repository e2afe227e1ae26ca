//! A range of addresses, as `10.0.0.0/8` or `fd00::/8`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A network and how many of its leading bits count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cidr {
    network: IpAddr,
    prefix: u8,
}

impl Cidr {
    pub(super) const fn v4(octets: [u8; 4], prefix: u8) -> Self {
        let [a, b, c, d] = octets;
        Cidr { network: IpAddr::V4(Ipv4Addr::new(a, b, c, d)), prefix }
    }

    pub(super) const fn v6(first: [u16; 3], prefix: u8) -> Self {
        let [a, b, c] = first;
        Cidr { network: IpAddr::V6(Ipv6Addr::new(a, b, c, 0, 0, 0, 0, 0)), prefix }
    }

    /// Reads `address/prefix`; an address alone is the range of that one address. The bits behind the prefix are
    /// ignored, as most tools do. IPv4 ranges in IPv6 clothes (`::ffff:10.0.0.0/104`) are not ranges: such addresses
    /// are compared as IPv4, so the entry would silently match nothing.
    pub fn parse(text: &str) -> Option<Self> {
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (text, None),
        };
        let network: IpAddr = address.parse().ok()?;
        let bits = if network.is_ipv4() { 32 } else { 128 };
        let prefix = match prefix {
            Some(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => digits.parse().ok()?,
            Some(_) => return None,
            None => bits,
        };
        (prefix <= bits && network.to_canonical() == network).then_some(Cidr { network, prefix })
    }

    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.network, address) {
            (IpAddr::V4(network), IpAddr::V4(address)) => {
                let differing = network.to_bits() ^ address.to_bits();
                differing.leading_zeros() >= u32::from(self.prefix)
            }
            (IpAddr::V6(network), IpAddr::V6(address)) => {
                let differing = network.to_bits() ^ address.to_bits();
                differing.leading_zeros() >= u32::from(self.prefix)
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_contain_what_their_prefix_says() {
        for (range, address, expected) in [
            ("10.0.0.0/8", "10.255.0.1", true),
            ("10.0.0.0/8", "11.0.0.0", false),
            ("10.9.9.9/8", "10.0.0.1", true),
            ("172.16.0.0/12", "172.31.255.255", true),
            ("172.16.0.0/12", "172.32.0.0", false),
            ("192.0.2.7", "192.0.2.7", true),
            ("192.0.2.7", "192.0.2.6", false),
            ("0.0.0.0/0", "8.8.8.8", true),
            ("0.0.0.0/0", "::1", false),
            ("::/0", "2606:4700::1", true),
            ("fd00::/8", "fd12::1", true),
            ("fd00::/8", "fc12::1", false),
            ("::1/128", "::1", true),
            ("::1/128", "::2", false),
        ] {
            let range = Cidr::parse(range).expect(range);
            assert_eq!(range.contains(address.parse().unwrap()), expected, "{address} in {range:?}");
        }
    }

    #[test]
    fn malformed_ranges_are_not_read() {
        for text in [
            "",
            "/",
            "/8",
            "10.0.0.0/",
            "10.0.0.0/33",
            "10.0.0.0/-1",
            "10.0.0.0/+8",
            "10.0.0.0/ 8",
            "10.0.0/8",
            "10/8",
            "10.0.0.0/8/8",
            "10.0.0.0/255.0.0.0",
            "010.0.0.0/8",
            "::/129",
            "[::1]/128",
            "fe80::1%eth0/64",
            "::ffff:10.0.0.0/104",
            "hook-a",
            "10.0.0.0/300",
        ] {
            assert_eq!(Cidr::parse(text), None, "{text:?}");
        }
    }
}
