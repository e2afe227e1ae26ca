//! `sabir card`: shows the card of any A2A server, and verifies its signatures.

use std::path::Path;
use std::time::Duration;

use sabir_model::{Card, Requirement, SecurityKind, SecurityScheme};
use sabir_outbound::cards::{CardClient, CardError, FetchedCard, KeySource, SignatureCheck, Trust, Verdict};
use sabir_outbound::jose::KeySet;
use sabir_wire::{CardMembers, payloads_to_verify};
use serde_json::{Value, json};

use crate::agents::object;
use crate::cli::CardOptions;
use crate::client_commands::{Credentials, Failure, ServerAddress, Surroundings};
use crate::config::Audience;
use crate::terminal_text::{visible, visible_json};

/// For one document; a server that needs longer is not usable.
const TIMEOUT: Duration = Duration::from_secs(15);

/// What is printed, what the operator should know besides, and why the card is not verified.
pub struct CardReport {
    pub text: String,
    pub warnings: Vec<String>,
    pub failure: Option<String>,
}

pub async fn ask(options: &CardOptions, audience: Audience, around: &Surroundings) -> Result<CardReport, Failure> {
    let named = options.jwks.as_deref().filter(|named| named.contains("://"));
    let address = ServerAddress::find(options.url.as_deref(), &options.server, around)?;
    let credentials = Credentials::new(&options.server, &around.variables);
    let card_failure = |error: CardError| Failure::of_card(&error, credentials.shown());
    let headers = credentials.headers()?;
    let client =
        CardClient::with_headers(&address.url, named, TIMEOUT, headers, address.roots).map_err(card_failure)?;
    let source = match (&options.jwks, named) {
        (None, _) => KeySource::NamedByCard,
        (Some(_), Some(url)) => {
            let keys = client.key_set(url).await.map_err(|why| Failure::local(visible(&why)))?;
            KeySource::Given { keys, name: url.to_owned() }
        }
        (Some(file), None) => KeySource::Given { keys: read_key_set(Path::new(file))?, name: file.clone() },
    };
    let fetched = client.card().await.map_err(card_failure)?;
    let checked = match options.verify {
        true => Some(fetched.verify(&client, &source).await),
        false => None,
    };
    let (warnings, failure) = match &checked {
        Some(Ok(checks)) => (warnings(&fetched, checks), failure(checks)),
        Some(Err(why)) => (Vec::new(), Some(format!("the card is not verified: {}", visible(why)))),
        None => (Vec::new(), None),
    };
    let checks = checked.map(Result::unwrap_or_default);
    let text = match audience {
        Audience::Program => {
            let json = show_object(&fetched, checks.as_deref(), failure.is_none());
            if around.terminals.stdout { visible_json(&json) } else { json }
        }
        Audience::Person => show_lines(&fetched, checks.as_deref()),
    };
    Ok(CardReport { text, warnings, failure })
}

fn read_key_set(file: &Path) -> Result<KeySet, Failure> {
    let document = std::fs::read(file)
        .map_err(|error| Failure::local(format!("cannot read the key set {}: {error}", file.display())))?;
    KeySet::parse(&document).map_err(|why| Failure::local(format!("the key set {} {why}", file.display())))
}

fn failure(checks: &[SignatureCheck]) -> Option<String> {
    let bad = checks.iter().filter(|check| !matches!(check.verdict, Verdict::Valid { .. })).count();
    match (bad, checks.len()) {
        (0, _) => None,
        (1, 1) => Some("the card is not verified: its signature could not be confirmed".to_owned()),
        (bad, all) => Some(format!("the card is not verified: {bad} of its {all} signatures could not be confirmed")),
    }
}

