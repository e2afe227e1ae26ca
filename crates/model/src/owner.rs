//! Who asks, and whose a task is.
//!
//! Owner is part of every lookup: a task of somebody else is answered exactly like one that does not
//! exist. Until credentials are configured everybody is the one anonymous caller.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// An organisation and somebody in it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Owner(Arc<str>);

impl Owner {
    /// Of everybody without a credential.
    pub fn anonymous() -> Self {
        Self(Arc::from(""))
    }

    /// Somebody in an organisation.
    pub fn new(organisation: &str, subject: &str) -> Self {
        // The separator cannot occur in the parts, so two owners never share a key.
        let clean = |text: &str| text.replace('\u{1f}', "\u{fffd}");
        Self(format!("{}\u{1f}{}", clean(organisation), clean(subject)).into())
    }

    /// The form in which stores keep it and compare it.
    pub fn as_key(&self) -> &str {
        &self.0
    }

    /// The owner that a store has kept under this key.
    pub fn from_key(key: &str) -> Self {
        Self(Arc::from(key))
    }

    /// Organisation and subject; `None`: anonymous.
    fn parts(&self) -> Option<(&str, &str)> {
        self.0.split_once('\u{1f}')
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.parts() {
            Some((organisation, subject)) => write!(f, "{subject}@{organisation}"),
            None => f.write_str("anonymous"),
        }
    }
}

impl Serialize for Owner {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Owner {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self(String::deserialize(deserializer)?.into()))
    }
}

/// Everything that is known about who makes a call.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Caller {
    /// Whose tasks the caller sees and makes.
    pub owner: Owner,
    /// What the caller may do, as its credential says. Empty where credentials name no scopes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scopes: Vec<String>,
}

impl Caller {
    /// Somebody without a credential.
    pub fn anonymous() -> Self {
        Self::from(Owner::anonymous())
    }

    /// Somebody in an organisation. Each sees only its own tasks.
    pub fn new(tenant: &str, subject: &str) -> Self {
        Self::from(Owner::new(tenant, subject))
    }

    /// The same with these scopes.
    pub fn with_scopes<S: Into<String>>(mut self, scopes: impl IntoIterator<Item = S>) -> Self {
        self.scopes = scopes.into_iter().map(Into::into).collect();
        self
    }

    /// Who it is, as the issuer of its credential names it. `None`: anonymous.
    pub fn subject(&self) -> Option<&str> {
        self.owner.parts().map(|(_, subject)| subject)
    }

    /// The organisation that the subject belongs to. `None`: anonymous.
    pub fn tenant(&self) -> Option<&str> {
        self.owner.parts().map(|(tenant, _)| tenant)
    }

    /// Whether nothing is known of the caller.
    pub fn is_anonymous(&self) -> bool {
        self.owner == Owner::anonymous()
    }

    /// Whether the caller has this scope.
    pub fn has_scope(&self, scope: &str) -> bool {
        self.scopes.iter().any(|own| own == scope)
    }
}

impl From<Owner> for Caller {
    fn from(owner: Owner) -> Self {
        Self { owner, scopes: Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caller_tells_its_subject_and_its_tenant() {
        for (caller, expected) in [
            (Caller::anonymous(), (None, None)),
            (Caller::new("acme", "alice"), (Some("acme"), Some("alice"))),
            (Caller::new("", "alice"), (Some(""), Some("alice"))),
            (Caller::new("a\u{1f}b", "c"), (Some("a\u{fffd}b"), Some("c"))),
        ] {
            assert_eq!((caller.tenant(), caller.subject()), expected);
            assert_eq!(caller.is_anonymous(), expected == (None, None));
        }
        let caller = Caller::new("acme", "alice").with_scopes(["run", "read"]);
        assert!(caller.has_scope("read") && !caller.has_scope("admin"));
    }
}
