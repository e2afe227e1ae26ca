//! Remote agents that mean no good: the front's memory stays bounded, it goes nowhere that it should not, and other agents
//! do not notice.

use std::io;
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::fixture::{Front, LIMIT, a2a, at_once, for_each, id_of, message, say, task_in};
use super::hostile_server::{Exchange, HostileServer, chunk, frame, status, task};

/// What the front may grow by, whatever it is sent.
const BOUND: u64 = 200 * 1024 * 1024;

/// A front of this server, and an agent that works.
fn front_of(server: &HostileServer) -> Front {
    let hostile = a2a("friend", &server.url(), "default = true\nunreachable_timeout = \"2s\"");
    Front::configured(&format!("{hostile}[[agent]]\nid = \"demo\"\nkind = \"demo\"\n"))
}

/// Other agents answer at once.
fn check_others(front: &Front) {
    let start = Instant::now();
    let answer = task_in(front.ask("/agents/demo/", &[], "SendMessage", message("hello")));
    assert_eq!(say(&answer), "completed \"echo: hello\"");
    assert!(start.elapsed() < Duration::from_secs(5), "another agent took {:?}", start.elapsed());
}

fn begin_work(exchange: &mut Exchange) -> io::Result<()> {
    exchange.begin_stream()?;
    exchange.frame(&task("t", "TASK_STATE_WORKING"))
}

/// Streams that never end.
#[test]
fn an_endless_stream_takes_neither_memory_nor_other_agents() {
    type Stream = fn(&mut Exchange) -> io::Result<()>;
    let rows: [(&str, Stream); 5] = [
        ("tiny pieces", |exchange| {
            exchange.frame(&chunk("t", "a", "x", false))?;
            let pieces = frame(&chunk("t", "a", "x", true)).repeat(100);
            loop {
                exchange.raw(pieces.as_bytes())?;
            }
        }),
        ("tiny statuses", |exchange| {
            let statuses = ["x", "y"].map(|text| frame(&status("t", "TASK_STATE_WORKING", text))).concat().repeat(50);
            loop {
                exchange.raw(statuses.as_bytes())?;
            }
        }),
        ("comments", |exchange| {
            loop {
                exchange.raw(": ping\n\n".repeat(1000).as_bytes())?;
            }
        }),
        ("a line without an end", |exchange| {
            exchange.raw(b"data: ")?;
            loop {
                exchange.raw(&[b'x'; 4096])?;
            }
        }),
        ("frames of no sense", |exchange| {
            loop {
                exchange.raw("data: nonsense\n\n".repeat(100).as_bytes())?;
            }
        }),
    ];
    for_each(
        &rows,
        |(name, _)| (*name).to_owned(),
        |(name, stream)| {
            let stream = *stream;
            let server = HostileServer::start(move |exchange| match exchange.method.as_str() {
                "SendStreamingMessage" | "SubscribeToTask" => begin_work(exchange).and_then(|()| stream(exchange)),
                "GetTask" => exchange.result(&task("t", "TASK_STATE_WORKING")["task"]),
                "CancelTask" => exchange.result(&task("t", "TASK_STATE_CANCELED")["task"]),
                _ => exchange.refuse(),
            });
            let front = front_of(&server);
            check_others(&front);
            let before = front.server().resident();
            let id = front.begin("go");
            let end = Instant::now() + Duration::from_secs(4);
            while Instant::now() < end {
                check_others(&front);
                let grown = front.server().resident().saturating_sub(before);
                assert!(grown < BOUND, "{name}: it has grown by {} MiB", grown >> 20);
                std::thread::sleep(Duration::from_millis(100));
            }
            let said = say(&front.task(&id));
            if said.starts_with("working") {
                let said = say(&front.cancel(&id)["result"]);
                assert!(said.starts_with("canceled"), "{name}: {}", &said[..said.len().min(200)]);
            } else {
                assert!(said.starts_with("failed \"\" (the remote agent "), "{name}: {said}");
            }
            let start = Instant::now();
            while server.hung_up() == 0 {
                assert!(start.elapsed() < LIMIT, "{name}: nobody hangs up");
                std::thread::sleep(Duration::from_millis(10));
            }
        },
    );
}

