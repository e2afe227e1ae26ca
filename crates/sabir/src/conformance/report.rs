//! The report: lines for people, one JSON object for programs.

use std::io::{self, IsTerminal, Write};

use serde_json::{Value, json};

use super::interface::Interface;
use super::ledger::{Entry, Finding, Verdict};
use super::rule::{Level, Rule};
use crate::cli::CheckOptions;
use crate::config::Audience;
use crate::terminal_text::visible;

/// Of a card with hundreds of interfaces, a person sees so many lines.
const MOST_NOT_CHECKED: usize = 10;

pub struct Report {
    pub url: String,
    /// Where it was found, and what it says.
    pub card: Option<(String, Value)>,
    pub server: Vec<Entry>,
    pub interfaces: Vec<InterfaceReport>,
    /// Interfaces of the card that are not tried, and why.
    pub not_checked: Vec<String>,
    /// How many messages were sent to the agent.
    pub messages: usize,
    /// How many tasks were canceled at the end.
    pub canceled: usize,
}

pub struct InterfaceReport {
    pub interface: Interface,
    pub entries: Vec<Entry>,
    /// Why it could not be checked.
    pub not_checked: Option<String>,
}

/// An entry and where it belongs; no interface: the server as a whole.
type Placed<'r> = (Option<&'r Interface>, &'r Entry);

impl Report {
    pub fn errors(&self) -> usize {
        self.count(Level::Error)
    }

    pub fn show(&self, audience: Audience) -> String {
        match audience {
            Audience::Program => format!("{}\n", self.object()),
            Audience::Person => self.lines(),
        }
    }

    fn placed(&self) -> impl Iterator<Item = Placed<'_>> {
        let of_server = self.server.iter().map(|entry| (None, entry));
        let of_interfaces =
            self.interfaces.iter().flat_map(|one| one.entries.iter().map(move |entry| (Some(&one.interface), entry)));
        of_server.chain(of_interfaces)
    }

    fn findings(&self) -> Vec<(Option<&Interface>, &'static Rule, &Finding)> {
        let mut found: Vec<_> = Vec::new();
        for (interface, Entry { rule, verdict }) in self.placed() {
            if let Verdict::Failed(finding) = verdict {
                found.push((interface, *rule, finding));
            }
        }
        found.sort_by_key(|(_, _, finding)| finding.level);
        found
    }

    fn count(&self, level: Level) -> usize {
        self.findings().iter().filter(|(_, _, finding)| finding.level == level).count()
    }

    fn object(&self) -> Value {
        let place = |interface: Option<&Interface>| match interface {
            Some(interface) => json!({
                "version": interface.protocol.version().number(),
                "binding": interface.protocol.binding().name(),
                "url": interface.url,
            }),
            None => Value::Null,
        };
        let findings = self.findings().into_iter().map(|(interface, rule, finding)| {
            json!({
                "rule": rule.id,
                "level": finding.level.name(),
                "interface": place(interface),
                "fault": finding.fault,
                "section": section(rule, interface),
                "says": rule.says,
                "tried": finding.evidence.tried,
                "got": finding.evidence.got,
                "remedy": rule.remedy,
                "times": finding.times,
                "known_of": finding.known,
            })
        });
        let findings: Vec<Value> = findings.collect();
        let mut passed = Vec::new();
        let mut skipped = Vec::new();
        for (interface, entry) in self.placed() {
            match &entry.verdict {
                Verdict::Passed => passed.push(json!({"rule": entry.rule.id, "interface": place(interface)})),
                Verdict::Skipped(why) => {
                    skipped.push(json!({"rule": entry.rule.id, "interface": place(interface), "why": why}));
                }
                Verdict::Failed(_) => {}
            }
        }
        let interfaces = self.interfaces.iter().map(|one| {
            let mut object = place(Some(&one.interface));
            object["not_checked"] = json!(one.not_checked);
            object
        });
        let interfaces: Vec<Value> = interfaces.collect();
        json!({
            "url": self.url,
            "card": self.card.as_ref().map(|(url, _)| url),
            "agent": self.card.as_ref().map(|(_, card)| &card["name"]),
            "errors": self.count(Level::Error),
            "warnings": self.count(Level::Warning),
            "notes": self.count(Level::Note),
            "messages_sent": self.messages,
            "tasks_canceled": self.canceled,
            "interfaces": interfaces,
            "not_checked": self.not_checked,
            "findings": findings,
            "passed": passed,
            "skipped": skipped,
        })
    }

    fn lines(&self) -> String {
        let mut text = Lines::default();
        if let Some((url, card)) = &self.card {
            text.line(&format!("{} ({url})", card["name"].as_str().unwrap_or("an agent without a name")));
        }
        text.line(&tally("the server and its card", &self.server));
        for one in &self.interfaces {
            let name = format!("{} at {}", one.interface.protocol, one.interface.url);
            match &one.not_checked {
                Some(why) => text.line(&format!("{name}: not checked, {why}")),
                None => text.line(&tally(&name, &one.entries)),
            }
        }
        self.not_checked.iter().take(MOST_NOT_CHECKED).for_each(|why| text.line(&format!("not checked: {why}")));
        if let more @ 1.. = self.not_checked.len().saturating_sub(MOST_NOT_CHECKED) {
            text.line(&format!("not checked: {more} more interfaces of the card, which --json lists"));
        }
        for (interface, rule, finding) in self.findings() {
            text.line("");
            let place = interface.map(|interface| format!(", in {}", interface.protocol)).unwrap_or_default();
            let times = if finding.times > 1 { format!(" ({} times)", finding.times) } else { String::new() };
            text.line(&format!("{}  {}{place}: {}{times}", finding.level.name(), rule.id, finding.fault));
            text.line(&format!("  spec   {}: {}", section(rule, interface), rule.says));
            text.line(&format!("  tried  {}", finding.evidence.tried));
            text.line(&format!("  got    {}", finding.evidence.got));
            text.line(&format!("  mend   {}", rule.remedy));
            if let Some(whose) = finding.known {
                text.line(&format!("  known  servers of {whose} do the same"));
            }
        }
        self.skipped_lines(&mut text);
        text.line("");
        text.line(&self.summary());
        text.0
    }

    /// One line for each reason.
    fn skipped_lines(&self, text: &mut Lines) {
        let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
        for (_, entry) in self.placed() {
            let Verdict::Skipped(why) = &entry.verdict else { continue };
            let place = match reasons.iter().position(|(known, _)| known == why) {
                Some(place) => place,
                None => {
                    reasons.push((why, Vec::new()));
                    reasons.len() - 1
                }
            };
            if !reasons[place].1.contains(&entry.rule.id) {
                reasons[place].1.push(entry.rule.id);
            }
        }
        if !reasons.is_empty() {
            text.line("");
        }
        for (why, rules) in reasons {
            text.line(&format!("skipped, since {why}: {}", rules.join(", ")));
        }
    }

    fn summary(&self) -> String {
        let number = |level: Level| {
            let count = self.count(level);
            format!("{count} {}{}", level.name(), if count == 1 { "" } else { "s" })
        };
        let canceled = if self.canceled > 0 { format!(", {} tasks canceled", self.canceled) } else { String::new() };
        let levels = [Level::Error, Level::Warning, Level::Note].map(number).join(", ");
        format!("{levels}; {} messages sent{canceled}", self.messages)
    }
}