fn warnings(fetched: &FetchedCard, checks: &[SignatureCheck]) -> Vec<String> {
    let valid = |check: &SignatureCheck| match check.verdict {
        Verdict::Valid { covers, trust, .. } => Some((covers, trust)),
        _ => None,
    };
    let valid: Vec<(CardMembers, Trust)> = checks.iter().filter_map(valid).collect();
    let mut warnings = Vec::new();
    if valid.iter().any(|(_, trust)| *trust == Trust::Nothing) {
        warnings.push(
            "card and key came from the same server over plain http, so the signature proves nothing: whoever can change \
             the card on its way can change the key; use https, or name a key set that you trust with --jwks"
                .to_owned(),
        );
    }
    let mut versions: Vec<CardMembers> = Vec::new();
    for payload in payloads_to_verify(fetched.text.as_bytes()).unwrap_or_default() {
        let is_signed = valid.iter().any(|(covers, _)| *covers == payload.covers);
        if !valid.is_empty() && !is_signed && !versions.contains(&payload.covers) {
            versions.push(payload.covers);
        }
    }
    warnings.extend(
        versions
            .iter()
            .map(|members| format!("no signature covers what clients of {} read of this card", members.version())),
    );
    warnings
}

/// One JSON object. The card is in it as it came.
fn show_object(fetched: &FetchedCard, checks: Option<&[SignatureCheck]>, is_verified: bool) -> String {
    let mut members = vec![format!("\"url\":{}", json!(fetched.url)), format!("\"card\":{}", fetched.text.trim())];
    if let Some(checks) = checks {
        members.push(format!("\"verified\":{is_verified}"));
        let checks: Vec<String> = checks.iter().map(check_object).collect();
        members.push(format!("\"signatures\":[{}]", checks.join(",")));
    }
    format!("{{{}}}\n", members.join(","))
}

fn check_object(check: &SignatureCheck) -> String {
    let mut members = vec![("kid", json!(check.kid)), ("alg", json!(check.alg))];
    match &check.verdict {
        Verdict::Valid { covers, key, trust } => {
            members.push(("verdict", json!("valid")));
            members.push(("covers", json!(covers.version())));
            members.push(("key", json!(key)));
            members.push(("trust", Value::from(trust_word(*trust))));
        }
        Verdict::Invalid(why) => members.extend([("verdict", json!("invalid")), ("why", json!(why))]),
        Verdict::UnknownKey(why) => members.extend([("verdict", json!("unknown_key")), ("why", json!(why))]),
    }
    object(&members)
}

fn trust_word(trust: Trust) -> &'static str {
    match trust {
        Trust::Given => "given",
        Trust::SameServer => "same_server",
        Trust::Nothing => "nothing",
    }
}

fn show_lines(fetched: &FetchedCard, checks: Option<&[SignatureCheck]>) -> String {
    let card = &fetched.card;
    let mut lines = Lines::default();
    let version = if card.version.is_empty() { String::new() } else { format!(" {}", card.version) };
    lines.line(&format!("{}{version}", card.name));
    if !card.description.is_empty() {
        lines.line(&card.description);
    }
    lines.line("");
    lines.field("card", [fetched.url.clone()]);
    lines.field("provider", card.provider.iter().map(|provider| format!("{} {}", provider.organization, provider.url)));
    lines.field("docs", card.documentation_url.iter().cloned());
    lines.field("interfaces", interfaces(card));
    lines.field("features", [features(card)].into_iter().filter(|features| !features.is_empty()));
    lines.field(
        "extensions",
        card.capabilities.extensions.iter().map(|extension| {
            let required = if extension.required { " (required)" } else { "" };
            format!("{}{required}", extension.uri)
        }),
    );
    lines.field("input", [card.input_modes.join(", ")].into_iter().filter(|modes| !modes.is_empty()));
    lines.field("output", [card.output_modes.join(", ")].into_iter().filter(|modes| !modes.is_empty()));
    lines.field("security", security(card));
    lines.field(
        "skills",
        card.skills.iter().map(|skill| {
            let text = if skill.description.is_empty() { &skill.name } else { &skill.description };
            format!("{}: {text}", skill.id)
        }),
    );
    lines.field(
        "signatures",
        match checks {
            Some(checks) => checks.iter().map(check_line).collect(),
            None => signatures(card),
        },
    );
    lines.0
}

