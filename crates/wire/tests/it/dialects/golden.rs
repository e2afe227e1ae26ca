//! The golden exchanges of every version: each request is read, each answer is read and written again.
//!
//! What each request means is in `golden/calls.txt`; `UPDATE_GOLDEN=1` rewrites it, and the diff is reviewed.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use sabir_model::{AgentId, Cursor, Error, TaskId, Timestamp};
use sabir_wire::{Operation, Payload, PeerResponse, Strictness};
use serde_json::{Value, json};

use super::TestDialect;
use super::describe::describe;

#[test]
fn golden_requests_decode_alike_at_every_strictness() {
    let mut calls = String::new();
    for case in cases() {
        let Some((operation, params)) = case.request() else { continue };
        let strict = case.dialect.decode(operation, &params, Strictness::Strict);
        for strictness in [Strictness::Complete, Strictness::Lenient] {
            let other = case.dialect.decode(operation, &params, strictness);
            assert_eq!(describe(&strict), describe(&other), "{}", case.name);
            if let (Ok(strict), Ok(other)) = (&strict, &other) {
                assert_eq!(strict, other, "{}", case.name);
            }
        }
        writeln!(calls, "{}: {}", case.name, describe(&strict)).unwrap();
    }
    let path = folder().join("calls.txt");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, &calls).unwrap();
    }
    assert_eq!(calls, std::fs::read_to_string(&path).unwrap(), "UPDATE_GOLDEN=1 rewrites calls.txt");
}

#[test]
fn golden_answers_are_read_and_written_again() {
    let mut seen = 0;
    for case in cases() {
        for (operation, answer) in case.answers() {
            check_answer(&case.name, case.dialect, operation, &answer);
            seen += 1;
        }
    }
    assert!(seen > 100, "only {seen} answers");
}

#[test]
fn golden_violations_name_the_same_fields() {
    let mut seen = 0;
    for case in cases() {
        let expected = case.violations();
        if expected.is_empty() || case.name.contains("context_mismatch") {
            continue;
        }
        let (operation, params) = match case.request() {
            Some(request) => request,
            // It came as a query, which is the same params in another binding.
            None => (Operation::List, json!({"pageSize": 150, "historyLength": -5}).to_string()),
        };
        let Err(Error::Invalid(violations)) = case.dialect.decode(operation, &params, Strictness::Strict) else {
            panic!("{} was not refused", case.name);
        };
        let expected: Vec<(String, String)> = violations.into_iter().map(|v| (v.field, v.description)).collect();
        assert_eq!(expected, expected, "{}", case.name);
        seen += 1;
    }
    assert_eq!(seen, 2);
}

fn check_answer(name: &str, dialect: TestDialect, operation: Operation, answer: &Value) {
    let response =
        dialect.decode_response(operation, &answer.to_string()).unwrap_or_else(|error| panic!("{name}: {error}"));
    let written = match &response {
        PeerResponse::Task(task) => dialect.encode(match operation {
            Operation::Send => Payload::SendResult(task),
            Operation::Get | Operation::Cancel => Payload::Task(task),
            _ => Payload::Snapshot(task),
        }),
        PeerResponse::Message(message) => dialect.encode(Payload::Message(message)),
        PeerResponse::Event { task, context, event } => dialect.encode(Payload::Event { task, context, event }),
        PeerResponse::FinalEvent { task, event } => dialect.encode(Payload::FinalEvent { task, event }),
        PeerResponse::Page { page, .. } => dialect.encode(Payload::Page(page)),
        PeerResponse::PushConfig(config) => dialect.encode(Payload::PushConfig(config.as_ref().unwrap())),
        PeerResponse::PushConfigs(configs) => dialect.encode(Payload::PushConfigs(configs)),
        // A card of ours says 0.3 where that one says 0.2.
        PeerResponse::Card(_) if name.starts_with("v0.2") => return,
        PeerResponse::Card(card) => dialect.encode(Payload::Card(card)),
        PeerResponse::Empty => return,
    };
    let mut written = serde_json::from_str::<Value>(&written).unwrap();
    if name.starts_with("v0.3/rest") && matches!(response, PeerResponse::Card(_)) {
        // A card of ours has them in a second spelling, which the tests of cards are about.
        without_proto_schemes(&mut written);
    }
    assert_eq!(&written, answer, "{name}");
}