/// All rules, for `--list`.
pub fn list(rules: impl Iterator<Item = &'static Rule>, audience: Audience) -> String {
    match audience {
        Audience::Program => {
            let rules = rules.map(|rule| {
                json!({
                    "rule": rule.id, "level": rule.level.name(), "for": rule.scope(), "sections": rule.sections.list(),
                    "says": rule.says, "remedy": rule.remedy,
                })
            });
            format!("{}\n", Value::from_iter(rules))
        }
        Audience::Person => {
            let mut text = Lines::default();
            for rule in rules {
                text.line(&format!("{:<28} {:<8} {}", rule.id, rule.level.name(), rule.says));
                text.line(&format!("{:<37} {} ({})", "", rule.sections.list(), rule.scope()));
            }
            text.0
        }
    }
}

/// What a server that cannot be asked is told of.
pub fn show_unreachable(url: &str, why: &str, audience: Audience) -> String {
    match audience {
        Audience::Program => format!("{}\n", json!({"url": url, "unreachable": why})),
        Audience::Person => format!("{}\n", visible(why)),
    }
}

/// Says before it begins what it is about to do.
pub fn announce(url: &str, options: &CheckOptions, audience: Audience) {
    if matches!(audience, Audience::Person) {
        let text = visible(&format!(
            "checking {url}: sends short messages ({:?}) and cancels what it starts",
            options.message
        ));
        eprintln!("{text}");
    }
}

/// One line on a terminal that is written over; an empty text removes it.
pub fn progress(text: &str, audience: Audience) {
    if matches!(audience, Audience::Person) && io::stderr().is_terminal() {
        let text = if text.is_empty() { String::new() } else { format!("checking {text} …") };
        let _ = write!(io::stderr(), "\r\x1b[K{}", visible(&text));
    }
}

/// The section of the version that was checked. The server as a whole is judged by all versions.
fn section(rule: &Rule, interface: Option<&Interface>) -> String {
    let own = interface.and_then(|interface| rule.sections.of(interface.protocol.version()));
    own.unwrap_or_else(|| rule.sections.list())
}