/// Lines for a person; what strangers wrote cannot break out of them.
#[derive(Default)]
struct Lines(String);

impl Lines {
    fn line(&mut self, text: &str) {
        self.0 += visible(text).trim_end();
        self.0.push('\n');
    }

    /// A name, and a line for each of its values.
    fn field(&mut self, name: &str, values: impl IntoIterator<Item = String>) {
        for (place, value) in values.into_iter().enumerate() {
            let name = if place == 0 { name } else { "" };
            self.line(&format!("{name:<12}{value}"));
        }
    }
}

fn interfaces(card: &Card) -> Vec<String> {
    let names: Vec<String> =
        card.interfaces.iter().map(|interface| format!("{} {}", interface.binding, interface.version)).collect();
    let width = names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
    let line = |(interface, name): (&sabir_model::Interface, &String)| {
        let tenant = interface.tenant.as_ref().map(|tenant| format!(" (tenant {tenant})")).unwrap_or_default();
        format!("{name:<width$}  {}{tenant}", interface.url)
    };
    card.interfaces.iter().zip(&names).map(line).collect()
}

fn features(card: &Card) -> String {
    let capabilities = &card.capabilities;
    let all = [
        ("streams", capabilities.streaming),
        ("webhooks", capabilities.push_notifications),
        ("extended card", capabilities.extended_card),
    ];
    all.into_iter().filter(|(_, has)| *has == Some(true)).map(|(name, _)| name).collect::<Vec<_>>().join(", ")
}

fn security(card: &Card) -> Vec<String> {
    if card.security_schemes.is_empty() && card.security.is_empty() {
        return vec!["no credentials are asked for".to_owned()];
    }
    let mut lines: Vec<String> =
        card.security_schemes.iter().map(|(name, scheme)| format!("{name}: {}", scheme_words(scheme))).collect();
    lines.extend(card.security.iter().map(|requirement| format!("enough is {}", requirement_words(requirement))));
    lines
}

/// What a credential is, in a few words.
pub fn scheme_words(scheme: &SecurityScheme) -> String {
    match &scheme.kind {
        SecurityKind::ApiKey { location, name } => format!("API key in the {location} {name}"),
        SecurityKind::Http { scheme, bearer_format: Some(format) } => format!("HTTP {scheme} ({format})"),
        SecurityKind::Http { scheme, bearer_format: None } => format!("HTTP {scheme}"),
        SecurityKind::OAuth2 { flows, .. } => {
            let flows: Vec<&str> = flows.iter().map(|flow| flow.name.as_str()).collect();
            format!("OAuth 2 {}", flows.join(", "))
        }
        SecurityKind::OpenIdConnect { url } => format!("OpenID Connect {url}"),
        SecurityKind::MutualTls => "mutual TLS".to_owned(),
    }
}

fn requirement_words(requirement: &Requirement) -> String {
    let each = requirement.schemes.iter().map(|(name, scopes)| match scopes.is_empty() {
        true => name.clone(),
        false => format!("{name} with {}", scopes.join(", ")),
    });
    each.collect::<Vec<_>>().join(" and ")
}

fn signatures(card: &Card) -> Vec<String> {
    vec![match card.signatures.len() {
        0 => "none".to_owned(),
        count => format!("{count}; --verify checks them"),
    }]
}

