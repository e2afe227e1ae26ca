//! Which members of a card a signature covers.
//!
//! The SDKs read a card into the types of their version, write it again and sign that. So a signature covers the members
//! that the version knows, without those whose value is the version's default, and without all that is empty. 1.0 demands
//! that required members stay although they are empty; no SDK keeps them, and neither do we.

use std::borrow::Cow;

use crate::jcs::{Tree, sort_members};

/// The members of one version of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CardMembers {
    V1_0,
    V0_3,
}

impl CardMembers {
    /// As in a sentence: the members of 1.0.
    pub fn version(self) -> &'static str {
        match self {
            CardMembers::V1_0 => "1.0",
            CardMembers::V0_3 => "0.3",
        }
    }
}

/// The card as clients of this version read it.
pub(super) fn covered<'a>(card: &Tree<'a>, members: CardMembers) -> Tree<'a> {
    let shape = match members {
        CardMembers::V1_0 => CARD_V1,
        CardMembers::V0_3 => CARD_V0_3,
    };
    Shape::Object(shape).keep(card).unwrap_or_else(|| Tree::Object(Vec::new()))
}

/// What is kept of a value.
#[derive(Clone, Copy)]
enum Shape {
    /// All but what is empty.
    Any,
    /// Not what protobuf has for a flag that is not set.
    UnlessFalse,
    /// Not this text.
    Unless(&'static str),
    List(&'static Shape),
    Map(&'static Shape),
    Object(&'static [(&'static str, Shape)]),
}

impl Shape {
    /// `None` where nothing is left. Recursion goes no deeper than the tree does.
    fn keep<'a>(&self, value: &Tree<'a>) -> Option<Tree<'a>> {
        match (self, value) {
            (Shape::Unless(text), Tree::Text(value)) if value == text => None,
            (Shape::UnlessFalse, Tree::Flag(false)) => None,
            (_, Tree::Null) => None,
            (_, Tree::Text(text)) if text.is_empty() => None,
            (_, Tree::Flag(_) | Tree::Number(_) | Tree::Text(_)) => Some(value.clone()),
            (shape, Tree::List(items)) => {
                let each = if let Shape::List(each) = shape { each } else { &Shape::Any };
                let kept: Vec<_> = items.iter().filter_map(|item| each.keep(item)).collect();
                (!kept.is_empty()).then_some(Tree::List(kept))
            }
            (shape, Tree::Object(members)) => {
                let kept = members.iter().filter_map(|(name, value)| shape.keep_member(name, value));
                let mut kept: Vec<_> = kept.collect();
                // A card with both spellings of a name is refused when it is read; here it is only a text that nobody signed.
                let _ = sort_members(&mut kept);
                (!kept.is_empty()).then_some(Tree::Object(kept))
            }
        }
    }

    fn keep_member<'a>(&self, name: &Cow<'a, str>, value: &Tree<'a>) -> Option<(Cow<'a, str>, Tree<'a>)> {
        match self {
            Shape::Object(known) => {
                let (name, shape) = known.iter().find(|(known, _)| known == name || is_snake_case_of(known, name))?;
                Some(((*name).into(), shape.keep(value)?))
            }
            Shape::Map(each) => Some((name.clone(), each.keep(value)?)),
            _ => Some((name.clone(), Shape::Any.keep(value)?)),
        }
    }
}

/// Readers of protobuf's JSON take `icon_url` for `iconUrl`, and so does ours.
fn is_snake_case_of(name: &str, other: &str) -> bool {
    let mut others = other.chars();
    let mut matches = |letter: char| others.next() == Some(letter);
    let is_equal = name.chars().all(|letter| match letter {
        'A'..='Z' => matches('_') && matches(letter.to_ascii_lowercase()),
        letter => matches(letter),
    });
    is_equal && others.next().is_none()
}

type Members = &'static [(&'static str, Shape)];

use Shape::{Any, List, Map, Object, Unless, UnlessFalse};

const CARD_V1: Members = &[
    ("name", Any),
    ("description", Any),
    ("supportedInterfaces", List(&Object(INTERFACE_V1))),
    ("provider", Object(PROVIDER)),
    ("version", Any),
    ("documentationUrl", Any),
    ("capabilities", Object(CAPABILITIES_V1)),
    ("securitySchemes", Map(&Object(SCHEME_V1))),
    ("securityRequirements", List(&Object(REQUIREMENT_V1))),
    ("defaultInputModes", Any),
    ("defaultOutputModes", Any),
    ("skills", List(&Object(SKILL_V1))),
    ("iconUrl", Any),
];

