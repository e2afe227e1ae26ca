//! The two-way protocols: recorded runs of the real programs (`replay`), scripted exchanges (`scripted`), and random input
//! (`fuzz`).

mod fuzz;
mod recording;
mod replay;
mod scripted;
