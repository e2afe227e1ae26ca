//! The OpenID provider of the tests as a program, for suites in other languages: prints one JSON line with its issuer, its
//! audience and its client, and serves until its standard input ends.

use std::io::Read;

use sabir_testkit::oidc_provider::{AUDIENCE, CLIENT, ServedProvider};
use serde_json::json;

fn main() {
    let served = ServedProvider::start();
    let (id, secret) = CLIENT;
    let issuer = &served.provider.issuer;
    println!("{}", json!({"issuer": issuer, "audience": AUDIENCE, "client_id": id, "client_secret": secret}));
    // Whoever started it holds the other end, and lets go of it when it ends, whichever way.
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
}
