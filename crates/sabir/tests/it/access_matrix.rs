//! Every method of every dialect and binding with every kind of credential: who is let in, and that a task of somebody else
//! is answered exactly as one that never was.
//!
//! `requests` is the one table of methods. A request is about the task `ID`; the test puts in an own one, a foreign one and
//! one that does not exist.

use std::time::{SystemTime, UNIX_EPOCH};

use sabir_testkit::grpc::{self, GrpcReply};
use sabir_testkit::http::HttpReply;
use sabir_testkit::oidc_provider::{AUDIENCE, ServedProvider};
use serde_json::{Value, json};

use crate::server_fixture::ServerFixture;

/// What a method does with a task.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Does {
    /// Makes a new one; the request names none.
    Creates,
    /// Needs the right to run.
    Changes,
    /// Needs the right to read.
    Reads,
    /// Shows all of the caller's.
    Lists,
    /// Is about the agents, not about tasks.
    Describes,
}

struct MatrixRequest {
    name: &'static str,
    does: Does,
    verb: &'static str,
    path: &'static str,
    headers: &'static [(&'static str, &'static str)],
    body: Value,
}

const V1: &[(&str, &str)] = &[("A2A-Version", "1.0")];
const V1_FROM_0: &[(&str, &str)] = &[("A2A-Version", "1.0"), ("Last-Event-ID", "0")];
const FROM_0: &[(&str, &str)] = &[("Last-Event-ID", "0")];
const V0_1: &[(&str, &str)] = &[("A2A-Version", "0.1")];
const V0_1_FROM_0: &[(&str, &str)] = &[("A2A-Version", "0.1"), ("Last-Event-ID", "0")];
const HOOK: &str = "http://127.0.0.1:9/hook";

