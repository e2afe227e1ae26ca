use super::*;
use crate::fixture::{ThreeAgents, json};

fn say(verb: &str, target: &str, version: &str) -> String {
    let (path, query) = target.split_once('?').map_or((target, None), |(path, query)| (path, Some(query)));
    let head = RequestHead { verb, path, query, version: Some(version), ..RequestHead::default() };
    let of = |agent: &Option<AgentId>| agent.as_ref().map(|agent| format!(" of {agent}")).unwrap_or_default();
    match locate(&head, &ThreeAgents) {
        Surface::Card { agent, format } => {
            let format = format.map_or("default".to_owned(), |format| format!("{format:?}"));
            format!("card {format}{}", of(&agent))
        }
        Surface::Call(Endpoint::JsonRpc(mount)) => format!("rpc {:?}{}", mount.path, of(&mount.agent)),
        Surface::Call(Endpoint::HttpJson(route)) => {
            let ids = [&route.task, &route.config].map(|id| id.as_deref().map(|id| format!(" [{id}]")));
            format!(
                "{:?} {:?}{}{}",
                route.group,
                route.operation,
                of(&route.agent),
                ids.into_iter().flatten().collect::<String>()
            )
        }
        Surface::Call(Endpoint::Gateway(route)) => format!("gateway {:?} of {}", route.operation, route.agent),
        Surface::Catalogue => "catalogue".to_owned(),
        Surface::AgentList => "agents".to_owned(),
        Surface::GatewayCard(agent) => format!("gateway card of {agent}"),
        Surface::Call(Endpoint::Grpc(route)) => format!("gRPC {} {:?}", route.version.number(), route.operation),
        Surface::GrpcService(service) => format!("{service:?}"),
        Surface::Health => "health".to_owned(),
        Surface::Ready => "ready".to_owned(),
        Surface::Refused(refused) => {
            let reply = refused.reply();
            if let Some(status) = &reply.grpc_status {
                return format!("{} gRPC {}", reply.status, status.code.name());
            }
            let body = json(&reply.body);
            let shape = match reply.content_type {
                "application/problem+json" => "problem",
                "application/a2a+json" => "status",
                _ if body.get("jsonrpc").is_some() => "rpc",
                _ if body["error"].is_string() => "gateway",
                _ => "code",
            };
            let error = format!("{:?}", refused.error);
            let name: String = error.chars().take_while(char::is_ascii_alphanumeric).collect();
            format!(
                "{} {shape} {name}{}",
                reply.status,
                reply.allow.map(|verbs| format!(" ({verbs})")).unwrap_or_default()
            )
        }
    }
}

