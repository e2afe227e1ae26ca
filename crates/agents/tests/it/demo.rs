use std::time::Duration;

use sabir_agents::DemoAgent;
use sabir_engine::{Answer, Inputs};
use sabir_model::{Base64, Call, Caller, Cancel, Content, Json, Message, OnFinishedCancel, Part, State};

use crate::engine_fixture::{engine, message, play, within};

#[tokio::test(start_paused = true)]
async fn every_word_does_what_the_table_says() {
    let engine = engine(DemoAgent::new(Inputs::Anything)).await;
    for (text, expected) in [
        ("hello", r#"Submitted Working result[text "echo: hello"]. Completed"#),
        ("  hello  ", r#"Submitted Working result[text "echo: hello"]. Completed"#),
        ("slow 2 hello", r#"Submitted Working result[text "echo: slow 2 hello"]. Completed"#),
        ("slow 2 fail late", "Submitted Working Failed(late)"),
        ("slow 1 slow 1 ask which?", "Submitted Working InputRequired(which?)"),
        ("slow soon", r#"Submitted Working result[text "echo: slow soon"]. Completed"#),
        (
            "stream 3 10",
            r#"Submitted Working result[text "chunk 1\n"] +result[text "chunk 2\n"] +result[text "chunk 3\n"]. Completed"#,
        ),
        ("stream 1 0", r#"Submitted Working result[text "chunk 1\n"]. Completed"#),
        ("fail", "Submitted Working Failed(failed)"),
        ("fail big boom", "Submitted Working Failed(big boom)"),
        ("reject", "Submitted Working Rejected(rejected)"),
        ("reject no", "Submitted Working Rejected(no)"),
        ("ask", "Submitted Working InputRequired(input required)"),
        ("auth", "Submitted Working AuthRequired(auth required)"),
        ("auth token please", "Submitted Working AuthRequired(token please)"),
        ("message", "reply(hello)"),
        ("message hi there", "reply(hi there)"),
        ("file", r#"Submitted Working result[bytes "Hello file" output.txt text/plain]. Completed"#),
        ("url", "Submitted Working result[url https://example.com/output.txt output.txt text/plain]. Completed"),
        ("data", r#"Submitted Working result[data {"key":"value","count":42}]. Completed"#),
        (
            "tool grep",
            r#"Submitted Working Working(Using tool: grep) Working(Tool result: grep is done) result[text "echo: tool grep"]. Completed"#,
        ),
        (
            "usage 12 7",
            r#"Submitted Working result (What was said, and what it cost)[text "echo: usage 12 7"]. Completed usage 12/7"#,
        ),
        ("history", "Submitted Working Completed"),
    ] {
        assert_eq!(play(&engine, message("m", vec![Part::text(text)])).await.1, expected, "{text:?}");
    }
}

#[tokio::test]
async fn other_parts_are_echoed_verbatim_and_in_order() {
    let engine = engine(DemoAgent::new(Inputs::Anything)).await;
    let file = Part {
        filename: Some("a.png".into()),
        media_type: Some("image/png".into()),
        ..Content::Bytes(Base64::encode(b"png")).into()
    };
    let data: Part = Content::Data(Json::parse(r#"{"b":12345678901234567}"#).unwrap()).into();
    for (parts, expected) in [
        (
            vec![Part::text("look"), file.clone(), Part::text("here"), data.clone()],
            r#"result[text "echo: look here", bytes "png" a.png image/png, data {"b":12345678901234567}]."#,
        ),
        (vec![data, file], r#"result[data {"b":12345678901234567}, bytes "png" a.png image/png]."#),
    ] {
        let (_, said) = play(&engine, message("m", parts)).await;
        assert_eq!(said, format!("Submitted Working {expected} Completed"));
    }
    let (_, said) = play(&engine, message("m", vec![Part::text("  ")])).await;
    assert_eq!(said, "Submitted Working Completed", "no parts, no artifact");
}

#[tokio::test]
async fn an_answer_continues_by_the_same_table() {
    let engine = engine(DemoAgent::new(Inputs::Anything)).await;
    let (task, _) = play(&engine, message("m1", vec![Part::text("ask which day?")])).await;
    let answer = |id: &str, text: &str| Message { task: task.clone(), ..message(id, vec![Part::text(text)]) };
    assert_eq!(play(&engine, answer("m2", "auth token?")).await.1, "snapshot Working AuthRequired(token?)");
    assert_eq!(play(&engine, answer("m3", "message done")).await.1, "snapshot Working Completed(done)");
}

#[tokio::test]
async fn history_tells_the_earlier_exchanges_of_its_context() {
    let engine = engine(DemoAgent::new(Inputs::Anything)).await;
    for text in ["one", "two"] {
        play(&engine, within("c1", message(text, vec![Part::text(text)]))).await;
    }
    play(&engine, within("c2", message("other", vec![Part::text("other")]))).await;
    let (_, said) = play(&engine, within("c1", message("h", vec![Part::text("history")]))).await;
    assert_eq!(said, r#"Submitted Working result[text "one\necho: one\ntwo\necho: two"]. Completed"#);
}

/// With a clock that runs: a paused one stands still while an agent never pauses.
#[tokio::test]
async fn slow_and_stream_can_be_canceled_at_any_time() {
    let engine = engine(DemoAgent::new(Inputs::Anything)).await;
    for text in ["slow 3600 x", "stream 1000 3600000", "stream 100000000 0"] {
        let played = tokio::spawn({
            let (engine, message) = (engine.clone(), within("c", message(text, vec![Part::text(text)])));
            async move { play(&engine, message).await }
        });
        tokio::time::sleep(Duration::from_millis(20)).await;
        let working = open_task(&engine).await;
        let on_finished = OnFinishedCancel::Refuse;
        let cancel = Call::Cancel(Cancel { agent: None, task: working, metadata: None, on_finished });
        let Answer::Task(task) = engine.call(&Caller::anonymous(), cancel).await.unwrap() else { panic!("a task") };
        assert_eq!(task.status.state, State::Canceled, "{text}");
        assert!(played.await.unwrap().1.ends_with("Canceled"));
    }
}

async fn open_task(engine: &sabir_engine::Engine) -> sabir_model::TaskId {
    let list = sabir_model::List {
        agent: None,
        context: None,
        state: Some(State::Working),
        since: None,
        page_size: 1,
        from: None,
        history: Some(0),
        artifacts: sabir_model::Wanted::No,
    };
    match engine.call(&Caller::anonymous(), Call::List(list)).await.unwrap() {
        Answer::Page(page) => page.tasks[0].id.clone(),
        _ => panic!("a page is expected"),
    }
}