fn requests() -> Vec<MatrixRequest> {
    let mut all = Vec::new();
    let mut add = |name, does, verb, path, headers, body| {
        all.push(MatrixRequest { name, does, verb, path, headers, body });
    };
    let rpc = |method: &str, params: Value| json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    let v1_message = |task: Option<&str>| {
        let mut message = json!({"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "hi"}]});
        if let Some(task) = task {
            message["taskId"] = json!(task);
        }
        json!({"message": message})
    };
    let v03_message = |task: Option<&str>| {
        let mut message = json!({"messageId": "m", "role": "user", "parts": [{"kind": "text", "text": "hi"}]});
        if let Some(task) = task {
            message["taskId"] = json!(task);
        }
        json!({"message": message})
    };
    let proto_message = |task: Option<&str>| {
        let mut message = json!({"messageId": "m", "role": "ROLE_USER", "content": [{"text": "hi"}]});
        if let Some(task) = task {
            message["taskId"] = json!(task);
        }
        json!({"message": message, "configuration": {"blocking": true}})
    };
    let hook = json!({"id": "c", "url": HOOK});
    use Does::{Changes, Creates, Describes, Lists, Reads};
    for path in ["/a2a/jsonrpc", "/agents/demo/a2a/v1"] {
        add("1.0 send", Creates, "POST", path, V1, rpc("SendMessage", v1_message(None)));
        add("1.0 send to", Changes, "POST", path, V1, rpc("SendMessage", v1_message(Some("ID"))));
        add("1.0 stream", Creates, "POST", path, V1, rpc("SendStreamingMessage", v1_message(None)));
        add("1.0 stream to", Changes, "POST", path, V1, rpc("SendStreamingMessage", v1_message(Some("ID"))));
        add("1.0 get", Reads, "POST", path, V1, rpc("GetTask", json!({"id": "ID"})));
        add("1.0 list", Lists, "POST", path, V1, rpc("ListTasks", json!({})));
        add("1.0 cancel", Changes, "POST", path, V1, rpc("CancelTask", json!({"id": "ID"})));
        add("1.0 subscribe", Reads, "POST", path, V1_FROM_0, rpc("SubscribeToTask", json!({"id": "ID"})));
        let set = json!({"taskId": "ID", "id": "c", "url": HOOK});
        add("1.0 set", Changes, "POST", path, V1, rpc("CreateTaskPushNotificationConfig", set));
        let named = json!({"taskId": "ID", "id": "c"});
        add("1.0 hook", Reads, "POST", path, V1, rpc("GetTaskPushNotificationConfig", named.clone()));
        add("1.0 hooks", Reads, "POST", path, V1, rpc("ListTaskPushNotificationConfigs", json!({"taskId": "ID"})));
        add("1.0 unset", Changes, "POST", path, V1, rpc("DeleteTaskPushNotificationConfig", named));
        add("1.0 card", Describes, "POST", path, V1, rpc("GetExtendedAgentCard", json!({})));
    }
    for path in ["/", "/agents/demo/a2a/v0.3"] {
        add("0.3 send", Creates, "POST", path, &[], rpc("message/send", v03_message(None)));
        add("0.3 send to", Changes, "POST", path, &[], rpc("message/send", v03_message(Some("ID"))));
        add("0.3 stream", Creates, "POST", path, &[], rpc("message/stream", v03_message(None)));
        add("0.3 stream to", Changes, "POST", path, &[], rpc("message/stream", v03_message(Some("ID"))));
        add("0.3 get", Reads, "POST", path, &[], rpc("tasks/get", json!({"id": "ID"})));
        add("0.3 cancel", Changes, "POST", path, &[], rpc("tasks/cancel", json!({"id": "ID"})));
        add("0.3 subscribe", Reads, "POST", path, FROM_0, rpc("tasks/resubscribe", json!({"id": "ID"})));
        let set = json!({"taskId": "ID", "pushNotificationConfig": hook});
        add("0.3 set", Changes, "POST", path, &[], rpc("tasks/pushNotificationConfig/set", set));
        let named = json!({"id": "ID", "pushNotificationConfigId": "c"});
        add("0.3 hook", Reads, "POST", path, &[], rpc("tasks/pushNotificationConfig/get", named.clone()));
        add("0.3 hooks", Reads, "POST", path, &[], rpc("tasks/pushNotificationConfig/list", json!({"id": "ID"})));
        add("0.3 unset", Changes, "POST", path, &[], rpc("tasks/pushNotificationConfig/delete", named));
        add("0.3 card", Describes, "POST", path, &[], rpc("agent/getAuthenticatedExtendedCard", Value::Null));
    }
    // The id of a task is the caller's own here, so a send with a foreign one makes a new task.
    let v01_message = json!({"role": "user", "parts": [{"type": "text", "text": "hi"}]});
    let v01_new = json!({"id": "NEW", "message": v01_message});
    add("0.1 send", Creates, "POST", "/", V0_1, rpc("tasks/send", v01_new.clone()));
    add("0.1 stream", Creates, "POST", "/", V0_1, rpc("tasks/sendSubscribe", v01_new));
    add("0.1 get", Reads, "POST", "/", V0_1, rpc("tasks/get", json!({"id": "ID"})));
    add("0.1 cancel", Changes, "POST", "/a2a/v0.1", &[], rpc("tasks/cancel", json!({"id": "ID"})));
    add("0.1 subscribe", Reads, "POST", "/", V0_1_FROM_0, rpc("tasks/resubscribe", json!({"id": "ID"})));
    let set = json!({"id": "ID", "pushNotificationConfig": {"url": HOOK}});
    add("0.1 set", Changes, "POST", "/", V0_1, rpc("tasks/pushNotification/set", set));
    add("0.1 hook", Reads, "POST", "/", V0_1, rpc("tasks/pushNotification/get", json!({"id": "ID"})));
    for headers in [&[][..], V1] {
        let name = |own: &'static str, versioned: &'static str| if headers.is_empty() { own } else { versioned };
        add(name("rest send", "rest 1.0 send"), Creates, "POST", "/message:send", headers, v1_message(None));
        add(
            name("rest send to", "rest 1.0 send to"),
            Changes,
            "POST",
            "/message:send",
            headers,
            v1_message(Some("ID")),
        );
        add(name("rest stream", "rest 1.0 stream"), Creates, "POST", "/message:stream", headers, v1_message(None));
        add(name("rest get", "rest 1.0 get"), Reads, "GET", "/a2a/rest/tasks/ID", headers, Value::Null);
        add(name("rest list", "rest 1.0 list"), Lists, "GET", "/agents/demo/tasks", headers, Value::Null);
        add(name("rest tenant list", "rest 1.0 tenant list"), Lists, "GET", "/demo/tasks", headers, Value::Null);
        add(name("rest cancel", "rest 1.0 cancel"), Changes, "POST", "/tasks/ID:cancel", headers, json!({}));
        let from_0 = if headers.is_empty() { FROM_0 } else { V1_FROM_0 };
        add(name("rest subscribe", "rest 1.0 subscribe"), Reads, "GET", "/tasks/ID:subscribe", from_0, Value::Null);
        let hooks = "/tasks/ID/pushNotificationConfigs";
        add(name("rest set", "rest 1.0 set"), Changes, "POST", hooks, headers, hook.clone());
        add(name("rest hooks", "rest 1.0 hooks"), Reads, "GET", hooks, headers, Value::Null);
        let named = "/tasks/ID/pushNotificationConfigs/c";
        add(name("rest hook", "rest 1.0 hook"), Reads, "GET", named, headers, Value::Null);
        add(name("rest unset", "rest 1.0 unset"), Changes, "DELETE", named, headers, Value::Null);
        add(name("rest card", "rest 1.0 card"), Describes, "GET", "/extendedAgentCard", headers, Value::Null);
    }
    add("proto send", Creates, "POST", "/v1/message:send", &[], proto_message(None));
    add("proto send to", Changes, "POST", "/a2a/rest/v1/message:send", &[], proto_message(Some("ID")));
    add("proto stream", Creates, "POST", "/v1/message:stream", &[], proto_message(None));
    add("proto get", Reads, "GET", "/v1/tasks/ID", &[], Value::Null);
    add("proto cancel", Changes, "POST", "/v1/tasks/ID:cancel", &[], json!({}));
    add("proto subscribe", Reads, "GET", "/v1/tasks/ID:subscribe", FROM_0, Value::Null);
    add("proto hooks", Reads, "GET", "/v1/tasks/ID/pushNotificationConfigs", &[], Value::Null);
    add("proto unset", Changes, "DELETE", "/v1/tasks/ID/pushNotificationConfigs/c", &[], Value::Null);
    add("proto card", Describes, "GET", "/v1/card", &[], Value::Null);
    add("alias get", Reads, "GET", "/a2a/tasks/ID", &[], Value::Null);
    add("alias set", Changes, "POST", "/a2a/tasks/ID/pushNotificationConfig", &[], hook.clone());
    add("alias hooks", Reads, "GET", "/a2a/tasks/ID/pushNotificationConfigs", &[], Value::Null);
    add("alias unset", Changes, "DELETE", "/a2a/tasks/ID/pushNotificationConfigs/c", &[], Value::Null);
    let gateway = "/v1/a2a/agents/demo/message:send";
    add("gateway send", Creates, "POST", gateway, &[], json!({"input": "hi"}));
    add("gateway get", Reads, "GET", "/v1/a2a/agents/demo/tasks/ID", &[], Value::Null);
    add("gateway cancel", Changes, "POST", "/v1/a2a/agents/demo/tasks/ID:cancel", &[], json!({}));
    let decision = json!({"taskId": "ID", "decisions": [{"target_id": "x", "action": "resume", "approved": true}]});
    add("gateway decide", Changes, "POST", gateway, &[], decision);
    add("gateway agents", Describes, "GET", "/v1/a2a/agents", &[], Value::Null);
    add("catalogue", Describes, "GET", "/.well-known/ai-catalog.json", &[], Value::Null);
    const GRPC: &str = "gRPC";
    let hook = json!({"taskId": "ID", "id": "c", "url": HOOK});
    let named = json!({"taskId": "ID", "id": "c"});
    for (name, does, method, headers, message) in [
        ("gRPC 1.0 send", Creates, "lf.a2a.v1.A2AService/SendMessage", &[][..], v1_message(None)),
        ("gRPC 1.0 send to", Changes, "lf.a2a.v1.A2AService/SendMessage", &[], v1_message(Some("ID"))),
        ("gRPC 1.0 stream", Creates, "lf.a2a.v1.A2AService/SendStreamingMessage", &[], v1_message(None)),
        ("gRPC 1.0 stream to", Changes, "lf.a2a.v1.A2AService/SendStreamingMessage", &[], v1_message(Some("ID"))),
        ("gRPC 1.0 get", Reads, "lf.a2a.v1.A2AService/GetTask", &[], json!({"id": "ID"})),
        ("gRPC 1.0 list", Lists, "lf.a2a.v1.A2AService/ListTasks", &[], json!({})),
        ("gRPC 1.0 tenant list", Lists, "lf.a2a.v1.A2AService/ListTasks", &[], json!({"tenant": "demo"})),
        ("gRPC 1.0 cancel", Changes, "lf.a2a.v1.A2AService/CancelTask", &[], json!({"id": "ID"})),
        ("gRPC 1.0 subscribe", Reads, "lf.a2a.v1.A2AService/SubscribeToTask", FROM_0, json!({"id": "ID"})),
        ("gRPC 1.0 set", Changes, "lf.a2a.v1.A2AService/CreateTaskPushNotificationConfig", &[], hook),
        ("gRPC 1.0 hook", Reads, "lf.a2a.v1.A2AService/GetTaskPushNotificationConfig", &[], named.clone()),
        ("gRPC 1.0 hooks", Reads, "lf.a2a.v1.A2AService/ListTaskPushNotificationConfigs", &[], json!({"taskId": "ID"})),
        ("gRPC 1.0 unset", Changes, "lf.a2a.v1.A2AService/DeleteTaskPushNotificationConfig", &[], named),
        ("gRPC 1.0 card", Describes, "lf.a2a.v1.A2AService/GetExtendedAgentCard", &[], json!({})),
    ] {
        add(name, does, GRPC, method, headers, message);
    }
    let old_message = |task: Option<&str>| {
        let mut message = proto_message(task);
        message["request"] = message["message"].take();
        message.as_object_mut().expect("an object").remove("message");
        message
    };
    let (task, config) = (json!({"name": "tasks/ID"}), json!({"name": "tasks/ID/pushNotificationConfigs/c"}));
    let set = json!({"parent": "tasks/ID", "configId": "c", "config": {"pushNotificationConfig": {"url": HOOK}}});
    for (name, does, method, headers, message) in [
        ("gRPC 0.3 send", Creates, "a2a.v1.A2AService/SendMessage", &[][..], old_message(None)),
        ("gRPC 0.3 send to", Changes, "a2a.v1.A2AService/SendMessage", &[], old_message(Some("ID"))),
        ("gRPC 0.3 stream", Creates, "a2a.v1.A2AService/SendStreamingMessage", &[], old_message(None)),
        ("gRPC 0.3 get", Reads, "a2a.v1.A2AService/GetTask", &[], task.clone()),
        ("gRPC 0.3 cancel", Changes, "a2a.v1.A2AService/CancelTask", &[], task.clone()),
        ("gRPC 0.3 subscribe", Reads, "a2a.v1.A2AService/TaskSubscription", FROM_0, task),
        ("gRPC 0.3 set", Changes, "a2a.v1.A2AService/CreateTaskPushNotificationConfig", &[], set),
        ("gRPC 0.3 hook", Reads, "a2a.v1.A2AService/GetTaskPushNotificationConfig", &[], config.clone()),
        (
            "gRPC 0.3 hooks",
            Reads,
            "a2a.v1.A2AService/ListTaskPushNotificationConfig",
            &[],
            json!({"parent": "tasks/ID"}),
        ),
        ("gRPC 0.3 unset", Changes, "a2a.v1.A2AService/DeleteTaskPushNotificationConfig", &[], config),
        ("gRPC 0.3 card", Describes, "a2a.v1.A2AService/GetAgentCard", &[], json!({})),
    ] {
        add(name, does, GRPC, method, headers, message);
    }
    all
}

/// An answer of gRPC with the status that HTTP would have had.
fn as_http(reply: &GrpcReply) -> HttpReply {
    let status = match reply.code() {
        Some(5) => 404,
        Some(7) => 403,
        Some(16) => 401,
        Some(_) => 200,
        None => reply.http_status,
    };
    let (code, text, details) = (reply.code(), reply.text(), reply.details());
    let body = json!({"messages": reply.messages, "grpc": code, "text": text, "details": details}).to_string();
    HttpReply { status, headers: Vec::new(), body: body.into_bytes() }
}

/// Whether a caller was let in.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Told {
    In,
    NotFound,
    Unauthenticated,
    Forbidden,
}

fn told(reply: &HttpReply) -> Told {
    let text = reply.text();
    let first_frame = text.lines().find_map(|line| line.strip_prefix("data: ")).unwrap_or(&text);
    let body: Value = serde_json::from_str(first_frame).unwrap_or_default();
    let code = body["error"]["code"].as_i64().or(body["code"].as_i64()).or(body["a2a_code"].as_i64());
    match (reply.status, code) {
        (401, _) => Told::Unauthenticated,
        (403, _) => Told::Forbidden,
        (404, _) | (_, Some(-32001)) => Told::NotFound,
        _ => Told::In,
    }
}

const OWN: &str = "tasks-000001";
const FOREIGN: &str = "tasks-000002";
const MISSING: &str = "tasks-000003";

struct Matrix {
    /// Issues tokens; the server takes them.
    issuer: ServedProvider,
    fixture: ServerFixture,
    sent: std::cell::Cell<u32>,
}

impl Matrix {
    /// A server with a finished task of alice and one of bob, each with a webhook.
    fn new() -> Self {
        let config = [
            "[[agent]]\nid = 'demo'\nkind = 'demo'\n",
            "[auth]\ntokens = ['alice:token-of-alice', 'bob:token-of-bob']\n",
            "[push]\nallow_hosts = ['127.0.0.1']\n",
        ];
        let reader = "[[auth.token]]\nsubject = 'alice'\nscopes = ['read']\n";
        let nobody = "[[auth.token]]\nsubject = 'alice'\nscopes = ['run:other']\n";
        let hash = |secret: &str| format!("hash = '{}'\n", sabir_server::Digest::of(secret.as_bytes()));
        let other_tenant = "[[auth.token]]\nsubject = 'alice'\ntenant = 'other'\n";
        let tokens = [
            reader,
            &hash("token-that-reads"),
            nobody,
            &hash("token-of-no-use"),
            other_tenant,
            &hash("token-of-another-tenant"),
        ];
        let issuer = ServedProvider::start();
        let table = format!("[[auth.issuer]]\nissuer = '{}'\naudience = '{AUDIENCE}'\n", issuer.provider.issuer);
        let fixture = ServerFixture::configured(&(config.concat() + &tokens.concat() + &table));
        let matrix = Self { issuer, fixture, sent: std::cell::Cell::new(0) };
        for (token, task) in [("token-of-alice", OWN), ("token-of-bob", FOREIGN)] {
            let message = json!({"role": "user", "parts": [{"type": "text", "text": "hi"}]});
            let send =
                json!({"jsonrpc": "2.0", "id": 1, "method": "tasks/send", "params": {"id": task, "message": message}});
            let request = MatrixRequest {
                name: "set up",
                does: Does::Creates,
                verb: "POST",
                path: "/",
                headers: V0_1,
                body: send,
            };
            assert_eq!(told(&matrix.ask(&request, Some(token), task)), Told::In);
            let set = json!({"jsonrpc": "2.0", "id": 1, "method": "tasks/pushNotificationConfig/set",
                "params": {"taskId": task, "pushNotificationConfig": {"id": "c", "url": HOOK}}});
            let request = MatrixRequest { headers: &[], body: set, ..request };
            assert_eq!(told(&matrix.ask(&request, Some(token), task)), Told::In);
        }
        matrix
    }

    /// A token of the issuer that expires so many seconds from now.
    fn issued(&self, seconds: i64) -> String {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() as i64;
        let mut claims = self.issuer.provider.claims("alice", now);
        claims["exp"] = json!(now + seconds);
        self.issuer.provider.key().token(&claims)
    }

    fn ask(&self, request: &MatrixRequest, token: Option<&str>, task: &str) -> HttpReply {
        self.sent.set(self.sent.get() + 1);
        let new = format!("new-{}", self.sent.get());
        let put_in = |text: &str| text.replace("ID:", &format!("{task}:")).replace("/ID", &format!("/{task}"));
        let body = request.body.to_string().replace("\"ID\"", &json!(task).to_string());
        let body = body.replace("\"NEW\"", &json!(new).to_string());
        // A message id in flight would join another's send.
        let body = body.replace("\"messageId\":\"m\"", &format!("\"messageId\":\"{new}\""));
        let authorization = token.map(|token| format!("Bearer {token}"));
        let mut headers: Vec<(&str, &str)> = request.headers.to_vec();
        headers.extend(authorization.as_deref().map(|value| ("Authorization", value)));
        let body: Value = serde_json::from_str(&body.replace("tasks/ID", &format!("tasks/{task}"))).unwrap();
        if request.verb == "gRPC" {
            return as_http(&grpc::call(self.fixture.server.address, request.path, &lower(&headers), &body));
        }
        self.fixture.ask(request.verb, &put_in(request.path), &headers, &body)
    }
}

/// HTTP/2 has names in lower case only.
fn lower<'h>(headers: &[(&'h str, &'h str)]) -> Vec<(&'static str, &'h str)> {
    let name = |name: &str| match name {
        "Authorization" => "authorization",
        "Last-Event-ID" => "last-event-id",
        other => panic!("{other} is not used with gRPC"),
    };
    headers.iter().map(|(known, value)| (name(known), *value)).collect()
}

