//! A rule of the specification: what a server must do, where that is written, and how to mend a server that does not.

use sabir_wire::{Binding, PeerProtocol, ProtocolVersion};

use super::{
    rules_access, rules_asking, rules_bindings, rules_capabilities, rules_card, rules_card_interfaces,
    rules_card_security, rules_envelope, rules_errors, rules_grpc, rules_lists, rules_objects, rules_push,
    rules_push_delivery, rules_requests, rules_running, rules_streams, rules_subscriptions, rules_tasks,
    rules_versions,
};

#[derive(Debug)]
pub struct Rule {
    /// `group.name`.
    pub id: &'static str,
    /// Of what breaks it, unless a case is known to be less.
    pub level: Level,
    pub subject: Subject,
    pub sections: Sections,
    /// What the specification says, in one sentence.
    pub says: &'static str,
    /// What to do about it.
    pub remedy: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Breaks a MUST: there are clients that fail for it.
    Error,
    /// Breaks a SHOULD, or a MUST that the official SDKs break as well.
    Warning,
    /// Worth knowing.
    Note,
}

/// What a rule is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    /// The server as a whole, and its card: judged once.
    Server,
    /// The server over one interface.
    Interface,
    /// The same, but it is about HTTP, JSON or server-sent events, of which gRPC shows nothing.
    TextInterface,
    /// The same, for one binding only.
    InterfaceOf(Binding),
}

/// Where a rule is written, by version. Empty: that version has no such rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sections {
    pub v1: &'static str,
    /// Those of 0.2 are the same.
    pub v03: &'static str,
    pub v01: &'static str,
}

impl Level {
    pub fn name(self) -> &'static str {
        match self {
            Level::Error => "error",
            Level::Warning => "warning",
            Level::Note => "note",
        }
    }
}

impl Sections {
    /// In every version.
    pub const fn all(v1: &'static str, v03: &'static str, v01: &'static str) -> Self {
        Sections { v1, v03, v01 }
    }

    /// Since 0.2.
    pub const fn since_v02(v1: &'static str, v03: &'static str) -> Self {
        Sections { v1, v03, v01: "" }
    }

    /// Since 1.0.
    pub const fn since_v1(v1: &'static str) -> Self {
        Sections { v1, v03: "", v01: "" }
    }

    /// Before 1.0.
    pub const fn before_v1(v03: &'static str, v01: &'static str) -> Self {
        Sections { v1: "", v03, v01 }
    }

    /// `0.3 §8.2`; `None`: this version has no such rule.
    pub fn of(self, version: ProtocolVersion) -> Option<String> {
        let (release, section) = match version {
            ProtocolVersion::V1_0 => ("1.0", self.v1),
            ProtocolVersion::V0_3 | ProtocolVersion::V0_2 => ("0.3", self.v03),
            ProtocolVersion::V0_1 => ("0.1", self.v01),
        };
        (!section.is_empty()).then(|| format!("{release} {section}"))
    }

    /// `1.0 §5.4, 0.3 §8.2`.
    pub fn list(self) -> String {
        let versions = [ProtocolVersion::V1_0, ProtocolVersion::V0_3, ProtocolVersion::V0_1];
        versions.into_iter().filter_map(|version| self.of(version)).collect::<Vec<_>>().join(", ")
    }
}

impl Rule {
    /// `card` of `card.members`.
    pub fn group(&self) -> &'static str {
        self.id.split('.').next().unwrap_or(self.id)
    }

    pub fn is_for(&self, protocol: PeerProtocol) -> bool {
        let in_binding = match self.subject {
            Subject::Server => false,
            Subject::Interface => true,
            Subject::TextInterface => protocol.binding() != Binding::Grpc,
            Subject::InterfaceOf(binding) => binding == protocol.binding(),
        };
        in_binding && self.sections.of(protocol.version()).is_some()
    }

    /// Whether it is for the other bindings of this version, but means nothing in this one.
    pub fn is_skipped_for(&self, protocol: PeerProtocol) -> bool {
        let is_text = self.subject == Subject::TextInterface && self.sections.of(protocol.version()).is_some();
        is_text && protocol.binding() == Binding::Grpc
    }

    /// Which interfaces it is for, in words.
    pub fn scope(&self) -> &'static str {
        match self.subject {
            Subject::Server => "the server",
            Subject::Interface => "JSONRPC, HTTP+JSON and GRPC",
            Subject::TextInterface => "JSONRPC and HTTP+JSON",
            Subject::InterfaceOf(binding) => binding.name(),
        }
    }
}

/// All rules, in the order of the report.
pub fn all() -> impl Iterator<Item = &'static Rule> {
    let groups: [&[&Rule]; 20] = [
        rules_card::RULES,
        rules_card_interfaces::RULES,
        rules_card_security::RULES,
        rules_access::RULES,
        rules_capabilities::RULES,
        rules_versions::RULES,
        rules_envelope::RULES,
        rules_grpc::RULES,
        rules_requests::RULES,
        rules_objects::RULES,
        rules_tasks::RULES,
        rules_errors::RULES,
        rules_streams::RULES,
        rules_subscriptions::RULES,
        rules_running::RULES,
        rules_asking::RULES,
        rules_lists::RULES,
        rules_push::RULES,
        rules_push_delivery::RULES,
        rules_bindings::RULES,
    ];
    groups.into_iter().flatten().copied()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_rule_has_an_id_of_its_own_a_section_and_a_remedy() {
        let mut ids = HashSet::new();
        for rule in all() {
            assert!(ids.insert(rule.id), "{} is there twice", rule.id);
            assert!(rule.id.split_once('.').is_some_and(|(group, name)| !group.is_empty() && !name.is_empty()));
            assert!(rule.sections.list().contains('§'), "{} has no section", rule.id);
            for text in [rule.says, rule.remedy] {
                let first = text.chars().next().expect("a sentence");
                assert!(!first.is_ascii_uppercase() || text.starts_with("A2A") || text.starts_with("HTTP"), "{text}");
                assert!(!text.ends_with('.'), "{text}");
            }
        }
        assert!(ids.len() > 60, "{}", ids.len());
    }
}
