//! Traces of the real program, as a real collector gets them: spans of calls in every version and binding, of runs and of
//! tools, and what is handed on to programs, remote agents and webhooks.

use std::collections::BTreeSet;
use std::fs;
use std::net::TcpListener;
use std::process::Stdio;
use std::time::{Duration, Instant};

use sabir_testkit::grpc::{self, V1, V03};
use sabir_testkit::process::{SabirOptions, SabirProcess};
use sabir_testkit::remote::{Operation, RemoteAgent, RemoteProtocol};
use serde_json::{Value, json};

use crate::SABIR;
use crate::program_fixture::{ProgramFixture, message, send, wait_for};
use crate::server_fixture::{ServerFixture, v1_message, v03_message};
use crate::trace_collector::{CollectedSpan, TraceCollector};
use crate::webhook_receiver::WebhookReceiver;

const V1_HEADER: (&str, &str) = ("A2A-Version", "1.0");
const LIMIT: Duration = Duration::from_secs(60);

/// The trace of a caller, and its header.
struct CallersTrace {
    id: String,
    header: String,
}

const CALLERS_SPAN: &str = "b7ad6b7169203331";

impl CallersTrace {
    /// Flags `01`: the caller records it.
    fn new(number: usize) -> Self {
        Self::with_flags(number, "01")
    }

    fn with_flags(number: usize, flags: &str) -> Self {
        let id = format!("0af7651916cd43dd8448eb211c{number:06x}");
        Self { header: format!("00-{id}-{CALLERS_SPAN}-{flags}"), id }
    }
}

fn traced() -> (TraceCollector, ServerFixture) {
    let collector = TraceCollector::start();
    let fixture = ServerFixture::with(|options| collector.of_server(options));
    (collector, fixture)
}

fn named<'a>(spans: &'a [CollectedSpan], name: &str) -> &'a CollectedSpan {
    let found: Vec<_> = spans.iter().filter(|span| span.name == name).collect();
    assert_eq!(found.len(), 1, "{name} in {spans:#?}");
    found[0]
}

/// Sends a 1.0 message over JSON-RPC within a trace, and returns the task.
fn send_within(server: &SabirProcess, trace: &CallersTrace, params: Value) -> Value {
    let body = json!({"jsonrpc": "2.0", "id": "r", "method": "SendMessage", "params": params});
    let headers = [V1_HEADER, ("traceparent", trace.header.as_str())];
    let reply = server.http().exchange("POST", "/", &headers, body.to_string().as_bytes()).expect("it answers");
    let task = reply.json()["result"]["task"].clone();
    assert!(task.is_object(), "{}", reply.text());
    task
}

