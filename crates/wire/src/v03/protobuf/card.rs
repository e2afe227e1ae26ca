//! Cards, with the members that the card of 0.3 has as JSON. There is no field for `stateTransitionHistory`.

use sabir_model as model;
use sabir_proto::v03;

use super::fields::{present, read_object, write_metadata};
use super::security::{read_requirements, read_scheme, write_requirements, write_scheme};
use crate::card::Addresses;
use crate::wire_types::{Text, Violations, WireList, non_empty};

pub(super) fn write_card(card: &model::Card) -> v03::AgentCard {
    let is_old = |interface: &&model::Interface| interface.version.starts_with("0.");
    // A card must have a main interface, so it takes what there is.
    let main = card.interfaces.iter().find(is_old).or(card.interfaces.first());
    let schemes = card.security_schemes.iter();
    v03::AgentCard {
        protocol_version: main.map(|_| "0.3.0".to_owned()).unwrap_or_default(),
        name: card.name.clone(),
        description: card.description.clone(),
        url: main.map(|main| main.url.clone()).unwrap_or_default(),
        preferred_transport: main.map(|main| main.binding.clone()).unwrap_or_default(),
        additional_interfaces: card.interfaces.iter().filter(is_old).map(write_interface).collect(),
        provider: card.provider.as_ref().map(|provider| v03::AgentProvider {
            url: provider.url.clone(),
            organization: provider.organization.clone(),
        }),
        version: card.version.clone(),
        documentation_url: card.documentation_url.clone().unwrap_or_default(),
        capabilities: Some(write_capabilities(&card.capabilities)),
        security_schemes: schemes.map(|(name, scheme)| (name.clone(), write_scheme(scheme))).collect(),
        security: write_requirements(&card.security),
        default_input_modes: card.input_modes.clone(),
        default_output_modes: card.output_modes.clone(),
        skills: card.skills.iter().map(write_skill).collect(),
        supports_authenticated_extended_card: card.capabilities.extended_card.unwrap_or(false),
        signatures: card.signatures.iter().map(write_signature).collect(),
        icon_url: card.icon_url.clone().unwrap_or_default(),
    }
}

fn write_interface(interface: &model::Interface) -> v03::AgentInterface {
    v03::AgentInterface { url: interface.url.clone(), transport: interface.binding.clone() }
}

fn write_capabilities(capabilities: &model::Capabilities) -> v03::AgentCapabilities {
    let extensions = capabilities.extensions.iter().map(|extension| v03::AgentExtension {
        uri: extension.uri.clone(),
        description: extension.description.clone().unwrap_or_default(),
        required: extension.required,
        params: write_metadata(&extension.params),
    });
    v03::AgentCapabilities {
        streaming: capabilities.streaming.unwrap_or(false),
        push_notifications: capabilities.push_notifications.unwrap_or(false),
        extensions: extensions.collect(),
    }
}

fn write_skill(skill: &model::Skill) -> v03::AgentSkill {
    v03::AgentSkill {
        id: skill.id.clone(),
        name: skill.name.clone(),
        description: skill.description.clone(),
        tags: skill.tags.clone(),
        examples: skill.examples.clone(),
        input_modes: skill.input_modes.clone(),
        output_modes: skill.output_modes.clone(),
        security: write_requirements(&skill.security),
    }
}

fn write_signature(signature: &model::Signature) -> v03::AgentCardSignature {
    v03::AgentCardSignature {
        protected: signature.protected.clone(),
        signature: signature.signature.clone(),
        header: write_metadata(&signature.header),
    }
}

/// A flag of protobuf is never missing: what is not promised is denied.
pub(super) fn read_card(card: v03::AgentCard) -> Result<model::Card, Violations> {
    let mut violations = Violations::default();
    let others = card.additional_interfaces.into_iter();
    let addresses = Addresses {
        version: present(card.protocol_version),
        url: present(card.url),
        transport: present(card.preferred_transport),
        others: others.map(|other| (Text::from(other.url), Text::from(other.transport))).collect(),
    };
    let interfaces = addresses.read(&mut violations);
    let mut security_schemes = Vec::new();
    for (name, scheme) in card.security_schemes {
        let member = format!("securitySchemes.{name}");
        if let Some(Some(scheme)) = violations.check(&member, read_scheme(scheme)) {
            security_schemes.push((name, scheme));
        }
    }
    let capabilities = card.capabilities.map(read_capabilities).transpose();
    let capabilities = violations.check("capabilities", capabilities).flatten().unwrap_or_default();
    let skills = WireList::<_, ()>::Wire(card.skills);
    let signatures = WireList::<_, ()>::Wire(card.signatures);
    let read = model::Card {
        name: violations.required_text("name", present(card.name)).unwrap_or_default(),
        description: card.description,
        version: card.version,
        provider: card
            .provider
            .map(|provider| model::Provider { organization: provider.organization, url: provider.url }),
        documentation_url: non_empty(present(card.documentation_url)),
        icon_url: non_empty(present(card.icon_url)),
        interfaces,
        capabilities: model::Capabilities {
            extended_card: Some(card.supports_authenticated_extended_card),
            ..capabilities
        },
        security_schemes,
        security: read_requirements(card.security),
        input_modes: card.default_input_modes,
        output_modes: card.default_output_modes,
        skills: skills.read_each("skills", &mut violations, read_skill),
        signatures: signatures.read_each("signatures", &mut violations, read_signature),
        gateway: None,
    };
    violations.finish(Some(read))
}

fn read_capabilities(capabilities: v03::AgentCapabilities) -> Result<model::Capabilities, Violations> {
    let mut violations = Violations::default();
    let extensions = WireList::<_, ()>::Wire(capabilities.extensions);
    let extensions = extensions.read_each("extensions", &mut violations, read_extension);
    violations.finish(Some(model::Capabilities {
        streaming: Some(capabilities.streaming),
        push_notifications: Some(capabilities.push_notifications),
        extended_card: None,
        state_history: None,
        extensions,
    }))
}

fn read_extension(extension: v03::AgentExtension) -> Result<model::Extension, Violations> {
    let mut violations = Violations::default();
    let uri = violations.required_text("uri", present(extension.uri));
    let params = read_object("params", extension.params, &mut violations);
    violations.finish(uri.map(|uri| model::Extension {
        uri,
        description: non_empty(present(extension.description)),
        required: extension.required,
        params,
    }))
}

fn read_skill(skill: v03::AgentSkill) -> Result<model::Skill, Violations> {
    let mut violations = Violations::default();
    let id = violations.required_text("id", present(skill.id));
    violations.finish(id.map(|id| model::Skill {
        id,
        name: skill.name,
        description: skill.description,
        tags: skill.tags,
        examples: skill.examples,
        input_modes: skill.input_modes,
        output_modes: skill.output_modes,
        security: read_requirements(skill.security),
    }))
}

fn read_signature(signature: v03::AgentCardSignature) -> Result<model::Signature, Violations> {
    let mut violations = Violations::default();
    let protected = violations.required_text("protected", present(signature.protected));
    let header = read_object("header", signature.header, &mut violations);
    let signature = violations.required_text("signature", present(signature.signature));
    let both = protected.zip(signature);
    violations.finish(both.map(|(protected, signature)| model::Signature { protected, signature, header }))
}
