//! Carried JSON comes out as it went in, byte for byte, whichever dialect carries it.

use sabir_model::{Call, MessageId};
use sabir_wire::{Operation, Reading, Shown};

use super::{READINGS, Tongue};

#[test]
fn carried_json_stays_byte_exact() {
    for text in [
        r#"{"long":12345678901234567,"exp":1e3,"float":5.0}"#,
        r#"{"z":1,"a":2,"z":3}"#,
        r#"{ "space" : [ 1 , 2 ] }"#,
        r#"{"esc":"\u00e9\/\ud83d\ude00","lone":"\ud800"}"#,
        r#"{"huge":1e999,"small":-0.0}"#,
        "{}",
    ] {
        for tongue in Tongue::ALL {
            let part = match tongue {
                Tongue::V1 => format!(r#"{{"data":{text},"metadata":{text}}}"#),
                Tongue::V03 => format!(r#"{{"kind":"data","data":{text},"metadata":{text}}}"#),
                Tongue::V03Proto => format!(r#"{{"data":{{"data":{text}}},"metadata":{text}}}"#),
                Tongue::V01 => format!(r#"{{"type":"data","data":{text},"metadata":{text}}}"#),
            };
            let (role, parts) = match tongue {
                Tongue::V1 => ("ROLE_USER", "parts"),
                Tongue::V03 | Tongue::V01 => ("user", "parts"),
                Tongue::V03Proto => ("ROLE_USER", "content"),
            };
            let message = format!(r#"{{"messageId":"m","role":"{role}","{parts}":[{part}],"metadata":{text}}}"#);
            let params = format!(r#"{{"id":"t","message":{message},"metadata":{text}}}"#);
            for reading in READINGS {
                let Ok(Call::Send(send)) = tongue.decode(Operation::Send, &params, reading) else {
                    panic!("{tongue:?} {params}");
                };
                assert_eq!(send.metadata.as_ref().unwrap().as_str(), text);
                let message = send.message.or_with_id(|| MessageId::parse("m").unwrap());
                for writer in Tongue::ALL {
                    let written = writer.encode(Shown::Reply(&message));
                    assert_eq!(written.matches(text).count(), 3, "{writer:?} {written}");
                }
            }
        }
    }
}

#[test]
fn what_is_no_object_travels_through_0_x_in_one() {
    for data in ["null", "5", "12345678901234567", r#""text""#, "[1, 2]", "1e3"] {
        for metadata in ["", r#","metadata":{ "b" : 1 , "a":2 }"#] {
            let part = format!(r#"{{"data":{data}{metadata}}}"#);
            let params = format!(r#"{{"message":{{"messageId":"m","role":"ROLE_USER","parts":[{part}]}}}}"#);
            let Ok(Call::Send(send)) = Tongue::V1.decode(Operation::Send, &params, Reading::Strict) else {
                panic!("{params}");
            };
            let message = send.message.or_with_id(|| unreachable!("the message has an id"));
            for tongue in [Tongue::V03, Tongue::V03Proto, Tongue::V01] {
                let written = tongue.encode(Shown::Reply(&message));
                assert!(written.contains(&format!(r#"{{"value":{data}}}"#)), "{written}");
                assert!(written.contains(r#"{"data_part_compat":true"#), "{written}");
                if tongue == Tongue::V01 {
                    // What 0.1 has written may come back in a request.
                    let params = format!(r#"{{"id":"t","message":{written}}}"#);
                    for reading in READINGS {
                        let Ok(Call::Send(back)) = tongue.decode(Operation::Send, &params, reading) else {
                            panic!("{params}");
                        };
                        assert_eq!(back.message.parts, message.parts, "{params}");
                    }
                    continue;
                }
                let heard = tongue.hear(Operation::Send, &written).unwrap();
                assert_eq!(heard, sabir_wire::Heard::Reply(Box::new(message.clone())), "{written}");
            }
        }
    }
}
