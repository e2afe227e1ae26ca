//! Skills, spelled alike in all generations but for their security.

use sabir_model as model;
use serde::{Deserialize, Serialize};

use super::CardFormat;
use super::requirement::{self, Requirement, Scopes};
use crate::wire_types::{OrderedMap, Text, Violations, WireList, object};

#[derive(Debug, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase")]
pub(super) struct Skill<'a> {
    #[serde(borrow)]
    id: Option<Text<'a>>,
    name: Option<Text<'a>>,
    description: Option<Text<'a>>,
    #[serde(default)]
    tags: WireList<'a, Text<'a>, String>,
    #[serde(default, skip_serializing_if = "WireList::is_empty")]
    examples: WireList<'a, Text<'a>, String>,
    #[serde(default, alias = "input_modes", skip_serializing_if = "WireList::is_empty")]
    input_modes: WireList<'a, Text<'a>, String>,
    #[serde(default, alias = "output_modes", skip_serializing_if = "WireList::is_empty")]
    output_modes: WireList<'a, Text<'a>, String>,
    #[serde(alias = "security_requirements", skip_serializing_if = "Option::is_none")]
    security_requirements: Option<Vec<Requirement<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    security: Option<Vec<OrderedMap<'a, Scopes<'a>>>>,
}

object! { both Skill<'a> }

impl<'a> Skill<'a> {
    pub(super) fn from_model(skill: &'a model::Skill, format: CardFormat) -> Self {
        Skill {
            id: Some((&skill.id).into()),
            name: Some((&skill.name).into()),
            description: Some((&skill.description).into()),
            tags: (&skill.tags).into(),
            examples: (&skill.examples).into(),
            input_modes: (&skill.input_modes).into(),
            output_modes: (&skill.output_modes).into(),
            security_requirements: format.has_v1().then(|| requirement::write_v1(&skill.security)).flatten(),
            security: format.has_v0_3().then(|| requirement::write_v0_3(&skill.security)).flatten(),
        }
    }
}

impl TryFrom<Skill<'_>> for model::Skill {
    type Error = Violations;

    fn try_from(skill: Skill<'_>) -> Result<Self, Violations> {
        let mut violations = Violations::default();
        let strings = |list: WireList<'_, Text<'_>, String>| -> Vec<String> {
            list.into_wire().into_iter().map(Text::into_string).collect()
        };
        let id = violations.required_text("id", skill.id);
        // Cards in the wild leave these out; a skill is still known by its id.
        let text = |text: Option<Text<'_>>| text.map(Text::into_string).unwrap_or_default();
        violations.finish(id.map(|id| model::Skill {
            id,
            name: text(skill.name),
            description: text(skill.description),
            tags: strings(skill.tags),
            examples: strings(skill.examples),
            input_modes: strings(skill.input_modes),
            output_modes: strings(skill.output_modes),
            security: requirement::read(skill.security_requirements, skill.security),
        }))
    }
}
