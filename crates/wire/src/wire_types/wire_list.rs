//! A list of wire structs that was read, or of model values that are to be written.
//!
//! Writing converts one member at a time, so a long history needs no second list.

use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::Violations;

#[derive(Debug)]
pub(crate) enum WireList<'a, W, M> {
    Wire(Vec<W>),
    Model(&'a [M]),
    /// Model values that several tasks or readers share.
    Shared(&'a [Arc<M>]),
}

impl<'a, W, M> WireList<'a, W, M> {
    pub(crate) fn is_empty(&self) -> bool {
        match self {
            WireList::Wire(list) => list.is_empty(),
            WireList::Model(list) => list.is_empty(),
            WireList::Shared(list) => list.is_empty(),
        }
    }

    /// The wire structs. A list of model values is not converted.
    pub(crate) fn into_wire(self) -> Vec<W> {
        match self {
            WireList::Wire(list) => list,
            WireList::Model(_) | WireList::Shared(_) => Vec::new(),
        }
    }

    /// Converts each member to the model's; violations name the index of the member.
    pub(crate) fn read_each<T>(
        self,
        member: &str,
        violations: &mut Violations,
        read: impl Fn(W) -> Result<T, Violations>,
    ) -> Vec<T> {
        let list = self.into_wire();
        let mut each = Vec::with_capacity(list.len());
        for (index, wire) in list.into_iter().enumerate() {
            match read(wire) {
                Ok(model) => each.push(model),
                Err(_) if violations.is_full() => break,
                Err(inner) => violations.add_nested(&format!("{member}[{index}]"), inner),
            }
        }
        each
    }
}

impl<W, M> Default for WireList<'_, W, M> {
    fn default() -> Self {
        WireList::Wire(Vec::new())
    }
}

impl<'a, W, M> From<&'a Vec<M>> for WireList<'a, W, M> {
    fn from(list: &'a Vec<M>) -> Self {
        WireList::Model(list)
    }
}

impl<'a, W, M> From<&'a Vec<Arc<M>>> for WireList<'a, W, M> {
    fn from(list: &'a Vec<Arc<M>>) -> Self {
        WireList::Shared(list)
    }
}

impl<'a, W: Serialize + From<&'a M>, M> Serialize for WireList<'a, W, M> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            WireList::Wire(list) => serializer.collect_seq(list),
            WireList::Model(list) => serializer.collect_seq(list.iter().map(W::from)),
            WireList::Shared(list) => serializer.collect_seq(list.iter().map(|model| W::from(&**model))),
        }
    }
}

/// `null` is no list; a `null` inside one is refused by the member.
impl<'de, W: Deserialize<'de>, M> Deserialize<'de> for WireList<'_, W, M> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Option::<Vec<W>>::deserialize(deserializer).map(|list| WireList::Wire(list.unwrap_or_default()))
    }
}
