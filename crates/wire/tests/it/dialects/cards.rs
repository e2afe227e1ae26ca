//! Cards: those of each version are read and written again, and the hybrid card holds them all.

use sabir_model::Card;
use sabir_wire::{CardFormat, read_card, write_card};
use serde_json::{Value, json};

use super::golden;

fn written(card: &Card, format: CardFormat) -> Value {
    let mut out = Vec::new();
    write_card(card, format, &mut out);
    serde_json::from_slice(&out).unwrap()
}

fn read(card: &Value) -> Card {
    read_card(&card.to_string()).unwrap()
}

#[test]
fn golden_cards_come_back_as_they_were() {
    for (path, format) in [
        ("v1.0/agent_card.json", CardFormat::V1),
        ("v1.0/signing/agent_card.signed.json", CardFormat::V1),
        ("v0.3/agent_card.json", CardFormat::V0_3),
        ("v0.1/agent_card.json", CardFormat::V0_1),
        ("hybrid/agent_card.json", CardFormat::Hybrid),
    ] {
        let golden = golden::card(path);
        assert_eq!(written(&read(&golden), format), golden, "{path}");
    }
}

/// Some SDKs read the card of HTTP+JSON as JSON Schema has it, others as ProtoJSON.
#[test]
fn the_card_of_0_3_over_http_json_spells_security_schemes_both_ways() {
    let golden = golden::card("v0.3/agent_card.json");
    let card = read(&golden);
    let mut both = written(&card, CardFormat::V0_3HttpJson);
    let as_proto = written(&card, CardFormat::V1);
    let schemes = as_proto["securitySchemes"].as_object().unwrap();
    assert!(schemes.len() > 1, "{as_proto}");
    for (name, scheme) in schemes {
        for (member, details) in scheme.as_object().unwrap() {
            assert_eq!(&both["securitySchemes"][name][member], details, "{name}");
        }
    }
    golden::without_proto_schemes(&mut both);
    assert_eq!(both, golden);
}

/// 0.2 has the card of 0.3, but for how it tells version and transports.
#[test]
fn golden_cards_of_0_2_are_read() {
    for path in ["v0.2/agent_card_0.2.0.json", "v0.2/agent_card_0.2.6.json"] {
        let mut golden = golden::card(path);
        let card = read(&golden);
        assert_eq!((card.interfaces[0].binding.as_str(), card.interfaces[0].version.as_str()), ("JSONRPC", "0.2"));
        let mut written = written(&card, CardFormat::V0_3);
        for member in ["protocolVersion", "preferredTransport", "additionalInterfaces"] {
            golden.as_object_mut().unwrap().remove(member);
            written.as_object_mut().unwrap().remove(member);
        }
        assert_eq!(written, golden, "{path}");
    }
}

#[test]
fn the_hybrid_card_has_the_members_of_every_version() {
    let card = read(&golden::card("hybrid/agent_card.json"));
    let whole = written(&card, CardFormat::Hybrid);
    for format in [CardFormat::V1, CardFormat::V0_3, CardFormat::V0_1] {
        for (name, value) in written(&card, format).as_object().unwrap() {
            // These hold members of several versions.
            if !["capabilities", "securitySchemes", "skills"].contains(&name.as_str()) {
                assert_eq!(&whole[name], value, "{name}");
            }
        }
    }
}

#[test]
fn security_is_written_for_0_1() {
    let schemes = json!({
        "basic": {"type": "http", "scheme": "Basic"},
        "key": {"type": "apiKey", "in": "header", "name": "X"},
        "oauth": {"type": "oauth2", "flows": {}},
        "known": {"type": "oauth2", "flows": {}, "oauth2MetadataUrl": "https://id.example/.well-known/x"},
        "open": {"type": "openIdConnect", "openIdConnectUrl": "https://id.example/.well-known/y"},
    });
    for (security, expected) in [
        (json!([]), Value::Null),
        (json!([{"key": []}, {"oauth": []}, {"key": []}]), json!({"schemes": ["ApiKey", "oauth2"]})),
        (json!([{"known": []}]), json!({"schemes": ["oauth2"], "credentials": "https://id.example/.well-known/x"})),
        (
            json!([{"key": []}, {"open": []}, {"known": []}]),
            json!({"schemes": ["ApiKey", "oauth2"], "credentials": "https://id.example/.well-known/y"}),
        ),
        (json!([{"known": []}, {"basic": []}]), json!({"schemes": ["Basic"]})),
        (json!([{"key": [], "basic": []}]), json!({"schemes": ["Basic"]})),
    ] {
        let card = json!({"name": "x", "url": "http://x", "securitySchemes": schemes, "security": security});
        for format in [CardFormat::Hybrid, CardFormat::V0_1] {
            assert_eq!(written(&read(&card), format)["authentication"], expected, "{security}");
        }
    }
}

