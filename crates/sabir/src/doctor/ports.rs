//! The addresses that the server listens on.

use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener};

use super::Subject;
use super::finding::{Area, Finding};
use super::port_owner::{self, PortOwner};

const AREA: Area = Area::Ports;

pub fn check(subject: &Subject) -> Vec<Finding> {
    subject.loaded.config.server.listen.iter().map(|address| check_one(subject, *address)).collect()
}

fn check_one(subject: &Subject, address: SocketAddr) -> Finding {
    if address.port() == 0 {
        return Finding::ok(AREA, format!("{address} means any port that is free"));
    }
    // It is free again when the listener is dropped.
    match TcpListener::bind(address) {
        Ok(_) => Finding::ok(AREA, format!("{address} is free")),
        Err(error) if error.kind() == ErrorKind::AddrInUse => in_use(subject, address),
        Err(error) if error.kind() == ErrorKind::AddrNotAvailable => Finding::problem(
            AREA,
            format!("{address} is no address of this machine"),
            "choose one of its own with server.listen",
        ),
        Err(error) if error.kind() == ErrorKind::PermissionDenied => Finding::problem(
            AREA,
            format!("{address} may not be used by this user"),
            "choose a port above 1023, or give the service CAP_NET_BIND_SERVICE",
        ),
        Err(error) => Finding::problem(AREA, format!("{address}: {error}"), "choose another with server.listen"),
    }
}

fn in_use(subject: &Subject, address: SocketAddr) -> Finding {
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
            "stop that one, or choose another address with server.listen",
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
