//! The whole check: the card first, then each interface, then all of them against each other.
//!
//! When the time is over, what is left is not tried: its rules are skipped, its interfaces not checked. Tasks that were started
//! are canceled all the same.

use std::time::Duration;

use anyhow::Context;
use sabir_wire::{Binding, PeerProtocol, ProtocolVersion};

use super::chosen::Chosen;
use super::deadline::Deadline;
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
const OUT_OF_TIME: u8 = 5;

/// For cancelling what was started, when all else is done.
const CLEANUP: Duration = Duration::from_secs(120);

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
    let deadline = Deadline::new(options.max_time);
    let ledger = Ledger::default();
    let card_client = access.client(std::iter::empty());
    let document = match deadline.within(rules_card::fetch(&access, &card_client, &ledger)).await {
        Some(Ok(document)) => Some(document),
        Some(Err(NoCard::Unreachable(why) | NoCard::NeedsCredentials(why))) => {
            return Ok(unreachable(&access, &why, audience));
        }
        Some(Err(NoCard::Missing)) => None,
        None => return Ok(unreachable(&access, &format!("there is no card yet: {}", deadline.reason()), audience)),
    };
    let claims = document.as_ref().map(|document| claims(&document.json)).unwrap_or_default();
    let promises = document.as_ref().map(|document| Promises::of(&document.json)).unwrap_or_default();
    if let Some(document) = &document {
        rules_card::check(document, &ledger);
        rules_card_interfaces::check(&access, document, &claims, &ledger);
        rules_card_security::check(document, &ledger);
        let checking = rules_card_security::check_signatures(&access, document, &ledger);
        if deadline.within(checking).await.is_none() {
            ledger.skip(&rules_card_security::SIGNATURES, deadline.reason());
        }
    }
    let mut chosen = Chosen::of(options, &access, document.as_ref(), &claims)?;
    if !selection.needs_interfaces() {
        chosen.interfaces.clear();
    }
    let client = access.client(chosen.interfaces.iter().map(|(_, interface)| interface.url.as_str()));
    let mut probes: Vec<Probe<'_>> = Vec::new();
    let mut closed: Vec<(Probe<'_>, String)> = Vec::new();
    for (claim, interface) in &chosen.interfaces {
        report::progress(&interface.protocol.to_string(), audience);
        let mut probe = Probe::new(&access, &promises, &client, interface.clone());
        match deadline.within(check_first(options, &mut probe, claim.as_ref(), &ledger)).await {
            Some(Ok(())) => {
                let checking = check_interface(options, selection, &probe, offers_v03(&probe, &claims));
                let why = match deadline.within(checking).await {
                    // What a server did not do was not needed for what it offers.
                    Some(()) => "the server has shown nothing that it could be judged by".to_owned(),
                    None => deadline.reason(),
                };
                skip_rest(&probe, &why);
                probes.push(probe);
            }
            Some(Err(why)) => closed.push((probe, why)),
            None => closed.push((probe, deadline.reason())),
        }
    }
    report::progress("", audience);
    if deadline.within(rules_bindings::check(&ledger, &probes)).await.is_none() {
        rules_bindings::RULES.iter().for_each(|rule| ledger.skip(rule, deadline.reason()));
    }
    // Asked before the tasks are canceled: that is no part of the check.
    let is_out_of_time = deadline.is_over();
    let canceled = cancel_all(probes.iter().chain(closed.iter().map(|(probe, _)| probe))).await;
    let messages = probes.iter().map(|probe| probe.scene.messages()).sum();
    let mut interfaces: Vec<InterfaceReport> = Vec::new();
    for Probe { interface, ledger, .. } in probes {
        let protocol = interface.protocol;
        let entries = selection.entries(ledger, |rule| rule.is_for(protocol) || rule.is_skipped_for(protocol));
        interfaces.push(InterfaceReport { interface, entries, not_checked: None });
    }
    let could_check = !interfaces.is_empty();
    let is_closed = !closed.is_empty();
    interfaces.extend(closed.into_iter().map(|(probe, why)| not_checked(probe, why)));
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
    let exit_code = match report.errors() {
        1.. => FAULTS,
        0 if is_out_of_time => OUT_OF_TIME,
        0 if is_closed && !could_check => UNREACHABLE,
        0 => 0,
    };
    Ok(Outcome { text: report.show(audience), exit_code })
}

fn unreachable(access: &Access, why: &str, audience: Audience) -> Outcome {
    Outcome { text: report::show_unreachable(&access.url, why, audience), exit_code: UNREACHABLE }
}

fn offers_v03(probe: &Probe<'_>, claims: &[Claim]) -> OffersV03 {
    let Interface { url, protocol, .. } = &probe.interface;
    let is_there = claims.iter().any(|claim| {
        let is_same_url = claim.absolute_url(probe.access).trim_end_matches('/') == url.trim_end_matches('/');
        let other = claim.protocol(CardPlace::New);
        let is_older =
            |other: PeerProtocol| other.binding() == protocol.binding() && other.version() != ProtocolVersion::V1_0;
        is_same_url && other.is_some_and(is_older)
    });
    if is_there { OffersV03::Yes } else { OffersV03::No }
}

/// Sends the first message. An error says why the interface cannot be checked.
async fn check_first(
    options: &CheckOptions,
    probe: &mut Probe<'_>,
    claim: Option<&Claim>,
    ledger: &Ledger,
) -> Result<(), String> {
    let begun = rules_tasks::begin(probe, &options.message).await;
    match begun {
        Begun::Answers => {
            ledger.pass(&rules_card_interfaces::ANSWERS);
            Ok(())
        }
        Begun::NeedsCredentials(why) => {
            let why = match probe.access.has_credentials() {
                true if !probe.access.is_origin_of(&probe.interface.url) => {
                    format!("{why}; those of the command line are shown at {} alone", probe.access.url)
                }
                true => format!("{why}, and does not take those that it was shown"),
                false => format!("{why}; show them with --bearer or --header"),
            };
            Err(why)
        }
        Begun::NotTried(why) => Err(why),
        // A card of 0.1 cannot be told from one of 0.2.
        Begun::Dead(..) if is_perhaps_v01(probe, claim) => {
            let protocol = PeerProtocol::new(ProtocolVersion::V0_1, Binding::JsonRpc).expect("0.1 has JSON-RPC");
            let interface = Interface { protocol, ..probe.interface.clone() };
            *probe = Probe::new(probe.access, probe.promises, probe.client, interface);
            Box::pin(check_first(options, probe, claim, ledger)).await
        }
        Begun::Dead(fault, evidence) => {
            let fault = format!("{} at {}: {fault}", probe.protocol(), probe.interface.url);
            ledger.fail(&rules_card_interfaces::ANSWERS, fault.clone(), &evidence);
            Err(fault)
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
}

fn skip_rest(probe: &Probe<'_>, why: &str) {
    for rule in rule::all().filter(|rule| rule.is_skipped_for(probe.protocol())) {
        probe.ledger.skip(rule, "it is about HTTP, JSON or server-sent events, of which gRPC shows nothing");
    }
    for rule in rule::all().filter(|rule| rule.is_for(probe.protocol()) && !probe.ledger.is_judged(rule)) {
        probe.ledger.skip(rule, why);
    }
}

/// Cancels all that is left, as long as that does not take for ever.
async fn cancel_all<'p>(probes: impl Iterator<Item = &'p Probe<'p>>) -> usize {
    let mut canceled = 0;
    let canceling = async {
        for probe in probes {
            canceled += cancel_rest(probe).await;
        }
    };
    let _ = tokio::time::timeout(CLEANUP, canceling).await;
    canceled
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
