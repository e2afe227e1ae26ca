//! What callers get of a model's answers, and what the model gets of their messages.

use serde_json::{Value, json};

use super::fixture::{Front, Model, Reply, end, piece, refuses, says, within};
use crate::SABIR;
use crate::program_fixture::{answer, message, message_with_file, reason, send, state, wait_for};
use crate::server_fixture::v03_message;

#[test]
fn an_answer_is_an_artifact_and_its_tokens_are_counted() {
    let model = Model::new(vec![says("Hello to you")]);
    let server = Front::new(&model, "temperature = 0.5\nmax_tokens = 100").serve();
    let task = send(&server, message("hi"));
    assert_eq!((state(&task), answer(&task)), ("COMPLETED", "Hello to you"), "{task}");
    let asked = &model.asked()[0];
    assert_eq!(asked.path, "/v1/chat/completions");
    assert!(!asked.head.contains("authorization"), "{}", asked.head);
    let expected = json!({
        "model": "little",
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "hi"}],
        "stream": true, "stream_options": {"include_usage": true}, "temperature": 0.5, "max_tokens": 100,
    });
    assert_eq!(asked.body, expected);
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": v03_message("again")});
    let reply = server.http().exchange("POST", "/a2a", &[], body.to_string().as_bytes()).unwrap().json();
    assert_eq!(reply["result"]["data"]["usage"]["input_tokens"], 12, "{reply}");
    assert_eq!(reply["result"]["data"]["usage"]["output_tokens"], 3, "{reply}");
}

#[test]
fn a_context_is_remembered_over_restarts_and_a_failed_turn_is_not() {
    let model = Model::new(vec![says("one")]);
    let front = Front::new(&model, "");
    let server = front.start();
    send(&server, within("c", message("first")));
    model.answers_next(vec![refuses(400, "context is too long")]);
    let failed = send(&server, within("c", message("lost")));
    assert_eq!(state(&failed), "FAILED", "{failed}");
    assert_eq!(reason(&failed), "the model server refused the request: context is too long");
    server.kill();
    model.answers_next(vec![says("two")]);
    let server = front.start();
    send(&server, within("c", message("second")));
    let expected = ["system: Be brief.", "user: first", "assistant: one", "user: second"];
    assert_eq!(model.last_messages(), expected);
    send(&server, within("other", message("third")));
    assert_eq!(model.last_messages(), ["system: Be brief.", "user: third"]);
}

#[test]
fn a_history_is_bounded() {
    let model = Model::new(vec![says("ok")]);
    let server = Front::new(&model, "history_messages = 2").serve();
    for text in ["one", "two", "three"] {
        send(&server, within("c", message(text)));
    }
    assert_eq!(model.last_messages(), ["system: Be brief.", "user: two", "assistant: ok", "user: three"]);
    let server = Front::new(&model, "history_messages = 0").serve();
    for text in ["one", "two"] {
        send(&server, within("c", message(text)));
    }
    assert_eq!(model.last_messages(), ["system: Be brief.", "user: two"]);
}

#[test]
fn callers_are_told_why_there_is_no_answer() {
    let broken = Reply::Stream(vec![piece("half an ")]);
    let in_answer = Reply::Stream(vec![piece("a"), json!({"error": {"message": "out of memory"}}).to_string()]);
    let nonsense = Reply::Whole(200, "content-type: text/html\r\n", "<html>".to_owned());
    let later = Reply::Whole(429, "retry-after: 3600\r\n", String::new());
    for (reply, expected) in [
        (refuses(401, "Incorrect API key provided: sk-abc"), "does not accept the credential of this server"),
        (refuses(404, "no such model"), "does not know the model or the address"),
        (refuses(413, "too large"), "the message is too large"),
        (later, "no capacity for this server now (HTTP status 429)"),
        (broken, "broke in the middle of its answer"),
        (in_answer, "failed in the middle of its answer: out of memory"),
        (nonsense, "no answer of /chat/completions"),
        (Reply::Stream(vec![end("content_filter")]), "the content filter of the model server refused"),
    ] {
        let model = Model::new(vec![reply]);
        let server = Front::new(&model, "").serve();
        let task = send(&server, message("hi"));
        assert_eq!(state(&task), "FAILED", "{task}");
        assert!(reason(&task).contains(expected), "{expected}: {task}");
        assert!(!task.to_string().contains("sk-abc"), "{task}");
        assert_eq!(model.asked().len(), 1, "{expected}: it is asked once");
    }
}

#[test]
fn an_answer_that_is_cut_off_is_told() {
    for (finish, expected) in [("length", "max_tokens"), ("content_filter", "cut off by the content filter")] {
        let model = Model::new(vec![Reply::Stream(vec![piece("half"), end(finish)])]);
        let server = Front::new(&model, "").serve();
        let task = send(&server, message("hi"));
        assert_eq!((state(&task), answer(&task)), ("COMPLETED", "half"), "{task}");
        assert!(reason(&task).contains(expected), "{task}");
    }
}