fn check_line(check: &SignatureCheck) -> String {
    let key = match (&check.kid, check.alg) {
        (Some(kid), Some(alg)) => format!(" ({alg}, key {kid})"),
        _ => String::new(),
    };
    match &check.verdict {
        Verdict::Valid { covers, key: source, .. } => {
            format!("valid for clients of {}{key}; the key is from {source}", covers.version())
        }
        Verdict::Invalid(why) => format!("invalid{key}: {why}"),
        Verdict::UnknownKey(why) => format!("unknown key{key}: {why}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fetched() -> FetchedCard {
        let text = include_str!("../../wire/tests/signing/agent_card.signed.json").replacen(
            "Harbour Desk",
            "Harbour\\u001b[2J Desk",
            1,
        );
        let card = sabir_wire::read_card(&text).unwrap();
        FetchedCard { url: "https://a.example/.well-known/agent-card.json".into(), text, card, faults: Vec::new() }
    }

    fn valid(covers: CardMembers, trust: Trust) -> SignatureCheck {
        let verdict = Verdict::Valid { covers, key: "https://a.example/keys".into(), trust };
        SignatureCheck { kid: Some("k".into()), alg: Some("ES256"), verdict }
    }

    fn invalid() -> SignatureCheck {
        SignatureCheck { kid: None, alg: None, verdict: Verdict::Invalid("it is torn".into()) }
    }

    #[test]
    fn people_see_lines_that_cannot_steer_their_terminal() {
        let shown = show_lines(&fetched(), None);
        assert!(shown.starts_with("Harbour\u{fffd}[2J Desk 2.3.0\nAnswers questions"), "{shown}");
        for line in [
            "interfaces  JSONRPC 1.0    https://agents.example.com/harbour/rpc\n",
            "            HTTP+JSON 1.0  https://agents.example.com/harbour (tenant harbour-north)\n",
            "features    streams, webhooks, extended card\n",
            "security    bearer: HTTP Bearer (JWT)\n",
            "            enough is oauth with harbour.read\n",
            "skills      arrivals: Lists ships due.\n",
            "signatures  1; --verify checks them\n",
        ] {
            assert!(shown.contains(line), "{line} is not in\n{shown}");
        }
        let shown = show_lines(&fetched(), Some(&[valid(CardMembers::V1_0, Trust::Given), invalid()]));
        let expected = "signatures  valid for clients of 1.0 (ES256, key k); the key is from https://a.example/keys\n\
                        \u{20}           invalid: it is torn\n";
        assert!(shown.ends_with(expected), "{shown}");
    }

    #[test]
    fn programs_get_the_card_as_it_came() {
        let shown: Value = serde_json::from_str(&show_object(&fetched(), None, true)).unwrap();
        assert_eq!(shown["card"]["version"], "2.3.0");
        assert_eq!(shown.get("verified"), None);
        let shown = show_object(&fetched(), Some(&[valid(CardMembers::V0_3, Trust::Nothing), invalid()]), false);
        let shown: Value = serde_json::from_str(&shown).unwrap();
        let valid = json!({"kid": "k", "alg": "ES256", "verdict": "valid", "covers": "0.3",
            "key": "https://a.example/keys", "trust": "nothing"});
        let invalid = json!({"kid": null, "alg": null, "verdict": "invalid", "why": "it is torn"});
        assert_eq!((&shown["verified"], &shown["signatures"]), (&json!(false), &json!([valid, invalid])));
    }

    #[test]
    fn warnings_say_what_a_valid_signature_does_not() {
        let mut hybrid = fetched();
        hybrid.text = hybrid.text.replacen('{', "{\"url\":\"http://x/\",", 1);
        let uncovered = "no signature covers what clients of 0.3 read of this card";
        for (fetched, check, expected) in [
            (fetched(), valid(CardMembers::V1_0, Trust::Given), &[][..]),
            (fetched(), valid(CardMembers::V1_0, Trust::Nothing), &["card and key came from the same server"]),
            (fetched(), invalid(), &[]),
            (hybrid.clone(), valid(CardMembers::V1_0, Trust::SameServer), &[uncovered]),
            (hybrid, invalid(), &[]),
        ] {
            let found = warnings(&fetched, std::slice::from_ref(&check));
            assert_eq!(found.len(), expected.len(), "{check:?}: {found:?}");
            assert!(found.iter().zip(expected).all(|(found, expected)| found.starts_with(expected)), "{found:?}");
        }
        assert_eq!(failure(&[valid(CardMembers::V1_0, Trust::Given)]), None);
        assert!(
            failure(&[valid(CardMembers::V1_0, Trust::Given), invalid()]).unwrap().contains("1 of its 2 signatures")
        );
    }
}