#[test]
fn requests_are_routed_by_verb_path_and_version() {
    for (verb, target, version, expected) in [
        // gRPC.
        ("POST", "/lf.a2a.v1.A2AService/SendMessage", "", "gRPC 1.0 Send"),
        ("POST", "/lf.a2a.v1.A2AService/SubscribeToTask", "1.0", "gRPC 1.0 Subscribe"),
        ("POST", "/lf.a2a.v1.A2AService/ListTasks", "", "gRPC 1.0 List"),
        ("POST", "/lf.a2a.v1.A2AService/GetExtendedAgentCard", "", "gRPC 1.0 ExtendedCard"),
        ("POST", "/a2a.v1.A2AService/SendStreamingMessage", "", "gRPC 0.3 Stream"),
        ("POST", "/a2a.v1.A2AService/TaskSubscription", "", "gRPC 0.3 Subscribe"),
        ("POST", "/a2a.v1.A2AService/ListTaskPushNotificationConfig", "", "gRPC 0.3 PushList"),
        ("POST", "/a2a.v1.A2AService/GetAgentCard", "", "gRPC 0.3 ExtendedCard"),
        ("POST", "/a2a.v1.A2AService/ListTasks", "", "200 gRPC UNIMPLEMENTED"),
        ("POST", "/lf.a2a.v1.A2AService/TaskSubscription", "", "200 gRPC UNIMPLEMENTED"),
        ("POST", "/lf.a2a.v1.A2AService/", "", "200 gRPC UNIMPLEMENTED"),
        ("GET", "/lf.a2a.v1.A2AService/GetTask", "", "405 problem VerbNotAllowed (POST)"),
        ("POST", "/lf.a2a.v1.OtherService/GetTask", "", "404 problem PathNotFound"),
        ("POST", "/grpc.health.v1.Health/Check", "", "Health(Check)"),
        ("POST", "/grpc.health.v1.Health/Watch", "", "Health(Watch)"),
        ("POST", "/grpc.health.v1.Health/Cheque", "", "200 gRPC UNIMPLEMENTED"),
        ("POST", "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", "", "Reflection"),
        ("POST", "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", "", "Reflection"),
        // The card.
        ("GET", "/.well-known/agent-card.json", "", "card default"),
        ("HEAD", "/.well-known/agent.json", "", "card default"),
        ("GET", "/.well-known/agent-card.json", "1.0", "card V1"),
        ("GET", "/.well-known/agent-card.json?A2A-Version=1.0", "", "card V1"),
        ("GET", "/.well-known/agent-card.json", "0.3", "card V0_3"),
        ("GET", "/.well-known/agent-card.json", "0.2", "card V0_3"),
        ("GET", "/.well-known/agent.json?A2A-Version=0.1", "", "card V0_1"),
        ("GET", "/agents/alpha/.well-known/agent.json", "0.1", "card V0_1 of alpha"),
        ("GET", "/a2a/rest/v1/tasks/x/pushNotificationConfigs/hook", "", "V0_3 PushGet [x] [hook]"),
        ("DELETE", "/a2a/rest/alpha/tasks/x/pushNotificationConfigs/hook", "1.0", "V1 PushDelete of alpha [x] [hook]"),
        ("GET", "/a2a/.well-known/agent.json", "", "card default"),
        ("GET", "/a2a/card", "", "card default"),
        ("GET", "/v1/a2a/.well-known/agent", "", "card default"),
        ("GET", "/agents/alpha/.well-known/agent-card.json", "", "card default of alpha"),
        ("GET", "/agents/b%202/.well-known/agent.json", "1.0", "card V1 of b 2"),
        ("POST", "/.well-known/agent-card.json", "", "405 problem VerbNotAllowed (GET, HEAD)"),
        ("GET", "/agents/ghost/.well-known/agent-card.json", "", "404 problem AgentNotFound"),
        ("GET", "/.well-known/ai-catalog.json", "", "catalogue"),
        ("HEAD", "/.well-known/ai-catalog.json", "1.0", "catalogue"),
        ("POST", "/.well-known/ai-catalog.json", "", "405 problem VerbNotAllowed (GET, HEAD)"),
        ("GET", "/agents/alpha/.well-known/ai-catalog.json", "", "404 problem PathNotFound"),
        // The gateway.
        ("GET", "/v1/a2a/agents", "", "agents"),
        ("GET", "/v1/a2a/agents/", "", "agents"),
        ("POST", "/v1/a2a/agents", "", "405 gateway VerbNotAllowed (GET, HEAD)"),
        ("GET", "/v1/a2a/agents/alpha/agent-card", "", "gateway card of alpha"),
        ("GET", "/v1/a2a/agents/ghost/agent-card", "", "404 gateway AgentNotFound"),
        ("POST", "/v1/a2a/agents/alpha/message:send", "", "gateway Send of alpha"),
        ("POST", "/v1/a2a/agents/b%202/message%3Asend", "", "gateway Send of b 2"),
        ("GET", "/v1/a2a/agents/alpha/message:send", "", "405 gateway VerbNotAllowed (POST)"),
        ("POST", "/v1/a2a/agents/ghost/message:send", "", "404 gateway AgentNotFound"),
        ("POST", "/v1/a2a/agents/ghost/message:foo", "", "400 gateway InvalidRequest"),
        ("POST", "/v1/a2a/agents/alpha/agent", "", "400 gateway InvalidRequest"),
        ("GET", "/v1/a2a/agents/alpha/tasks/t:1", "", "gateway Get(\"t:1\") of alpha"),
        ("POST", "/v1/a2a/agents/alpha/tasks/t:1:cancel", "", "gateway Cancel(\"t:1\") of alpha"),
        ("GET", "/v1/a2a/agents/alpha/tasks/t:cancel", "", "400 gateway InvalidRequest"),
        ("GET", "/v1/a2a/agents/alpha/tasks/t%3Acancel", "", "gateway Get(\"t:cancel\") of alpha"),
        ("POST", "/v1/a2a/agents/alpha/tasks/t%3Acancel:cancel", "", "gateway Cancel(\"t:cancel\") of alpha"),
        ("POST", "/v1/a2a/agents/alpha/tasks/t%3Acancel", "", "400 gateway InvalidRequest"),
        ("DELETE", "/v1/a2a/agents/alpha/tasks/t%3Acancel", "", "405 gateway VerbNotAllowed (GET, HEAD)"),
        ("GET", "/v1/a2a/agents/alpha/tasks/%ff", "", "404 gateway PathNotFound"),
        ("POST", "/v1/a2a/agents/alpha/tasks/t", "", "400 gateway InvalidRequest"),
        ("POST", "/v1/a2a/agents/alpha/tasks/:cancel", "", "400 gateway InvalidRequest"),
        ("DELETE", "/v1/a2a/agents/alpha/tasks/t", "", "405 gateway VerbNotAllowed (GET, HEAD)"),
        ("DELETE", "/v1/a2a/agents/alpha/tasks/t:cancel", "", "405 gateway VerbNotAllowed (POST)"),
        ("GET", "/v1/a2a/agents/alpha", "", "404 gateway PathNotFound"),
        ("GET", "/v1/a2a/agents/alpha/tasks/t/more", "", "404 gateway PathNotFound"),
        ("GET", "/v1/a2a/agentsx", "", "404 problem PathNotFound"),
        // JSON-RPC.
        ("POST", "/", "", "rpc Root"),
        ("POST", "", "", "rpc Root"),
        ("POST", "/a2a", "", "rpc A2a"),
        ("POST", "/a2a/", "", "rpc A2a"),
        ("POST", "/a2a/jsonrpc", "2.0", "rpc JsonRpc"),
        ("POST", "/v1/a2a", "", "rpc V1A2a"),
        ("POST", "/a2a/v1", "", "rpc Versioned(V1_0)"),
        ("POST", "/a2a/v0.3/", "", "rpc Versioned(V0_3)"),
        ("POST", "/a2a/v0.1", "", "rpc Versioned(V0_1)"),
        ("POST", "/agents/alpha", "", "rpc Root of alpha"),
        ("POST", "/agents/alpha/", "", "rpc Root of alpha"),
        ("POST", "/agents/b%202/a2a/v1", "", "rpc Versioned(V1_0) of b 2"),
        ("POST", "/agents/ghost/", "", "404 rpc AgentNotFound"),
        ("POST", "/agents/%zz/a2a", "", "404 problem PathNotFound"),
        ("POST", "/agents/", "", "404 problem PathNotFound"),
        ("GET", "/", "", "404 problem PathNotFound"),
        ("PUT", "/", "", "405 rpc VerbNotAllowed (POST)"),
        ("GET", "/a2a", "", "405 rpc VerbNotAllowed (POST)"),
        ("DELETE", "/agents/alpha/a2a/jsonrpc", "", "405 rpc VerbNotAllowed (POST)"),
        // HTTP+JSON of 1.0, at both bases.
        ("POST", "/message:send", "1.0", "V1 Send"),
        ("POST", "/message:send", "", "Unversioned Send"),
        ("POST", "/message%3Asend", "", "Unversioned Send"),
        ("POST", "/a2a/rest/message:stream", "1.0.1", "V1 Stream"),
        ("POST", "/a2a/rest/message:stream/", "", "Unversioned Stream"),
        ("GET", "/tasks", "1.0", "V1 List"),
        ("GET", "/tasks/t-1?historyLength=2", "", "Unversioned Get [t-1]"),
        ("HEAD", "/tasks/t-1", "", "Unversioned Get [t-1]"),
        ("HEAD", "/tasks/t-1:subscribe", "", "405 problem VerbNotAllowed (GET, POST)"),
        ("HEAD", "/a2a/tasks/t-1", "", "TaskAlias Get [t-1]"),
        ("GET", "/tasks/t%2F1%3A2", "", "Unversioned Get [t/1:2]"),
        ("GET", "/tasks/urn:task:5", "", "Unversioned Get [urn:task:5]"),
        ("POST", "/tasks/urn:task:5:cancel", "1.0", "V1 Cancel [urn:task:5]"),
        ("POST", "/tasks/t%2F1:cancel", "1.0", "V1 Cancel [t/1]"),
        ("POST", "/tasks/t%3Acancel:cancel", "1.0", "V1 Cancel [t:cancel]"),
        ("GET", "/tasks/t%3Acancel", "1.0", "V1 Get [t:cancel]"),
        ("GET", "/tasks/t%3asubscribe", "", "Unversioned Get [t:subscribe]"),
        ("GET", "/v1/tasks/t%3Asubscribe:subscribe", "", "V0_3 Subscribe [t:subscribe]"),
        ("POST", "/tasks/t%3Acancel", "1.0", "405 status VerbNotAllowed (GET, HEAD)"),
        ("GET", "/tasks/t%3Acancel/pushNotificationConfigs", "1.0", "V1 PushList [t:cancel]"),
        ("GET", "/tasks/%ff:cancel", "1.0", "404 status PathNotFound"),
        ("GET", "/tasks/t:subscribe", "1.0", "V1 Subscribe [t]"),
        ("POST", "/tasks/t:subscribe", "1.0", "V1 Subscribe [t]"),
        ("POST", "/tasks/t/pushNotificationConfigs", "1.0", "V1 PushSet [t]"),
        ("GET", "/tasks/t/pushNotificationConfigs", "1.0", "V1 PushList [t]"),
        ("GET", "/tasks/t/pushNotificationConfigs/c%201", "1.0", "V1 PushGet [t] [c 1]"),
        ("DELETE", "/tasks/t/pushNotificationConfigs/c", "1.0", "V1 PushDelete [t] [c]"),
        ("GET", "/extendedAgentCard", "1.0", "V1 ExtendedCard"),
        ("GET", "/alpha/tasks/t", "1.0", "V1 Get of alpha [t]"),
        ("POST", "/a2a/rest/b%202/tasks/t:cancel", "", "Unversioned Cancel of b 2 [t]"),
        ("GET", "/agents/alpha/tasks", "", "Unversioned List of alpha"),
        ("GET", "/agents/alpha/a2a/rest/alpha/tasks", "1.0", "V1 List of alpha"),
        ("GET", "/agents/alpha/a2a/rest/b%202/tasks", "1.0", "404 status AgentNotFound"),
        ("GET", "/ghost/tasks/t", "1.0", "404 status AgentNotFound"),
        ("POST", "/ghost/message:send", "", "404 problem AgentNotFound"),
        ("GET", "/agents/ghost/tasks", "", "404 problem AgentNotFound"),
        ("GET", "/agents/ghost/v1/tasks/t", "", "404 code AgentNotFound"),
        ("GET", "/tasks/t", "0.5", "400 status Version"),
        ("GET", "/tasks/t", "0.3", "400 status Version"),
        ("GET", "/a2a/rest/tasks/t", "1.7", "400 status Version"),
        ("GET", "/message:send", "1.0", "405 status VerbNotAllowed (POST)"),
        ("GET", "/tasks/t:cancel", "", "405 problem VerbNotAllowed (POST)"),
        ("POST", "/tasks/t", "", "405 problem VerbNotAllowed (GET, HEAD)"),
        ("PATCH", "/tasks/t/pushNotificationConfigs/c", "1.0", "405 status VerbNotAllowed (GET, HEAD, DELETE)"),
        ("PUT", "/tasks/t/pushNotificationConfigs", "1.0", "405 status VerbNotAllowed (GET, HEAD, POST)"),
        // HTTP+JSON of 0.3.
        ("POST", "/v1/message:send", "", "V0_3 Send"),
        ("POST", "/a2a/rest/v1/message:send", "0.3", "V0_3 Send"),
        ("POST", "/agents/alpha/v1/message:stream", "0.2", "V0_3 Stream of alpha"),
        ("GET", "/v1/tasks/t:subscribe", "", "V0_3 Subscribe [t]"),
        ("GET", "/v1/card", "", "V0_3 ExtendedCard"),
        ("GET", "/v1/tasks", "", "404 code PathNotFound"),
        // The extended card of 0.2.
        ("GET", "/agent/authenticatedExtendedCard", "", "V0_2Card ExtendedCard"),
        ("GET", "/a2a/agent/authenticatedExtendedCard/", "0.2", "V0_2Card ExtendedCard"),
        ("GET", "/agents/alpha/agent/authenticatedExtendedCard", "1.0", "V0_2Card ExtendedCard of alpha"),
        ("GET", "/agents/alpha/a2a/agent/authenticatedExtendedCard", "", "V0_2Card ExtendedCard of alpha"),
        ("GET", "/agents/ghost/agent/authenticatedExtendedCard", "", "404 problem AgentNotFound"),
        ("POST", "/agent/authenticatedExtendedCard", "", "405 problem VerbNotAllowed (GET, HEAD)"),
        ("GET", "/agent/card", "", "404 problem PathNotFound"),
        ("GET", "/v1/message:send", "", "405 code VerbNotAllowed (POST)"),
        ("POST", "/v1/message:send", "1.0", "404 status AgentNotFound"),
        ("POST", "/v1/message:send", "2.0", "400 code Version"),
        ("POST", "/v1/message:send", "0.9", "400 code Version"),
        // The aliases.
        ("GET", "/a2a/tasks/t:1", "", "TaskAlias Get [t:1]"),
        ("GET", "/a2a/tasks/t", "0.2", "TaskAlias Get [t]"),
        ("POST", "/a2a/tasks/t/pushNotificationConfig", "", "TaskAlias PushSet [t]"),
        ("GET", "/agents/alpha/a2a/tasks/t/pushNotificationConfigs", "", "TaskAlias PushList of alpha [t]"),
        ("DELETE", "/a2a/tasks/t/pushNotificationConfig", "", "TaskAlias PushDelete [t]"),
        ("DELETE", "/a2a/tasks/t/pushNotificationConfigs", "0.3", "TaskAlias PushDelete [t]"),
        ("GET", "/a2a/tasks/t/pushNotificationConfigs/c", "", "TaskAlias PushGet [t] [c]"),
        ("DELETE", "/a2a/tasks/t/pushNotificationConfig/c%201", "", "TaskAlias PushDelete [t] [c 1]"),
        ("DELETE", "/a2a/tasks/t/pushNotificationConfig//", "", "404 problem PathNotFound"),
        ("GET", "/a2a/tasks/t", "1.0", "400 problem Version"),
        ("DELETE", "/a2a/tasks/t", "", "405 problem VerbNotAllowed (GET, HEAD)"),
        // Operations, and nothing at all.
        ("GET", "/healthz", "", "health"),
        ("GET", "/health", "", "health"),
        ("HEAD", "/readyz", "", "ready"),
        ("POST", "/healthz", "", "405 problem VerbNotAllowed (GET, HEAD)"),
        ("GET", "/agents/alpha/healthz", "", "404 problem PathNotFound"),
        ("GET", "/nowhere", "", "404 problem PathNotFound"),
        ("GET", "/nowhere", "1.0", "404 status PathNotFound"),
        ("GET", "/a2a/message:send", "", "404 problem PathNotFound"),
        ("GET", "/tasks/%", "", "404 problem PathNotFound"),
        ("GET", "//tasks", "", "404 problem PathNotFound"),
        ("GET", "/1/2/3/4/5/6/7/8", "", "404 problem PathNotFound"),
        ("GET", "*", "", "404 problem PathNotFound"),
    ] {
        assert_eq!(say(verb, target, version), expected, "{verb} {target} {version}");
    }
}

