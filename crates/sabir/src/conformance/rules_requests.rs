//! Requests that are not valid: unknown methods, broken JSON, wrong envelopes, missing members. Nothing of it reaches the
//! agent of a server that keeps the rules.

use sabir_model::Delivery;
use sabir_wire::{Binding, PeerErrorKind};
use serde_json::{Value, json};

use super::calls;
use super::exchange::Outgoing;
use super::probe::Probe;
use super::reading::{Asked, Reading};
use super::rule::{Level, Rule, Sections, Subject};
use super::rules_tasks::new_place;

pub const RULES: &[&Rule] = &[&UNKNOWN_METHOD, &PARSE_ERROR, &INVALID_REQUEST, &INVALID_PARAMS, &UNKNOWN_MEMBERS];

pub static UNKNOWN_METHOD: Rule = Rule {
    id: "rpc.unknown-method",
    level: Level::Error,
    subject: Subject::InterfaceOf(Binding::JsonRpc),
    sections: Sections::all("§9.5", "§8.1", "§8.1"),
    says: "a method that does not exist is answered with -32601",
    remedy: "answer unknown methods with -32601 (Method not found)",
};
pub static PARSE_ERROR: Rule = Rule {
    id: "errors.parse",
    level: Level::Error,
    subject: Subject::TextInterface,
    sections: Sections::all("§9.5, §11.6", "§8.1", "§8.1"),
    says: "a body that is no JSON is answered with -32700; in HTTP+JSON with 400",
    remedy: "answer bodies that cannot be parsed with -32700 (Invalid JSON payload) or HTTP 400",
};
pub static INVALID_REQUEST: Rule = Rule {
    id: "rpc.invalid-request",
    level: Level::Error,
    subject: Subject::InterfaceOf(Binding::JsonRpc),
    sections: Sections::all("§9.1, §9.5", "§6.11.1, §8.1", "§6.11.1, §8.1"),
    says: "a request without \"jsonrpc\": \"2.0\" or without a method is answered with -32600",
    remedy: "check the envelope before anything else, and answer with -32600 (Invalid Request)",
};
pub static INVALID_PARAMS: Rule = Rule {
    id: "errors.invalid-params",
    level: Level::Error,
    subject: Subject::Interface,
    sections: Sections::all("§3.3.2, §9.5, §11.6", "§8.1", "§8.1"),
    says: "a request that lacks a required member is answered with -32602; in HTTP+JSON with 400, in gRPC with INVALID_ARGUMENT",
    remedy: "validate params before anything is done, and answer with -32602 (Invalid params), HTTP 400 or INVALID_ARGUMENT",
};
pub static UNKNOWN_MEMBERS: Rule = Rule {
    id: "errors.unknown-members",
    level: Level::Warning,
    subject: Subject::InterfaceOf(Binding::JsonRpc),
    sections: Sections::since_v1("§5.7"),
    says: "members that a server does not know are ignored",
    remedy: "let unknown members pass; later versions of the protocol add some",
};

pub async fn check(probe: &Probe<'_>, text: &str) {
    if PARSE_ERROR.is_for(probe.protocol()) {
        check_parse_error(probe, text).await;
    }
    check_invalid_params(probe, text).await;
    if probe.is_json_rpc() {
        check_envelope(probe).await;
        check_string_id(probe).await;
    }
    check_unknown_members(probe).await;
}

/// A request for a task that does not exist, which does no harm if it is served.
fn harmless(probe: &Probe<'_>) -> Option<Outgoing> {
    probe.outgoing(&calls::get(probe.tenant(), &calls::new_task_id(), None))
}

async fn check_parse_error(probe: &Probe<'_>, text: &str) {
    let call = calls::send(probe.tenant(), text, new_place(probe), Delivery::WhenSettled);
    let Some(outgoing) = probe.outgoing(&call) else { return };
    let asked = probe.send(outgoing.with_body("{\"jsonrpc\": \"2.0\", \"message\": ").with_unreadable_id()).await;
    let fault = match probe.is_json_rpc() {
        true => wrong_code(probe, &asked, -32700),
        false => wrong_status(probe, &asked),
    };
    probe.ledger.judge(
        &PARSE_ERROR,
        fault.map(|fault| format!("a body that is no JSON gets {fault}")),
        &asked.evidence(),
    );
}

async fn check_envelope(probe: &Probe<'_>) {
    if let Some(outgoing) = harmless(probe) {
        let asked = probe.send(outgoing.with_json(|json| json["method"] = json!("sabir/no-such-method"))).await;
        let fault = wrong_code(probe, &asked, -32601).map(|fault| format!("an unknown method gets {fault}"));
        probe.ledger.judge(&UNKNOWN_METHOD, fault, &asked.evidence());
    }
    let without_version: fn(&mut Value) = |json| drop(json.as_object_mut().and_then(|json| json.remove("jsonrpc")));
    let wrong_version: fn(&mut Value) = |json| json["jsonrpc"] = json!("1.0");
    let without_method: fn(&mut Value) = |json| drop(json.as_object_mut().and_then(|json| json.remove("method")));
    for (what, bend) in [
        ("a request without jsonrpc", without_version),
        ("a request with \"jsonrpc\": \"1.0\"", wrong_version),
        ("a request without method", without_method),
    ] {
        let Some(outgoing) = harmless(probe) else { return };
        let asked = probe.send(outgoing.with_json(bend).with_unreadable_id()).await;
        judge_invalid_request(probe, what, &asked);
    }
}

