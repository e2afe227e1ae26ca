//! The duplex protocols on recorded runs of the real programs, and on input that no program writes.

mod fuzz;
mod recording;
mod replay;
mod scripted;
