//! Ranges of addresses, as in `10.0.0.0/8`.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// All addresses that begin with the same bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AddressRange {
    first: IpAddr,
    bits: u32,
}

impl AddressRange {
    /// Everything that leads to the machine itself.
    pub const LOOPBACK: [AddressRange; 2] = [
        AddressRange { first: IpAddr::V4(Ipv4Addr::new(127, 0, 0, 0)), bits: 8 },
        AddressRange { first: IpAddr::V6(Ipv6Addr::LOCALHOST), bits: 128 },
    ];

    /// `10.0.0.0/8`, `fd00::/8`, or one address. `None`: it is no range, or has bits behind its length, as `10.0.0.1/8` has.
    pub fn parse(text: &str) -> Option<Self> {
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits)),
            None => (text, None),
        };
        let first: IpAddr = address.parse().ok()?;
        let most = if first.is_ipv4() { 32 } else { 128 };
        let bits = match bits {
            Some(bits) if bits.bytes().all(|byte| byte.is_ascii_digit()) => {
                bits.parse().ok().filter(|bits| *bits <= most)?
            }
            Some(_) => return None,
            None => most,
        };
        let range = Self { first, bits };
        (range.prefix(first) == Some(range.value(first))).then_some(range)
    }

    /// An IPv4 address that is written as an IPv6 one is the IPv4 address.
    pub fn contains(&self, address: IpAddr) -> bool {
        self.prefix(address.to_canonical()).is_some_and(|prefix| prefix == self.value(self.first))
    }

    /// The bits that count. `None`: addresses of the other family.
    fn prefix(&self, address: IpAddr) -> Option<u128> {
        let length = if self.first.is_ipv4() { 32 } else { 128 };
        let dropped = length - self.bits;
        let value = self.value(address);
        let kept = value.checked_shr(dropped).and_then(|kept| kept.checked_shl(dropped)).unwrap_or(0);
        (address.is_ipv4() == self.first.is_ipv4()).then_some(kept)
    }

    fn value(&self, address: IpAddr) -> u128 {
        match address {
            IpAddr::V4(address) => u32::from(address).into(),
            IpAddr::V6(address) => address.into(),
        }
    }
}

impl fmt::Display for AddressRange {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.first, self.bits) {
            (IpAddr::V4(first), 32) => write!(out, "{first}"),
            (IpAddr::V6(first), 128) => write!(out, "{first}"),
            (first, bits) => write!(out, "{first}/{bits}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn which_addresses_are_in_a_range() {
        for (range, address, expected) in [
            ("10.0.0.0/8", "10.255.0.1", true),
            ("10.0.0.0/8", "11.0.0.0", false),
            ("10.0.0.0/8", "::ffff:10.1.2.3", true),
            ("10.1.2.3", "10.1.2.3", true),
            ("10.1.2.3", "10.1.2.4", false),
            ("0.0.0.0/0", "203.0.113.9", true),
            ("0.0.0.0/0", "2001:db8::1", false),
            ("fd00::/8", "fdff::1", true),
            ("fd00::/8", "fe00::1", false),
            ("::/0", "2001:db8::1", true),
            ("::/0", "10.0.0.1", false),
            ("::1", "::1", true),
            ("192.168.0.0/17", "192.168.127.255", true),
            ("192.168.0.0/17", "192.168.128.0", false),
        ] {
            let parsed = AddressRange::parse(range).unwrap();
            assert_eq!(parsed.contains(address.parse().unwrap()), expected, "{address} in {range}");
            assert_eq!(parsed.to_string(), range);
        }
        for text in ["", "10.0.0.1/8", "10.0.0.0/33", "10.0.0.0/", "10.0.0.0/+8", "fd00::/129", "proxy", "10.0.0.0/8/8"]
        {
            assert_eq!(AddressRange::parse(text), None, "{text:?}");
        }
    }
}
