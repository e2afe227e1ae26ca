//! A list: of wire structs where it was read, of model values where it is written.
//!
//! The written one spells its members one at a time, so that a long history needs no second list.

use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::Problems;

#[derive(Debug)]
pub(crate) enum Several<'a, Theirs, Ours> {
    Made(Vec<Theirs>),
    Ours(&'a [Ours]),
    /// Model values that several tasks or readers share.
    Shared(&'a [Arc<Ours>]),
}

impl<'a, Theirs, Ours> Several<'a, Theirs, Ours> {
    pub(crate) fn is_empty(&self) -> bool {
        match self {
            Several::Made(list) => list.is_empty(),
            Several::Ours(list) => list.is_empty(),
            Several::Shared(list) => list.is_empty(),
        }
    }

    /// What was read. A list that is being written is not read back.
    pub(crate) fn into_read(self) -> Vec<Theirs> {
        match self {
            Several::Made(list) => list,
            Several::Ours(_) | Several::Shared(_) => Vec::new(),
        }
    }

    /// Each member as the model has it; the problems are told by the member's place.
    pub(crate) fn read_each<M>(
        self,
        member: &str,
        problems: &mut Problems,
        read: impl Fn(Theirs) -> Result<M, Problems>,
    ) -> Vec<M> {
        let list = self.into_read();
        let mut each = Vec::with_capacity(list.len());
        for (place, theirs) in list.into_iter().enumerate() {
            match read(theirs) {
                Ok(ours) => each.push(ours),
                Err(_) if problems.is_full() => break,
                Err(inner) => problems.adopt(&format!("{member}[{place}]"), inner),
            }
        }
        each
    }
}

impl<Theirs, Ours> Default for Several<'_, Theirs, Ours> {
    fn default() -> Self {
        Several::Made(Vec::new())
    }
}

impl<'a, Theirs, Ours> From<&'a Vec<Ours>> for Several<'a, Theirs, Ours> {
    fn from(list: &'a Vec<Ours>) -> Self {
        Several::Ours(list)
    }
}

impl<'a, Theirs, Ours> From<&'a Vec<Arc<Ours>>> for Several<'a, Theirs, Ours> {
    fn from(list: &'a Vec<Arc<Ours>>) -> Self {
        Several::Shared(list)
    }
}

impl<'a, Theirs: Serialize + From<&'a Ours>, Ours> Serialize for Several<'a, Theirs, Ours> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Several::Made(list) => serializer.collect_seq(list),
            Several::Ours(list) => serializer.collect_seq(list.iter().map(Theirs::from)),
            Several::Shared(list) => serializer.collect_seq(list.iter().map(|ours| Theirs::from(&**ours))),
        }
    }
}

/// `null` is no list; a `null` inside one is refused by the member.
impl<'de, Theirs: Deserialize<'de>, Ours> Deserialize<'de> for Several<'_, Theirs, Ours> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Option::<Vec<Theirs>>::deserialize(deserializer).map(|list| Several::Made(list.unwrap_or_default()))
    }
}
