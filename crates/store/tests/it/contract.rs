//! The contract suite, one line for each store.

use std::path::Path;

use sabir_store::{Durability, MemoryStore, SqliteStore, Store};
use sabir_testkit::store_contract;

#[test]
fn memory_keeps_the_contract() {
    store_contract::check(|_| Box::new(MemoryStore::new()));
}

#[test]
fn sqlite_keeps_the_contract() {
    store_contract::check(sqlite);
}

#[test]
fn sqlite_keeps_the_contract_when_reopened() {
    store_contract::check_reopening(sqlite);
}

fn sqlite(folder: &Path) -> Box<dyn Store> {
    Box::new(SqliteStore::open(&folder.join("sabir.db"), Durability::Process).unwrap())
}
