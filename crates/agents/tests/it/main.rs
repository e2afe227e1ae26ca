//! The tables of the demo and the conformance agent, row by row, through the engine; and what programs say, on recorded
//! runs.

mod command_lines;
mod conformance;
mod demo;
mod nonsense;
mod recorded;
mod said;
mod spoken;
mod stage;
