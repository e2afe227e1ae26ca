//! Which process listens on a port, as far as the kernel lets us see it: `/proc/net/tcp` has the sockets, `/proc/PID/fd` whose
//! they are. Elsewhere than on Linux nothing is found.

use std::fs;
use std::net::SocketAddr;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortOwner {
    pub pid: u32,
    /// The name of its program.
    pub program: String,
}

/// The state of a socket that listens.
const LISTENING: &str = "0A";

pub fn of_port(port: u16) -> Option<PortOwner> {
    let inodes: Vec<String> = ["/proc/net/tcp", "/proc/net/tcp6"]
        .iter()
        .filter_map(|table| fs::read_to_string(table).ok())
        .flat_map(|table| listening_inodes(&table, port))
        .collect();
    if inodes.is_empty() {
        return None;
    }
    let wanted: Vec<String> = inodes.iter().map(|inode| format!("socket:[{inode}]")).collect();
    for process in fs::read_dir("/proc").ok()?.flatten() {
        let Some(pid) = process.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        let Ok(descriptors) = fs::read_dir(process.path().join("fd")) else { continue };
        let is_ours = descriptors.flatten().any(|descriptor| {
            fs::read_link(descriptor.path())
                .is_ok_and(|target| wanted.iter().any(|wanted| target.as_os_str() == wanted.as_str()))
        });
        if is_ours {
            let program = fs::read_to_string(process.path().join("comm")).unwrap_or_default();
            return Some(PortOwner { pid, program: program.trim().to_owned() });
        }
    }
    None
}

/// Of the port in this URL of a server.
pub fn of_url(url: &str) -> Option<PortOwner> {
    port_of(url).and_then(of_port)
}

pub fn port_of(url: &str) -> Option<u16> {
    let (_, address) = url.split_once("://")?;
    address.parse::<SocketAddr>().ok().map(|address| address.port())
}

fn listening_inodes(table: &str, port: u16) -> Vec<String> {
    let row = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let (_, found) = fields.get(1)?.rsplit_once(':')?;
        let is_wanted = u16::from_str_radix(found, 16).ok()? == port && fields.get(3) == Some(&LISTENING);
        is_wanted.then(|| fields.get(9).map(|inode| (*inode).to_owned())).flatten()
    };
    table.lines().skip(1).filter_map(row).collect()
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn a_listener_is_found_by_its_port() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let owner = of_url(&format!("http://127.0.0.1:{port}")).unwrap();
        assert_eq!(owner.pid, std::process::id());
        drop(listener);
        assert_eq!(of_port(port), None);
    }

    #[test]
    fn only_sockets_that_listen_count() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:A11A 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 4711 1 0 100 0 0 10 0
   1: 0100007F:A11A 0100007F:C001 01 00000000:00000000 00:00000000 00000000  1000        0 4712 1 0 100 0 0 10 0";
        assert_eq!(listening_inodes(table, 0xa11a), ["4711"]);
        assert!(listening_inodes(table, 0xc001).is_empty());
    }
}
