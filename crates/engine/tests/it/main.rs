//! The engine with the memory store and scripted agents.

mod fixture;

mod approvals;
mod audit;
mod between_turns;
mod caller_limits;
mod cancelling;
mod deduplication;
mod delegation;
mod failing;
mod full_store;
mod health;
mod listing;
mod ownership;
mod parking;
mod questions;
mod races;
mod recovering;
mod retention;
mod routing;
mod scheduling;
mod sending;
mod stopping;
mod stored_first;
mod streaming;
mod stress;
mod surviving;
mod task_ids;
mod timing;
mod turns;
mod working_folders;
