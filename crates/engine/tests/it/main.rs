//! The engine against the memory store, with agents that do what a test tells them.

mod desk;

mod between_turns;
mod cancelling;
mod failing;
mod full_store;
mod health;
mod joining;
mod listing;
mod naming;
mod parking;
mod questions;
mod recovering;
mod review;
mod routing;
mod scheduling;
mod sending;
mod stopping;
mod stored_first;
mod storing;
mod streaming;
mod stress;
mod timing;
mod turns;
mod working_trees;