/// Takes the spelling of ProtoJSON out of the security schemes.
pub(super) fn without_proto_schemes(card: &mut Value) {
    for scheme in card["securitySchemes"].as_object_mut().unwrap().values_mut() {
        scheme.as_object_mut().unwrap().retain(|member, _| !member.ends_with("SecurityScheme"));
    }
}

struct Case {
    name: String,
    dialect: TestDialect,
    request: Option<Value>,
    response: Option<Value>,
    frames: Vec<Value>,
    /// A webhook: the request is what we send.
    is_push: bool,
}

fn cases() -> Vec<Case> {
    let manifest = load("manifest.json");
    let mut cases = Vec::new();
    for entry in manifest["cases"].as_array().unwrap() {
        let word = |key: &str| entry[key].as_str().unwrap_or_default();
        let (version, binding) = (word("dialect"), word("binding"));
        let dialect = match (version, binding) {
            ("v1.0", _) => TestDialect::V1,
            ("v0.3", "rest") => TestDialect::V03Proto,
            // 0.2 has the wire of 0.3.
            ("v0.3" | "v0.2", _) => TestDialect::V03,
            ("v0.1", _) => TestDialect::V01,
            _ => panic!("{version} {binding}"),
        };
        let name = format!("{version}/{binding}/{}", word("case"));
        let case = match entry["exchange"].as_str() {
            Some(path) => {
                let mut exchange = load(path);
                let response = exchange["response"].as_object_mut().unwrap();
                let frames = response.remove("stream").map_or(vec![], |frames| frames.as_array().unwrap().clone());
                Case {
                    response: response.remove("body"),
                    frames,
                    request: Some(exchange["request"].clone()),
                    name,
                    dialect,
                    is_push: binding == "push",
                }
            }
            None => {
                let frames = entry["stream"].as_str().map(|path| load(path).as_array().unwrap().clone());
                let request = entry["request"].as_str().filter(|path| path.ends_with(".json")).map(load);
                let response = entry["response"].as_str().map(load);
                Case { name, dialect, request, response, frames: frames.unwrap_or_default(), is_push: false }
            }
        };
        cases.push(case);
    }
    assert!(cases.len() > 120);
    cases
}

impl Case {
    /// The operation and the text of its params, where the case has a body that one can know them by.
    fn request(&self) -> Option<(Operation, String)> {
        let request = self.request.as_ref()?;
        if self.is_push {
            return None;
        }
        if let Some(method) = request["method"].as_str().filter(|_| request.get("jsonrpc").is_some()) {
            let params = request.get("params").map_or("{}".to_owned(), Value::to_string);
            return Some((operation_of_method(method)?, params));
        }
        let body = request.get("body")?;
        Some((operation_of_path(request)?, body.to_string()))
    }

    /// Everything in the case that we would answer, with the operation it answers.
    fn answers(&self) -> Vec<(Operation, Value)> {
        let Some(request) = &self.request else { return vec![] };
        if self.is_push {
            // 0.1 has no frame for a task.
            let operation = if self.dialect == TestDialect::V01 { Operation::Get } else { Operation::Stream };
            return vec![(operation, request["body"].clone())];
        }
        let is_rpc = request.get("jsonrpc").is_some();
        let operation = match request["method"].as_str() {
            Some(method) if is_rpc => operation_of_method(method),
            _ => operation_of_path(request),
        };
        let Some(operation) = operation else { return vec![] };
        let bodies = self.response.iter().chain(&self.frames);
        let results = bodies.filter_map(|body| if is_rpc { body.get("result") } else { Some(body) });
        let is_error = |body: &&Value| body.get("error").is_some() || body.get("code").is_some();
        results.filter(|body| !is_error(body)).map(|body| (operation, body.clone())).collect()
    }

    /// What the golden answer of 1.0 says is wrong.
    fn violations(&self) -> Vec<(String, String)> {
        let Some(error) = self.response.as_ref().and_then(|response| response.get("error")) else { return vec![] };
        let details = error.get("data").or(error.get("details")).and_then(Value::as_array);
        let violations = details.and_then(|details| details[0]["fieldViolations"].as_array());
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        violations.into_iter().flatten().map(|v| (text(&v["field"]), text(&v["description"]))).collect()
    }
}