#[test]
fn a_server_that_is_busy_is_asked_again() {
    let busy = || Reply::Whole(429, "retry-after: 0\r\n", String::new());
    let model = Model::new(vec![busy(), refuses(503, "loading"), Reply::HangUp, Reply::Stream(vec![]), says("done")]);
    let server = Front::new(&model, "").serve();
    let task = send(&server, message("hi"));
    assert_eq!((state(&task), answer(&task)), ("COMPLETED", "done"), "{task}");
    assert_eq!(model.asked().len(), 5);
    let model = Model::new(vec![busy()]);
    let server = Front::new(&model, "").serve();
    let task = send(&server, message("hi"));
    assert_eq!(state(&task), "FAILED", "{task}");
    assert_eq!(model.asked().len(), 5, "not for ever");
}

#[test]
fn servers_with_other_words_are_understood() {
    let new_name = "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.";
    let whole =
        json!({"choices": [{"message": {"role": "assistant", "content": "not streamed"}, "finish_reason": "stop"}]});
    let whole = Reply::Whole(200, "content-type: application/json\r\n", whole.to_string());
    let model = Model::new(vec![refuses(400, new_name), refuses(400, "unknown field stream_options"), whole]);
    let server = Front::new(&model, "max_tokens = 7").serve();
    for _ in 0..2 {
        let task = send(&server, message("hi"));
        assert_eq!((state(&task), answer(&task)), ("COMPLETED", "not streamed"), "{task}");
    }
    let asked = model.asked();
    assert_eq!(asked.len(), 4, "what was learned is remembered");
    let last = &asked[3].body;
    let expected = (&json!(7), &Value::Null, &Value::Null);
    assert_eq!((&last["max_completion_tokens"], &last["max_tokens"], &last["stream_options"]), expected);
}

#[test]
fn files_and_data_reach_the_model() {
    let model = Model::new(vec![says("seen")]);
    let server = Front::new(&model, "").serve();
    let mut params = message_with_file("look", "a.txt", "inside");
    let parts = params["message"]["parts"].as_array_mut().unwrap();
    parts.push(json!({"data": {"n": 1}}));
    parts.push(json!({"raw": "aGk=", "filename": "p.png", "mediaType": "image/png"}));
    let task = send(&server, within("c", params));
    assert_eq!(state(&task), "COMPLETED", "{task}");
    let content = &model.asked()[0].body["messages"][1]["content"];
    let text = "look\n\na.txt:\n```\ninside\n```\n\n```json\n{\"n\":1}\n```";
    let image = json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}});
    assert_eq!(content, &json!([{"type": "text", "text": text}, image]));
    send(&server, within("c", message("more")));
    assert!(model.last_messages()[1].ends_with("[an image, which is no longer here]"), "{:?}", model.last_messages());
    let mut params = message("read this");
    let pdf = json!({"raw": "JVBERg==", "filename": "a.pdf", "mediaType": "application/pdf"});
    params["message"]["parts"].as_array_mut().unwrap().push(pdf);
    let task = send(&server, params);
    assert_eq!(state(&task), "REJECTED", "{task}");
    assert!(reason(&task).contains("a.pdf is application/pdf, which this agent cannot read"), "{task}");
    assert_eq!(model.asked().len(), 2, "what is rejected costs nothing");
}

#[test]
fn the_key_is_shown_as_the_server_wants_it() {
    for (more, expected) in [
        ("api_key_env = \"MODEL_KEY\"", "authorization: bearer sk-1"),
        ("api_key_env = \"MODEL_KEY\"\napi_key_name = \"api-key\"", "api-key: sk-1"),
        ("token_env = \"MODEL_KEY\"", "authorization: bearer sk-1"),
        ("api_key_env = \"MODEL_KEY\"\nheaders = { X-Team = \"red\" }", "x-team: red"),
    ] {
        let model = Model::new(vec![says("ok")]);
        let front = Front::new(&model, more);
        let server = front.options().variable("MODEL_KEY", "sk-1").start();
        assert_eq!(state(&send(&server, message("hi"))), "COMPLETED");
        let head = &model.asked()[0].head;
        assert!(head.contains(expected), "{more}: {head}");
    }
}

#[test]
fn a_key_that_the_server_repeats_is_told_to_nobody() {
    let in_answer = json!({"error": {"message": "who is sk-geheim-1?"}}).to_string();
    for reply in [
        refuses(400, "bad authorization: Bearer sk-geheim-1"),
        refuses(401, "Incorrect API key provided: sk-geheim-1"),
        Reply::Stream(vec![piece("a"), in_answer]),
    ] {
        let model = Model::new(vec![reply]);
        let front = Front::new(&model, "api_key_env = \"MODEL_KEY\"");
        let log = front.folder.path().join("log");
        let options = front.options().variable("MODEL_KEY", "sk-geheim-1");
        let server = options.start_with(std::fs::File::create(&log).unwrap().into());
        let task = send(&server, message("hi"));
        assert_eq!(state(&task), "FAILED", "{task}");
        assert!(!task.to_string().contains("geheim"), "{task}");
        let logged = || std::fs::read_to_string(&log).unwrap();
        wait_for("the failure is logged", || logged().contains("a model gave no answer"));
        assert!(!logged().contains("geheim"), "{}", logged());
    }
}

