//! A JSON object of a server that does not follow the rules: every member is looked at by itself.
//!
//! A wire struct is all or nothing: one member of the wrong type loses the rest. Here a member that is not what it
//! should be is as good as missing. Each level reads its part of the text again, and the levels of a task are few.

use std::borrow::Cow;

use sabir_model::JsonMembers;
use serde_json::value::RawValue;

use crate::json;

pub(super) struct LenientObject<'t> {
    members: Vec<(Cow<'t, str>, &'t RawValue)>,
}

impl<'t> LenientObject<'t> {
    /// `None`: the text is no object.
    pub(super) fn of(text: &'t str) -> Option<Self> {
        let JsonMembers(members) = json::parse(text).ok()?;
        Some(LenientObject { members })
    }

    /// The first member with one of these names that is not null.
    pub(super) fn raw(&self, names: &[&str]) -> Option<&'t RawValue> {
        let is_there = |name: &&str| {
            let found = self.members.iter().find(|(known, value)| known == name && value.get() != "null");
            found.map(|(_, value)| *value)
        };
        names.iter().find_map(is_there)
    }

    pub(super) fn has(&self, names: &[&str]) -> bool {
        self.raw(names).is_some()
    }

    /// A text; numbers are read as the text that they are written as, since ids are numbers here and there.
    pub(super) fn text(&self, names: &[&str]) -> Option<String> {
        as_text(self.raw(names)?.get())
    }

    pub(super) fn integer(&self, names: &[&str]) -> Option<i64> {
        let text = self.text(names)?;
        text.parse().ok().or_else(|| text.strip_suffix(".0")?.parse().ok())
    }

    pub(super) fn flag(&self, names: &[&str]) -> Option<bool> {
        match self.raw(names)?.get() {
            "true" | "\"true\"" | "1" => Some(true),
            "false" | "\"false\"" | "0" => Some(false),
            _ => None,
        }
    }

    pub(super) fn object(&self, names: &[&str]) -> Option<LenientObject<'t>> {
        LenientObject::of(self.raw(names)?.get())
    }

    /// The elements of a list, without nulls. What is no list is a list of one.
    pub(super) fn list(&self, names: &[&str]) -> Option<Vec<&'t str>> {
        let raw = self.raw(names)?.get();
        if !raw.starts_with('[') {
            return raw.starts_with('{').then(|| vec![raw]);
        }
        let list: Vec<&'t RawValue> = json::parse(raw).ok()?;
        Some(list.into_iter().map(RawValue::get).filter(|element| *element != "null").collect())
    }

    pub(super) fn texts(&self, names: &[&str]) -> Vec<String> {
        self.list(names).unwrap_or_default().into_iter().filter_map(as_text).collect()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.members.iter().all(|(_, value)| value.get() == "null")
    }
}

fn as_text(json: &str) -> Option<String> {
    match json.as_bytes().first()? {
        b'"' => json::parse(json).ok(),
        b'-' | b'0'..=b'9' => Some(json.to_owned()),
        _ => None,
    }
}
