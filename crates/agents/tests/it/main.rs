//! The tables of the demo and the conformance agent, row by row, and routing, through the engine; the protocols of programs on
//! recorded runs.

mod command_lines;
mod conformance;
mod demo;
mod engine_fixture;
mod output_fuzz;
mod output_lines;
mod protocols;
mod recorded_output;
mod routing;
mod step_rows;
