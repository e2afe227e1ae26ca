//! `sabir check` on servers that keep the rules, and on servers that break one each.

use std::collections::BTreeSet;
use std::net::TcpListener;
use std::process::{Command, Output, Stdio};
use std::sync::Mutex;
use std::thread;

use sabir_testkit::remote::{Faults, PlantedFault, RemoteAgent, RemoteProtocol};
use serde_json::{Value, json};

use crate::SABIR;
use crate::client_commands::peer_server::{Answer, PeerServer};
use crate::server_fixture::ServerFixture;

mod grpc;
mod tampering_proxy;

/// The words of the demo agent, which the remote agent of the tests knows too.
const WORDS: [&str; 4] = ["--slow", "slow 6", "--ask", "ask which?"];

fn run(arguments: &[&str]) -> Output {
    Command::new(SABIR)
        .arg("check")
        .args(arguments)
        .env_clear()
        .stdin(Stdio::null())
        .output()
        .expect("the program runs")
}

fn check(url: &str, more: &[&str]) -> (Option<i32>, Value) {
    let arguments: Vec<&str> =
        [url].into_iter().chain(WORDS).chain(["--timeout", "20s"]).chain(more.iter().copied()).collect();
    let output = run(&arguments);
    let report = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| {
        panic!("{error}: {} {}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
    });
    (output.status.code(), report)
}

/// `error rule: fault`, of each finding.
fn findings(report: &Value) -> Vec<String> {
    let text = |finding: &Value, name: &str| finding[name].as_str().unwrap_or_default().to_owned();
    let line =
        |finding: &Value| format!("{} {}: {}", text(finding, "level"), text(finding, "rule"), text(finding, "fault"));
    report["findings"].as_array().expect("findings").iter().map(line).collect()
}

fn rules(report: &Value, list: &str) -> BTreeSet<String> {
    let entries = report[list].as_array().expect("a list");
    entries.iter().map(|entry| entry["rule"].as_str().unwrap().to_owned()).collect()
}

/// A server that takes the webhooks of the check.
fn sabir_with_webhooks() -> ServerFixture {
    ServerFixture::configured("[push]\nallow_hosts = [\"example.com\", \"sabir-check.invalid\", \"127.0.0.1\"]\n")
}

#[test]
fn sabir_keeps_every_rule_in_every_version_and_binding() {
    let fixture = sabir_with_webhooks();
    let url = format!("http://{}", fixture.server.address);
    for (path, more, interfaces) in [
        ("", &[][..], 8),
        ("/agents/demo", &[], 8),
        ("", &["--a2a-version", "1.0", "--transport", "http+json"], 1),
        ("", &["--transport", "grpc"], 2),
        ("", &["--a2a-version", "0.2"], 3),
        ("", &["--a2a-version", "0.1"], 3),
    ] {
        let (code, report) = check(&format!("{url}{path}"), more);
        assert_eq!(findings(&report), Vec::<String>::new(), "{path} {more:?}");
        assert_eq!(code, Some(0), "{path} {more:?}");
        assert_eq!(report["interfaces"].as_array().unwrap().len(), interfaces, "{path} {more:?}");
        assert_eq!(report["not_checked"], serde_json::json!([]));
    }
    let (_, report) = check(&url, &[]);
    let is_about_text = |entry: &&Value| entry["why"].as_str().unwrap().starts_with("it is about HTTP, JSON or");
    let (about_text, not_offered): (Vec<&Value>, Vec<&Value>) =
        report["skipped"].as_array().unwrap().iter().partition(is_about_text);
    assert!(about_text.iter().all(|entry| entry["interface"]["binding"] == "GRPC"), "{about_text:#?}");
    let not_offered: BTreeSet<String> =
        not_offered.iter().map(|entry| entry["rule"].as_str().unwrap().to_owned()).collect();
    // Whatever this server does not offer, and nothing else.
    let expected = [
        "access.challenge",
        "access.credentials",
        "access.extended-card",
        "capability.required-extension",
        "card.security-requirements",
        "card.security-schemes",
        "card.signatures",
        "stream.one-message",
        "version.missing",
    ];
    assert_eq!(not_offered, expected.map(str::to_owned).into());
    let everything: BTreeSet<String> = rules(&report, "skipped").union(&rules(&report, "passed")).cloned().collect();
    let listed: Value = serde_json::from_slice(&run(&["--list"]).stdout).unwrap();
    assert_eq!(everything.len(), listed.as_array().unwrap().len());
}

