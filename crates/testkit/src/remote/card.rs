//! The card of a remote agent: of its own version or of several, true or not.

use serde_json::{Value, json};

use super::answer::Answer;
use super::faults::{CardFault, Faults};
use super::planted::PlantedFault;
use super::planted_effects;
use super::protocol::RemoteProtocol;
use super::server::Server;

pub(super) const PATH: &str = "/.well-known/agent-card.json";
pub(super) const OLD_PATH: &str = "/.well-known/agent.json";

/// What a GET of this path is answered; `None` if there is no card.
pub(super) fn answer(server: &Server, path: &str, known_etag: Option<&str>) -> Option<Answer> {
    let faults = server.faults();
    let planted = server.settings.planted;
    if faults.card.contains(&CardFault::Missing) || !paths(server, &faults).contains(&path) {
        return None;
    }
    let mut text = card(server).to_string();
    for fault in &faults.card {
        match fault {
            CardFault::NotJson => text = "<html><body>It works!</body></html>".to_owned(),
            CardFault::Padded(bytes) => {
                let padding = " ".repeat(bytes.saturating_sub(text.len()));
                text.push_str(&padding);
            }
            _ => {}
        }
    }
    let etag =
        format!("\"{:x}\"", text.bytes().fold(7_u64, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into())));
    let media_type = match planted {
        Some(PlantedFault::CardContentType) => "text/html",
        _ => "application/json",
    };
    let answer = match known_etag {
        Some(known) if known == etag => Answer::new(304, media_type, String::new()),
        _ => Answer::new(200, media_type, text),
    };
    Some(answer.header("ETag", &etag).header("Cache-Control", "max-age=0"))
}

/// Where the card is.
fn paths(server: &Server, faults: &Faults) -> Vec<&'static str> {
    let is_only_old =
        faults.card.contains(&CardFault::OnlyAtOldPath) || server.settings.planted == Some(PlantedFault::CardAtOldPath);
    match claimed(server, faults)[0].version() {
        _ if is_only_old => vec![OLD_PATH],
        "1.0" => vec![PATH],
        "0.3" => vec![PATH, OLD_PATH],
        _ => vec![OLD_PATH],
    }
}

/// What the card says is spoken, which may be a lie.
fn claimed(server: &Server, faults: &Faults) -> Vec<RemoteProtocol> {
    let lies = faults.card.iter().filter_map(|fault| match fault {
        CardFault::Claims(protocol) => Some(*protocol),
        _ => None,
    });
    let lies: Vec<RemoteProtocol> = lies.collect();
    if lies.is_empty() { server.settings.protocols.clone() } else { lies }
}

pub(super) fn card(server: &Server) -> Value {
    let faults = server.faults();
    let spoken = claimed(server, &faults);
    let streams = faults.no_streaming.is_none() || faults.card.contains(&CardFault::ClaimsStreaming);
    let mut card = json!({
        "name": "Remote agent",
        "description": "Does what a test tells it.",
        "version": "1.0.0",
        "provider": {"organization": "Sabir", "url": "https://example.com"},
        "capabilities": {"streaming": streams, "pushNotifications": server.settings.offers_push},
        "defaultInputModes": ["text/plain", "application/json"],
        "defaultOutputModes": ["text/plain", "application/json"],
        "skills": [{
            "id": "echo",
            "name": "Echo",
            "description": "Says again what it is told.",
            "tags": ["test"],
        }],
    });
    let listed: Vec<(RemoteProtocol, String)> = spoken
        .iter()
        .enumerate()
        .map(|(index, protocol)| (*protocol, server.interface_url(index, *protocol)))
        .collect();
    if spoken.iter().any(|protocol| protocol.is_v1()) {
        add_v1(server, &mut card, &listed);
    }
    if let Some(first) = listed.iter().position(|(protocol, _)| !protocol.is_v1()) {
        add_v0(server, &mut card, &listed[first..]);
    }
    if server.settings.knows_keys {
        card["capabilities"]["extensions"] = json!([{"uri": sabir_model::IDEMPOTENCY_KEY}]);
    }
    for fault in &faults.card {
        spoil(&mut card, fault);
    }
    planted_effects::card(server, &mut card);
    card
}

