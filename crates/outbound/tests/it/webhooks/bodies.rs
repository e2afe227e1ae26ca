//! Heads and bodies of deliveries by dialect, against the golden files of the protocol.

use sabir_model::{
    Artifact, ArtifactId, Birth, Chunk, Created, Event, Message, Part, PushAuthentication, State, Status, StatusChange,
    Timestamp,
};
use sabir_outbound::webhooks::WebhookSecrets;
use sabir_store::{Append, AppendTarget, NewTask, Ownership, SideRow, Webhook, WebhookEvents};
use sabir_testkit::store_contract::fixture as rows;
use sabir_wire::{Dialect, V01, V1, V03};
use serde_json::Value;

use super::fixture::*;

const V0_1_TASK: &str = include_str!("golden/v0_1_task.json");
const V0_3_TASK: &str = include_str!("golden/v0_3_task.json");
const V1_0_TASK: &str = include_str!("golden/v1_0_task.json");
const V1_0_STATUS: &str = include_str!("golden/v1_0_status_update.json");
const V1_0_ARTIFACT: &str = include_str!("golden/v1_0_artifact_update.json");

/// As in the golden files: 2026-02-03T10:15:02.500Z.
fn moment() -> Timestamp {
    Timestamp::from_millis(1_770_113_702_500)
}

fn status(state: State) -> Event {
    let Event::Status(change) = rows::status(state, 0) else { unreachable!() };
    Event::Status(StatusChange { status: Status { time: moment(), ..change.status }, ..change })
}

/// The requests that a task of the golden files leads to: `working`, an artifact, and this state.
async fn requests(dialect: Birth, events: WebhookEvents, last: State) -> Vec<String> {
    let (task, context) = match dialect == V01.birth() {
        true => ("task-client-1", "sess-1"),
        false => ("9b1f2c34-0d5e-4a77-8c1d-52f0a1b2c3d4", "c7a1e5f0-6b2d-4f38-9e10-1a2b3c4d5e6f"),
    };
    let receiver = reacting("127.0.0.1:0", |_| OK).await;
    let url = format!("http://{}/hooks/a2a?secret=s", receiver.address);
    let authentication =
        PushAuthentication { schemes: vec!["Bearer".to_owned()], credentials: Some("hook-secret".to_owned()) };
    let secrets = WebhookSecrets { token: Some("tok-1".to_owned()), authentication: Some(authentication) };
    let hook = Webhook { secrets: secrets.seal(None, &url), dialect, events, ..webhook("w", &url) };
    let stored = Stored::in_memory();
    let (owner, agent) = (rows::owner("ann"), rows::agent("echo"));
    let (task, context) = (rows::task(task), rows::context(context));
    let new = NewTask {
        owner: &owner,
        agent: &agent,
        task: &task,
        context: &context,
        born: dialect,
        key: None,
        send_digest: None,
    };
    let message: Message = rows::message("Which ships?");
    let created = Event::Created(Created { message: message.into(), metadata: None, note: None, time: moment() });
    let artifact = Artifact {
        name: Some("summary.txt".to_owned()),
        ..Artifact::new(ArtifactId::parse("art-1").unwrap(), vec![Part::text("Three ships arrive on Tuesday.")])
    };
    let artifact =
        Event::Artifact(Chunk { index: 0, artifact: artifact.into(), append: false, last: true, metadata: None });
    let (submitted, working, last) = (status(State::Submitted), status(State::Working), status(last));
    let append = Append {
        target: AppendTarget::New(new),
        events: &[&created, &submitted, &working, &artifact, &last],
        after: 0,
        snapshot: None,
        side_rows: &[SideRow::Webhook(Box::new(hook))],
        ownership: Ownership::default(),
    };
    stored.store.append(append).await.unwrap();
    let _dispatcher = Running::start(&stored, settings());
    until_all_is_noted(&stored).await;
    receiver.requests()
}

