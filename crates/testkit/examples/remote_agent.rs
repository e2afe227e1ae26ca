//! A remote agent by hand: starts one, prints its URL on one line, and serves until its standard input ends.
//!
//!     remote_agent --version 0.3 --binding jsonrpc --fault drop-after=3 --fault line-end=crlf
//!     remote_agent --planted cancel-finished-accepted
//!     remote_agent --help

use std::io::Read;
use std::process::ExitCode;

use sabir_testkit::remote::{FAULT_NAMES, Faults, PlantedFault, RemoteAgent, RemoteProtocol};

fn main() -> ExitCode {
    match start(std::env::args().skip(1)) {
        Ok(Some(agent)) => {
            println!("{}", agent.url());
            // Whoever started it holds the other end, and lets go of it when it ends, whichever way.
            let _ = std::io::stdin().read_to_end(&mut Vec::new());
            ExitCode::SUCCESS
        }
        Ok(None) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}; see --help");
            ExitCode::from(2)
        }
    }
}

fn start(mut arguments: impl Iterator<Item = String>) -> Result<Option<RemoteAgent>, String> {
    let (mut version, mut binding, mut port) = ("1.0".to_owned(), "jsonrpc".to_owned(), 0);
    let (mut faults, mut planted, mut bearer, mut mount) = (Faults::default(), None, None, String::new());
    let mut offers_push = false;
    while let Some(flag) = arguments.next() {
        let mut value = || arguments.next().ok_or_else(|| format!("{flag} needs a value"));
        match flag.as_str() {
            "--version" => version = value()?,
            "--binding" => binding = value()?,
            "--port" => port = value()?.parse().map_err(|_| "--port takes a number".to_owned())?,
            "--mount" => mount = value()?,
            "--bearer" => bearer = Some(value()?),
            "--push" => offers_push = true,
            "--fault" => faults.add_named(&value()?)?,
            "--planted" => {
                let name = value()?;
                planted = Some(PlantedFault::named(&name).ok_or_else(|| format!("nothing is called {name:?}"))?);
            }
            "--help" => {
                help();
                return Ok(None);
            }
            other => return Err(format!("there is no flag {other}")),
        }
    }
    let protocol = RemoteProtocol::named(&version, &binding)
        .ok_or_else(|| format!("there is no version {version} over {binding}"))?;
    let mut builder = RemoteAgent::builder(protocol).with_faults(faults).mounted_at(&mount).on_port(port);
    if let Some(fault) = planted {
        if !fault.applies_to(protocol) {
            return Err(format!("{} cannot be planted in {version} over {binding}", fault.name()));
        }
        builder = builder.planted(fault);
    }
    if let Some(token) = bearer {
        builder = builder.with_bearer(&token);
    }
    if offers_push || planted.is_some() {
        builder = builder.offering_push();
    }
    Ok(Some(builder.start()))
}

fn help() {
    println!("Usage: remote_agent [--version 1.0|0.3|0.2|0.1] [--binding jsonrpc|http+json] [--port PORT]");
    println!("                    [--mount PATH] [--bearer TOKEN] [--push] [--fault NAME[=VALUE]]... [--planted NAME]");
    println!("\nFaults, any number of them:");
    for (name, values, meaning) in FAULT_NAMES {
        let name = if values.is_empty() { (*name).to_owned() } else { format!("{name}={values}") };
        println!("  {name}\n      {meaning}");
    }
    println!("\nPlanted conformance faults, one of them:");
    for fault in PlantedFault::ALL {
        println!("  {}\n      {} Breaks {}.", fault.name(), fault.about(), fault.sections());
    }
}
