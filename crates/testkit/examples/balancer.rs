//! The balancer of the tests as a program: `balancer [--tcp] LISTEN BACKEND...`. It prints its address, and serves until its
//! standard input ends. Each further line of its input is a new list of backends.

use std::io::BufRead;
use std::net::SocketAddr;
use std::process::ExitCode;

use sabir_testkit::balancer::{Balanced, Balancer};

fn main() -> ExitCode {
    let mut words: Vec<String> = std::env::args().skip(1).collect();
    let balanced = match words.first().map(String::as_str) {
        Some("--tcp") => {
            words.remove(0);
            Balanced::Connections
        }
        _ => Balanced::Requests,
    };
    let Some((listen, backends)) = parse(&words) else {
        eprintln!(
            "usage: balancer [--tcp] LISTEN BACKEND...\nExample: balancer 127.0.0.1:0 127.0.0.1:7001 127.0.0.1:7002"
        );
        return ExitCode::from(2);
    };
    let balancer = match Balancer::listen(listen, balanced, &backends) {
        Ok(balancer) => balancer,
        Err(error) => {
            eprintln!("cannot listen on {listen}: {error}");
            return ExitCode::FAILURE;
        }
    };
    println!("{}", balancer.address());
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        match line.split_whitespace().map(str::parse).collect::<Result<Vec<SocketAddr>, _>>() {
            Ok(backends) => balancer.set_backends(&backends),
            Err(error) => eprintln!("{line}: {error}"),
        }
    }
    ExitCode::SUCCESS
}

fn parse(words: &[String]) -> Option<(SocketAddr, Vec<SocketAddr>)> {
    let addresses: Option<Vec<SocketAddr>> = words.iter().map(|word| word.parse().ok()).collect();
    let addresses = addresses?;
    let (listen, backends) = addresses.split_first()?;
    Some((*listen, backends.to_vec()))
}
