//! The tables of the demo and the conformance agent, row by row, and routing, through the engine; the protocols of programs on
//! recorded runs.

mod command_lines;
mod conformance;
mod demo;
mod duplex;
mod nonsense;
mod recorded;
mod routing;
mod said;
mod spoken;
mod stage;