/// A stream that opens and never says anything but comments: nobody knows whether the message was taken.
#[test]
fn a_stream_of_comments_alone_can_be_canceled() {
    let server = HostileServer::start(|exchange| {
        exchange.begin_stream()?;
        loop {
            exchange.raw(b": ping\n\n")?;
            std::thread::sleep(Duration::from_millis(20));
        }
    });
    let front = front_of(&server);
    let id = front.begin("go");
    front.server().until("it is sent", |_| (server.calls() > 0).then_some(()));
    // Longer than its silence may last.
    std::thread::sleep(Duration::from_millis(2500));
    assert!(front.until(&id, |_| true).starts_with("working"));
    check_others(&front);
    let start = Instant::now();
    let said = say(&front.cancel(&id)["result"]);
    assert_eq!(said, "canceled \"\" (the remote agent did not confirm that it stopped)");
    assert!(start.elapsed() < Duration::from_secs(9), "{:?}", start.elapsed());
    assert_eq!(server.calls(), 1, "it is not sent again");
}

#[test]
fn ten_thousand_artifacts_are_passed_on() {
    const COUNT: usize = 10_000;
    let artifacts: Vec<Value> =
        (0..COUNT).map(|n| json!({"artifactId": format!("a{n}"), "parts": [{"text": format!("{n} ")}]})).collect();
    let whole =
        json!({"id": "t", "contextId": "c", "status": {"state": "TASK_STATE_COMPLETED"}, "artifacts": artifacts});
    let in_one = whole.clone();
    let servers = [
        (
            "one by one",
            HostileServer::start(move |exchange| match exchange.is_send() {
                true => {
                    begin_work(exchange)?;
                    let frames: String =
                        (0..COUNT).map(|n| frame(&chunk("t", &format!("a{n}"), &format!("{n} "), false))).collect();
                    exchange.raw(frames.as_bytes())?;
                    exchange.frame(&status("t", "TASK_STATE_COMPLETED", "done"))
                }
                false => exchange.result(&whole),
            }),
        ),
        (
            "at once",
            HostileServer::start(move |exchange| match exchange.is_send() {
                true => begin_work(exchange).and_then(|()| exchange.frame(&json!({"task": in_one.clone()}))),
                false => exchange.result(&in_one),
            }),
        ),
    ];
    for_each(
        &servers,
        |(name, _)| (*name).to_owned(),
        |(name, server)| {
            let front = front_of(server);
            let start = Instant::now();
            let id = front.begin("go");
            check_others(&front);
            let said = front.until_over(&id);
            assert!(said.starts_with("completed \"0 1 2 3 ") && said.contains(" 9999 \""), "{name}: {}", &said[..100]);
            assert_eq!(front.task(&id)["artifacts"].as_array().map(Vec::len), Some(COUNT), "{name}");
            assert!(start.elapsed() < Duration::from_secs(15), "{name}: {:?}", start.elapsed());
        },
    );
}

