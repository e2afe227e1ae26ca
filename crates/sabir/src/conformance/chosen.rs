//! Which interfaces of a server are checked: those of its card that the operator wants, or what the operator says.

use std::collections::HashMap;

use anyhow::bail;
use sabir_wire::{Binding, PeerProtocol, ProtocolVersion};

use super::interface::{CardPlace, Claim, Interface};
use super::rules_card::CardDocument;
use super::server::Access;
use crate::cli::CheckOptions;

/// The interfaces that are checked, and why others are not.
pub struct Chosen {
    /// With what the card says of each; nothing, if the operator knows better than the card.
    pub interfaces: Vec<(Option<Claim>, Interface)>,
    pub not_checked: Vec<String>,
}

impl Chosen {
    pub fn of(
        options: &CheckOptions,
        access: &Access,
        document: Option<&CardDocument>,
        claims: &[Claim],
    ) -> anyhow::Result<Self> {
        let wanted = Wanted {
            version: options.a2a_version.as_deref().and_then(ProtocolVersion::parse),
            binding: options.transport.as_deref().and_then(Binding::parse),
        };
        if claims.is_empty() {
            return wanted.without_card(access);
        }
        let place = document.map_or(CardPlace::Named, |document| document.place);
        let mut chosen = wanted.of_card(access, place, claims);
        if chosen.interfaces.is_empty() {
            chosen.interfaces = wanted.of_same_line(access, place, claims);
        }
        if chosen.interfaces.is_empty() && wanted != Wanted::default() {
            bail!("the card offers {}; nothing of that is in --a2a-version and --transport", offered(claims));
        }
        chosen.drop_repeated();
        chosen.keep(options.max_interfaces as usize);
        Ok(chosen)
    }

    /// An interface that is on the card twice is checked once.
    fn drop_repeated(&mut self) {
        let mut known = HashMap::new();
        let interfaces = std::mem::take(&mut self.interfaces);
        for (claim, interface) in interfaces {
            let name = name_of(claim.as_ref(), &interface);
            match known.get(&interface.key()) {
                Some(first) => self.not_checked.push(format!("{name}: it is the same as {first}")),
                None => {
                    known.insert(interface.key(), claim.as_ref().map_or(name, |claim| claim.member.clone()));
                    self.interfaces.push((claim, interface));
                }
            }
        }
    }

    /// A card may name hundreds; the first ones are those that its server prefers.
    fn keep(&mut self, most: usize) {
        let rest = self.interfaces.split_off(most.min(self.interfaces.len()));
        let why_not = |(claim, interface): (Option<Claim>, Interface)| {
            let name = name_of(claim.as_ref(), &interface);
            format!(
                "{name}: {most} interfaces are checked; choose with --a2a-version and --transport, or raise --max-interfaces"
            )
        };
        self.not_checked.extend(rest.into_iter().map(why_not));
    }
}

/// What the operator wants to check; nothing in particular by default.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Wanted {
    version: Option<ProtocolVersion>,
    binding: Option<Binding>,
}

impl Wanted {
    fn of_card(self, access: &Access, place: CardPlace, claims: &[Claim]) -> Chosen {
        let mut chosen = Chosen { interfaces: Vec::new(), not_checked: Vec::new() };
        for claim in claims {
            match Interface::of(claim, place, access) {
                Some(interface) if self.includes(interface.protocol) => {
                    chosen.interfaces.push((Some(claim.clone()), interface));
                }
                Some(_) => {}
                None => chosen.not_checked.push(why_not(claim)),
            }
        }
        chosen
    }

    /// A version that the card does not name can be tried where another one of its line is.
    fn of_same_line(self, access: &Access, place: CardPlace, claims: &[Claim]) -> Vec<(Option<Claim>, Interface)> {
        let Some(version) = self.version else { return Vec::new() };
        let is_line_0 = |version: ProtocolVersion| version != ProtocolVersion::V1_0;
        let in_version = |interface: Interface| {
            let is_same_line = is_line_0(interface.protocol.version()) == is_line_0(version);
            let protocol = PeerProtocol::new(version, interface.protocol.binding())?;
            (is_same_line && self.includes(protocol)).then_some((None, Interface { protocol, ..interface }))
        };
        claims.iter().filter_map(|claim| Interface::of(claim, place, access)).filter_map(in_version).collect()
    }

    /// Without a card the URL itself is called, if the operator says in which version.
    fn without_card(self, access: &Access) -> anyhow::Result<Chosen> {
        let mut chosen = Chosen { interfaces: Vec::new(), not_checked: Vec::new() };
        if let Some(version) = self.version {
            let binding = self.binding.unwrap_or(Binding::JsonRpc);
            let Some(protocol) = PeerProtocol::new(version, binding) else {
                bail!("version {} has no {}", version.number(), binding.name());
            };
            chosen.interfaces.push((None, Interface { url: access.url.clone(), protocol, tenant: None }));
        }
        Ok(chosen)
    }

    fn includes(self, protocol: PeerProtocol) -> bool {
        self.version.is_none_or(|version| version == protocol.version())
            && self.binding.is_none_or(|binding| binding == protocol.binding())
    }
}

fn why_not(claim: &Claim) -> String {
    format!("{}: its URL, binding or version cannot be used", claim_name(claim))
}

fn name_of(claim: Option<&Claim>, interface: &Interface) -> String {
    claim.map_or_else(|| format!("{} at {}", interface.protocol, interface.url), claim_name)
}

fn claim_name(claim: &Claim) -> String {
    format!("{} ({} {})", claim.member, claim.binding, claim.url)
}

fn offered(claims: &[Claim]) -> String {
    let each = claims
        .iter()
        .map(|claim| format!("{} {}", claim.binding, claim.version.as_deref().unwrap_or("without a version")));
    each.collect::<Vec<_>>().join(", ")
}
