//! gRPC on the port of HTTP: the same tasks, events and errors as over the other bindings; streams that resume; deadlines that
//! end calls and never tasks; and bodies that no client should send.

use std::time::{Duration, Instant};

use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use sabir_testkit::grpc::{self, GrpcReply, ReadUntil, V1, V03};
use serde_json::{Value, json};

use crate::server_fixture::{ServerFixture, v1_message};

const OK: Option<u8> = Some(0);
const INVALID_ARGUMENT: Option<u8> = Some(3);
const DEADLINE_EXCEEDED: Option<u8> = Some(4);
const NOT_FOUND: Option<u8> = Some(5);
const FAILED_PRECONDITION: Option<u8> = Some(9);
const UNIMPLEMENTED: Option<u8> = Some(12);
const INTERNAL: Option<u8> = Some(13);

struct Server(ServerFixture);

impl Server {
    fn start() -> Self {
        Self(ServerFixture::with(|options| options.variable("PUSH_NOTIFICATION_ALLOWED_CIDRS", "127.0.0.0/8")))
    }

    fn call(&self, method: &str, message: Value) -> GrpcReply {
        self.with(method, &[], message)
    }

    fn with(&self, method: &str, metadata: &[(&str, &str)], message: Value) -> GrpcReply {
        let method = if method.contains('/') { method.to_owned() } else { format!("{V1}/{method}") };
        grpc::call(self.0.server.address, &method, metadata, &message)
    }

    fn read(&self, method: &str, metadata: &[(&str, &str)], message: Value, until: ReadUntil) -> GrpcReply {
        grpc::read(self.0.server.address, &format!("{V1}/{method}"), metadata, &message, until)
    }

    fn raw(&self, metadata: &[(&str, &str)], body: Vec<u8>) -> GrpcReply {
        let path = format!("/{V1}/SendMessage");
        grpc::raw(self.0.server.address, &path, metadata, body, ReadUntil::End)
    }

    fn send(&self, text: &str) -> Value {
        self.call("SendMessage", v1_message(text)).only()["task"].clone()
    }

    /// The task as HTTP+JSON shows it.
    fn task(&self, id: &str) -> Value {
        self.0.ask("GET", &format!("/tasks/{id}"), &[("A2A-Version", "1.0")], &Value::Null).json()
    }

