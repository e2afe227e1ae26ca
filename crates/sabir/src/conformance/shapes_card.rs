//! The card, in the members of 1.0 (section 4.4) and in those of 0.3 (section 5.5), 0.2 and 0.1.
//!
//! A card may be of several versions at once: their members do not get in each other's way.

use super::shape::Kind::{Flag, Id, List, Map, Nested, Object, Some, Text};
use super::shape::{Member, Shape};

static PROVIDER: Shape = Shape::new(&[Member::required("organization", Text), Member::required("url", Text)]);
static EXTENSION: Shape = Shape::new(&[
    Member::required("uri", Id),
    Member::optional("description", Text),
    Member::optional("required", Flag),
    Member::optional("params", Object),
]);
static CAPABILITIES: Shape = Shape::new(&[
    Member::optional("streaming", Flag),
    Member::optional("pushNotifications", Flag),
    Member::optional("extendedAgentCard", Flag),
    Member::optional("stateTransitionHistory", Flag),
    Member::optional("extensions", List(&Nested(&EXTENSION))),
]);
static SIGNATURE: Shape = Shape::new(&[
    Member::required("protected", Id),
    Member::required("signature", Id),
    Member::optional("header", Object),
]);

/// Skills and interfaces are looked at by rules of their own, so here they are any objects.
pub static V1: Shape = Shape::new(&[
    Member::required("name", Id),
    Member::required("description", Text),
    Member::required("version", Id),
    Member::required("supportedInterfaces", Some(&Object)),
    Member::required("capabilities", Nested(&CAPABILITIES)),
    Member::required("defaultInputModes", Some(&Text)),
    Member::required("defaultOutputModes", Some(&Text)),
    Member::required("skills", Some(&Object)),
    Member::optional("provider", Nested(&PROVIDER)),
    Member::optional("documentationUrl", Text),
    Member::optional("iconUrl", Text),
    Member::optional("securitySchemes", Map(&Object)),
    Member::optional("securityRequirements", List(&Object)),
    Member::optional("signatures", List(&Nested(&SIGNATURE))),
]);

pub static V03: Shape = Shape::new(&[
    Member::required("name", Id),
    Member::required("description", Text),
    Member::required("version", Id),
    Member::required("url", Id),
    Member::required("capabilities", Nested(&CAPABILITIES)),
    Member::required("defaultInputModes", List(&Text)),
    Member::required("defaultOutputModes", List(&Text)),
    Member::required("skills", List(&Object)),
    Member::optional("preferredTransport", Text),
    Member::optional("additionalInterfaces", List(&Object)),
    Member::optional("supportsAuthenticatedExtendedCard", Flag),
    Member::optional("provider", Nested(&PROVIDER)),
    Member::optional("documentationUrl", Text),
    Member::optional("iconUrl", Text),
    Member::optional("securitySchemes", Map(&Object)),
    Member::optional("security", List(&Object)),
    Member::optional("signatures", List(&Nested(&SIGNATURE))),
]);

/// Descriptions and modes became required later.
pub static V01: Shape = Shape::with_nulls(&[
    Member::required("name", Id),
    Member::required("version", Id),
    Member::required("url", Id),
    Member::required("capabilities", Object),
    Member::required("skills", List(&Object)),
    Member::optional("description", Text),
    Member::optional("defaultInputModes", List(&Text)),
    Member::optional("defaultOutputModes", List(&Text)),
]);

pub static SKILL_V1: Shape = Shape::new(&[
    Member::required("id", Id),
    Member::required("name", Id),
    Member::required("description", Text),
    Member::required("tags", List(&Text)),
    Member::optional("examples", List(&Text)),
    Member::optional("inputModes", List(&Text)),
    Member::optional("outputModes", List(&Text)),
    Member::optional("securityRequirements", List(&Object)),
    Member::optional("security", List(&Object)),
]);

pub static SKILL_V01: Shape = Shape::with_nulls(&[
    Member::required("id", Id),
    Member::required("name", Id),
    Member::optional("description", Text),
    Member::optional("tags", List(&Text)),
    Member::optional("examples", List(&Text)),
    Member::optional("inputModes", List(&Text)),
    Member::optional("outputModes", List(&Text)),
]);
