//! What gRPC itself wants of every answer: how a call ends, how its message travels, and which code an error has.
//!
//! That an A2A error has an ErrorInfo is judged with the errors of the other bindings (`rules_envelope`).

use sabir_wire::{Binding, PeerErrorKind};

use super::evidence::Evidence;
use super::grpc_answer::{GrpcAnswer, GrpcClose};
use super::probe::Probe;
use super::rule::{Level, Rule, Sections, Subject};
use super::wire_error::{WireError, grpc_codes};

pub const RULES: &[&Rule] = &[&STATUS, &MESSAGE, &ERROR_CODE, &ERROR_NAME];

pub static STATUS: Rule = Rule {
    id: "grpc.status",
    level: Level::Error,
    subject: Subject::InterfaceOf(Binding::Grpc),
    sections: Sections::since_v02("§10", "§3.2.2"),
    says: "every call ends with a grpc-status, in the trailers or, without a message, in the headers",
    remedy: "send grpc-status behind the last message; proxies in front of the server have to pass trailers on",
};
pub static MESSAGE: Rule = Rule {
    id: "grpc.message",
    level: Level::Error,
    subject: Subject::InterfaceOf(Binding::Grpc),
    sections: Sections::since_v02("§10", "§3.2.2"),
    says: "answers have the media type application/grpc, and a call that is no stream is answered with one message",
    remedy: "answer with Content-Type: application/grpc and exactly one message, which is not compressed unless the client can read that",
};
pub static ERROR_CODE: Rule = Rule {
    id: "grpc.error-code",
    level: Level::Error,
    subject: Subject::InterfaceOf(Binding::Grpc),
    sections: Sections::since_v1("§5.4, §10.6"),
    says: "an A2A error has the code that the table of errors gives to it (that of 1.0.0 or that of 1.0.1)",
    remedy: "answer with the code of the table in section 5.4",
};
pub static ERROR_NAME: Rule = Rule {
    id: "grpc.error-name",
    level: Level::Note,
    subject: Subject::InterfaceOf(Binding::Grpc),
    sections: Sections::before_v1("§3.2.2, §8.2", ""),
    says: "errors are mapped to a status; SDKs of 0.3 begin its text with the name of the error, the only place that tells them apart",
    remedy: "begin the text of the status with the name of the error: TaskNotFoundError: there is no such task",
};

/// Judges an answer that is no stream.
pub fn observe(probe: &Probe<'_>, grpc: &GrpcAnswer, evidence: &Evidence) {
    // Whatever stands in front of the server may answer with a status of HTTP alone.
    if grpc.code.is_none() && !(200..300).contains(&grpc.http_status) {
        return;
    }
    judge_status(probe, grpc.code.is_some(), evidence);
    probe.ledger.judge(&MESSAGE, grpc.framing.clone(), evidence);
}

/// Judges how a stream was closed.
pub fn observe_close(probe: &Probe<'_>, close: &GrpcClose, evidence: &Evidence) {
    judge_status(probe, close.code.is_some(), evidence);
}

pub fn observe_error(probe: &Probe<'_>, error: &WireError, evidence: &Evidence) {
    if probe.is_v1() {
        let Some(reason) = error.reason.as_deref() else { return };
        let Some(codes) = grpc_codes(reason) else { return };
        let code = error.grpc_code();
        let fault =
            (!codes.contains(&code)).then(|| format!("{reason} has the code {code}, not {}", codes.join(" or ")));
        return probe.ledger.judge(&ERROR_CODE, fault, evidence);
    }
    if error.is_of_a2a() || error.kind == PeerErrorKind::Invalid {
        let text = error.object["message"].as_str().unwrap_or_default();
        let name = text.split(':').next().unwrap_or_default();
        let is_name = name.ends_with("Error") && name.bytes().all(|byte| byte.is_ascii_alphanumeric());
        let fault = (!is_name).then(|| format!("the text of an error begins with no name: {text:?}"));
        probe.ledger.judge(&ERROR_NAME, fault, evidence);
    }
}

fn judge_status(probe: &Probe<'_>, has_status: bool, evidence: &Evidence) {
    let fault = (!has_status).then(|| "the call ended without grpc-status".to_owned());
    probe.ledger.judge(&STATUS, fault, evidence);
}