#[test]
fn a_send_in_every_version_and_binding_is_one_call_and_one_run() {
    let (collector, fixture) = traced();
    let server = &fixture.server;
    let post = |path: &str, headers: &[(&str, &str)], body: Value| {
        let reply = server.http().exchange("POST", path, headers, body.to_string().as_bytes()).expect("it answers");
        assert!(reply.status < 300, "{}", reply.text());
    };
    let rpc = |headers: &[(&str, &str)], method: &str, params: Value| {
        post("/", headers, json!({"jsonrpc": "2.0", "id": "r", "method": method, "params": params}));
    };
    let v01 = || json!({"id": "t", "message": {"role": "user", "parts": [{"type": "text", "text": "hello"}]}});
    let v03_grpc = || json!({"request": {"messageId": "g", "role": "ROLE_USER", "content": [{"text": "hello"}]}, "configuration": {"blocking": true}});
    let v03_rest = || json!({"message": {"messageId": "h", "role": "ROLE_USER", "content": [{"text": "hello"}]}, "configuration": {"blocking": true}});
    type SendOne<'a> = Box<dyn Fn(&str) + 'a>;
    let rows: Vec<(&str, &str, SendOne<'_>)> = vec![
        (
            "JSONRPC",
            "1.0",
            Box::new(|trace| rpc(&[V1_HEADER, ("traceparent", trace)], "SendMessage", v1_message("hello"))),
        ),
        ("JSONRPC", "0.3", Box::new(|trace| rpc(&[("traceparent", trace)], "message/send", v03_message("hello")))),
        (
            "JSONRPC",
            "0.2",
            Box::new(|trace| {
                rpc(&[("A2A-Version", "0.2"), ("traceparent", trace)], "message/send", v03_message("hello"))
            }),
        ),
        ("JSONRPC", "0.1", Box::new(|trace| rpc(&[("traceparent", trace)], "tasks/send", v01()))),
        (
            "HTTP+JSON",
            "1.0",
            Box::new(|trace| post("/message:send", &[V1_HEADER, ("traceparent", trace)], v1_message("hello"))),
        ),
        ("HTTP+JSON", "0.3", Box::new(|trace| post("/v1/message:send", &[("traceparent", trace)], v03_rest()))),
        (
            "GRPC",
            "1.0",
            Box::new(|trace| {
                grpc::call(
                    server.address,
                    &format!("{V1}/SendMessage"),
                    &[("traceparent", trace)],
                    &v1_message("hello"),
                )
                .only();
            }),
        ),
        (
            "GRPC",
            "0.3",
            Box::new(|trace| {
                grpc::call(server.address, &format!("{V03}/SendMessage"), &[("traceparent", trace)], &v03_grpc())
                    .only();
            }),
        ),
        (
            "GATEWAY",
            "",
            Box::new(|trace| {
                post("/v1/a2a/agents/demo/message:send", &[("traceparent", trace)], json!({"input": "hello"}))
            }),
        ),
    ];
    for (number, (binding, version, send_one)) in rows.iter().enumerate() {
        let trace = CallersTrace::new(number);
        send_one(&trace.header);
        let spans = collector.trace(&trace.id, 2);
        let (call, run) = (named(&spans, "SendMessage"), named(&spans, "invoke_agent demo"));
        let row = format!("{binding} {version}: {spans:#?}");
        assert_eq!(spans.len(), 2, "{row}");
        assert_eq!((call.kind, call.parent.as_str(), run.kind), ("SERVER", CALLERS_SPAN, "INTERNAL"), "{row}");
        assert_eq!((call.of("a2a.method.name"), call.of("a2a.protocol.version")), ("SendMessage", *version), "{row}");
        assert_eq!(call.of("a2a.binding"), *binding, "{row}");
        assert_eq!((&call.error, &run.error), (&None, &None), "{row}");
        // The run belongs to the call and links to it; both tell of the same task.
        assert_eq!((run.parent.clone(), &run.links), (call.id.clone(), &vec![call.ids()]), "{row}");
        for name in ["a2a.task.id", "gen_ai.conversation.id", "gen_ai.agent.name"] {
            assert_eq!(call.of(name), run.of(name), "{name} in {row}");
            assert!(!call.of(name).is_empty(), "{name} in {row}");
        }
        assert_eq!(run.of("gen_ai.agent.name"), "demo", "{row}");
        assert_eq!(run.of("gen_ai.operation.name"), "invoke_agent", "{row}");
        assert_eq!(run.of("a2a.task.state"), "TASK_STATE_COMPLETED", "{row}");
        // The gateway answers at once.
        let state = if *binding == "GATEWAY" { call.of("a2a.task.state") } else { "TASK_STATE_COMPLETED" };
        assert_eq!(call.of("a2a.task.state"), state, "{row}");
        assert!(!call.of("a2a.task.state").is_empty(), "{row}");
        // 0.1 and the gateway have no ids for messages: the server gives them one.
        let message = call.of("a2a.message.id");
        assert!(message == run.of("a2a.message.id") || message.is_empty() && ["0.1", ""].contains(version), "{row}");
        assert_eq!(call.of("a2a.tenant"), if *binding == "GATEWAY" { "demo" } else { "" }, "{row}");
    }
}

#[test]
fn each_operation_has_the_name_of_1_0() {
    let collector = TraceCollector::start();
    let fixture = ServerFixture::with(|options| {
        collector.of_server(options).variable("PUSH_NOTIFICATION_ALLOWED_CIDRS", "127.0.0.0/8")
    });
    let task = fixture.ask("POST", "/message:send", &[V1_HEADER], &v1_message("ask which?")).json()["task"].clone();
    let id = task["id"].as_str().unwrap();
    let config = json!({"id": "c", "taskId": id, "url": "http://127.0.0.1:9/"});
    let v03_config = json!({"taskId": id, "pushNotificationConfig": {"id": "c", "url": "http://127.0.0.1:9/"}});
    let rows = [
        ("GetTask", "tasks/get", json!({"id": id}), json!({"id": id})),
        ("ListTasks", "", json!({}), json!({})),
        ("CreateTaskPushNotificationConfig", "tasks/pushNotificationConfig/set", config, v03_config),
        (
            "GetTaskPushNotificationConfig",
            "tasks/pushNotificationConfig/get",
            json!({"taskId": id, "id": "c"}),
            json!({"id": id, "pushNotificationConfigId": "c"}),
        ),
        (
            "ListTaskPushNotificationConfigs",
            "tasks/pushNotificationConfig/list",
            json!({"taskId": id}),
            json!({"id": id}),
        ),
        (
            "DeleteTaskPushNotificationConfig",
            "tasks/pushNotificationConfig/delete",
            json!({"taskId": id, "id": "c"}),
            json!({"id": id, "pushNotificationConfigId": "c"}),
        ),
        ("GetExtendedAgentCard", "agent/getAuthenticatedExtendedCard", json!({}), json!({})),
        ("CancelTask", "tasks/cancel", json!({"id": id}), json!({"id": id})),
    ];
    let mut number = 100;
    for (name, v03_name, v1_params, v03_params) in rows {
        for (version, method, params) in [("1.0", name, v1_params), ("0.3", v03_name, v03_params)] {
            if method.is_empty() {
                continue;
            }
            number += 1;
            let trace = CallersTrace::new(number);
            let body = json!({"jsonrpc": "2.0", "id": "r", "method": method, "params": params});
            fixture.ask("POST", "/", &[("A2A-Version", version), ("traceparent", &trace.header)], &body);
            let spans = collector.trace(&trace.id, 1);
            let call = named(&spans, name);
            assert_eq!((call.of("a2a.method.name"), call.of("a2a.protocol.version")), (name, version), "{call:?}");
            let names_task = !["ListTasks", "GetExtendedAgentCard"].contains(&name);
            assert_eq!(call.of("a2a.task.id"), if names_task { id } else { "" }, "{call:?}");
        }
    }
}