fn tally(name: &str, entries: &[Entry]) -> String {
    let count = |is_wanted: fn(&Verdict) -> bool| entries.iter().filter(|entry| is_wanted(&entry.verdict)).count();
    let kept = count(|verdict| matches!(verdict, Verdict::Passed));
    let broken = count(|verdict| matches!(verdict, Verdict::Failed(_)));
    let skipped = count(|verdict| matches!(verdict, Verdict::Skipped(_)));
    format!("{name}: {kept} rules kept, {broken} broken, {skipped} skipped")
}

/// Lines for a person; what strangers wrote cannot break out of them.
#[derive(Default)]
struct Lines(String);

impl Lines {
    fn line(&mut self, text: &str) {
        self.0 += visible(text).trim_end();
        self.0.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use sabir_wire::{Binding, PeerProtocol, ProtocolVersion};

    use super::super::evidence::Evidence;
    use super::super::ledger::Ledger;
    use super::super::rules_card::{CACHING, FOUND};
    use super::super::rules_requests::{INVALID_REQUEST, UNKNOWN_METHOD};
    use super::super::rules_streams::FIRST;
    use super::*;

    fn report() -> Report {
        let of = |ledger: Ledger| ledger.into_entries(super::super::rule::all());
        let evidence = Evidence::new("POST http://a/ {}", "HTTP 200: \u{1b}[2J");
        let server = Ledger::default();
        server.pass(&FOUND);
        server.fail(&CACHING, "the card comes with no etag", &evidence);
        let protocol = PeerProtocol::new(ProtocolVersion::V0_3, Binding::JsonRpc).unwrap();
        let ledger = Ledger::of_interface(protocol);
        ledger.fail(&UNKNOWN_METHOD, "an unknown method gets 7", &evidence);
        ledger.fail(&UNKNOWN_METHOD, "an unknown method gets 8", &evidence);
        ledger.fail(&INVALID_REQUEST, "it is served", &evidence);
        ledger.skip(&FIRST, "there is no stream");
        let interface = Interface { url: "http://a/".to_owned(), protocol, tenant: None };
        Report {
            url: "http://a".to_owned(),
            card: Some(("http://a/card.json".to_owned(), json!({"name": "Agent"}))),
            server: of(server),
            interfaces: vec![InterfaceReport { interface, entries: of(ledger), not_checked: None }],
            not_checked: vec!["supportedInterfaces[1]: its URL cannot be used".to_owned()],
            messages: 3,
            canceled: 1,
        }
    }

    #[test]
    fn people_read_the_worst_first_and_how_to_mend_it() {
        let expected = "\
Agent (http://a/card.json)
the server and its card: 1 rules kept, 1 broken, 0 skipped
0.3 over JSONRPC at http://a/: 0 rules kept, 2 broken, 1 skipped
not checked: supportedInterfaces[1]: its URL cannot be used

error  rpc.unknown-method, in 0.3 over JSONRPC: an unknown method gets 7 (2 times)
  spec   0.3 §8.1: a method that does not exist is answered with -32601
  tried  POST http://a/ {}
  got    HTTP 200: \u{fffd}[2J
  mend   answer unknown methods with -32601 (Method not found)

warning  card.caching: the card comes with no etag
  spec   1.0 §8.6.1: the card is served with Cache-Control (max-age) and an ETag
  tried  POST http://a/ {}
  got    HTTP 200: \u{fffd}[2J
  mend   send Cache-Control: max-age=… and an ETag made of the card's content or version

warning  rpc.invalid-request, in 0.3 over JSONRPC: it is served
  spec   0.3 §6.11.1, §8.1: a request without \"jsonrpc\": \"2.0\" or without a method is answered with -32600
  tried  POST http://a/ {}
  got    HTTP 200: \u{fffd}[2J
  mend   check the envelope before anything else, and answer with -32600 (Invalid Request)
  known  servers of the Python SDK before 1.0 do the same

skipped, since there is no stream: stream.first

1 error, 2 warnings, 0 notes; 3 messages sent, 1 tasks canceled
";
        assert_eq!(report().show(Audience::Person), expected);
    }

    #[test]
    fn programs_get_one_object() {
        let shown: Value = serde_json::from_str(&report().show(Audience::Program)).unwrap();
        assert_eq!((&shown["errors"], &shown["warnings"], &shown["messages_sent"]), (&json!(1), &json!(2), &json!(3)));
        let finding = &shown["findings"][0];
        assert_eq!(finding["interface"], json!({"version": "0.3", "binding": "JSONRPC", "url": "http://a/"}));
        assert_eq!((&finding["section"], &finding["times"]), (&json!("0.3 §8.1"), &json!(2)));
        assert_eq!(shown["skipped"][0]["why"], "there is no stream");
        assert_eq!(shown["passed"], json!([{"rule": "card.found", "interface": null}]));
    }
}
