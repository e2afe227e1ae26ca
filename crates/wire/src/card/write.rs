//! Writing a card for one version of the protocol, or for all of them at once.

use sabir_model as model;

use super::CardFormat;
use super::authentication::Authentication;
use super::entry::{Capabilities, Card, Extension, Interface, Provider, Signature};
use super::requirement;
use super::security::SecurityScheme;
use super::skill::Skill;
use crate::json;
use crate::wire_types::{OrderedMap, RawJson, Text};

/// Appends the card in this format.
pub fn write_card(card: &model::Card, format: CardFormat, out: &mut Vec<u8>) {
    json::write(&Card::from_model(card, format), out);
}

impl<'a> Card<'a> {
    fn from_model(card: &'a model::Card, format: CardFormat) -> Self {
        let texts = |list: &'a [String]| Some(list.iter().map(Text::from).collect());
        let is_later = format != CardFormat::V0_1;
        let schemes = card.security_schemes.iter().filter(|_| is_later);
        let mut written = Card {
            name: Some((&card.name).into()),
            description: Some((&card.description).into()),
            provider: card.provider.as_ref().map(|provider| Provider {
                organization: Some((&provider.organization).into()),
                url: Some((&provider.url).into()),
            }),
            version: Some((&card.version).into()),
            documentation_url: card.documentation_url.as_ref().map(Text::from),
            icon_url: card.icon_url.as_ref().filter(|_| is_later).map(Text::from),
            capabilities: Some(Capabilities::from_model(card, format)),
            security_schemes: OrderedMap(
                schemes.map(|(name, scheme)| (name.into(), SecurityScheme::from_model(scheme, format))).collect(),
            ),
            default_input_modes: texts(&card.input_modes),
            default_output_modes: texts(&card.output_modes),
            skills: Some(card.skills.iter().map(|skill| Skill::from_model(skill, format)).collect()),
            signatures: write_signatures(&card.signatures).filter(|_| is_later),
            ..Card::default()
        };
        if format.has_v1() {
            written.supported_interfaces = Some(card.interfaces.iter().map(interface_v1).collect());
            written.security_requirements = requirement::write_v1(&card.security);
        }
        if format.has_v0_3() {
            written.write_interfaces_v0_3(card, format);
            written.security = requirement::write_v0_3(&card.security);
            written.supports_authenticated_extended_card = card.capabilities.extended_card;
        }
        if format == CardFormat::Gateway {
            written.url = card.gateway.as_ref().map(|gateway| (&gateway.url).into());
        }
        if format.has_v0_1() {
            written.authentication = Authentication::of(card);
        }
        if format == CardFormat::V0_1 {
            written.url = main_interface_v0_1(card).map(|interface| (&interface.url).into());
        }
        written
    }

    /// The first interface of 0.x is the main one, and all of them are listed. A card for 0.3 alone must have a main
    /// one, so it takes what there is.
    fn write_interfaces_v0_3(&mut self, card: &'a model::Card, format: CardFormat) {
        let is_old = |interface: &&model::Interface| interface.version.starts_with("0.");
        let main = match format {
            CardFormat::Hybrid | CardFormat::V1 | CardFormat::V0_1 | CardFormat::Gateway => {
                card.interfaces.iter().find(is_old)
            }
            CardFormat::V0_3 | CardFormat::V0_3HttpJson => {
                card.interfaces.iter().find(is_old).or(card.interfaces.first())
            }
        };
        let Some(main) = main else { return };
        self.protocol_version = Some("0.3.0".into());
        self.url = Some((&main.url).into());
        self.preferred_transport = Some((&main.binding).into());
        let listed: Vec<_> = card.interfaces.iter().filter(is_old).map(interface_v0_3).collect();
        self.additional_interfaces = (!listed.is_empty()).then_some(listed);
    }
}

/// 0.1 has JSON-RPC only; an interface of 0.x is more likely to have its methods than one of 1.0.
fn main_interface_v0_1(card: &model::Card) -> Option<&model::Interface> {
    let speaks = |interface: &&model::Interface| interface.binding == "JSONRPC";
    let is_old = |interface: &&model::Interface| speaks(interface) && interface.version.starts_with("0.");
    let mut interfaces = card.interfaces.iter();
    interfaces.clone().find(is_old).or(interfaces.clone().find(speaks)).or(interfaces.next())
}

fn interface_v1(interface: &model::Interface) -> Interface<'_> {
    Interface {
        url: Some((&interface.url).into()),
        protocol_binding: Some((&interface.binding).into()),
        tenant: interface.tenant.as_ref().map(Text::from),
        protocol_version: Some((&interface.version).into()),
        ..Interface::default()
    }
}

fn interface_v0_3(interface: &model::Interface) -> Interface<'_> {
    Interface {
        url: Some((&interface.url).into()),
        transport: Some((&interface.binding).into()),
        ..Interface::default()
    }
}

impl<'a> Capabilities<'a> {
    fn from_model(card: &'a model::Card, format: CardFormat) -> Self {
        let capabilities = &card.capabilities;
        let gateway = card.gateway.as_ref().filter(|_| format.has_gateway());
        let extensions = capabilities.extensions.iter().map(|extension| Extension {
            uri: Some((&extension.uri).into()),
            description: extension.description.as_ref().map(Text::from),
            required: (extension.required || format.is_v0_3()).then_some(extension.required),
            params: extension.params.as_ref().map(RawJson::from),
        });
        Capabilities {
            streaming: capabilities.streaming,
            push_notifications: capabilities.push_notifications,
            state_transition_history: capabilities.state_history.filter(|_| format.has_v0_3() || format.has_v0_1()),
            extensions: (!capabilities.extensions.is_empty() && format != CardFormat::V0_1)
                .then(|| extensions.collect()),
            extended_agent_card: capabilities.extended_card.filter(|_| format.has_v1()),
            task_management: gateway.map(|_| true),
            agent_discovery: gateway.map(|_| true),
            agent_count: gateway.map(|gateway| gateway.agents.len()),
            agents: gateway.map(|gateway| gateway.agents.iter().map(Text::from).collect()),
        }
    }
}

fn write_signatures(signatures: &[model::Signature]) -> Option<Vec<Signature<'_>>> {
    let each = signatures.iter().map(|signature| Signature {
        protected: Some((&signature.protected).into()),
        signature: Some((&signature.signature).into()),
        header: signature.header.as_ref().map(RawJson::from),
    });
    (!signatures.is_empty()).then(|| each.collect())
}
