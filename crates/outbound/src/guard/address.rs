//! Which addresses are public: reachable over the internet, and nobody's inside.
//!
//! IPv4 is everything but the ranges that IANA's special-purpose registry sets apart. IPv6 is the other way round: only
//! global unicast, 2000::/3, less the ranges set apart in it. All forms that carry an IPv4 address inside an IPv6 one lie
//! outside of that or are listed, so none of them leads back in; NAT64's well-known prefix alone is looked into, since
//! on IPv6-only networks it is how the resolver spells every IPv4 host.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::cidr::Cidr;

/// Whether an address is public. An IPv4-mapped address counts as the IPv4 address that it is.
pub(super) fn is_public(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => match nat64(address) {
            Some(inner) => is_public_v4(inner),
            None => is_public_v6(address),
        },
    }
}

const NOT_PUBLIC_V4: [Cidr; 16] = [
    Cidr::v4([0, 0, 0, 0], 8),        // "this network"; Linux takes 0.0.0.0 for loopback
    Cidr::v4([10, 0, 0, 0], 8),       // private
    Cidr::v4([100, 64, 0, 0], 10),    // carrier-grade NAT; Alibaba's metadata service
    Cidr::v4([127, 0, 0, 0], 8),      // loopback
    Cidr::v4([168, 63, 129, 16], 32), // Azure's metadata and platform service, in public space
    Cidr::v4([169, 254, 0, 0], 16),   // link-local; most clouds' metadata services
    Cidr::v4([172, 16, 0, 0], 12),    // private
    Cidr::v4([192, 0, 0, 0], 24),     // IETF protocol assignments; Oracle's metadata service
    Cidr::v4([192, 0, 2, 0], 24),     // documentation
    Cidr::v4([192, 88, 99, 0], 24),   // 6to4 relays
    Cidr::v4([192, 168, 0, 0], 16),   // private
    Cidr::v4([198, 18, 0, 0], 15),    // benchmarking
    Cidr::v4([198, 51, 100, 0], 24),  // documentation
    Cidr::v4([203, 0, 113, 0], 24),   // documentation
    Cidr::v4([224, 0, 0, 0], 4),      // multicast
    Cidr::v4([240, 0, 0, 0], 4),      // reserved, and broadcast
];

const GLOBAL_UNICAST: Cidr = Cidr::v6([0x2000, 0, 0], 3);

const NOT_PUBLIC_V6: [Cidr; 4] = [
    Cidr::v6([0x2001, 0, 0], 23),      // IETF protocol assignments: Teredo, benchmarking, ORCHID
    Cidr::v6([0x2001, 0x0db8, 0], 32), // documentation
    Cidr::v6([0x2002, 0, 0], 16),      // 6to4
    Cidr::v6([0x3fff, 0, 0], 20),      // documentation
];

const NAT64: Cidr = Cidr::v6([0x64, 0xff9b, 0], 96);

fn is_public_v4(address: Ipv4Addr) -> bool {
    !NOT_PUBLIC_V4.iter().any(|range| range.contains(address.into()))
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    GLOBAL_UNICAST.contains(address.into()) && !NOT_PUBLIC_V6.iter().any(|range| range.contains(address.into()))
}

fn nat64(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let [.., a, b, c, d] = address.octets();
    NAT64.contains(address.into()).then_some(Ipv4Addr::new(a, b, c, d))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(address: &str, expected: bool) {
        assert_eq!(is_public(address.parse().unwrap()), expected, "{address}");
    }

    #[test]
    fn the_edges_of_every_range() {
        for (before, first, last, after) in [
            ("", "0.0.0.0", "0.255.255.255", "1.0.0.0"),
            ("9.255.255.255", "10.0.0.0", "10.255.255.255", "11.0.0.0"),
            ("100.63.255.255", "100.64.0.0", "100.127.255.255", "100.128.0.0"),
            ("126.255.255.255", "127.0.0.0", "127.255.255.255", "128.0.0.0"),
            ("168.63.129.15", "168.63.129.16", "168.63.129.16", "168.63.129.17"),
            ("169.253.255.255", "169.254.0.0", "169.254.255.255", "169.255.0.0"),
            ("172.15.255.255", "172.16.0.0", "172.31.255.255", "172.32.0.0"),
            ("191.255.255.255", "192.0.0.0", "192.0.0.255", "192.0.1.0"),
            ("192.0.1.255", "192.0.2.0", "192.0.2.255", "192.0.3.0"),
            ("192.88.98.255", "192.88.99.0", "192.88.99.255", "192.88.100.0"),
            ("192.167.255.255", "192.168.0.0", "192.168.255.255", "192.169.0.0"),
            ("198.17.255.255", "198.18.0.0", "198.19.255.255", "198.20.0.0"),
            ("198.51.99.255", "198.51.100.0", "198.51.100.255", "198.51.101.0"),
            ("203.0.112.255", "203.0.113.0", "203.0.113.255", "203.0.114.0"),
            ("223.255.255.255", "224.0.0.0", "255.255.255.255", ""),
            ("2000:ffff::1", "2001::", "2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff", "2001:200::"),
            ("2001:db7:ffff::", "2001:db8::", "2001:db8:ffff::1", "2001:db9::"),
            ("2001:ffff::", "2002::", "2002:ffff::1", "2003::"),
            ("3ffe:ffff::1", "3fff::", "3fff:fff:ffff::1", "3fff:1000::"),
            ("3fff:ffff::1", "4000::", "ffff::", ""),
            ("", "::", "1fff:ffff::1", "2000::1"),
        ] {
            for outside in [before, after].into_iter().filter(|address| !address.is_empty()) {
                check(outside, true);
            }
            check(first, false);
            check(last, false);
        }
    }

    #[test]
    fn addresses_that_carry_another_one() {
        for (address, expected) in [
            ("::ffff:127.0.0.1", false),
            ("::ffff:10.0.0.1", false),
            ("::ffff:8.8.8.8", true),
            ("::127.0.0.1", false),
            ("::8.8.8.8", false),
            ("::ffff:0:127.0.0.1", false),
            ("64:ff9b::127.0.0.1", false),
            ("64:ff9b::169.254.169.254", false),
            ("64:ff9b::8.8.8.8", true),
            ("64:ff9b:0:1::8.8.8.8", false),
            ("64:ff9b:1::8.8.8.8", false),
            ("2002:7f00:1::", false),
            ("2002:808:808::", false),
            ("2001:0:4136:e378:8000:63bf:3fff:fdd2", false),
        ] {
            check(address, expected);
        }
    }

    #[test]
    fn kinds_of_addresses_that_stay_inside() {
        for address in [
            "::1",
            "fe80::1",
            "fec0::1",
            "fc00::1",
            "fd00:ec2::254",
            "fd20:ce::254",
            "ff02::1",
            "ff0e::1",
            "100::1",
            "5f00::1",
            "2001:2::1",
            "2001:10::1",
            "2001:20::1",
            "100.100.100.200",
            "192.0.0.192",
        ] {
            check(address, false);
        }
    }

    #[test]
    fn ordinary_public_addresses() {
        for address in ["1.1.1.1", "8.8.8.8", "93.184.215.14", "2606:4700:4700::1111", "2a00:1450:4001:81b::200e"] {
            check(address, true);
        }
    }
}
