use sabir_model::{AgentId, Error, TaskId, Violation};
use serde_json::json;

use crate::fixture::{self, golden};
use crate::http_json::EndpointGroup;
use crate::responder::{FrameFormat, JsonRpcEnvelope, Responder, TaskDialect};
use crate::{EVENT_STREAM, Operation, ProtocolVersion};

const TASK: &str = "9b1f2c34-0d5e-4a77-8c1d-52f0a1b2c3d4";

fn task(id: &str) -> TaskId {
    TaskId::parse(id).unwrap()
}

fn responder(version: ProtocolVersion, operation: Operation, id: &str) -> Responder<'_> {
    let envelope = JsonRpcEnvelope { id: id.into(), version, frames: FrameFormat::Enveloped };
    Responder::json_rpc(envelope, Some(operation), TaskDialect::OfRequest)
}

/// One of each kind.
fn every_error() -> Vec<Error> {
    vec![
        Error::TaskNotFound(task("t")),
        Error::NotCancelable(task("t")),
        Error::TaskFinished(task("t")),
        Error::PushNotSupported,
        Error::Unsupported("this agent does not stream".into()),
        Error::ContentType("video/mp4".into()),
        Error::InvalidAgentResponse,
        Error::ExtendedCardNotConfigured,
        Error::ExtendedCardNotOffered,
        Error::ExtensionRequired("https://example.com/ext/geo/v1".into()),
        Error::Version("2.0".into()),
        Error::invalid("message.parts", "at least one part is required"),
        Error::InvalidRequest("batches are not supported".into()),
        Error::MethodNotFound("foo".into()),
        Error::NotJson("EOF".into()),
        Error::AgentNotFound { named: "ghost".into(), known: vec![AgentId::parse("alpha").unwrap()] },
        Error::Busy(AgentId::parse("alpha").unwrap()),
        Error::Stopping,
        Error::StoreFull,
        Error::Overloaded,
        Error::Misdirected("another host".into()),
        Error::BrokenHead("two hosts".into()),
        Error::TooLarge { limit: 10 },
        Error::UnsupportedMediaType("text/xml is not JSON".into()),
        Error::BrokenBody("the body broke off".into()),
        Error::PathNotFound("/x".into()),
        Error::VerbNotAllowed("GET".into()),
        Error::internal("secret: /etc/passwd"),
    ]
}

