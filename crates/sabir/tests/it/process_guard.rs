//! Programs under the guard: what they may do, and that nothing of them is left.

mod ending;
mod fixture;
mod input;
mod launch;
mod lease;
mod output;
