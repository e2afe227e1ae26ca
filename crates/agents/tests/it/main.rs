//! The tables of the demo and the conformance agent, row by row, through the engine; the protocols of programs on
//! recorded runs.

mod command_lines;
mod conformance;
mod demo;
mod duplex;
mod nonsense;
mod recorded;
mod said;
mod spoken;
mod stage;