#[test]
fn json_rpc_errors_match_the_golden_responses() {
    for (case, error, operation) in [
        ("v1.0/jsonrpc/error_task_not_found", Error::TaskNotFound(task("nope")), Operation::Get),
        ("v1.0/jsonrpc/error_task_not_cancelable", Error::NotCancelable(task(TASK)), Operation::Cancel),
        ("v1.0/jsonrpc/error_push_not_supported", Error::PushNotSupported, Operation::PushSet),
        ("v1.0/jsonrpc/error_unsupported_terminal_send", Error::TaskFinished(task(TASK)), Operation::Send),
        ("v1.0/jsonrpc/error_unsupported_terminal_subscribe", Error::TaskFinished(task(TASK)), Operation::Subscribe),
        (
            "v1.0/jsonrpc/error_unsupported_no_streaming",
            Error::Unsupported("this agent does not stream".into()),
            Operation::Stream,
        ),
        ("v1.0/jsonrpc/error_content_type_not_supported", Error::ContentType("video/mp4".into()), Operation::Send),
        ("v1.0/jsonrpc/error_invalid_agent_response", Error::InvalidAgentResponse, Operation::Send),
        ("v1.0/jsonrpc/error_extended_card_not_configured", Error::ExtendedCardNotConfigured, Operation::ExtendedCard),
        (
            "v1.0/jsonrpc/error_extension_support_required",
            Error::ExtensionRequired("https://example.com/ext/geo/v1".into()),
            Operation::Send,
        ),
        ("v1.0/jsonrpc/error_version_not_supported", Error::Version("0.5".into()), Operation::Get),
        (
            "v1.0/jsonrpc/error_invalid_params",
            Error::invalid("message.parts", "at least one part is required"),
            Operation::Send,
        ),
        (
            "v1.0/jsonrpc/error_context_mismatch",
            Error::invalid("message.contextId", "does not match the task"),
            Operation::Send,
        ),
        ("v1.0/jsonrpc/error_batch", Error::InvalidRequest("batches are not supported".into()), Operation::Get),
        ("v1.0/jsonrpc/error_method_not_found", Error::MethodNotFound("FooBar".into()), Operation::Get),
        ("v1.0/jsonrpc/error_parse", Error::NotJson("EOF".into()), Operation::Get),
        ("v0.3/jsonrpc/error_task_not_found", Error::TaskNotFound(task("nope")), Operation::Get),
        ("v0.3/jsonrpc/error_task_not_cancelable", Error::NotCancelable(task(TASK)), Operation::Cancel),
        ("v0.3/jsonrpc/error_push_not_supported", Error::PushNotSupported, Operation::PushSet),
        ("v0.3/jsonrpc/error_unsupported_terminal_send", Error::TaskFinished(task(TASK)), Operation::Send),
        ("v0.3/jsonrpc/error_content_type_not_supported", Error::ContentType("video/mp4".into()), Operation::Send),
        ("v0.3/jsonrpc/error_invalid_agent_response", Error::InvalidAgentResponse, Operation::Send),
        ("v0.3/jsonrpc/error_extended_card_not_configured", Error::ExtendedCardNotConfigured, Operation::ExtendedCard),
        ("v0.3/jsonrpc/error_method_not_found", Error::MethodNotFound("message/foo".into()), Operation::Get),
        ("v0.3/jsonrpc/error_unsupported_version", Error::Version("0.9".into()), Operation::Get),
        ("v0.1/jsonrpc/error_task_not_found", Error::TaskNotFound(task("nope")), Operation::Get),
        ("v0.1/jsonrpc/error_push_not_supported", Error::PushNotSupported, Operation::PushGet),
        ("v0.1/jsonrpc/error_unsupported_terminal_send", Error::TaskFinished(task("task-client-1")), Operation::Send),
    ] {
        let expected = golden(&format!("{case}.response.json"));
        let id = expected["id"].to_string();
        let version = match case.split('/').next() {
            Some("v1.0") => ProtocolVersion::V1_0,
            Some("v0.1") => ProtocolVersion::V0_1,
            _ => ProtocolVersion::V0_3,
        };
        let reply = responder(version, operation, &id).error_reply(&error);
        assert_eq!((reply.status, reply.content_type), (200, "application/json"), "{case}");
        assert_eq!(fixture::json(&reply.body), expected, "{case}");
    }
}

#[test]
fn invalid_params_of_0_3_say_more_than_the_golden() {
    let error = Error::Invalid(vec![
        Violation { field: "message".into(), description: "is required".into() },
        Violation { field: "configuration.historyLength".into(), description: "must not be negative".into() },
    ]);
    let mut body = fixture::json(&responder(ProtocolVersion::V0_3, Operation::Send, "\"e7\"").error_reply(&error).body);
    let data = body["error"].as_object_mut().unwrap().remove("data").unwrap();
    assert_eq!(data, json!({"detail": "message is required; configuration.historyLength must not be negative"}));
    assert_eq!(body, golden("v0.3/jsonrpc/error_invalid_params.response.json"));
}

#[test]
fn streaming_methods_of_0_x_are_refused_in_a_frame() {
    let error = Error::Unsupported("this agent does not stream".into());
    let reply = responder(ProtocolVersion::V0_3, Operation::Stream, "\"e3\"").error_reply(&error);
    assert_eq!((reply.status, reply.content_type), (200, EVENT_STREAM));
    let text = String::from_utf8(reply.body).unwrap();
    let data = text.strip_prefix("event: error\ndata: ").and_then(|text| text.strip_suffix("\n\n")).unwrap();
    assert_eq!(json!([fixture::json(data.as_bytes())]), golden("v0.3/jsonrpc/error_unsupported_operation.stream.json"));

    let reply = responder(ProtocolVersion::V1_0, Operation::Stream, "1").error_reply(&error);
    assert_eq!(reply.content_type, "application/json");
}

