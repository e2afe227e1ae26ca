//! A Postgres server for the tests of this process, with a new database for each test.
//!
//! Where no Postgres is installed, the tests that need one say so and pass, unless TESTKIT_POSTGRES=required is set.

use sabir_testkit::postgres::Postgres;

/// The URL of a new, empty database. `None`: no Postgres is installed.
pub fn new_database() -> Option<String> {
    let server = Postgres::shared();
    if server.is_none() {
        eprintln!("no Postgres is installed, so its tests are not run");
    }
    server.map(Postgres::fresh_database)
}

/// Runs SQL behind the back of the stores. Returns what it prints, without headings.
pub fn execute(url: &str, sql: &str) -> String {
    let server = Postgres::shared().expect("whoever has a database has a server");
    server.execute(url, sql)
}

/// The name of the database in a URL of `new_database`.
pub fn database_of(url: &str) -> &str {
    url.rsplit('/').next().expect("a URL ends with the name of its database")
}