#[test]
fn the_span_of_a_stream_ends_with_the_stream() {
    let (collector, fixture) = traced();
    let trace = CallersTrace::new(1);
    let headers = [V1_HEADER, ("traceparent", trace.header.as_str()), ("tracestate", "vendor=1")];
    let mut events = fixture.open("/message:stream", &headers, &v1_message("stream 100000 100"));
    let first = events.next_frame().unwrap().unwrap().payload();
    let id = first["task"]["id"].as_str().unwrap().to_owned();
    let watching = CallersTrace::new(2);
    let path = format!("/tasks/{id}:subscribe");
    let mut watched = fixture.open(&path, &[V1_HEADER, ("traceparent", &watching.header)], &json!({}));
    // Three pauses of 100 ms are before the fourth piece.
    while !events.next_frame().unwrap().unwrap().data.contains("chunk 4") {}
    fixture.ask("POST", &format!("/tasks/{id}:cancel"), &[V1_HEADER], &json!({}));
    events.rest().unwrap();
    watched.rest().unwrap();
    let spans = collector.trace(&trace.id, 2);
    let (call, run) = (named(&spans, "SendStreamingMessage"), named(&spans, "invoke_agent demo"));
    assert_eq!((call.of("a2a.task.id"), call.of("a2a.task.state")), (id.as_str(), "TASK_STATE_CANCELED"));
    assert_eq!((call.state.as_str(), run.state.as_str()), ("vendor=1", "vendor=1"));
    assert!(call.nanoseconds >= 300_000_000 && call.nanoseconds >= run.nanoseconds / 2, "{call:?}");
    let watcher = &collector.trace(&watching.id, 1)[0];
    assert_eq!((watcher.name.as_str(), watcher.of("a2a.task.state")), ("SubscribeToTask", "TASK_STATE_CANCELED"));
    // A reader that leaves ends its call, and nothing else.
    let leaving = CallersTrace::new(3);
    let mut events =
        fixture.open("/message:stream", &[V1_HEADER, ("traceparent", &leaving.header)], &v1_message("stream 99999 50"));
    let task = events.next_frame().unwrap().unwrap().payload()["task"]["id"].as_str().unwrap().to_owned();
    events.next_frame().unwrap();
    drop(events);
    let call = collector.trace(&leaving.id, 1).remove(0);
    assert_eq!((call.name.as_str(), call.of("a2a.task.state")), ("SendStreamingMessage", "TASK_STATE_WORKING"));
    fixture.ask("POST", &format!("/tasks/{task}:cancel"), &[V1_HEADER], &json!({}));
    let spans = collector.trace(&leaving.id, 2);
    assert_eq!(named(&spans, "invoke_agent demo").of("a2a.task.state"), "TASK_STATE_CANCELED");
}

#[test]
fn tools_are_below_their_run_and_tokens_are_counted() {
    let (collector, fixture) = traced();
    let (first, second) = (CallersTrace::new(1), CallersTrace::new(2));
    send_within(&fixture.server, &first, v1_message("tool grep"));
    let spans = collector.trace(&first.id, 3);
    let (run, tool) = (named(&spans, "invoke_agent demo"), named(&spans, "execute_tool grep"));
    assert_eq!((tool.parent.as_str(), tool.kind), (run.id.as_str(), "INTERNAL"));
    assert_eq!((tool.of("gen_ai.operation.name"), tool.of("gen_ai.tool.name")), ("execute_tool", "grep"));
    assert!(!tool.of("gen_ai.tool.call.id").is_empty() && tool.error.is_none(), "{tool:?}");
    send_within(&fixture.server, &second, v1_message("usage 1200 34"));
    let spans = collector.trace(&second.id, 2);
    let run = named(&spans, "invoke_agent demo");
    assert_eq!((run.of("gen_ai.usage.input_tokens"), run.of("gen_ai.usage.output_tokens")), ("1200", "34"));
}

