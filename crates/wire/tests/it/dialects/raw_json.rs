//! Carried JSON comes out as it went in, byte for byte, whichever dialect carries it.

use sabir_model::{Call, MessageId};
use sabir_wire::{Operation, Payload, Strictness};

use super::{STRICTNESSES, TestDialect};

#[test]
fn raw_json_stays_byte_exact() {
    for text in [
        r#"{"long":12345678901234567,"exp":1e3,"float":5.0}"#,
        r#"{"z":1,"a":2,"z":3}"#,
        r#"{ "space" : [ 1 , 2 ] }"#,
        r#"{"esc":"\u00e9\/\ud83d\ude00","lone":"\ud800"}"#,
        r#"{"huge":1e999,"small":-0.0}"#,
        "{}",
    ] {
        for dialect in TestDialect::ALL {
            let part = match dialect {
                TestDialect::V1 => format!(r#"{{"data":{text},"metadata":{text}}}"#),
                TestDialect::V03 => format!(r#"{{"kind":"data","data":{text},"metadata":{text}}}"#),
                TestDialect::V03Proto => format!(r#"{{"data":{{"data":{text}}},"metadata":{text}}}"#),
                TestDialect::V01 => format!(r#"{{"type":"data","data":{text},"metadata":{text}}}"#),
            };
            let (role, parts) = match dialect {
                TestDialect::V1 => ("ROLE_USER", "parts"),
                TestDialect::V03 | TestDialect::V01 => ("user", "parts"),
                TestDialect::V03Proto => ("ROLE_USER", "content"),
            };
            let message = format!(r#"{{"messageId":"m","role":"{role}","{parts}":[{part}],"metadata":{text}}}"#);
            let params = format!(r#"{{"id":"t","message":{message},"metadata":{text}}}"#);
            for strictness in STRICTNESSES {
                let Ok(Call::Send(send)) = dialect.decode(Operation::Send, &params, strictness) else {
                    panic!("{dialect:?} {params}");
                };
                assert_eq!(send.metadata.as_ref().unwrap().as_str(), text);
                let message = send.message.or_with_id(|| MessageId::parse("m").unwrap());
                for writer in TestDialect::ALL {
                    let written = writer.encode(Payload::Message(&message));
                    assert_eq!(written.matches(text).count(), 3, "{writer:?} {written}");
                }
            }
        }
    }
}

#[test]
fn data_that_is_no_object_is_wrapped_in_0_x() {
    for data in ["null", "5", "12345678901234567", r#""text""#, "[1, 2]", "1e3"] {
        for metadata in ["", r#","metadata":{ "b" : 1 , "a":2 }"#] {
            let part = format!(r#"{{"data":{data}{metadata}}}"#);
            let params = format!(r#"{{"message":{{"messageId":"m","role":"ROLE_USER","parts":[{part}]}}}}"#);
            let Ok(Call::Send(send)) = TestDialect::V1.decode(Operation::Send, &params, Strictness::Strict) else {
                panic!("{params}");
            };
            let message = send.message.or_with_id(|| unreachable!("the message has an id"));
            for dialect in [TestDialect::V03, TestDialect::V03Proto, TestDialect::V01] {
                let written = dialect.encode(Payload::Message(&message));
                assert!(written.contains(&format!(r#"{{"value":{data}}}"#)), "{written}");
                assert!(written.contains(r#"{"data_part_compat":true"#), "{written}");
                if dialect == TestDialect::V01 {
                    // What 0.1 has written may come back in a request.
                    let params = format!(r#"{{"id":"t","message":{written}}}"#);
                    for strictness in STRICTNESSES {
                        let Ok(Call::Send(back)) = dialect.decode(Operation::Send, &params, strictness) else {
                            panic!("{params}");
                        };
                        assert_eq!(back.message.parts, message.parts, "{params}");
                    }
                    continue;
                }
                let response = dialect.decode_response(Operation::Send, &written).unwrap();
                assert_eq!(response, sabir_wire::PeerResponse::Message(Box::new(message.clone())), "{written}");
            }
        }
    }
}
