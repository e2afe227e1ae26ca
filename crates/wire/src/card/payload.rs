//! The bytes that a signature of a card is over: the members that it covers, as canonical JSON.
//!
//! 1.0 names RFC 8785. 0.3 names no canonical form, so that of the only SDK that verifies such cards is used: the same with
//! all characters beyond ASCII escaped.

use sabir_model::Error;

use super::CardFormat;
use super::signed_members::{CardMembers, covered};
use crate::jcs::{Charset, Tree};

/// What one signature is over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SigningPayload {
    pub covers: CardMembers,
    pub text: String,
}

/// What is signed of a card that was written in this format: once per version whose clients read it. 0.1 knows no
/// signatures.
pub fn payloads_to_sign(card: &[u8], format: CardFormat) -> Result<Vec<SigningPayload>, Error> {
    let card = Tree::read(card)?;
    let mut payloads = Vec::new();
    if format.has_v1() {
        payloads.push(payload(&card, CardMembers::V1_0, Charset::Utf8));
    }
    if format.has_v0_3() {
        payloads.push(payload(&card, CardMembers::V0_3, Charset::Ascii));
    }
    Ok(payloads)
}

/// What a signature of a received card may be over; the widest known first.
pub fn payloads_to_verify(card: &[u8]) -> Result<Vec<SigningPayload>, Error> {
    let card = Tree::read(card)?;
    let has = |name: &str| matches!(&card, Tree::Object(members) if members.iter().any(|(known, _)| known == name));
    let mut payloads = Vec::new();
    if has("supportedInterfaces") || has("supported_interfaces") {
        payloads.push(payload(&card, CardMembers::V1_0, Charset::Utf8));
    }
    if has("url") {
        for charset in [Charset::Utf8, Charset::Ascii] {
            let payload = payload(&card, CardMembers::V0_3, charset);
            if !payloads.contains(&payload) {
                payloads.push(payload);
            }
        }
    }
    Ok(payloads)
}

