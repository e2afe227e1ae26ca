//! Runs the contract suite of `sabir-testkit` on Postgres.

use std::path::Path;

use sabir_store::{PostgresSettings, PostgresStore, TaskNo};
use sabir_testkit::store_contract::{self, Spoiled, block_on};

use crate::postgres_server::{execute, new_database};

#[test]
fn postgres_keeps_the_contract() {
    if new_database().is_some() {
        store_contract::check(|folder| Box::new(open(folder)));
    }
}

#[test]
fn postgres_keeps_the_contract_when_reopened() {
    if new_database().is_some() {
        store_contract::check_reopening(|folder| Box::new(open(folder)));
    }
}

#[test]
fn postgres_keeps_the_contract_when_damaged() {
    if new_database().is_some() {
        store_contract::check_damage(open, spoil);
    }
}

#[test]
fn postgres_keeps_the_contract_of_webhooks() {
    if new_database().is_some() {
        store_contract::check_webhooks(open);
    }
}

#[test]
fn postgres_keeps_the_contract_of_the_audit_log() {
    if new_database().is_some() {
        store_contract::check_audit(open);
        store_contract::check_audit_reopening(|folder| Box::new(open(folder)));
    }
}

/// Opens a store on a thread of a runtime.
pub fn open_postgres(url: &str) -> PostgresStore {
    let settings = PostgresSettings::new(url, "test", "0.0.0");
    block_on(PostgresStore::open(settings)).expect("the database can be opened")
}

fn open(folder: &Path) -> PostgresStore {
    open_postgres(&database_of(folder))
}

/// The database of a case, whose connection string is kept in the folder of the case.
fn database_of(folder: &Path) -> String {
    let file = folder.join("database");
    if let Ok(url) = std::fs::read_to_string(&file) {
        return url;
    }
    let url = new_database().expect("the test has looked for a server");
    std::fs::write(file, &url).expect("a file");
    url
}

fn spoil(_: &PostgresStore, folder: &Path, no: TaskNo, spoiled: Spoiled) {
    let TaskNo(no) = no;
    let sql = match spoiled {
        Spoiled::Event(seq) => format!(
            "UPDATE events SET body = '{{' WHERE no = {no}
             AND seq = (SELECT min(seq) FROM events WHERE no = {no} AND seq >= {seq}) RETURNING 1"
        ),
        Spoiled::Inbox => format!("UPDATE inbox SET body = '{{' WHERE no = {no} RETURNING 1"),
    };
    assert_ne!(execute(&database_of(folder), &sql), "", "nothing was spoiled");
}
