//! Tests of the stores through their public interface: the contract that they share, and what is special to a file.

mod contract;
mod damage;
mod descriptors;
mod due_signal;
mod group_commit;
mod limits;
mod older_formats;
mod opening;
mod replaced_files;
mod size_limit;
mod snapshots;
mod sqlite_equals_memory;
mod sweep;
