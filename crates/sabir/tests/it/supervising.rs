//! Programs under the guard: what they may do, and that nothing of them is left.

mod ending;
mod hearing;
mod launching;
mod nursery;
mod telling;
