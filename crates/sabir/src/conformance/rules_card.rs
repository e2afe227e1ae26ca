//! The card as a document: where it is, how it is served, and what it must have.

use http::{HeaderMap, header};
use sabir_outbound::{Client, DialError, Request};
use serde_json::Value;

use super::evidence::Evidence;
use super::exchange::{Answered, dial_error, media_type, read_json};
use super::interface::CardPlace;
use super::ledger::Ledger;
use super::rule::{Level, Rule, Sections, Subject};
use super::server::Access;
use super::shape::{Difference, Fault, Shape};
use super::shapes_card;

pub const RULES: &[&Rule] = &[&FOUND, &CONTENT_TYPE, &JSON, &MEMBERS, &TYPES, &SKILLS, &CACHING];

pub static FOUND: Rule = Rule {
    id: "card.found",
    level: Level::Error,
    subject: Subject::Server,
    sections: Sections::all("§8.2, §14.3", "§5.3", "§5.3"),
    says: "the card is at /.well-known/agent-card.json (before 0.3 at /.well-known/agent.json)",
    remedy: "serve the card at /.well-known/agent-card.json; keep the old path as well if clients of 0.2 come",
};
pub static CONTENT_TYPE: Rule = Rule {
    id: "card.content-type",
    level: Level::Error,
    subject: Subject::Server,
    sections: Sections::all("§8.2, §14.3", "§5.3", "§5.3"),
    says: "the card has the media type application/json",
    remedy: "set Content-Type: application/json",
};
pub static JSON: Rule = Rule {
    id: "card.json",
    level: Level::Error,
    subject: Subject::Server,
    sections: Sections::all("§8.1, §14.3", "§5.1", "§5.1"),
    says: "the card is a JSON object",
    remedy: "serve the card itself, not a page about it",
};
pub static MEMBERS: Rule = Rule {
    id: "card.members",
    level: Level::Error,
    subject: Subject::Server,
    sections: Sections::all("§4.4.1, §5.7", "§5.5", "§5.5"),
    says: "the card has all required members, and lists that are required are not empty",
    remedy: "write the members that the fault names",
};
pub static TYPES: Rule = Rule {
    id: "card.types",
    level: Level::Error,
    subject: Subject::Server,
    sections: Sections::all("§4.4", "§5.5", "§5.5"),
    says: "the members of the card have the JSON type and the spelling that the specification gives them",
    remedy: "write the value in the type that the fault names, and names in camelCase",
};
pub static SKILLS: Rule = Rule {
    id: "card.skills",
    level: Level::Error,
    subject: Subject::Server,
    sections: Sections::all("§4.4.5", "§5.5.4", "§5.5.4"),
    says: "each skill has an id, a name, a description and tags",
    remedy: "complete the skill that the fault names; clients choose agents by tags",
};
pub static CACHING: Rule = Rule {
    id: "card.caching",
    level: Level::Warning,
    subject: Subject::Server,
    sections: Sections::since_v1("§8.6.1"),
    says: "the card is served with Cache-Control (max-age) and an ETag",
    remedy: "send Cache-Control: max-age=… and an ETag made of the card's content or version",
};

/// A card as it was served.
pub struct CardDocument {
    pub url: String,
    pub place: CardPlace,
    pub json: Value,
    pub text: String,
    pub headers: HeaderMap,
    pub evidence: Evidence,
}

/// Why there is no card.
pub enum NoCard {
    Unreachable(String),
    NeedsCredentials(String),
    /// The server answers, and has none.
    Missing,
}

const REDIRECTS: u8 = 3;

pub async fn fetch(access: &Access, client: &Client, ledger: &Ledger) -> Result<CardDocument, NoCard> {
    let mut tried = Vec::new();
    for (url, place) in places(&access.url) {
        let answered = match get(access, client, &url).await {
            Ok(answered) => answered,
            Err(error) => return Err(NoCard::Unreachable(format!("cannot fetch {url}: {}", dial_error(&error)))),
        };
        let evidence = Evidence::new(format!("GET {url}"), answered.got());
        match answered.status {
            200 => {}
            401 | 403 => {
                let why = format!("{url} answers HTTP {}: the card itself needs credentials", answered.status);
                return Err(NoCard::NeedsCredentials(why));
            }
            _ => {
                tried.push(evidence);
                continue;
            }
        }
        let json = read_json(&answered.body).filter(Value::is_object);
        let Some(json) = json else {
            tried.push(evidence);
            continue;
        };
        ledger.pass(&JSON);
        judge_head(ledger, &answered, &evidence);
        let text = String::from_utf8_lossy(&answered.body).into_owned();
        return Ok(CardDocument { url, place, json, text, headers: answered.headers, evidence });
    }
    let is_there = |evidence: &&Evidence| evidence.got.starts_with("HTTP 200");
    match tried.iter().find(is_there) {
        Some(evidence) => ledger.fail(&JSON, "what is at the place of the card is no JSON object", evidence),
        None => {
            let evidence = tried.first().cloned().unwrap_or_else(|| Evidence::new("", ""));
            ledger.fail(&FOUND, "there is no card", &evidence);
        }
    }
    Err(NoCard::Missing)
}