#[test]
fn http_json_errors_match_the_golden_responses() {
    for (case, group, error) in [
        ("v1.0/rest/error_task_not_found", EndpointGroup::V1, Error::TaskNotFound(task("nope"))),
        ("v1.0/rest/error_task_not_cancelable", EndpointGroup::V1, Error::NotCancelable(task(TASK))),
        ("v1.0/rest/error_version_not_supported", EndpointGroup::V1, Error::Version("0.5".into())),
        ("v1.0/rest/error_invalid_agent_response", EndpointGroup::V1, Error::InvalidAgentResponse),
        ("v0.3/rest/error_task_not_found", EndpointGroup::V0_3, Error::TaskNotFound(task("nope"))),
    ] {
        let expected = &golden(&format!("{case}.http.json"))["response"];
        let reply = Responder::http_json(group, None).error_reply(&error);
        assert_eq!(json!(reply.status), expected["status"], "{case}");
        assert_eq!(json!(reply.content_type), expected["headers"]["Content-Type"], "{case}");
        assert_eq!(fixture::json(&reply.body), expected["body"], "{case}");
    }
}

#[test]
fn a_problem_has_the_a2a_code_and_the_task_id() {
    let reply = Responder::http_json(EndpointGroup::Unversioned, Some(Operation::Cancel))
        .error_reply(&Error::NotCancelable(task("t-9")));
    assert_eq!((reply.status, reply.content_type), (409, "application/problem+json"));
    assert_eq!(
        fixture::json(&reply.body),
        json!({"type": "urn:a2a:error:task-not-cancelable", "title": "Task cannot be canceled", "status": 409,
            "detail": "task t-9 can no longer be canceled", "a2a_code": -32002, "task_id": "t-9"})
    );
    let reply = Responder::http_json(EndpointGroup::V0_3, None).error_reply(&Error::NotCancelable(task("t-9")));
    assert_eq!(reply.status, 409);
}

#[test]
fn codes_and_statuses_of_every_error() {
    let rows = [
        "TaskNotFound 200 -32001 -32001 -32001 404",
        "NotCancelable 200 -32002 -32002 -32002 400",
        "TaskFinished 200 -32004 -32004 -32004 400",
        "PushNotSupported 200 -32003 -32003 -32003 400",
        "Unsupported 200 -32004 -32004 -32004 400",
        "ContentType 200 -32005 -32005 -32005 400",
        "InvalidAgentResponse 200 -32006 -32006 -32603 500",
        "ExtendedCardNotConfigured 200 -32007 -32007 -32004 400",
        "ExtendedCardNotOffered 200 -32004 -32007 -32004 400",
        "ExtensionRequired 200 -32008 -32600 -32600 400",
        "Version 200 -32009 -32009 -32009 400",
        "Invalid 200 -32602 -32602 -32602 400",
        "InvalidRequest 200 -32600 -32600 -32600 400",
        "MethodNotFound 200 -32601 -32601 -32601 404",
        "NotJson 200 -32700 -32700 -32700 400",
        "AgentNotFound 200 -32602 -32602 -32602 404",
        "Busy 503 -32603 -32007 -32603 503",
        "Stopping 503 -32603 -32007 -32603 503",
        "StoreFull 503 -32603 -32007 -32603 503",
        "Overloaded 503 -32603 -32007 -32603 503",
        "Misdirected 421 -32600 -32600 -32600 421",
        "BrokenHead 400 -32600 -32600 -32600 400",
        "TooLarge 413 -32600 -32600 -32600 413",
        "UnsupportedMediaType 415 -32600 -32600 -32600 415",
        "BrokenBody 400 -32600 -32600 -32600 400",
        "PathNotFound 404 -32601 -32601 -32601 404",
        "VerbNotAllowed 405 -32600 -32600 -32600 405",
        "Internal 200 -32603 -32603 -32603 500",
    ];
    for (error, expected) in every_error().iter().zip(rows) {
        let name: String = format!("{error:?}").chars().take_while(char::is_ascii_alphanumeric).collect();
        let v1 = responder(ProtocolVersion::V1_0, Operation::Send, "1").error_reply(error);
        let v0 = responder(ProtocolVersion::V0_3, Operation::Send, "1").error_reply(error);
        let v0_1 = responder(ProtocolVersion::V0_1, Operation::Send, "1").error_reply(error);
        let rest = Responder::http_json(EndpointGroup::V1, None).error_reply(error);
        assert_eq!((v1.status, v1.status), (v0.status, v0_1.status));
        let code = |body: &[u8]| fixture::json(body)["error"]["code"].clone();
        let codes = [&v1, &v0, &v0_1, &rest].map(|reply| code(&reply.body).to_string());
        let row = format!("{name} {} {}", v1.status, codes.join(" "));
        assert_eq!(row, expected);
        assert_eq!(json!(rest.status), code(&rest.body));
        assert_eq!(v0.retry_after.is_some(), v0.status == 503, "{name}");
    }
}

