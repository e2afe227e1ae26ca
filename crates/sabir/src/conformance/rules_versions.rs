//! Which version a request asks for (1.0 section 3.6).

use sabir_wire::PeerErrorKind;

use super::calls;
use super::exchange::Outgoing;
use super::probe::Probe;
use super::rule::{Level, Rule, Sections, Subject};
use super::rules_errors::judge_refusal;
use super::wire_error::VERSION_NOT_SUPPORTED;

pub const RULES: &[&Rule] = &[&UNSUPPORTED_VERSION, &PATCH, &MISSING];

pub static UNSUPPORTED_VERSION: Rule = Rule {
    id: "version.unsupported",
    level: Level::Error,
    subject: Subject::Interface,
    sections: Sections::since_v1("§3.6.2, §5.4"),
    says: "a request for a version that the interface does not offer is VersionNotSupportedError: -32009, in HTTP+JSON 400, in gRPC FAILED_PRECONDITION",
    remedy: "read A2A-Version (gRPC: the metadata a2a-version) before the request, and refuse what the card does not list",
};
pub static PATCH: Rule = Rule {
    id: "version.patch",
    level: Level::Warning,
    subject: Subject::Interface,
    sections: Sections::since_v1("§3.6"),
    says: "the patch number of a version is not considered: 1.0.1 is 1.0",
    remedy: "compare the major and minor number of A2A-Version only",
};
pub static MISSING: Rule = Rule {
    id: "version.missing",
    level: Level::Note,
    subject: Subject::Interface,
    sections: Sections::since_v1("§3.6.2"),
    says: "a request without A2A-Version is one of version 0.3, so an interface of 1.0 alone refuses it",
    remedy: "nothing needs mending for clients of 1.0, which always send the header",
};

/// `offers_v03`: the same URL and binding are of version 0.3 as well.
pub async fn check(probe: &Probe<'_>, offers_v03: OffersV03) {
    if !probe.is_v1() {
        return;
    }
    let rules: &[&Rule] = &[&UNSUPPORTED_VERSION, &PATCH, &MISSING];
    let Some(finished) = probe.scene.finished() else {
        return probe.ledger.skip_all(rules, "there is no finished task to ask for");
    };
    let get = || probe.outgoing(&calls::get(probe.tenant(), &finished.id, None));
    if let Some(outgoing) = get() {
        let asked = probe.send(of_version(outgoing, Some("9.9"))).await;
        let what = "a request for version 9.9";
        judge_refusal(probe, &UNSUPPORTED_VERSION, what, &asked, &VERSION_NOT_SUPPORTED);
    }
    if let Some(outgoing) = get() {
        let asked = probe.send(of_version(outgoing, Some("1.0.1"))).await;
        let refusal = asked.refusal().filter(|error| error.kind == PeerErrorKind::Version);
        let fault = refusal.map(|error| format!("a request for 1.0.1 gets {}", error.words(probe.protocol())));
        probe.ledger.judge(&PATCH, fault, &asked.evidence());
    }
    if probe.ledger.has_failed(&UNSUPPORTED_VERSION) {
        return probe.ledger.skip(&MISSING, "the server does not go by A2A-Version");
    }
    if probe.is_grpc() {
        return probe.ledger.skip(&MISSING, "in gRPC the package of the service says that it is 1.0");
    }
    if offers_v03 == OffersV03::Yes {
        return probe.ledger.skip(&MISSING, "the same interface offers 0.3");
    }
    if let Some(outgoing) = get() {
        let asked = probe.send(of_version(outgoing, None)).await;
        let fault = asked.result().map(|_| "a request of 1.0 without A2A-Version is served".to_owned());
        probe.ledger.judge(&MISSING, fault, &asked.evidence());
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OffersV03 {
    Yes,
    No,
}

fn of_version(outgoing: Outgoing, version: Option<&str>) -> Outgoing {
    outgoing.with_header("a2a-version", version)
}
