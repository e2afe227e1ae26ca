//! Tests of the stores through their public interface: the contract that they share, and what is special to a file.

mod backup;
mod contents;
mod contract;
mod damage;
mod descriptors;
mod due_signal;
mod group_commit;
mod limits;
mod older_formats;
mod opening;
mod postgres_cluster;
mod postgres_contract;
mod postgres_deliveries;
mod postgres_frozen;
mod postgres_own_server;
mod postgres_restart;
mod postgres_server;
mod postgres_tls;
mod replaced_files;
mod size_limit;
mod snapshots;
mod sqlite_equals_memory;
mod sqlite_equals_postgres;
mod sweep;
mod two_stores;
