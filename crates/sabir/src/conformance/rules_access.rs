//! Who is let in: credentials that the card asks for, and the extended card, which nobody gets without.

use super::calls;
use super::probe::Probe;
use super::reading::Reading;
use super::rule::{Level, Rule, Sections, Subject};

pub const RULES: &[&Rule] = &[&CREDENTIALS, &CHALLENGE, &EXTENDED_CARD];

pub static CREDENTIALS: Rule = Rule {
    id: "access.credentials",
    level: Level::Error,
    subject: Subject::Interface,
    sections: Sections::all("§7.4, §3.3.2", "§4.4", "§4.4"),
    says: "requests without the credentials that the card asks for are refused",
    remedy: "check credentials before anything else, over every binding; or take the requirement off the card",
};
pub static CHALLENGE: Rule = Rule {
    id: "access.challenge",
    level: Level::Warning,
    subject: Subject::TextInterface,
    sections: Sections::all("§3.3.2, §7.4", "§4.4", "§4.4"),
    says: "a refusal for missing credentials is HTTP 401, and says in WWW-Authenticate which ones are needed",
    remedy: "answer with 401 and a WWW-Authenticate header",
};
pub static EXTENDED_CARD: Rule = Rule {
    id: "access.extended-card",
    level: Level::Error,
    subject: Subject::Interface,
    sections: Sections::since_v02("§13.3, §3.1.11", "§7.10"),
    says: "the extended card is only for clients that have authenticated",
    remedy: "ask for credentials before the extended card is given; without any way to authenticate, do not promise one",
};

pub async fn check(probe: &Probe<'_>) {
    check_credentials(probe).await;
    check_extended_card(probe).await;
}

async fn check_credentials(probe: &Probe<'_>) {
    let ledger = &probe.ledger;
    if !probe.promises.needs_credentials {
        return ledger.skip_all(&[&CREDENTIALS, &CHALLENGE], "the card asks for no credentials");
    }
    let call = calls::get(probe.tenant(), &calls::new_task_id(), None);
    let Some(outgoing) = probe.outgoing(&call) else { return };
    let asked = probe.send(outgoing.without_credentials()).await;
    let evidence = asked.evidence();
    let Some(error) = asked.refusal().filter(|error| error.asks_for_credentials()) else {
        let fault = format!("a request without credentials gets {}", asked.words(probe.protocol()));
        ledger.fail(&CREDENTIALS, fault, &evidence);
        return ledger.skip(&CHALLENGE, "the server asks nobody for credentials");
    };
    ledger.pass(&CREDENTIALS);
    if !CHALLENGE.is_for(probe.protocol()) {
        return;
    }
    let answered = asked.exchange.answer.as_ref().ok();
    let has_challenge = answered.is_some_and(|answered| answered.headers.contains_key("www-authenticate"));
    let fault = match (error.status, has_challenge) {
        (401, true) => None,
        (401, false) => Some("the 401 has no WWW-Authenticate".to_owned()),
        (status, _) => Some(format!("the refusal is HTTP {status}, not 401")),
    };
    ledger.judge(&CHALLENGE, fault, &evidence);
}

async fn check_extended_card(probe: &Probe<'_>) {
    if !EXTENDED_CARD.is_for(probe.protocol()) {
        return;
    }
    if probe.promises.extended_card(probe.version()) != Some(true) {
        return probe.ledger.skip(&EXTENDED_CARD, "the card promises no extended card");
    }
    let Some(outgoing) = probe.outgoing(&calls::extended_card(probe.tenant())) else { return };
    let asked = probe.send(outgoing.without_credentials()).await;
    match &asked.reading {
        Reading::Result(_) => {
            let fault = "the extended card is given to a client without credentials";
            probe.ledger.fail(&EXTENDED_CARD, fault, &asked.evidence());
        }
        _ => probe.ledger.pass(&EXTENDED_CARD),
    }
}
