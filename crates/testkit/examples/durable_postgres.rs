//! A Postgres that flushes every commit as a program, for measurements: prints one JSON line with the URL of an empty database
//! and its process, and serves until its standard input ends. Each line of its input is answered with the URL of a
//! further database.

use std::io::BufRead;
use std::process::ExitCode;

use sabir_testkit::postgres::Postgres;
use serde_json::json;

fn main() -> ExitCode {
    let Some(postgres) = Postgres::start_durable() else {
        eprintln!("there is no Postgres: apt-get install -y postgresql");
        return ExitCode::FAILURE;
    };
    println!("{}", json!({"url": postgres.fresh_database(), "pid": postgres.pid()}));
    for _ in std::io::stdin().lock().lines().map_while(Result::ok) {
        println!("{}", json!({"url": postgres.fresh_database()}));
    }
    ExitCode::SUCCESS
}
