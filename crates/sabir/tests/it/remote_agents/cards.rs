//! The card of a remote agent, issued again as ours, and what of a caller's request reaches the remote agent.

use std::time::Duration;

use sabir_testkit::remote::{CardFault, Faults, Operation, RemoteAgent, RemoteProtocol, TasksAfterDeath};
use serde_json::{Value, json};

use super::fixture::{Front, LIMIT, for_each, message, say, task_in};

const PATH: &str = "/agents/friend/.well-known/agent-card.json";
const UPSTREAM_CARD: &str = "urn:sabir:a2a:ext:upstream-card-v1";

fn card(front: &Front) -> Value {
    front.server().get(PATH).json()
}

/// The card, when it is that of the remote agent.
fn card_named(front: &Front, name: &str) -> Value {
    front.server().until("the card is there", |_| Some(card(front)).filter(|card| card["name"] == name))
}

fn provenance(card: &Value) -> &Value {
    let extensions = card["capabilities"]["extensions"].as_array().expect("extensions");
    let found = extensions.iter().find(|extension| extension["uri"] == UPSTREAM_CARD);
    &found.unwrap_or_else(|| panic!("{card}"))["params"]
}

#[test]
fn the_card_is_the_remote_agents_with_our_addresses() {
    for_each(
        &RemoteProtocol::ALL,
        |protocol| format!("{protocol:?}"),
        |protocol| {
            let agent = RemoteAgent::builder(*protocol).with_bearer("secret").start();
            agent.change_faults(|faults| {
                let signatures = json!([{"protected": "eyJhbGciOiJFUzI1NiJ9", "signature": "c2ln"}]);
                faults.card.push(CardFault::Member("signatures".to_owned(), signatures));
            });
            let front = Front::of(&agent);
            let card = card_named(&front, "Remote agent");
            assert_eq!(card["description"], "Does what a test tells it.");
            assert_eq!(card["skills"][0]["id"], "echo");
            assert_eq!(card["skills"].as_array().map(Vec::len), Some(1));
            let text = card.to_string();
            for mode in ["defaultInputModes", "defaultOutputModes"] {
                assert_eq!(card[mode], json!(["text/plain", "application/json"]));
            }
            let ours = front.server().address.to_string();
            let interfaces = card["supportedInterfaces"].as_array().expect("interfaces");
            assert!(interfaces.iter().all(|interface| interface["url"].as_str().unwrap().contains(&ours)), "{card}");
            // Neither where the remote agent is, nor what it asks of its callers.
            let theirs = agent.address().port().to_string();
            for secret in [theirs.as_str(), "securitySchemes", "securityRequirements", "Bearer", "authentication"] {
                assert!(!text.contains(secret), "{secret} in {text}");
            }
            let place = if protocol.version() < "0.3" { "agent.json" } else { "agent-card.json" };
            let mut http = sabir_testkit::http::Http::connect(agent.address()).unwrap();
            let served = http.exchange("GET", &format!("/.well-known/{place}"), &[], b"").unwrap();
            let digest = sabir_model::base64url(&sabir_outbound::sha256(&served.body));
            let provenance = provenance(&card);
            assert_eq!(provenance["sha256"], digest, "{card}");
            assert_eq!(provenance["provider"], "Sabir");
            // Versions before 0.3 have no signatures.
            let signed = json!([{"protected": "eyJhbGciOiJFUzI1NiJ9", "signature": "c2ln"}]);
            assert_eq!(provenance["signatures"], signed, "{protocol:?}");
        },
    );
}

#[test]
fn the_card_changes_with_the_remote_agents() {
    let agent = RemoteAgent::start(RemoteProtocol::V1JsonRpc);
    let front = Front::with(&agent, "card_refresh = \"1s\"");
    let before = card_named(&front, "Remote agent");
    agent.change_faults(|faults| {
        faults.card.push(CardFault::Member("name".to_owned(), json!("Another name")));
        faults.card.push(CardFault::Member("skills".to_owned(), json!([])));
    });
    let after = card_named(&front, "Another name");
    assert_eq!(after["skills"], json!([]));
    assert_ne!(provenance(&before)["sha256"], provenance(&after)["sha256"]);
    // A card that cannot be read changes nothing.
    agent.change_faults(|faults| faults.card = vec![CardFault::NotJson]);
    agent.forget_requests();
    assert!(agent.wait_for_requests(Operation::Card, 2, LIMIT));
    assert_eq!(card(&front)["name"], "Another name");
    assert_eq!(say(&front.send("hello")), "completed \"echo: hello\"");
}

#[test]
fn the_front_starts_before_the_remote_agent() {
    let agent = RemoteAgent::start(RemoteProtocol::V1JsonRpc);
    agent.die(TasksAfterDeath::Kept);
    let front = Front::of(&agent);
    assert_eq!(card(&front)["name"], "friend");
    let early = front.begin("hello");
    std::thread::sleep(Duration::from_millis(500));
    agent.come_back();
    card_named(&front, "Remote agent");
    assert_eq!(front.until_over(&early), "completed \"echo: hello\"");
}

/// Whatever a caller shows to us is not for the remote agent.
#[test]
fn headers_of_callers_are_not_passed_on() {
    const PASSED: [&str; 9] = [
        "host",
        "content-type",
        "content-length",
        "accept",
        "user-agent",
        "a2a-version",
        "idempotency-key",
        "traceparent",
        "last-event-id",
    ];
    let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let headers = [
        ("Authorization", "Bearer of-the-caller"),
        ("Cookie", "session=of-the-caller"),
        ("X-Api-Key", "of-the-caller"),
        ("X-Forwarded-For", "203.0.113.7"),
        ("Origin", "http://localhost"),
        ("Idempotency-Key", "of-the-caller"),
        ("Traceparent", trace),
    ];
    for_each(
        &RemoteProtocol::ALL,
        |protocol| format!("{protocol:?}"),
        |protocol| {
            let agent = RemoteAgent::builder(*protocol).with_faults(Faults::default()).start();
            let front = Front::of(&agent);
            let task = task_in(front.ask("/", &headers, "SendMessage", message("ask which?")));
            front.answer(task["id"].as_str().unwrap(), "blue");
            for request in agent.requests() {
                for (name, value) in &request.headers {
                    assert!(PASSED.contains(&name.as_str()), "{name}: {value}");
                    assert!(!value.contains("of-the-caller"), "{name}: {value}");
                }
            }
            let sent = agent.requests_for(Operation::Stream).remove(0);
            assert!(sent.header("traceparent").is_some_and(|shown| shown.contains(&trace[3..35])), "{sent:?}");
        },
    );
}
