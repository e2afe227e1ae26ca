//! JSON read so that nothing of it changes: what is carried stays the text that it was.

use std::collections::HashMap;

use serde_json::value::RawValue;

#[derive(Debug, Clone, Copy)]
pub struct ExactJson<'a>(&'a str);

impl<'a> ExactJson<'a> {
    pub fn of(text: &'a str) -> Self {
        Self(text)
    }

    /// A member; none where it is missing or null.
    pub fn get(self, name: &str) -> Option<ExactJson<'a>> {
        let members: HashMap<String, &'a RawValue> =
            serde_json::from_str(self.0).unwrap_or_else(|error| self.fail(&error));
        members.get(name).map(|value| ExactJson(value.get())).filter(|value| value.0 != "null")
    }

    pub fn at(self, name: &str) -> ExactJson<'a> {
        self.get(name).unwrap_or_else(|| panic!("no {name} in {}", self.0))
    }

    /// The items of a list; none where it is missing.
    pub fn each(self, name: &str) -> Vec<ExactJson<'a>> {
        let Some(list) = self.get(name) else { return Vec::new() };
        let items: Vec<&'a RawValue> = serde_json::from_str(list.0).unwrap_or_else(|error| list.fail(&error));
        items.into_iter().map(|item| ExactJson(item.get())).collect()
    }

    pub fn string(self) -> String {
        serde_json::from_str(self.0).unwrap_or_else(|error| self.fail(&error))
    }

    pub fn strings(self, name: &str) -> Vec<String> {
        self.each(name).into_iter().map(ExactJson::string).collect()
    }

    pub fn is_true(self, name: &str) -> bool {
        self.get(name).is_some_and(|value| value.0 == "true")
    }

    /// As it is written.
    pub fn raw(self) -> String {
        self.0.to_owned()
    }

    fn fail(self, error: &serde_json::Error) -> ! {
        panic!("{error} in {}", self.0)
    }
}

/// An object of these members, given as JSON; those that are none are left out.
pub fn object(members: &[(&str, Option<String>)]) -> String {
    let shown = members.iter().filter_map(|(name, value)| Some(format!("{}:{}", quoted(name), value.as_ref()?)));
    format!("{{{}}}", shown.collect::<Vec<_>>().join(","))
}

/// A list of what is given as JSON; an empty one is none.
pub fn list(items: impl IntoIterator<Item = String>) -> Option<String> {
    let items: Vec<String> = items.into_iter().collect();
    (!items.is_empty()).then(|| format!("[{}]", items.join(",")))
}

pub fn quoted(text: &str) -> String {
    serde_json::to_string(text).expect("text is JSON")
}
