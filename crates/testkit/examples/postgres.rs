//! The Postgres of the tests as a program: it prints the URL of a database, and runs until its standard input ends.

use std::process::ExitCode;

use sabir_testkit::postgres::Postgres;

fn main() -> ExitCode {
    let Some(postgres) = Postgres::start() else {
        eprintln!("there is no Postgres on this machine");
        return ExitCode::FAILURE;
    };
    println!("{}", postgres.url_of("postgres"));
    let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
    ExitCode::SUCCESS
}