/// What a caller sees of an answer, but for the names of tasks.
fn seen(reply: &HttpReply) -> (u16, String) {
    (reply.status, reply.text().replace(OWN, "ID").replace(FOREIGN, "ID").replace(MISSING, "ID"))
}

#[test]
fn only_a_right_credential_lets_a_caller_in() {
    let matrix = Matrix::new();
    for request in requests() {
        let case = |token: Option<&str>| {
            let reply = matrix.ask(&request, token, OWN);
            (
                told(&reply),
                format!("{} at {} with {token:?}: {} {}", request.name, request.path, reply.status, reply.text()),
            )
        };
        let expired = matrix.issued(-3600);
        for token in [None, Some("nobody's"), Some("token-of-alic"), Some(""), Some(&expired)] {
            let (outcome, shown) = case(token);
            assert_eq!(outcome, Told::Unauthenticated, "{shown}");
        }
        let (outcome, shown) = case(Some("token-of-no-use"));
        // A list and a description show nothing that the caller may not see; an agent that is named is forbidden.
        let expected = match request.does {
            Does::Creates | Does::Changes | Does::Reads => &[Told::Forbidden, Told::NotFound][..],
            Does::Lists | Does::Describes => &[Told::Forbidden, Told::In],
        };
        assert!(expected.contains(&outcome), "{shown}");
        let (outcome, shown) = case(Some("token-that-reads"));
        let expected = match request.does {
            Does::Creates | Does::Changes => Told::Forbidden,
            Does::Reads | Does::Lists | Does::Describes => Told::In,
        };
        assert_eq!(outcome, expected, "{shown}");
    }
    // Last those that may change something, webhooks among it.
    for request in requests() {
        let reply = matrix.ask(&request, Some("token-of-alice"), OWN);
        let restored =
            ["set", "unset"].iter().any(|word| request.name.ends_with(word)) || request.name.ends_with("hook");
        assert!(
            told(&reply) == Told::In || restored && told(&reply) == Told::NotFound,
            "{} at {}: {} {}",
            request.name,
            request.path,
            reply.status,
            reply.text()
        );
    }
}