#[test]
fn a_server_with_credentials_and_a_signed_card_keeps_the_rules_about_them() {
    let made: Value = serde_json::from_slice(
        &Command::new(SABIR).args(["token", "new", "alice"]).env_clear().output().unwrap().stdout,
    )
    .unwrap();
    let key: Value = serde_json::from_slice(
        &Command::new(SABIR).args(["key", "new", "--card"]).env_clear().output().unwrap().stdout,
    )
    .unwrap();
    let (token, hash) = (made["token"].as_str().unwrap(), made["hash"].as_str().unwrap());
    let fixture = ServerFixture::with(|options| {
        let toml = format!("[[auth.token]]\nsubject = \"alice\"\nhash = \"{hash}\"\n");
        std::fs::write(options.folder.join("sabir.toml"), toml).unwrap();
        options.variable("SABIR_CARD_SIGNING_KEY", key["key"].as_str().unwrap())
    });
    let url = format!("http://{}", fixture.server.address);
    let (code, report) = check(&url, &["--bearer", token]);
    assert_eq!((findings(&report), code), (Vec::new(), Some(0)));
    let passed = rules(&report, "passed");
    for rule in [
        "access.credentials",
        "access.challenge",
        "access.extended-card",
        "capability.extended-card",
        "card.security-schemes",
        "card.security-requirements",
        "card.signatures",
    ] {
        assert!(passed.contains(rule), "{rule}: {}", report["skipped"]);
    }
    // Nobody is let in without credentials, so nothing can be checked but the card.
    for more in [&[][..], &["--bearer", "wrong"]] {
        let (code, report) = check(&url, more);
        assert_eq!((findings(&report), code), (Vec::new(), Some(3)), "{more:?}");
        for (place, status) in [(0, "HTTP 401"), (2, "gRPC UNAUTHENTICATED")] {
            let why = report["interfaces"][place]["not_checked"].as_str().unwrap();
            assert!(why.contains(&format!("asks for credentials ({status})")), "{why}");
        }
    }
}

#[test]
fn a_server_without_fault_is_clean_in_every_protocol() {
    for protocol in RemoteProtocol::ALL {
        for agent in [RemoteAgent::start(protocol), RemoteAgent::builder(protocol).offering_push().start()] {
            let (code, report) = check(&agent.url(), &[]);
            assert_eq!((findings(&report), code), (Vec::new(), Some(0)), "{protocol:?}");
            let checked = &report["interfaces"][0];
            assert_eq!(checked["version"], protocol.version(), "{report}");
            assert_eq!(checked["binding"], protocol.binding().on_card(), "{report}");
            // What the check has started is over.
            for task in agent.tasks().all() {
                assert!(task.state.is_terminal(), "{protocol:?}: {task:?}");
            }
        }
    }
    let agent = RemoteAgent::builder(RemoteProtocol::V1JsonRpc).with_tenant("acme").with_bearer("secret").start();
    let (code, report) = check(&agent.url(), &["--header", "Authorization: Bearer secret"]);
    assert_eq!((findings(&report), code), (Vec::new(), Some(0)));
    let agent = RemoteAgent::builder(RemoteProtocol::V1HttpJson).speaking(RemoteProtocol::V1JsonRpc).start();
    let (code, report) = check(&agent.url(), &[]);
    assert_eq!((findings(&report), code), (Vec::new(), Some(0)));
    assert!(rules(&report, "passed").contains("bindings.same-tasks"), "{report}");
}

