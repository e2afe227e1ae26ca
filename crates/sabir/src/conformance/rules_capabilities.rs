//! What the card promises, against what the server does: what is promised must work, and what is not must be refused.

use std::time::Duration;

use sabir_model::Delivery;
use sabir_wire::{PeerErrorKind, ProtocolVersion};

use super::calls;
use super::evidence::Evidence;
use super::exchange::Outgoing;
use super::probe::{Opened, Probe};
use super::reading::{Asked, Reading};
use super::rule::{Level, Rule, Sections, Subject};
use super::rules_tasks::new_place;
use super::stream_log::{FrameContent, OpenStream};
use super::wire_error::{EXTENSION_REQUIRED, Expected, PUSH_NOT_SUPPORTED, UNSUPPORTED, WireError};

pub const RULES: &[&Rule] = &[&STREAMING, &PUSH, &EXTENDED_CARD, &EXTENSIONS];

pub static STREAMING: Rule = Rule {
    id: "capability.streaming",
    level: Level::Error,
    subject: Subject::Interface,
    sections: Sections::all("§3.3.4", "§7.2", "§7.2"),
    says: "a server streams if its card promises streaming, and refuses streams with -32004 if it does not",
    remedy: "set capabilities.streaming to what the server does",
};
pub static PUSH: Rule = Rule {
    id: "capability.push",
    level: Level::Error,
    subject: Subject::Interface,
    sections: Sections::all("§3.3.4, §3.1.7", "§7.5, §8.2", "§7.5, §8.2"),
    says: "a server takes webhooks if its card promises pushNotifications, and refuses them with -32003 if it does not",
    remedy: "set capabilities.pushNotifications to what the server does",
};
pub static EXTENDED_CARD: Rule = Rule {
    id: "capability.extended-card",
    level: Level::Error,
    subject: Subject::Interface,
    sections: Sections::since_v02("§3.3.4, §3.1.11", "§7.10"),
    says: "a server has an extended card if its card promises one, and refuses the call with -32004 if it does not",
    remedy: "set capabilities.extendedAgentCard (0.3: supportsAuthenticatedExtendedCard) to what the server does",
};
pub static EXTENSIONS: Rule = Rule {
    id: "capability.required-extension",
    level: Level::Warning,
    subject: Subject::Interface,
    sections: Sections::since_v1("§3.3.4"),
    says: "a request that does not name an extension which the card calls required is ExtensionSupportRequiredError, -32008",
    remedy: "refuse such requests, or declare the extension without required",
};

/// How long a server may take to say the first thing in a stream that it refuses.
const FIRST_FRAME: Duration = Duration::from_secs(10);

/// Judges how a stream was taken; the stream, if there is one.
pub async fn judge_streaming(probe: &Probe<'_>, opened: Opened) -> Option<Box<OpenStream>> {
    let is_promised = probe.promises.streaming == Some(true);
    match opened {
        Opened::Answer(asked) => {
            let words = asked.words(probe.protocol());
            judge_refused(
                probe,
                &STREAMING,
                probe.promises.streaming,
                asked.refusal(),
                &words,
                &UNSUPPORTED,
                &asked.evidence(),
            );
            None
        }
        Opened::Stream(mut stream) => {
            stream.read_until(FIRST_FRAME.min(probe.patience()), |log| !log.frames.is_empty()).await;
            let first = stream.log().frames.first().map(|frame| &frame.content);
            // Servers of 0.x refuse by a stream with one frame.
            if let Some(FrameContent::Error(error)) = first {
                let (error, evidence) = (error.clone(), stream.log().evidence());
                let words = error.words(probe.protocol());
                judge_refused(
                    probe,
                    &STREAMING,
                    probe.promises.streaming,
                    Some(&error),
                    &words,
                    &UNSUPPORTED,
                    &evidence,
                );
                return None;
            }
            if is_promised || !probe.promises.are_known {
                probe.ledger.pass(&STREAMING);
            } else {
                judge_unpromised(probe, &STREAMING, "the server streams", &stream.log().evidence());
            }
            Some(stream)
        }
    }
}

/// Judges how a webhook was taken; true if it was taken.
pub fn judge_push(probe: &Probe<'_>, asked: &Asked) -> bool {
    let is_promised = probe.promises.push == Some(true);
    match &asked.reading {
        Reading::Result(_) => {
            if is_promised || !probe.promises.are_known {
                probe.ledger.pass(&PUSH);
            } else {
                judge_unpromised(probe, &PUSH, "the server takes webhooks", &asked.evidence());
            }
            true
        }
        // The URL may be one that the server does not want to call.
        Reading::Refused(error)
            if is_promised
                && matches!(
                    error.kind,
                    PeerErrorKind::Invalid | PeerErrorKind::InvalidRequest | PeerErrorKind::Forbidden
                ) =>
        {
            probe.ledger.pass(&PUSH);
            false
        }
        _ => {
            let words = asked.words(probe.protocol());
            judge_refused(
                probe,
                &PUSH,
                probe.promises.push,
                asked.refusal(),
                &words,
                &PUSH_NOT_SUPPORTED,
                &asked.evidence(),
            );
            false
        }
    }
}