fn operation_of_method(method: &str) -> Option<Operation> {
    Some(match method {
        "SendMessage" | "message/send" | "tasks/send" => Operation::Send,
        "SendStreamingMessage" | "message/stream" | "tasks/sendSubscribe" => Operation::Stream,
        "GetTask" | "tasks/get" => Operation::Get,
        "ListTasks" => Operation::List,
        "CancelTask" | "tasks/cancel" => Operation::Cancel,
        "SubscribeToTask" | "tasks/resubscribe" => Operation::Subscribe,
        "CreateTaskPushNotificationConfig" | "tasks/pushNotificationConfig/set" | "tasks/pushNotification/set" => {
            Operation::PushSet
        }
        "GetTaskPushNotificationConfig" | "tasks/pushNotificationConfig/get" | "tasks/pushNotification/get" => {
            Operation::PushGet
        }
        "ListTaskPushNotificationConfigs" | "tasks/pushNotificationConfig/list" => Operation::PushList,
        "DeleteTaskPushNotificationConfig" | "tasks/pushNotificationConfig/delete" => Operation::PushDelete,
        "GetExtendedAgentCard" | "agent/getAuthenticatedExtendedCard" => Operation::ExtendedCard,
        _ => return None,
    })
}

/// Enough of the paths to know what the golden exchanges are about.
fn operation_of_path(request: &Value) -> Option<Operation> {
    let path = request["path"].as_str()?.split('?').next()?;
    let is_one_config = path.rsplit('/').nth(1) == Some("pushNotificationConfigs");
    Some(match request["method"].as_str()? {
        _ if path.ends_with("message:send") => Operation::Send,
        _ if path.ends_with("message:stream") => Operation::Stream,
        _ if path.ends_with(":cancel") => Operation::Cancel,
        _ if path.ends_with(":subscribe") => Operation::Subscribe,
        "POST" if path.ends_with("/pushNotificationConfigs") => Operation::PushSet,
        "GET" if path.ends_with("/pushNotificationConfigs") => Operation::PushList,
        "GET" if is_one_config => Operation::PushGet,
        "DELETE" if is_one_config => Operation::PushDelete,
        "GET"
            if ["/extendedAgentCard", "/card", "/authenticatedExtendedCard"].iter().any(|end| path.ends_with(end)) =>
        {
            Operation::ExtendedCard
        }
        "GET" if path.ends_with("/tasks") => Operation::List,
        "GET" if path.contains("/tasks/") => Operation::Get,
        _ => return None,
    })
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("golden")
}

/// A page token is for each server to make, so the foreign one of the golden files is read as one of ours.
fn load(path: &str) -> Value {
    let text = std::fs::read_to_string(folder().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"));
    let time = Timestamp::parse("2026-02-03T10:15:01Z").unwrap();
    let ours = Cursor {
        time,
        task: TaskId::parse("older-task-1").unwrap(),
        agent: AgentId::parse("demo").unwrap(),
        number: None,
    }
    .to_token();
    serde_json::from_str(&text.replace("b2Zmc2V0LTE", &ours)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// For other tests that start from bodies known to be good.
pub(super) fn bodies() -> Vec<(TestDialect, Operation, String)> {
    let of_case = |case: Case| case.request().map(|(operation, params)| (case.dialect, operation, params));
    cases().into_iter().filter_map(of_case).collect()
}

/// The same for answers.
pub(super) fn answers() -> Vec<(TestDialect, Operation, Value)> {
    let of_case = |case: Case| {
        let dialect = case.dialect;
        case.answers().into_iter().map(move |(operation, answer)| (dialect, operation, answer)).collect::<Vec<_>>()
    };
    cases().into_iter().flat_map(of_case).collect()
}

pub(super) struct Exchange {
    pub(super) name: String,
    pub(super) operation: Operation,
    /// With its path.
    pub(super) request: Value,
    pub(super) answers: Vec<(Operation, Value)>,
}

/// Every exchange of 0.3 over HTTP.
pub(super) fn exchanges_of_0_3() -> Vec<Exchange> {
    let cases = cases().into_iter().filter(|case| case.dialect == TestDialect::V03Proto && !case.is_push);
    let of_case = |case: Case| {
        let request = case.request.clone()?;
        let (name, operation, answers) = (case.name.clone(), operation_of_path(&request)?, case.answers());
        Some(Exchange { name, operation, request, answers })
    };
    cases.filter_map(of_case).collect()
}

pub(super) fn card(path: &str) -> Value {
    load(path)
}
