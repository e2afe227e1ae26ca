//! The whole check: the card first, then each interface, then all of them against each other.

use anyhow::Context;
use sabir_wire::{Binding, PeerProtocol, ProtocolVersion};

use super::chosen::Chosen;
use super::interface::{CardPlace, Claim, Interface, claims};
use super::ledger::Ledger;
use super::probe::Probe;
use super::report::{InterfaceReport, Report};
use super::rule::{self, Rule, Subject};
use super::rules_card::NoCard;
use super::rules_tasks::Begun;
use super::rules_versions::OffersV03;
use super::selection::Selection;
use super::server::{Access, Promises};
use super::{
    calls, report, rules_access, rules_asking, rules_bindings, rules_capabilities, rules_card, rules_card_interfaces,
    rules_card_security, rules_errors, rules_lists, rules_push, rules_push_delivery, rules_requests, rules_running,
    rules_streams, rules_subscriptions, rules_tasks, rules_versions,
};
use crate::cli::CheckOptions;
use crate::config::Audience;
use crate::process_environment::terminals;
use crate::terminal_text::visible_json;

/// What is printed, and the exit code.
pub struct Outcome {
    pub text: String,
    pub exit_code: u8,
}

const FAULTS: u8 = 1;
const UNREACHABLE: u8 = 3;

pub fn run(options: &CheckOptions, audience: Audience) -> anyhow::Result<Outcome> {
    let selection = Selection::of(&options.only)?;
    if options.list {
        return Ok(Outcome {
            text: report::list(rule::all().filter(|rule| selection.has(rule)), audience),
            exit_code: 0,
        });
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot start")?;
    let outcome = runtime.block_on(check(options, &selection, audience))?;
    let is_json_on_terminal = matches!(audience, Audience::Program) && terminals().stdout;
    Ok(if is_json_on_terminal { Outcome { text: visible_json(&outcome.text), ..outcome } } else { outcome })
}

async fn check(options: &CheckOptions, selection: &Selection<'_>, audience: Audience) -> anyhow::Result<Outcome> {
    let access = Access::new(options)?;
    report::announce(&access.url, options, audience);
    let ledger = Ledger::default();
    let card_client = access.client(std::iter::empty());
    let document = match rules_card::fetch(&access, &card_client, &ledger).await {
        Ok(document) => Some(document),
        Err(NoCard::Unreachable(why) | NoCard::NeedsCredentials(why)) => {
            return Ok(unreachable(&access, &why, audience));
        }
        Err(NoCard::Missing) => None,
    };
    let claims = document.as_ref().map(|document| claims(&document.json)).unwrap_or_default();
    let promises = document.as_ref().map(|document| Promises::of(&document.json)).unwrap_or_default();
    if let Some(document) = &document {
        rules_card::check(document, &ledger);
        rules_card_interfaces::check(&access, document, &claims, &ledger);
        rules_card_security::check(document, &ledger);
        rules_card_security::check_signatures(&access, document, &ledger).await;
    }
    let mut chosen = Chosen::of(options, &access, document.as_ref(), &claims)?;
    if !selection.needs_interfaces() {
        chosen.interfaces.clear();
    }
    let client = access.client(chosen.interfaces.iter().map(|(_, interface)| interface.url.as_str()));
    let mut probes: Vec<Probe<'_>> = Vec::new();
    let mut closed: Vec<InterfaceReport> = Vec::new();
    for (claim, interface) in &chosen.interfaces {
        report::progress(&interface.protocol.to_string(), audience);
        let probe = Probe::new(&access, &promises, &client, interface.clone());
        let probe = check_first(options, probe, claim.as_ref(), &ledger).await;
        match probe {
            Ok(probe) => {
                check_interface(options, selection, &probe, offers_v03(&probe, &claims)).await;
                probes.push(probe);
            }
            Err(report) => closed.push(report),
        }
    }
    report::progress("", audience);
    rules_bindings::check(&ledger, &probes).await;
    let mut canceled = 0;
    for probe in &probes {
        canceled += cancel_rest(probe).await;
    }
    let messages = probes.iter().map(|probe| probe.scene.messages()).sum();
    let mut interfaces: Vec<InterfaceReport> = Vec::new();
    for Probe { interface, ledger, .. } in probes {
        let protocol = interface.protocol;
        let entries = selection.entries(ledger, |rule| rule.is_for(protocol));
        interfaces.push(InterfaceReport { interface, entries, not_checked: None });
    }
    let could_check = !interfaces.is_empty();
    let needs_credentials = closed.iter().find_map(|report| report.not_checked.clone());
    interfaces.append(&mut closed);
    let server = selection.entries(ledger, |rule| rule.subject == Subject::Server);
    let report = Report {
        url: access.url.clone(),
        card: document.map(|document| (document.url, document.json)),
        server,
        interfaces,
        not_checked: chosen.not_checked,
        messages,
        canceled,
    };
    let exit_code = match (report.errors(), could_check, needs_credentials) {
        (1.., _, _) => FAULTS,
        (0, false, Some(_)) => UNREACHABLE,
        (0, _, _) => 0,
    };
    Ok(Outcome { text: report.show(audience), exit_code })
}

fn unreachable(access: &Access, why: &str, audience: Audience) -> Outcome {
    Outcome { text: report::show_unreachable(&access.url, why, audience), exit_code: UNREACHABLE }
}

fn offers_v03(probe: &Probe<'_>, claims: &[Claim]) -> OffersV03 {
    let Interface { url, protocol, .. } = &probe.interface;
    let is_there = claims.iter().any(|claim| {
        let is_same_url = claim.url.trim_end_matches('/') == url.trim_end_matches('/');
        let other = claim.protocol(CardPlace::New);
        let is_older =
            |other: PeerProtocol| other.binding() == protocol.binding() && other.version() != ProtocolVersion::V1_0;
        is_same_url && other.is_some_and(is_older)
    });
    if is_there { OffersV03::Yes } else { OffersV03::No }
}

/// Sends the first message. An error is the report of an interface that cannot be checked.
async fn check_first<'s>(
    options: &CheckOptions,
    probe: Probe<'s>,
    claim: Option<&Claim>,
    ledger: &Ledger,
) -> Result<Probe<'s>, InterfaceReport> {
    let begun = rules_tasks::begin(&probe, &options.message).await;
    match begun {
        Begun::Answers => {
            ledger.pass(&rules_card_interfaces::ANSWERS);
            Ok(probe)
        }
        Begun::NeedsCredentials(why) => {
            let why = match probe.access.has_credentials() {
                true => format!("{why}, and does not take those that it was shown"),
                false => format!("{why}; show them with --bearer or --header"),
            };
            Err(not_checked(probe, why))
        }
        Begun::NotTried(why) => Err(not_checked(probe, why)),
        // A card of 0.1 cannot be told from one of 0.2.
        Begun::Dead(..) if is_perhaps_v01(&probe, claim) => {
            let protocol = PeerProtocol::new(ProtocolVersion::V0_1, Binding::JsonRpc).expect("0.1 has JSON-RPC");
            let Probe { access, promises, client, interface, .. } = probe;
            let probe = Probe::new(access, promises, client, Interface { protocol, ..interface });
            Box::pin(check_first(options, probe, claim, ledger)).await
        }
        Begun::Dead(fault, evidence) => {
            let fault = format!("{} at {}: {fault}", probe.protocol(), probe.interface.url);
            ledger.fail(&rules_card_interfaces::ANSWERS, fault.clone(), &evidence);
            Err(not_checked(probe, fault))
        }
    }
}

