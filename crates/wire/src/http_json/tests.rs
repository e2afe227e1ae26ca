use sabir_model::PushCall;
use serde_json::{Value, json};

use super::*;
use crate::fixture::{self, ThreeAgents, golden};
use crate::{Surface, locate};

fn decode<'a>(request: &Value, body: &'a [u8]) -> Decoded<'a> {
    let head = fixture::head(request);
    match locate(&head, &ThreeAgents) {
        Surface::Call(endpoint) => endpoint.decode(&head, body, Compat::default(), &ThreeAgents),
        Surface::Refused(refused) => {
            panic!("{request}: {}", refused.error)
        }
        _ => panic!("{request}"),
    }
}

fn call(verb: &str, path: &str, version: &str, body: &str) -> Result<Call, Error> {
    decode(&json!({"method": verb, "path": path, "headers": {"A2A-Version": version}}), body.as_bytes()).call
}

#[test]
fn every_golden_request_is_decoded() {
    for (case, expected) in [
        ("v1.0/rest/send_message", "Send"),
        ("v1.0/rest/send_message_tenant", "Send"),
        ("v1.0/rest/send_streaming_message", "Send"),
        ("v1.0/rest/get_task", "Get"),
        ("v1.0/rest/get_task_version_query", "Get"),
        ("v1.0/rest/list_tasks", "List"),
        ("v1.0/rest/cancel_task", "Cancel"),
        ("v1.0/rest/subscribe_to_task_get", "Subscribe"),
        ("v1.0/rest/subscribe_to_task_post", "Subscribe"),
        ("v1.0/rest/create_push_config", "Push(Set"),
        ("v1.0/rest/get_push_config", "Push(Get"),
        ("v1.0/rest/list_push_configs", "Push(List"),
        ("v1.0/rest/delete_push_config", "Push(Delete"),
        ("v1.0/rest/get_extended_agent_card", "ExtendedCard"),
        ("v0.3/rest/message_send", "Send"),
        ("v0.3/rest/message_send_snake_case", "Send"),
        ("v0.3/rest/message_stream", "Send"),
        ("v0.3/rest/tasks_get", "Get"),
        ("v0.3/rest/tasks_cancel", "Cancel"),
        ("v0.3/rest/tasks_subscribe", "Subscribe"),
        ("v0.3/rest/push_config_create", "Push(Set"),
        ("v0.3/rest/push_config_get", "Push(Get"),
        ("v0.3/rest/push_config_list", "Push(List"),
        ("v0.3/rest/push_config_delete", "Push(Delete"),
        ("v0.3/rest/card", "ExtendedCard"),
        ("v0.2/rest/extended_card", "ExtendedCard"),
    ] {
        let request = &golden(&format!("{case}.http.json"))["request"];
        let body = request.get("body").map(Value::to_string).unwrap_or_default();
        match decode(request, body.as_bytes()).call {
            Ok(call) => assert!(format!("{call:?}").starts_with(expected), "{case}: {call:?}"),
            Err(error) => panic!("{case}: {error}"),
        }
    }
}

#[test]
fn all_violations_of_a_query_are_reported() {
    let exchange = golden("v1.0/rest/error_invalid_argument.http.json");
    let decoded = decode(&exchange["request"], b"");
    let reply = decoded.responder.error_reply(&decoded.call.unwrap_err());
    assert_eq!(reply.status, 400);
    let mut body = fixture::json(&reply.body);
    // Beside what the golden has, the reason by which clients of this binding know the error.
    let reason = body["error"]["details"].as_array_mut().unwrap().remove(1);
    assert_eq!(reason["reason"], "INVALID_PARAMS");
    assert_eq!(body, exchange["response"]["body"]);

    for (query, expected) in [
        ("pageSize=x&historyLength=-5", "pageSize must be a whole number; historyLength must not be negative"),
        (
            "includeArtifacts=yes&pageSize=0",
            "pageSize must be between 1 and 100; includeArtifacts must be true or false",
        ),
        ("pageSize=1&pageSize=2", "pageSize is given twice, with different values"),
        ("pageSize=1&page_size=2", "pageSize is given twice, with different values"),
        ("pageSize=x&pageSize=y", "pageSize must be a whole number"),
        ("contextId=%zz", "contextId is not percent-encoded UTF-8"),
    ] {
        let error = call("GET", &format!("/tasks?{query}"), "1.0", "").unwrap_err();
        assert_eq!(error.to_string(), format!("invalid parameters: {expected}"), "{query}");
    }
}

