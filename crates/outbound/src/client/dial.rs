//! Opens a TCP connection to one of several addresses.
//!
//! The addresses are tried in turn, IPv6 and IPv4 alternating. Each gets a head start before the next one is tried beside
//! it, so that one dead address or a broken IPv6 network costs a moment and not the whole time limit.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use futures_util::stream::{FuturesUnordered, StreamExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep_until};

const HEAD_START: Duration = Duration::from_millis(250);

/// A name may have hundreds of addresses; nobody gets us to knock at all of them.
const ATTEMPTS: usize = 8;

pub(super) async fn dial(addresses: &[IpAddr], port: u16) -> io::Result<TcpStream> {
    let mut waiting = alternating(addresses).into_iter().take(ATTEMPTS);
    let mut attempts = FuturesUnordered::new();
    let mut last_error = io::Error::from(io::ErrorKind::AddrNotAvailable);
    let mut next_start = Instant::now();
    loop {
        let has_more = waiting.len() > 0;
        if attempts.is_empty() && !has_more {
            return Err(last_error);
        }
        tokio::select! {
            biased;
            Some(outcome) = attempts.next(), if !attempts.is_empty() => match outcome {
                Ok(stream) => return Ok(stream),
                Err(error) => {
                    last_error = error;
                    next_start = Instant::now();
                }
            },
            () = sleep_until(next_start), if has_more => {
                attempts.extend(waiting.next().map(|address| TcpStream::connect(SocketAddr::new(address, port))));
                next_start = Instant::now() + HEAD_START;
            }
        }
    }
}

/// IPv6 and IPv4 in turn, the first kind first, each in the resolver's order.
fn alternating(addresses: &[IpAddr]) -> Vec<IpAddr> {
    let first_kind = addresses.first().is_some_and(IpAddr::is_ipv6);
    let (first, second): (Vec<IpAddr>, Vec<IpAddr>) =
        addresses.iter().partition(|address| address.is_ipv6() == first_kind);
    let (mut first, mut second) = (first.into_iter(), second.into_iter());
    let mut ordered = vec![];
    while first.len() + second.len() > 0 {
        ordered.extend(first.next());
        ordered.extend(second.next());
    }
    ordered
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_of_addresses_alternate() {
        let parse = |text: &str| text.split_whitespace().map(|each| each.parse().unwrap()).collect::<Vec<IpAddr>>();
        for (given, expected) in [
            ("", ""),
            ("1.1.1.1 1.1.1.2", "1.1.1.1 1.1.1.2"),
            ("::1 ::2 1.1.1.1", "::1 1.1.1.1 ::2"),
            ("1.1.1.1 ::1 ::2 ::3", "1.1.1.1 ::1 ::2 ::3"),
        ] {
            assert_eq!(alternating(&parse(given)), parse(expected), "{given}");
        }
    }
}
