use sabir_model::{
    Addressee, Artifact, ArtifactId, Call, ContextId, Json, Message, MessageId, Part, Role, State, Status, Task,
    Timestamp,
};
use std::sync::Arc;

use serde_json::{Value, json};

use super::GatewayRoute;
use super::route::GatewayOperation;
use super::task::write_task;
use crate::RequestHead;
use crate::fixture::{self, ThreeAgents};

fn say(parts: &[Part]) -> String {
    let part = |part: &Part| match &part.content {
        sabir_model::Content::Text(text) => format!("{text:?}"),
        other => format!("{other:?}"),
    };
    parts.iter().map(part).collect::<Vec<_>>().join(" ")
}

fn submit(body: &str) -> String {
    let route =
        GatewayRoute { agent: sabir_model::AgentId::parse("alpha").unwrap(), operation: GatewayOperation::Send };
    let decoded = route.decode(&RequestHead { verb: "POST", ..RequestHead::default() }, body.as_bytes(), &ThreeAgents);
    match decoded.call {
        Ok(Call::Send(send)) => {
            let message = &send.message;
            let task = message.task.as_ref().map(|task| format!(" to {task}")).unwrap_or_default();
            let context = message.context.as_ref().map(|context| format!(" in {context}")).unwrap_or_default();
            let answers = if send.addressee == Addressee::Waiting { " as an answer" } else { "" };
            let key = send.idempotency.as_ref().map(|key| format!(" once as {key}")).unwrap_or_default();
            let further: String = send.further.iter().map(|parts| format!(" and {}", say(parts))).collect();
            format!("{:?} {}{further}{task}{context}{answers}{key}", message.role, say(&message.parts))
        }
        Ok(other) => panic!("{other:?}"),
        Err(error) => {
            let reply = decoded.responder.error_reply(&error);
            format!("{} {}", reply.status, fixture::json(&reply.body)["error"].as_str().unwrap())
        }
    }
}

