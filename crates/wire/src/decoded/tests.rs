//! Any request is decoded or refused, and a refusal has the shape of its endpoint.

use proptest::prelude::*;
use proptest::sample::select;
use sabir_model::{Birth, Error, TaskId};

use crate::fixture::{self, ThreeAgents};
use crate::{Compat, EVENT_STREAM, Endpoint, Reply, RequestHead, Surface, locate};

fn segment() -> impl Strategy<Value = String> {
    let known = select(vec![
        "",
        "a2a",
        "rest",
        "v1",
        "v0.3",
        "v0.1",
        "jsonrpc",
        "agents",
        "alpha",
        "b%202",
        "ghost",
        "tasks",
        "message:send",
        "message:stream",
        "t:cancel",
        "t%3Acancel",
        "t:subscribe",
        ":cancel",
        "pushNotificationConfigs",
        "pushNotificationConfig",
        "card",
        "extendedAgentCard",
        "agent",
        "authenticatedExtendedCard",
        ".well-known",
        "agent-card.json",
        "%",
        "%zz",
        "%ff",
        "%00",
        "healthz",
        "agent-card",
    ]);
    prop_oneof![4 => known.prop_map(str::to_owned), 1 => ".{0,8}"]
}

fn query() -> impl Strategy<Value = String> {
    let name =
        select(vec!["pageSize", "page_size", "historyLength", "status", "tenant", "A2A-Version", "envelope", "x"]);
    let value = prop_oneof![
        4 => select(vec!["", "1", "-5", "1.0", "0.3", "2.0", "none", "alpha", "ghost", "%", "a+b"]).prop_map(str::to_owned),
        1 => ".{0,8}",
    ];
    let pair = (name, value).prop_map(|(name, value)| format!("{name}={value}"));
    prop::collection::vec(pair, 0..5).prop_map(|pairs| pairs.join("&"))
}

fn body() -> impl Strategy<Value = String> {
    let id =
        select(vec!["1", "-3", "1.0", "1e3", "\"a\"", "\"\\u0041\"", "\"\u{2028}\"", "null", "{}", "[1]", LONG_ID]);
    let method = select(vec![
        "SendMessage",
        "SendStreamingMessage",
        "GetTask",
        "ListTasks",
        "CancelTask",
        "SubscribeToTask",
        "message/send",
        "message/stream",
        "tasks/get",
        "tasks/cancel",
        "tasks/resubscribe",
        "tasks/send",
        "tasks/sendSubscribe",
        "tasks/pushNotification/set",
        "tasks/pushNotification/get",
        "nope",
        "tasks/pushNotificationConfig/set",
        "CreateTaskPushNotificationConfig",
        "GetExtendedAgentCard",
    ]);
    let params = select(vec![
        "{}",
        "null",
        "[]",
        "5",
        r#"{"id":"t"}"#,
        r#"{"taskId":"t"}"#,
        r#"{"id":""}"#,
        r#"{"id":"t","tenant":"ghost"}"#,
        r#"{"message":{"messageId":"m","role":"user","parts":[{"kind":"text","text":"x"}]}}"#,
        r#"{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"x"}]},"tenant":"alpha"}"#,
        r#"{"id":"t","sessionId":"s","message":{"role":"user","parts":[{"type":"text","text":"x"}]}}"#,
        r#"{"id":"t","message":{"role":"user","parts":[{"type":"text"}]}}"#,
        r#"{"id":"t","pushNotificationConfig":{"url":"https://a.b"}}"#,
        r#"{"message":{"parts":[]}}"#,
        r#"{"id":"\ud800"}"#,
        r#"{"\udc00":1}"#,
        r#"{"id":"t","message":{"messageId":"m","role":"user","parts":[{"text":"\ud800"}]}}"#,
        r#"{"message":{"messageId":"m","role":"user","parts":[{"data":{"value":"\ud800"},"metadata":{"data_part_compat":true,"data_part_compat":0}}]}}"#,
        r#"{"message":5}"#,
    ]);
    let request = (id, method, params).prop_map(|(id, method, params)| {
        format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#)
    });
    let without_id = request.clone().prop_map(|text| text.replacen("\"id\"", "\"no\"", 1));
    prop_oneof![8 => request, 1 => without_id, 2 => params_alone(), 1 => ".{0,40}", 1 => Just(String::new())]
}

/// One byte too long.
const LONG_ID: &str = {
    const BYTES: [u8; 1025] = {
        let mut bytes = [b'1'; 1025];
        bytes[1] = b'.';
        bytes
    };
    match std::str::from_utf8(&BYTES) {
        Ok(text) => text,
        Err(_) => unreachable!(),
    }
};

fn params_alone() -> impl Strategy<Value = String> {
    select(vec![
        r#"{"input":"x"}"#,
        r#"{"taskId":"t","task_id":"u","input":"x"}"#,
        r#"{"taskId":"t","decisions":[{"target_id":"c","action":"resume"}]}"#,
        r#"{"decisions":[5]}"#,
        "{}",
        "null",
        "[{}]",
        "{\"metadata\":{}}",
        "{\"message\":{}}",
        "{\"url\":\"https://a.b\"}",
        "{",
    ])
    .prop_map(str::to_owned)
}