/// The rule that a planted fault breaks.
fn rule_of(fault: PlantedFault) -> &'static str {
    use PlantedFault::*;
    match fault {
        CardWithoutName | CardWithoutSkills | CardWithoutOutputModes => "card.members",
        CardSkillWithoutTags => "card.skills",
        CardWithoutProtocolVersion => "card.interface-version",
        CardDeadInterface => "card.interface-answers",
        CardContentType => "card.content-type",
        CardAtOldPath => "card.found",
        StreamingRefused => "capability.streaming",
        PushRefused => "capability.push",
        PushConfigLost => "push.get",
        PushDeleteNotIdempotent => "push.delete-twice",
        PushNeverDelivered => "push.delivered",
        ExtendedCardMissing => "capability.extended-card",
        ExtendedCardOpen => "access.extended-card",
        UnknownMethodCode => "rpc.unknown-method",
        InvalidJsonCode => "errors.parse",
        InvalidRequestAccepted => "rpc.invalid-request",
        InvalidParamsCode => "errors.invalid-params",
        IdNotEchoed => "rpc.id",
        IdTypeChanged => "rpc.id-type",
        ResultAndError => "rpc.result-or-error",
        ResponseWithoutJsonrpc => "rpc.jsonrpc",
        AnswerContentType => "http.content-type",
        TaskNotFoundCode => "errors.task-not-found",
        CancelFinishedAccepted | CancelFinishedCode => "errors.cancel-finished",
        VersionAccepted | VersionCode => "version.unsupported",
        ErrorWithoutInfo => "errors.error-info",
        ErrorDataNotArray => "errors.details",
        ErrorWithoutMessage => "errors.message",
        ErrorWithStatus200 => "http.error-status",
        FinishedTaskMessageAccepted => "errors.message-to-finished",
        UnknownTaskMessageAccepted => "errors.message-to-unknown",
        ContextMismatchAccepted => "errors.context-mismatch",
        ContextReplaced => "task.context-kept",
        BlockingReturnsEarly => "send.blocking",
        ReturnImmediatelyIgnored => "send.immediate",
        GetAfterSendNotFound => "get.task",
        HistoryTooLong => "history.limit",
        HistoryZeroIgnored => "history.zero",
        TaskWithoutContext => "task.context",
        TimestampWithoutZone => "objects.timestamps",
        ForeignStateNames => "objects.enums",
        SnakeCaseMember => "objects.names",
        ArtifactWithoutId | ArtifactWithoutParts | MessageWithoutId => "objects.required",
        SendResultNotWrapped => "send.result",
        ResultWithoutKind => "objects.kind",
        StreamArtifactFirst => "stream.first",
        StreamWithoutEnd => "stream.terminal",
        StreamAfterEnd => "stream.after-end",
        StreamStaysOpen => "stream.closes",
        AppendOnFirstChunk => "stream.append",
        StreamContentType => "stream.content-type",
        StreamEnvelope => "stream.envelope",
        StreamForeignTask => "stream.same-task",
        StreamWithoutFinal => "stream.final",
        SubscribeWithoutSnapshot => "subscribe.first",
        SubscribeFinishedAccepted => "subscribe.finished",
        ListPageSizeIgnored => "list.page-size",
        ListPageTokenIgnored => "list.paging",
        ListWithoutNextToken | ListWithoutTotalSize => "list.members",
        ListOldestFirst => "list.order",
        ListWithArtifacts => "list.artifacts",
        ListContextIgnored => "list.context",
        ListBadPageSizeAccepted => "list.page-size-range",
    }
}

/// Faults that are warnings: a SHOULD, or something that servers of official SDKs do as well.
fn is_warning(fault: PlantedFault, protocol: RemoteProtocol) -> bool {
    use PlantedFault::*;
    match fault {
        ListBadPageSizeAccepted => true,
        TaskWithoutContext => protocol.is_v1(),
        ErrorWithoutInfo => protocol == RemoteProtocol::V1JsonRpc,
        InvalidRequestAccepted | InvalidParamsCode | BlockingReturnsEarly | ReturnImmediatelyIgnored => {
            !protocol.is_v1()
        }
        _ => false,
    }
}

#[test]
fn each_planted_fault_is_found_and_nothing_else() {
    let cases = PlantedFault::ALL.iter().flat_map(|fault| fault.protocols().iter().map(|protocol| (*fault, *protocol)));
    let cases = Mutex::new(cases);
    let next = || cases.lock().unwrap().next();
    // Most of the time is spent with waiting for what does not come.
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                while let Some((fault, protocol)) = next() {
                    check_planted(fault, protocol);
                }
            });
        }
    });
}

fn check_planted(fault: PlantedFault, protocol: RemoteProtocol) {
    let agent = RemoteAgent::planted(protocol, fault);
    let (code, report) = check(&agent.url(), &[]);
    let found = findings(&report);
    let context = format!("{} in {protocol:?}: {found:#?}", fault.name());
    let level = if is_warning(fault, protocol) { "warning" } else { "error" };
    assert_eq!(found.len(), 1, "{context}");
    assert!(found[0].starts_with(&format!("{level} {}: ", rule_of(fault))), "{context}");
    assert_eq!(code, Some(if level == "error" { 1 } else { 0 }), "{context}");
    let finding = &report["findings"][0];
    for member in ["section", "says", "tried", "got", "remedy"] {
        assert!(finding[member].as_str().is_some_and(|text| !text.is_empty()), "{member}: {finding}");
    }
}

