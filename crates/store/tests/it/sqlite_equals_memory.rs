//! SQLite must answer what the memory store answers, also after it is opened again.

use proptest::prelude::*;
use sabir_store::{Durability, MemoryStore, SqliteStore, Store};

use crate::two_stores::{OpenedStore, step, tell_the_same_story};

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn both_stores_tell_the_same_story(steps in proptest::collection::vec(step(), 1..60)) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sabir.db");
        let open = || -> Box<dyn Store> { Box::new(SqliteStore::open(&path, Durability::Process).unwrap()) };
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let memory = OpenedStore::kept_open(MemoryStore::new());
            tell_the_same_story(memory, OpenedStore::opened_by(&open), &steps).await;
        });
    }
}