#[test]
fn query_parameters_are_read_in_both_spellings() {
    for (query, page_size, history) in [
        ("", 50, None),
        ("pageSize=7&historyLength=0", 7, Some(0)),
        ("page_size=7&history_length=3", 7, Some(3)),
        ("pageSize=7&pageSize=7&page_size=%37", 7, None),
        ("utm=1&A2A-Version=1.0&pageSize=9", 9, None),
        ("includeArtifacts=true&status=TASK_STATE_COMPLETED&contextId=a+b", 50, None),
    ] {
        let Ok(Call::List(list)) = call("GET", &format!("/tasks?{query}"), "1.0", "") else { panic!("{query}") };
        assert_eq!((list.page_size, list.history), (page_size, history), "{query}");
    }
    let Ok(Call::Get(get)) = call("GET", "/tasks/a%20b?history_length=2", "", "") else { panic!("no get") };
    assert_eq!((get.task.as_str(), get.history), ("a b", Some(2)));
}

#[test]
fn the_path_wins_over_the_body() {
    for (path, version) in [("/tasks/t", "1.0"), ("/a2a/rest/tasks/t", ""), ("/v1/tasks/t", ""), ("/v1/tasks/t", "0.3")]
    {
        for body in ["", "  ", "{}", "null", r#"{"id":"other"}"#, r#"{"name":"tasks/other"}"#] {
            let Call::Cancel(cancel) = call("POST", &format!("{path}:cancel"), version, body).unwrap() else {
                panic!("{path} {body}")
            };
            assert_eq!(cancel.task.as_str(), "t", "{path} {body}");
            assert_eq!(cancel.on_finished, OnFinishedCancel::Refuse);
        }
    }
    let Call::Cancel(cancel) = call("POST", "/tasks/t:cancel", "1.0", r#"{"metadata":{"n":1e3}}"#).unwrap() else {
        panic!("no cancel")
    };
    assert!(cancel.metadata.is_some());

    for (path, body) in [
        ("/tasks/t/pushNotificationConfigs", r#"{"taskId":"other","id":"c","url":"https://a.b/c"}"#),
        ("/tasks/t/pushNotificationConfigs", r#"{"task_id":"other","id":"c","url":"https://a.b/c"}"#),
        (
            "/v1/tasks/t/pushNotificationConfigs",
            r#"{"parent":"tasks/other","configId":"c","config":{"pushNotificationConfig":{"id":"c","url":"https://a.b/c"}}}"#,
        ),
        ("/v1/tasks/t/pushNotificationConfigs", r#"{"pushNotificationConfig":{"id":"c","url":"https://a.b/c"}}"#),
        ("/a2a/tasks/t/pushNotificationConfig", r#"{"id":"c","url":"https://a.b/c"}"#),
        (
            "/a2a/tasks/t/pushNotificationConfig",
            r#"{"taskId":"other","pushNotificationConfig":{"id":"c","url":"https://a.b/c"}}"#,
        ),
    ] {
        let Call::Push(PushCall::Set { config, .. }) = call("POST", path, "", body).unwrap() else { panic!("{path}") };
        assert_eq!(config.task.unwrap().as_str(), "t", "{path} {body}");
        assert_eq!(config.url, "https://a.b/c");
        assert_eq!(config.id.unwrap().as_str(), "c");
    }
}

#[test]
fn paths_say_which_configs_are_read_and_deleted() {
    for (verb, path, version, expected) in [
        ("GET", "/a2a/tasks/t/pushNotificationConfig", "", "List t"),
        ("GET", "/a2a/tasks/t/pushNotificationConfigs/c%201", "", "Get t c 1"),
        ("DELETE", "/a2a/tasks/t/pushNotificationConfig", "", "Delete t all"),
        ("DELETE", "/a2a/tasks/t/pushNotificationConfigs/c", "0.3", "Delete t c"),
        ("DELETE", "/a2a/tasks/%22,%7D/pushNotificationConfigs/%22", "", "Delete \",} \""),
        ("DELETE", "/v1/tasks/t/pushNotificationConfigs/c", "", "Delete t c"),
        ("DELETE", "/tasks/t/pushNotificationConfigs/c", "", "Delete t c"),
        ("GET", "/tasks/t/pushNotificationConfigs/c", "1.0", "Get t c"),
    ] {
        for compat in [Compat::default(), Compat { strict: true, ..Compat::default() }] {
            let request = json!({"method": verb, "path": path, "headers": {"A2A-Version": version}});
            let head = fixture::head(&request);
            let Surface::Call(endpoint) = locate(&head, &ThreeAgents) else { panic!("{path}") };
            let id = |config: Option<sabir_model::PushConfigId>| config.map_or("all".to_owned(), |id| id.to_string());
            let told = match endpoint.decode(&head, b"", compat, &ThreeAgents).call {
                Ok(Call::Push(PushCall::List { task, .. })) => format!("List {task}"),
                Ok(Call::Push(PushCall::Get { task, config, .. })) => format!("Get {task} {}", id(config)),
                Ok(Call::Push(PushCall::Delete { task, config, .. })) => format!("Delete {task} {}", id(config)),
                other => format!("{other:?}"),
            };
            assert_eq!(told, expected, "{verb} {path}");
        }
    }
}

#[test]
fn a_header_asks_for_every_event_of_a_webhook() {
    let config = r#"{"url":"https://a.b/c"}"#;
    let wrong = "invalid parameters: Sabir-Push-Events must be all, or left out";
    for (header, expected) in [
        (None, "Statuses"),
        (Some("all"), "All"),
        (Some(" all "), "All"),
        (Some("ALL"), wrong),
        (Some("none"), wrong),
        (Some(""), wrong),
        (Some("\0"), wrong),
    ] {
        for path in ["/tasks/t/pushNotificationConfigs", "/a2a/tasks/t/pushNotificationConfig", "/a2a/jsonrpc"] {
            let head = RequestHead { verb: "POST", path, push_events: header, ..RequestHead::default() };
            let Surface::Call(endpoint) = locate(&head, &ThreeAgents) else { panic!("{path}") };
            let body = match path {
                "/a2a/jsonrpc" => format!(
                    r#"{{"jsonrpc":"2.0","id":1,"method":"tasks/pushNotification/set","params":{{"id":"t","pushNotificationConfig":{config}}}}}"#
                ),
                _ => config.to_owned(),
            };
            let told = match endpoint.decode(&head, body.as_bytes(), Compat::default(), &ThreeAgents).call {
                Ok(Call::Push(PushCall::Set { events, .. })) => format!("{events:?}"),
                Ok(other) => format!("{other:?}"),
                Err(error) => error.to_string(),
            };
            assert_eq!(told, expected, "{path} {header:?}");
        }
    }
}

#[test]
fn the_agent_of_the_path_wins_over_the_tenant_of_the_body() {
    let body = r#"{"tenant":"TENANT","message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"x"}]}}"#;
    for (path, tenant, expected) in [
        ("/message:send", "b 2", "Some(\"b 2\")"),
        ("/alpha/message:send", "b 2", "Some(\"alpha\")"),
        ("/agents/alpha/message:send", "b 2", "Some(\"alpha\")"),
        ("/alpha/message:send", "ghost", "Some(\"alpha\")"),
        ("/message:send", "ghost", "there is no agent ghost; known: alpha, b 2, harbour-north"),
    ] {
        let actual = match call("POST", path, "1.0", &body.replace("TENANT", tenant)) {
            Ok(Call::Send(send)) => format!("{:?}", send.agent),
            Ok(other) => panic!("{other:?}"),
            Err(error) => error.to_string(),
        };
        assert_eq!(actual, expected, "{path} {tenant}");
    }
    let Ok(Call::Get(get)) = call("GET", "/tasks/t?tenant=alpha", "", "") else { panic!("no get") };
    assert_eq!(get.agent.unwrap().as_str(), "alpha");
}

#[test]
fn the_tenant_in_the_query_must_exist_and_match() {
    const UNKNOWN: &str = "there is no agent ghost; known: alpha, b 2, harbour-north";
    let message = r#"{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"x"}]}}"#;
    let named = r#"{"tenant":"b 2","message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"x"}]}}"#;
    let config = r#"{"url":"https://a.b/c"}"#;
    for version in ["", "1.0"] {
        for (verb, path, body, expected) in [
            ("POST", "/message:send?tenant=alpha", message, Ok(Some("alpha"))),
            ("POST", "/a2a/rest/message:stream?x=1&tenant=b+2", message, Ok(Some("b 2"))),
            ("POST", "/message:send?tenant=", message, Ok(None)),
            ("POST", "/message:send?tenant=ghost", message, Err(UNKNOWN)),
            ("POST", "/message:stream?tenant=ghost", message, Err(UNKNOWN)),
            ("POST", "/message:send?tenant=ghost", named, Err(UNKNOWN)),
            ("POST", "/message:send?tenant=b%202", named, Ok(Some("b 2"))),
            (
                "POST",
                "/message:send?tenant=alpha",
                named,
                Err("invalid parameters: tenant does not match the query, which names alpha"),
            ),
            ("POST", "/alpha/message:send?tenant=b+2", message, Ok(Some("alpha"))),
            ("POST", "/alpha/message:send?tenant=ghost", message, Err(UNKNOWN)),
            ("POST", "/agents/alpha/message:send?tenant=ghost", message, Err(UNKNOWN)),
            (
                "POST",
                "/message:send?tenant=alpha&tenant=b+2",
                message,
                Err("invalid parameters: tenant is given twice, with different values"),
            ),
            (
                "POST",
                "/message:send?tenant=%zz",
                message,
                Err("invalid parameters: tenant is not percent-encoded UTF-8"),
            ),
            ("POST", "/tasks/t:cancel?tenant=alpha", "", Ok(Some("alpha"))),
            ("POST", "/tasks/t:cancel?tenant=ghost", "", Err(UNKNOWN)),
            ("POST", "/tasks/t/pushNotificationConfigs?tenant=ghost", config, Err(UNKNOWN)),
            ("POST", "/tasks/t:subscribe?tenant=ghost", "", Err(UNKNOWN)),
            ("GET", "/tasks?tenant=alpha", "", Ok(Some("alpha"))),
            ("GET", "/tasks?tenant=ghost", "", Err(UNKNOWN)),
            ("GET", "/alpha/tasks?tenant=ghost", "", Err(UNKNOWN)),
            ("GET", "/tasks/t?tenant=ghost", "", Err(UNKNOWN)),
            ("GET", "/extendedAgentCard?tenant=ghost", "", Err(UNKNOWN)),
            ("DELETE", "/tasks/t/pushNotificationConfigs/c?tenant=ghost", "", Err(UNKNOWN)),
        ] {
            let call = call(verb, path, version, body);
            let agent = call.as_ref().map(|call| call.agent().map(AgentId::as_str));
            assert_eq!(agent.map_err(ToString::to_string), expected.map_err(str::to_owned), "{verb} {path} {version}");
        }
    }
    // 0.3 has no tenants, so that a parameter of that name is somebody else's.
    let Ok(Call::Get(get)) = call("GET", "/v1/tasks/t?tenant=ghost", "", "") else { panic!("no get") };
    assert_eq!(get.agent, None);
}

#[test]
fn a_body_that_is_no_object_is_refused() {
    for (path, body, expected) in [
        ("/message:send", "{", "the body is not JSON: EOF while parsing an object at line 1 column 1"),
        ("/message:send", "", "the body is not JSON: EOF while parsing a value at line 1 column 0"),
        ("/message:send", "[]", "the body must be a JSON object"),
        ("/tasks/t:cancel", "[]", "the body must be a JSON object"),
        ("/tasks/t:cancel", "x", "the body is not JSON: expected value at line 1 column 1"),
        ("/tasks/t/pushNotificationConfigs", "null", "the body must be a JSON object"),
        (
            "/message:send",
            r#"{"message":{"parts":[{"text":"\ud800"}]}}"#,
            "invalid parameters: message.parts[0].text must not hold half of a surrogate pair",
        ),
        (
            "/tasks/t/pushNotificationConfigs",
            r#"{"url":"\udc00"}"#,
            "invalid parameters: url must not hold half of a surrogate pair",
        ),
        ("/tasks/t:cancel", r#"{"\ud800":1}"#, "invalid parameters: params must not hold half of a surrogate pair"),
        ("/v1/message:send", "{", "the body is not JSON: EOF while parsing an object at line 1 column 1"),
    ] {
        assert_eq!(call("POST", path, "", body).unwrap_err().to_string(), expected, "{path} {body}");
    }
}

#[test]
fn a_missing_extended_card_of_0_2_is_404() {
    for path in ["/agent/authenticatedExtendedCard", "/a2a/agent/authenticatedExtendedCard"] {
        let decoded = decode(&json!({"method": "GET", "path": path, "headers": {}}), b"");
        assert_eq!(decoded.call.unwrap(), Call::ExtendedCard { agent: None });
        let reply = decoded.responder.error_reply(&Error::ExtendedCardNotOffered);
        assert_eq!((reply.status, reply.content_type), (404, "application/problem+json"));
        let detail = "this server has no extended card; the public card is at /.well-known/agent-card.json";
        assert_eq!(fixture::json(&reply.body)["detail"], detail);
    }
}

#[test]
fn strictness_depends_on_version_and_setting() {
    let bare = r#"{"message":{"parts":[{"text":"x"}]}}"#;
    let foreign = r#"{"message":{"message_id":"m","role":"user","parts":[{"kind":"text","content":"x"}]}}"#;
    assert!(call("POST", "/message:send", "", bare).is_ok());
    assert!(call("POST", "/a2a/rest/message:send", "", bare).is_ok());
    let error = call("POST", "/message:send", "1.0", bare).unwrap_err().to_string();
    assert_eq!(error, "invalid parameters: message.messageId is required; message.role is required");
    assert!(call("POST", "/message:send", "1.0", foreign).is_ok());
    for version in ["", "1.0"] {
        let head =
            RequestHead { verb: "POST", path: "/message:send", version: Some(version), ..RequestHead::default() };
        let Surface::Call(endpoint) = locate(&head, &ThreeAgents) else { panic!("no endpoint") };
        let strict = Compat { strict: true, ..Compat::default() };
        for body in [bare, foreign] {
            assert!(endpoint.decode(&head, body.as_bytes(), strict, &ThreeAgents).call.is_err(), "{version} {body}");
        }
    }
}
