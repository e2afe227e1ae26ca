//! Cards, true and untrue.

use sabir_testkit::http::{Http, HttpReply};
use sabir_testkit::remote::{CardFault, Faults, Refusal, RemoteAgent, RemoteProtocol};
use serde_json::Value;

const NEW: &str = "/.well-known/agent-card.json";
const OLD: &str = "/.well-known/agent.json";

fn get(agent: &RemoteAgent, path: &str) -> HttpReply {
    Http::connect(agent.address()).unwrap().exchange("GET", path, &[], b"").unwrap()
}

#[test]
fn each_version_has_its_card_at_its_path() {
    use RemoteProtocol::*;
    for (protocol, paths, pointer, version) in [
        (V1JsonRpc, [200, 404], "/supportedInterfaces/0/protocolVersion", Some("1.0")),
        (V1HttpJson, [200, 404], "/supportedInterfaces/0/protocolVersion", Some("1.0")),
        (V03JsonRpc, [200, 200], "/protocolVersion", Some("0.3.0")),
        (V03HttpJson, [200, 200], "/protocolVersion", Some("0.3.0")),
        (V02JsonRpc, [404, 200], "/protocolVersion", Some("0.2.5")),
        (V01JsonRpc, [404, 200], "/protocolVersion", None),
    ] {
        let agent = RemoteAgent::start(protocol);
        assert_eq!([get(&agent, NEW).status, get(&agent, OLD).status], paths, "{protocol:?}");
        let card = get(&agent, if paths[0] == 200 { NEW } else { OLD }).json();
        assert_eq!(card.pointer(pointer).and_then(Value::as_str), version, "{protocol:?}");
        let url = card.pointer("/supportedInterfaces/0/url").unwrap_or(&card["url"]).as_str();
        assert_eq!(url.map(str::to_owned), agent.interface_url(protocol), "{protocol:?}");
    }
}

#[test]
fn a_card_can_be_wrong_in_every_way() {
    let wrong: [(CardFault, &str, &str); 10] = [
        (CardFault::Url("http://localhost:9/".to_owned()), "/supportedInterfaces/0/url", "\"http://localhost:9/\""),
        (CardFault::NoProtocolVersion, "/supportedInterfaces/0/protocolVersion", ""),
        (CardFault::NullMembers, "/provider", "null"),
        (CardFault::NullMembers, "/securityRequirements", "null"),
        (CardFault::WrongTypes, "/capabilities/streaming", "\"yes\""),
        (CardFault::BrokenSecurity, "/securitySchemes/mind/type", "\"telepathy\""),
        (CardFault::ClaimsStreaming, "/capabilities/streaming", "true"),
        (CardFault::Claims(RemoteProtocol::V03JsonRpc), "/protocolVersion", "\"0.3.0\""),
        (CardFault::Claims(RemoteProtocol::V03JsonRpc), "/supportedInterfaces", ""),
        (CardFault::Padded(100_000), "/name", "\"Remote agent\""),
    ];
    for (fault, pointer, expected) in wrong {
        let faults = Faults {
            no_streaming: Some(Refusal::UnsupportedOperation),
            card: vec![fault.clone()],
            ..Faults::default()
        };
        let agent = RemoteAgent::builder(RemoteProtocol::V1JsonRpc).with_faults(faults).start();
        let reply = get(&agent, NEW);
        let found = reply.json().pointer(pointer).map(Value::to_string).unwrap_or_default();
        assert_eq!(found, expected, "{fault:?} at {pointer}");
        assert_eq!(reply.body.len() >= 100_000, fault == CardFault::Padded(100_000));
    }
}

#[test]
fn a_card_can_be_absent_or_elsewhere_or_no_card() {
    for (fault, new, old) in
        [(CardFault::Missing, 404, 404), (CardFault::OnlyAtOldPath, 404, 200), (CardFault::NotJson, 200, 404)]
    {
        let agent = RemoteAgent::start(RemoteProtocol::V1JsonRpc);
        agent.change_faults(|faults| faults.card.push(fault.clone()));
        assert_eq!((get(&agent, NEW).status, get(&agent, OLD).status), (new, old), "{fault:?}");
        if fault == CardFault::NotJson {
            assert!(get(&agent, NEW).text().starts_with("<html>"));
        }
    }
}

#[test]
fn a_card_that_is_known_is_not_sent_again() {
    let agent = RemoteAgent::start(RemoteProtocol::V1JsonRpc);
    let etag = get(&agent, NEW).header("etag").unwrap().to_owned();
    let headers = [("If-None-Match", etag.as_str())];
    let again = Http::connect(agent.address()).unwrap().exchange("GET", NEW, &headers, b"").unwrap();
    assert_eq!((again.status, again.body.len()), (304, 0));
}
