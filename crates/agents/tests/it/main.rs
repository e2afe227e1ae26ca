//! The demo agent, the conformance agent and routing, through the engine; the adapters of programs, on recorded runs and on
//! made-up lines.

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