#[test]
fn options_lists_the_allowed_verbs_of_every_known_path() {
    for (path, expected) in [
        ("/", Some("POST")),
        ("/a2a", Some("POST")),
        ("/a2a/v0.3", Some("POST")),
        ("/agents/alpha/a2a/jsonrpc", Some("POST")),
        ("/.well-known/agent-card.json", Some("GET, HEAD")),
        ("/.well-known/ai-catalog.json", Some("GET, HEAD")),
        ("/healthz", Some("GET, HEAD")),
        ("/readyz", Some("GET, HEAD")),
        ("/message:send", Some("POST")),
        ("/a2a/rest/v1/message:stream", Some("POST")),
        ("/alpha/tasks", Some("GET, HEAD")),
        ("/tasks/t", Some("GET, HEAD")),
        ("/tasks/t:cancel", Some("POST")),
        ("/tasks/t:subscribe", Some("GET, POST")),
        ("/tasks/t/pushNotificationConfigs", Some("GET, HEAD, POST")),
        ("/tasks/t/pushNotificationConfigs/c", Some("GET, HEAD, DELETE")),
        ("/a2a/tasks/t/pushNotificationConfig", Some("GET, HEAD, POST, DELETE")),
        ("/a2a/tasks/t/pushNotificationConfig/c", Some("GET, HEAD, DELETE")),
        ("/extendedAgentCard", Some("GET, HEAD")),
        ("/a2a/tasks/t", Some("GET, HEAD")),
        ("/v1/a2a/agents", Some("GET, HEAD")),
        ("/v1/a2a/agents/alpha/agent-card", Some("GET, HEAD")),
        ("/v1/a2a/agents/alpha/message:send", Some("POST")),
        ("/v1/a2a/agents/alpha/tasks/t", Some("GET, HEAD")),
        ("/v1/a2a/agents/alpha/tasks/t:cancel", Some("POST")),
        ("/nowhere", None),
        ("/agents/ghost/a2a", None),
        ("/v1/a2a/agents/alpha/nothing", None),
    ] {
        let head = RequestHead { verb: "OPTIONS", path, ..RequestHead::default() };
        let Surface::Refused(refused) = locate(&head, &ThreeAgents) else { panic!("{path}") };
        let reply = refused.reply();
        assert_eq!(reply.allow, expected, "{path}");
        assert_eq!((reply.status == 204, reply.body.is_empty()), (expected.is_some(), expected.is_some()), "{path}");
    }
}

#[test]
fn the_error_of_an_unknown_path_names_the_known_ones() {
    let head = RequestHead { verb: "GET", path: "/rpc", ..RequestHead::default() };
    let Surface::Refused(refused) = locate(&head, &ThreeAgents) else { panic!("there is nothing there") };
    let detail = json(&refused.reply().body)["detail"].as_str().unwrap().to_owned();
    for part in
        ["there is nothing at /rpc; ", "/a2a/jsonrpc", "/a2a/rest", "/.well-known/agent-card.json", "0.1,0.2,0.3,1.0"]
    {
        assert!(detail.contains(part), "{part} in {detail}");
    }

    let head = RequestHead { verb: "POST", path: "/agents/ghost/a2a", ..RequestHead::default() };
    let Surface::Refused(refused) = locate(&head, &ThreeAgents) else { panic!("there is no such agent") };
    assert_eq!(
        json(&refused.reply().body),
        serde_json::json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32602, "message": "Invalid parameters",
            "data": {"detail": "there is no agent ghost; known: alpha, b 2, harbour-north"}}})
    );
}
