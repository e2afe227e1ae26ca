//! `sabir proxy`: a look at the remote agent before its front is served.

use sabir_model::Card;
use sabir_outbound::remote::{Discovered, RemoteError};

use crate::card::scheme_words;
use crate::config::RemoteConfig;
use crate::machine::Machine;
use crate::terminal_text::visible;
use crate::upstream;

/// What a person is told of the remote agent.
#[derive(Debug, PartialEq)]
pub struct Found {
    pub text: String,
    pub warnings: Vec<String>,
}

/// An agent that cannot be reached is no error: the server tries it again.
pub fn look(config: &RemoteConfig, machine: &Machine) -> anyhow::Result<Found> {
    Ok(match upstream::discover(config, machine)? {
        Ok(found) => describe(&found, config),
        Err(error) => Found { text: String::new(), warnings: vec![visible(&trouble(&error))] },
    })
}

fn describe(found: &Discovered, config: &RemoteConfig) -> Found {
    let card = found.card.as_ref().map(|fetched| &fetched.card);
    let name = match card {
        None => "no card".to_owned(),
        Some(Card { name, version, .. }) if version.is_empty() => name.clone(),
        Some(Card { name, version, .. }) => format!("{name} {version}"),
    };
    let text = format!("Remote agent: {name}\n  A2A {} at {}\n", found.endpoint.protocol, found.endpoint.url);
    let mut warnings: Vec<String> = found.notes.iter().map(|note| visible(note)).collect();
    warnings.extend(card.and_then(|card| missing_credential(card, config)));
    let lines: Vec<String> = text.lines().map(|line| visible(line) + "\n").collect();
    Found { text: lines.concat() + "\n", warnings }
}

/// The card asks for credentials, and the operator gave none.
fn missing_credential(card: &Card, config: &RemoteConfig) -> Option<String> {
    let is_asked = !card.security.is_empty() && card.security.iter().all(|enough| !enough.schemes.is_empty());
    let is_given = upstream::shows_secret(&config.upstream) || config.upstream.client_certificate.is_some();
    if !is_asked || is_given {
        return None;
    }
    let asked: Vec<String> = card.security_schemes.iter().map(|(_, scheme)| scheme_words(scheme)).collect();
    Some(visible(&format!(
        "the remote agent asks for credentials ({}), and it is shown none; use SABIR_UPSTREAM_TOKEN, --api-key, or a file: \
         `sabir import-card` writes its table",
        asked.join(", ")
    )))
}

fn trouble(error: &RemoteError) -> String {
    match error {
        error if error.is_unreachable() => {
            format!("the remote agent cannot be reached yet: {error}; the server starts, and tries again")
        }
        RemoteError::Card(_) => format!(
            "there is no usable card yet: {error}; the server starts, and tries again; with --a2a-version it does without \
             a card"
        ),
        error => format!("the remote agent cannot be used yet: {error}; the server starts, and tries again"),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use sabir_model::{Requirement, SecurityKind, SecurityScheme};
    use sabir_outbound::cards::{CardError, FetchedCard};
    use sabir_outbound::remote::Endpoint;
    use sabir_outbound::{Binding, PeerProtocol, ProtocolVersion};

    use super::*;
    use crate::config::Secret;

    fn found(card: Option<Card>) -> Discovered {
        let fetched = |card| FetchedCard { url: "https://a".into(), text: String::new(), card, faults: Vec::new() };
        let protocol = PeerProtocol::new(ProtocolVersion::V0_3, Binding::JsonRpc).unwrap();
        Discovered {
            card: card.map(fetched).map(Arc::new),
            endpoint: Endpoint { url: "https://a/rpc".into(), protocol, tenant: None },
            replaced: None,
            notes: vec!["odd\u{1b}[2J".into()],
        }
    }

    #[test]
    fn a_person_reads_what_was_found() {
        let kind = SecurityKind::Http { scheme: "Bearer".into(), bearer_format: None };
        let asking = Card {
            name: "Old\u{1b} friend".into(),
            version: "2".into(),
            security_schemes: vec![("bearer".into(), SecurityScheme { description: None, kind })],
            security: vec![Requirement { schemes: vec![("bearer".into(), Vec::new())] }],
            ..Card::default()
        };
        let optional = Card { security: vec![Requirement::default(), asking.security[0].clone()], ..asking.clone() };
        let mut with_token = RemoteConfig::default();
        with_token.upstream.token.value = Some(Secret::new("t"));
        let nothing = RemoteConfig::default();
        for (card, config, name, is_warned) in [
            (Some(asking.clone()), &nothing, "Old\u{fffd} friend 2", true),
            (Some(asking), &with_token, "Old\u{fffd} friend 2", false),
            (Some(optional), &nothing, "Old\u{fffd} friend 2", false),
            (Some(Card { name: "Plain".into(), ..Card::default() }), &nothing, "Plain", false),
            (None, &nothing, "no card", false),
        ] {
            let told = describe(&found(card), config);
            assert_eq!(told.text, format!("Remote agent: {name}\n  A2A 0.3 over JSONRPC at https://a/rpc\n\n"));
            assert_eq!(told.warnings[0], "odd\u{fffd}[2J");
            let warning = "the remote agent asks for credentials (HTTP Bearer), and it is shown none; ";
            assert_eq!(told.warnings.iter().any(|told| told.starts_with(warning)), is_warned, "{:?}", told.warnings);
        }
    }

    #[test]
    fn trouble_says_what_happens_next() {
        for (error, expected) in [
            (RemoteError::Card(CardError::NotFound("https://a".into())), "there is no usable card yet: "),
            (RemoteError::NoInterface("nothing".into()), "the remote agent cannot be used yet: nothing; the server"),
        ] {
            assert!(trouble(&error).starts_with(expected), "{error}");
        }
    }
}
