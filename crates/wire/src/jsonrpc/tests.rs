use sabir_model::{Birth, Call, LastEventId, OnFinished, Send};
use serde_json::{Value, json};

use super::*;
use crate::fixture::{self, ThreeAgents, golden, golden_text};
use crate::{Surface, TerminalMessage, V1Protobuf, V03Protobuf, locate, v1::V1, v03::V03, v03::V03Proto};

const MESSAGE: &str = r#"{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"x"}]}}"#;

fn mount(path: MountPath) -> Mount {
    Mount { agent: None, path }
}

fn body(method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#)
}

/// The answer to a request that never reaches the engine.
fn refusal(mount: &Mount, head: &RequestHead<'_>, body: &str) -> Value {
    let decoded = mount.decode(head, body.as_bytes(), Compat::default(), &ThreeAgents);
    fixture::json(&decoded.responder.error_reply(&decoded.call.expect_err("refused")).body)
}

#[test]
fn malformed_envelopes_are_refused() {
    for (text, id, code, detail) in [
        (r#"{"jsonrpc":"2.0","id":1,"method":"x"}"#, json!(1), -32601, ""),
        (r#"{"jsonrpc":"2.0","id":null,"method":"x"}"#, json!(null), -32601, ""),
        (r#"{"jsonrpc":"2.0","id":"","method":"x"}"#, json!(""), -32601, ""),
        (r#" {"method":"x" , "extra":{"id":9},"id":-7,"jsonrpc":"2.0"} "#, json!(-7), -32601, ""),
        (r#"{"jsonrpc":"2.0","id":"a\nb","method":"message\/nope"}"#, json!("a\nb"), -32601, ""),
        (
            r#"{"id":7,"message":{}}"#,
            json!(7),
            -32600,
            "this is no JSON-RPC request: jsonrpc, id and method are needed here; plain messages go to /message:send \
             (1.0), /v1/message:send (0.3) or /v1/a2a/agents/{id}/message:send",
        ),
        (r#"{"jsonrpc":"2.0","id":1.5,"method":"x"}"#, json!(1.5), -32601, ""),
        (r#"{"jsonrpc":"2.0","id":{},"method":"x"}"#, json!(null), -32600, "id must be a string, a number or null"),
        (r#"{"jsonrpc":"2.0","id":[1],"method":"x"}"#, json!(null), -32600, "id must be a string, a number or null"),
        (r#"{"jsonrpc":"2.0","id":true,"method":"x"}"#, json!(null), -32600, "id must be a string, a number or null"),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"x","\ud800":0}"#,
            json!(null),
            -32600,
            "unexpected end of hex escape at line 1 column 45",
        ),
        (r#"{"jsonrpc":"2.0","id":1,"method":"\udc00"}"#, json!(1), -32600, "method must be a string"),
        (r#"{"jsonrpc":"1.0","id":1,"method":"x"}"#, json!(1), -32600, r#"jsonrpc must be "2.0""#),
        (r#"{"id":"a","method":"x"}"#, json!("a"), -32600, r#"jsonrpc must be "2.0""#),
        (r#"{"jsonrpc":2.0,"id":"a","method":"x"}"#, json!("a"), -32600, r#"jsonrpc must be "2.0""#),
        (r#"{"jsonrpc":"2.0","id":"a"}"#, json!("a"), -32600, "method must be a string"),
        (r#"{"jsonrpc":"2.0","id":"a","method":null}"#, json!("a"), -32600, "method must be a string"),
        (r#"{"jsonrpc":"2.0","id":"a","method":["x"]}"#, json!("a"), -32600, "method must be a string"),
        (
            r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"x"}"#,
            json!(null),
            -32600,
            "duplicate field `id` at line 1 column 28",
        ),
        (r#"[{"jsonrpc":"2.0","id":1,"method":"x"}]"#, json!(null), -32600, "batches are not supported"),
        (r#"["2.0",1,"GetTask",{"id":"t"}]"#, json!(null), -32600, "batches are not supported"),
        ("[]", json!(null), -32600, "batches are not supported"),
        ("5", json!(null), -32600, "a request is a JSON object"),
        ("null", json!(null), -32600, "a request is a JSON object"),
        ("", json!(null), -32700, ""),
        ("{not json", json!(null), -32700, ""),
        ("[1,", json!(null), -32700, ""),
        (r#"{"id":1,"id":1,"#, json!(null), -32700, ""),
        (r#"{"jsonrpc":"2.0","id":01,"method":"x"}"#, json!(null), -32700, ""),
        (r#"{"jsonrpc":"2.0","id":1.,"method":"x"}"#, json!(null), -32700, ""),
        (r#"{"jsonrpc":"2.0","id":1,"method":"x"} x"#, json!(null), -32700, ""),
    ] {
        let answer = refusal(&mount(MountPath::Root), &RequestHead::default(), text);
        assert_eq!(answer["jsonrpc"], "2.0", "{text}");
        assert_eq!(answer["id"], id, "{text}");
        assert_eq!(answer["error"]["code"], code, "{text}");
        assert_eq!(answer["error"]["data"]["detail"].as_str().unwrap_or_default(), detail, "{text}");
    }
}

#[test]
fn an_id_comes_back_byte_for_byte() {
    for id in [
        "1",
        "-0",
        "1.0",
        "1e3",
        "-1.50E+02",
        "1e999",
        "12345678901234567890123",
        r#""""#,
        r#""a\u00e9\/""#,
        r#""\ud800""#,
        "\"\u{2028}\"",
        "null",
    ] {
        let text = format!(r#"{{"jsonrpc":"2.0","id": {id} ,"method":"x"}}"#);
        let decoded =
            mount(MountPath::Root).decode(&RequestHead::default(), text.as_bytes(), Compat::default(), &ThreeAgents);
        let body = decoded.responder.into_owned().error_reply(&decoded.call.unwrap_err()).body;
        let body = String::from_utf8(body).unwrap();
        assert!(body.starts_with(&format!(r#"{{"jsonrpc":"2.0","id":{id},"error":"#)), "{body}");
    }
}

#[test]
fn an_id_has_at_most_1024_bytes_as_it_is_written() {
    for (id, is_taken) in [
        (format!("\"{}\"", "x".repeat(1022)), true),
        (format!("\"{}\"", "x".repeat(1023)), false),
        (format!("\"{}\"", r#"\u0041"#.repeat(170)), true),
        (format!("\"{}\"", r#"\u0041"#.repeat(171)), false),
        (format!("0.{}", "1".repeat(1022)), true),
        (format!("0.{}", "1".repeat(1023)), false),
    ] {
        for more in [r#""jsonrpc":"2.0","method":"x""#, r#""message":{}"#] {
            let answer = refusal(&mount(MountPath::Root), &RequestHead::default(), &format!(r#"{{"id":{id},{more}}}"#));
            assert_eq!(answer["id"].is_null(), !is_taken, "{more} {id}");
            let is_request = more.contains("method");
            assert_eq!(answer["error"]["code"], if is_taken && is_request { -32601 } else { -32600 }, "{more} {id}");
            if is_request && !is_taken {
                assert_eq!(answer["error"]["data"]["detail"], "id must not be longer than 1024 bytes");
            }
        }
    }
}

#[test]
fn a_missing_id_is_reported_after_all_other_errors() {
    for (path, version, rest, code, detail) in [
        (MountPath::Root, "", r#""method":"x""#, -32601, ""),
        (MountPath::Root, "", r#""method":"tasks/get""#, -32602, "id is required"),
        (MountPath::Root, "", r#""method":"tasks/get","params":[]"#, -32602, "params must be an object"),
        (MountPath::Root, "", r#""method":"message/send","params":{}"#, -32602, "message is required"),
        (MountPath::Root, "", r#""method":"message/stream","params":{}"#, -32602, "message is required"),
        (
            MountPath::Root,
            "",
            r#""method":"GetTask","params":{"id":"t","tenant":"ghost"}"#,
            -32602,
            "there is no agent ghost; known: alpha, b 2, harbour-north",
        ),
        (MountPath::Versioned(ProtocolVersion::V0_3), "", r#""method":"GetTask","params":{"id":"t"}"#, -32601, ""),
        (MountPath::Root, "", r#""method":"tasks/get","params":{"id":"t"}"#, -32600, MISSING),
        (MountPath::Root, "", r#""method":"tasks/resubscribe","params":{"id":"t"}"#, -32600, MISSING),
        (
            MountPath::Root,
            "",
            r#""method":"tasks/send","params":{"id":"t","message":{"parts":[{"text":"x"}]}}"#,
            -32600,
            MISSING,
        ),
        (
            MountPath::Versioned(ProtocolVersion::V1_0),
            "1.0",
            r#""method":"GetTask","params":{"id":"t"}"#,
            -32600,
            MISSING,
        ),
        (MountPath::Root, "", "\"method\":5", -32600, "method must be a string"),
    ] {
        let head = RequestHead { version: Some(version), ..RequestHead::default() };
        let text = format!(r#"{{"jsonrpc":"2.0",{rest}}}"#);
        let decoded = mount(path).decode(&head, text.as_bytes(), Compat::default(), &ThreeAgents);
        let reply = decoded.responder.error_reply(&decoded.call.expect_err("refused"));
        let body = String::from_utf8(reply.body).unwrap();
        // In 0.x a method that streams is answered with a frame.
        let answer = fixture::json(body.trim_start_matches("event: error\ndata: ").as_bytes());
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(null), &json!(code)), "{text}");
        let data = &answer["error"]["data"];
        let actual = data["detail"].as_str().or(data[0]["metadata"]["detail"].as_str());
        let actual = actual.or(data[0]["fieldViolations"][0]["description"].as_str());
        assert_eq!(actual.unwrap_or_default(), detail, "{text}");
    }
}

const MISSING: &str = "id is missing; notifications are not supported";

#[test]
fn params_are_an_object_or_nothing() {
    for (params, expected) in
        [("[]", "params must be an object"), ("5", "params must be an object"), (r#""x""#, "params must be an object")]
    {
        let answer = refusal(&mount(MountPath::Root), &RequestHead::default(), &body("tasks/get", params));
        assert_eq!(answer["error"]["code"], -32602, "{params}");
        assert_eq!(answer["error"]["data"]["detail"], expected, "{params}");
    }
    for params in ["null", "{}"] {
        let text = body("agent/getAuthenticatedExtendedCard", params);
        let decoded =
            mount(MountPath::Root).decode(&RequestHead::default(), text.as_bytes(), Compat::default(), &ThreeAgents);
        assert_eq!(decoded.call.unwrap(), Call::ExtendedCard { agent: None }, "{params}");
    }
}

#[test]
fn the_dialect_of_every_golden_request_is_detected() {
    for case in golden("detect/cases.json").as_array().unwrap() {
        let name = case["name"].as_str().unwrap();
        let request = &case["request"];
        let head = fixture::head(request);
        let body = request["body"].to_string();
        let (error, mut responder) = match locate(&head, &ThreeAgents) {
            Surface::Card { .. } => {
                assert_eq!(case["expect"], "card/hybrid", "{name}");
                continue;
            }
            Surface::Call(endpoint) => {
                let decoded = endpoint.decode(&head, body.as_bytes(), Compat::default(), &ThreeAgents);
                (decoded.call.err(), decoded.responder)
            }
            surface @ Surface::Refused(_) => {
                let responder = surface.responder(&head);
                let Surface::Refused(refused) = surface else { unreachable!() };
                (Some(refused.error), responder)
            }
            Surface::Catalogue
            | Surface::AgentList
            | Surface::GatewayCard(_)
            | Surface::GrpcService(_)
            | Surface::Health
            | Surface::Ready => {
                panic!("{name}")
            }
        };
        match request["task_dialect"].as_str() {
            Some("v0.1") => responder = responder.for_birth(V01.birth()),
            Some("v1.0") => responder = responder.for_birth(V1.birth()),
            Some(other) => panic!("{name}: {other}"),
            None => {}
        }
        let reply = error.as_ref().map(|error| responder.error_reply(error));
        let code = reply
            .as_ref()
            .filter(|reply| reply.grpc_status.is_none())
            .map(|reply| fixture::json(&reply.body)["error"]["code"].clone());
        let expected = match case["expect"].as_str().unwrap() {
            "error 404" => {
                assert_eq!(reply.map(|reply| reply.status), Some(404), "{name}");
                continue;
            }
            expect if expect.starts_with("error ") => {
                assert_eq!(code.map(|code| code.to_string()).as_deref(), expect.strip_prefix("error "), "{name}");
                continue;
            }
            "v1.0/jsonrpc" | "v1.0/rest" => V1.slot(),
            // 0.2 has the wire of 0.3.
            "v0.3/jsonrpc" | "v0.2/jsonrpc" | "v0.2/rest" => V03.slot(),
            "v0.1/jsonrpc" => V01.slot(),
            "v0.3/rest" => V03Proto.slot(),
            "v1.0/grpc" => V1Protobuf.slot(),
            "v0.3/grpc" => V03Protobuf.slot(),
            other => panic!("{name}: {other}"),
        };
        assert_eq!(responder.slot(), expected, "{name}");
        let refused = matches!(error, Some(Error::Version(_) | Error::MethodNotFound(_) | Error::PathNotFound(_)));
        assert!(!refused, "{name}: {error:?}");
    }
}

#[test]
fn envelope_errors_match_the_golden_responses() {
    let head = |version| RequestHead { version: Some(version), ..RequestHead::default() };
    for (case, version) in [
        ("v1.0/jsonrpc/error_batch", "1.0"),
        ("v1.0/jsonrpc/error_method_not_found", "1.0"),
        ("v1.0/jsonrpc/error_version_not_supported", "0.5"),
        ("v1.0/jsonrpc/error_invalid_params", "1.0"),
        ("v0.3/jsonrpc/error_method_not_found", ""),
        ("v0.3/jsonrpc/error_unsupported_version", "0.9"),
    ] {
        let answer = refusal(&mount(MountPath::Root), &head(version), &golden_text(&format!("{case}.request.json")));
        assert_eq!(answer, golden(&format!("{case}.response.json")), "{case}");
    }
    let answer = refusal(&mount(MountPath::Root), &head("1.0"), &golden_text("v1.0/jsonrpc/error_parse.request.txt"));
    assert_eq!(answer, golden("v1.0/jsonrpc/error_parse.response.json"));

    // The golden has no details here; we say what is wrong.
    let request = golden_text("v1.0/jsonrpc/error_invalid_request.request.json");
    let mut answer = refusal(&mount(MountPath::Root), &head("1.0"), &request);
    let data = answer["error"].as_object_mut().unwrap().remove("data").unwrap();
    assert_eq!(data[0]["metadata"]["detail"], r#"jsonrpc must be "2.0""#);
    assert_eq!(answer, golden("v1.0/jsonrpc/error_invalid_request.response.json"));
}

/// Requests that never reach the engine. The token of the last one is not ours.
const REFUSED: [&str; 8] = [
    "error_parse",
    "error_batch",
    "error_invalid_request",
    "error_invalid_params",
    "error_method_not_found",
    "error_version_not_supported",
    "error_unsupported_version",
    "list_tasks_last_page",
];

#[test]
fn every_valid_golden_request_is_decoded() {
    let manifest = golden("manifest.json");
    let mut read = 0;
    for case in manifest["cases"].as_array().unwrap() {
        let name = case["case"].as_str().unwrap();
        if case["binding"] != "jsonrpc" || REFUSED.contains(&name) {
            continue;
        }
        let text = golden_text(case["request"].as_str().unwrap());
        let head = fixture::head(&case["http"]);
        for path in [MountPath::Root, MountPath::A2a, MountPath::JsonRpc, MountPath::V1A2a] {
            let call = mount(path).decode(&head, text.as_bytes(), Compat::default(), &ThreeAgents).call;
            assert!(call.is_ok(), "{} {name} at {path:?}: {call:?}", case["dialect"]);
        }
        read += 1;
    }
    assert!(read > 60, "only {read} were read");
}

#[test]
fn versioned_mounts_take_only_the_methods_of_their_version() {
    for (fixed, method, version, expected) in [
        (ProtocolVersion::V1_0, "message/send", "", "-32601"),
        (ProtocolVersion::V1_0, "GetTask", "0.3", "-32009"),
        (ProtocolVersion::V0_3, "GetTask", "", "-32601"),
        (ProtocolVersion::V0_3, "tasks/send", "", "-32601"),
        (ProtocolVersion::V0_3, "tasks/get", "1.0", "-32009"),
        (ProtocolVersion::V0_3, "tasks/get", "0.1", "served"),
        (ProtocolVersion::V1_0, "GetTask", "1.0", "served"),
        (ProtocolVersion::V0_1, "tasks/get", "", "served"),
        (ProtocolVersion::V0_1, "tasks/get", "0.3", "served"),
        (ProtocolVersion::V0_1, "tasks/get", "1.0", "-32009"),
        (ProtocolVersion::V0_1, "tasks/pushNotification/get", "", "served"),
        (ProtocolVersion::V0_1, "tasks/send", "", "-32602"),
        (ProtocolVersion::V0_1, "message/send", "", "-32601"),
        (ProtocolVersion::V0_1, "tasks/pushNotificationConfig/get", "", "-32601"),
        (ProtocolVersion::V0_1, "GetTask", "", "-32601"),
    ] {
        let head = RequestHead { version: Some(version), ..RequestHead::default() };
        let text = body(method, r#"{"id":"t"}"#);
        let decoded =
            mount(MountPath::Versioned(fixed)).decode(&head, text.as_bytes(), Compat::default(), &ThreeAgents);
        let actual = match &decoded.call {
            Ok(_) => "served".to_owned(),
            Err(error) => fixture::json(&decoded.responder.error_reply(error).body)["error"]["code"].to_string(),
        };
        assert_eq!(actual, expected, "{fixed:?} {method} {version}");
    }
}

#[test]
fn strictness_depends_on_mount_version_and_setting() {
    let bare = r#"{"id":"t","message":{"parts":[{"text":"x"}]}}"#;
    let foreign =
        r#"{"taskId":"t","message":{"message_id":"m","role":"user","parts":[{"type":"text","content":"x"}]}}"#;
    let strict = Compat { strict: true, ..Compat::default() };
    for (path, method, version, compat, takes_bare, takes_foreign) in [
        (MountPath::Root, "message/send", "", Compat::default(), true, true),
        (MountPath::A2a, "message/send", "0.3", Compat::default(), true, true),
        (MountPath::JsonRpc, "SendMessage", "", Compat::default(), true, true),
        (MountPath::V1A2a, "message/send", "", Compat::default(), true, true),
        (MountPath::Root, "SendMessage", "1.0", Compat::default(), false, true),
        (MountPath::Root, "SendMessage", "1.0", strict, false, false),
        (MountPath::Versioned(ProtocolVersion::V1_0), "SendMessage", "", Compat::default(), false, false),
        (MountPath::Versioned(ProtocolVersion::V1_0), "SendMessage", "1.0", Compat::default(), false, false),
        (MountPath::Versioned(ProtocolVersion::V0_3), "message/send", "", Compat::default(), false, false),
        (MountPath::Root, "message/send", "", strict, false, false),
        (MountPath::Root, "tasks/send", "", Compat::default(), true, true),
        (MountPath::JsonRpc, "tasks/send", "0.2", Compat::default(), true, true),
        (MountPath::Versioned(ProtocolVersion::V0_1), "tasks/send", "", Compat::default(), false, false),
        (MountPath::Root, "tasks/send", "", strict, false, false),
    ] {
        let head = RequestHead { version: Some(version), ..RequestHead::default() };
        for (params, accepted) in [(bare, takes_bare), (foreign, takes_foreign)] {
            let call = mount(path).decode(&head, body(method, params).as_bytes(), compat, &ThreeAgents).call;
            assert_eq!(call.is_ok(), accepted, "{path:?} {method} {version} {params}: {call:?}");
        }
    }
    // A task under any of its names, wherever reading is not strict.
    for (path, accepted) in [(MountPath::Root, true), (MountPath::Versioned(ProtocolVersion::V1_0), false)] {
        let head = RequestHead { version: Some("1.0"), ..RequestHead::default() };
        let text = body("GetTask", r#"{"taskId":"t"}"#);
        let call = mount(path).decode(&head, text.as_bytes(), Compat::default(), &ThreeAgents).call;
        assert_eq!(call.is_ok(), accepted, "{path:?}: {call:?}");
    }
}

#[test]
fn the_cancel_of_a_finished_task_depends_on_mount_and_member_name() {
    use CancelTerminal::{Auto, Error, Noop};
    use OnFinishedCancel::{Leave, LeaveUnlessBorn, Refuse};
    let unless_0_1 = LeaveUnlessBorn(Birth(1));
    for (path, method, params, setting, expected) in [
        (MountPath::JsonRpc, "tasks/cancel", r#"{"id":"t"}"#, Auto, Refuse),
        (MountPath::JsonRpc, "tasks/cancel", r#"{"taskId":"t"}"#, Auto, unless_0_1),
        (MountPath::JsonRpc, "tasks/cancel", r#"{"taskId":"t","id":"t"}"#, Auto, Refuse),
        (MountPath::JsonRpc, "CancelTask", r#"{"id":"t"}"#, Auto, Refuse),
        (MountPath::A2a, "tasks/cancel", r#"{"id":"t"}"#, Auto, unless_0_1),
        (MountPath::A2a, "CancelTask", r#"{"id":"t"}"#, Auto, Refuse),
        (MountPath::Root, "tasks/cancel", r#"{"taskId":"t"}"#, Auto, Refuse),
        (MountPath::V1A2a, "tasks/cancel", r#"{"id":"t"}"#, Auto, Refuse),
        (MountPath::Versioned(ProtocolVersion::V0_3), "tasks/cancel", r#"{"id":"t"}"#, Auto, Refuse),
        (MountPath::Versioned(ProtocolVersion::V0_1), "tasks/cancel", r#"{"id":"t"}"#, Auto, Refuse),
        (MountPath::A2a, "tasks/cancel", r#"{"id":"t"}"#, Error, Refuse),
        (MountPath::JsonRpc, "tasks/cancel", r#"{"taskId":"t"}"#, Error, Refuse),
        (MountPath::Root, "CancelTask", r#"{"id":"t"}"#, Noop, Leave),
    ] {
        let compat = Compat { cancel_terminal: setting, ..Compat::default() };
        let call =
            mount(path).decode(&RequestHead::default(), body(method, params).as_bytes(), compat, &ThreeAgents).call;
        let Ok(Call::Cancel(cancel)) = call else { panic!("{path:?} {params}: {call:?}") };
        assert_eq!(cancel.on_finished, expected, "{path:?} {method} {params} {setting:?}");
    }
    let head = RequestHead { version: Some("0.3"), ..RequestHead::default() };
    let text = body("tasks/cancel", r#"{"id":"t"}"#);
    let call = mount(MountPath::A2a).decode(&head, text.as_bytes(), Compat::default(), &ThreeAgents).call;
    let Ok(Call::Cancel(cancel)) = call else { panic!("{call:?}") };
    assert_eq!(cancel.on_finished, Refuse, "a caller that names its version");
}

/// In which dialect a request is answered about a task of each birth, and refused.
#[test]
fn methods_common_to_0_x_are_answered_by_header_or_birth_of_the_task() {
    let alias = |version| {
        let head = RequestHead { verb: "GET", path: "/a2a/tasks/t", version: Some(version), ..RequestHead::default() };
        let Surface::Call(endpoint) = locate(&head, &ThreeAgents) else { panic!("no endpoint") };
        endpoint.decode(&head, b"", Compat::default(), &ThreeAgents).responder
    };
    let called = |path, method, version| {
        let head = RequestHead { version: Some(version), ..RequestHead::default() };
        let text = body(method, r#"{"id":"t"}"#);
        mount(path).decode(&head, text.as_bytes(), Compat::default(), &ThreeAgents).responder.into_owned()
    };
    for (responder, expected) in [
        (called(MountPath::Root, "tasks/get", ""), "0.1 0.3 0.3"),
        (called(MountPath::A2a, "tasks/cancel", ""), "0.1 0.3 0.3"),
        (called(MountPath::V1A2a, "tasks/resubscribe", ""), "0.1 0.3 0.3"),
        (called(MountPath::Root, "tasks/get", "0.1"), "0.1 0.1 0.1"),
        (called(MountPath::Root, "tasks/get", "0.2"), "0.3 0.3 0.3"),
        (called(MountPath::Root, "tasks/get", "0.3"), "0.3 0.3 0.3"),
        (called(MountPath::Versioned(ProtocolVersion::V0_1), "tasks/get", ""), "0.1 0.1 0.1"),
        (called(MountPath::Versioned(ProtocolVersion::V0_3), "tasks/get", ""), "0.3 0.3 0.3"),
        (called(MountPath::Root, "message/send", ""), "0.3 0.3 0.3"),
        (called(MountPath::Root, "tasks/send", "0.3"), "0.1 0.1 0.1"),
        (alias(""), "0.1 0.3 0.3"),
        (alias("0.1"), "0.1 0.1 0.1"),
        (alias("0.2"), "0.3 0.3 0.3"),
    ] {
        let row = [V01.birth(), V03.birth(), V1.birth()].map(|born| match responder.clone().for_birth(born).slot() {
            slot if slot == V01.slot() => "0.1",
            slot if slot == V03.slot() => "0.3",
            other => panic!("{other}"),
        });
        assert_eq!(row.join(" "), expected);
    }
}

fn send(mount: &Mount, head: &RequestHead<'_>, method: &str, compat: Compat) -> Result<Box<Send>, Error> {
    match mount.decode(head, body(method, MESSAGE).as_bytes(), compat, &ThreeAgents).call? {
        Call::Send(send) => Ok(send),
        other => panic!("{other:?}"),
    }
}

/// The event after which a streaming call goes on.
fn after(head: &RequestHead<'_>, method: &str, params: &str) -> Result<Option<LastEventId>, String> {
    let text = body(method, params);
    match mount(MountPath::Root).decode(head, text.as_bytes(), Compat::default(), &ThreeAgents).call {
        Ok(Call::Send(send)) => Ok(send.last_event_id),
        Ok(Call::Subscribe(subscribe)) => Ok(subscribe.after.map(LastEventId::Event)),
        Ok(other) => panic!("{other:?}"),
        Err(error) => Err(error.to_string()),
    }
}

#[test]
fn last_event_id_is_read_for_streaming_calls() {
    let wrong = Err("invalid parameters: Last-Event-ID must be the number of an event of this task, or 0".to_owned());
    for (last, expected) in [
        (None, Ok(None)),
        (Some(""), Ok(None)),
        (Some("0"), Ok(Some(LastEventId::Event(0)))),
        (Some(" 17 "), Ok(Some(LastEventId::Event(17)))),
        (Some("-1"), wrong.clone()),
        (Some("+1"), wrong.clone()),
        (Some("99999999999999999999"), wrong.clone()),
        (Some("abc"), wrong.clone()),
    ] {
        let head = RequestHead { last_event_id: last, ..RequestHead::default() };
        // A send that starts a task has no use for any of them; one that joins has none for a wrong one.
        let of_send = expected.clone().or(Ok(Some(LastEventId::Unusable)));
        assert_eq!(after(&head, "SendStreamingMessage", MESSAGE), of_send, "{last:?}");
        assert_eq!(after(&head, "message/sendStream", MESSAGE), of_send, "{last:?}");
        assert_eq!(after(&head, "tasks/resubscribe", r#"{"id":"t"}"#), expected, "{last:?}");
        assert_eq!(after(&head, "SendMessage", MESSAGE), Ok(None), "a send that does not stream has no use for it");
    }
}

#[test]
fn a_send_gets_the_idempotency_key_and_the_terminal_message_setting() {
    let root = mount(MountPath::Root);
    let too_long = "k".repeat(1025);
    let head = |key| RequestHead { idempotency_key: key, ..RequestHead::default() };
    let keyed = send(&root, &head(Some("k 1")), "message/send", Compat::default()).unwrap();
    assert_eq!(keyed.idempotency.unwrap().as_str(), "k 1");
    assert_eq!(send(&root, &head(None), "message/send", Compat::default()).unwrap().idempotency, None);
    for key in ["", &too_long] {
        let error = send(&root, &head(Some(key)), "message/send", Compat::default()).unwrap_err();
        assert!(error.to_string().starts_with("invalid parameters: Idempotency-Key must not be"), "{error}");
    }

    let new_task = Compat { terminal_message: TerminalMessage::NewTask, ..Compat::default() };
    assert_eq!(
        send(&root, &RequestHead::default(), "message/send", new_task).unwrap().on_finished,
        OnFinished::StartTask
    );
    assert_eq!(
        send(&root, &RequestHead::default(), "message/send", Compat::default()).unwrap().on_finished,
        OnFinished::Refuse
    );
}

#[test]
fn the_tenant_must_match_the_agent_of_the_mount() {
    let alpha = AgentId::parse("alpha").ok();
    for (mounted, tenant, expected) in [
        (None, None, Ok(None)),
        (None, Some("b 2"), Ok(Some("b 2"))),
        (None, Some("ghost"), Err("there is no agent ghost; known: alpha, b 2, harbour-north")),
        (alpha.clone(), None, Ok(Some("alpha"))),
        (alpha.clone(), Some("alpha"), Ok(Some("alpha"))),
        (alpha.clone(), Some("b 2"), Err("invalid parameters: tenant does not match the path, which names alpha")),
    ] {
        let mount = Mount { agent: mounted.clone(), path: MountPath::Root };
        let params = match tenant {
            Some(tenant) => format!(r#"{{"id":"t","tenant":"{tenant}"}}"#),
            None => r#"{"id":"t"}"#.to_owned(),
        };
        let text = body("GetTask", &params);
        let decoded = mount.decode(&RequestHead::default(), text.as_bytes(), Compat::default(), &ThreeAgents);
        let actual = match decoded.call {
            Ok(Call::Get(get)) => Ok(get.agent),
            Ok(other) => panic!("{other:?}"),
            Err(error) => {
                let reply = decoded.responder.error_reply(&error);
                assert_eq!(reply.status, 200);
                assert_eq!(fixture::json(&reply.body)["error"]["code"], -32602);
                Err(error.to_string())
            }
        };
        let actual = actual.as_ref().map(|agent| agent.as_ref().map(AgentId::as_str)).map_err(String::as_str);
        assert_eq!(actual, expected, "{mounted:?} {tenant:?}");
    }
}
