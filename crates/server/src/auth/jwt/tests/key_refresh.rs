//! When keys are fetched, how often, and what holds meanwhile. Time is tokio's, which stands still.

use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::join_all;
use sabir_testkit::oidc_provider::{DISCOVERY, KEYS, ProviderAnswer};
use tokio::time::advance;

use super::*;

const UNKNOWN: &str = "the token is signed with a key that its issuer does not publish";

async fn seconds(number: u64) {
    advance(Duration::from_secs(number)).await;
}

/// Lets tasks in the background run.
async fn settle() {
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_rotated_key_is_found_with_its_first_token() {
    let fixture = Fixture::new();
    let old = fixture.token();
    assert_eq!(fixture.say(&old).await, ALICE);
    seconds(31).await;
    fixture.provider.add_key(key("second", "EdDSA"));
    assert_eq!(fixture.say(&fixture.token()).await, ALICE);
    assert_eq!(fixture.say(&old).await, ALICE, "the old key is still published");
    assert_eq!(fixture.provider.requests(KEYS), 2);
}

#[tokio::test(start_paused = true)]
async fn unknown_keys_make_one_fetch_in_thirty_seconds() {
    let fixture = Fixture::new();
    assert_eq!(fixture.say(&fixture.token()).await, ALICE);
    for (wait, fetches) in [(0, 1), (29, 1), (1, 2), (29, 2), (1, 3)] {
        seconds(wait).await;
        for number in 0..50 {
            let token = key(&format!("stranger {number}"), "ES256").token(&fixture.claims());
            assert_eq!(fixture.say(&token).await, UNKNOWN);
        }
        assert_eq!(fixture.provider.requests(KEYS), fetches);
    }
}

#[tokio::test(start_paused = true)]
async fn a_crowd_makes_one_fetch() {
    let fixture = Fixture::new();
    let token = fixture.token();
    let answers = join_all((0..200).map(|_| fixture.say(&token))).await;
    assert!(answers.iter().all(|answer| answer == ALICE));
    assert_eq!(fixture.provider.requests(KEYS), 1);

    seconds(31).await;
    let strangers: Vec<String> =
        (0..200).map(|number| key(&format!("{number}"), "ES256").token(&fixture.claims())).collect();
    let answers = join_all(strangers.iter().map(|token| fixture.say(token))).await;
    assert!(answers.iter().all(|answer| answer == UNKNOWN));
    assert_eq!(fixture.provider.requests(KEYS), 2);
}

#[tokio::test(start_paused = true)]
async fn only_so_many_wait_for_a_fetch() {
    let fixture = Fixture::new();
    fixture.provider.fail(DISCOVERY, ProviderAnswer::Hang);
    let token = fixture.token();
    let started = tokio::time::Instant::now();
    let waits = join_all((0..1000).map(|_| async {
        let answer = fixture.say(&token).await;
        (answer, started.elapsed())
    }));
    let waits = waits.await;
    assert!(waits.iter().all(|(answer, _)| answer == "no keys, 5 s"), "{waits:?}");
    let waited = waits.iter().filter(|(_, time)| !time.is_zero()).count();
    assert_eq!(waited, 256);
    assert!(waits.iter().all(|(_, time)| *time <= Duration::from_secs(6)));
    assert_eq!(fixture.provider.requests(DISCOVERY), 1);
}

#[tokio::test(start_paused = true)]
async fn without_keys_callers_hear_when_to_come_again() {
    let fixture = Fixture::new();
    fixture.provider.fail(KEYS, ProviderAnswer::Status(500));
    let token = fixture.token();
    assert_eq!(fixture.say(&token).await, "no keys, 5 s");
    seconds(2).await;
    assert_eq!(fixture.say(&token).await, "no keys, 3 s");
    fixture.provider.mend(KEYS);
    assert_eq!(fixture.say(&token).await, "no keys, 3 s");
    seconds(3).await;
    assert_eq!(fixture.say(&token).await, ALICE);
    assert_eq!(fixture.provider.requests(KEYS), 2);
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_hangs_costs_five_seconds_and_then_nothing() {
    let fixture = Fixture::new();
    fixture.provider.fail(KEYS, ProviderAnswer::Hang);
    let token = fixture.token();
    assert_eq!(fixture.say(&token).await, "no keys, 5 s");
    fixture.provider.mend(KEYS);
    // The fetch that hangs is given up after 10 s; until then it is the one that all wait for.
    seconds(6).await;
    settle().await;
    assert_eq!(fixture.provider.requests(KEYS), 1);
    assert_eq!(fixture.say(&token).await, ALICE);
}

#[tokio::test(start_paused = true)]
async fn known_keys_stay_while_fetches_fail() {
    let broken = [
        ProviderAnswer::Status(500),
        ProviderAnswer::Redirect("https://elsewhere.example.com/keys".to_owned()),
        ProviderAnswer::Document("<html>".to_owned()),
        ProviderAnswer::Document("{}".to_owned()),
        ProviderAnswer::Document(r#"{"keys": {}}"#.to_owned()),
        ProviderAnswer::Document(r#"{"keys": [], "keys": []}"#.to_owned()),
        ProviderAnswer::Document(json!({"keys": vec![json!({}); 101]}).to_string()),
        ProviderAnswer::Document(json!({"keys": [], "padding": "x".repeat(300_000)}).to_string()),
        ProviderAnswer::Hang,
    ];
    for answer in broken {
        let fixture = Fixture::new();
        assert_eq!(fixture.say(&fixture.token()).await, ALICE);
        seconds(601).await;
        fixture.provider.fail(KEYS, answer.clone());
        // The set is stale: this caller is served with it, and a fetch begins.
        let next = fixture.token_with(json!({"jti": "2"}));
        assert_eq!(fixture.say(&next).await, ALICE, "{answer:?}");
        settle().await;
        seconds(11).await;
        settle().await;
        assert_eq!(fixture.provider.requests(KEYS), 2, "{answer:?}");
        let next = fixture.token_with(json!({"jti": "3"}));
        assert_eq!(fixture.say(&next).await, ALICE, "{answer:?}");

        // Whether an unknown key is published now is not known.
        let new = key("second", "ES256").token(&fixture.claims());
        assert!(fixture.say(&new).await.starts_with("no keys, "), "{answer:?}");
        fixture.provider.mend(KEYS);
        seconds(30).await;
        assert_eq!(fixture.say(&new).await, UNKNOWN, "{answer:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_removed_key_stops_counting_with_the_next_fetch() {
    let fixture = Fixture::new();
    let old = fixture.token();
    fixture.provider.add_key(key("second", "ES256"));
    let new = fixture.token();
    assert_eq!(fixture.say(&old).await, ALICE);
    assert_eq!(fixture.say(&new).await, ALICE);
    fixture.provider.remove_key("first");
    assert_eq!(fixture.say(&old).await, ALICE, "nobody has asked again yet");
    seconds(601).await;
    // Somebody else's token finds the set stale.
    assert_eq!(fixture.say(&fixture.token_with(json!({"jti": "2"}))).await, ALICE);
    settle().await;
    assert_eq!(fixture.verifier.quick(&old), None);
    assert_eq!(fixture.say(&old).await, UNKNOWN);
    assert_eq!(fixture.say(&new).await, ALICE);
}

#[tokio::test(start_paused = true)]
async fn a_stale_set_is_fetched_in_the_background_once() {
    let fixture = Fixture::new();
    assert_eq!(fixture.say(&fixture.token()).await, ALICE);
    for (wait, fetches) in [(599, 1), (1, 2), (599, 2), (2, 3)] {
        seconds(wait).await;
        for number in 0..10 {
            let token = fixture.token_with(json!({"jti": format!("{wait} {number}")}));
            assert_eq!(fixture.say(&token).await, ALICE);
        }
        settle().await;
        assert_eq!(fixture.provider.requests(KEYS), fetches, "{wait}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_goes_away_does_not_end_the_fetch() {
    let fixture = Fixture::new();
    let token = fixture.token();
    assert!(fixture.verifier.verify(&token).now_or_never().is_none());
    settle().await;
    assert_eq!(fixture.say(&token).await, ALICE);
    assert_eq!(fixture.provider.requests(KEYS), 1);
}

#[tokio::test(start_paused = true)]
async fn keys_without_ids_are_found_by_trying_a_few() {
    let fixture = Fixture::new();
    fixture.provider.remove_key("first");
    let nameless = |algorithm| key("", algorithm).without_id();
    let signers: Vec<_> = (0..9).map(|_| fixture.provider.add_key(nameless("ES256"))).collect();
    let last = fixture.provider.add_key(nameless("EdDSA"));
    for (position, signer) in signers.iter().enumerate() {
        let expected = if position < 8 { ALICE } else { "the signature of the token is wrong" };
        assert_eq!(fixture.say(&signer.token(&fixture.claims())).await, expected, "{position}");
    }
    assert_eq!(fixture.say(&last.token(&fixture.claims())).await, ALICE, "other algorithms are not tried");
    seconds(31).await;
    fixture.provider.remove_key("none has this");
    let rotated = nameless("EdDSA");
    let rotated = fixture.provider.add_key(rotated);
    assert_eq!(fixture.say(&rotated.token(&fixture.claims())).await, ALICE);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_fetched_before_it_is_needed_or_asked_for() {
    let fixture = Fixture::new();
    settle().await;
    assert_eq!(fixture.provider.requests(DISCOVERY), 0);
    fixture.verifier.prefetch();
    settle().await;
    assert_eq!((fixture.provider.requests(DISCOVERY), fixture.provider.requests(KEYS)), (1, 1));
    assert_eq!(fixture.say(&fixture.token()).await, ALICE);
    assert_eq!(fixture.provider.requests(KEYS), 1);
}