/// One answer to the message each, and how the task ends.
#[test]
fn what_makes_no_sense_ends_the_task_or_is_passed_over() {
    type Answer = Box<dyn Fn(&mut Exchange) -> io::Result<()> + Send + Sync>;
    fn row(
        name: &'static str,
        expected: &'static str,
        answer: impl Fn(&mut Exchange) -> io::Result<()> + Send + Sync + 'static,
    ) -> (&'static str, &'static str, Answer) {
        (name, expected, Box::new(answer))
    }
    let first = |id: &str| {
        let frame = frame(&task(id, "TASK_STATE_WORKING"));
        move |exchange: &mut Exchange| exchange.begin_stream().and_then(|()| exchange.raw(frame.as_bytes()))
    };
    let long = "x".repeat(8 << 20);
    let huge = "x".repeat(17 << 20);
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let not_a2a = "failed \"\" (the remote agent answered with something that is not A2A)";
    let rows = vec![
        row("a control character in the id", not_a2a, first("a\u{0}b")),
        row("a very long id", not_a2a, first(&"x".repeat(2000))),
        row("an empty id", not_a2a, first("")),
        row("an answer of another kind", not_a2a, |exchange| exchange.result(&json!([1, 2, 3]))),
        row("no HTTP", "failed \"\" (outcome unknown", |exchange| exchange.raw(b"220 mail.example ESMTP\r\n")),
        row("a head without an end", "failed \"\" (outcome unknown", |exchange| {
            exchange.raw(b"HTTP/1.1 200 OK\r\n")?;
            loop {
                exchange.raw(&[b'x'; 1024])?;
            }
        }),
        row("events after the end", "completed \"one\" (done)", |exchange| {
            begin_work(exchange)?;
            exchange.frame(&chunk("t", "a", "one", false))?;
            exchange.frame(&status("t", "TASK_STATE_COMPLETED", "done"))?;
            exchange.frame(&status("t", "TASK_STATE_WORKING", "not yet"))?;
            exchange.frame(&status("t", "TASK_STATE_FAILED", "no"))?;
            loop {
                exchange.frame(&status("t", "TASK_STATE_WORKING", "still"))?;
            }
        }),
        row("another task in the stream", "completed \"one\" (done)", |exchange| {
            begin_work(exchange)?;
            exchange.frame(&chunk("t", "a", "one", false))?;
            exchange.frame(&chunk("other", "a", "two", false))?;
            exchange.frame(&status("other", "TASK_STATE_FAILED", "no"))?;
            exchange.frame(&status("t", "TASK_STATE_COMPLETED", "done"))
        }),
        row("a status of megabytes", "completed \"one\" (xxxxxxxxxx", move |exchange| {
            begin_work(exchange)?;
            exchange.frame(&chunk("t", "a", "one", false))?;
            exchange.frame(&status("t", "TASK_STATE_COMPLETED", &long))
        }),
        row(
            "a status that is larger than allowed",
            "failed \"one\" (the remote agent sent too much",
            move |exchange| {
                begin_work(exchange)?;
                exchange.frame(&chunk("t", "a", "one", false))?;
                exchange.frame(&status("t", "TASK_STATE_COMPLETED", &huge))
            },
        ),
        row("a frame of great depth", "completed \"one\" (done)", move |exchange| {
            begin_work(exchange)?;
            exchange.raw(format!("data: {{\"result\":{deep}}}\n\n").as_bytes())
        }),
        row("a redirect inside", "failed \"\" (the remote agent refused the message", |exchange| {
            exchange.redirect("http://169.254.169.254/latest/meta-data/")
        }),
    ];
    let rows: Vec<_> = rows
        .into_iter()
        .map(|(name, expected, answer)| {
            let server = HostileServer::start(move |exchange| match exchange.method.as_str() {
                "SendStreamingMessage" => answer(exchange),
                // For those who ask what became of it.
                "GetTask" => {
                    let message = json!({"messageId": "m", "role": "ROLE_AGENT", "parts": [{"text": "done"}]});
                    let artifact = json!({"artifactId": "a", "parts": [{"text": "one"}]});
                    let status = json!({"state": "TASK_STATE_COMPLETED", "message": message});
                    exchange.result(&json!({"id": "t", "contextId": "c", "status": status, "artifacts": [artifact]}))
                }
                "CancelTask" => exchange.result(&task("t", "TASK_STATE_CANCELED")["task"]),
                _ => exchange.refuse(),
            });
            (name, expected, server)
        })
        .collect();
    let agents = rows.iter().enumerate().map(|(number, (_, _, server))| a2a(&format!("a{number}"), &server.url(), ""));
    let front = Front::configured(
        &agents.chain(["[[agent]]\nid = \"demo\"\nkind = \"demo\"\n".to_owned()]).collect::<String>(),
    );
    let numbered: Vec<_> = rows.iter().enumerate().collect();
    for_each(
        &numbered,
        |(_, (name, ..))| (*name).to_owned(),
        |(number, (name, expected, _))| {
            let path = format!("/agents/a{number}/");
            let id = id_of(&task_in(front.ask(&path, &[], "SendMessage", at_once(message("go")))));
            let said = front.until_over(&id);
            assert!(said.starts_with(expected), "{name}: {}", &said[..said.len().min(300)]);
        },
    );
    check_others(&front);
}

/// Redirects of calls are not followed, and those of cards only where the guard lets them.
#[test]
fn no_redirect_leads_the_front_elsewhere() {
    let elsewhere = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", elsewhere.local_addr().unwrap());
    let visits = Arc::new(AtomicUsize::new(0));
    let counted = visits.clone();
    std::thread::spawn(move || {
        for _ in elsewhere.incoming() {
            counted.fetch_add(1, Ordering::SeqCst);
        }
    });
    let places = [url, "http://169.254.169.254/latest/meta-data/".to_owned(), "http://[::1]:1/".to_owned()];
    for_each(&places, String::clone, |place| {
        let to = place.clone();
        let calls = HostileServer::start(move |exchange| exchange.redirect(&to));
        let to = place.clone();
        let cards = HostileServer::with_card(
            move |exchange| exchange.redirect(&to).and(Err(io::ErrorKind::Other.into())),
            |exchange| exchange.refuse(),
        );
        for (server, expected) in [
            (calls, "failed \"\" (the remote agent refused"),
            (cards, "failed \"\" (the remote agent cannot be reached"),
        ] {
            let front = front_of(&server);
            let said = front.until_over(&front.begin("go"));
            assert!(said.starts_with(expected), "{place}: {said}");
        }
    });
    assert_eq!(visits.load(Ordering::SeqCst), 0);
}
