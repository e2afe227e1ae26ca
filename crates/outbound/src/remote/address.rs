//! Addresses that cards name, and what is really dialled.
//!
//! Many cards say `localhost`, since that is where their author tried them. Such an address is of no use from elsewhere,
//! so the path of it is looked for where the card came from.

use std::net::IpAddr;

use crate::guard::{Approval, EgressPolicy, Host, Refusal, Target};

/// Trusts what the operator wrote. Where that is this machine, all names of this machine count as the same.
pub(crate) fn trust(policy: &mut EgressPolicy, url: &str) -> Result<(), Refusal> {
    let target = Target::parse(url)?;
    if is_this_machine(&target.host) {
        for name in ["localhost", "127.0.0.1", "[::1]"] {
            policy.trust(Host::parse(name)?, target.port);
        }
    }
    policy.trust(target.host, target.port);
    Ok(())
}

/// Where an interface of a card is called, and a note if that is not where the card says.
pub(super) fn usable(named: &str, card: &Target, policy: &EgressPolicy) -> Result<(String, Option<String>), String> {
    let at_card = |path: &str| Target { path_and_query: path.to_owned(), ..card.clone() }.to_string();
    let target = match (Target::parse(named), card.join(named)) {
        (Ok(target), _) => target,
        // A path alone is meant to be on the same server.
        (Err(_), Ok(joined)) if named.starts_with('/') => {
            let note = format!("the card says {named:?}, which is no URL; it is looked for on the card's own server");
            return Ok((joined.to_string(), Some(note)));
        }
        (Err(refusal), _) => return Err(format!("the card names {named:?}: {refusal}")),
    };
    if is_this_machine(&target.host) && is_this_machine(&card.host) && target.port == card.port {
        // Another name of the server that the card came from. That one is known to answer, and credentials are for it.
        return Ok((Target { host: card.host.clone(), ..target }.to_string(), None));
    }
    match policy.check(&target) {
        Ok(Approval::AnyAddress) => Ok((target.to_string(), None)),
        // What is wrong with such a card is the host, rarely the path.
        _ if is_this_machine(&target.host) => {
            let url = at_card(&target.path_and_query);
            let note = format!("the card says {named}, which only its own machine can reach; {url} is used instead");
            Ok((url, Some(note)))
        }
        Ok(Approval::CheckedAddress) => Ok((target.to_string(), None)),
        Err(refusal) => Err(format!(
            "the card names {named}, and {refusal}; if you trust that address, name it yourself as the endpoint"
        )),
    }
}

fn is_this_machine(host: &Host) -> bool {
    match host {
        Host::Name(name) => name == "localhost" || name.ends_with(".localhost"),
        Host::Address(IpAddr::V4(address)) => address.is_loopback() || address.is_unspecified(),
        Host::Address(IpAddr::V6(address)) => address.is_loopback() || address.is_unspecified(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_called_by_what_the_card_says_and_where_it_came_from() {
        for (card, named, expected) in [
            ("https://a.example/", "https://a.example/rpc", "https://a.example/rpc"),
            ("https://a.example/", "https://b.example:8443/rpc", "https://b.example:8443/rpc"),
            ("https://a.example/", "http://localhost:9999/rpc?x", "https://a.example/rpc?x (noted)"),
            ("https://a.example/x", "http://0.0.0.0:9999/", "https://a.example/ (noted)"),
            ("https://a.example/x", "/rpc", "https://a.example/rpc (noted)"),
            ("http://localhost:7000/", "http://127.0.0.1:7000/rpc", "http://localhost:7000/rpc"),
            ("http://127.0.0.1:7000/", "http://localhost:7000/rpc?x", "http://127.0.0.1:7000/rpc?x"),
            ("http://[::1]:7000/", "http://0.0.0.0:7000/", "http://[::1]:7000/"),
            ("https://a.example/x", "/a b", "refused"),
            ("http://127.0.0.1:7000/", "http://localhost:22/rpc", "http://127.0.0.1:7000/rpc (noted)"),
            ("http://127.0.0.1:7000/", "http://10.0.0.1/rpc", "refused"),
            ("https://a.example/", "http://169.254.169.254/latest", "refused"),
            ("https://a.example/", "ftp://b.example/", "refused"),
            ("https://a.example/", "", "refused"),
        ] {
            let mut policy = EgressPolicy::default();
            trust(&mut policy, card).unwrap();
            let actual = match usable(named, &Target::parse(card).unwrap(), &policy) {
                Ok((url, None)) => url,
                Ok((url, Some(_))) => format!("{url} (noted)"),
                Err(_) => "refused".to_owned(),
            };
            assert_eq!(actual, expected, "{card} {named}");
        }
    }
}
