//! Reading a card of any generation: interfaces of 1.0 where it has some, else the one address of 0.x.

use std::collections::HashSet;

use sabir_model as model;
use sabir_model::Error;

use super::entry::{Capabilities, Card, Extension, Interface, Provider, Signature};
use super::{requirement, security};
use crate::json;
use crate::spelling::{Problems, Several, Text, given};

const LONGEST_VERSION: usize = 32;

pub fn read(text: &str) -> Result<model::Card, Error> {
    Ok(json::read::<Card>(text)?.try_into()?)
}

impl TryFrom<Card<'_>> for model::Card {
    type Error = Problems;

    fn try_from(mut card: Card<'_>) -> Result<Self, Problems> {
        let mut problems = Problems::default();
        let interfaces = read_interfaces(&mut card, &mut problems);
        let mut security_schemes = Vec::new();
        for (name, scheme) in card.security_schemes.0 {
            let member = format!("securitySchemes.{}", name.as_str());
            if let Some(Some(scheme)) = problems.keep(&member, security::read(scheme)) {
                security_schemes.push((name.into_string(), scheme));
            }
        }
        let mut security = requirement::read(card.security_requirements, card.security);
        if security_schemes.is_empty() && security.is_empty() {
            (security_schemes, security) = card.authentication.unwrap_or_default().read();
        }
        let capabilities = card.capabilities.unwrap_or_default();
        let capabilities = problems.keep("capabilities", capabilities.try_into());
        let mut capabilities: model::Capabilities = capabilities.unwrap_or_default();
        capabilities.extended_card = capabilities.extended_card.or(card.supports_authenticated_extended_card);
        let skills = Several::<_, ()>::Made(card.skills.unwrap_or_default());
        let signatures = Several::<_, ()>::Made(card.signatures.unwrap_or_default());
        let texts = |list: Option<Vec<Text<'_>>>| list.unwrap_or_default().into_iter().map(Text::into_string).collect();
        let card = model::Card {
            name: problems.required_text("name", card.name).unwrap_or_default(),
            // Cards in the wild leave these out.
            description: given(card.description).unwrap_or_default(),
            version: given(card.version).unwrap_or_default(),
            provider: card.provider.map(model::Provider::from),
            documentation_url: given(card.documentation_url),
            icon_url: given(card.icon_url),
            interfaces,
            capabilities,
            security_schemes,
            security,
            input_modes: texts(card.default_input_modes),
            output_modes: texts(card.default_output_modes),
            skills: skills.read_each("skills", &mut problems, TryInto::try_into),
            signatures: signatures.read_each("signatures", &mut problems, TryInto::try_into),
            gateway: None,
        };
        problems.or(Some(card))
    }
}

fn read_interfaces(card: &mut Card<'_>, problems: &mut Problems) -> Vec<model::Interface> {
    let listed = card.supported_interfaces.take().unwrap_or_default();
    if !listed.is_empty() {
        let listed = Several::<_, ()>::Made(listed);
        return listed.read_each("supportedInterfaces", problems, read_interface);
    }
    // Before 0.3 a card did not have to tell its version; such a peer is probed, 0.2 first.
    let version = given(card.protocol_version.take()).unwrap_or_else(|| "0.2".to_owned());
    let version = version.splitn(3, '.').take(2).collect::<Vec<_>>().join(".");
    // Every interface gets a copy of it.
    if version.len() > LONGEST_VERSION {
        problems.add("protocolVersion", "is no version of the protocol");
        return Vec::new();
    }
    let Some(url) = problems.required_text("url", card.url.take()) else { return Vec::new() };
    let binding = given(card.preferred_transport.take()).unwrap_or_else(|| "JSONRPC".to_owned());
    let mut known: HashSet<[Text<'_>; 2]> = HashSet::from([[url.clone().into(), binding.clone().into()]]);
    let mut interfaces = vec![model::Interface { url, binding, version: version.clone(), tenant: None }];
    for other in card.additional_interfaces.take().unwrap_or_default() {
        let (Some(url), Some(binding)) = (other.url, other.transport) else { continue };
        if known.insert([url.clone(), binding.clone()])
            && let (Some(url), Some(binding)) = (given(Some(url)), given(Some(binding)))
        {
            interfaces.push(model::Interface { url, binding, version: version.clone(), tenant: None });
        }
    }
    interfaces
}

fn read_interface(interface: Interface<'_>) -> Result<model::Interface, Problems> {
    let mut problems = Problems::default();
    let url = problems.required_text("url", interface.url);
    let binding = problems.required_text("protocolBinding", interface.protocol_binding);
    let version = given(interface.protocol_version).unwrap_or_else(|| "1.0".to_owned());
    let tenant = given(interface.tenant);
    problems.or(url.zip(binding).map(|(url, binding)| model::Interface { url, binding, version, tenant }))
}

impl From<Provider<'_>> for model::Provider {
    fn from(provider: Provider<'_>) -> Self {
        model::Provider {
            organization: given(provider.organization).unwrap_or_default(),
            url: given(provider.url).unwrap_or_default(),
        }
    }
}

impl TryFrom<Capabilities<'_>> for model::Capabilities {
    type Error = Problems;

    fn try_from(capabilities: Capabilities<'_>) -> Result<Self, Problems> {
        let mut problems = Problems::default();
        let extensions = Several::<_, ()>::Made(capabilities.extensions.unwrap_or_default());
        let extensions = extensions.read_each("extensions", &mut problems, TryInto::try_into);
        problems.or(Some(model::Capabilities {
            streaming: capabilities.streaming,
            push_notifications: capabilities.push_notifications,
            extended_card: capabilities.extended_agent_card,
            state_history: capabilities.state_transition_history,
            extensions,
        }))
    }
}

impl TryFrom<Extension<'_>> for model::Extension {
    type Error = Problems;

    fn try_from(extension: Extension<'_>) -> Result<Self, Problems> {
        let mut problems = Problems::default();
        let uri = problems.required_text("uri", extension.uri);
        let params = problems.object("params", extension.params);
        problems.or(uri.map(|uri| model::Extension {
            uri,
            description: given(extension.description),
            required: extension.required.unwrap_or(false),
            params,
        }))
    }
}

impl TryFrom<Signature<'_>> for model::Signature {
    type Error = Problems;

    fn try_from(signature: Signature<'_>) -> Result<Self, Problems> {
        let mut problems = Problems::default();
        let protected = problems.required_text("protected", signature.protected);
        let header = problems.object("header", signature.header);
        let signature = problems.required_text("signature", signature.signature);
        let both = protected.zip(signature);
        problems.or(both.map(|(protected, signature)| model::Signature { protected, signature, header }))
    }
}