pub async fn check(probe: &Probe<'_>, text: &str) {
    check_extended_card(probe).await;
    check_required_extension(probe, text).await;
}

async fn check_extended_card(probe: &Probe<'_>) {
    // 0.2 has it at a path of its own.
    if !EXTENDED_CARD.is_for(probe.protocol()) || probe.version() == ProtocolVersion::V0_2 {
        return;
    }
    if !probe.promises.are_known {
        return probe.ledger.skip(&EXTENDED_CARD, "there is no card that could promise it");
    }
    let promise = probe.promises.extended_card(probe.version());
    let is_promised = promise == Some(true);
    let Some(asked) = probe.ask(&calls::extended_card(probe.tenant())).await else { return };
    let evidence = asked.evidence();
    match &asked.reading {
        Reading::Result(_) if is_promised => probe.ledger.pass(&EXTENDED_CARD),
        // Some SDKs of 0.3 give the public card instead.
        Reading::Result(_) if !probe.is_v1() => probe.ledger.pass(&EXTENDED_CARD),
        Reading::Result(_) => judge_unpromised(probe, &EXTENDED_CARD, "the server has an extended card", &evidence),
        Reading::Refused(error) if error.asks_for_credentials() => {
            probe.ledger.skip(&EXTENDED_CARD, "the extended card needs credentials (--bearer, --header)");
        }
        // Promised, and nobody has written one.
        Reading::Refused(error) if is_promised && error.kind == PeerErrorKind::NoExtendedCard => {
            let fault = "an extended card is promised, and none is configured";
            probe.ledger.fail_as(Level::Note, &EXTENDED_CARD, fault, &evidence);
        }
        Reading::Refused(_) if !is_promised && !probe.is_v1() => probe.ledger.pass(&EXTENDED_CARD),
        _ => {
            let words = asked.words(probe.protocol());
            judge_refused(probe, &EXTENDED_CARD, promise, asked.refusal(), &words, &UNSUPPORTED, &evidence);
        }
    }
}

async fn check_required_extension(probe: &Probe<'_>, text: &str) {
    if !EXTENSIONS.is_for(probe.protocol()) {
        return;
    }
    let Some(required) = probe.promises.required_extensions.first() else {
        return probe.ledger.skip(&EXTENSIONS, "the card requires no extension");
    };
    let call = calls::send(probe.tenant(), text, new_place(probe), Delivery::WhenSettled);
    let Some(outgoing) = probe.outgoing(&call) else { return };
    let without: Outgoing = outgoing.with_header("a2a-extensions", None).with_header("x-a2a-extensions", None);
    let asked = probe.send(without).await;
    let fault = match asked.refusal() {
        Some(error) => error.differs_from(&EXTENSION_REQUIRED, probe.protocol()),
        None => Some(asked.words(probe.protocol())),
    };
    let fault = fault.map(|fault| format!("a message without the extension {required} gets {fault}"));
    probe.ledger.judge(&EXTENSIONS, fault, &asked.evidence());
}

/// Something that was refused: it must not have been promised, and the error must be the right one.
fn judge_refused(
    probe: &Probe<'_>,
    rule: &'static Rule,
    promise: Option<bool>,
    error: Option<&WireError>,
    words: &str,
    expected: &Expected,
    evidence: &Evidence,
) {
    if promise == Some(true) {
        return probe.ledger.fail(rule, format!("the card promises it, and the server answers with {words}"), evidence);
    }
    if !probe.promises.are_known {
        return probe.ledger.skip(rule, "there is no card that could promise it");
    }
    let fault = match error {
        Some(error) => error.differs_from(expected, probe.protocol()),
        None => Some(words.to_owned()),
    };
    let fault = fault.map(|fault| format!("the card does not promise it, and the refusal is {fault}"));
    match fault {
        // The error is a SHOULD before 1.0, and methods that nobody offers may be unknown.
        Some(fault) if !probe.is_v1() => probe.ledger.fail_as(Level::Note, rule, fault, evidence),
        fault => probe.ledger.judge(rule, fault, evidence),
    }
}

/// Something that works although the card does not promise it.
fn judge_unpromised(probe: &Probe<'_>, rule: &'static Rule, what: &str, evidence: &Evidence) {
    let level = if probe.is_v1() { Level::Error } else { Level::Note };
    probe.ledger.fail_as(level, rule, format!("{what}, and its card does not say so"), evidence);
}
