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
    pub fn anonymous() -> Self {
        Self(Arc::from(""))
    }

    pub fn new(organisation: &str, subject: &str) -> Self {
        // The separator cannot occur in the parts, so two owners never share a key.
        let clean = |text: &str| text.replace('\u{1f}', "\u{fffd}");
        Self(format!("{}\u{1f}{}", clean(organisation), clean(subject)).into())
    }

    /// The form in which stores keep it and compare it.
    pub fn as_key(&self) -> &str {
        &self.0
    }

    pub fn from_key(key: &str) -> Self {
        Self(Arc::from(key))
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.split_once('\u{1f}') {
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
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Caller {
    pub owner: Owner,
}

impl Caller {
    pub fn anonymous() -> Self {
        Self { owner: Owner::anonymous() }
    }
}