#[test]
fn what_fails_says_so_and_repeats_nothing_that_was_said() {
    let collector = TraceCollector::start();
    let fixture = ServerFixture::with(|options| {
        let toml = "[[agent]]\nid = \"demo\"\nkind = \"demo\"\n\
                    [[agent]]\nid = \"hasty\"\nkind = \"demo\"\ntimeout = \"200ms\"\n";
        fs::write(options.folder.join("sabir.toml"), toml).unwrap();
        collector.of_server(options)
    });
    for (number, (agent, text, state, kind)) in [
        ("demo", "fail the secret reason", "TASK_STATE_FAILED", "agent_failed"),
        ("demo", "reject the secret reason", "TASK_STATE_REJECTED", ""),
        ("hasty", "slow 600", "TASK_STATE_FAILED", "timeout"),
    ]
    .into_iter()
    .enumerate()
    {
        let trace = CallersTrace::new(number);
        let headers = [V1_HEADER, ("traceparent", trace.header.as_str())];
        let reply = fixture.ask("POST", &format!("/agents/{agent}/message:send"), &headers, &v1_message(text));
        assert_eq!(reply.status, 200, "{}", reply.text());
        let spans = collector.trace(&trace.id, 2);
        let (call, run) = (named(&spans, "SendMessage"), named(&spans, &format!("invoke_agent {agent}")));
        assert_eq!((run.of("a2a.task.state"), run.of("error.type")), (state, kind), "{run:?}");
        assert_eq!(run.error.is_some(), !kind.is_empty(), "{run:?}");
        // The call was answered: only the task has failed.
        assert_eq!((call.of("a2a.task.state"), &call.error), (state, &None), "{call:?}");
    }
    let rpc = |method: &str, params: Value| {
        json!({"jsonrpc": "2.0", "id": "r", "method": method, "params": params}).to_string()
    };
    for (number, (body, name, kind, status)) in [
        (rpc("GetTask", json!({"id": "secret"})), "GetTask", "task_not_found", "200"),
        (rpc("SendMessage", json!({"message": {"secret": 1}})), "SendMessage", "invalid_parameters", "200"),
        (rpc("secret", json!({})), "POST", "method_not_found", "200"),
        ("{secret".to_owned(), "POST", "not_JSON", "200"),
    ]
    .into_iter()
    .enumerate()
    {
        let trace = CallersTrace::new(100 + number);
        let headers = [V1_HEADER, ("traceparent", trace.header.as_str())];
        fixture.server.http().exchange("POST", "/", &headers, body.as_bytes()).expect("it answers");
        let call = collector.trace(&trace.id, 1).remove(0);
        assert_eq!((call.name.as_str(), call.of("error.type")), (name, kind), "{call:?}");
        assert_eq!(call.of("http.response.status_code"), status, "{call:?}");
        assert!(call.error.is_some(), "{call:?}");
    }
    let told = format!("{:?}", collector.spans().into_iter().map(|span| span.error).collect::<BTreeSet<_>>());
    assert!(!told.contains("secret"), "{told}");
}

#[test]
fn a_refused_caller_is_a_failed_call() {
    let collector = TraceCollector::start();
    let fixture =
        ServerFixture::with(|options| collector.of_server(options).variable("SABIR_AUTH_TOKENS", "alice:right"));
    for (number, path) in ["/message:send", "/a2a/jsonrpc"].into_iter().enumerate() {
        let trace = CallersTrace::new(number);
        let reply = fixture.ask("POST", path, &[V1_HEADER, ("traceparent", &trace.header)], &v1_message("hello"));
        assert_eq!(reply.status, 401, "{}", reply.text());
        let call = collector.trace(&trace.id, 1).remove(0);
        let name = if path == "/message:send" { "SendMessage" } else { "POST" };
        assert_eq!((call.name.as_str(), call.of("error.type")), (name, "unauthenticated"));
        assert_eq!(call.of("http.response.status_code"), "401");
    }
}

