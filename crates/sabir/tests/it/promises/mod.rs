//! What the five systems that Sabir replaces promised, one test for each promise, named after it.
//!
//! The first line above a test says what holds; `docs/internals/promises.md` is made of these lines by
//! `cargo xtask compatibility`, and `cargo xtask check` fails when a promise has neither a test here nor a line in
//! `waiting.txt`, which lists those that wait for a feature.

mod s0;
mod s0_programs;
mod s1;
mod s2;
mod s3;
mod s4;
mod s4_webhooks;
