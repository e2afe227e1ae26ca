//! A real Postgres: it starts, keeps its data over restarts, and leaves nothing behind.

use std::net::TcpStream;
use std::path::Path;

use sabir_testkit::postgres::{PgBouncer, Postgres, StopMode, report_skipped};

#[test]
fn a_postgres_keeps_its_data_and_its_address_over_restarts() {
    let Some(mut postgres) = Postgres::start() else { return report_skipped(1) };
    let url = postgres.database("one");
    assert_eq!(url, postgres.url_of("one"));
    postgres.execute("one", "CREATE TABLE t (n int); INSERT INTO t VALUES (7)");
    for mode in [StopMode::Smart, StopMode::Fast, StopMode::Immediate] {
        postgres.stop(mode);
        assert!(TcpStream::connect(postgres.address()).is_err(), "{mode:?}");
        postgres.start_again();
        assert_eq!(postgres.execute("one", "SELECT n FROM t"), "7", "{mode:?}");
    }
    assert_eq!(postgres.terminate_backends("datname = 'one'"), 0);
    let socket = postgres.socket_url_of("one");
    let folder = socket.split(['@', ':']).nth(2).unwrap().replace("%2F", "/");
    assert!(Path::new(&folder).is_dir(), "{socket}");
    let address = postgres.address();
    drop(postgres);
    assert!(!Path::new(&folder).exists());
    assert!(TcpStream::connect(address).is_err());
}

#[test]
fn a_pooler_stands_before_it() {
    let Some(postgres) = Postgres::shared() else { return report_skipped(1) };
    let Some(bouncer) = PgBouncer::start(postgres) else { return report_skipped(1) };
    let [first, second] = [postgres.fresh_database(), postgres.fresh_database()];
    assert_ne!(first, second);
    let database = first.rsplit('/').next().unwrap();
    let url = bouncer.url_of(database);
    let shown =
        std::process::Command::new("psql").args(["-X", "-A", "-t", &url, "-c", "SELECT current_database()"]).output();
    assert_eq!(String::from_utf8_lossy(&shown.unwrap().stdout).trim(), database);
}
