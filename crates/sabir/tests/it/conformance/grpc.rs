//! `sabir check` over gRPC: servers that keep the rules, and answers that break one each.

use std::net::{SocketAddr, TcpListener};

use serde_json::{Value, json};

use super::tampering_proxy::{GrpcFault, TamperingProxy};
use super::{check, rules, sabir_with_webhooks};
use crate::client_commands::peer_server::{Answer, PeerServer};

const V1: &str = "1.0";
const V03: &str = "0.3";

/// A server whose card names nothing but gRPC at this address.
fn card_of(address: SocketAddr, version: &'static str) -> PeerServer {
    PeerServer::start(move |_, _| {
        let mut card = json!({
            "name": "Proxied", "description": "It is behind a proxy.", "version": "1",
            "capabilities": {"streaming": true, "pushNotifications": true},
            "skills": [{"id": "s", "name": "S", "description": "It does something.", "tags": ["x"]}],
            "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"],
        });
        if version == V1 {
            let interface = json!({"url": address.to_string(), "protocolBinding": "GRPC", "protocolVersion": "1.0"});
            card["supportedInterfaces"] = json!([interface]);
        } else {
            card["url"] = json!(format!("grpc://{address}"));
            card["preferredTransport"] = json!("GRPC");
            card["protocolVersion"] = json!("0.3.0");
        }
        Answer::Json(card.to_string())
    })
}

/// `error rule: fault`, of what was found over the interface, and not on the card.
fn findings_of_interface(report: &Value) -> Vec<String> {
    let mut found = Vec::new();
    for finding in report["findings"].as_array().unwrap() {
        if finding["interface"]["binding"] == "GRPC" {
            let text = |name: &str| finding[name].as_str().unwrap().to_owned();
            found.push(format!("{} {}: {}", text("level"), text("rule"), text("fault")));
        }
    }
    found
}

#[test]
fn each_fault_of_grpc_is_found_and_nothing_else() {
    let fixture = sabir_with_webhooks();
    for (fault, version, expected) in [
        (GrpcFault::Nothing, V1, &[][..]),
        (GrpcFault::Nothing, V03, &[]),
        (GrpcFault::StatusMissing, V1, &["error grpc.status: the call ended without grpc-status"]),
        (GrpcFault::StatusMissing, V03, &["error grpc.status: the call ended without grpc-status"]),
        (GrpcFault::StreamStatusMissing, V1, &["error grpc.status: the call ended without grpc-status"]),
        (GrpcFault::ContentType, V1, &["error grpc.message: the answer has the type application/octet-stream"]),
        (GrpcFault::SecondMessage, V1, &["error grpc.message: more than one message came"]),
        (GrpcFault::SecondMessage, V03, &["error grpc.message: more than one message came"]),
        (
            GrpcFault::MalformedMessage,
            V1,
            &["error get.task: the task of a send is answered with an answer that is not A2A"],
        ),
        (GrpcFault::UnknownRole, V1, &["error objects.enums: result.history[0].role is a number, not a word"]),
        (GrpcFault::ArtifactWithoutId, V1, &["error objects.required: result.artifacts[0].artifactId is missing"]),
        (GrpcFault::StreamWithoutTask, V1, &["error stream.first: the stream begins with a status"]),
        (
            GrpcFault::StreamWithUnknownPrefix,
            V1,
            &[
                "error stream.terminal: the last state of the stream is no state at all; the stream broke: a message begins with the byte 7",
            ],
        ),
        (GrpcFault::ErrorInfoMissing, V1, &["error errors.error-info: the error has no ErrorInfo"]),
        (GrpcFault::ErrorInfoMissing, V03, &[]),
        (GrpcFault::ErrorTextMissing, V1, &["error errors.message: the error has no message"]),
        (GrpcFault::ErrorCode, V1, &["error grpc.error-code: TASK_NOT_FOUND has the code INTERNAL, not NOT_FOUND"]),
        (
            GrpcFault::ErrorWithoutName,
            V03,
            &["note grpc.error-name: the text of an error begins with no name: \"something is wrong\""],
        ),
        (GrpcFault::ErrorWithoutName, V1, &[]),
        (GrpcFault::VersionAccepted, V1, &["warning version.unsupported: a request for version 9.9 is accepted"]),
    ] {
        let proxy = TamperingProxy::start(fixture.server.address, fault);
        let (_, report) = check(&card_of(proxy.address, version).url, &[]);
        let found = findings_of_interface(&report);
        let is_as_expected = found.len() == expected.len()
            && found.iter().zip(expected).all(|(found, expected)| found.starts_with(expected));
        assert!(is_as_expected, "{fault:?} in {version}: {found:#?} {:#}", report["interfaces"]);
        assert_eq!(report["interfaces"][0]["url"], format!("http://{}", proxy.address));
    }
}

/// A server that is not there, or speaks something else, is one finding, and not one for each rule.
#[test]
fn where_nobody_speaks_grpc_the_report_is_short() {
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let plain = PeerServer::start(|_, _| Answer::Json("{}".to_owned()));
    let plain: SocketAddr = plain.url.strip_prefix("http://").unwrap().parse().unwrap();
    for address in [closed, plain] {
        let (code, report) = check(&card_of(address, V1).url, &["--only", "card.interface-answers"]);
        let found: Vec<&Value> = report["findings"].as_array().unwrap().iter().collect();
        assert_eq!((found.len(), code), (1, Some(1)), "{report:#}");
        let fault = found[0]["fault"].as_str().unwrap();
        assert!(
            fault.starts_with(&format!("1.0 over GRPC at http://{address}: the interface gives no answer")),
            "{fault}"
        );
    }
}

#[test]
fn rules_about_text_are_skipped_and_those_of_grpc_are_kept() {
    let fixture = sabir_with_webhooks();
    let url = card_of(fixture.server.address, V1).url;
    let (code, report) = check(&url, &["--transport", "grpc", "--only", "objects", "--only", "grpc"]);
    assert_eq!(code, Some(0), "{report:#}");
    let (passed, skipped) = (rules(&report, "passed"), rules(&report, "skipped"));
    for rule in ["grpc.status", "grpc.message", "grpc.error-code", "objects.required", "objects.enums"] {
        assert!(passed.contains(rule), "{rule}: {report:#}");
    }
    for rule in ["objects.types", "objects.names", "objects.nulls"] {
        assert!(skipped.contains(rule) && !passed.contains(rule), "{rule}: {report:#}");
    }
}
