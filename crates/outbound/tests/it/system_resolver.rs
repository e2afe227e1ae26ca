//! The resolver of the operating system, as far as the loopback interface goes.

use std::sync::Arc;

use sabir_outbound::client::DialError;
use sabir_outbound::guard::{EgressPolicy, Refusal, SystemResolver};

use crate::support::{Receiver, client, loopback_allowed, ok, post};

#[tokio::test]
async fn localhost_is_resolved_and_refused_unless_allowed() {
    let receiver = Receiver::answering("127.0.0.1:0", ok("inside")).await;
    let url = format!("http://localhost:{}/", receiver.port());
    let strict = client(EgressPolicy::default(), Arc::new(SystemResolver::default()));
    assert_eq!(post(&strict, &url).await.unwrap_err(), DialError::Refused(Refusal::ResolvedAddress));
    assert_eq!(receiver.accepts(), 0);
    let mut policy = loopback_allowed();
    policy.allow_range("::1").unwrap();
    let allowing = client(policy, Arc::new(SystemResolver::default()));
    assert_eq!(post(&allowing, &url).await.unwrap().body.as_ref(), b"inside");
}