/// What servers may do, and do: nothing of it is a fault.
#[test]
fn what_the_specification_leaves_open_is_no_fault() {
    for fault in [
        "event-ids=opaque",
        "line-end=crlf",
        "line-end=cr",
        "comments",
        "event-lines",
        "multi-line-data",
        "byte-order-mark",
        "split=3",
        "no-streaming",
        "busy=2",
    ] {
        for protocol in [RemoteProtocol::V1JsonRpc, RemoteProtocol::V1HttpJson, RemoteProtocol::V03JsonRpc] {
            let (code, report) = check(&faulty(protocol, fault).url(), &[]);
            assert_eq!((findings(&report), code), (Vec::new(), Some(0)), "{fault} in {protocol:?}");
        }
    }
}

/// A server that is broken altogether gets a report that says so, and not a finding for each rule.
#[test]
fn broken_servers_get_short_reports() {
    for (fault, more, expected, code) in [
        ("status=500", &[][..], &["card.interface-answers"][..], 1),
        ("status=404", &[], &["card.interface-answers"], 1),
        ("redirect=itself", &[], &["card.interface-answers"], 1),
        ("hang-up=after-processing", &[], &["card.interface-answers"], 1),
        ("malformed=not-json", &[], &["card.interface-answers"], 1),
        ("card=missing", &[], &["card.found"], 1),
        ("card=missing", &["--a2a-version", "1.0"], &["card.found"], 1),
        ("card=not-json", &[], &["card.json"], 1),
        ("card=claims-0.3", &[], &["card.interface-answers"], 1),
        ("card=http://10.0.0.1:1/", &[], &["card.interface-https"], 3),
        ("status=401", &[], &[], 3),
        ("drop-after=2", &[], &["stream.terminal"], 1),
        ("malformed=missing-ids", &[], &["objects.required", "objects.readable", "task.context"], 1),
        ("malformed=empty-parts", &[], &["objects.required"], 1),
        ("malformed=nulls", &[], &["objects.nulls", "list.artifacts"], 0),
    ] {
        let agent = faulty(RemoteProtocol::V1JsonRpc, fault);
        let (exit, report) = check(&agent.url(), more);
        let found: Vec<&str> =
            report["findings"].as_array().unwrap().iter().map(|finding| finding["rule"].as_str().unwrap()).collect();
        assert_eq!((found, exit), (expected.to_vec(), Some(code)), "{fault} {more:?}: {:#?}", findings(&report));
    }
}

fn faulty(protocol: RemoteProtocol, fault: &str) -> RemoteAgent {
    let mut faults = Faults::default();
    faults.add_named(fault).unwrap();
    RemoteAgent::builder(protocol).with_faults(faults).start()
}

#[test]
fn exit_codes_say_what_became_of_the_check() {
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let unreachable = format!("http://{closed}");
    let agent = RemoteAgent::start(RemoteProtocol::V1JsonRpc);
    let url = agent.url();
    for (arguments, expected) in [
        (&[unreachable.as_str()][..], 3),
        (&[&url, "--only", "card"], 0),
        (&[&url, "--only", "no.such-rule"], 2),
        (&[&url, "--header", "without a colon"], 2),
        (&[&url, "--transport", "http+json"], 2),
        (&[&url, "--transport", "grpc"], 2),
        (&["not a url"], 2),
        (&[], 2),
        (&["--list"], 0),
    ] {
        let output = run(arguments);
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(expected), "{arguments:?}: {complaint}");
        assert_eq!(complaint.is_empty(), expected != 2, "{arguments:?}: {complaint}");
    }
    let (_, report) = check(&url, &["--only", "card", "--only", "stream.first"]);
    let groups: BTreeSet<String> =
        rules(&report, "passed").iter().map(|rule| rule.split('.').next().unwrap().to_owned()).collect();
    assert_eq!(groups, ["card", "stream"].map(str::to_owned).into());
}

/// Without the words that an agent understands, what needs them is skipped with a reason, and nothing is found.
#[test]
fn without_slow_and_ask_the_rules_that_need_them_are_skipped() {
    let agent = RemoteAgent::start(RemoteProtocol::V1JsonRpc);
    let output = run(&[&agent.url()]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((findings(&report), output.status.code()), (Vec::new(), Some(0)));
    let passed = rules(&report, "passed");
    for (rule, flag) in [
        ("send.immediate", "--slow"),
        ("subscribe.running", "--slow"),
        ("cancel.running", "--slow"),
        ("errors.context-mismatch", "--ask"),
        ("task.continued", "--ask"),
        ("history.limit", "--ask"),
    ] {
        let skipped = report["skipped"].as_array().unwrap().iter().find(|entry| entry["rule"] == rule);
        let why = skipped.map(|entry| entry["why"].as_str().unwrap()).unwrap_or_default();
        // A short task may be caught while it runs.
        let is_caught = flag == "--slow" && passed.contains(rule);
        assert!(why.contains(flag) || is_caught, "{rule}: {why}");
    }
}

/// A card that breaks no rule, with these paths as its interfaces.
fn card_with(url: &str, paths: impl Iterator<Item = String>) -> Value {
    let interface =
        |path: String| json!({"url": format!("{url}/{path}"), "protocolBinding": "JSONRPC", "protocolVersion": "1.0"});
    json!({
        "name": "Many", "description": "It has many interfaces.", "version": "1", "capabilities": {"streaming": true},
        "skills": [{"id": "s", "name": "S", "description": "It does something.", "tags": ["x"]}],
        "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"],
        "supportedInterfaces": paths.map(interface).collect::<Vec<_>>(),
    })
}

