//! A request after decoding: what it asks for, and how it is answered.

use sabir_model::{Call, Error};

use crate::Responder;

pub struct Decoded<'a> {
    /// The responder writes an error of the reader like one of the engine.
    pub call: Result<Call, Error>,
    pub responder: Responder<'a>,
}

#[cfg(test)]
mod tests;
