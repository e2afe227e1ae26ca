//! One binary for all tests of this crate that need more than one file.

mod dialects;
