//! Who can reach the server, and whether that was meant.
//!
//! A listener that other machines can reach lets everybody in as long as nothing asks callers for credentials.
//! So it needs a clear word: `server.allow_open`.

use std::net::SocketAddr;

use super::sections::Server;

/// The first address that needs `allow_open` and does not have it.
pub fn exposed(server: &Server) -> Option<SocketAddr> {
    if server.allow_open {
        return None;
    }
    server.listen.iter().copied().find(|address| !address.ip().to_canonical().is_loopback())
}

/// Whether only people at this machine can call. Without credentials they are the ones who started the server; an address
/// for others, behind which a proxy stands, says otherwise.
pub fn is_private(server: &Server) -> bool {
    let is_loopback = |address: &SocketAddr| address.ip().to_canonical().is_loopback();
    server.public_url.is_none() && server.listen.iter().all(is_loopback)
}

/// `address` is what `exposed` found; `origin` where it was asked for.
pub fn refusal(address: SocketAddr, origin: &impl std::fmt::Display) -> String {
    format!(
        "{origin}: other machines can reach {address}, and nothing asks callers for credentials; \
         listen on 127.0.0.1, or allow it with --allow-open or server.allow_open"
    )
}

/// The same addresses as far as only this machine can reach them.
pub fn kept_inside(listen: &[SocketAddr]) -> Vec<String> {
    let inside = |address: &SocketAddr| match address {
        SocketAddr::V4(address) => format!("127.0.0.1:{}", address.port()),
        SocketAddr::V6(address) => format!("[::1]:{}", address.port()),
    };
    listen.iter().map(inside).collect()
}

/// What else the reader of the start-up lines should know about the addresses.
pub fn advice(server: &Server) -> Option<String> {
    let first = server.listen.first()?;
    let unclear = first.ip().is_unspecified() && server.public_url.is_none();
    unclear.then(|| {
        format!(
            "{first} has no host that clients could use, so the card repeats the Host of each request; \
             server.public_url says what it should be"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_is_open_without_a_word() {
        for (address, expected) in [
            ("127.0.0.1:1", None),
            ("127.9.9.9:1", None),
            ("[::1]:1", None),
            ("[::ffff:127.0.0.1]:1", None),
            ("0.0.0.0:1", Some("0.0.0.0:1")),
            ("[::]:1", Some("[::]:1")),
            ("192.168.0.2:1", Some("192.168.0.2:1")),
        ] {
            let server = Server { listen: vec![address.parse().unwrap()], ..Server::default() };
            assert_eq!(exposed(&server).map(|address| address.to_string()).as_deref(), expected);
            let open = Server { allow_open: true, ..server };
            assert_eq!(exposed(&open), None);
        }
    }
}
