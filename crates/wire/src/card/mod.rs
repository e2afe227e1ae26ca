//! Agent cards: one wire struct for all versions of the protocol.
//!
//! The members of 1.0 and 0.x have different names, so one card can hold the members of every version at once. The
//! wire structs have all members; a `CardFormat` says which of them are written, and a reader takes any of them.

mod authentication;
mod case;
mod entry;
mod flow;
mod format;
mod lenient;
mod payload;
mod read;
mod requirement;
mod security;
mod signed_members;
mod skill;
mod write;

pub use format::CardFormat;
pub use lenient::{LenientCard, read_card_leniently};
pub use payload::{SigningPayload, payloads_to_sign, payloads_to_verify};
pub use read::read as read_card;
pub use signed_members::CardMembers;
pub use write::write_card;

pub(crate) use flow::preferred as preferred_flow;
pub(crate) use read::Addresses;
