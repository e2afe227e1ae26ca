//! What the operator reads in the log, and what nobody does.

use std::fmt::{self, Write};
use std::sync::Mutex;
use std::time::Duration;

use sabir_testkit::oidc_provider::{KEYS, ProviderAnswer};
use tracing::field::{Field, Visit};
use tracing::{Event, Metadata, Subscriber, span};

use super::*;

/// Collects every event as one line.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<String>>>);

impl Subscriber for Lines {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("sabir_server")
    }

    fn event(&self, event: &Event<'_>) {
        struct Text(String);

        impl Visit for Text {
            fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
                write!(self.0, " {}={value:?}", field.name()).unwrap();
            }
        }

        let mut text = Text(event.metadata().level().to_string());
        event.record(&mut text);
        self.0.lock().unwrap().push(text.0);
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}
}

#[tokio::test(start_paused = true)]
async fn a_streak_of_failures_is_logged_once_and_tokens_never() {
    let lines = Lines::default();
    let _guard = tracing::subscriber::set_default(lines.clone());
    let fixture = Fixture::new();
    let token = fixture.token();
    for _ in 0..2 {
        fixture.provider.fail(KEYS, ProviderAnswer::Status(500));
        for _ in 0..5 {
            assert!(fixture.say(&key("stranger", "ES256").token(&fixture.claims())).await.starts_with("no keys"));
            tokio::time::advance(Duration::from_secs(31)).await;
        }
        fixture.provider.mend(KEYS);
        assert_eq!(fixture.say(&fixture.token_with(json!({"sub": "bob"}))).await.split(':').next(), Some("bob"));
        assert!(fixture.verifier.verify(&key("stranger", "ES256").token(&fixture.claims())).await.is_err());
        tokio::time::advance(Duration::from_secs(31)).await;
    }
    let lines = lines.0.lock().unwrap();
    let count = |level: &str| lines.iter().filter(|line| line.starts_with(level)).count();
    assert_eq!((count("WARN"), count("ERROR")), (2, 0), "{lines:?}");
    assert!(lines[0].contains("https://login.example.com/keys: status 500"), "{}", lines[0]);
    let parts: Vec<&str> = token.split('.').collect();
    for line in lines.iter() {
        assert!(!parts.iter().any(|part| line.contains(part)) && !line.contains("bob"), "{line}");
    }
}