#[test]
fn a_question_and_its_answer_are_two_calls() {
    let (collector, fixture) = traced();
    let (asking, answering) = (CallersTrace::new(1), CallersTrace::new(2));
    let task = send_within(&fixture.server, &asking, v1_message("ask which?"));
    let mut answer = v1_message("blue");
    answer["message"]["taskId"] = task["id"].clone();
    send_within(&fixture.server, &answering, answer);
    for (trace, state) in [(&asking, "TASK_STATE_INPUT_REQUIRED"), (&answering, "TASK_STATE_COMPLETED")] {
        let spans = collector.trace(&trace.id, 2);
        let (call, run) = (named(&spans, "SendMessage"), named(&spans, "invoke_agent demo"));
        assert_eq!(run.links, [call.ids()]);
        assert_eq!((run.of("a2a.task.state"), call.of("a2a.task.state")), (state, state));
        assert_eq!(run.of("a2a.task.id"), task["id"].as_str().unwrap());
    }
}

#[test]
fn a_run_links_to_the_call_that_answered_its_question() {
    let collector = TraceCollector::start();
    let program = ProgramFixture::new(
        "echo 'Go on? [Y/n]'\nread -r answer\necho \"{\\\"type\\\":\\\"result\\\",\\\"summary\\\":\\\"$answer\\\"}\"\n",
    );
    let options = program.options(&program.agent("prog", "generic", "approve = \"ask\""));
    let server = collector.of_server(options).start();
    let (asking, answering) = (CallersTrace::new(1), CallersTrace::new(2));
    let task = send_within(&server, &asking, message("x"));
    assert_eq!(task["status"]["state"], "TASK_STATE_INPUT_REQUIRED", "{task}");
    let mut answer = message("yes");
    answer["message"]["taskId"] = task["id"].clone();
    let task = send_within(&server, &answering, answer);
    assert_eq!(task["status"]["state"], "TASK_STATE_COMPLETED", "{task}");
    let spans = collector.trace(&asking.id, 2);
    let (call, run) = (named(&spans, "SendMessage"), named(&spans, "invoke_agent prog"));
    let answered = collector.trace(&answering.id, 1).remove(0);
    assert_eq!(run.links, [call.ids(), answered.ids()]);
    assert_eq!(run.of("a2a.task.state"), "TASK_STATE_COMPLETED");
}

#[test]
fn a_run_after_kill_9_links_to_the_first_call() {
    let collector = TraceCollector::start();
    // Its first run does not end by itself, the second does.
    let program = ProgramFixture::new(
        "test -e ../began && exec echo '{\"type\":\"result\",\"summary\":\"ok\"}'\ntouch ../began\nexec sleep 600\n",
    );
    let toml = format!("[recovery]\nrunning = \"requeue\"\n{}", program.agent("prog", "generic", ""));
    let options = collector.of_server(program.options(&toml));
    let server = options.start();
    let trace = CallersTrace::new(1);
    let mut params = message("x");
    params["configuration"] = json!({"returnImmediately": true});
    let task = send_within(&server, &trace, params);
    let call = collector.trace(&trace.id, 1).remove(0);
    let id = task["id"].as_str().unwrap();
    let state_of =
        |server: &SabirProcess| server.rpc("GetTask", json!({"id": id}))["result"]["status"]["state"].clone();
    let began = program.path("began");
    server.until("work", |server| (began.exists() && state_of(server) == "TASK_STATE_WORKING").then_some(()));
    server.kill();
    let server = options.start();
    server.until("the end", |server| (state_of(server) == "TASK_STATE_COMPLETED").then_some(()));
    let spans = collector.trace(&trace.id, 2);
    let run = named(&spans, "invoke_agent prog");
    assert_eq!((call.name.as_str(), &run.links, &run.parent), ("SendMessage", &vec![call.ids()], &call.id));
    assert_eq!((run.of("sabir.run.resumed"), run.of("a2a.task.state")), ("true", "TASK_STATE_COMPLETED"));
    assert_eq!(run.of("a2a.task.id"), id);
}

/// Prints what it is told of the turn.
const TELLS_ENVIRONMENT: &str = "echo \"{\\\"type\\\":\\\"result\\\",\\\"summary\\\":\\\"$TRACEPARENT $TRACESTATE $SABIR_TASK_ID $SABIR_CONTEXT_ID\\\"}\"\n";

fn summary(task: &Value) -> String {
    let artifacts = task["artifacts"].as_array().unwrap_or_else(|| panic!("{task}"));
    let found = artifacts.iter().find_map(|artifact| artifact["parts"][0]["data"]["summary"].as_str());
    found.unwrap_or_else(|| panic!("{task}")).to_owned()
}

