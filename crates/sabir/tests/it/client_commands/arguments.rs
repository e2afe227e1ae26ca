//! What words and flags mean: which server, what is sent, what is shown.

use serde_json::{Value, json};

use super::fixture::{ClientFixture, Outcome, run};
use crate::server_fixture::ServerFixture;
use crate::webhook_receiver::WebhookReceiver;

#[test]
fn the_server_is_named_in_many_ways() {
    let client = ClientFixture::of(ServerFixture::with_agents(&["a", "b"]));
    let (url, address) = (client.url(), client.fixture.server.address.to_string());
    let below = format!("{url}/agents/b");
    let card = format!("{url}/.well-known/agent-card.json");
    let (_, port) = address.split_once(':').unwrap();
    let config = client.folder.path().join("other.toml");
    std::fs::write(&config, format!("server.listen = [\"{address}\"]\nstore.url = \"sqlite:none.db\"\n")).unwrap();
    let config = config.to_str().unwrap();
    let named = format!("localhost:{port}");
    for (words, variables) in [
        (&["send", &url, "hello"][..], &[][..]),
        (&["send", &below, "hello"], &[]),
        (&["send", &card, "hello"], &[]),
        (&["send", "-a", &named, "hello"], &[]),
        (&["send", "--agent-card", &url, "--agent", "b", "hello"], &[]),
        (&["send", "hello"], &[("A2ACLI_AGENT_CARD", url.as_str())]),
        // What is typed wins over the environment.
        (&["send", &url, "hello"], &[("A2ACLI_AGENT_CARD", "http://127.0.0.1:1")]),
        (&["send", "--agent-card", &url, "hello"], &[("A2ACLI_AGENT_CARD", "http://127.0.0.1:1")]),
        (&["send", "hello"], &[("SABIR_LISTEN", address.as_str()), ("SABIR_STORE", "sqlite:none.db")]),
        (&["send", "--config", config, "hello"], &[]),
        (&["send", "http://127.0.0.1:1", "--endpoint", &url, "--card-url", &card, "hello"], &[]),
    ] {
        let outcome = run(&client.folder, words, variables, "");
        assert_eq!((outcome.code, outcome.answer()), (0, "echo: hello"), "{words:?}: {}", outcome.errors);
    }
    // With a flag for the server, every word is text.
    let outcome = run(&client.folder, &["send", "-a", &url, "http://x", "y"], &[], "");
    assert_eq!(outcome.answer(), "echo: http://x y");
    let outcome = client.run("send", &["see http://x"]);
    assert_eq!(outcome.answer(), "echo: see http://x");
}

#[test]
fn the_local_server_is_called_where_it_is_whatever_its_card_says() {
    for flags in [&["--public-url", "https://agents.example.com"][..], &["--dev-tls"], &[]] {
        let client = ClientFixture::of(ServerFixture::with(|options| {
            flags.iter().fold(options, |options, flag| options.argument(flag))
        }));
        let store = client.fixture.server.ready["store"].as_str().unwrap();
        let variables = [("SABIR_STORE", &*format!("sqlite:{store}")), ("SABIR_LISTEN", "127.0.0.1:1")];
        for more in [&[][..], &["--transport", "http+json"], &["--agent", "demo"], &["--a2a-version", "0.1"]] {
            let words = [&["send", "hello"], more].concat();
            let outcome = run(&client.folder, &words, &variables, "");
            assert_eq!((outcome.code, outcome.answer()), (0, "echo: hello"), "{flags:?} {words:?}: {}", outcome.errors);
        }
        let outcome = run(&client.folder, &["card"], &variables, "");
        assert_eq!((outcome.code, &outcome.lines[0]["card"]["name"]), (0, &json!("Sabir demo agent")), "{flags:?}");
    }
}

#[test]
fn the_agent_is_named_by_its_url_or_its_id() {
    let toml = "[[agent]]\nid = 'a'\nkind = 'command'\ncommand = ['echo', 'from a']\n\
                [[agent]]\nid = 'b'\nkind = 'command'\ncommand = ['echo', 'from b']\n";
    let client = ClientFixture::of(ServerFixture::configured(toml));
    let url = client.url();
    let below = format!("{url}/agents/b");
    for (words, expected) in [
        (&["send", &url, "x"][..], "from a"),
        (&["send", &below, "x"], "from b"),
        (&["send", &url, "--agent", "b", "x"], "from b"),
        (&["send", &url, "--agent", "b", "--transport", "http+json", "x"], "from b"),
        (&["send", &url, "--agent", "b", "--a2a-version", "0.3", "x"], "from b"),
        (&["send", &url, "--tenant", "b", "x"], "from b"),
    ] {
        let outcome = run(&client.folder, words, &[], "");
        assert_eq!((outcome.code, outcome.answer().trim()), (0, expected), "{words:?}: {}", outcome.errors);
    }
    let outcome = client.run("card", &["--agent", "b"]);
    assert!(outcome.lines[0]["url"].as_str().unwrap().contains("/agents/b/"), "{}", outcome.text);
}

