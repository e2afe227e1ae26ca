//! Where servers of the official SDKs break a rule. Nobody can mend that but the SDK, and clients live with it, so it is a
//! warning there and not an error.
//!
//! What is known to be less in every version is said where the rule is judged.

use sabir_wire::{Binding, PeerProtocol, ProtocolVersion};

pub struct KnownDeviation {
    pub rule: &'static str,
    pub versions: &'static [ProtocolVersion],
    /// `None`: in all of them.
    pub binding: Option<Binding>,
    /// Whose servers do so.
    pub whose: &'static str,
}

const V1: &[ProtocolVersion] = &[ProtocolVersion::V1_0];
const V03: &[ProtocolVersion] = &[ProtocolVersion::V0_3];
const V02: &[ProtocolVersion] = &[ProtocolVersion::V0_2];
const V03_AND_V02: &[ProtocolVersion] = &[ProtocolVersion::V0_3, ProtocolVersion::V0_2];

const KNOWN: &[KnownDeviation] = &[
    known("rpc.invalid-request", V03_AND_V02, None, "the Python SDK before 1.0"),
    known("rpc.unknown-method", V02, None, "the Python SDK 0.2"),
    known("errors.parse", V03, Some(Binding::HttpJson), "the Python SDK 0.3"),
    known("errors.invalid-params", V03_AND_V02, None, "the Python and JavaScript SDKs before 1.0"),
    known("errors.cancel-finished", V02, None, "the Python SDK 0.2"),
    known("history.limit", V02, None, "the Python SDK 0.2"),
    known("send.immediate", V02, None, "the Python SDK 0.2"),
    known("push.list", V03, Some(Binding::HttpJson), "the Python SDK 0.3"),
    known("push.list", V03, Some(Binding::Grpc), "the Python SDK 0.3"),
    known("version.unsupported", V1, Some(Binding::Grpc), "the Python SDK 1.3"),
    known("subscribe.unknown", V03, Some(Binding::HttpJson), "the JavaScript SDK 0.3"),
];

const fn known(
    rule: &'static str,
    versions: &'static [ProtocolVersion],
    binding: Option<Binding>,
    whose: &'static str,
) -> KnownDeviation {
    KnownDeviation { rule, versions, binding, whose }
}

/// Whose servers break this rule in this version and binding.
pub fn whose(rule: &str, protocol: PeerProtocol) -> Option<&'static str> {
    let is_it = |known: &&KnownDeviation| {
        known.rule == rule
            && known.versions.contains(&protocol.version())
            && known.binding.is_none_or(|binding| binding == protocol.binding())
    };
    KNOWN.iter().find(is_it).map(|known| known.whose)
}

#[cfg(test)]
mod tests {
    use super::super::rule;
    use super::*;

    #[test]
    fn known_deviations_are_of_rules_that_exist() {
        for known in KNOWN {
            let rule = rule::all().find(|rule| rule.id == known.rule);
            assert!(rule.is_some_and(|rule| known.versions.iter().all(|version| rule.sections.of(*version).is_some())));
        }
    }
}
