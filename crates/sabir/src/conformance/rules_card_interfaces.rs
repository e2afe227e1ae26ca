//! The interfaces on the card: what each of them must say, and whether there is anybody.

use sabir_outbound::Target;
use sabir_outbound::guard::Scheme;
use sabir_wire::{Binding, ProtocolVersion};
use serde_json::Value;

use super::interface::Claim;
use super::ledger::Ledger;
use super::rule::{Level, Rule, Sections, Subject};
use super::rules_card::CardDocument;
use super::server::{Access, is_this_machine};

pub const RULES: &[&Rule] = &[&URL, &HTTPS, &REACHABLE, &BINDING, &VERSION, &TRANSPORTS, &ANSWERS];

pub static URL: Rule = Rule {
    id: "card.interface-url",
    level: Level::Error,
    subject: Subject::Server,
    sections: Sections::all("§4.4.6", "§5.5, §5.5.5", "§5.5"),
    says: "each interface has an absolute URL; one of gRPC may be host:port",
    remedy: "write the whole URL, with scheme and host",
};
pub static HTTPS: Rule = Rule {
    id: "card.interface-https",
    level: Level::Warning,
    subject: Subject::Server,
    sections: Sections::all("§4.4.6, §7.1", "§3.1, §4.1", "§3.1"),
    says: "interfaces that other machines use are https",
    remedy: "serve with TLS, and put https URLs on the card; plain http is for trials on one machine",
};
pub static REACHABLE: Rule = Rule {
    id: "card.interface-host",
    level: Level::Error,
    subject: Subject::Server,
    sections: Sections::all("§8.3.1", "§5.6.1", "§5.5"),
    says: "the URL of an interface leads to the server, from wherever the card is read",
    remedy: "put the public URL of the server on the card, not localhost",
};
pub static BINDING: Rule = Rule {
    id: "card.interface-binding",
    level: Level::Error,
    subject: Subject::Server,
    sections: Sections::since_v02("§4.4.6, §5.8", "§5.5.5"),
    says: "each interface names its binding: JSONRPC, HTTP+JSON, GRPC, or a URI of its own",
    remedy: "write one of these names in this spelling",
};
pub static VERSION: Rule = Rule {
    id: "card.interface-version",
    level: Level::Error,
    subject: Subject::Server,
    sections: Sections::since_v02("§4.4.6, §3.6", "§5.5"),
    says: "each interface of 1.0, and each card of 0.3, names its version of the protocol",
    remedy: "write protocolVersion: \"1.0\" with each interface; on a card of 0.3 \"0.3.0\"",
};
pub static TRANSPORTS: Rule = Rule {
    id: "card.transports",
    level: Level::Warning,
    subject: Subject::Server,
    sections: Sections::before_v1("§5.6", ""),
    says: "a card of 0.3 has preferredTransport, and lists the main url among its additionalInterfaces, without contradictions",
    remedy: "name the transport of url in preferredTransport, and repeat both in additionalInterfaces",
};
pub static ANSWERS: Rule = Rule {
    id: "card.interface-answers",
    level: Level::Error,
    subject: Subject::Server,
    sections: Sections::all("§8.3.1, §5.2", "§5.6.1, §5.6.2", "§5.5"),
    says: "each interface on the card answers, in its binding and version",
    remedy: "list only what is served, at the URL where it is served",
};

pub fn check(access: &Access, document: &CardDocument, claims: &[Claim], ledger: &Ledger) {
    for claim in claims {
        check_url(access, document, claim, ledger);
        check_binding(document, claim, ledger);
        check_version(document, claim, ledger);
    }
    check_transports(document, ledger);
    for rule in RULES.iter().filter(|rule| rule.id != ANSWERS.id && !ledger.is_judged(rule)) {
        ledger.skip(rule, "the card has nothing of the kind");
    }
}

