//! The duplex protocols on recorded runs of the real programs, and on input that no program writes.

mod anything;
mod led;
mod recording;
mod replay;