#[test]
fn an_unavailable_agent_is_503_with_retry_after() {
    let busy = Error::Busy(AgentId::parse("alpha").unwrap());
    let detail = "agent alpha has too many tasks waiting; try again later";
    let old = responder(ProtocolVersion::V0_3, Operation::Send, "1").error_reply(&busy);
    assert_eq!(
        fixture::json(&old.body)["error"],
        json!({"code": -32007, "message": "Agent unavailable", "data": {"name": "AgentUnavailable", "detail": detail}})
    );
    let new = responder(ProtocolVersion::V1_0, Operation::Send, "1").error_reply(&busy);
    let info = &fixture::json(&new.body)["error"]["data"][0];
    assert_eq!((&info["reason"], &info["metadata"]["detail"]), (&json!("RESOURCE_EXHAUSTED"), &json!(detail)));
    let new = responder(ProtocolVersion::V1_0, Operation::Send, "1").error_reply(&Error::Stopping);
    assert_eq!(fixture::json(&new.body)["error"]["data"][0]["reason"], "UNAVAILABLE");

    // A client that waits for a stream reads the refusal as one.
    let stream = responder(ProtocolVersion::V0_3, Operation::Stream, "1").error_reply(&busy);
    assert_eq!((stream.status, stream.content_type, stream.retry_after), (503, EVENT_STREAM, Some(5)));

    // On other calls -32007 would mean the extended card.
    let card = responder(ProtocolVersion::V0_3, Operation::ExtendedCard, "1").error_reply(&Error::Stopping);
    assert_eq!(fixture::json(&card.body)["error"]["code"], -32603);
}

#[test]
fn errors_in_0_1_have_their_own_codes_and_field_names() {
    let mismatch = |field: &str| Error::invalid(field, "does not match the task");
    for (error, expected) in [
        (mismatch("message.contextId"), json!({"detail": "sessionId does not match the task"})),
        (mismatch("message.taskId"), json!({"detail": "id does not match the task"})),
        (mismatch("message.parts"), json!({"detail": "message.parts does not match the task"})),
        (
            Error::Busy(AgentId::parse("alpha").unwrap()),
            json!({"detail": "agent alpha has too many tasks waiting; try again later"}),
        ),
        (Error::InvalidAgentResponse, json!({"detail": "the agent answered with something that is not A2A"})),
        (Error::ExtensionRequired("urn:x".into()), json!({"detail": "the extension urn:x must be activated"})),
        (Error::Forbidden("not from here".into()), json!({"detail": "not from here"})),
        (
            Error::Version("1.0".into()),
            json!({"name": "VersionNotSupported", "requested": "1.0", "supported": "0.1,0.2,0.3,1.0"}),
        ),
    ] {
        let reply = responder(ProtocolVersion::V0_1, Operation::Send, "1").error_reply(&error);
        assert_eq!(fixture::json(&reply.body)["error"]["data"], expected, "{error}");
        let stream = responder(ProtocolVersion::V0_1, Operation::Stream, "1").error_reply(&error);
        assert_eq!(stream.content_type, EVENT_STREAM);
    }
}

#[test]
fn internal_errors_reveal_nothing() {
    let error = Error::internal("secret: /etc/passwd");
    for group in [EndpointGroup::V1, EndpointGroup::Unversioned, EndpointGroup::V0_3, EndpointGroup::TaskAlias] {
        let body = String::from_utf8(Responder::http_json(group, None).error_reply(&error).body).unwrap();
        assert!(!body.contains("secret"), "{body}");
    }
    for version in [ProtocolVersion::V1_0, ProtocolVersion::V0_3, ProtocolVersion::V0_1] {
        let body = String::from_utf8(responder(version, Operation::Get, "1").error_reply(&error).body).unwrap();
        assert!(!body.contains("secret"), "{body}");
    }
}

