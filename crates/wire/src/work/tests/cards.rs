//! Cards, which come from peers.

use super::{Report, Shape, repeat};
use crate::{CardFormat, read_card, write_card};

const CARDS: [Shape; 11] = [
    ("security schemes", |size| {
        let scheme = |place: &str| format!(r#""s{place}":{{"type":"http","scheme":"bearer"}}"#);
        let name = |place: &str| format!(r#"{{"s{place}":[]}}"#);
        format!(r#""securitySchemes":{{{}}},"security":[{}]"#, repeat(size, scheme), repeat(size, name))
    }),
    ("wrong security schemes", |size| {
        let name = "\\u0041long".repeat(20);
        format!(
            r#""securitySchemes":{{{}}}"#,
            repeat(size / 5, |place| format!(r#""{name}{place}":{{"type":"http"}}"#))
        )
    }),
    ("requirements", |size| {
        let name = |place: &str| format!(r#""s{place}":{{"list":["a","b"]}}"#);
        format!(r#""securityRequirements":[{{"schemes":{{{}}}}}]"#, repeat(size, name))
    }),
    ("scopes", |size| {
        let scopes = repeat(size, |place| format!(r#""scope-{place}":"what it allows""#));
        let flow = format!(r#"{{"implicit":{{"scopes":{{{scopes}}}}}}}"#);
        format!(r#""securitySchemes":{{"o":{{"type":"oauth2","flows":{flow}}}}}"#)
    }),
    ("flows", |size| {
        let flows = repeat(size, |place| format!(r#""flow-{place}":{{"tokenUrl":"https://example.com"}}"#));
        format!(r#""securitySchemes":{{"o":{{"type":"oauth2","flows":{{{flows}}}}}}}"#)
    }),
    ("interfaces", |size| {
        let one = |place: &str| format!(r#"{{"url":"https://example.com/{place}","transport":"JSONRPC"}}"#);
        format!(r#""url":"https://example.com","additionalInterfaces":[{}]"#, repeat(size, one))
    }),
    ("interfaces of a long version", |size| {
        let one = |place: &str| format!(r#"{{"url":"https://example.com/{place}","transport":"JSONRPC"}}"#);
        let list = repeat(size, one);
        format!(r#""protocolVersion":"0.{}","additionalInterfaces":[{list}]"#, "3".repeat(size * 50))
    }),
    ("schemes of 0.1", |size| {
        // Each name spells the same scheme in another case; the URL is as long as all names together.
        let spelled = |place: usize| -> String {
            let letters = "openidconnect".chars().enumerate();
            letters.map(|(at, c)| if place >> at & 1 == 1 { c.to_ascii_uppercase() } else { c }).collect()
        };
        let names: Vec<String> = (0..size).map(|place| format!("\"{}\"", spelled(place))).collect();
        let url = "x".repeat(size * 16);
        format!(r#""authentication":{{"schemes":[{}],"credentials":"{url}"}}"#, names.join(","))
    }),
    ("extensions", |size| {
        let one = |place: &str| format!(r#"{{"uri":"https://example.com/{place}","params":{{"a":[1]}}}}"#);
        format!(r#""capabilities":{{"extensions":[{}]}}"#, repeat(size, one))
    }),
    ("skills", |size| {
        let one = |place: &str| format!(r#"{{"id":"{place}","name":"n","tags":["a"],"security":[{{"s{place}":[]}}]}}"#);
        format!(r#""skills":[{}]"#, repeat(size, one))
    }),
    ("signatures", |size| {
        let one = |place: &str| format!(r#"{{"protected":"{place}","signature":"s","header":{{"kid":"k"}}}}"#);
        format!(r#""signatures":[{}]"#, repeat(size, one))
    }),
];

#[test]
fn reading_and_writing_cards_is_linear() {
    let mut report = Report::default();
    for (shape, members) in CARDS {
        let text = |size| format!(r#"{{"name":"n","url":"https://example.com",{}}}"#, members(size));
        let text = |size| text(size).replacen(r#""url":"https://example.com","url""#, r#""url""#, 1);
        report.check(&format!("reading {shape}"), text, |text| drop(read_card(text)));
        if read_card(&text(100)).is_err() {
            continue;
        }
        for format in [
            CardFormat::Hybrid,
            CardFormat::V1,
            CardFormat::V0_3,
            CardFormat::V0_3HttpJson,
            CardFormat::Gateway,
            CardFormat::V0_1,
        ] {
            report.check(
                &format!("writing {shape} as {format:?}"),
                |size| read_card(&text(size)).unwrap(),
                |card| {
                    write_card(card, format, &mut Vec::new());
                },
            );
        }
    }
    report.assert_linear();
}