#[test]
fn submissions_are_read_or_refused() {
    for (body, expected) in [
        (r#"{"input":"hello"}"#, r#"User "hello""#),
        (r#"{"message":{"content":"hi"}}"#, r#"User "hi""#),
        (r#"{"message":{"role":"assistant","content":"hi"}}"#, r#"Agent "hi""#),
        (r#"{"message":{"role":"wizard","content":"hi"}}"#, r#"User "hi""#),
        (r#"{"input":"a","message":{"content":"b"}}"#, r#"User "a" "b""#),
        (r#"{"context_id":"c1","input":"x"}"#, r#"User "x" in c1"#),
        (r#"{"contextId":" c1 ","context_id":"c1","input":"x"}"#, r#"User "x" in c1"#),
        (r#"{"contextId":"c1"}"#, r#"User "" in c1"#),
        (r#"{"task_id":"t","input":"go on"}"#, r#"User "go on" to t"#),
        (
            r#"{"taskId":"t","decisions":[{"target_id":"c","decision_id":"d1","action":"resume","result":{"approved":true}}]}"#,
            r#"User "yes" Data({"target_id":"c","decision_id":"d1","action":"resume","result":{"approved":true}}) to t as an answer once as decisions of t: [("c", "d1")]"#,
        ),
        (
            r#"{"taskId":"t","decisions":[{"target_id":"c","action":"resume","result":{"approved":false}}]}"#,
            r#"User "no" Data({"target_id":"c","action":"resume","result":{"approved":false}}) to t as an answer"#,
        ),
        (
            r#"{"taskId":"t","decisions":[{"target_id":"c","decision_id":"1","action":"resume"},{"target_id":"d","decision_id":"2","action":"cancel"}]}"#,
            r#"User "yes" Data({"target_id":"c","decision_id":"1","action":"resume"}) and "no" Data({"target_id":"d","decision_id":"2","action":"cancel"}) to t as an answer once as decisions of t: [("c", "1"), ("d", "2")]"#,
        ),
        // A text is a message of its own, whatever was decided before.
        (
            r#"{"taskId":"t","decisions":[{"target_id":"c","decision_id":"d1","action":"cancel"}],"input":"x"}"#,
            r#"User "x" Data({"target_id":"c","decision_id":"d1","action":"cancel"}) to t"#,
        ),
        ("{}", "400 bad request: give at least one of input, message, decisions, contextId and taskId"),
        (
            r#"{"contextId":"  "}"#,
            "400 bad request: give at least one of input, message, decisions, contextId and taskId",
        ),
        (
            r#"{"decisions":[{"target_id":"c","action":"cancel"}]}"#,
            "400 bad request: decisions need the taskId of the run that waits for them",
        ),
        (
            r#"{"taskId":"t","task_id":"u","input":"x"}"#,
            "400 bad request: taskId is given twice, with different values",
        ),
        (
            r#"{"taskId":"t","decisions":[{"target_id":"c","action":"maybe"},7]}"#,
            "400 bad request: decisions[0].action must be resume or cancel; \
             decisions[1] must be an object with target_id, decision_id, action and result",
        ),
        (r#"{"message":{"role":"user"}}"#, "400 bad request: message.content is required"),
        ("{not json", "400 bad request: the body is not JSON: key must be a string"),
        (" []", "400 bad request: the body must be a JSON object"),
        ("7", "400 bad request: the body must be a JSON object"),
        (r#"{"input":7}"#, "400 bad request: input expected a string, found a number"),
    ] {
        assert_eq!(submit(body), expected, "{body}");
    }
}

#[test]
fn a_version_header_is_refused() {
    let route =
        GatewayRoute { agent: sabir_model::AgentId::parse("alpha").unwrap(), operation: GatewayOperation::Send };
    let head = RequestHead { verb: "POST", version: Some("1.0"), ..RequestHead::default() };
    let decoded = route.decode(&head, br#"{"input":"x"}"#, &ThreeAgents);
    let reply = decoded.responder.error_reply(&decoded.call.unwrap_err());
    assert_eq!(reply.status, 400);
}

fn message(role: Role, text: &str, note: Option<&str>) -> Arc<Message> {
    Arc::new(Message {
        id: MessageId::parse("m").unwrap(),
        role,
        parts: vec![Part { metadata: note.map(|text| Json::parse(text).unwrap()), ..Part::text(text) }],
        task: None,
        context: None,
        references: Vec::new(),
        extensions: Vec::new(),
        metadata: None,
        request_metadata: None,
        request: None,
        answers: None,
    })
}

fn task(state: State, status_text: Option<&str>, artifacts: &[&str]) -> Task {
    let time = Timestamp::from_millis(2_000);
    Task {
        id: sabir_model::TaskId::parse("t").unwrap(),
        context: ContextId::parse("c").unwrap(),
        agent: sabir_model::AgentId::parse("alpha").unwrap(),
        owner: sabir_model::Owner::anonymous(),
        born: super::BIRTH,
        created: Timestamp::from_millis(1_000),
        status: Status { state, message: status_text.map(|text| message(Role::Agent, text, None)), time },
        turn_over: true,
        artifacts: artifacts
            .iter()
            .enumerate()
            .map(|(at, text)| {
                Artifact::new(ArtifactId::parse(format!("a{at}")).unwrap(), vec![Part::text(*text)]).into()
            })
            .collect(),
        open: vec![],
        history: vec![message(Role::User, "hello", None)],
        metadata: None,
        usage: None,
        seq: 4,
    }
}

fn shown(task: &Task, earlier: &[Task]) -> Value {
    let mut out = Vec::new();
    write_task(task, earlier, &mut out);
    fixture::json(&out)
}

#[test]
fn a_finished_run_has_all_members() {
    assert_eq!(
        shown(&task(State::Completed, None, &["final"]), &[]),
        json!({
            "taskId": "t", "contextId": "c", "status": "done", "origin": "a2a",
            "terminationCode": null, "terminationDetail": null, "createdAt": 1000, "updatedAt": 2000,
            "message": {"role": "assistant", "content": "final"},
            "artifacts": [{"content": "final"}],
            "history": [{"role": "user", "content": "hello"}, {"role": "assistant", "content": "final"}],
        })
    );
}

#[test]
fn the_status_and_the_message_of_a_run_in_every_state() {
    for (state, status_text, artifacts, expected) in [
        (State::Submitted, None, &[][..], json!(["queued", null, null, null])),
        (State::Working, Some("Using tool: x"), &[], json!(["running", null, null, null])),
        (State::InputRequired, Some("Which?"), &[], json!(["waiting", null, null, "Which?"])),
        (State::AuthRequired, Some("Who?"), &[], json!(["waiting", null, null, "Who?"])),
        (State::InputRequired, Some("Which?"), &["half"], json!(["waiting", null, null, "Which?"])),
        (State::InputRequired, None, &["half"], json!(["waiting", null, null, "half"])),
        (State::Completed, Some("hi"), &[], json!(["done", null, null, "hi"])),
        (State::Completed, Some("hi"), &["a", "b"], json!(["done", null, null, "b"])),
        (State::Failed, Some("boom"), &[], json!(["done", "error", "boom", null])),
        (State::Rejected, Some("no"), &[], json!(["done", "rejected", "no", null])),
        (State::Canceled, None, &["half"], json!(["cancelled", "cancelled", null, "half"])),
    ] {
        let run = shown(&task(state, status_text, artifacts), &[]);
        let actual =
            json!([run["status"], run["terminationCode"], run["terminationDetail"], run["message"]["content"]]);
        assert_eq!(actual, expected, "{state:?}");
    }
}

#[test]
fn a_waiting_run_lists_its_pending_question() {
    let mut run = task(State::InputRequired, Some("Which?"), &[]);
    // Its turn ended with the question, so the last event asked it.
    let last = sabir_model::QuestionId::issue(&run.id, run.seq).to_string();
    assert_eq!(shown(&run, &[])["pending"], json!([{"target_id": last, "question": "Which?"}]));
    run.turn_over = false;
    assert_eq!(shown(&run, &[])["pending"], json!([]), "a question from before there were ids");
    let id = sabir_model::QuestionId::issue(&run.id, 3).to_string();
    let question = json!({"kind": "question", "questionId": id, "question": "Which?"}).to_string();
    let mut operation = Message::clone(run.status.message.as_ref().unwrap());
    operation.parts.push(sabir_model::Content::Data(Json::parse(question).unwrap()).into());
    run.status.message = Some(operation.into());
    assert_eq!(shown(&run, &[])["pending"], json!([{"target_id": id, "question": "Which?"}]));
    assert_eq!(shown(&run, &[])["message"]["content"], "Which?");
    run.status.state = State::Working;
    assert_eq!(shown(&run, &[]).get("pending"), None);
}

#[test]
fn the_history_has_the_messages_of_earlier_tasks_too() {
    let mut second = task(State::Working, None, &[]);
    second.history = vec![
        message(Role::User, "be brief", Some(r#"{"role":"system"}"#)),
        message(Role::Agent, "Which day?", None),
        message(Role::User, "Monday", None),
    ];
    let run = shown(&second, &[task(State::Completed, None, &["first"])]);
    let lines: Vec<String> = run["history"]
        .as_array()
        .unwrap()
        .iter()
        .map(|line| format!("{}: {}", line["role"].as_str().unwrap(), line["content"].as_str().unwrap()))
        .collect();
    assert_eq!(lines, ["user: hello", "assistant: first", "system: be brief", "assistant: Which day?", "user: Monday"]);
    let run = shown(&task(State::InputRequired, Some("Which?"), &["half"]), &[]);
    let contents: Vec<&Value> = run["history"].as_array().unwrap().iter().map(|line| &line["content"]).collect();
    assert_eq!(contents, ["hello", "half", "Which?"]);
}

#[test]
fn an_input_and_a_message_of_another_role_are_two_history_lines() {
    let route =
        GatewayRoute { agent: sabir_model::AgentId::parse("alpha").unwrap(), operation: GatewayOperation::Send };
    for (body, expected) in [
        (r#"{"input":"a","message":{"role":"system","content":"b"}}"#, json!([["user", "a"], ["system", "b"]])),
        (r#"{"input":"a","message":{"role":"assistant","content":"b"}}"#, json!([["user", "a"], ["assistant", "b"]])),
        (r#"{"input":"a","message":{"content":"b"}}"#, json!([["user", "a b"]])),
        (r#"{"message":{"role":"assistant","content":"b"}}"#, json!([["assistant", "b"]])),
    ] {
        let decoded =
            route.decode(&RequestHead { verb: "POST", ..RequestHead::default() }, body.as_bytes(), &ThreeAgents);
        let Ok(Call::Send(send)) = decoded.call else { panic!("{body}") };
        let mut run = task(State::Working, None, &[]);
        run.history = vec![send.message.or_with_id(|| MessageId::parse("m").unwrap()).into()];
        let history = shown(&run, &[])["history"].take();
        let lines: Vec<Value> =
            history.as_array().unwrap().iter().map(|line| json!([line["role"], line["content"]])).collect();
        assert_eq!(Value::from(lines), expected, "{body}");
    }
}

#[test]
fn only_a_clear_approval_is_a_yes() {
    for (decision, expected) in [
        (r#""action":"resume""#, "yes"),
        (r#""action":"resume","result":true"#, "yes"),
        (r#""action":"resume","result":{"approved":true}"#, "yes"),
        (r#""action":"resume","result":{"path":"/tmp"}"#, "yes"),
        (r#""action":"resume","result":"Monday""#, "Monday"),
        (r#""action":"resume","result":"no""#, "no"),
        (r#""action":"resume","result":false"#, "no"),
        (r#""action":"resume","result":{"approved":false}"#, "no"),
        (r#""action":"resume","result":{"approved":"false"}"#, "no"),
        (r#""action":"resume","result":{"approved":true,"approved":false}"#, "no"),
        (r#""action":"resume","result":0"#, "no"),
        (r#""action":"resume","result":[]"#, "no"),
        (r#""action":"cancel","result":true"#, "no"),
    ] {
        let actual = submit(&format!(r#"{{"taskId":"t","decisions":[{{"target_id":"c",{decision}}}]}}"#));
        assert!(actual.starts_with(&format!("User {expected:?} ")), "{decision}: {actual}");
    }
    let two = |first: &str, second: &str| {
        let decision = |action: &str| format!(r#"{{"target_id":"c","action":"{action}"}}"#);
        submit(&format!(r#"{{"taskId":"t","decisions":[{},{}]}}"#, decision(first), decision(second)))
    };
    assert!(two("resume", "resume").starts_with(r#"User "yes""#));
    assert!(two("resume", "cancel").starts_with(r#"User "no""#));
}