fn is_perhaps_v01(probe: &Probe<'_>, claim: Option<&Claim>) -> bool {
    probe.version() == ProtocolVersion::V0_2 && claim.is_some_and(|claim| claim.version.is_none())
}

fn not_checked(probe: Probe<'_>, why: String) -> InterfaceReport {
    InterfaceReport { interface: probe.interface, entries: Vec::new(), not_checked: Some(why) }
}

async fn check_interface(options: &CheckOptions, selection: &Selection<'_>, probe: &Probe<'_>, offers_v03: OffersV03) {
    let message = options.message.as_str();
    let wants = |rules: &[&[&Rule]]| selection.wants(rules);
    if wants(&[rules_tasks::RULES, rules_lists::RULES]) {
        rules_tasks::check(probe, message).await;
    }
    if wants(&[rules_requests::RULES]) {
        rules_requests::check(probe, message).await;
    }
    if wants(&[rules_errors::RULES]) {
        rules_errors::check(probe, message).await;
    }
    if wants(&[rules_versions::RULES]) {
        rules_versions::check(probe, offers_v03).await;
    }
    if wants(&[rules_access::RULES]) {
        rules_access::check(probe).await;
    }
    if wants(&[rules_capabilities::RULES]) {
        rules_capabilities::check(probe, message).await;
    }
    if wants(&[rules_streams::RULES, rules_subscriptions::RULES, rules_capabilities::RULES]) {
        rules_streams::check(probe, message).await;
    }
    if wants(&[rules_running::RULES, rules_streams::RULES, rules_subscriptions::RULES]) {
        rules_running::check(probe, options.slow.as_deref(), message).await;
    }
    if wants(&[rules_asking::RULES, rules_push::RULES, rules_tasks::RULES, rules_capabilities::RULES]) {
        rules_asking::begin(probe, options.ask.as_deref()).await;
    }
    if wants(&[rules_push::RULES, rules_push_delivery::RULES, rules_capabilities::RULES]) {
        rules_push::check(probe).await;
        rules_push_delivery::check(probe, message).await;
    }
    if wants(&[rules_asking::RULES, rules_tasks::RULES]) {
        rules_asking::check(probe, message).await;
        let talkative = probe.scene.talkative.borrow().clone();
        if let Some(task) = talkative.or_else(|| probe.scene.finished()) {
            rules_tasks::check_history(probe, &task).await;
        }
    }
    if wants(&[rules_lists::RULES]) {
        rules_lists::check(probe).await;
    }
    // What a server did not do was not needed for what it offers.
    for rule in rule::all().filter(|rule| rule.is_for(probe.protocol()) && !probe.ledger.is_judged(rule)) {
        probe.ledger.skip(rule, "the server has shown nothing that it could be judged by");
    }
}

/// Cancels what this check started and nobody would finish.
async fn cancel_rest(probe: &Probe<'_>) -> usize {
    let mut canceled = 0;
    for task in probe.scene.unfinished() {
        let asked = probe.ask(&calls::cancel(probe.tenant(), &task)).await;
        canceled += usize::from(asked.is_some_and(|asked| asked.task().is_some()));
    }
    canceled
}