const INTERFACE_V1: Members = &[("url", Any), ("protocolBinding", Any), ("tenant", Any), ("protocolVersion", Any)];

const PROVIDER: Members = &[("url", Any), ("organization", Any)];

const CAPABILITIES_V1: Members = &[
    ("streaming", Any),
    ("pushNotifications", Any),
    ("extensions", List(&Object(EXTENSION_V1))),
    ("extendedAgentCard", Any),
];

const EXTENSION_V1: Members = &[("uri", Any), ("description", Any), ("required", UnlessFalse), ("params", Any)];

const SCHEME_V1: Members = &[
    ("apiKeySecurityScheme", Object(&[("description", Any), ("location", Any), ("name", Any)])),
    ("httpAuthSecurityScheme", Object(&[("description", Any), ("scheme", Any), ("bearerFormat", Any)])),
    ("oauth2SecurityScheme", Object(&[("description", Any), ("flows", Object(FLOWS_V1)), ("oauth2MetadataUrl", Any)])),
    ("openIdConnectSecurityScheme", Object(&[("description", Any), ("openIdConnectUrl", Any)])),
    ("mtlsSecurityScheme", Object(&[("description", Any)])),
];

const FLOWS_V1: Members = &[
    ("authorizationCode", Object(FLOW_V1)),
    ("clientCredentials", Object(&[("tokenUrl", Any), ("refreshUrl", Any), ("scopes", Any)])),
    ("implicit", Object(&[("authorizationUrl", Any), ("refreshUrl", Any), ("scopes", Any)])),
    ("password", Object(&[("tokenUrl", Any), ("refreshUrl", Any), ("scopes", Any)])),
    ("deviceCode", Object(&[("deviceAuthorizationUrl", Any), ("tokenUrl", Any), ("refreshUrl", Any), ("scopes", Any)])),
];

const FLOW_V1: Members = &[
    ("authorizationUrl", Any),
    ("tokenUrl", Any),
    ("refreshUrl", Any),
    ("scopes", Any),
    ("pkceRequired", UnlessFalse),
];

const REQUIREMENT_V1: Members = &[("schemes", Map(&Object(&[("list", Any)])))];

const SKILL_V1: Members = &[
    ("id", Any),
    ("name", Any),
    ("description", Any),
    ("tags", Any),
    ("examples", Any),
    ("inputModes", Any),
    ("outputModes", Any),
    ("securityRequirements", List(&Object(REQUIREMENT_V1))),
];

const CARD_V0_3: Members = &[
    ("protocolVersion", Unless("0.3.0")),
    ("name", Any),
    ("description", Any),
    ("url", Any),
    ("preferredTransport", Unless("JSONRPC")),
    ("additionalInterfaces", List(&Object(&[("url", Any), ("transport", Any)]))),
    ("iconUrl", Any),
    ("provider", Object(PROVIDER)),
    ("version", Any),
    ("documentationUrl", Any),
    ("capabilities", Object(CAPABILITIES_V0_3)),
    ("securitySchemes", Map(&Object(SCHEME_V0_3))),
    ("security", Any),
    ("defaultInputModes", Any),
    ("defaultOutputModes", Any),
    ("skills", List(&Object(SKILL_V0_3))),
    ("supportsAuthenticatedExtendedCard", Any),
];

const CAPABILITIES_V0_3: Members = &[
    ("streaming", Any),
    ("pushNotifications", Any),
    ("stateTransitionHistory", Any),
    ("extensions", List(&Object(&[("uri", Any), ("description", Any), ("required", Any), ("params", Any)]))),
];

/// Of all kinds together; `type` is the default of its kind.
const SCHEME_V0_3: Members = &[
    ("description", Any),
    ("in", Any),
    ("name", Any),
    ("scheme", Any),
    ("bearerFormat", Any),
    ("flows", Object(FLOWS_V0_3)),
    ("oauth2MetadataUrl", Any),
    ("openIdConnectUrl", Any),
];

const FLOWS_V0_3: Members = &[
    ("authorizationCode", Object(FLOW_V0_3)),
    ("clientCredentials", Object(FLOW_V0_3)),
    ("implicit", Object(FLOW_V0_3)),
    ("password", Object(FLOW_V0_3)),
];

const FLOW_V0_3: Members = &[("authorizationUrl", Any), ("tokenUrl", Any), ("refreshUrl", Any), ("scopes", Any)];

const SKILL_V0_3: Members = &[
    ("id", Any),
    ("name", Any),
    ("description", Any),
    ("tags", Any),
    ("examples", Any),
    ("inputModes", Any),
    ("outputModes", Any),
    ("security", Any),
];