#[test]
fn an_error_repeats_at_most_200_characters_of_the_caller() {
    let long = "é".repeat(500);
    for error in [
        Error::TaskNotFound(task(&long)),
        Error::TaskFinished(task(&long)),
        Error::Unsupported(long.clone()),
        Error::ContentType(long.clone()),
        Error::ExtensionRequired(long.clone()),
        Error::Version(long.clone()),
        Error::invalid(long.clone(), "is wrong"),
        Error::invalid("field", long.clone()),
        Error::InvalidRequest(long.clone()),
        Error::MethodNotFound(long.clone()),
        Error::NotJson(long.clone()),
        Error::AgentNotFound { named: long.clone(), known: vec![] },
        Error::UnsupportedMediaType(long.clone()),
        Error::PathNotFound(long.clone()),
        Error::VerbNotAllowed(long.clone()),
    ] {
        let forms = [EndpointGroup::V1, EndpointGroup::Unversioned, EndpointGroup::V0_3, EndpointGroup::TaskAlias];
        let mut bodies = forms.map(|group| Responder::http_json(group, None).error_reply(&error).body).to_vec();
        bodies.extend(
            [ProtocolVersion::V1_0, ProtocolVersion::V0_3, ProtocolVersion::V0_1]
                .map(|version| responder(version, Operation::Get, "1").error_reply(&error).body),
        );
        for body in bodies {
            fixture::json(&body);
            let text = String::from_utf8(body).unwrap();
            let longest = text.split(|letter| letter != 'é').map(|run| run.chars().count()).max();
            assert!(longest <= Some(200), "{text}");
        }
    }
    let many = (0..1000).map(|n| Violation { field: format!("f{n}"), description: "is wrong".into() }).collect();
    let body =
        fixture::json(&responder(ProtocolVersion::V1_0, Operation::Get, "1").error_reply(&Error::Invalid(many)).body);
    assert_eq!(body["error"]["data"][0]["fieldViolations"].as_array().unwrap().len(), 20);
}

#[test]
fn who_is_not_let_in_learns_why_in_each_dialect() {
    let unauthenticated = Error::Unauthenticated("a bearer token is required".into());
    let limited = Error::LimitReached { sentence: "at most 5 requests a second".into(), retry_after: 7 };
    for (error, status, retry_after, code_0_3, name, reason, gateway) in [
        (
            &unauthenticated,
            401,
            None,
            -32008,
            Some("AuthenticationRequired"),
            "UNAUTHENTICATED",
            "unauthorized: a bearer token is required",
        ),
        (
            &limited,
            429,
            Some(7),
            -32007,
            Some("AgentUnavailable"),
            "RESOURCE_EXHAUSTED",
            "too many requests: at most 5 requests a second",
        ),
        (
            &Error::IdentityUnavailable,
            503,
            Some(5),
            -32007,
            Some("AgentUnavailable"),
            "UNAVAILABLE",
            "unavailable: the credential cannot be checked now; try again later",
        ),
    ] {
        let old = responder(ProtocolVersion::V0_3, Operation::Send, "1").error_reply(error);
        let body = fixture::json(&old.body);
        assert_eq!((old.status, old.retry_after), (status, retry_after), "{error}");
        assert_eq!((&body["error"]["code"], body["error"]["data"]["name"].as_str()), (&json!(code_0_3), name));
        let new = responder(ProtocolVersion::V1_0, Operation::Send, "1").error_reply(error);
        assert_eq!((new.status, new.retry_after), (status, retry_after), "{error}");
        assert_eq!(fixture::json(&new.body)["error"]["data"][0]["reason"], reason);
        let rest = Responder::http_json(EndpointGroup::V1, None).error_reply(error);
        assert_eq!((rest.status, rest.retry_after), (status, retry_after), "{error}");
        assert_eq!(fixture::json(&rest.body)["error"]["details"][0]["reason"], reason);
        assert_eq!(serde_json::to_value(super::GatewayError(error)).unwrap(), json!({"error": gateway}));
    }
}
