//! The stores from outside: the contract they share, and what a file adds to it.

mod contract;
mod damage;
mod descriptors;
mod group_commit;
mod limits;
mod older_formats;
mod opening;
mod replaced_files;
mod size_limit;
mod snapshots;
mod sqlite_equals_memory;
mod sweep;
