//! The engine against the memory store, with agents that do what a test tells them.

mod fixture;

mod between_turns;
mod cancelling;
mod deduplication;
mod failing;
mod full_store;
mod health;
mod listing;
mod parking;
mod questions;
mod races;
mod recovering;
mod routing;
mod scheduling;
mod sending;
mod stopping;
mod stored_first;
mod storing;
mod streaming;
mod stress;
mod task_ids;
mod timing;
mod turns;
mod working_folders;