#[test]
fn programs_get_the_trace_and_the_ids() {
    let program = ProgramFixture::new(TELLS_ENVIRONMENT);
    let toml = program.agent("prog", "generic", "");
    let ids = |task: &Value| format!("{} {}", task["id"].as_str().unwrap(), task["contextId"].as_str().unwrap());
    // Without a collector it is the caller's own.
    let server = program.options(&toml).start();
    let trace = CallersTrace::new(1);
    let task = send_within(&server, &trace, message("x"));
    assert_eq!(summary(&task), format!("{}  {}", trace.header, ids(&task)));
    let task = send(&server, message("x"));
    assert_eq!(summary(&task), format!("  {}", ids(&task)));
    server.kill();
    // With one it is the run's.
    let collector = TraceCollector::start();
    let server = collector.of_server(program.options(&toml)).start();
    let trace = CallersTrace::new(2);
    let task = send_within(&server, &trace, message("x"));
    let spans = collector.trace(&trace.id, 2);
    let run = named(&spans, "invoke_agent prog");
    assert_eq!(summary(&task), format!("00-{}-{}-01  {}", run.trace, run.id, ids(&task)));
    let task = send(&server, message("x"));
    let run = collector.when("a trace that begins here", |spans| {
        spans.into_iter().find(|span| span.name == "invoke_agent prog" && span.trace != trace.id)
    });
    assert_eq!(summary(&task), format!("00-{}-{}-01  {}", run.trace, run.id, ids(&task)));
}

#[test]
fn a_trace_that_its_caller_does_not_record_is_handed_on_and_not_exported() {
    let collector = TraceCollector::start();
    let program = ProgramFixture::new(TELLS_ENVIRONMENT);
    let server = collector.of_server(program.options(&program.agent("prog", "generic", ""))).start();
    let (quiet, recorded) = (CallersTrace::with_flags(1, "00"), CallersTrace::new(2));
    let told = summary(&send_within(&server, &quiet, message("x")));
    assert!(told.starts_with(&format!("00-{}-", quiet.id)) && told.contains("-00 "), "{told}");
    assert!(!told.contains(CALLERS_SPAN), "{told}");
    send_within(&server, &recorded, message("x"));
    collector.trace(&recorded.id, 2);
    assert!(collector.spans().iter().all(|span| span.trace == recorded.id), "{:#?}", collector.spans());
}

#[test]
fn a_malformed_traceparent_begins_a_new_trace() {
    let (collector, fixture) = traced();
    for (count, header) in
        ["00-1-2-3", "", "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"].into_iter().enumerate()
    {
        let reply = fixture.ask("POST", "/message:send", &[V1_HEADER, ("traceparent", header)], &v1_message("hello"));
        assert_eq!(reply.status, 200, "{}", reply.text());
        let calls = collector.when("the call", |spans| {
            let calls: Vec<_> = spans.into_iter().filter(|span| span.kind == "SERVER").collect();
            (calls.len() > count).then_some(calls)
        });
        let call = calls.last().unwrap();
        assert_eq!((call.parent.as_str(), call.trace.len()), ("", 32), "{header:?}: {call:?}");
        let traces: BTreeSet<&str> = calls.iter().map(|call| call.trace.as_str()).collect();
        assert_eq!(traces.len(), count + 1, "each has a trace of its own");
    }
}

#[test]
fn the_sampler_decides_where_no_caller_does() {
    for (sampler, argument, expected) in
        [("always_off", "", false), ("traceidratio", "0", false), ("traceidratio", "1", true)]
    {
        let collector = TraceCollector::start();
        let mut fixture = ServerFixture::with(|options| {
            collector
                .of_server(options)
                .variable("OTEL_TRACES_SAMPLER", sampler)
                .variable("OTEL_TRACES_SAMPLER_ARG", argument)
        });
        send(&fixture.server, message("hello"));
        if expected {
            // Before the stop, which gives the last spans no more than two seconds.
            collector.span("SendMessage");
        }
        fixture.server.terminate();
        assert_eq!(fixture.server.wait(LIMIT).code(), Some(0));
        assert_eq!(!collector.spans().is_empty(), expected, "{sampler} {argument}");
    }
}

#[test]
fn resource_headers_and_address_are_those_of_the_environment() {
    let collector = TraceCollector::start();
    let fixture = ServerFixture::with(|options| {
        options
            .variable(
                "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
                &format!("http://localhost:{}/here", collector.address.port()),
            )
            .variable("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20t,x-team=red")
            .variable("OTEL_SERVICE_NAME", "harbour")
            .variable("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test")
            .variable("OTEL_BSP_SCHEDULE_DELAY", "20")
    });
    send(&fixture.server, message("hello"));
    collector.span("SendMessage");
    let export = collector.exports().remove(0);
    assert_eq!(export.line, "POST /here HTTP/1.1");
    let header = |name: &str| export.headers.get(name).map_or("", String::as_str);
    assert_eq!(header("content-type"), "application/x-protobuf");
    assert_eq!((header("authorization"), header("x-team")), ("Bearer t", "red"));
    let of = |name: &str| export.resource.get(name).map_or("", String::as_str);
    assert_eq!((of("service.name"), of("deployment.environment.name")), ("harbour", "test"));
    assert_eq!(of("service.version"), env!("CARGO_PKG_VERSION"));
}

