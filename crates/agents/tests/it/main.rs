//! The tables of the demo and the conformance agent, row by row, through the engine; the protocols of programs on
//! recorded runs.

mod conformance;
mod demo;
mod duplex;
mod stage;