fn judge_invalid_request(probe: &Probe<'_>, what: &str, asked: &Asked) {
    let words = asked.words(probe.protocol());
    let evidence = asked.evidence();
    match asked.refusal().and_then(|error| error.code) {
        Some(-32600) => probe.ledger.pass(&INVALID_REQUEST),
        // It is refused, and some SDKs have another code for it.
        Some(-32700 | -32601 | -32602) => {
            probe.ledger.fail_as(Level::Note, &INVALID_REQUEST, format!("{what} gets {words}, not -32600"), &evidence);
        }
        // The request was carried out: there is no such task.
        Some(-32001) => probe.ledger.fail(&INVALID_REQUEST, format!("{what} is served"), &evidence),
        _ if asked.exchange.status() == Some(400) => probe.ledger.pass(&INVALID_REQUEST),
        _ => probe.ledger.fail(&INVALID_REQUEST, format!("{what} gets {words}, not -32600"), &evidence),
    }
}

/// The answer must have the id, whatever its type; what that means is judged with every answer.
async fn check_string_id(probe: &Probe<'_>) {
    if let Some(outgoing) = harmless(probe) {
        probe.send(outgoing.with_id(json!("sabir-check-7"))).await;
    }
}

async fn check_invalid_params(probe: &Probe<'_>, text: &str) {
    let without_message: fn(&mut Value) =
        |params| drop(params.as_object_mut().and_then(|params| params.remove("message")));
    let without_parts: fn(&mut Value) = |params| {
        for name in ["parts", "content"] {
            drop(params["message"].as_object_mut().and_then(|message| message.remove(name)));
        }
    };
    let text_as_message: fn(&mut Value) = |params| params["message"] = json!("hello");
    for (what, bend) in [
        ("a send without a message", without_message),
        ("a message without parts", without_parts),
        ("a message that is a text", text_as_message),
    ] {
        // ProtoJSON of 0.3 cannot tell missing parts from none.
        if what.contains("parts") && !probe.is_v1() && !probe.is_json_rpc() {
            continue;
        }
        // Protobuf has no way to say this.
        if what.contains("a text") && probe.is_grpc() {
            continue;
        }
        let call = calls::send(probe.tenant(), text, new_place(probe), Delivery::WhenSettled);
        let Some(outgoing) = probe.outgoing(&call) else { return };
        let asked = probe.send(outgoing.with_params(bend).with_fault().with_unreadable_id()).await;
        judge_invalid_params(probe, what, &asked);
    }
}

fn judge_invalid_params(probe: &Probe<'_>, what: &str, asked: &Asked) {
    let evidence = asked.evidence();
    if what.contains("parts") && asked.result().is_some() {
        // Required members should be checked, and some SDKs take a message that says nothing.
        return probe.ledger.fail_as(Level::Warning, &INVALID_PARAMS, format!("{what} is accepted"), &evidence);
    }
    if !probe.is_json_rpc() {
        let fault = wrong_status(probe, asked).map(|fault| format!("{what} gets {fault}"));
        return probe.ledger.judge(&INVALID_PARAMS, fault, &evidence);
    }
    match asked.refusal().and_then(|error| error.code) {
        Some(-32602) => probe.ledger.pass(&INVALID_PARAMS),
        // As SDKs of 0.3 have it, whose requests are validated as a whole.
        Some(-32600) => {
            probe.ledger.fail_as(Level::Note, &INVALID_PARAMS, format!("{what} gets -32600, not -32602"), &evidence);
        }
        _ => {
            let fault = format!("{what} gets {}, not -32602", asked.words(probe.protocol()));
            probe.ledger.fail(&INVALID_PARAMS, fault, &evidence);
        }
    }
}

async fn check_unknown_members(probe: &Probe<'_>) {
    if !UNKNOWN_MEMBERS.is_for(probe.protocol()) {
        return;
    }
    let Some(finished) = probe.scene.finished() else {
        return probe.ledger.skip(&UNKNOWN_MEMBERS, "there is no finished task to ask for");
    };
    let Some(outgoing) = probe.outgoing(&calls::get(probe.tenant(), &finished.id, None)) else { return };
    let asked = probe.send(outgoing.with_params(|params| params["sabirCheck"] = json!(true))).await;
    match asked.refusal().map(|error| error.kind) {
        Some(PeerErrorKind::Invalid | PeerErrorKind::InvalidRequest | PeerErrorKind::NotJson) => {
            let fault = format!("a request with an unknown member gets {}", asked.words(probe.protocol()));
            probe.ledger.fail(&UNKNOWN_MEMBERS, fault, &asked.evidence());
        }
        _ => probe.ledger.pass(&UNKNOWN_MEMBERS),
    }
}

/// `None`: it is refused with this code.
fn wrong_code(probe: &Probe<'_>, asked: &Asked, code: i64) -> Option<String> {
    match asked.refusal() {
        Some(error) if error.code == Some(code) => None,
        _ => Some(format!("{}, not {code}", asked.words(probe.protocol()))),
    }
}

/// `None`: the status says that the request is wrong.
fn wrong_status(probe: &Probe<'_>, asked: &Asked) -> Option<String> {
    match (&asked.reading, asked.exchange.status()) {
        (_, Some(400 | 422)) => None,
        // An error in the body of an answer with 200 is another fault.
        (Reading::Refused(_), Some(200)) => None,
        // In 0.3 no status is written for it.
        (_, Some(415)) => None,
        _ if probe.is_grpc() => Some(format!("{}, not INVALID_ARGUMENT", asked.words(probe.protocol()))),
        _ => Some(format!("{}, not HTTP 400", asked.words(probe.protocol()))),
    }
}