#[test]
fn a_stop_sends_what_is_left() {
    let expected = BTreeSet::from(["SendMessage".to_owned(), "invoke_agent demo".to_owned()]);
    for attempt in 1.. {
        let collector = TraceCollector::start();
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        let options = collector.of_server(SabirOptions::new(SABIR, folder.path()));
        // Much later than this test takes.
        let options = options.variable("OTEL_BSP_SCHEDULE_DELAY", "600000");
        let mut server = options.start_with(Stdio::from(fs::File::create(&log).unwrap()));
        send(&server, message("hello"));
        assert_eq!(collector.spans().len(), 0);
        server.terminate();
        assert_eq!(server.wait(LIMIT).code(), Some(0));
        let names: BTreeSet<String> = collector.spans().into_iter().map(|span| span.name).collect();
        if names == expected {
            return;
        }
        // The last spans have two seconds. On a busy machine these may pass, and then the server says so.
        let log = fs::read_to_string(&log).unwrap();
        assert!(attempt < 5 && log.contains("the collector did not take the last spans"), "{names:?}\n{log}");
    }
}

#[test]
fn a_collector_that_is_away_or_hangs_costs_spans_and_nothing_else() {
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let hanging = TraceCollector::start();
    hanging.answer(0);
    let lost = "the collector takes no spans";
    // One that is away is given up at once. While one hangs, calls are answered and fill the queue.
    for (address, what, logged) in
        [(closed, "away", vec![lost]), (hanging.address, "hanging", vec![lost, "spans were dropped"])]
    {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        // In memory, so that sends do not wait for the disk either.
        let options = SabirOptions { store: "memory:".to_owned(), ..SabirOptions::new(SABIR, folder.path()) }
            .variable("OTEL_EXPORTER_OTLP_ENDPOINT", &format!("http://{address}"))
            .variable("OTEL_BSP_SCHEDULE_DELAY", "10")
            .variable("OTEL_BSP_EXPORT_TIMEOUT", "5000")
            .variable("OTEL_EXPORTER_OTLP_TIMEOUT", "5000")
            .variable("OTEL_BSP_MAX_QUEUE_SIZE", "8");
        let mut server = options.start_with(Stdio::from(fs::File::create(&log).unwrap()));
        // If each call waited for the export of its spans, the queue would never be full.
        let (began, mut sends) = (Instant::now(), 0);
        let text = || fs::read_to_string(&log).unwrap();
        while !logged.iter().all(|line| text().contains(line)) {
            assert!(began.elapsed() < LIMIT, "{what}: {sends} sends\n{}", text());
            assert_eq!(send(&server, message("hello"))["status"]["state"], "TASK_STATE_COMPLETED");
            sends += 1;
        }
        server.terminate();
        assert_eq!(server.wait(LIMIT).code(), Some(0), "{what}");
    }
}

#[test]
fn the_log_names_the_collector_without_its_secrets() {
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    for (endpoint, logged) in [
        (format!("http://user:geheim@{closed}/v1/traces"), vec!["no traces are sent", "must not contain a user name"]),
        (format!("user:geheim@{closed}"), vec!["no traces are sent", "must begin with http://"]),
        (
            format!("http://{closed}/v1/traces?key=geheim"),
            vec!["traces are sent to a collector", "the collector takes no spans"],
        ),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        let mut server = SabirOptions::new(SABIR, folder.path())
            .variable("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", &endpoint)
            .variable("OTEL_BSP_SCHEDULE_DELAY", "10")
            .variable("OTEL_BSP_EXPORT_TIMEOUT", "300")
            .start_with(Stdio::from(fs::File::create(&log).unwrap()));
        send(&server, message("hello"));
        let text = || fs::read_to_string(&log).unwrap();
        wait_for("the lines about the collector", || logged.iter().all(|line| text().contains(line)));
        server.terminate();
        assert_eq!(server.wait(LIMIT).code(), Some(0), "{endpoint}");
        assert!(text().contains(&closed.to_string()), "{endpoint}: {}", text());
        assert!(!text().contains("geheim"), "{endpoint}: {}", text());
    }
}

#[test]
fn a_collector_that_is_busy_gets_its_spans_later() {
    let (collector, fixture) = traced();
    collector.answer(503);
    send(&fixture.server, message("hello"));
    wait_for("a refused request", || collector.refused() > 0);
    assert_eq!(collector.spans().len(), 0);
    collector.answer(200);
    collector.span("SendMessage");
    collector.span("invoke_agent demo");
}

