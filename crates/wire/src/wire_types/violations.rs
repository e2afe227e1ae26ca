//! What is wrong with the members of a value that is read: all of it, not only the first thing.
//!
//! A struct reports violations by its own member names; the struct that holds it puts its member before them. A value
//! without violations costs nothing.

use std::sync::Arc;

use sabir_model::{Error, InvalidId, Json, TaskId, Violation};

use super::{Int32, RawJson, Text, WireList};
use crate::excerpt::excerpt;

/// Only so many violations are reported: a caller may send a million bad parts.
const MAX_VIOLATIONS: usize = 20;

#[derive(Debug, Default)]
pub(crate) struct Violations(Vec<Violation>);

impl Violations {
    pub(crate) fn single(field: &str, description: &str) -> Self {
        let mut violations = Self::default();
        violations.add(field, description);
        violations
    }

    pub(crate) fn add(&mut self, field: &str, description: &str) {
        if !self.is_full() {
            self.0.push(Violation { field: field.to_owned(), description: description.to_owned() });
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn is_full(&self) -> bool {
        self.0.len() >= MAX_VIOLATIONS
    }

    /// Adds the violations of a member, with the member before them.
    pub(crate) fn add_nested(&mut self, member: &str, inner: Violations) {
        let room = MAX_VIOLATIONS.saturating_sub(self.0.len());
        for mut violation in inner.0.into_iter().take(room) {
            violation.field = match (member, violation.field.as_str()) {
                (member, "") => member.to_owned(),
                ("", inside) => inside.to_owned(),
                (member, place) if place.starts_with('[') => format!("{member}{place}"),
                (member, inside) => format!("{member}.{inside}"),
            };
            self.0.push(violation);
        }
    }

    /// The value of a member; its violations are added.
    pub(crate) fn check<T>(&mut self, member: &str, result: Result<T, Violations>) -> Option<T> {
        result.map_err(|inner| self.add_nested(member, inner)).ok()
    }

    /// The value of a member that must be there.
    pub(crate) fn check_required<T>(&mut self, member: &str, result: Result<Option<T>, Violations>) -> Option<T> {
        let value = self.check(member, result)?;
        self.required(member, value)
    }

    pub(crate) fn required<T>(&mut self, member: &str, value: Option<T>) -> Option<T> {
        if value.is_none() {
            self.add(member, "is required");
        }
        value
    }

    /// An id that may be left out; an empty one counts as missing.
    pub(crate) fn id<I, P>(&mut self, member: &str, text: Option<Text<'_>>, parse: P) -> Option<I>
    where
        P: Fn(Arc<str>) -> Result<I, InvalidId>,
    {
        let text = text.filter(|text| !text.as_str().is_empty())?;
        parse(text.as_str().into()).map_err(|reason| self.add(member, &reason.to_string())).ok()
    }

    pub(crate) fn required_id<I, P>(&mut self, member: &str, text: Option<Text<'_>>, parse: P) -> Option<I>
    where
        P: Fn(Arc<str>) -> Result<I, InvalidId>,
    {
        let text = text.filter(|text| !text.as_str().is_empty());
        let text = self.required(member, text)?;
        self.id(member, Some(text), parse)
    }

    pub(crate) fn required_text(&mut self, member: &str, text: Option<Text<'_>>) -> Option<String> {
        let text = super::non_empty(text);
        self.required(member, text)
    }

    /// Raw JSON that must be an object, such as metadata.
    pub(crate) fn object(&mut self, member: &str, raw: Option<RawJson<'_>>) -> Option<Json> {
        let raw = raw?;
        if !raw.is_object() {
            self.add(member, "must be an object");
            return None;
        }
        Some(raw.into())
    }

    pub(crate) fn count(&mut self, member: &str, number: Option<Int32>) -> Option<u32> {
        u32::try_from(number?.0).map_err(|_| self.add(member, "must not be negative")).ok()
    }

    /// A `kind` may be missing, but it must not be another one.
    pub(crate) fn kind(&mut self, expected: &str, kind: Option<Text<'_>>) {
        if kind.is_some_and(|kind| kind.as_str() != expected) {
            self.add("kind", &format!("must be {expected}"));
        }
    }

    pub(crate) fn task_ids(&mut self, member: &str, ids: WireList<'_, Text<'_>, TaskId>) -> Vec<TaskId> {
        ids.read_each(member, self, |id| {
            TaskId::parse(id.as_str()).map_err(|reason| Violations::single("", &reason.to_string()))
        })
    }

    /// The value, if there are no violations.
    pub(crate) fn finish<T>(self, value: Option<T>) -> Result<T, Violations> {
        match value {
            Some(value) if self.0.is_empty() => Ok(value),
            _ => Err(self),
        }
    }
}

impl From<Violations> for Error {
    fn from(violations: Violations) -> Self {
        let mut violations = violations.0;
        for violation in &mut violations {
            // The caller chooses the names of security schemes, and they may be of any length.
            let end = excerpt(&violation.field).len();
            violation.field.truncate(end);
        }
        Error::Invalid(violations)
    }
}
