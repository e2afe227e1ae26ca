//! Agents of `kind = "openai"`: the real program in front of a model server that answers by a script.
//!
//! What callers get is compared with what the model was asked: every request is recorded.

mod answers;
mod fixture;
mod interruptions;
mod tools;
