//! Postgres must answer what SQLite answers, also after both are opened again.

use proptest::prelude::*;
use sabir_store::{Durability, SqliteStore, Store};

use crate::postgres_contract::open_postgres;
use crate::postgres_server::new_database;
use crate::two_stores::{OpenedStore, step, tell_the_same_story};

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn both_stores_tell_the_same_story(steps in proptest::collection::vec(step(), 1..60)) {
        let Some(url) = new_database() else { return Ok(()) };
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sabir.db");
        let sqlite = || -> Box<dyn Store> { Box::new(SqliteStore::open(&path, Durability::Process).unwrap()) };
        let postgres = || -> Box<dyn Store> { Box::new(open_postgres(&url)) };
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        runtime.block_on(async {
            let (sqlite, postgres) = (OpenedStore::opened_by(&sqlite), OpenedStore::opened_by(&postgres));
            tell_the_same_story(sqlite, postgres, &steps).await;
        });
    }
}
