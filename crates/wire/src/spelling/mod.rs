//! The words that wire structs are made of.
//!
//! One struct serves reading and writing: what is read borrows from the request, what is written borrows
//! from the model. Nothing is copied on the way out, and on the way in only what the model keeps.

mod carried;
mod entries;
mod moment;
mod name;
mod number;
mod object;
mod parts;
mod problems;
mod several;
mod text;

pub(crate) use carried::{Carried, carried, present};
pub(crate) use entries::Entries;
pub(crate) use moment::Moment;
pub(crate) use name::Name;
pub(crate) use number::Int;
pub(crate) use object::{Object, object, read_object};
pub(crate) use parts::Parts;
pub(crate) use problems::Problems;
pub(crate) use several::Several;
pub(crate) use text::{Text, given, worth_saying};