#[test]
fn without_a_collector_nothing_is_sent_and_the_trace_is_the_callers() {
    let collector = TraceCollector::start();
    for (name, value) in [("OTEL_SDK_DISABLED", "true"), ("OTEL_TRACES_EXPORTER", "none")] {
        let mut fixture = ServerFixture::with(|options| collector.of_server(options).variable(name, value));
        send(&fixture.server, message("hello"));
        fixture.server.terminate();
        assert_eq!(fixture.server.wait(LIMIT).code(), Some(0));
    }
    assert_eq!(collector.exports().len(), 0);
}

#[test]
fn remote_agents_get_the_trace_of_the_run() {
    let collector = TraceCollector::start();
    for protocol in [RemoteProtocol::V1JsonRpc, RemoteProtocol::V1HttpJson, RemoteProtocol::V03JsonRpc] {
        let agent = RemoteAgent::start(protocol);
        let fixture = ServerFixture::with(|options| {
            let toml = format!("[[agent]]\nid = \"friend\"\nkind = \"a2a\"\nurl = \"{}\"\n", agent.url());
            fs::write(options.folder.join("sabir.toml"), toml).unwrap();
            collector.of_server(options)
        });
        let trace = CallersTrace::new(protocol as usize);
        send_within(&fixture.server, &trace, v1_message("hello"));
        let spans = collector.trace(&trace.id, 2);
        let run = named(&spans, "invoke_agent friend");
        let sent = agent.requests_for(Operation::Stream).remove(0);
        let expected = format!("00-{}-{}-01", run.trace, run.id);
        assert_eq!(sent.header("traceparent"), Some(expected.as_str()), "{protocol:?}: {sent:?}");
    }
}

#[test]
fn webhooks_get_the_trace_of_the_call() {
    let collector = TraceCollector::start();
    let loopback = |options: SabirOptions| options.variable("PUSH_NOTIFICATION_ALLOWED_CIDRS", "127.0.0.0/8");
    let (off, on) =
        (ServerFixture::with(loopback), ServerFixture::with(|options| loopback(collector.of_server(options))));
    for (number, (fixture, is_traced)) in [(&off, false), (&on, true)].into_iter().enumerate() {
        let receiver = WebhookReceiver::start();
        let trace = CallersTrace::new(number);
        let mut params = v1_message("hello");
        params["configuration"] = json!({"taskPushNotificationConfig": {"url": receiver.url("/")}});
        send_within(&fixture.server, &trace, params);
        let expected = match is_traced {
            false => trace.header.clone(),
            true => {
                let spans = collector.trace(&trace.id, 2);
                format!("00-{}-{}-01", trace.id, named(&spans, "SendMessage").id)
            }
        };
        for delivered in receiver.until(|request| request.body.contains("TASK_STATE_COMPLETED")) {
            assert_eq!(delivered.header("traceparent"), expected, "traced: {is_traced}");
        }
    }
}

#[test]
fn whatever_pause_a_collector_asks_for_traces_go_on() {
    for seconds in ["18446744073709551615", "18446744073709551616", "9223372036854775807", "0"] {
        let collector = TraceCollector::start();
        let fixture =
            ServerFixture::with(|options| collector.of_server(options).variable("OTEL_BSP_EXPORT_TIMEOUT", "800"));
        collector.ask_to_wait(seconds);
        collector.answer(503);
        let first = CallersTrace::new(1);
        send_within(&fixture.server, &first, v1_message("hello"));
        wait_for("a refused request", || collector.refused() > 0);
        // Until the time of the batch is over.
        std::thread::sleep(Duration::from_millis(1000));
        assert!(collector.refused() <= 4, "{seconds}: asked {} times", collector.refused());
        collector.answer(200);
        let later = CallersTrace::new(2);
        send_within(&fixture.server, &later, v1_message("hello"));
        collector.trace(&later.id, 2);
    }
}

#[test]
fn a_tool_with_a_long_name_has_a_short_span() {
    let (collector, fixture) = traced();
    for (number, (name, span)) in
        [("x".repeat(64), format!("execute_tool {}", "x".repeat(64))), ("x".repeat(5000), "execute_tool".to_owned())]
            .into_iter()
            .enumerate()
    {
        let trace = CallersTrace::new(number);
        let mut params = v1_message(&format!("tool {name}"));
        params["message"]["messageId"] = json!(number.to_string());
        send_within(&fixture.server, &trace, params);
        let spans = collector.trace(&trace.id, 3);
        let told = named(&spans, &span).of("gen_ai.tool.name");
        assert_eq!(told, &name[..name.len().min(1024)]);
    }
}
