//! A Postgres server for the tests of this process, with a new database for each test.
//!
//! Where no Postgres is installed, the tests that need one say so and pass, unless TESTKIT_POSTGRES=required is set.

use std::time::Duration;

use sabir_testkit::postgres::Postgres;
use tokio::time::{Instant, sleep};
use tokio_postgres::{Client, NoTls};

/// For what happens at all, however busy the machine is.
pub const LIMIT: Duration = Duration::from_secs(60);

/// Counts the connections of a database that wait for a lock.
pub const LOCK_WAITERS: &str =
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";

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

/// The same, while the stores of this test go on: a store that beats needs the threads of the runtime.
pub async fn execute_aside(url: &str, sql: &str) -> String {
    let (url, sql) = (url.to_owned(), sql.to_owned());
    tokio::task::spawn_blocking(move || execute(&url, &sql)).await.expect("SQL that can be run")
}

/// A connection for a transaction behind the back of the stores that stays open for a while.
pub async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.expect("whoever has a database has a server");
    tokio::spawn(connection);
    client
}

/// Whether the server has logged such a line about the database.
pub fn has_logged(url: &str, words: &str) -> bool {
    let server = Postgres::shared().expect("whoever has a database has a server");
    let end = format!(" {} {words}", database_of(url));
    server.log_text().lines().any(|line| line.ends_with(&end))
}

/// Repeats a look until it finds something.
pub async fn until<T>(mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + LIMIT;
    loop {
        if let Some(found) = look().await {
            return found;
        }
        assert!(Instant::now() < deadline, "nothing was found");
        sleep(Duration::from_millis(20)).await;
    }
}

/// Runs SQL again and again until it prints what is expected.
pub async fn until_row(url: &str, sql: &str, expected: &str) {
    until(async || (execute_aside(url, sql).await == expected).then_some(())).await;
}

/// The name of the database in a URL of `new_database`.
pub fn database_of(url: &str) -> &str {
    url.rsplit('/').next().expect("a URL ends with the name of its database")
}
