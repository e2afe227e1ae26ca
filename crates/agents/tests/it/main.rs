//! The tables of the demo and the conformance agent, row by row, and routing, through the engine.

mod conformance;
mod demo;
mod routing;
mod stage;
