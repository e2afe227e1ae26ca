//! Agent cards, with the members that the JSON card of 1.0 has.

use sabir_model as model;
use sabir_proto::v1 as proto;

use super::card_security::{read_requirements, read_schemes, write_requirements, write_scheme};
use crate::protobuf::{read_struct, write_struct};
use crate::wire_types::{Violations, WireList, non_empty};

pub(super) fn write_card(card: &model::Card) -> proto::AgentCard {
    let schemes = card.security_schemes.iter();
    proto::AgentCard {
        name: card.name.clone(),
        description: card.description.clone(),
        supported_interfaces: card.interfaces.iter().map(write_interface).collect(),
        provider: card.provider.as_ref().map(|provider| proto::AgentProvider {
            organization: provider.organization.clone(),
            url: provider.url.clone(),
        }),
        version: card.version.clone(),
        documentation_url: card.documentation_url.clone(),
        capabilities: Some(write_capabilities(&card.capabilities)),
        security_schemes: schemes.map(|(name, scheme)| (name.clone(), write_scheme(scheme))).collect(),
        security_requirements: write_requirements(&card.security),
        default_input_modes: card.input_modes.clone(),
        default_output_modes: card.output_modes.clone(),
        skills: card.skills.iter().map(write_skill).collect(),
        signatures: card.signatures.iter().map(write_signature).collect(),
        icon_url: card.icon_url.clone(),
    }
}

fn write_interface(interface: &model::Interface) -> proto::AgentInterface {
    proto::AgentInterface {
        url: interface.url.clone(),
        protocol_binding: interface.binding.clone(),
        tenant: interface.tenant.clone().unwrap_or_default(),
        protocol_version: interface.version.clone(),
    }
}

fn write_capabilities(capabilities: &model::Capabilities) -> proto::AgentCapabilities {
    let extensions = capabilities.extensions.iter().map(|extension| proto::AgentExtension {
        uri: extension.uri.clone(),
        description: extension.description.clone().unwrap_or_default(),
        required: extension.required,
        params: extension.params.as_ref().map(write_struct),
    });
    proto::AgentCapabilities {
        streaming: capabilities.streaming,
        push_notifications: capabilities.push_notifications,
        extensions: extensions.collect(),
        extended_agent_card: capabilities.extended_card,
    }
}

fn write_skill(skill: &model::Skill) -> proto::AgentSkill {
    proto::AgentSkill {
        id: skill.id.clone(),
        name: skill.name.clone(),
        description: skill.description.clone(),
        tags: skill.tags.clone(),
        examples: skill.examples.clone(),
        input_modes: skill.input_modes.clone(),
        output_modes: skill.output_modes.clone(),
        security_requirements: write_requirements(&skill.security),
    }
}

fn write_signature(signature: &model::Signature) -> proto::AgentCardSignature {
    proto::AgentCardSignature {
        protected: signature.protected.clone(),
        signature: signature.signature.clone(),
        header: signature.header.as_ref().map(write_struct),
    }
}

pub(super) fn read_card(card: proto::AgentCard) -> Result<model::Card, Violations> {
    let mut violations = Violations::default();
    if card.supported_interfaces.is_empty() {
        violations.add("supportedInterfaces", "is required");
    }
    let interfaces = WireList::<_, ()>::Wire(card.supported_interfaces);
    let skills = WireList::<_, ()>::Wire(card.skills);
    let signatures = WireList::<_, ()>::Wire(card.signatures);
    let card = model::Card {
        interfaces: interfaces.read_each("supportedInterfaces", &mut violations, read_interface),
        security_schemes: read_schemes(card.security_schemes, &mut violations),
        security: read_requirements(card.security_requirements),
        capabilities: violations
            .check("capabilities", read_capabilities(card.capabilities.unwrap_or_default()))
            .unwrap_or_default(),
        name: violations.required_text("name", Some(card.name.into())).unwrap_or_default(),
        description: card.description,
        version: card.version,
        provider: card
            .provider
            .map(|provider| model::Provider { organization: provider.organization, url: provider.url }),
        documentation_url: non_empty(card.documentation_url.map(Into::into)),
        icon_url: non_empty(card.icon_url.map(Into::into)),
        input_modes: card.default_input_modes,
        output_modes: card.default_output_modes,
        skills: skills.read_each("skills", &mut violations, read_skill),
        signatures: signatures.read_each("signatures", &mut violations, read_signature),
        gateway: None,
    };
    violations.finish(Some(card))
}

fn read_interface(interface: proto::AgentInterface) -> Result<model::Interface, Violations> {
    let mut violations = Violations::default();
    let url = violations.required_text("url", Some(interface.url.into()));
    let binding = violations.required_text("protocolBinding", Some(interface.protocol_binding.into()));
    let version = non_empty(Some(interface.protocol_version.into())).unwrap_or_else(|| "1.0".to_owned());
    let tenant = non_empty(Some(interface.tenant.into()));
    violations.finish(url.zip(binding).map(|(url, binding)| model::Interface { url, binding, version, tenant }))
}

fn read_capabilities(capabilities: proto::AgentCapabilities) -> Result<model::Capabilities, Violations> {
    let mut violations = Violations::default();
    let extensions = WireList::<_, ()>::Wire(capabilities.extensions);
    let extensions = extensions.read_each("extensions", &mut violations, read_extension);
    violations.finish(Some(model::Capabilities {
        streaming: capabilities.streaming,
        push_notifications: capabilities.push_notifications,
        extended_card: capabilities.extended_agent_card,
        state_history: None,
        extensions,
    }))
}

fn read_extension(extension: proto::AgentExtension) -> Result<model::Extension, Violations> {
    let mut violations = Violations::default();
    let uri = violations.required_text("uri", Some(extension.uri.into()));
    let params = extension.params.and_then(|object| violations.check("params", read_struct(object)));
    violations.finish(uri.map(|uri| model::Extension {
        uri,
        description: non_empty(Some(extension.description.into())),
        required: extension.required,
        params,
    }))
}

fn read_skill(skill: proto::AgentSkill) -> Result<model::Skill, Violations> {
    let mut violations = Violations::default();
    let id = violations.required_text("id", Some(skill.id.into()));
    violations.finish(id.map(|id| model::Skill {
        id,
        name: skill.name,
        description: skill.description,
        tags: skill.tags,
        examples: skill.examples,
        input_modes: skill.input_modes,
        output_modes: skill.output_modes,
        security: read_requirements(skill.security_requirements),
    }))
}

fn read_signature(signature: proto::AgentCardSignature) -> Result<model::Signature, Violations> {
    let mut violations = Violations::default();
    let protected = violations.required_text("protected", Some(signature.protected.into()));
    let header = signature.header.and_then(|object| violations.check("header", read_struct(object)));
    let signature = violations.required_text("signature", Some(signature.signature.into()));
    let both = protected.zip(signature);
    violations.finish(both.map(|(protected, signature)| model::Signature { protected, signature, header }))
}