#[test]
fn a_message_has_its_parts_in_order() {
    let client = ClientFixture::new();
    let file = |name: &str, text: &str| {
        let path = client.folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let (note, data) = (file("note.md", "# x"), file("data.json", " {\"n\": 12345678901234567890}\n"));
    let words = [
        &["words", "first", "--file", &note, "--data", &data, "--text", "more"][..],
        &["--file", "https://x.example/a.pdf", "--media-type", "x/y"],
    ];
    let outcome = client.run("send", &words.concat());
    let history = &outcome.last()["task"]["history"][0]["parts"];
    let expected = json!([
        {"text": "words first"},
        {"raw": "IyB4", "filename": "note.md", "mediaType": "text/markdown"},
        {"data": {"n": 12345678901234567890_u64}},
        {"text": "more"},
        {"url": "https://x.example/a.pdf", "filename": "a.pdf", "mediaType": "x/y"},
    ]);
    assert_eq!((outcome.code, history), (0, &expected), "{}", outcome.errors);
    let fixture_url = client.url();
    for (words, input, expected) in [
        (&["send", &fixture_url, "-"][..], "from a pipe\n", json!([{"text": "from a pipe"}])),
        (&["send", &fixture_url, "--text", "-"], "x", json!([{"text": "x"}])),
        // Whatever lines the data have, the task is one.
        (&["send", &fixture_url, "x", "--data", "-"], "[\r\n1]\n", json!([{"text": "x"}, {"data": [1]}])),
    ] {
        let outcome = run(&client.folder, words, &[], input);
        assert_eq!(outcome.last()["task"]["history"][0]["parts"], expected, "{words:?}: {}", outcome.errors);
    }
}

#[test]
fn metadata_contexts_and_tasks_are_passed_on() {
    let client = ClientFixture::new();
    let first = client.run("send", &["hello", "--metadata", r#"{"priority": 1e3}"#]);
    let task = &first.last()["task"];
    assert!(first.text.lines().last().unwrap().contains(r#""metadata":{"priority": 1e3}"#), "{}", first.text);
    let context = task["contextId"].as_str().unwrap();
    let second = client.run("send", &["history", "--context-id", context]);
    assert_eq!((&second.last()["task"]["contextId"], second.answer()), (&task["contextId"], "hello\necho: hello"));
    assert_ne!(second.last()["task"]["id"], task["id"]);

    let waiting = client.sent("ask x");
    let id = waiting["id"].as_str().unwrap();
    let answered = client.run("send", &["--task-id", id, "hello"]);
    assert_eq!((&answered.last()["task"]["id"], answered.answer()), (&waiting["id"], "echo: hello"));
    let short = client.run("get", &[id, "--history", "1"]);
    assert_eq!(short.last()["history"].as_array().map(Vec::len), Some(1));
    assert_eq!(client.run("get", &[id]).last()["history"].as_array().map(Vec::len), Some(3));
}

#[test]
fn a_server_is_shown_credentials_and_nobody_else_sees_them() {
    let receiver = WebhookReceiver::start();
    receiver.answer(404);
    let url = receiver.url("");
    let folder = tempfile::tempdir().unwrap();
    for (flags, variables, name, expected) in [
        (&["--bearer", "geheim"][..], &[][..], "authorization", "Bearer geheim"),
        (&["--token", "geheim"], &[("SABIR_TOKEN", "other")], "authorization", "Bearer geheim"),
        (&[], &[("SABIR_TOKEN", "geheim"), ("A2ACLI_BEARER", "other")], "authorization", "Bearer geheim"),
        (&[], &[("A2ACLI_BEARER", "geheim")], "authorization", "Bearer geheim"),
        (&["--api-key", "geheim"], &[], "x-api-key", "geheim"),
        (&[], &[("A2ACLI_API_KEY", "geheim")], "x-api-key", "geheim"),
        (&["--svc-param", "X-Key: geheim"], &[], "x-key", "geheim"),
    ] {
        let words = [&["send", &url, "hello", "--raw", "--a2a-version", "1.0"], flags].concat();
        let outcome = run(&folder, &words, variables, "");
        let requests = receiver.rest();
        assert!(requests.iter().any(|request| request.line.starts_with("POST ")), "{flags:?}: {}", outcome.errors);
        for request in &requests {
            assert_eq!(request.header(name), expected, "{flags:?}: {}", request.line);
        }
        assert!(outcome.errors.contains("> POST "), "{flags:?}: {}", outcome.errors);
        assert!(!outcome.errors.contains("geheim") && !outcome.text.contains("geheim"), "{}", outcome.errors);
    }
}

#[test]
fn people_get_text_also_in_a_pipe() {
    let client = ClientFixture::new();
    for (text, code, expected, remarks) in [
        ("hello", 0, "echo: hello\n", &["completed: task "][..]),
        ("stream 2 0", 0, "chunk 1\nchunk 2\n", &["completed: task "]),
        ("message hi", 0, "hi\n", &[]),
        ("data", 0, "{\n  \"key\": \"value\",\n  \"count\": 42\n}\n", &["completed: task "]),
        ("file", 0, "file output.txt (text/plain, 10 bytes)\n", &["completed: task "]),
        ("url", 0, "file output.txt (text/plain) at https://example.com/output.txt\n", &["completed: task "]),
        ("tool Bash", 0, "echo: tool Bash\n", &["tool Bash\n", "completed: task "]),
        ("fail the disk is full", 1, "", &["failed: task ", "sabir: the task failed: the disk is full\n"]),
        ("reject not my job", 7, "", &["rejected: task ", "sabir: the agent rejected the task: not my job\n"]),
        ("ask Which day?", 6, "", &["Which day?\n", "input-required: task ", "sabir: the task waits for an answer"]),
        ("a\u{1b}[2J\rb\u{7}", 0, "echo: a\u{fffd}[2Jb\u{fffd}\n", &["completed: task "]),
    ] {
        let outcome = client.run_text("send", &[text]);
        assert_eq!((outcome.code, outcome.text.as_str()), (code, expected), "{text}: {}", outcome.errors);
        let mut rest = outcome.errors.as_str();
        for remark in remarks {
            rest = rest.split_once(remark).unwrap_or_else(|| panic!("{text}: no {remark:?} in {}", outcome.errors)).1;
        }
        assert_eq!(outcome.errors.is_empty(), remarks.is_empty(), "{text}: {}", outcome.errors);
    }
}

#[test]
fn a_task_and_a_list_are_shown_to_people() {
    let client = ClientFixture::new();
    let task = client.sent("hello");
    let (id, context) = (task["id"].as_str().unwrap(), task["contextId"].as_str().unwrap());
    let time = task["status"]["timestamp"].as_str().unwrap();
    let shown = client.run_text("get", &[id, "--history", "5"]).text;
    let expected = format!(
        "task     {id}\ncontext  {context}\nstate    completed since {time}\n\ncaller: hello\n\nartifact result\necho: hello\n"
    );
    assert_eq!(shown, expected);
    let waiting = client.sent("ask Which\u{1b} day?");
    let shown = client.run_text("get", &[waiting["id"].as_str().unwrap()]).text;
    assert!(shown.ends_with("\n\nWhich\u{fffd} day?\n"), "{shown}");
    let list = client.run_text("list", &[]).text;
    let lines: Vec<&str> = list.lines().collect();
    assert_eq!(lines.len(), 3, "{list}");
    assert!(lines[1].contains("input-required") && lines[1].ends_with("Which\u{fffd} day?"), "{list}");
    assert!(lines[2].contains(id) && lines[2].contains("completed") && lines[2].contains(context), "{list}");
    assert_eq!(client.run_text("list", &["--state", "failed"]).text, "There are no such tasks.\n");
    let working = client.working();
    let canceled = client.run_text("cancel", &[&working]).text;
    assert!(canceled.starts_with(&format!("canceled: task {working} in context ")), "{canceled}");
}

#[test]
fn an_answer_names_its_question_and_a_task_that_does_not_wait_gets_none() {
    let script = "echo 'Run rm -rf build? [Y/n]'\nread -r answer\necho \"{\\\"type\\\":\\\"result\\\",\\\"summary\\\":\\\"$answer\\\"}\"\n";
    let program = crate::program_fixture::ProgramFixture::new(script);
    let client = ClientFixture::of(program.serve_apart("generic", "approve = \"ask\"\n"));
    let summary = |outcome: &Outcome| {
        let artifacts = outcome.last()["task"]["artifacts"].as_array().cloned().unwrap_or_default();
        let result = artifacts.into_iter().find(|artifact| artifact["name"] == "result").unwrap_or_default();
        result["parts"][0]["data"]["summary"].as_str().unwrap_or_default().to_owned()
    };
    for (words, expected) in [(&["yes"][..], "y"), (&["no"], "n"), (&["2"], "n"), (&["do", "not"], "n")] {
        let waiting = client.sent("go");
        let id = waiting["id"].as_str().unwrap();
        let parts = waiting["status"]["message"]["parts"].as_array().unwrap();
        let question = parts.iter().find_map(|part| part["data"]["questionId"].as_str()).unwrap();
        let outcome = client.run("answer", &[&[id], words, &["--raw"]].concat());
        assert_eq!((outcome.code, summary(&outcome).as_str()), (0, expected), "{words:?}: {}", outcome.errors);
        let named = format!(r#""metadata":{{"questionId":"{question}"}}"#);
        assert!(outcome.errors.contains(&named), "{words:?}: {}", outcome.errors);

        let again = client.run("answer", &[&[id], words].concat());
        assert_eq!((again.code, &again.last()["error"]["code"]), (7, &json!("SABIR_ERR_NOT_WAITING")));
        assert!(again.errors.contains("does not wait for an answer, it is completed"), "{}", again.errors);
    }
    assert_eq!(client.run("list", &[]).lines.iter().filter(|task| task["id"].is_string()).count(), 4, "no task more");
    let unknown = client.run("answer", &["nobody", "yes"]);
    assert_eq!((unknown.code, &unknown.last()["error"]["code"]), (7, &Value::from("TaskNotFoundError")));
}