#[test]
fn a_start_says_what_is_missing() {
    let model = Model::new(vec![says("ok")]);
    for (more, expected) in [
        ("api_key_env = \"NO_SUCH_KEY\"", "api_key_env names NO_SUCH_KEY, which is not set"),
        (
            "mcp_servers.x = { url = \"http://localhost:1/\", token_env = \"NO_SUCH_KEY\" }",
            "names NO_SUCH_KEY, which is not set",
        ),
        (
            "mcp_servers.x = { command = [\"no-such-program\"] }",
            "has the server x, which runs no-such-program, which is not on the PATH",
        ),
        ("system_prompt_file = \"prompt.txt\"", "leave one of them out"),
        ("temperature = 3", "expected a number from 0 to 2"),
        ("workspace = \".\"", "workspace is for programs; an agent of kind openai has no use for it"),
        ("card_url = \"https://a.b\"", "card_url is for remote agents"),
    ] {
        let front = Front::new(&model, more);
        let ended = std::process::Command::new(SABIR)
            .args(["serve", "--listen", "127.0.0.1:0"])
            .current_dir(front.folder.path())
            .env_remove("NO_SUCH_KEY")
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(2), "{more}: {said}");
        assert!(said.contains(expected), "{more}: {said}");
    }
}

#[test]
fn two_conversations_at_once_do_not_meet() {
    let model = Model::new(vec![says("ok")]);
    let server = Front::new(&model, "").serve();
    std::thread::scope(|scope| {
        for context in ["a", "b", "c", "d"] {
            let server = &server;
            scope.spawn(move || {
                for turn in 0..5 {
                    let task = send(server, within(context, message(&format!("{context}{turn}"))));
                    assert_eq!((state(&task), answer(&task)), ("COMPLETED", "ok"), "{task}");
                }
            });
        }
    });
    for asked in model.asked() {
        let said: Vec<&str> = asked.body["messages"]
            .as_array()
            .unwrap()
            .iter()
            .skip(1)
            .step_by(2)
            .map(|message| message["content"].as_str().unwrap())
            .collect();
        let context = &said[0][..1];
        let expected: Vec<String> = (0..said.len()).map(|turn| format!("{context}{turn}")).collect();
        assert_eq!(said, expected);
    }
}

#[test]
fn owners_do_not_share_a_history() {
    // The tokens are `of-alice` and `of-bob`.
    let callers = "
[[auth.token]]
subject = 'alice'
hash = 'sha256:a835b7c3f35bc86ff7805b9b802ec850ade63343f62181c8a3aff327c6e1bc93'

[[auth.token]]
subject = 'bob'
hash = 'sha256:afaf76da0eb764754faab931a4930ad4164c8f764ffaa14d6a28d279d2b7a997'
";
    let model = Model::new(vec![says("ok")]);
    let server = Front::new(&model, callers).serve();
    for (token, text) in [("of-alice", "hers"), ("of-bob", "his"), ("of-alice", "hers again")] {
        let params = within("c", message(text));
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": params}).to_string();
        let bearer = format!("Bearer {token}");
        let headers = [("A2A-Version", "1.0"), ("Authorization", bearer.as_str())];
        let reply = server.http().exchange("POST", "/", &headers, body.as_bytes()).unwrap().json();
        assert_eq!(state(&reply["result"]["task"]), "COMPLETED", "{reply}");
        let shown = model.asked().last().unwrap().head.clone();
        assert!(!shown.contains(token), "what callers show is not passed on: {shown}");
    }
    let said: Vec<usize> = model.asked().iter().map(|asked| asked.body["messages"].as_array().unwrap().len()).collect();
    assert_eq!(said, [2, 2, 4]);
}

#[test]
fn what_is_no_answer_does_no_harm() {
    let huge = Reply::Stream(vec![piece(&"x".repeat(9 << 20))]);
    let odd = vec!["".into(), "{".into(), "[1]".into(), r#"{"choices":{}}"#.into(), piece("fine"), end("stop")];
    for (reply, expected) in [
        (Reply::Stream(odd), ("COMPLETED", "fine")),
        (huge, ("FAILED", "")),
        (Reply::Stream(vec!["[DONE]".into()]), ("COMPLETED", "")),
    ] {
        let model = Model::new(vec![reply]);
        let server = Front::new(&model, "").serve();
        let task = send(&server, message("hi"));
        assert_eq!((state(&task), answer(&task)), expected, "{task}");
        assert!(reason(&task).len() < 200, "{task}");
    }
}
