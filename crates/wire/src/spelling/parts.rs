//! The parts of a message: those of the model where they were read, and where they are written.
//!
//! Each becomes the model's as it is read. A wire struct has a place for everything that a part can say, so a list of
//! them could take a hundred times the memory of the body that it came in.

use std::fmt;
use std::marker::PhantomData;

use sabir_model as model;
use serde::de::{Error, IgnoredAny, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::Problems;

/// A part of a few bytes takes some hundred in memory. No message of use has so many.
const MAX_PARTS: usize = 65_536;

#[derive(Debug)]
pub(crate) enum Parts<'a, Theirs> {
    Read(ReadParts<Theirs>),
    Ours(&'a [model::Part]),
}

#[derive(Debug)]
pub(crate) struct ReadParts<Theirs> {
    parts: Vec<model::Part>,
    /// Told by the place of the part.
    problems: Problems,
    theirs: PhantomData<fn() -> Theirs>,
}

impl<Theirs> Default for ReadParts<Theirs> {
    fn default() -> Self {
        Self { parts: Vec::new(), problems: Problems::default(), theirs: PhantomData }
    }
}

impl<Theirs> Parts<'_, Theirs> {
    /// What was read, and under its member what is wrong with it. Parts that are being written are not read back.
    pub(crate) fn read(self, member: &str, problems: &mut Problems) -> Vec<model::Part> {
        let Parts::Read(read) = self else { return Vec::new() };
        problems.adopt(member, read.problems);
        read.parts
    }

    /// The same for a message, which says something: it has at least one part.
    pub(crate) fn read_some(self, member: &str, problems: &mut Problems) -> Vec<model::Part> {
        if let Parts::Read(read) = &self
            && read.parts.is_empty()
            && read.problems.is_empty()
        {
            problems.add(member, "at least one part is required");
        }
        self.read(member, problems)
    }
}

impl<Theirs> Default for Parts<'_, Theirs> {
    fn default() -> Self {
        Parts::Read(ReadParts::default())
    }
}

impl<'a, Theirs> From<&'a Vec<model::Part>> for Parts<'a, Theirs> {
    fn from(parts: &'a Vec<model::Part>) -> Self {
        Parts::Ours(parts)
    }
}

impl<'a, Theirs: Serialize + From<&'a model::Part>> Serialize for Parts<'a, Theirs> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let parts = match self {
            Parts::Read(_) => &[],
            Parts::Ours(parts) => *parts,
        };
        serializer.collect_seq(parts.iter().map(Theirs::from))
    }
}

/// `null` is no list; a `null` inside one is refused by the part.
impl<'de, Theirs> Deserialize<'de> for Parts<'_, Theirs>
where
    Theirs: Deserialize<'de> + TryInto<model::Part, Error = Problems>,
{
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_option(ReadParts::default()).map(Parts::Read)
    }
}

impl<'de, Theirs> Visitor<'de> for ReadParts<Theirs>
where
    Theirs: Deserialize<'de> + TryInto<model::Part, Error = Problems>,
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
        let mut place = 0usize;
        while let Some(theirs) = list.next_element::<Theirs>()? {
            match theirs.try_into() {
                Ok(part) => self.parts.push(part),
                Err(_) if self.problems.is_full() => {}
                Err(inner) => self.problems.adopt(&format!("[{place}]"), inner),
            }
            place += 1;
            if place == MAX_PARTS && list.next_element::<IgnoredAny>()?.is_some() {
                self.parts.clear();
                self.problems.add("", &format!("must not have more than {MAX_PARTS} parts"));
                while list.next_element::<IgnoredAny>()?.is_some() {}
                break;
            }
        }
        Ok(self)
    }
}
