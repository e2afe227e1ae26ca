//! Wire structs are JSON objects and nothing else.
//!
//! A derived `Deserialize` also takes an array and fills the fields by position, so `{"parts":[["hi"]]}` would be read
//! as a text part. `object!` implements the trait with a check that lets only objects through, and calls the derived
//! code. For that, its structs derive with `#[serde(remote = "Self")]`, which makes the derived code an inherent
//! function. A struct with type parameters must have `Deserialize<'de>` as the whole bound of each: if the derived code
//! needed more, the trait would call itself without end.

use std::fmt;
use std::marker::PhantomData;

use serde::Deserializer;
use serde::de::{MapAccess, Visitor};

/// `object! { both Part<'a>; both Message<'a> }`: to be read and written; `read` and `write` are for one of the two.
macro_rules! object {
    ($($way:ident $name:ident<$($param:tt),+>);+ $(;)?) => {
        $($crate::wire_types::object!(@$way $name<$($param),+>);)+
    };
    (@both $name:ident<$($param:tt),+>) => {
        $crate::wire_types::object!(@read $name<$($param),+>);
        $crate::wire_types::object!(@write $name<$($param),+>);
    };
    (@read $name:ident<$life:lifetime $(, $param:ident)*>) => {
        impl<'de: $life, $life $(, $param: serde::Deserialize<'de>)*> serde::Deserialize<'de> for $name<$life $(, $param)*> {
            fn deserialize<De: serde::Deserializer<'de>>(deserializer: De) -> Result<Self, De::Error> {
                $crate::wire_types::read_object(deserializer)
            }
        }

        impl<'de: $life, $life $(, $param: serde::Deserialize<'de>)*> $crate::wire_types::Object<'de> for $name<$life $(, $param)*> {
            fn read_members<A: serde::de::MapAccess<'de>>(members: A) -> Result<Self, A::Error> {
                Self::deserialize(serde::de::value::MapAccessDeserializer::new(members))
            }
        }
    };
    (@read $name:ident<$($param:ident),+>) => {
        impl<'de, $($param: serde::Deserialize<'de>),+> serde::Deserialize<'de> for $name<$($param),+> {
            fn deserialize<De: serde::Deserializer<'de>>(deserializer: De) -> Result<Self, De::Error> {
                $crate::wire_types::read_object(deserializer)
            }
        }

        impl<'de, $($param: serde::Deserialize<'de>),+> $crate::wire_types::Object<'de> for $name<$($param),+> {
            fn read_members<A: serde::de::MapAccess<'de>>(members: A) -> Result<Self, A::Error> {
                Self::deserialize(serde::de::value::MapAccessDeserializer::new(members))
            }
        }
    };
    (@write $name:ident<$life:lifetime>) => {
        impl<$life> serde::Serialize for $name<$life> {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                Self::serialize(self, serializer)
            }
        }
    };
    (@write $name:ident<$($param:ident),+>) => {
        impl<$($param: serde::Serialize),+> serde::Serialize for $name<$($param),+> {
            fn serialize<Se: serde::Serializer>(&self, serializer: Se) -> Result<Se::Ok, Se::Error> {
                Self::serialize(self, serializer)
            }
        }
    };
}

pub(crate) use object;

pub(crate) trait Object<'de>: Sized {
    fn read_members<A: MapAccess<'de>>(members: A) -> Result<Self, A::Error>;
}

pub(crate) fn read_object<'de, T: Object<'de>, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    deserializer.deserialize_map(ObjectVisitor(PhantomData))
}

struct ObjectVisitor<T>(PhantomData<T>);

impl<'de, T: Object<'de>> Visitor<'de> for ObjectVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<T, A::Error> {
        T::read_members(members)
    }
}