#[test]
fn a_foreign_task_is_answered_as_one_that_never_was() {
    let matrix = Matrix::new();
    let bob = |request: &MatrixRequest| matrix.ask(request, Some("token-of-bob"), FOREIGN).text();
    let get = &requests().into_iter().find(|request| request.name == "1.0 get").unwrap();
    let before = bob(get);
    for request in requests().iter().filter(|request| matches!(request.does, Does::Reads | Does::Changes)) {
        let issued = matrix.issued(3600);
        for token in
            ["token-of-alice", "token-that-reads", "token-of-no-use", "token-of-another-tenant", issued.as_str()]
        {
            // The alice of another tenant, or of an issuer, is another alice.
            let is_alice = !["token-of-another-tenant", issued.as_str()].contains(&token);
            let foreign = matrix.ask(request, Some(token), if is_alice { FOREIGN } else { OWN });
            let missing = matrix.ask(request, Some(token), MISSING);
            assert_eq!(seen(&foreign), seen(&missing), "{} at {} with {token}", request.name, request.path);
            assert_ne!(
                told(&foreign),
                Told::In,
                "{} at {} with {token}: {}",
                request.name,
                request.path,
                foreign.text()
            );
        }
    }
    for request in requests().iter().filter(|request| request.does == Does::Lists) {
        let listed = matrix.ask(request, Some("token-of-alice"), OWN).text();
        assert!(listed.contains(OWN) && !listed.contains(FOREIGN), "{}: {listed}", request.name);
    }
    assert_eq!(bob(get), before, "nothing that others sent has changed the task");
}