fn not_checked(report: &Value) -> Vec<&str> {
    report["not_checked"].as_array().unwrap().iter().map(|why| why.as_str().unwrap()).collect()
}

#[test]
fn each_interface_is_tried_once_and_only_so_many_of_them() {
    let peer = PeerServer::start(|url, request| match request.body.is_empty() {
        true => {
            // The root in two spellings, one path twice, and many others.
            let spelled = ["", "a", "a", "", "b"].map(str::to_owned).into_iter();
            let card = card_with(url, spelled.chain((0..300).map(|number| number.to_string())));
            let text = card.to_string().replacen(&format!("{url}/\""), &format!("{url}\""), 1);
            Answer::Json(text)
        }
        false => Answer::Json("no JSON".to_owned()),
    });
    let (code, report) = check(&peer.url, &[]);
    assert_eq!(code, Some(1), "nobody answers");
    assert_eq!(report["interfaces"].as_array().unwrap().len(), 20);
    let why = not_checked(&report);
    let members: Vec<String> = (2..=3).chain(22..305).map(|place| format!("supportedInterfaces[{place}]")).collect();
    assert_eq!(why.iter().map(|why| why.split(' ').next().unwrap()).collect::<Vec<_>>(), members);
    let url = &peer.url;
    assert_eq!(why[0], format!("supportedInterfaces[2] (JSONRPC {url}/a): it is the same as supportedInterfaces[1]"));
    assert_eq!(why[1], format!("supportedInterfaces[3] (JSONRPC {url}/): it is the same as supportedInterfaces[0]"));
    let reason = "20 interfaces are checked; choose with --a2a-version and --transport, or raise --max-interfaces";
    assert_eq!(why[2], format!("supportedInterfaces[22] (JSONRPC {url}/17): {reason}"));
    let asked = peer.bodies().len();
    assert_eq!(asked % 20, 0, "{asked} requests for 20 interfaces");
    let (_, report) = check(url, &["--max-interfaces", "3"]);
    assert_eq!(report["interfaces"].as_array().unwrap().len(), 3);
    assert_eq!(peer.bodies().len() - asked, asked / 20 * 3);
}

#[test]
fn a_check_has_an_end_although_no_answer_comes() {
    let peer = PeerServer::start(|url, request| match request.body.is_empty() {
        true => Answer::Json(card_with(url, (0..3).map(|number| number.to_string())).to_string()),
        false => Answer::Silence,
    });
    let (code, report) = check(&peer.url, &["--max-time", "1s"]);
    assert_eq!(code, Some(5), "{:?}", findings(&report));
    let interfaces = report["interfaces"].as_array().unwrap();
    let why: Vec<&str> = interfaces.iter().map(|one| one["not_checked"].as_str().unwrap()).collect();
    assert_eq!(why, ["the time of the check was over (--max-time 1s)"; 3]);
    assert_eq!(peer.bodies().len(), 1, "the others are not even tried");
}

#[test]
fn a_check_that_runs_out_of_time_reports_what_it_knows_and_cancels_what_it_started() {
    let mut faults = Faults::default();
    faults.add_named("silent-after=1").unwrap();
    let agent = RemoteAgent::builder(RemoteProtocol::V1JsonRpc).with_faults(faults).start();
    let (code, report) = check(&agent.url(), &["--max-time", "5s"]);
    assert_eq!(code, Some(5), "{:?}", findings(&report));
    assert!(rules(&report, "passed").contains("get.task"), "{report}");
    let skipped = report["skipped"].as_array().unwrap();
    let is_late = |entry: &&Value| entry["why"] == "the time of the check was over (--max-time 5s)";
    assert!(skipped.iter().filter(is_late).any(|entry| entry["rule"] == "stream.terminal"), "{report}");
    for task in agent.tasks().all() {
        assert!(task.state.is_terminal(), "{task:?}");
    }
}
