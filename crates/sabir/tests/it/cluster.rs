//! Several servers on one Postgres: any of them answers for any task, and a dead one's work is taken over.

mod any_node;
mod busy_pooler;
mod contexts;
mod cut_off;
pub mod fixture;
mod homes;
mod inbox;
mod kill_rounds;
mod names;
mod pooler;
mod programs;
mod starting;
mod streams;
mod takeover;
mod webhooks;
mod writers;