#[test]
fn an_agent_that_is_not_listed_exists_only_for_those_who_may_use_it() {
    let hash = |secret: &str| sabir_server::Digest::of(secret.as_bytes());
    let fixture = ServerFixture::configured(&format!(
        "[[agent]]\nid = 'demo'\nkind = 'demo'\ndefault = true\n\n[[agent]]\nid = 'hidden'\nkind = 'demo'\nlisted = false\nname = 'Secret desk'\n\n\
         [[auth.token]]\nsubject = 'alice'\nscopes = ['run:demo']\nhash = '{}'\n\n\
         [[auth.token]]\nsubject = 'insider'\nscopes = ['run:hidden']\nhash = '{}'\n",
        hash("token-of-alice"),
        hash("token-of-insider")
    ));
    let rpc = |tenant: &str| {
        let message = json!({"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "hi"}]});
        let params = json!({"tenant": tenant, "message": message});
        json!({"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": params})
    };
    let ask = |verb: &str, path: &str, body: &Value, token: Option<&str>| {
        let authorization = token.map(|token| format!("Bearer {token}"));
        let headers: Vec<(&str, &str)> = authorization.iter().map(|value| ("Authorization", value.as_str())).collect();
        fixture.ask(verb, path, &headers, body)
    };
    for (verb, path) in [
        ("GET", "/agents/AGENT/.well-known/agent-card.json"),
        ("GET", "/agents/AGENT/tasks"),
        ("GET", "/AGENT/tasks"),
        ("POST", "/agents/AGENT/a2a/jsonrpc"),
        ("POST", "/a2a/jsonrpc"),
        ("GET", "/v1/a2a/agents/AGENT/agent-card"),
        ("GET", "/v1/a2a/agents/AGENT/tasks/x"),
        ("POST", "/v1/a2a/agents/AGENT/message:send"),
    ] {
        let at = |agent: &str, token| {
            let body = match (verb, path) {
                ("GET", _) => Value::Null,
                (_, path) if path.ends_with("message:send") => json!({"input": "hi"}),
                _ => rpc(agent),
            };
            ask(verb, &path.replace("AGENT", agent), &body, token)
        };
        for token in [None, Some("nobody's"), Some("token-of-alice")] {
            let (hidden, missing) = (at("hidden", token), at("nobody", token));
            let same = |reply: &HttpReply, agent: &str| (reply.status, reply.text().replace(agent, "AGENT"));
            assert_eq!(same(&hidden, "hidden"), same(&missing, "nobody"), "{verb} {path} with {token:?}");
            assert!(hidden.status >= 400 || hidden.json().get("error").is_some(), "{verb} {path} with {token:?}");
        }
        let reply = at("hidden", Some("token-of-insider"));
        assert!(reply.status < 300 || path.ends_with("/tasks/x"), "{verb} {path}: {} {}", reply.status, reply.text());
    }
    for path in ["/.well-known/agent-card.json", "/.well-known/ai-catalog.json", "/v1/a2a/agents", "/"] {
        for token in [None, Some("token-of-alice")] {
            let accept = [("Accept", "text/html"), ("Authorization", token.map_or("", |_| "Bearer token-of-alice"))];
            let reply = fixture.ask("GET", path, &accept[..if token.is_some() { 2 } else { 1 }], &Value::Null);
            assert!(!reply.text().contains("hidden") && !reply.text().contains("Secret"), "{path}: {}", reply.text());
        }
    }
    let extended = ask("GET", "/extendedAgentCard", &Value::Null, Some("token-of-insider"));
    assert!(extended.text().contains("Secret desk"), "{}", extended.text());
    // A cache between here and the callers keeps what everybody may see, and nothing else.
    for (path, caching) in [
        ("/.well-known/agent-card.json", "public, max-age=30, must-revalidate"),
        ("/agents/hidden/.well-known/agent-card.json", "private, no-cache"),
        ("/v1/a2a/agents/hidden/agent-card", "private, no-cache"),
        ("/v1/a2a/agents", "private, no-cache"),
        ("/.well-known/ai-catalog.json", "private, no-cache"),
    ] {
        let reply = ask("GET", path, &Value::Null, Some("token-of-insider"));
        assert_eq!((reply.status, reply.header("cache-control")), (200, Some(caching)), "{path}");
    }
}

#[test]
fn tasks_from_before_credentials_can_be_given_to_somebody() {
    let folder = tempfile::tempdir().unwrap();
    let start = |config: &str| {
        std::fs::write(folder.path().join("sabir.toml"), config).unwrap();
        sabir_testkit::process::SabirOptions::new(crate::SABIR, folder.path()).start()
    };
    let send = json!({"jsonrpc": "2.0", "id": 1, "method": "tasks/send", "params": {"id": "old", "message":
        {"role": "user", "parts": [{"type": "text", "text": "hi"}]}}});
    let get = json!({"jsonrpc": "2.0", "id": 1, "method": "tasks/get", "params": {"id": "old"}});
    let server = start("");
    let ask = |server: &sabir_testkit::process::SabirProcess, path: &str, token: &str, body: &Value| {
        let authorization = format!("Bearer {token}");
        let headers = [("Authorization", authorization.as_str())];
        server.http().exchange("POST", path, &headers, body.to_string().as_bytes()).unwrap()
    };
    assert_eq!(told(&ask(&server, "/", "", &send)), Told::In);
    drop(server);
    let hash = sabir_server::Digest::of(b"token-of-ops");
    let server = start(&format!(
        "[auth]\ntokens = ['alice:token-of-alice']\n[[auth.token]]\nsubject = 'ops'\nscopes = ['admin']\nhash = '{hash}'\n"
    ));
    assert_eq!(told(&ask(&server, "/", "token-of-alice", &get)), Told::NotFound);
    assert_eq!(told(&ask(&server, "/", "token-of-ops", &get)), Told::In, "an admin sees it");
    let path = "/admin/v1/tasks/assign?from=anonymous&to=token:alice";
    assert_eq!(ask(&server, path, "token-of-alice", &Value::Null).status, 403);
    let done = std::process::Command::new(crate::SABIR)
        .args(["tasks", "assign", "--from", "anonymous", "--to", "token:alice"])
        .args(["--url", &format!("http://{}", server.address)])
        .env("SABIR_TOKEN", "token-of-ops")
        .output()
        .unwrap();
    let shown = String::from_utf8_lossy(&done.stdout).into_owned();
    assert_eq!(serde_json::from_str::<Value>(&shown).unwrap(), json!({"moved": 1, "left": 0}), "{done:?}");
    assert_eq!(told(&ask(&server, "/", "token-of-alice", &get)), Told::In);
}

#[test]
fn tokens_are_read_again_on_sighup() {
    let folder = tempfile::tempdir().unwrap();
    let starter = folder.path().join("detached");
    std::fs::write(&starter, format!("#!/bin/sh\nexec setsid '{}' \"$@\"\n", crate::SABIR)).unwrap();
    std::fs::set_permissions(&starter, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let list = |secret: &str| {
        let hash = sabir_server::Digest::of(secret.as_bytes());
        let table = format!("[[auth.token]]\nsubject = 'alice'\nhash = '{hash}'\n");
        std::fs::write(folder.path().join("sabir.toml"), table).unwrap();
    };
    list("first-token");
    let log = folder.path().join("log");
    let options = sabir_testkit::process::SabirOptions::new(starter.to_str().unwrap(), folder.path());
    let server = options.start_with(std::fs::File::create(&log).unwrap().into());
    let status = |token: &str| {
        let authorization = format!("Bearer {token}");
        server.http().exchange("GET", "/tasks", &[("Authorization", &authorization)], b"").unwrap().status
    };
    let reload = |expected: &str| {
        server.signal("HUP");
        server.until(expected, |_| std::fs::read_to_string(&log).unwrap().contains(expected).then_some(()));
    };
    assert_eq!((status("first-token"), status("second-token")), (200, 401));
    list("second-token");
    reload("tokens and API keys were reloaded");
    assert_eq!((status("first-token"), status("second-token")), (401, 200));
    std::fs::write(folder.path().join("sabir.toml"), "[[auth.token]]\nsubject = 'alice'\nhash = 'x'\n").unwrap();
    reload("the configuration has mistakes");
    assert_eq!((status("first-token"), status("second-token")), (401, 200));
}
