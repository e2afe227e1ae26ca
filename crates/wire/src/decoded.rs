//! A request, read: what it asks for, and how it wants to be answered.

use sabir_model::{Call, Error};

use crate::Voice;

pub struct Decoded<'a> {
    /// An error is told by the voice, like one of the engine.
    pub call: Result<Call, Error>,
    pub voice: Voice<'a>,
}

#[cfg(test)]
mod tests;
