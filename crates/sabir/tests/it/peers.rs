//! Proxies in front of the real program: who asks, and how much one of them may ask at the same time.

use sabir_testkit::sse;

use crate::server_fixture::{ServerFixture, v1_message};

const V1: (&str, &str) = ("A2A-Version", "1.0");
const ONE: (&str, &str) = ("X-Forwarded-For", "192.0.2.1");
const OTHER: (&str, &str) = ("X-Forwarded-For", "192.0.2.2");

fn behind_proxy() -> ServerFixture {
    ServerFixture::configured("[server]\ntrusted_proxies = [\"127.0.0.0/8\"]\n[limits]\nconnections_per_peer = 1\n")
}

#[test]
fn the_requests_of_each_forwarded_address_are_limited() {
    let fixture = behind_proxy();
    let body = v1_message("slow 60 x").to_string();
    let opened = sse::open(fixture.server.address, "POST", "/message:stream", &[V1, ONE], body.as_bytes()).unwrap();
    let _watching = opened.unwrap_or_else(|reply| panic!("{}", reply.text()));
    for (headers, expected) in [(&[ONE][..], 429), (&[OTHER], 200), (&[], 200)] {
        let reply = fixture.ask("GET", "/healthz", headers, &serde_json::Value::Null);
        assert_eq!(reply.status, expected, "{headers:?}");
        assert_eq!(reply.header("retry-after").is_some(), expected == 429);
    }
}

#[test]
fn cards_behind_a_proxy_say_by_which_scheme_it_was_asked() {
    let path = "/.well-known/agent-card.json";
    let proxied = [OTHER, ("X-Forwarded-Proto", "https")];
    for (fixture, expected) in [(behind_proxy(), "https://"), (ServerFixture::new(), "http://")] {
        let card = fixture.ask("GET", path, &proxied, &serde_json::Value::Null).json();
        assert!(card["url"].as_str().unwrap().starts_with(expected), "{card}");
    }
}
