//! The two-way protocols: recorded runs of the real programs (`replay`), scripted exchanges (`scripted_*`), and random input
//! (`fuzz`).

mod fuzz;
mod recording;
mod replay;
mod script;
mod scripted_acp;
mod scripted_all;
mod scripted_claude;
mod scripted_codex;