    fn until_completed(&self, id: &str) -> Value {
        let deadline = Instant::now() + Duration::from_secs(20);
        loop {
            let task = self.task(id);
            if task["status"]["state"] == "TASK_STATE_COMPLETED" {
                return task;
            }
            assert!(Instant::now() < deadline, "{task}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

fn v03_message(text: &str) -> Value {
    json!({"request": {"messageId": "m", "role": "ROLE_USER", "content": [{"text": text}]}})
}

/// What is the same for every caller: without ids and times.
fn neutral(value: &Value) -> Value {
    const OWN: [&str; 10] = [
        "id",
        "contextId",
        "taskId",
        "messageId",
        "timestamp",
        "artifactId",
        "questionId",
        "name",
        "history",
        "metadata",
    ];
    match value {
        Value::Object(members) => {
            let kept = members.iter().filter(|(name, _)| !OWN.contains(&name.as_str()));
            kept.map(|(name, value)| (name.clone(), neutral(value))).collect()
        }
        Value::Array(list) => list.iter().map(neutral).collect(),
        // Protobuf has doubles only.
        Value::Number(number) => json!(number.as_f64()),
        other => other.clone(),
    }
}

/// The words of the demo agent that together use everything a task can hold.
const WORDS: [&str; 9] =
    ["hello", "stream 4 1", "fail no luck", "reject not mine", "ask which?", "auth who?", "file", "url", "data"];

#[test]
fn a_conversation_is_the_same_over_every_binding() {
    let server = Server::start();
    for text in WORDS {
        let rpc = server.0.rpc("/a2a/v1", "SendMessage", v1_message(text))["result"].clone();
        let rest = server.0.ask("POST", "/message:send", &[("A2A-Version", "1.0")], &v1_message(text)).json();
        let grpc = server.call("SendMessage", v1_message(text));
        assert_eq!(neutral(grpc.only()), neutral(&rpc), "{text}");
        assert_eq!(neutral(&rest), neutral(&rpc), "{text}");
        let streamed = server.0.stream("/message:stream", &[("A2A-Version", "1.0")], &v1_message(text));
        let streamed: Vec<Value> = streamed.iter().map(|frame| neutral(&frame.json())).collect();
        let grpc = server.call("SendStreamingMessage", v1_message(text));
        assert_eq!(grpc.code(), OK, "{text}");
        assert_eq!(grpc.messages.iter().map(neutral).collect::<Vec<_>>(), streamed, "{text}");
        // 0.3: HTTP+JSON is the JSON of the same protobuf.
        let mut body = json!({"message": v03_message(text)["request"], "configuration": {"blocking": true}});
        let rest = server.0.post("/v1/message:send", body.clone()).json();
        body["request"] = body["message"].take();
        body.as_object_mut().unwrap().remove("message");
        let grpc = server.with(&format!("{V03}/SendMessage"), &[], body);
        assert_eq!(neutral(grpc.only()), neutral(&rest), "{text}");
    }
}

/// Every method of both services, in the order of one task's life.
#[test]
fn every_method_is_there() {
    let server = Server::start();
    let task = server.send("ask which?");
    let id = task["id"].as_str().unwrap();
    assert_eq!(server.call("GetTask", json!({"id": id})).only()["status"]["state"], "TASK_STATE_INPUT_REQUIRED");
    let page = server.call("ListTasks", json!({"pageSize": 5}));
    assert_eq!((&page.only()["tasks"][0]["id"], &page.only()["totalSize"]), (&task["id"], &json!(1)));
    let hook = json!({"taskId": id, "id": "c", "url": "http://127.0.0.1:9/hook", "token": "secret"});
    let set = server.call("CreateTaskPushNotificationConfig", hook);
    assert_eq!(set.only(), &json!({"taskId": id, "id": "c", "url": "http://127.0.0.1:9/hook"}));
    let named = json!({"taskId": id, "id": "c"});
    assert_eq!(server.call("GetTaskPushNotificationConfig", named.clone()).only()["id"], "c");
    let all = server.call("ListTaskPushNotificationConfigs", json!({"taskId": id}));
    assert_eq!(all.only()["configs"].as_array().unwrap().len(), 1);
    assert_eq!(server.call("DeleteTaskPushNotificationConfig", named.clone()).only(), &json!({}));
    assert_eq!(server.call("GetTaskPushNotificationConfig", named).code(), NOT_FOUND);
    let watched = server.read("SubscribeToTask", &[], json!({"id": id}), ReadUntil::Messages(1));
    assert_eq!(watched.messages[0]["task"]["id"], task["id"]);
    assert_eq!(server.call("CancelTask", json!({"id": id})).only()["status"]["state"], "TASK_STATE_CANCELED");
    // Without credentials there is no extended card.
    assert_eq!(server.call("GetExtendedAgentCard", json!({})).code(), FAILED_PRECONDITION);

    let call = |method: &str, message: Value| server.with(&format!("{V03}/{method}"), &[], message);
    let mut ask = v03_message("ask which?");
    ask["configuration"] = json!({"blocking": true});
    let task = call("SendMessage", ask).only()["task"].clone();
    let name = format!("tasks/{}", task["id"].as_str().unwrap());
    assert_eq!(call("GetTask", json!({"name": name})).only()["id"], task["id"]);
    let config = json!({"name": format!("{name}/pushNotificationConfigs/c"),
        "pushNotificationConfig": {"id": "c", "url": "http://127.0.0.1:9/hook"}});
    let set = call("CreateTaskPushNotificationConfig", json!({"parent": name, "configId": "c", "config": config}));
    assert_eq!(set.only()["name"], format!("{name}/pushNotificationConfigs/c"));
    let named = json!({"name": format!("{name}/pushNotificationConfigs/c")});
    assert_eq!(call("GetTaskPushNotificationConfig", named.clone()).only()["name"], named["name"]);
    let all = call("ListTaskPushNotificationConfig", json!({"parent": name}));
    assert_eq!(all.only()["configs"].as_array().unwrap().len(), 1);
    assert_eq!(call("DeleteTaskPushNotificationConfig", named).only(), &json!({}));
    let streamed = call("SendStreamingMessage", v03_message("stream 2 1"));
    assert_eq!(streamed.messages.last().unwrap()["statusUpdate"]["final"], true);
    let watched = grpc::read(
        server.0.server.address,
        &format!("{V03}/TaskSubscription"),
        &[],
        &json!({"name": name}),
        ReadUntil::Messages(1),
    );
    assert_eq!(watched.messages[0]["task"]["id"], task["id"]);
    let canceled = call("CancelTask", json!({"name": name}));
    assert_eq!(canceled.only()["status"]["state"], "TASK_STATE_CANCELLED");
    // The only way of a client that has nothing but gRPC.
    assert_eq!(call("GetAgentCard", json!({})).only()["protocolVersion"], "0.3.0");
}

#[test]
fn errors_have_the_code_and_the_details_of_the_specification() {
    let server = Server::start();
    let done = server.send("hello");
    let id = done["id"].as_str().unwrap();
    let no_parts = json!({"message": {"messageId": "m", "role": "ROLE_USER"}});
    for (method, metadata, message, code, reason) in [
        ("GetTask", &[][..], json!({"id": "nothing"}), NOT_FOUND, "TASK_NOT_FOUND"),
        ("CancelTask", &[], json!({"id": id}), FAILED_PRECONDITION, "TASK_NOT_CANCELABLE"),
        ("SubscribeToTask", &[], json!({"id": id}), FAILED_PRECONDITION, "UNSUPPORTED_OPERATION"),
        ("GetTask", &[("a2a-version", "0.3")], json!({"id": id}), FAILED_PRECONDITION, "VERSION_NOT_SUPPORTED"),
        ("GetTask", &[("a2a-version", "7.0")], json!({"id": id}), FAILED_PRECONDITION, "VERSION_NOT_SUPPORTED"),
        ("GetTask", &[], json!({}), INVALID_ARGUMENT, "id"),
        ("SendMessage", &[], no_parts, INVALID_ARGUMENT, "message.parts"),
        ("ListTasks", &[], json!({"pageSize": 101}), INVALID_ARGUMENT, "pageSize"),
        ("SendStreamingMessage", &[("idempotency-key", "")], v1_message("hi"), INVALID_ARGUMENT, "Idempotency-Key"),
        ("SubscribeToTask", &[("last-event-id", "x")], json!({"id": id}), INVALID_ARGUMENT, "Last-Event-ID"),
        ("SendMessage", &[("grpc-timeout", "soon")], v1_message("hi"), INVALID_ARGUMENT, "grpc-timeout"),
        ("GetTask", &[], json!({"tenant": "nobody", "id": id}), NOT_FOUND, "tenant"),
    ] {
        let reply = server.with(method, metadata, message.clone());
        assert_eq!(reply.code(), code, "{method} {message}: {reply:?}");
        assert_eq!(reply.http_status, 200);
        let details = reply.details();
        let info = details.as_array().into_iter().flatten().find(|detail| detail["reason"].is_string());
        let fields: Vec<&Value> = details
            .as_array()
            .into_iter()
            .flatten()
            .flat_map(|detail| detail["fieldViolations"].as_array().into_iter().flatten())
            .map(|violation| &violation["field"])
            .collect();
        let info = info.unwrap_or_else(|| panic!("{method} {message}: {details}"));
        assert_eq!(info["domain"], "a2a-protocol.org");
        assert!(info["reason"] == reason || fields.contains(&&json!(reason)), "{method} {message}: {details}");
    }
    for (method, message, code, text) in [
        ("GetTask", json!({"name": "tasks/nothing"}), NOT_FOUND, "TaskNotFoundError: "),
        ("CancelTask", json!({"name": format!("tasks/{id}")}), FAILED_PRECONDITION, "TaskNotCancelableError: "),
        ("GetTask", json!({}), INVALID_ARGUMENT, "InvalidParamsError: "),
    ] {
        let reply = server.with(&format!("{V03}/{method}"), &[], message);
        assert_eq!(reply.code(), code, "{reply:?}");
        assert!(reply.text().starts_with(text) && reply.details().is_null(), "{reply:?}");
    }
    let unknown = grpc::raw(server.0.server.address, &format!("/{V1}/Nothing"), &[], Vec::new(), ReadUntil::End);
    assert_eq!(unknown.code(), UNIMPLEMENTED);
}

#[test]
fn a_stream_that_is_cut_resumes_without_loss() {
    let server = Server::start();
    let whole = server.call("SendStreamingMessage", v1_message("stream 20 0"));
    assert_eq!((whole.first_event_id(), whole.code()), (Some(1), OK));
    for cut in [1, 2, 7, whole.messages.len() - 1] {
        let begun = server.read("SendStreamingMessage", &[], v1_message("stream 20 10"), ReadUntil::Messages(cut));
        let id = begun.messages[0]["task"]["id"].as_str().unwrap().to_owned();
        let last = begun.first_event_id().unwrap() + cut as u64 - 1;
        let cursor = last.to_string();
        let rest = server.with("SubscribeToTask", &[("last-event-id", &cursor)], json!({"id": id}));
        assert_eq!((rest.first_event_id(), rest.code()), (Some(last + 1), OK), "cut after {cut}");
        let all: Vec<Value> = begun.messages.iter().chain(&rest.messages).map(neutral).collect();
        assert_eq!(all, whole.messages.iter().map(neutral).collect::<Vec<_>>(), "cut after {cut}");
        // What is replayed is what was live.
        let again = server.with("SubscribeToTask", &[("last-event-id", "0")], json!({"id": id}));
        assert_eq!(again.messages, [begun.messages, rest.messages].concat());
    }
}

/// The first frame of a subscription is the task; the numbers go on behind it.
#[test]
fn the_number_of_the_first_message_is_that_of_the_snapshot() {
    let server = Server::start();
    let task = server.send("ask which?");
    let id = task["id"].as_str().unwrap();
    let watched = server.read("SubscribeToTask", &[], json!({"id": id}), ReadUntil::Messages(1));
    // Created, working, asks.
    assert_eq!(watched.first_event_id(), Some(3));
    let name = json!({"name": format!("tasks/{}", server.send("hello")["id"].as_str().unwrap())});
    let ended = server.with(&format!("{V03}/TaskSubscription"), &[], name);
    // The task, and its last event once more: of 4 events the third and the fourth.
    assert_eq!((ended.messages.len(), ended.first_event_id()), (2, Some(3)));
}

#[test]
fn a_deadline_ends_the_call_and_not_the_task() {
    let server = Server::start();
    for (method, timeout) in [("SendMessage", "200m"), ("SendStreamingMessage", "200m")] {
        let mut message = v1_message("stream 5 100");
        message["message"]["contextId"] = json!(method);
        let started = Instant::now();
        let reply = server.with(method, &[("grpc-timeout", timeout)], message);
        assert_eq!(reply.code(), DEADLINE_EXCEEDED, "{reply:?}");
        assert!(started.elapsed() < Duration::from_secs(5));
        let page = server.call("ListTasks", json!({"contextId": method}));
        let id = page.only()["tasks"][0]["id"].as_str().unwrap().to_owned();
        let task = server.until_completed(&id);
        assert_eq!(task["artifacts"][0]["parts"][0]["text"], "chunk 1\nchunk 2\nchunk 3\nchunk 4\nchunk 5\n");
    }
    // A stream that never rests ends too.
    let busy = server.read("SendStreamingMessage", &[], v1_message("stream 100000000 0"), ReadUntil::Messages(1));
    let id = busy.messages[0]["task"]["id"].clone();
    let metadata = [("grpc-timeout", "300m"), ("last-event-id", "0")];
    let reply = server.with("SubscribeToTask", &metadata, json!({"id": id}));
    assert_eq!(reply.code(), DEADLINE_EXCEEDED, "{:?}", reply.trailers);
    assert_eq!(server.call("CancelTask", json!({"id": id})).code(), OK);
    // Nothing is begun for a call whose time is over.
    let reply = server.with("SendMessage", &[("grpc-timeout", "0n")], v1_message("hello"));
    assert_eq!(reply.code(), DEADLINE_EXCEEDED);
}

/// Who compresses its messages gets compressed ones, unless it says that it cannot read them.
#[test]
fn gzip_goes_both_ways() {
    let server = Server::start();
    let text = "x".repeat(5000);
    let mut message = v1_message("hello");
    message["message"]["parts"] = json!([{"text": text}]);
    let message = grpc::encode(&format!("{V1}/SendMessage"), &message);
    let packed = gzip(message);
    let length = u32::try_from(packed.len()).unwrap().to_be_bytes();
    let body = [&[1][..], &length, &packed].concat();
    for (accepts, expected) in [(None, Some("gzip")), (Some("gzip, identity"), Some("gzip")), (Some("identity"), None)]
    {
        let mut metadata = vec![("grpc-encoding", "gzip")];
        metadata.extend(accepts.map(|list| ("grpc-accept-encoding", list)));
        let reply = server.raw(&metadata, body.clone());
        let encoding = reply.headers.get("grpc-encoding").map(|value| value.to_str().unwrap());
        assert_eq!((reply.code(), encoding), (OK, expected), "{accepts:?}: {}", reply.details());
        assert_eq!(reply.compressed, usize::from(expected.is_some()), "{accepts:?}");
        assert!(reply.only().to_string().contains(&text), "{accepts:?}");
    }
    let unknown = server.raw(&[("grpc-encoding", "br")], [&[1][..], &length, &packed].concat());
    assert_eq!(unknown.code(), UNIMPLEMENTED);
    assert_eq!(unknown.headers["grpc-accept-encoding"], "identity,gzip");
}

fn gzip(bytes: Vec<u8>) -> Vec<u8> {
    use std::io::Write;
    use std::process::{Command, Stdio};
    let mut gzip =
        Command::new("gzip").arg("-c").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("gzip is there");
    let mut input = gzip.stdin.take().unwrap();
    let writing = std::thread::spawn(move || input.write_all(&bytes).unwrap());
    let packed = gzip.wait_with_output().unwrap().stdout;
    writing.join().unwrap();
    packed
}

#[test]
fn bodies_that_lie_get_a_status() {
    let server = Server::start();
    let valid = grpc::framed(&grpc::encode(&format!("{V1}/SendMessage"), &v1_message("hello")));
    let (short, long) = (valid[..valid.len() - 1].to_vec(), [&valid[..], b"x"].concat());
    let lies = |length: u32| [&[0][..], &length.to_be_bytes(), &valid[5..]].concat();
    let marked = |flag: u8| [&[flag][..], &valid[1..]].concat();
    // Messages in messages, deeper than anybody reads.
    let deep = (0..500).fold(Vec::new(), |inner: Vec<u8>, _| {
        // A ListValue in a Value, in the metadata of the request.
        let wrap = |field: u8, inner: &[u8]| {
            let mut out = vec![field << 3 | 2];
            let mut length = inner.len();
            while length > 0x7f {
                out.push((length & 0x7f) as u8 | 0x80);
                length >>= 7;
            }
            out.push(length as u8);
            [out, inner.to_vec()].concat()
        };
        wrap(6, &wrap(1, &inner))
    });
    let deep = {
        let value = deep;
        let mut message = vec![0x22];
        let mut length = value.len();
        while length > 0x7f {
            message.push((length & 0x7f) as u8 | 0x80);
            length >>= 7;
        }
        message.push(length as u8);
        grpc::framed(&[message, value].concat())
    };
    for (name, metadata, body, code) in [
        ("empty", &[][..], Vec::new(), INVALID_ARGUMENT),
        ("half a prefix", &[], vec![0, 0], INVALID_ARGUMENT),
        ("a byte too few", &[], short, INVALID_ARGUMENT),
        ("a byte too many", &[], long, INVALID_ARGUMENT),
        ("a length of 4 GiB", &[], lies(u32::MAX), INVALID_ARGUMENT),
        ("a length of nothing", &[], lies(0), INVALID_ARGUMENT),
        ("an unknown first byte", &[], marked(9), INVALID_ARGUMENT),
        ("compressed without a word", &[], marked(1), INVALID_ARGUMENT),
        ("compressed, and is not", &[("grpc-encoding", "gzip")], marked(1), INVALID_ARGUMENT),
        ("an unknown compression", &[("grpc-encoding", "zstd")], marked(1), UNIMPLEMENTED),
        ("no protobuf", &[], grpc::framed(b"\xff\xff\xff\xff"), INVALID_ARGUMENT),
        ("too deep", &[], deep, INVALID_ARGUMENT),
        ("an unknown field", &[], grpc::framed(&[&valid[5..], &[0xfa, 0x7f, 0]].concat()), OK),
    ] {
        let reply = server.raw(metadata, body);
        assert_eq!(reply.code(), code, "{name}: {reply:?}");
    }
    let other = server.raw(&[("content-type", "application/json")], valid.clone());
    assert_eq!((other.http_status, other.code()), (415, None));
    assert_eq!(server.raw(&[], valid).code(), OK);
}

/// A few bytes stand for much: what is refused costs the server no memory worth speaking of.
#[test]
fn small_bodies_that_become_large_are_refused() {
    let server = ServerFixture::with(|options| {
        options.variable("SABIR_SERVER_MEMORY", "32MiB").variable("SABIR_SERVER_BODY_LIMIT", "4MiB")
    });
    let server = Server(server);
    // A million empty parts are two megabytes on the wire, and more than a hundred in memory.
    let parts = b"\x2a\x00".repeat(1_000_000);
    // Field 2 of the request, with its length as a varint.
    let mut message = vec![0x12, 0x80, 0x89, 0x7a];
    message.extend_from_slice(&parts);
    let reply = server.raw(&[], grpc::framed(&message));
    assert_eq!(reply.code(), INVALID_ARGUMENT, "{reply:?}");
    assert!(reply.details().to_string().contains("server.memory"), "{}", reply.details());
    let bomb = gzip(vec![0; 100 << 20]);
    assert!(bomb.len() < 200_000);
    let mut body = vec![1];
    body.extend_from_slice(&u32::try_from(bomb.len()).unwrap().to_be_bytes());
    body.extend_from_slice(&bomb);
    let reply = server.raw(&[("grpc-encoding", "gzip")], body);
    assert_eq!(reply.code(), INVALID_ARGUMENT, "{:?}", reply.headers);
    assert!(reply.details().to_string().contains("larger than 4194304 bytes"), "{}", reply.details());
    // Texts count too.
    let extensions = b"\x3a\x00".repeat(1_000_000);
    let reply = server.raw(&[], grpc::framed(&[&[0x12, 0x80, 0x89, 0x7a][..], &extensions].concat()));
    assert!(reply.details().to_string().contains("server.memory"), "{}", reply.details());
    assert_eq!(server.call("SendMessage", v1_message("hello")).code(), OK);
}

/// What JSON holds and protobuf cannot: marked in streams and lists, an error that names it on get, whole elsewhere.
#[test]
fn what_protobuf_cannot_hold_is_never_changed_silently() {
    let server = Server::start();
    let body = r#"{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"data":{"id":12345678901234567}}]}}"#;
    let made = server.0.server.http();
    let mut made = made;
    let made = made.exchange("POST", "/message:send", &[("A2A-Version", "1.0")], body.as_bytes()).unwrap();
    let id = made.json()["task"]["id"].as_str().unwrap().to_owned();
    assert!(made.text().contains("12345678901234567"));
    let reply = server.call("GetTask", json!({"id": id}));
    assert_eq!(reply.code(), INTERNAL, "{reply:?}");
    let told = reply.details().to_string();
    assert!(told.contains("parts[0].data.id") && told.contains("UNREPRESENTABLE"), "{told}");
    let replayed = server.with("SubscribeToTask", &[("last-event-id", "0")], json!({"id": id}));
    assert_eq!(replayed.code(), OK);
    assert!(replayed.messages[0].to_string().contains("sabir:unrepresentable"), "{}", replayed.messages[0]);
    let page = server.call("ListTasks", json!({"includeArtifacts": true, "historyLength": 10}));
    assert!(page.only().to_string().contains("sabir:unrepresentable"), "{page:?}");
}

#[test]
fn health_and_reflection_are_there() {
    let server = Server::start();
    for (service, expected) in [("", OK), (V1, OK), (V03, OK), ("other", NOT_FOUND)] {
        let reply = server.with("grpc.health.v1.Health/Check", &[], json!({"service": service}));
        assert_eq!(reply.code(), expected, "{service}");
        assert!(expected != OK || reply.only()["status"] == "SERVING", "{reply:?}");
    }
    let listed = server.with("grpc.health.v1.Health/List", &[], json!({}));
    assert_eq!(listed.only()["statuses"][V1]["status"], "SERVING");
    let address = server.0.server.address;
    let watched = grpc::read(address, "grpc.health.v1.Health/Watch", &[], &json!({}), ReadUntil::Messages(1));
    assert_eq!(watched.messages[0]["status"], "SERVING");
    for version in ["v1", "v1alpha"] {
        let method = format!("grpc.reflection.{version}.ServerReflection/ServerReflectionInfo");
        let reply = server.with(&method, &[], json!({"listServices": ""}));
        assert!(reply.only().to_string().contains(V1), "{reply:?}");
    }
}

/// A browser has no trailers, and often no HTTP/2.
#[test]
fn grpc_web_has_its_trailers_in_the_body() {
    let server = Server::start();
    let ask = |method: &str, message: &Value| {
        let body = grpc::framed(&grpc::encode(&format!("{V1}/{method}"), message));
        let headers = [("Content-Type", "application/grpc-web+proto")];
        server.0.server.http().exchange("POST", &format!("/{V1}/{method}"), &headers, &body).unwrap()
    };
    for (method, message, expected) in [
        ("SendMessage", v1_message("hello"), "grpc-status: 0\r\n"),
        ("SendStreamingMessage", v1_message("stream 3 0"), "grpc-status: 0\r\n"),
    ] {
        let reply = ask(method, &message);
        assert_eq!(reply.header("content-type"), Some("application/grpc-web+proto"));
        let trailers = reply.body.windows(5).position(|bytes| bytes[0] == 0x80 && bytes[1..4] == [0, 0, 0]).unwrap();
        assert_eq!(&reply.body[trailers + 5..], expected.as_bytes());
    }
    let missing = ask("GetTask", &json!({"id": "nothing"}));
    assert_eq!((missing.status, missing.header("grpc-status")), (200, Some("5")));
    let plain = [("Content-Type", "application/grpc")];
    let reply = server.0.server.http().exchange("POST", &format!("/{V1}/GetTask"), &plain, b"").unwrap();
    assert_eq!(reply.status, 415, "{}", reply.text());
}

#[test]
fn any_message_gets_a_status_and_the_server_lives() {
    let server = Server(ServerFixture::with(|options| options.variable("SABIR_SEND_MAX_WAIT", "1s")));
    let valid = grpc::encode(&format!("{V1}/SendMessage"), &v1_message("hello"));
    let methods = ["SendMessage", "GetTask", "ListTasks", "CancelTask", "CreateTaskPushNotificationConfig"];
    let cases =
        (0..methods.len(), prop::collection::vec(any::<u8>(), 0..64), any::<prop::sample::Index>(), any::<bool>());
    let config = ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() };
    let result = TestRunner::new(config).run(&cases, |(method, noise, place, mutated)| {
        let message = match mutated {
            true => {
                let at = place.index(valid.len());
                [&valid[..at], &noise, &valid[at..]].concat()
            }
            false => noise,
        };
        let path = format!("/{V1}/{}", methods[method]);
        let reply = grpc::raw(server.0.server.address, &path, &[], grpc::framed(&message), ReadUntil::End);
        let code = reply.code();
        prop_assert!(code.is_some_and(|code| code != 13 && code != 2), "{path}: {reply:?}");
        Ok(())
    });
    result.unwrap();
    assert_eq!(server.call("SendMessage", v1_message("hello")).code(), OK);
}

/// Who is refused before its body is read is told so in its own format, and who does not speak gRPC at all in that of HTTP.
#[test]
fn refusals_before_the_body_have_the_type_of_their_client() {
    let server = ServerFixture::configured("[auth]\ntokens = ['alice:token-of-alice']\n");
    let path = format!("/{V1}/GetTask");
    for (content_type, status, answered, code) in [
        ("application/grpc-web+proto", 200, "application/grpc-web+proto", Some("16")),
        ("application/json", 415, "text/plain; charset=utf-8", None),
        ("application/grpc", 415, "text/plain; charset=utf-8", None),
    ] {
        let headers = [("Content-Type", content_type)];
        let reply = server.server.http().exchange("POST", &path, &headers, b"\0\0\0\0\0").unwrap();
        assert_eq!((reply.status, reply.header("content-type")), (status, Some(answered)), "{content_type}");
        assert_eq!(reply.header("grpc-status"), code, "{content_type}");
    }
    let reply = grpc::call(server.server.address, &format!("{V1}/GetTask"), &[], &json!({"id": "x"}));
    assert_eq!((reply.http_status, reply.code()), (200, Some(16)));
}
