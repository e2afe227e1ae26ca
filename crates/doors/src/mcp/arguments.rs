//! The arguments of tools, read with care: a model that gets one wrong is told which, and can try again.

use sabir_model::{Json, JsonMembers};
use serde::de::DeserializeOwned;

/// The longest name of an argument that is repeated.
const LONGEST_NAME: usize = 100;

/// The arguments of one call.
pub(crate) struct Arguments {
    members: Vec<(String, Json)>,
}

/// What is wrong with the arguments, as the model reads it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WrongArgument(pub(crate) String);

impl Arguments {
    /// `None`: there are none, which is no fault by itself.
    ///
    /// # Errors
    /// They are no object, or hold something that this tool does not know or twice.
    pub(crate) fn read(json: Option<&Json>, known: &[&str]) -> Result<Self, WrongArgument> {
        let Some(json) = json.filter(|json| json.as_str() != "null") else { return Ok(Self { members: Vec::new() }) };
        let Ok(JsonMembers(members)) = serde_json::from_str(json.as_str()) else {
            return Err(WrongArgument("arguments must be an object".to_owned()));
        };
        let mut read = Vec::<(String, Json)>::new();
        for (name, value) in members {
            let shown: String = name.chars().take(LONGEST_NAME).collect();
            if !known.contains(&&*name) {
                let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
                return Err(WrongArgument(format!("{shown} is no argument of this tool; it knows {known}")));
            }
            if read.iter().any(|(other, _)| *other == name) {
                return Err(WrongArgument(format!("{shown} is there twice")));
            }
            // What is null is not there.
            if value.get() != "null" {
                read.push((name.into_owned(), Json::from(value)));
            }
        }
        Ok(Self { members: read })
    }

    fn value<T: DeserializeOwned>(&self, name: &str, kind: &str) -> Result<Option<T>, WrongArgument> {
        let Some((_, json)) = self.members.iter().find(|(known, _)| known == name) else { return Ok(None) };
        let value = serde_json::from_str(json.as_str());
        value.map(Some).map_err(|_| WrongArgument(format!("{name} must be {kind}")))
    }

    /// A text that says something.
    pub(crate) fn text(&self, name: &str) -> Result<Option<String>, WrongArgument> {
        let text: Option<String> = self.value(name, "a string")?;
        Ok(text.filter(|text| !text.trim().is_empty()))
    }

    pub(crate) fn required_text(&self, name: &str) -> Result<String, WrongArgument> {
        self.text(name)?.ok_or_else(|| WrongArgument(format!("{name} is missing")))
    }

    pub(crate) fn whole_number(&self, name: &str) -> Result<Option<u64>, WrongArgument> {
        self.value(name, "a whole number")
    }

    /// A text that an id is made of.
    pub(crate) fn id<T, E: std::fmt::Display>(
        &self,
        name: &str,
        parse: impl FnOnce(String) -> Result<T, E>,
    ) -> Result<Option<T>, WrongArgument> {
        let Some(text) = self.text(name)? else { return Ok(None) };
        parse(text).map(Some).map_err(|why| WrongArgument(format!("{name} {why}")))
    }

    pub(crate) fn required_id<T, E: std::fmt::Display>(
        &self,
        name: &str,
        parse: impl FnOnce(String) -> Result<T, E>,
    ) -> Result<T, WrongArgument> {
        self.id(name, parse)?.ok_or_else(|| WrongArgument(format!("{name} is missing")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_argument_is_named() {
        let read = |text: &str| {
            let arguments = Arguments::read(Some(&Json::parse(text).unwrap()), &["message", "wait_seconds"])?;
            let (message, wait) = (arguments.required_text("message")?, arguments.whole_number("wait_seconds")?);
            Ok(format!("{message} {wait:?}"))
        };
        for (text, expected) in [
            (r#"{"message":"hi","wait_seconds":5}"#, Ok("hi Some(5)")),
            (r#"{"message":"hi","wait_seconds":null}"#, Ok("hi None")),
            (r#"{"wait_seconds":5}"#, Err("message is missing")),
            (r#"{"message":" "}"#, Err("message is missing")),
            (r#"{"message":7}"#, Err("message must be a string")),
            (r#"{"message":"hi","wait_seconds":-1}"#, Err("wait_seconds must be a whole number")),
            (r#"{"message":"hi","wait_seconds":"5"}"#, Err("wait_seconds must be a whole number")),
            (
                r#"{"message":"hi","mesage":"x"}"#,
                Err("mesage is no argument of this tool; it knows message, wait_seconds"),
            ),
            (r#"{"message":"hi","message":"x"}"#, Err("message is there twice")),
            ("[]", Err("arguments must be an object")),
        ] {
            let expected = expected.map(str::to_owned).map_err(|why| WrongArgument(why.to_owned()));
            assert_eq!(read(text), expected, "{text}");
        }
    }
}
