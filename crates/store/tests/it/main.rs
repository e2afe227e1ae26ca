//! The stores from outside: the contract they share, and what a file adds to it.

mod contract;
mod damage;
mod descriptors;
mod files;
mod full;
mod groups;
mod limits;
mod older;
mod replaced;
mod snapshots;
mod sweep;
mod twins;
