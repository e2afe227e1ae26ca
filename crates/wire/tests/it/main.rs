//! One binary for all tests of this crate that need more than one file.

#![allow(clippy::disallowed_methods, reason = "what tests read need not be counted")]

mod dialects;
