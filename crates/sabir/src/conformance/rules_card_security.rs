//! Security on the card: the schemes that clients are asked for, and signatures.

use sabir_outbound::cards::{CardClient, FetchedCard, KeySource, SignatureCheck, Verdict};
use sabir_wire::read_card_leniently;
use serde_json::Map;

use super::ledger::Ledger;
use super::rule::{Level, Rule, Sections, Subject};
use super::rules_card::CardDocument;
use super::server::Access;

pub const RULES: &[&Rule] = &[&SCHEMES, &REQUIREMENTS, &SIGNATURES];

pub static SCHEMES: Rule = Rule {
    id: "card.security-schemes",
    level: Level::Error,
    subject: Subject::Server,
    sections: Sections::since_v02("§4.5", "§5.5.3"),
    says: "each security scheme says what it is: one member of 1.0 such as httpAuthSecurityScheme, or the type of 0.3",
    remedy: "write the scheme as the specification has it",
};
pub static REQUIREMENTS: Rule = Rule {
    id: "card.security-requirements",
    level: Level::Error,
    subject: Subject::Server,
    sections: Sections::since_v02("§4.4.1, §4.4.5", "§5.5, §5.5.4"),
    says: "security requirements name schemes of the card",
    remedy: "declare the scheme in securitySchemes, or correct its name in the requirement",
};
pub static SIGNATURES: Rule = Rule {
    id: "card.signatures",
    level: Level::Error,
    subject: Subject::Server,
    sections: Sections::since_v02("§8.4", "§5.5.6"),
    says: "a signature of the card fits the card",
    remedy: "sign the card again after each change of it, in its canonical form; sabir card --verify says more",
};

const V1_SCHEMES: [&str; 5] = [
    "apiKeySecurityScheme",
    "httpAuthSecurityScheme",
    "oauth2SecurityScheme",
    "openIdConnectSecurityScheme",
    "mtlsSecurityScheme",
];
const V03_TYPES: [&str; 5] = ["apiKey", "http", "oauth2", "openIdConnect", "mutualTLS"];

pub fn check(document: &CardDocument, ledger: &Ledger) {
    let CardDocument { json, evidence, .. } = document;
    let none = Map::new();
    let schemes = json["securitySchemes"].as_object().unwrap_or(&none);
    for (name, scheme) in schemes {
        let is_v1 = V1_SCHEMES.iter().filter(|member| scheme[**member].is_object()).count() == 1;
        let is_v03 = scheme["type"].as_str().is_some_and(|name| V03_TYPES.contains(&name));
        if is_v1 || is_v03 {
            ledger.pass(&SCHEMES);
        } else if scheme["scheme"]["$case"].is_string() {
            // The JavaScript SDK writes its own objects here.
            let fault =
                format!("securitySchemes.{name} is written as the server keeps it, not as the specification has it");
            ledger.fail_as(Level::Warning, &SCHEMES, fault, evidence);
        } else {
            ledger.fail(&SCHEMES, format!("securitySchemes.{name} does not say what it is"), evidence);
        }
    }
    let skills = json["skills"].as_array().into_iter().flatten();
    for holder in std::iter::once(json).chain(skills) {
        let lists = ["securityRequirements", "security"].map(|name| holder[name].as_array());
        for requirement in lists.into_iter().flatten().flatten() {
            let named = requirement.get("schemes").unwrap_or(requirement).as_object();
            let unknown = named.into_iter().flatten().map(|(name, _)| name).find(|name| !schemes.contains_key(*name));
            let fault = unknown.map(|name| format!("a requirement names {name:?}, which is no scheme of the card"));
            ledger.judge(&REQUIREMENTS, fault, evidence);
        }
    }
    for rule in [&SCHEMES, &REQUIREMENTS] {
        if !ledger.is_judged(rule) {
            ledger.skip(rule, "the card asks for no credentials");
        }
    }
}

/// Keys are fetched from the server of the card only.
pub async fn check_signatures(access: &Access, document: &CardDocument, ledger: &Ledger) {
    let CardDocument { json, url, text, evidence, .. } = document;
    if json["signatures"].as_array().is_none_or(Vec::is_empty) {
        return ledger.skip(&SIGNATURES, "the card is not signed");
    }
    let Ok(read) = read_card_leniently(text, url) else {
        return ledger.skip(&SIGNATURES, "the card cannot be read");
    };
    let fetched = FetchedCard { url: url.clone(), text: text.clone(), card: read.card, faults: read.faults };
    let Ok(client) = CardClient::new(url, None, access.timeout) else { return };
    match fetched.verify(&client, &KeySource::NamedByCard).await {
        Err(why) => ledger.fail(&SIGNATURES, why, evidence),
        Ok(checks) => checks.iter().for_each(|check| judge_signature(check, document, ledger)),
    }
}

fn judge_signature(check: &SignatureCheck, document: &CardDocument, ledger: &Ledger) {
    match &check.verdict {
        Verdict::Valid { .. } => ledger.pass(&SIGNATURES),
        Verdict::Invalid(why) => ledger.fail(&SIGNATURES, format!("a signature is invalid: {why}"), &document.evidence),
        Verdict::UnknownKey(why) => ledger.skip(&SIGNATURES, why.clone()),
    }
}
