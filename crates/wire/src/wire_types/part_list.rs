//! The parts of a message: decoded ones, or those of the model that are to be written.
//!
//! Each part is converted to the model's as it is read. A wire struct has a field for everything that a part can hold,
//! so a list of them could take a hundred times the memory of the body.

use std::fmt;
use std::marker::PhantomData;

use sabir_model as model;
use serde::de::{Error, IgnoredAny, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::Violations;

/// A part of a few bytes takes some hundred bytes in memory. No useful message has so many parts.
const MAX_PARTS: usize = 65_536;

#[derive(Debug)]
pub(crate) enum PartList<'a, W> {
    Decoded(DecodedParts<W>),
    Model(&'a [model::Part]),
}

#[derive(Debug)]
pub(crate) struct DecodedParts<W> {
    parts: Vec<model::Part>,
    /// Their fields begin with the index of the part.
    violations: Violations,
    wire: PhantomData<fn() -> W>,
}

impl<W> Default for DecodedParts<W> {
    fn default() -> Self {
        Self { parts: Vec::new(), violations: Violations::default(), wire: PhantomData }
    }
}

impl<W> DecodedParts<W> {
    fn add(&mut self, index: usize, part: Result<model::Part, Violations>) {
        match part {
            Ok(part) => self.parts.push(part),
            Err(_) if self.violations.is_full() => {}
            Err(inner) => self.violations.add_nested(&format!("[{index}]"), inner),
        }
    }

    fn refuse_more(&mut self) {
        self.parts.clear();
        self.violations.add("", &format!("must not have more than {MAX_PARTS} parts"));
    }
}

impl<W> PartList<'_, W> {
    /// Parts that are there already, because no text has to be read for them.
    pub(crate) fn decoded(list: Vec<W>, read: impl Fn(W) -> Result<model::Part, Violations>) -> Self {
        let mut decoded = DecodedParts::default();
        let count = list.len();
        for (index, part) in list.into_iter().take(MAX_PARTS).enumerate() {
            decoded.add(index, read(part));
        }
        if count > MAX_PARTS {
            decoded.refuse_more();
        }
        PartList::Decoded(decoded)
    }

    /// The decoded parts; their violations are added below the member. Parts that are being written are not read back.
    pub(crate) fn read(self, member: &str, violations: &mut Violations) -> Vec<model::Part> {
        let PartList::Decoded(read) = self else { return Vec::new() };
        violations.add_nested(member, read.violations);
        read.parts
    }

    /// The same for a message, which must have at least one part.
    pub(crate) fn read_required(self, member: &str, violations: &mut Violations) -> Vec<model::Part> {
        if let PartList::Decoded(read) = &self
            && read.parts.is_empty()
            && read.violations.is_empty()
        {
            violations.add(member, "at least one part is required");
        }
        self.read(member, violations)
    }
}

impl<W> Default for PartList<'_, W> {
    fn default() -> Self {
        PartList::Decoded(DecodedParts::default())
    }
}

impl<'a, W> From<&'a Vec<model::Part>> for PartList<'a, W> {
    fn from(parts: &'a Vec<model::Part>) -> Self {
        PartList::Model(parts)
    }
}

impl<'a, W: Serialize + From<&'a model::Part>> Serialize for PartList<'a, W> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let parts = match self {
            PartList::Decoded(_) => &[],
            PartList::Model(parts) => *parts,
        };
        serializer.collect_seq(parts.iter().map(W::from))
    }
}

/// `null` is no list; a `null` inside one is refused by the part.
impl<'de, W> Deserialize<'de> for PartList<'_, W>
where
    W: Deserialize<'de> + TryInto<model::Part, Error = Violations>,
{
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_option(DecodedParts::default()).map(PartList::Decoded)
    }
}

impl<'de, W> Visitor<'de> for DecodedParts<W>
where
    W: Deserialize<'de> + TryInto<model::Part, Error = Violations>,
{
    type Value = Self;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a sequence")
    }

    fn visit_none<E: Error>(self) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_unit<E: Error>(self) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut list: A) -> Result<Self, A::Error> {
        let mut index = 0usize;
        while let Some(part) = list.next_element::<W>()? {
            self.add(index, part.try_into());
            index += 1;
            if index == MAX_PARTS && list.next_element::<IgnoredAny>()?.is_some() {
                self.refuse_more();
                while list.next_element::<IgnoredAny>()?.is_some() {}
                break;
            }
        }
        Ok(self)
    }
}
