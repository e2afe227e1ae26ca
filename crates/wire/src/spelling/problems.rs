//! What is wrong with a value that was read: all of it, not only the first thing.
//!
//! A struct tells its problems by its own member names; whoever holds the struct puts the path before them. A
//! value without problems costs nothing.

use std::sync::Arc;

use sabir_model::{Error, InvalidId, Json, TaskId, Violation};

use super::{Carried, Int, Several, Text};
use crate::excerpt::excerpt;

/// A caller who sends a million bad parts is told of the first few.
const MOST: usize = 20;

#[derive(Debug, Default)]
pub(crate) struct Problems(Vec<Violation>);

impl Problems {
    pub(crate) fn one(field: &str, description: &str) -> Self {
        let mut problems = Self::default();
        problems.add(field, description);
        problems
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
        self.0.len() >= MOST
    }

    /// The problems of a member, as seen from the struct that holds it.
    pub(crate) fn adopt(&mut self, member: &str, inner: Problems) {
        let room = MOST.saturating_sub(self.0.len());
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

    /// The value of a member, if it is well.
    pub(crate) fn keep<T>(&mut self, member: &str, outcome: Result<T, Problems>) -> Option<T> {
        outcome.map_err(|inner| self.adopt(member, inner)).ok()
    }

    /// The value of a member that must be there, if it is well.
    pub(crate) fn keep_required<T>(&mut self, member: &str, outcome: Result<Option<T>, Problems>) -> Option<T> {
        let value = self.keep(member, outcome)?;
        self.required(member, value)
    }

    pub(crate) fn required<T>(&mut self, member: &str, value: Option<T>) -> Option<T> {
        if value.is_none() {
            self.add(member, "is required");
        }
        value
    }

    /// An id that may be left out; an empty one is as good as none.
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
        let text = super::given(text);
        self.required(member, text)
    }

    /// Metadata and the like: any object.
    pub(crate) fn object(&mut self, member: &str, carried: Option<Carried<'_>>) -> Option<Json> {
        let carried = carried?;
        if !carried.is_object() {
            self.add(member, "must be an object");
            return None;
        }
        Some(carried.into())
    }

    pub(crate) fn count(&mut self, member: &str, number: Option<Int>) -> Option<u32> {
        u32::try_from(number?.0).map_err(|_| self.add(member, "must not be negative")).ok()
    }

    /// A `kind` may be missing, but it may not be another one.
    pub(crate) fn kind(&mut self, expected: &str, kind: Option<Text<'_>>) {
        if kind.is_some_and(|kind| kind.as_str() != expected) {
            self.add("kind", &format!("must be {expected}"));
        }
    }

    pub(crate) fn task_ids(&mut self, member: &str, ids: Several<'_, Text<'_>, TaskId>) -> Vec<TaskId> {
        ids.read_each(member, self, |id| {
            TaskId::parse(id.as_str()).map_err(|reason| Problems::one("", &reason.to_string()))
        })
    }

    /// The value, if nothing was wrong on the way to it.
    pub(crate) fn or<T>(self, value: Option<T>) -> Result<T, Problems> {
        match value {
            Some(value) if self.0.is_empty() => Ok(value),
            _ => Err(self),
        }
    }
}

impl From<Problems> for Error {
    fn from(problems: Problems) -> Self {
        let mut violations = problems.0;
        for violation in &mut violations {
            // Names of security schemes are the caller's, and may be of any length.
            let end = excerpt(&violation.field).len();
            violation.field.truncate(end);
        }
        Error::Invalid(violations)
    }
}
