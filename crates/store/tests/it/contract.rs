//! Runs the contract suite of `sabir-testkit` on each store.

use std::path::Path;

use rusqlite::Connection;
use sabir_store::{Durability, MemoryStore, SqliteStore, Store, TaskNo};
use sabir_testkit::store_contract::{self, Spoiled};

#[test]
fn memory_keeps_the_contract() {
    store_contract::check(|_| Box::new(MemoryStore::new()));
}

#[test]
fn memory_keeps_the_contract_when_damaged() {
    store_contract::check_damage(|_| MemoryStore::new(), spoil_memory);
}

#[test]
fn sqlite_keeps_the_contract() {
    store_contract::check(sqlite);
}

#[test]
fn sqlite_keeps_the_contract_when_reopened() {
    store_contract::check_reopening(sqlite);
}

#[test]
fn sqlite_keeps_the_contract_when_damaged() {
    let open = |folder: &Path| SqliteStore::open(&folder.join("sabir.db"), Durability::Process).unwrap();
    store_contract::check_damage(open, spoil_sqlite);
}

#[test]
fn memory_keeps_the_contract_of_webhooks() {
    store_contract::check_webhooks(|_| MemoryStore::new());
}

#[test]
fn sqlite_keeps_the_contract_of_webhooks() {
    store_contract::check_webhooks(|folder| SqliteStore::open(&folder.join("sabir.db"), Durability::Process).unwrap());
}

#[test]
fn memory_keeps_the_contract_of_the_audit_log() {
    store_contract::check_audit(|_| MemoryStore::new());
}

#[test]
fn sqlite_keeps_the_contract_of_the_audit_log() {
    let open = |folder: &Path| SqliteStore::open(&folder.join("sabir.db"), Durability::Process).unwrap();
    store_contract::check_audit(open);
    store_contract::check_audit_reopening(|folder| Box::new(open(folder)));
}

fn sqlite(folder: &Path) -> Box<dyn Store> {
    Box::new(SqliteStore::open(&folder.join("sabir.db"), Durability::Process).unwrap())
}

fn spoil_memory(store: &MemoryStore, _: &Path, no: TaskNo, spoiled: Spoiled) {
    match spoiled {
        Spoiled::Event(seq) => store.corrupt_event(no, seq),
        Spoiled::Inbox => store.corrupt_inbox(no),
    }
}

fn spoil_sqlite(_: &SqliteStore, folder: &Path, no: TaskNo, spoiled: Spoiled) {
    let conn = Connection::open(folder.join("sabir.db")).unwrap();
    let key = |seq: u64| (no.0 << 28 | seq) as i64;
    let spoiled = match spoiled {
        Spoiled::Event(seq) => conn.execute(
            "UPDATE events SET body = x'7b' WHERE key = (SELECT min(key) FROM events WHERE key >= ?1)",
            (key(seq),),
        ),
        Spoiled::Inbox => {
            conn.execute("UPDATE inbox SET body = x'7b' WHERE key BETWEEN ?1 AND ?2", (key(0), key((1 << 28) - 1)))
        }
    };
    assert!(spoiled.unwrap() > 0);
}