fn payload(card: &Tree<'_>, covers: CardMembers, charset: Charset) -> SigningPayload {
    SigningPayload { covers, text: covered(card, covers).canonical(charset) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A vector that the official SDK for Python has made.
    const SIGNED: &[u8] = include_bytes!("../../tests/signing/agent_card.signed.json");
    const CANONICAL: &str = include_str!("../../tests/signing/canonical_payload.txt");

    fn v1(card: &str) -> String {
        payloads_to_sign(card.as_bytes(), CardFormat::V1).unwrap().remove(0).text
    }

    fn v0_3(card: &str) -> String {
        payloads_to_sign(card.as_bytes(), CardFormat::V0_3).unwrap().remove(0).text
    }

    #[test]
    fn the_payload_of_the_golden_card() {
        let payloads = payloads_to_verify(SIGNED).unwrap();
        assert_eq!(payloads, [SigningPayload { covers: CardMembers::V1_0, text: CANONICAL.to_owned() }]);
    }

    #[test]
    fn what_is_empty_a_default_or_unknown_is_not_covered() {
        for (card, expected) in [
            ("{}", "{}"),
            (r#"{"name":"","skills":[],"provider":{"url":""},"signatures":[{}]}"#, "{}"),
            (r#"{"name":null,"version":"1","x":1,"url":"u"}"#, r#"{"version":"1"}"#),
            (r#"{"icon_url":"i","name":"n","iconurl":"x"}"#, r#"{"iconUrl":"i","name":"n"}"#),
            // Protobuf tells a flag that is false from one that is not set only where it is marked `optional`.
            (
                r#"{"capabilities":{"streaming":false,"extensions":[{"uri":"u","required":false}]}}"#,
                r#"{"capabilities":{"extensions":[{"uri":"u"}],"streaming":false}}"#,
            ),
            (
                r#"{"capabilities":{"extensions":[{"params":{"b":[0,false,null,"",{}],"a":{"c":[[]]},"n":1.0}}]}}"#,
                r#"{"capabilities":{"extensions":[{"params":{"b":[0,false],"n":1}}]}}"#,
            ),
            // A scheme that says nothing and a requirement without scopes vanish, as in the SDKs.
            (
                r#"{"securitySchemes":{"m":{"mtlsSecurityScheme":{},"type":"mutualTLS"}},
                    "securityRequirements":[{"schemes":{"m":{"list":[]}}},{"schemes":{"o":{"list":["a"]}}}]}"#,
                r#"{"securityRequirements":[{"schemes":{"o":{"list":["a"]}}}]}"#,
            ),
            (r#"{"skills":[{"id":"a","tags":["","x"],"z":1},{}]}"#, r#"{"skills":[{"id":"a","tags":["x"]}]}"#),
        ] {
            assert_eq!(v1(card), expected, "{card}");
        }
    }

    #[test]
    fn cards_of_0_3_as_its_sdk_writes_them() {
        // Made with `canonicalize_agent_card` of a2a-sdk 0.3.26.
        let card = r#"{"protocolVersion":"0.3.0","name":"Wé","description":"","url":"http://x/",
            "preferredTransport":"JSONRPC","additionalInterfaces":[{"url":"u","transport":"HTTP+JSON","protocolBinding":"x"}],
            "version":"1","capabilities":{"streaming":false,"extensions":[{"uri":"u","required":false,
            "params":{"a":null,"b":[1,0],"c":{}}}],"agentCount":3,"extendedAgentCard":false},
            "supportsAuthenticatedExtendedCard":false,"securitySchemes":{
            "k":{"type":"apiKey","in":"header","name":"X","apiKeySecurityScheme":{"location":"header"}},
            "b":{"type":"http","scheme":"Bearer","bearerFormat":null},
            "o":{"type":"oauth2","flows":{"authorizationCode":{"authorizationUrl":"a","tokenUrl":"t","scopes":{"x":"y"},
            "pkceRequired":true},"clientCredentials":{"tokenUrl":"t","scopes":{}}},"oauth2MetadataUrl":"m"},
            "i":{"type":"openIdConnect","openIdConnectUrl":"z"},"m":{"type":"mutualTLS"},
            "m2":{"type":"mutualTLS","description":"d"}},"security":[{"b":[]},{"o":["x"]}],
            "defaultInputModes":["text/plain"],"defaultOutputModes":[],"skills":[{"id":"s","name":"n","description":"d",
            "tags":[],"security":[{"b":["q"]}]}],"signatures":[{"protected":"a","signature":"b"}]}"#;
        let expected = r#"{"additionalInterfaces":[{"transport":"HTTP+JSON","url":"u"}],"#.to_owned()
            + r#""capabilities":{"extensions":[{"params":{"b":[1,0]},"required":false,"uri":"u"}],"streaming":false},"#
            + r#""defaultInputModes":["text/plain"],"name":"W\u00e9","security":[{"o":["x"]}],"#
            + r#""securitySchemes":{"b":{"scheme":"Bearer"},"i":{"openIdConnectUrl":"z"},"#
            + r#""k":{"in":"header","name":"X"},"m2":{"description":"d"},"#
            + r#""o":{"flows":{"authorizationCode":{"authorizationUrl":"a","scopes":{"x":"y"},"tokenUrl":"t"},"#
            + r#""clientCredentials":{"tokenUrl":"t"}},"oauth2MetadataUrl":"m"}},"#
            + r#""skills":[{"description":"d","id":"s","name":"n","security":[{"b":["q"]}]}],"#
            + r#""supportsAuthenticatedExtendedCard":false,"url":"http://x/","version":"1"}"#;
        assert_eq!(v0_3(card), expected);
        let verified: Vec<String> =
            payloads_to_verify(card.as_bytes()).unwrap().into_iter().map(|payload| payload.text).collect();
        assert_eq!(verified, [expected.replace("\\u00e9", "é"), expected]);
    }

    #[test]
    fn a_card_for_several_versions_is_signed_for_each() {
        for (format, expected) in [
            (CardFormat::V1, &[CardMembers::V1_0][..]),
            (CardFormat::Gateway, &[CardMembers::V1_0]),
            (CardFormat::V0_3, &[CardMembers::V0_3]),
            (CardFormat::Hybrid, &[CardMembers::V1_0, CardMembers::V0_3]),
            (CardFormat::V0_1, &[]),
        ] {
            let payloads = payloads_to_sign(SIGNED, format).unwrap();
            let covers: Vec<_> = payloads.iter().map(|payload| payload.covers).collect();
            assert_eq!(covers, expected, "{format:?}");
        }
        assert!(payloads_to_sign(br#"{"name":"a","name":"b"}"#, CardFormat::V1).is_err());
    }
}