/// Says which golden file the last request matches in head and body. The history is left out: the files have none.
fn check_golden(request: &str, golden: &str) {
    let golden: Value = serde_json::from_str(golden).unwrap();
    let (head, body) = request.split_once("\r\n\r\n").unwrap();
    for (name, value) in golden["request"]["headers"].as_object().unwrap() {
        assert_eq!(header(head, &name.to_lowercase()).as_deref(), value.as_str(), "{name}");
    }
    let mut body: Value = serde_json::from_str(body).unwrap();
    let task = if body["task"].is_object() { &mut body["task"] } else { &mut body };
    task.as_object_mut().unwrap().remove("history");
    assert_eq!(body, golden["request"]["body"]);
}

#[tokio::test]
async fn a_finished_task_in_every_dialect() {
    for (dialect, golden) in [(V01.birth(), V0_1_TASK), (V03.birth(), V0_3_TASK), (V1.birth(), V1_0_TASK)] {
        let requests = requests(dialect, WebhookEvents::Statuses, State::Completed).await;
        assert_eq!(requests.len(), 2, "working and completed");
        check_golden(&requests[1], golden);
    }
}

#[tokio::test]
async fn events_of_1_0() {
    let requests = requests(V1.birth(), WebhookEvents::All, State::Completed).await;
    assert_eq!(requests.len(), 4, "submitted, working, the artifact and completed");
    let working = V1_0_STATUS.replace("TASK_STATE_COMPLETED", "TASK_STATE_WORKING");
    check_golden(&requests[0], &V1_0_STATUS.replace("TASK_STATE_COMPLETED", "TASK_STATE_SUBMITTED"));
    check_golden(&requests[1], &working);
    check_golden(&requests[2], V1_0_ARTIFACT);
    check_golden(&requests[3], V1_0_TASK);
}

/// What the body is, and whether it has the artifact, for `working` and for the state behind it.
#[tokio::test]
async fn bodies_by_dialect_and_state() {
    let describe = |request: &String| {
        let body: Value = serde_json::from_str(request.split_once("\r\n\r\n").unwrap().1).unwrap();
        let (kind, task) = match () {
            () if body["statusUpdate"].is_object() => ("status", &body["statusUpdate"]),
            () if body["artifactUpdate"].is_object() => ("artifact", &body["artifactUpdate"]),
            () if body["task"].is_object() => ("task", &body["task"]),
            () => ("bare task", &body),
        };
        let state = task["status"]["state"].as_str().unwrap_or("-").trim_start_matches("TASK_STATE_").to_lowercase();
        let artifacts = task["artifacts"].as_array().map_or(0, Vec::len);
        format!("{kind} {} {artifacts}", state.replace('_', "-"))
    };
    for (dialect, events, last, expected) in [
        (V1.birth(), WebhookEvents::Statuses, State::Completed, "status working 0, task completed 1"),
        (V1.birth(), WebhookEvents::Statuses, State::Failed, "status working 0, task failed 1"),
        (V1.birth(), WebhookEvents::Statuses, State::Canceled, "status working 0, task canceled 1"),
        (V1.birth(), WebhookEvents::Statuses, State::Rejected, "status working 0, task rejected 1"),
        (V1.birth(), WebhookEvents::Statuses, State::InputRequired, "status working 0, task input-required 1"),
        (V1.birth(), WebhookEvents::Statuses, State::AuthRequired, "status working 0, task auth-required 1"),
        (V1.birth(), WebhookEvents::Statuses, State::Working, "status working 0, status working 0"),
        (V03.birth(), WebhookEvents::Statuses, State::InputRequired, "bare task working 0, bare task input-required 1"),
        (V01.birth(), WebhookEvents::Statuses, State::InputRequired, "bare task working 0, bare task input-required 1"),
        (
            V03.birth(),
            WebhookEvents::All,
            State::Completed,
            "bare task submitted 0, bare task working 0, bare task working 1, bare task completed 1",
        ),
    ] {
        let requests = requests(dialect, events, last).await;
        let described: Vec<String> = requests.iter().map(describe).collect();
        assert_eq!(described.join(", "), expected, "{dialect} {events:?} {last:?}");
    }
}