fn add_v1(server: &Server, card: &mut Value, listed: &[(RemoteProtocol, String)]) {
    let interfaces = listed.iter().map(|(protocol, url)| {
        let mut interface = json!({
            "url": url,
            "protocolBinding": protocol.binding().on_card(),
            "protocolVersion": protocol.version(),
        });
        if let Some(tenant) = &server.settings.tenant {
            interface["tenant"] = json!(tenant);
        }
        interface
    });
    card["supportedInterfaces"] = interfaces.collect();
    card["capabilities"]["extendedAgentCard"] = json!(false);
    if server.settings.bearer.is_some() {
        card["securitySchemes"]["bearer"]["httpAuthSecurityScheme"] = json!({"scheme": "Bearer"});
        card["securityRequirements"] = json!([{"schemes": {"bearer": {"list": []}}}]);
    }
}

/// The members of 0.3, fewer of them in the versions before it.
fn add_v0(server: &Server, card: &mut Value, listed: &[(RemoteProtocol, String)]) {
    let (protocol, url) = &listed[0];
    card["url"] = json!(url);
    card["capabilities"]["stateTransitionHistory"] = json!(false);
    match protocol.version() {
        "0.3" => {
            let interfaces = listed.iter().filter(|(protocol, _)| !protocol.is_v1());
            let interface = |(protocol, url): &(RemoteProtocol, String)| json!({"url": url, "transport": protocol.binding().on_card()});
            card["protocolVersion"] = json!("0.3.0");
            card["preferredTransport"] = json!(protocol.binding().on_card());
            card["additionalInterfaces"] = interfaces.map(interface).collect();
        }
        "0.2" => card["protocolVersion"] = json!("0.2.5"),
        _ => {}
    }
    if server.settings.bearer.is_none() {
        return;
    }
    if protocol.version() == "0.1" {
        card["authentication"] = json!({"schemes": ["Bearer"]});
    } else {
        card["securitySchemes"]["bearer"]["type"] = json!("http");
        card["securitySchemes"]["bearer"]["scheme"] = json!("Bearer");
        card["security"] = json!([{"bearer": []}]);
    }
}

fn spoil(card: &mut Value, fault: &CardFault) {
    match fault {
        CardFault::Url(url) => {
            for list in ["supportedInterfaces", "additionalInterfaces"] {
                let interfaces = card.get_mut(list).and_then(Value::as_array_mut);
                interfaces.into_iter().flatten().for_each(|interface| interface["url"] = json!(url));
            }
            if card.get("url").is_some() {
                card["url"] = json!(url);
            }
        }
        CardFault::Member(name, value) => card[name] = value.clone(),
        CardFault::NoProtocolVersion => super::tamper::remove(card, &["protocolVersion"]),
        CardFault::NullMembers => {
            for name in ["provider", "documentationUrl", "iconUrl", "securitySchemes", "signatures"] {
                card[name] = Value::Null;
            }
            let own = if card.get("supportedInterfaces").is_some() {
                ["securityRequirements", "signatures"]
            } else {
                ["security", "supportsAuthenticatedExtendedCard"]
            };
            own.into_iter().for_each(|name| card[name] = Value::Null);
            card["capabilities"]["extensions"] = Value::Null;
            card["skills"][0]["examples"] = Value::Null;
        }
        CardFault::WrongTypes => {
            card["version"] = json!(1);
            card["capabilities"]["streaming"] = json!("yes");
            card["defaultInputModes"] = json!("text/plain");
            card["skills"] = json!({"echo": "Echo"});
        }
        CardFault::BrokenSecurity => {
            card["securitySchemes"] = json!({"mind": {"type": "telepathy"}, "number": 7, "nothing": null});
            card["securityRequirements"] = json!([{"schemes": {"missing": {}}}, "bearer"]);
            card["security"] = json!([{"missing": []}, "bearer"]);
        }
        CardFault::OnlyAtOldPath
        | CardFault::ClaimsStreaming
        | CardFault::Claims(_)
        | CardFault::Missing
        | CardFault::NotJson
        | CardFault::Padded(_) => {}
    }
}
