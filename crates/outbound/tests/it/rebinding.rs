//! Names that change their address between the check and the use, or between two look-ups.

use std::sync::Arc;

use sabir_outbound::client::DialError;
use sabir_outbound::guard::{EgressPolicy, Refusal};

use crate::support::{Names, Receiver, client, ok, post};

#[tokio::test]
async fn a_name_that_turns_inside_after_the_check_gets_no_connection() {
    let victim = Receiver::answering("127.0.0.1:0", ok("inside")).await;
    for later in ["127.0.0.1", "93.184.215.14 127.0.0.1", "::ffff:127.0.0.1", "0.0.0.0"] {
        let names = Names::new();
        names.set("rebinding.example", &["93.184.215.14", later]);
        let client = client(EgressPolicy::default(), names.clone());
        let url = format!("http://rebinding.example:{}/", victim.port());
        client.guard().check_url(&url).await.expect("the first answer is public");
        let error = post(&client, &url).await.expect_err(later);
        assert_eq!(error, DialError::Refused(Refusal::ResolvedAddress), "{later}");
        assert_eq!(names.lookups(), 2);
    }
    assert_eq!(victim.accepts(), 0);
}

/// The name has the allowed address whenever it is checked, and the forbidden one for whoever looks a second time.
#[tokio::test]
async fn the_address_that_is_dialled_is_the_one_that_was_checked() {
    let (allowed, victim) = Receiver::pair(("127.0.0.2", "allowed"), ("127.0.0.1", "inside")).await;
    let names = Names::new();
    names.set("rebinding.example", &["127.0.0.2", "127.0.0.1"]);
    let mut policy = EgressPolicy::default();
    policy.allow_range("127.0.0.2/32").unwrap();
    let client = client(policy, Arc::clone(&names) as _);
    let response = post(&client, &format!("http://rebinding.example:{}/", allowed.port())).await.unwrap();
    assert_eq!(response.body.as_ref(), b"allowed");
    assert_eq!((names.lookups(), allowed.accepts(), victim.accepts()), (1, 1, 0));
}

/// Once a connection is gone, the name is looked up and checked again.
#[tokio::test]
async fn every_connect_checks_again() {
    let (allowed, victim) = Receiver::pair(("127.0.0.2", "allowed"), ("127.0.0.1", "inside")).await;
    let names = Names::new();
    names.set("rebinding.example", &["127.0.0.2", "127.0.0.2", "127.0.0.1"]);
    let mut policy = EgressPolicy::default();
    policy.allow_range("127.0.0.2/32").unwrap();
    let client = client(policy, Arc::clone(&names) as _);
    let url = format!("http://rebinding.example:{}/", allowed.port());
    post(&client, &url).await.unwrap();
    post(&client, &url).await.unwrap();
    let error = post(&client, &url).await.unwrap_err();
    assert_eq!(error, DialError::Refused(Refusal::ResolvedAddress));
    assert_eq!((names.lookups(), allowed.accepts(), victim.accepts()), (3, 2, 0));
}
