//! Reading a card of any version: the interfaces of 1.0 where it has some, else the addresses of 0.x.

use std::collections::HashSet;

use sabir_model as model;
use sabir_model::Error;

use super::entry::{Capabilities, Card, Extension, Interface, Provider, Signature};
use super::{requirement, security};
use crate::json;
use crate::wire_types::{Text, Violations, WireList, non_empty};

const LONGEST_VERSION: usize = 32;

pub fn read(text: &str) -> Result<model::Card, Error> {
    Ok(json::read::<Card>(text)?.try_into()?)
}

impl TryFrom<Card<'_>> for model::Card {
    type Error = Violations;

    fn try_from(mut card: Card<'_>) -> Result<Self, Violations> {
        let mut violations = Violations::default();
        let interfaces = read_interfaces(&mut card, &mut violations);
        let mut security_schemes = Vec::new();
        for (name, scheme) in card.security_schemes.0 {
            let member = format!("securitySchemes.{}", name.as_str());
            if let Some(Some(scheme)) = violations.check(&member, security::read(scheme)) {
                security_schemes.push((name.into_string(), scheme));
            }
        }
        let mut security = requirement::read(card.security_requirements, card.security);
        if security_schemes.is_empty() && security.is_empty() {
            (security_schemes, security) = card.authentication.unwrap_or_default().read();
        }
        let capabilities = card.capabilities.unwrap_or_default();
        let capabilities = violations.check("capabilities", capabilities.try_into());
        let mut capabilities: model::Capabilities = capabilities.unwrap_or_default();
        capabilities.extended_card = capabilities.extended_card.or(card.supports_authenticated_extended_card);
        let skills = WireList::<_, ()>::Wire(card.skills.unwrap_or_default());
        let signatures = WireList::<_, ()>::Wire(card.signatures.unwrap_or_default());
        let texts = |list: Option<Vec<Text<'_>>>| list.unwrap_or_default().into_iter().map(Text::into_string).collect();
        let card = model::Card {
            name: violations.required_text("name", card.name).unwrap_or_default(),
            // Some cards leave these out.
            description: non_empty(card.description).unwrap_or_default(),
            version: non_empty(card.version).unwrap_or_default(),
            provider: card.provider.map(model::Provider::from),
            documentation_url: non_empty(card.documentation_url),
            icon_url: non_empty(card.icon_url),
            interfaces,
            capabilities,
            security_schemes,
            security,
            input_modes: texts(card.default_input_modes),
            output_modes: texts(card.default_output_modes),
            skills: skills.read_each("skills", &mut violations, TryInto::try_into),
            signatures: signatures.read_each("signatures", &mut violations, TryInto::try_into),
            gateway: None,
        };
        violations.finish(Some(card))
    }
}

fn read_interfaces(card: &mut Card<'_>, violations: &mut Violations) -> Vec<model::Interface> {
    let listed = card.supported_interfaces.take().unwrap_or_default();
    if !listed.is_empty() {
        let listed = WireList::<_, ()>::Wire(listed);
        return listed.read_each("supportedInterfaces", violations, read_interface);
    }
    let others = card.additional_interfaces.take().unwrap_or_default().into_iter();
    let addresses = Addresses {
        version: card.protocol_version.take(),
        url: card.url.take(),
        transport: card.preferred_transport.take(),
        others: others.filter_map(|other| other.url.zip(other.transport)).collect(),
    };
    addresses.read(violations)
}

/// Where the agent of a card of 0.x is reached.
pub(crate) struct Addresses<'a> {
    pub(crate) version: Option<Text<'a>>,
    pub(crate) url: Option<Text<'a>>,
    pub(crate) transport: Option<Text<'a>>,
    /// URL and transport of each additional interface.
    pub(crate) others: Vec<(Text<'a>, Text<'a>)>,
}

impl Addresses<'_> {
    pub(crate) fn read(self, violations: &mut Violations) -> Vec<model::Interface> {
        // Before 0.3 a card could leave its version out; such a peer is tried with 0.2 first.
        let version = non_empty(self.version).unwrap_or_else(|| "0.2".to_owned());
        let version = version.splitn(3, '.').take(2).collect::<Vec<_>>().join(".");
        // Every interface gets a copy of it.
        if version.len() > LONGEST_VERSION {
            violations.add("protocolVersion", "is no version of the protocol");
            return Vec::new();
        }
        let Some(url) = violations.required_text("url", self.url) else { return Vec::new() };
        let binding = non_empty(self.transport).unwrap_or_else(|| "JSONRPC".to_owned());
        let mut known: HashSet<[Text<'_>; 2]> = HashSet::from([[url.clone().into(), binding.clone().into()]]);
        let mut interfaces = vec![model::Interface { url, binding, version: version.clone(), tenant: None }];
        for (url, binding) in self.others {
            if known.insert([url.clone(), binding.clone()])
                && let (Some(url), Some(binding)) = (non_empty(Some(url)), non_empty(Some(binding)))
            {
                interfaces.push(model::Interface { url, binding, version: version.clone(), tenant: None });
            }
        }
        interfaces
    }
}

fn read_interface(interface: Interface<'_>) -> Result<model::Interface, Violations> {
    let mut violations = Violations::default();
    let url = violations.required_text("url", interface.url);
    let binding = violations.required_text("protocolBinding", interface.protocol_binding);
    let version = non_empty(interface.protocol_version).unwrap_or_else(|| "1.0".to_owned());
    let tenant = non_empty(interface.tenant);
    violations.finish(url.zip(binding).map(|(url, binding)| model::Interface { url, binding, version, tenant }))
}

impl From<Provider<'_>> for model::Provider {
    fn from(provider: Provider<'_>) -> Self {
        model::Provider {
            organization: non_empty(provider.organization).unwrap_or_default(),
            url: non_empty(provider.url).unwrap_or_default(),
        }
    }
}

impl TryFrom<Capabilities<'_>> for model::Capabilities {
    type Error = Violations;

    fn try_from(capabilities: Capabilities<'_>) -> Result<Self, Violations> {
        let mut violations = Violations::default();
        let extensions = WireList::<_, ()>::Wire(capabilities.extensions.unwrap_or_default());
        let extensions = extensions.read_each("extensions", &mut violations, TryInto::try_into);
        violations.finish(Some(model::Capabilities {
            streaming: capabilities.streaming,
            push_notifications: capabilities.push_notifications,
            extended_card: capabilities.extended_agent_card,
            state_history: capabilities.state_transition_history,
            extensions,
        }))
    }
}

impl TryFrom<Extension<'_>> for model::Extension {
    type Error = Violations;

    fn try_from(extension: Extension<'_>) -> Result<Self, Violations> {
        let mut violations = Violations::default();
        let uri = violations.required_text("uri", extension.uri);
        let params = violations.object("params", extension.params);
        violations.finish(uri.map(|uri| model::Extension {
            uri,
            description: non_empty(extension.description),
            required: extension.required.unwrap_or(false),
            params,
        }))
    }
}

impl TryFrom<Signature<'_>> for model::Signature {
    type Error = Violations;

    fn try_from(signature: Signature<'_>) -> Result<Self, Violations> {
        let mut violations = Violations::default();
        let protected = violations.required_text("protected", signature.protected);
        let header = violations.object("header", signature.header);
        let signature = violations.required_text("signature", signature.signature);
        let both = protected.zip(signature);
        violations.finish(both.map(|(protected, signature)| model::Signature { protected, signature, header }))
    }
}
