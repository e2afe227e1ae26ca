//! Which members of a card are written.

use crate::ProtocolVersion;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CardFormat {
    /// The members of 1.0 alone.
    V1,
    /// The members of 0.3 and 0.2 alone.
    V0_3,
    /// The members of 0.3, with the security schemes also as ProtoJSON spells them. Of the SDKs of 0.3, those for Python
    /// and Go read the card of HTTP+JSON in the one spelling, and the one for JavaScript in the other.
    V0_3HttpJson,
    /// The members of 0.1 alone.
    V0_1,
    /// The members of 1.0 and 0.3 side by side, and what 0.1 says of security: every client can read it.
    Hybrid,
    /// The members of 1.0, and the gateway's address as `url`. Clients of 0.3 would take that for a JSON-RPC address,
    /// so the members of 0.3 are left out.
    Gateway,
}

impl CardFormat {
    /// The card for clients of one version.
    pub fn of(version: ProtocolVersion) -> Self {
        match version {
            ProtocolVersion::V1_0 => CardFormat::V1,
            ProtocolVersion::V0_3 | ProtocolVersion::V0_2 => CardFormat::V0_3,
            ProtocolVersion::V0_1 => CardFormat::V0_1,
        }
    }

    pub(super) fn has_v1(self) -> bool {
        matches!(self, CardFormat::V1 | CardFormat::Hybrid | CardFormat::Gateway)
    }

    /// Whether security schemes are spelled as in 1.0, which is the ProtoJSON of 0.3 too.
    pub(super) fn has_schemes_as_proto(self) -> bool {
        self.has_v1() || self == CardFormat::V0_3HttpJson
    }

    /// Whether it is for clients of 0.3 alone.
    pub(super) fn is_v0_3(self) -> bool {
        matches!(self, CardFormat::V0_3 | CardFormat::V0_3HttpJson)
    }

    pub(super) fn has_v0_3(self) -> bool {
        matches!(self, CardFormat::Hybrid) || self.is_v0_3()
    }

    pub(super) fn has_v0_1(self) -> bool {
        matches!(self, CardFormat::V0_1 | CardFormat::Hybrid)
    }

    pub(super) fn has_gateway(self) -> bool {
        matches!(self, CardFormat::Hybrid | CardFormat::Gateway)
    }
}
