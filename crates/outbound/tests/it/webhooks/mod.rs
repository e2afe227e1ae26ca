//! Deliveries of webhooks over real sockets, from a store in memory and from one in a file.

mod bodies;
mod changes;
mod fixture;
mod isolation;
mod outcomes;
mod restarts;
mod store_errors;