fn check_url(access: &Access, document: &CardDocument, claim: &Claim, ledger: &Ledger) {
    let Claim { member, url, .. } = claim;
    let target = match Target::parse(&claim.absolute_url(access)) {
        Ok(target) => target,
        // gRPC has names of its own, such as dns:///host:port.
        Err(_) if claim.is_grpc() && !url.is_empty() => return,
        Err(_) if url.is_empty() => return ledger.fail(&URL, format!("{member} has no url"), &document.evidence),
        Err(refusal) => {
            return ledger.fail(&URL, format!("{member} has the url {url:?}: {refusal}"), &document.evidence);
        }
    };
    ledger.pass(&URL);
    let is_local = is_this_machine(&target.host);
    let fault =
        claim.is_elsewhere_local(access).then(|| format!("{member} is {url}, which only its own machine reaches"));
    ledger.judge(&REACHABLE, fault, &document.evidence);
    // A host and a port do not say whether TLS is spoken there.
    if claim.is_grpc() && !url.contains("://") {
        return;
    }
    let is_plain = target.scheme == Scheme::Http && !is_local;
    ledger.judge(&HTTPS, is_plain.then(|| format!("{member} is {url}")), &document.evidence);
}

fn check_binding(document: &CardDocument, claim: &Claim, ledger: &Ledger) {
    let Claim { member, binding, .. } = claim;
    let evidence = &document.evidence;
    if ["JSONRPC", "HTTP+JSON", "GRPC"].contains(&binding.as_str()) {
        return ledger.pass(&BINDING);
    }
    if binding.is_empty() {
        return ledger.fail(&BINDING, format!("{member} names no binding"), evidence);
    }
    let fault = match Binding::parse(binding).is_some() || claim.is_grpc() {
        true => format!("{member} spells its binding {binding:?}"),
        false if binding.contains(':') => return ledger.pass(&BINDING),
        false => format!("{member} has the binding {binding:?}, which is neither a standard one nor a URI"),
    };
    // Its own bindings should be URIs, and other spellings are widely understood.
    ledger.fail_as(Level::Warning, &BINDING, fault, evidence);
}

fn check_version(document: &CardDocument, claim: &Claim, ledger: &Ledger) {
    let Claim { member, version, .. } = claim;
    let evidence = &document.evidence;
    let place = document.place;
    match version.as_deref() {
        // Before 0.2.5 a card did not name its version.
        None if !claim.is_of_v1() && place == super::interface::CardPlace::Old => {}
        None if claim.is_of_v1() => ledger.fail(&VERSION, format!("{member} has no protocolVersion"), evidence),
        None => ledger.fail(&VERSION, "the card has no protocolVersion", evidence),
        Some(version) if ProtocolVersion::parse(version).is_none() => {
            let fault = format!("{member} has the version {version:?}, which this check does not know");
            ledger.fail_as(Level::Note, &VERSION, fault, evidence);
        }
        Some(version) if claim.is_of_v1() && version.split('.').count() > 2 => {
            let fault = format!("{member} has the version {version:?}; patch numbers should not be used");
            ledger.fail_as(Level::Warning, &VERSION, fault, evidence);
        }
        Some(_) => ledger.pass(&VERSION),
    }
}

fn check_transports(document: &CardDocument, ledger: &Ledger) {
    let CardDocument { json, evidence, .. } = document;
    let is_v03 = json["protocolVersion"].as_str().is_some_and(|version| version.starts_with("0.3"));
    let Some(url) = json["url"].as_str().filter(|_| is_v03) else { return };
    let Some(transport) = json["preferredTransport"].as_str() else {
        return ledger.fail(&TRANSPORTS, "the card has no preferredTransport", evidence);
    };
    let others: Vec<&Value> = json["additionalInterfaces"].as_array().into_iter().flatten().collect();
    let same_url: Vec<&&Value> = others.iter().filter(|other| other["url"] == url).collect();
    if same_url.iter().any(|other| other["transport"] == transport) || others.is_empty() {
        return ledger.pass(&TRANSPORTS);
    }
    match same_url.first() {
        Some(other) => {
            let fault = format!(
                "{url} is {transport} in preferredTransport and {} in additionalInterfaces",
                other["transport"]
            );
            ledger.fail(&TRANSPORTS, fault, evidence);
        }
        None => {
            let fault = format!("additionalInterfaces does not have the main url with {transport}");
            ledger.fail(&TRANSPORTS, fault, evidence);
        }
    }
}