async fn get(access: &Access, client: &Client, url: &str) -> Result<Answered, DialError> {
    let mut request = Request::get(url, access.timeout).following(REDIRECTS);
    request.headers = access.headers.clone();
    request.headers.insert(header::ACCEPT, header::HeaderValue::from_static("application/json"));
    let response = client.send(request).await?;
    Ok(Answered { status: response.status.as_u16(), headers: response.headers, body: response.body, grpc: None })
}

/// Where the card may be. A URL that is not the root may be the address for calls, whose server has its card at the root.
fn places(url: &str) -> Vec<(String, CardPlace)> {
    let path = url.split(['?', '#']).next().unwrap_or(url);
    if path.contains("/.well-known/") || path.ends_with(".json") {
        return vec![(url.to_owned(), CardPlace::Named)];
    }
    let host = path.find("://").map_or(0, |at| at + 3);
    let root = path[host..].find('/').map_or(path, |slash| &path[..host + slash]);
    let mut bases = vec![path.trim_end_matches('/')];
    if bases[0] != root {
        bases.push(root);
    }
    let at = |base: &str| {
        [("agent-card.json", CardPlace::New), ("agent.json", CardPlace::Old)]
            .map(|(name, place)| (format!("{base}/.well-known/{name}"), place))
    };
    bases.into_iter().flat_map(at).collect()
}

fn judge_head(ledger: &Ledger, answered: &Answered, evidence: &Evidence) {
    match answered.content_type().map(media_type).as_deref() {
        Some("application/json") => ledger.pass(&CONTENT_TYPE),
        Some(other) if other.ends_with("+json") => {
            ledger.fail_as(Level::Note, &CONTENT_TYPE, format!("the card has the type {other}"), evidence);
        }
        Some(other) => ledger.fail(&CONTENT_TYPE, format!("the card has the type {other}"), evidence),
        None => ledger.fail(&CONTENT_TYPE, "the card has no Content-Type", evidence),
    }
}

fn judge_caching(document: &CardDocument, ledger: &Ledger) {
    let is_missing = |name: &&str| !document.headers.contains_key(*name);
    let missing: Vec<&str> = ["cache-control", "etag"].into_iter().filter(is_missing).collect();
    let fault = (!missing.is_empty()).then(|| format!("the card comes with no {}", missing.join(" and no ")));
    ledger.judge(&CACHING, fault, &document.evidence);
}

/// Judges what the card says of itself.
pub fn check(document: &CardDocument, ledger: &Ledger) {
    let CardDocument { json, place, evidence, url, .. } = document;
    let is_v1 = json.get("supportedInterfaces").is_some() || json.get("supported_interfaces").is_some();
    let version = json["protocolVersion"].as_str();
    let is_old = !is_v1 && version.is_none_or(|version| version.starts_with("0.1") || version.starts_with("0.2"));
    match place {
        CardPlace::New | CardPlace::Named => ledger.pass(&FOUND),
        CardPlace::Old if is_old => ledger.pass(&FOUND),
        CardPlace::Old => ledger.fail(&FOUND, format!("the card is at {url} only, the path of 0.2"), evidence),
    }
    let (card, skill): (&Shape, &Shape) = match (is_v1, is_old && *place == CardPlace::Old) {
        (true, _) => (&shapes_card::V1, &shapes_card::SKILL_V1),
        (false, true) => (&shapes_card::V01, &shapes_card::SKILL_V01),
        (false, false) => (&shapes_card::V03, &shapes_card::SKILL_V1),
    };
    match is_v1 {
        true => judge_caching(document, ledger),
        false => ledger.skip(&CACHING, "the card is of a version without this rule"),
    }
    ledger.pass(&MEMBERS);
    ledger.pass(&TYPES);
    for Difference { fault, words } in card.check(json, "") {
        match fault {
            Fault::Missing => ledger.fail(&MEMBERS, words, evidence),
            Fault::Null => ledger.fail_as(Level::Note, &TYPES, words, evidence),
            _ => ledger.fail(&TYPES, words, evidence),
        }
    }
    ledger.pass(&SKILLS);
    for (place, one) in json["skills"].as_array().into_iter().flatten().enumerate() {
        for Difference { fault, words } in skill.check(one, &format!("skills[{place}]")) {
            let level = if fault == Fault::Null { Level::Note } else { Level::Error };
            ledger.fail_as(level, &SKILLS, words, evidence);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cards_are_looked_for_below_the_url_and_at_its_root() {
        for (url, expected) in [
            ("http://a", &["http://a/.well-known/agent-card.json", "http://a/.well-known/agent.json"][..]),
            (
                "http://a/x/?q",
                &[
                    "http://a/x/.well-known/agent-card.json",
                    "http://a/x/.well-known/agent.json",
                    "http://a/.well-known/agent-card.json",
                    "http://a/.well-known/agent.json",
                ],
            ),
            ("http://a/card.json", &["http://a/card.json"]),
        ] {
            let found: Vec<String> = places(url).into_iter().map(|(url, _)| url).collect();
            assert_eq!(found, expected, "{url}");
        }
    }
}