/// What holds for every reply.
fn check(reply: &Reply, id: Option<&str>) -> Result<(), TestCaseError> {
    let text = String::from_utf8(reply.body.clone()).unwrap();
    let data = match reply.content_type {
        EVENT_STREAM => text.strip_prefix("event: error\ndata: ").and_then(|text| text.strip_suffix("\n\n")).unwrap(),
        _ => &text,
    };
    let value = fixture::json(data.as_bytes());
    match reply.content_type {
        "application/problem+json" => {
            prop_assert_eq!(&value["status"], &serde_json::json!(reply.status));
            prop_assert!(value["a2a_code"].is_i64() && value["detail"].is_string());
        }
        "application/a2a+json" => prop_assert_eq!(&value["error"]["code"], &serde_json::json!(reply.status)),
        EVENT_STREAM => {
            prop_assert!(value["error"]["code"].is_i64());
            prop_assert!(!data.contains(['\n', '\u{2028}']), "{}", data);
        }
        "application/json" => match id {
            Some(id) => {
                prop_assert!(value["error"]["code"].is_i64() && value["error"]["message"].is_string());
                let start = format!(r#"{{"jsonrpc":"2.0","id":{id},"error":"#);
                prop_assert!(data.starts_with(&start), "{} does not start {}", data, start);
            }
            None => {
                let is_gateway = value["error"].is_string() && value.as_object().is_some_and(|body| body.len() == 1);
                prop_assert!(value["code"].is_i64() || value["error"]["code"].is_i64() || is_gateway);
            }
        },
        other => prop_assert!(false, "{}", other),
    }
    Ok(())
}

/// The id that an answer must carry.
fn id_of(body: &str) -> &str {
    let id = body.strip_prefix(r#"{"jsonrpc":"2.0","id":"#).and_then(|rest| rest.split_once(r#","method""#));
    id.map(|(id, _)| id).filter(|id| !matches!(*id, "{}" | "[1]" | LONG_ID)).unwrap_or("null")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn anything_is_read_or_refused(
        verb in select(vec!["GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS", ""]),
        segments in prop::collection::vec(segment(), 0..7),
        query in query(),
        version in prop::option::of(select(vec!["", "1.0", "0.3", "0.2", "0.1", "1.7", "x"])),
        last in prop::option::of(select(vec!["0", "7", "x", "-1"])),
        key in prop::option::of(select(vec!["", "k", "all", "\n"])),
        body in body(),
        strict: bool,
        by_gateway: bool,
        born in select(vec![1, 3, 10]),
    ) {
        let base = if by_gateway { "/v1/a2a/agents" } else { "" };
        let path = format!("{base}/{}", segments.join("/"));
        let head = RequestHead {
            verb,
            path: &path,
            query: Some(&query),
            version,
            last_event_id: last,
            idempotency_key: key,
            extensions: Some(&query),
            push_events: key,
            trace_parent: None,
            trace_state: None,
        };
        let compat = Compat { strict, ..Compat::default() };
        let surface = locate(&head, &ThreeAgents);
        check(&surface.responder(&head).error_reply(&Error::TooLarge { limit: 1 }), None)?;
        let (call, responder, id) = match surface {
            Surface::Call(endpoint) => {
                let decoded = endpoint.decode(&head, body.as_bytes(), compat, &ThreeAgents);
                let id = matches!(endpoint, Endpoint::JsonRpc(_)).then(|| id_of(&body));
                (decoded.call, decoded.responder, id)
            }
            Surface::Refused(refused) => {
                if verb == "OPTIONS" && refused.reply().allow.is_some() {
                    prop_assert_eq!(refused.reply().status, 204);
                    return Ok(());
                }
                prop_assert!(refused.reply().status >= 400);
                return check(&refused.reply(), None);
            }
            Surface::Card { .. }
            | Surface::Catalogue
            | Surface::AgentList
            | Surface::GatewayCard(_)
            | Surface::GrpcService(_)
            | Surface::Health
            | Surface::Ready => return Ok(()),
        };
        let error = call.err().unwrap_or_else(|| Error::TaskNotFound(TaskId::parse("t").unwrap()));
        check(&responder.error_reply(&error), id)?;
        check(&responder.for_birth(Birth(born)).error_reply(&error), id)?;
    }

    #[test]
    fn any_bytes_are_read_or_refused(path in ".{0,40}", query in ".{0,40}", body: Vec<u8>, post: bool) {
        let verb = if post { "POST" } else { "GET" };
        let heads = [path.as_str(), "/", "/tasks/t:cancel", "/v1/message:send", "/message:send", "/tasks", "/v1/a2a/agents/alpha/message:send"];
        for path in heads {
            let head = RequestHead { verb, path, query: Some(&query), ..RequestHead::default() };
            let Surface::Call(endpoint) = locate(&head, &ThreeAgents) else { continue };
            let decoded = endpoint.decode(&head, &body, Compat::default(), &ThreeAgents);
            if let Err(error) = decoded.call {
                check(&decoded.responder.error_reply(&error), None)?;
            }
        }
    }
}
