//! The addresses that the server listens on: for callers (`server.listen`) and for scrapers (`metrics.listen`).

use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener};

use super::Subject;
use super::finding::{Area, Finding};
use super::port_owner::{self, PortOwner};

const AREA: Area = Area::Ports;

pub fn check(subject: &Subject) -> Vec<Finding> {
    let config = &subject.loaded.config;
    // They are free again when the listeners are dropped. Until then, addresses that exclude each other do so here too.
    let mut held = Vec::new();
    let server = config.server.listen.iter().map(|address| ("server.listen", *address));
    let metrics = config.metrics.listen.iter().map(|address| ("metrics.listen", *address));
    server.chain(metrics).map(|(setting, address)| check_one(subject, &mut held, setting, address)).collect()
}

fn check_one(subject: &Subject, held: &mut Vec<TcpListener>, setting: &str, address: SocketAddr) -> Finding {
    if address.port() == 0 {
        return Finding::ok(AREA, format!("{address} means any port that is free"));
    }
    let is_held = |listener: &TcpListener| listener.local_addr().is_ok_and(|held| held.port() == address.port());
    match TcpListener::bind(address) {
        Ok(listener) => {
            held.push(listener);
            Finding::ok(AREA, format!("{address} is free"))
        }
        Err(error) if error.kind() == ErrorKind::AddrInUse && held.iter().any(is_held) => Finding::problem(
            AREA,
            format!("{address} is in {setting}, and its port is in the settings once more"),
            "choose another port for one of them with server.listen or metrics.listen",
        ),
        Err(error) if error.kind() == ErrorKind::AddrInUse => in_use(subject, setting, address),
        Err(error) if error.kind() == ErrorKind::AddrNotAvailable => Finding::problem(
            AREA,
            format!("{address} is no address of this machine"),
            format!("choose one of its own with {setting}"),
        ),
        Err(error) if error.kind() == ErrorKind::PermissionDenied => Finding::problem(
            AREA,
            format!("{address} may not be used by this user"),
            "choose a port above 1023, or give the service CAP_NET_BIND_SERVICE",
        ),
        Err(error) => Finding::problem(AREA, format!("{address}: {error}"), format!("choose another with {setting}")),
    }
}

fn in_use(subject: &Subject, setting: &str, address: SocketAddr) -> Finding {
    let owner = port_owner::of_port(address.port());
    let is_ours = match (&subject.running, subject.pid, &owner) {
        (Some(_), Some(pid), Some(owner)) => owner.pid == pid,
        (Some(running), ..) => port_owner::port_of(&running.url) == Some(address.port()),
        (None, ..) => false,
    };
    match owner {
        Some(PortOwner { pid, .. }) if is_ours => {
            Finding::ok(AREA, format!("{address} is held by the server that runs with this store (pid {pid})"))
        }
        None if is_ours => Finding::ok(AREA, format!("{address} is held by the server that runs with this store")),
        Some(PortOwner { pid, program }) => Finding::problem(
            AREA,
            format!("{address} is used by another process: {program} (pid {pid})"),
            format!("stop that one, or choose another address with {setting}"),
        ),
        // The server says where it is reached, but not where else it listens.
        None if subject.running.is_some() && subject.pid.is_none() => Finding::warning(
            AREA,
            format!("{address} is used by a process of another user, perhaps by the server that runs with this store"),
            "run this as root or as the user of the server, to see which process it is",
        ),
        None => Finding::problem(
            AREA,
            format!("{address} is used by a process of another user"),
            format!(
                "see which with `ss -ltnp 'sport = :{}'` as root, and stop it or choose another address",
                address.port()
            ),
        ),
    }
}
