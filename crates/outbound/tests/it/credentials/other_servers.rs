//! Cards that lead calls to another server than the one that the credentials are for.

use sabir_model::{Call, Get, TaskId, Wanted};
use sabir_outbound::credentials::{Authentication, Secret, TokenInput};
use sabir_outbound::remote::{Remote, RemoteError, RemoteSettings};
use sabir_testkit::remote::{CardFault, Faults, Operation, RemoteAgent, RemoteProtocol};

use super::fixture::settings;

fn bearer() -> Authentication {
    Authentication::Bearer(TokenInput::Text(Secret::new("geheim")))
}

#[tokio::test]
async fn the_operator_is_told_and_calls_fail_before_they_are_made() {
    let agent = RemoteAgent::start(RemoteProtocol::V1JsonRpc);
    let (address, port) = (agent.address(), agent.address().port());
    for (named, authentication, expected) in [
        (format!("http://localhost:{port}/"), bearer(), None),
        (format!("http://{address}/"), bearer(), None),
        ("https://b.example/rpc".to_owned(), Authentication::None, None),
        ("https://b.example/rpc".to_owned(), bearer(), Some("not for https://b.example; ".to_owned())),
        (format!("https://localhost:{port}/"), bearer(), Some(format!("not for https://{address}; "))),
    ] {
        agent.set_faults(Faults { card: vec![CardFault::Url(named.clone())], ..Faults::default() });
        agent.forget_requests();
        let remote = Remote::new(RemoteSettings {
            credentials: settings(authentication, &[]),
            ..RemoteSettings::new(agent.url())
        });
        let remote = remote.unwrap();
        let notes = remote.discover().await.unwrap().notes.join("\n");
        let Some(expected) = expected else {
            assert_eq!(notes, "", "{named}");
            continue;
        };
        assert!(notes.contains(&expected) && notes.contains("as the endpoint"), "{named}: {notes}");
        let task = TaskId::parse("t").unwrap();
        let error = remote.call(&Call::Get(Get { agent: None, task, history: None, earlier: Wanted::No })).await;
        let error = error.err().unwrap();
        assert!(matches!(error, RemoteError::InvalidCredential(_)) && !error.to_string().contains("geheim"), "{error}");
        assert_eq!(agent.requests().len(), agent.count(Operation::Card), "{named}");
    }
}
