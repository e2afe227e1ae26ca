//! Whole requests: path, query, envelope and body, and the answers to them, refusals too.

use sabir_model::Answer;

use super::messages::{MESSAGES, STRANGE, message, params, task};
use super::{Report, Shape, repeat};
use crate::fixture::ThreeAgents;
use crate::{Compat, Decoded, JsonDialect, Reply, RequestHead, Surface, V01, V1, V03, V03Proto, locate};

/// The request, read and answered: with its error if it has one, else with nothing.
fn exchange(head: &RequestHead<'_>, body: &str) -> Reply {
    let done: Answer<()> = Answer::Done;
    match locate(head, &ThreeAgents) {
        Surface::Call(endpoint) => {
            let Decoded { call, responder } = endpoint.decode(head, body.as_bytes(), Compat::default(), &ThreeAgents);
            match call {
                Ok(_) => responder.reply(&done),
                Err(error) => responder.error_reply(&error),
            }
        }
        Surface::Refused(refused) => refused.reply(),
        _ => panic!("{} is answered without being read", head.path),
    }
}

fn post(path: &'static str) -> RequestHead<'static> {
    RequestHead { verb: "POST", path, ..RequestHead::default() }
}

const MOUNTS: [(&str, &str, &dyn JsonDialect); 7] = [
    ("/", "SendMessage", &V1),
    ("/", "message/stream", &V03),
    ("/", "tasks/send", &V01),
    ("/a2a/v1", "SendMessage", &V1),
    ("/a2a/v0.3", "message/send", &V03),
    ("/a2a/v0.1", "tasks/sendSubscribe", &V01),
    ("/a2a/jsonrpc", "tasks/cancel", &V03),
];

#[test]
fn json_rpc_requests_are_linear() {
    let mut report = Report::default();
    let body = |method: &str, params: &str, more: &str| {
        format!(r#"{{{more}"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#)
    };
    for (path, method, dialect) in MOUNTS {
        for (shape, text) in MESSAGES {
            report.check(
                &format!("{path} {method}: {shape}"),
                |size| body(method, &params(dialect, &message(&text(size))), ""),
                |body| drop(exchange(&post(path), body)),
            );
        }
        for (shape, members) in STRANGE {
            let plain = params(dialect, &message(&MESSAGES[7].1(1)));
            report.check(
                &format!("{path} {method}: {shape} in the envelope"),
                |size| body(method, &plain, &format!("{},", members(size))),
                |body| drop(exchange(&post(path), body)),
            );
        }
        for (shape, element) in [
            ("a long id", r#""id":"\u0041/""#),
            ("a long method", r#""method":"\u0041/""#),
            ("a long version", r#""jsonrpc":"\u0041/""#),
            ("a long batch", "[1]"),
        ] {
            let whole = |size: usize| match element.split_once('/') {
                Some((start, end)) => format!("{{{start}{}{end}}}", r#"\u2028x"#.repeat(size)),
                None => format!("[{}]", repeat(size, |_| element.to_owned())),
            };
            report.check(&format!("{path}: {shape}"), whole, |body| drop(exchange(&post(path), body)));
        }
    }
    report.assert_linear();
}

#[test]
fn http_json_requests_are_linear() {
    let mut report = Report::default();
    let sends: [(&str, &dyn JsonDialect); 4] = [
        ("/message:send", &V1),
        ("/alpha/message:stream", &V1),
        ("/v1/message:send", &V03Proto),
        ("/a2a/rest/v1/message:stream", &V03Proto),
    ];
    for (path, dialect) in sends {
        for (shape, text) in MESSAGES {
            report.check(
                &format!("{path}: {shape}"),
                |size| params(dialect, &message(&text(size))),
                |body| drop(exchange(&post(path), body)),
            );
        }
    }
    for path in [
        "/tasks/t:cancel",
        "/v1/tasks/t:cancel",
        "/tasks/t/pushNotificationConfigs",
        "/v1/tasks/t/pushNotificationConfigs",
        "/a2a/tasks/t/pushNotificationConfig",
    ] {
        for (shape, members) in STRANGE {
            report.check(
                &format!("{path}: {shape}"),
                |size| format!("{{{}}}", members(size)),
                |body| drop(exchange(&post(path), body)),
            );
        }
    }
    report.assert_linear();
}

#[test]
fn paths_and_queries_are_linear() {
    let mut report = Report::default();
    let shapes: [Shape; 5] = [
        ("/tasks", |size| format!("contextId={}", "%41+".repeat(size))),
        ("/tasks", |size| vec!["contextId=c%41"; size].join("&")),
        ("/tasks", |size| {
            vec!["pageSize=x&pageToken=%zz&historyLength=-1&status=y&includeArtifacts=z"; size].join("&")
        }),
        ("/tasks/t", |size| vec!["A2A-Versio=1.0&historyLength=5&x%41"; size].join("&")),
        ("/v1/tasks/t", |size| format!("tenant={0}&historyLength={0}", "1".repeat(size * 10))),
    ];
    for (path, query) in shapes {
        report.check(path, query, |query| {
            let head = RequestHead { verb: "GET", path, query: Some(query), ..RequestHead::default() };
            drop(exchange(&head, ""));
        });
    }
    for (start, element, end) in [
        ("/tasks/", "%41", ":cancel"),
        ("/agents/", "%41", "/tasks/x"),
        ("/", "%41", "/tasks/x"),
        ("/v1/a2a/agents/", "%41", "/x"),
    ] {
        let path = |size: usize| [start, &element.repeat(size), end].concat();
        report.check(&format!("{start}..{end}"), path, |path| {
            drop(exchange(&RequestHead { verb: "POST", path, ..RequestHead::default() }, "{}"));
        });
    }
    report.assert_linear();
}

const GATEWAY: &str = "/v1/a2a/agents/alpha/message:send";

#[test]
fn gateway_requests_are_linear() {
    let mut report = Report::default();
    let shapes: [Shape; 6] = [
        ("a long input", |size| format!(r#"{{"input":"{}"}}"#, r#"\n\u0041"#.repeat(size))),
        ("a long message", |size| format!(r#"{{"message":{{"role":"system","content":"{}"}}}}"#, "x\\\\".repeat(size))),
        ("many decisions", |size| {
            let decision = |place: &str| {
                format!(r#"{{"target_id":"{place}","decision_id":"d","action":"resume","result":{{"approved":true}}}}"#)
            };
            format!(r#"{{"taskId":"t","decisions":[{}]}}"#, repeat(size, decision))
        }),
        ("wrong decisions", |size| format!(r#"{{"taskId":"t","decisions":[{}]}}"#, repeat(size, |_| "[5]".into()))),
        ("a large result", |size| {
            let result = repeat(size, |place| format!(r#""{place}":[1]"#));
            format!(r#"{{"taskId":"t","decisions":[{{"target_id":"a","action":"resume","result":{{{result}}}}}]}}"#)
        }),
        ("a long id", |size| format!(r#"{{"taskId":" {0}","task_id":"{0} "}}"#, "x".repeat(size * 10))),
    ];
    for (shape, body) in shapes {
        report.check(&format!("the gateway reads {shape}"), body, |body| drop(exchange(&post(GATEWAY), body)));
    }
    for (shape, members) in STRANGE {
        report.check(
            &format!("the gateway reads {shape}"),
            |size| format!(r#"{{"input":"hi",{}}}"#, members(size)),
            |body| drop(exchange(&post(GATEWAY), body)),
        );
    }
    report.assert_linear();
}

#[test]
fn encoding_gateway_tasks_is_linear() {
    let mut report = Report::default();
    let head = RequestHead { verb: "GET", path: "/v1/a2a/agents/alpha/tasks/t", ..RequestHead::default() };
    let Surface::Call(endpoint) = locate(&head, &ThreeAgents) else { panic!("no endpoint") };
    let responder = endpoint.decode(&head, b"", Compat::default(), &ThreeAgents).responder;
    for (shape, text) in MESSAGES {
        for state in sabir_model::State::ALL {
            let answer = |size| {
                let mut task = task(&text(size));
                task.status.state = state;
                let answer: Answer<()> = Answer::Conversation(task.clone().into(), vec![task]);
                answer
            };
            report.check(&format!("the gateway writes {shape} {state:?}"), answer, |answer| {
                drop(responder.reply(answer));
            });
        }
    }
    report.assert_linear();
}
