//! What we ask of others, our own server reads as we meant it; and what others answer is read as far as it makes sense.

use sabir_model::{
    AgentId, Birth, Call, Cancel, ContextId, Delivery, Error, Get, IdempotencyKey, IncomingMessage, Json, List,
    MessageId, OnFinishedCancel, OnFinishedSubscribe, Part, PushAuthentication, PushCall, PushConfig, PushConfigId,
    PushEvents, Role, Send, State, Subscribe, TaskId, Timestamp, Wanted,
};

use super::*;
use crate::fixture::ThreeAgents;
use crate::{Compat, Endpoint, Operation, PeerResponse, ProtocolVersion, RequestHead, Surface, locate};

fn task() -> TaskId {
    TaskId::parse("t/1 é:cancel").unwrap()
}

fn protocol(version: ProtocolVersion, binding: Binding) -> PeerProtocol {
    PeerProtocol::new(version, binding).unwrap()
}

fn message() -> IncomingMessage {
    let parts = vec![
        Part::text("hello"),
        Part::file("a.txt", "text/plain", b"bytes"),
        Part::data(Json::parse(r#"{"n":12345678901234567}"#).unwrap()),
    ];
    IncomingMessage {
        task: Some(task()),
        context: Some(ContextId::parse("c1").unwrap()),
        metadata: Some(Json::parse(r#"{"m":1e3}"#).unwrap()),
        ..IncomingMessage::new(Some(MessageId::parse("m1").unwrap()), Role::User, parts)
    }
}

fn webhook() -> PushConfig {
    PushConfig {
        id: Some(PushConfigId::parse("p1").unwrap()),
        task: Some(task()),
        url: "https://example.com/hook".into(),
        token: Some("token".into()),
        authentication: Some(PushAuthentication { schemes: vec!["Bearer".into()], credentials: Some("secret".into()) }),
    }
}

fn send(delivery: Delivery) -> Call {
    Call::Send(Box::new(Send {
        delivery,
        history: Some(3),
        accepted_output: vec!["text/plain".into()],
        extensions: vec!["urn:x".into(), "urn:y".into()],
        push: Some(PushConfig { task: None, ..webhook() }),
        idempotency: Some(IdempotencyKey::parse("key 1").unwrap()),
        metadata: Some(Json::parse(r#"{"r":2}"#).unwrap()),
        ..Send::new(message(), Birth(0))
    }))
}

/// Every call, for a tenant where the version has tenants.
fn calls(tenant: Option<&str>) -> Vec<Call> {
    let agent = tenant.map(|tenant| AgentId::parse(tenant).unwrap());
    let config = Some(PushConfigId::parse("p1").unwrap());
    let mut calls = vec![send(Delivery::WhenSettled), send(Delivery::Immediately), send(Delivery::Stream)];
    if let Some(agent) = &agent {
        for call in &mut calls {
            let Call::Send(send) = call else { continue };
            send.agent = Some(agent.clone());
        }
    }
    calls.extend([
        Call::Get(Get { agent: agent.clone(), task: task(), history: Some(5), earlier: Wanted::No }),
        Call::List(List {
            agent: agent.clone(),
            context: Some(ContextId::parse("c 1&2").unwrap()),
            state: Some(State::InputRequired),
            since: Some(Timestamp::from_millis(1_000)),
            page_size: 7,
            from: None,
            history: Some(2),
            artifacts: Wanted::Yes,
        }),
        Call::Cancel(Cancel {
            agent: agent.clone(),
            task: task(),
            metadata: None,
            on_finished: OnFinishedCancel::Refuse,
        }),
        Call::Subscribe(Subscribe {
            agent: agent.clone(),
            task: task(),
            after: None,
            on_finished: OnFinishedSubscribe::Refuse,
        }),
        Call::Push(PushCall::Set {
            agent: agent.clone(),
            config: webhook(),
            born: Birth(0),
            events: PushEvents::default(),
        }),
        Call::Push(PushCall::Get { agent: agent.clone(), task: task(), config: config.clone() }),
        Call::Push(PushCall::List { agent: agent.clone(), task: task(), page_size: None, page_token: None }),
        Call::Push(PushCall::Delete { agent: agent.clone(), task: task(), config }),
        Call::ExtendedCard { agent },
    ]);
    calls
}

/// What our own server understands of a request.
fn read_by_our_server(protocol: PeerProtocol, request: &PeerRequest) -> Result<Call, Error> {
    let base = match protocol.binding() {
        Binding::JsonRpc => "/",
        Binding::HttpJson => "/a2a/rest",
        Binding::Grpc => "",
    };
    let url = request.url(base);
    let (path, query) = url.split_once('?').map_or((url.as_str(), None), |(path, query)| (path, Some(query)));
    let header = |name: &str| request.headers.iter().find(|(known, _)| *known == name).map(|(_, value)| value.as_str());
    let head = RequestHead {
        verb: request.verb,
        path,
        query,
        version: header("a2a-version"),
        extensions: header("a2a-extensions"),
        idempotency_key: header("idempotency-key"),
        last_event_id: header("last-event-id"),
        ..RequestHead::default()
    };
    let compat = Compat { strict: true, ..Compat::default() };
    match locate(&head, &ThreeAgents) {
        Surface::Call(Endpoint::JsonRpc(mount)) => mount.decode(&head, &request.body, compat, &ThreeAgents).call,
        Surface::Call(Endpoint::HttpJson(route)) => route.decode(&head, &request.body, compat, &ThreeAgents).call,
        Surface::Call(Endpoint::Grpc(route)) => {
            let message = &request.body[crate::grpc::PREFIX_LENGTH..];
            route.decode(&head, message, compat, &ThreeAgents).call
        }
        _ => panic!("{request:?} leads nowhere"),
    }
}

/// The call as a server of this version can know it: what the version has no place for is gone.
fn expected(protocol: PeerProtocol, call: &Call) -> Call {
    let mut call = call.clone();
    let version = protocol.version();
    match &mut call {
        Call::Send(send) => {
            let (context_alone, on_unknown, direct) = match version {
                ProtocolVersion::V1_0 => (
                    sabir_model::ContextAlone::StartsTask,
                    sabir_model::OnUnknown::Refuse,
                    sabir_model::Direct::Message,
                ),
                ProtocolVersion::V0_1 => (
                    sabir_model::ContextAlone::StartsTask,
                    sabir_model::OnUnknown::Create,
                    sabir_model::Direct::StoredTask,
                ),
                _ => (
                    sabir_model::ContextAlone::AnswersWaiting,
                    sabir_model::OnUnknown::Refuse,
                    sabir_model::Direct::Message,
                ),
            };
            (send.context_alone, send.on_unknown, send.direct) = (context_alone, on_unknown, direct);
            send.born = match version {
                ProtocolVersion::V1_0 => Birth(10),
                ProtocolVersion::V0_1 => Birth(1),
                _ => Birth(3),
            };
            if version == ProtocolVersion::V0_1 {
                send.message.id = None;
                send.push.as_mut().unwrap().id = None;
                if send.delivery == Delivery::Immediately {
                    send.delivery = Delivery::WhenSettled;
                }
            }
        }
        Call::Subscribe(subscribe) if version != ProtocolVersion::V1_0 => {
            subscribe.on_finished = OnFinishedSubscribe::ShowEnd;
        }
        Call::Push(PushCall::Set { born, config, .. }) => match version {
            ProtocolVersion::V1_0 => *born = Birth(10),
            ProtocolVersion::V0_1 => (*born, config.id) = (Birth(1), None),
            _ => *born = Birth(3),
        },
        Call::Push(PushCall::Get { config, .. }) if version == ProtocolVersion::V0_1 => *config = None,
        _ => {}
    }
    call
}

/// JSON that comes back from protobuf as it was.
fn make_representable(call: &mut Call) {
    let Call::Send(send) = call else { return };
    send.message.parts[2] = Part::data(Json::parse(r#"{"n":5}"#).unwrap());
    send.message.metadata = Some(Json::parse(r#"{"m":1000}"#).unwrap());
}

#[test]
fn what_protobuf_cannot_hold_is_not_sent_over_grpc() {
    for version in [ProtocolVersion::V1_0, ProtocolVersion::V0_3] {
        let call = send(Delivery::Stream);
        let error = protocol(version, Binding::Grpc).request(&PeerCall::new(&call), 1).unwrap_err();
        assert!(error.to_string().contains("message.parts[2].data.n: a double cannot hold"), "{error}");
    }
}

/// A marker stands for something that the agent has made. It is not what the agent has made.
#[test]
fn a_marker_of_another_sabir_is_not_taken_for_data() {
    let json = |text: &str| Some(crate::protobuf::write_struct(&Json::parse(text).unwrap()));
    let status = |state: sabir_proto::v1::TaskState| {
        Some(sabir_proto::v1::TaskStatus { state: state.into(), ..Default::default() })
    };
    for (metadata, is_refused) in [(r#"{"n":5}"#, false), (r#"{"n":12345678901234567}"#, true)] {
        let task = sabir_proto::v1::Task {
            id: "t".into(),
            status: status(sabir_proto::v1::TaskState::Working),
            metadata: json(metadata),
            ..Default::default()
        };
        let message = sabir_proto::prost::Message::encode_to_vec(&task);
        let read = protocol(ProtocolVersion::V1_0, Binding::Grpc).read_message(Operation::Get, &message);
        let kind = read.err().map(|error| error.kind);
        assert_eq!(kind, is_refused.then_some(PeerErrorKind::Unsupported), "{metadata}");
    }
}

#[test]
fn our_own_server_reads_every_request_as_it_was_meant() {
    let mut refused = Vec::new();
    for protocol in PeerProtocol::ALL {
        let tenants = if protocol.version() == ProtocolVersion::V1_0 { &[None, Some("alpha")][..] } else { &[None] };
        for mut call in tenants.iter().flat_map(|tenant| calls(*tenant)) {
            if protocol.binding() == Binding::Grpc {
                make_representable(&mut call);
            }
            let request = match protocol.request(&PeerCall::new(&call), 7) {
                Ok(request) => request,
                Err(error) => {
                    refused.push(format!("{protocol} {:?}: {error}", PeerCall::new(&call).operation()));
                    continue;
                }
            };
            let read = read_by_our_server(protocol, &request);
            let read = read.unwrap_or_else(|error| panic!("{protocol} {call:?}: {error} in {request:?}"));
            assert_eq!(read, expected(protocol, &call), "{protocol} {}", String::from_utf8_lossy(&request.body));
        }
    }
    let expected = [
        "0.3 over JSONRPC List: 0.3 has no call for this",
        "0.3 over HTTP+JSON List: there is no method tasks/list",
        "0.3 over GRPC List: 0.3 has no call for this",
        "0.2 over JSONRPC List: 0.2 has no call for this",
        "0.1 over JSONRPC List: 0.1 has no call for this",
        "0.1 over JSONRPC PushList: 0.1 has no call for this",
        "0.1 over JSONRPC PushDelete: 0.1 has no call for this",
        "0.1 over JSONRPC ExtendedCard: 0.1 has no call for this",
    ];
    assert_eq!(refused, expected);
}

#[test]
fn requests_have_the_headers_of_their_call() {
    let call = send(Delivery::Stream);
    let peer = PeerCall { last_event_id: Some("41"), ..PeerCall::new(&call) };
    let request = protocol(ProtocolVersion::V0_3, Binding::JsonRpc).request(&peer, 1).unwrap();
    let headers: Vec<String> = request.headers.iter().map(|(name, value)| format!("{name}: {value}")).collect();
    let expected = [
        "content-type: application/json",
        "a2a-version: 0.3",
        "accept: text/event-stream",
        "a2a-extensions: urn:x, urn:y",
        "x-a2a-extensions: urn:x, urn:y",
        "idempotency-key: key 1",
        "last-event-id: 41",
    ];
    assert_eq!(headers, expected);
    let read = read_by_our_server(protocol(ProtocolVersion::V0_3, Binding::JsonRpc), &request).unwrap();
    let Call::Send(read) = read else { panic!("{read:?}") };
    assert_eq!(read.last_event_id, Some(sabir_model::LastEventId::Event(41)));
}

#[test]
fn urls_are_built_on_what_the_card_says() {
    let call = Call::ExtendedCard { agent: None };
    for (version, interface, expected) in [
        (ProtocolVersion::V1_0, "https://a.example/x/", "https://a.example/x/extendedAgentCard"),
        (ProtocolVersion::V0_3, "https://a.example", "https://a.example/v1/card"),
        (ProtocolVersion::V0_3, "https://a.example/rest/v1/", "https://a.example/rest/v1/card"),
        (ProtocolVersion::V1_0, "https://a.example/x?code=k", "https://a.example/x/extendedAgentCard?code=k"),
    ] {
        let request = protocol(version, Binding::HttpJson).request(&PeerCall::new(&call), 1).unwrap();
        assert_eq!(request.url(interface), expected);
    }
    let request = protocol(ProtocolVersion::V1_0, Binding::JsonRpc).request(&PeerCall::new(&call), 1).unwrap();
    assert_eq!(request.url("https://a.example/rpc/"), "https://a.example/rpc/");
}

fn say(received: Result<Received, PeerError>) -> String {
    let received = match received {
        Ok(received) => received,
        Err(error) => return format!("{}: {error}", error.kind.name()),
    };
    let mark = if received.violation.is_some() { "~ " } else { "" };
    let parts = |parts: &[Part]| {
        let each = parts.iter().map(|part| match &part.content {
            sabir_model::Content::Text(text) => text.clone(),
            sabir_model::Content::Data(data) => data.as_str().to_owned(),
            other => format!("{other:?}"),
        });
        each.collect::<Vec<_>>().join("+")
    };
    let said = match received.response {
        PeerResponse::Task(task) => {
            let artifacts: Vec<String> =
                task.artifacts.iter().map(|artifact| format!("{}={}", artifact.id, parts(&artifact.parts))).collect();
            let message = task.status.message.as_ref().map(|message| format!(" says {}", parts(&message.parts)));
            let (state, time) = (task.status.state, task.status.time);
            let message = message.unwrap_or_default();
            format!("task {} in {} {state:?}{message} {time} [{}]", task.id, task.context, artifacts.join(" "))
        }
        PeerResponse::Message(message) => format!("message {} {}", message.id, parts(&message.parts)),
        PeerResponse::Event { task, event, .. } => match *event {
            sabir_model::Event::Status(change) => {
                format!("status of {task} {:?} final {}", change.status.state, change.is_final)
            }
            sabir_model::Event::Artifact(chunk) => format!(
                "chunk of {task} {}={} append {} last {}",
                chunk.artifact.id,
                parts(&chunk.artifact.parts),
                chunk.append,
                chunk.last
            ),
            other => format!("{other:?}"),
        },
        PeerResponse::Page { page, next } => format!("page of {} next {next:?}", page.tasks.len()),
        other => format!("{other:?}"),
    };
    format!("{mark}{said}")
}

#[test]
fn odd_members_do_not_cost_the_whole_answer() {
    let v03 = protocol(ProtocolVersion::V0_3, Binding::JsonRpc);
    let rpc = |result: &str| format!(r#"{{"jsonrpc":"2.0","id":1,"result":{result}}}"#);
    for (result, expected) in [
        (
            r#"{"kind":"task","id":"t","contextId":"c","status":{"state":"completed","timestamp":"2026-02-03T10:15:02Z"}}"#,
            "task t in c Completed 2026-02-03T10:15:02.000Z []",
        ),
        // A time without a zone, empty parts, null members.
        (
            r#"{"kind":"task","id":"t","contextId":"c","status":{"state":"completed","timestamp":"2026-02-03T10:15:02.5"},
            "artifacts":[{"artifactId":"a","parts":[]},null,{"parts":[{"kind":"text","text":"x"},{},null,{"kind":"text"}]}],
            "history":[{"role":"user","parts":[]},null]}"#,
            "~ task t in c Completed 2026-02-03T10:15:02.500Z [a= artifact-1=x]",
        ),
        (
            r#"{"kind":"task","id":"t","contextId":"c","status":{"state":"unknown"}}"#,
            "~ task t in c Working 1970-01-01T00:00:00.000Z []",
        ),
        (
            r#"{"id":5,"status":"COMPLETED","artifacts":[{"name":"r","parts":["words",{"kind":"video","uri":"v"}]}]}"#,
            r#"~ task 5 in 5 Completed 1970-01-01T00:00:00.000Z [artifact-0=words+{"kind":"video","uri":"v"}]"#,
        ),
        // The format of 1.0 where 0.3 was asked for.
        (
            r#"{"task":{"id":"t","contextId":"c","status":{"state":"TASK_STATE_INPUT_REQUIRED","message":{"role":"ROLE_AGENT","content":[{"text":"which?"}]}}}}"#,
            "~ task t in c InputRequired says which? 1970-01-01T00:00:00.000Z []",
        ),
        (r#"{"kind":"message","role":"agent","parts":[{"type":"text","text":"hi"}]}"#, "~ message unnamed hi"),
        (r#"{"parts":[{"text":"hi"}],"messageId":"m"}"#, "~ message m hi"),
        (
            r#"{"status":{"state":"failed","message":"no luck","timestamp":1770113702}}"#,
            "~ task t0 in t0 Failed says no luck 2026-02-03T10:15:02.000Z []",
        ),
        (
            r#""hello""#,
            "MalformedResponseError: the server's answer is not A2A: invalid parameters: params expected an object, found a string, in \"\\\"hello\\\"\"",
        ),
        (
            r#"{"some":"thing"}"#,
            "MalformedResponseError: the server's answer is not A2A: invalid parameters: kind must be task, message, status-update or artifact-update, in \"{\\\"some\\\":\\\"thing\\\"}\"",
        ),
    ] {
        let known = TaskId::parse("t0").unwrap();
        let read = v03.read_response(Operation::Send, Some(&known), 200, rpc(result).as_bytes());
        assert_eq!(say(read), expected, "{result}");
    }
}

#[test]
fn odd_frames_are_read_as_far_as_they_make_sense() {
    let known = TaskId::parse("t").unwrap();
    let v1 = protocol(ProtocolVersion::V1_0, Binding::HttpJson);
    let v01 = protocol(ProtocolVersion::V0_1, Binding::JsonRpc);
    for (protocol, frame, expected) in [
        (v1, r#"{"statusUpdate":{"status":{"state":"TASK_STATE_WORKING"}}}"#, "~ status of t Working final false"),
        (v1, r#"{"statusUpdate":{"taskId":"t","status":{"state":"completed"}}}"#, "~ status of t Completed final true"),
        (
            v1,
            r#"{"artifactUpdate":{"taskId":"t","append":"true","artifact":{"parts":[{"text":"x"}]}}}"#,
            "~ chunk of t artifact-0=x append true last false",
        ),
        (
            v1,
            r#"{"kind":"artifact-update","artifact":{"artifactId":"a","parts":[{"kind":"text","text":"x"}]},"lastChunk":true}"#,
            "~ chunk of t a=x append false last true",
        ),
        (v1, r#"{"error":{"code":500,"message":"boom"}}"#, "InternalError: boom (HTTP 500)"),
        (v1, r#"{"code":-32001,"message":"gone"}"#, "TaskNotFoundError: gone (-32001)"),
        (v01, r#"{"result":{"status":{"state":"working"}}}"#, "~ status of t Working final false"),
        (
            v01,
            r#"{"jsonrpc":"2.0","id":1,"result":{"id":"t","status":{"state":"completed"},"final":true},"error":null}"#,
            "status of t Completed final true",
        ),
        (v01, r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"boom"}}"#, "InternalError: boom (-32603)"),
        (
            v01,
            "{",
            "MalformedResponseError: the server's answer is not A2A: the body is not JSON: EOF while parsing an object, in \"{\"",
        ),
    ] {
        assert_eq!(say(protocol.read_frame(Operation::Stream, Some(&known), frame.as_bytes())), expected, "{frame}");
    }
}

#[test]
fn errors_of_every_spelling_mean_the_same() {
    let v1_rpc = protocol(ProtocolVersion::V1_0, Binding::JsonRpc);
    let v1 = protocol(ProtocolVersion::V1_0, Binding::HttpJson);
    let v03 = protocol(ProtocolVersion::V0_3, Binding::HttpJson);
    let v03_rpc = protocol(ProtocolVersion::V0_3, Binding::JsonRpc);
    let v01 = protocol(ProtocolVersion::V0_1, Binding::JsonRpc);
    for (protocol, operation, status, body, expected) in [
        (
            v1_rpc,
            Operation::Get,
            200,
            r#"{"id":1,"error":{"code":-32001,"message":"Task not found","data":[{"reason":"TASK_NOT_FOUND"}]}}"#,
            "TaskNotFoundError: Task not found (-32001)",
        ),
        (
            v1_rpc,
            Operation::Send,
            200,
            r#"{"error":{"code":-32602,"message":"Invalid parameters","data":[{"fieldViolations":[{"field":"message.parts","description":"is required"}]}]}}"#,
            "InvalidParamsError: Invalid parameters: message.parts is required (-32602)",
        ),
        (
            v1_rpc,
            Operation::Send,
            500,
            r#"{"error":{"code":-32009,"message":"Version not supported"}}"#,
            "VersionNotSupportedError: Version not supported (-32009)",
        ),
        (v1_rpc, Operation::Send, 401, "", "UnauthenticatedError: the server answered 401"),
        (v1_rpc, Operation::Send, 404, "<html>nothing</html>", "MethodNotFoundError: the server answered 404"),
        (v1_rpc, Operation::Get, 404, "<html>nothing</html>", "UnavailableError: the server answered 404"),
        (
            v1,
            Operation::Get,
            404,
            r#"{"error":{"code":404,"status":"NOT_FOUND","message":"Task not found","details":[{"@type":"x","reason":"TASK_NOT_FOUND"}]}}"#,
            "TaskNotFoundError: Task not found (HTTP 404)",
        ),
        (
            v1,
            Operation::Cancel,
            400,
            r#"{"error":{"code":400,"status":"FAILED_PRECONDITION","message":"no","details":[{"reason":"TASK_NOT_CANCELABLE"}]}}"#,
            "TaskNotCancelableError: no (HTTP 400)",
        ),
        (
            v1,
            Operation::Get,
            404,
            r#"{"type":"urn:a2a:error:task-not-found","title":"Task not found","status":404,"detail":"task x does not exist","a2a_code":-32001}"#,
            "TaskNotFoundError: Task not found: task x does not exist (-32001)",
        ),
        (
            v03,
            Operation::Cancel,
            409,
            r#"{"message":"cannot be canceled"}"#,
            "TaskNotCancelableError: cannot be canceled (HTTP 409)",
        ),
        (v03, Operation::Get, 404, r#"{"code":-32001,"message":"gone"}"#, "TaskNotFoundError: gone (-32001)"),
        (
            v03,
            Operation::Send,
            422,
            r#"{"detail":[{"loc":["body"],"msg":"field required"}]}"#,
            "InvalidParamsError: the server answered 422",
        ),
        (v03, Operation::Send, 503, "busy", "UnavailableError: \"busy\" (HTTP 503)"),
        (
            v03_rpc,
            Operation::Send,
            503,
            r#"{"error":{"code":-32007,"message":"Agent unavailable"}}"#,
            "UnavailableError: Agent unavailable (-32007)",
        ),
        (
            v03_rpc,
            Operation::ExtendedCard,
            200,
            r#"{"error":{"code":-32007,"message":"none"}}"#,
            "ExtendedAgentCardNotConfiguredError: none (-32007)",
        ),
        (
            v03_rpc,
            Operation::Get,
            403,
            r#"{"error":{"code":-32009,"message":"Authorization failed"}}"#,
            "PermissionDeniedError: Authorization failed (-32009)",
        ),
        (
            v01,
            Operation::Send,
            200,
            r#"{"error":{"code":-32007,"message":"who are you"}}"#,
            "UnauthenticatedError: who are you (-32007)",
        ),
        (
            v01,
            Operation::Send,
            200,
            r#"{"error":{"code":-32010,"message":"slow down"}}"#,
            "UnavailableError: slow down (-32010)",
        ),
        (
            v01,
            Operation::Send,
            200,
            r#"{"error":"boom"}"#,
            "MalformedResponseError: the server's answer is not A2A: its error is \"\\\"boom\\\"\"",
        ),
    ] {
        assert_eq!(say(protocol.read_response(operation, None, status, body.as_bytes())), expected, "{body}");
    }
}

proptest::proptest! {
    /// A server may answer anything; a client must not fall over it.
    #[test]
    fn any_answer_is_read_or_refused(body: Vec<u8>, text in "[\\{\\}\\[\\]\":,a-z0-9 ]{0,60}", status in 100u16..600) {
        for protocol in PeerProtocol::ALL {
            for operation in [Operation::Send, Operation::Stream, Operation::Get, Operation::List, Operation::PushList, Operation::PushDelete] {
                for body in [body.as_slice(), text.as_bytes()] {
                    let _ = protocol.read_response(operation, None, status, body);
                    let _ = protocol.read_frame(operation, None, body);
                }
            }
        }
    }
}
