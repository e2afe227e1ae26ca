//! The tables of the demo and the conformance agent, row by row, through the engine.

mod conformance;
mod demo;
mod stage;
