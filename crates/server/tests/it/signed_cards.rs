//! Which cards are signed.

use std::sync::Arc;

use sabir_model::Signature;
use sabir_server::{CardSettings, CardSigner, ServerSettings};
use serde_json::json;

use crate::{ask, serve_with};

#[derive(Debug)]
struct Signer;

impl CardSigner for Signer {
    fn sign(&self, _: &str, jku: &str) -> Signature {
        Signature { protected: jku.to_owned(), signature: "s".into(), header: None }
    }
}

#[tokio::test]
async fn a_card_is_signed_only_for_the_address_that_the_server_knows() {
    for (base, expected) in [
        (Some("https://a.example"), json!("https://a.example/.well-known/jwks.json")),
        // The caller would choose what the server vouches for.
        (None, json!(null)),
    ] {
        let server = serve_with(|settings| {
            let card = CardSettings { base: base.map(str::to_owned), ..settings.card };
            ServerSettings { card, card_signer: Some(Arc::new(Signer)), ..settings }
        })
        .await;
        let headers = [("Host", "evil.example"), ("A2A-Version", "1.0")];
        let card = ask(server.address, "GET", "/.well-known/agent-card.json", &headers, "").await.json();
        assert_eq!(card["signatures"][0]["protected"], expected, "{card}");
        assert_eq!(card.to_string().contains("evil.example"), base.is_none());
    }
}