#[test]
fn security_of_0_1_is_read() {
    let url = "https://id.example/.well-known/x";
    for (authentication, expected) in [
        (json!({"schemes": ["Basic", "bearer", "Basic"]}), json!({"schemes": ["Basic", "bearer"]})),
        (json!({"schemes": ["OAuth2"], "credentials": url}), json!({"schemes": ["oauth2"], "credentials": url})),
        (json!({"schemes": ["oauth2"]}), json!({"schemes": ["oauth2"]})),
        (json!({"schemes": ["openIdConnect"], "credentials": url}), json!({"schemes": ["oauth2"], "credentials": url})),
        // It does not say which header, where to ask, or nothing that anybody knows.
        (json!({"schemes": ["ApiKey", "openIdConnect", "telepathy"]}), Value::Null),
        (json!([{"scheme": "bearer"}]), Value::Null),
        (json!("bearer"), Value::Null),
        (json!(null), Value::Null),
    ] {
        let card = read(&json!({"name": "x", "url": "http://x", "authentication": authentication}));
        assert_eq!(written(&card, CardFormat::V0_1)["authentication"], expected, "{authentication}");
        assert_eq!(card.security.len(), card.security_schemes.len());
    }
    // What later versions say is more exact.
    let card = json!({"name": "x", "url": "u", "authentication": {"schemes": ["Basic"]},
        "securitySchemes": {"b": {"type": "http", "scheme": "Bearer"}}, "security": [{"b": []}]});
    assert_eq!(written(&read(&card), CardFormat::V0_1)["authentication"], json!({"schemes": ["Bearer"]}));
}

#[test]
fn a_card_of_0_1_has_the_address_of_json_rpc() {
    let interface = |url: &str, binding: &str, version: &str| json!({"url": url, "protocolBinding": binding, "protocolVersion": version});
    for (interfaces, expected) in [
        (
            json!([
                interface("a", "JSONRPC", "1.0"),
                interface("b", "HTTP+JSON", "0.3"),
                interface("c", "JSONRPC", "0.3")
            ]),
            "c",
        ),
        (json!([interface("a", "HTTP+JSON", "1.0"), interface("b", "JSONRPC", "1.0")]), "b"),
        (json!([interface("a", "HTTP+JSON", "1.0")]), "a"),
    ] {
        let card = written(&read(&json!({"name": "x", "supportedInterfaces": interfaces})), CardFormat::V0_1);
        assert_eq!(card["url"], expected, "{card}");
        assert!(card.get("supportedInterfaces").is_none() && card.get("additionalInterfaces").is_none());
    }
}

#[test]
fn one_flow_is_left_in_1_0_and_no_device_flow_in_0_3() {
    let flow = json!({"tokenUrl": "https://t", "scopes": {}});
    let flows = json!({"password": flow, "deviceCode": flow, "clientCredentials": flow});
    let card = json!({"name": "x", "url": "u", "securitySchemes": {"o": {"type": "oauth2", "flows": flows}}});
    let scheme = |format| written(&read(&card), format)["securitySchemes"]["o"].take();
    let whole = scheme(CardFormat::Hybrid);
    assert_eq!(whole["oauth2SecurityScheme"]["flows"], json!({"clientCredentials": flow}));
    // A client of 1.0 may read this one.
    assert_eq!(whole["flows"], json!({"clientCredentials": flow}));
    assert_eq!(scheme(CardFormat::V0_3)["flows"], json!({"password": flow, "clientCredentials": flow}));
}

/// A server on the js SDK writes its objects as they lie in memory, empty members and all.
#[test]
fn cards_of_js_servers_are_read() {
    let plain = json!({
        "name": "x", "description": "", "version": "", "capabilities": {},
        "supportedInterfaces": [{"url": "http://x", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}],
        "securitySchemes": {
            "bearer": {"httpAuthSecurityScheme": {"scheme": "Bearer"}},
            "oauth": {"oauth2SecurityScheme": {"flows": {"clientCredentials": {"tokenUrl": "https://t", "scopes": {}}}}},
        },
        "defaultInputModes": [], "defaultOutputModes": [], "skills": [],
    });
    let mut from_js = plain.clone();
    from_js["documentationUrl"] = json!("");
    from_js["securityRequirements"] = json!([]);
    from_js["supportedInterfaces"][0]["tenant"] = json!("");
    from_js["capabilities"]["extensions"] = json!([]);
    from_js["securitySchemes"] = json!({
        "bearer": {"scheme": {
            "$case": "httpAuthSecurityScheme",
            "value": {"description": "", "scheme": "Bearer", "bearerFormat": ""},
        }},
        "oauth": {"scheme": {"$case": "oauth2SecurityScheme", "value": {"description": "", "oauth2MetadataUrl": "", "flows": {
            "flow": {"$case": "clientCredentials", "value": {"tokenUrl": "https://t", "refreshUrl": "", "scopes": {}}},
        }}}},
    });
    assert_eq!(written(&read(&from_js), CardFormat::V1), plain);
}

#[test]
fn cards_that_cannot_be_used_are_refused() {
    for (card, expected) in [
        (json!({}), "invalid parameters: url is required; name is required"),
        (json!({"name": "x", "url": 5}), "invalid parameters: url expected a string, found a number"),
        (
            json!({"name": "x", "supportedInterfaces": [{"url": "u"}]}),
            "invalid parameters: supportedInterfaces[0].protocolBinding is required",
        ),
        (
            json!({"name": "x", "url": "u", "securitySchemes": {"k": {"type": "apiKey", "in": "header"}}}),
            "invalid parameters: securitySchemes.k.name is required",
        ),
    ] {
        assert_eq!(read_card(&card.to_string()).unwrap_err().to_string(), expected, "{card}");
    }
    // A scheme of a kind that nobody knows does not spoil the rest.
    let card = json!({"name": "x", "url": "u", "securitySchemes": {"new": {"type": "telepathy"}}});
    assert!(read(&card).security_schemes.is_empty());
}
