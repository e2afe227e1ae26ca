//! Which ports may be dialled.

/// The port policy. Port 0 is never dialled.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Ports {
    #[default]
    Any,
    /// All but those where another protocol than HTTP listens, as browsers have it (`OTHER_PROTOCOLS`).
    NotOtherProtocols,
    Only(Vec<u16>),
}

impl Ports {
    pub(super) fn allow(&self, port: u16) -> bool {
        match self {
            _ if port == 0 => false,
            Ports::Any => true,
            Ports::NotOtherProtocols => OTHER_PROTOCOLS.binary_search(&port).is_err(),
            Ports::Only(ports) => ports.contains(&port),
        }
    }
}

/// The bad ports of the Fetch standard, without 0; sorted.
const OTHER_PROTOCOLS: [u16; 82] = [
    1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102, 103, 104, 109, 110,
    111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465, 512, 513, 514, 515, 526, 530, 531, 532,
    540, 548, 554, 556, 563, 587, 601, 636, 989, 990, 993, 995, 1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061,
    6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_by_policy() {
        for (policy, allowed, refused) in [
            (Ports::Any, [1, 22, 65535].as_slice(), [0].as_slice()),
            (Ports::NotOtherProtocols, &[80, 443, 3000, 8080, 8443, 65535], &[0, 1, 22, 25, 53, 6000, 10080]),
            (Ports::Only(vec![443]), &[443], &[0, 80, 444]),
        ] {
            assert!(allowed.iter().all(|port| policy.allow(*port)), "{policy:?}");
            assert!(!refused.iter().any(|port| policy.allow(*port)), "{policy:?}");
        }
    }

    #[test]
    fn the_list_can_be_searched() {
        assert!(OTHER_PROTOCOLS.is_sorted());
    }
}
