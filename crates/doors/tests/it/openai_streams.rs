//! Answers as they grow.

use futures_util::StreamExt;
use sabir_doors::openai::ChatHeaders;
use sabir_model::{Caller, State};
use serde_json::{Value, json};

use crate::openai_fixture::{IN_CONTEXT, OpenAiFixture, text_of, user};

#[tokio::test]
async fn a_stream_has_the_role_the_text_the_end_and_the_cost() {
    let fixture = OpenAiFixture::new().await;
    let mut body = user("hello");
    body["stream_options"] = json!({"include_usage": true});
    let events = fixture.stream(ChatHeaders::default(), body).await;
    let (done, chunks) = events.split_last().unwrap();
    assert_eq!(done, "[DONE]");
    let chunks: Vec<Value> = chunks.iter().map(|data| serde_json::from_str(data).unwrap()).collect();
    assert!(chunks.iter().all(|chunk| chunk["object"] == "chat.completion.chunk" && chunk["id"] == chunks[0]["id"]));
    assert_eq!(chunks[0]["choices"][0]["delta"], json!({"role": "assistant", "content": ""}));
    assert_eq!(chunks[0]["choices"][0]["finish_reason"], Value::Null);
    let [.., finish, usage] = chunks.as_slice() else { panic!("{chunks:?}") };
    assert_eq!((&finish["choices"][0]["delta"], &finish["choices"][0]["finish_reason"]), (&json!({}), &json!("stop")));
    assert_eq!((&usage["choices"], &usage["usage"]["total_tokens"]), (&json!([]), &json!(0)));
    assert!(
        chunks[..chunks.len() - 1].iter().all(|chunk| chunk["usage"] == Value::Null && chunk.get("usage").is_some())
    );
    assert_eq!(text_of(&events), "echo: hello");
    let events = fixture.stream(ChatHeaders::default(), user("hello")).await;
    assert!(events.iter().all(|data| !data.contains("\"usage\"")), "it is not wanted: {events:?}");
}

#[tokio::test]
async fn text_comes_while_the_agent_works() {
    let fixture = OpenAiFixture::new().await;
    let mut body = user("grow");
    body["stream"] = json!(true);
    let chat = fixture.begin(&Caller::anonymous(), ChatHeaders::default(), &body).await.unwrap();
    let mut events = chat.events();
    let mut said = String::new();
    while said != "first" {
        let data = String::from_utf8(events.next().await.expect("the agent is at work")).unwrap();
        said.push_str(&text_of(&[data]));
        assert!("first".starts_with(&said), "{said}");
    }
    assert_eq!(fixture.tasks(None).await[0].status.state, State::Working);
    fixture.go.notify_one();
    let rest: Vec<String> = events.map(|data| String::from_utf8(data).unwrap()).collect().await;
    assert_eq!(text_of(&rest), " second\n\nthird");
}

#[tokio::test]
async fn a_failure_ends_the_stream_with_an_error() {
    let fixture = OpenAiFixture::new().await;
    let events = fixture.stream(ChatHeaders::default(), user("fail no luck")).await;
    let error: Value = serde_json::from_str(events.last().unwrap()).unwrap();
    assert_eq!((&error["error"]["code"], &error["error"]["param"]), (&json!("agent_failed"), &Value::Null));
    assert!(error["error"]["message"].as_str().unwrap().ends_with("failed: no luck"), "{error}");
}

#[tokio::test]
async fn a_program_that_goes_away_changes_nothing() {
    let fixture = OpenAiFixture::new().await;
    let headers = ChatHeaders { idempotency_key: Some("k"), ..ChatHeaders::default() };
    let mut body = user("grow");
    body["stream"] = json!(true);
    let mut events = fixture.begin(&Caller::anonymous(), headers.clone(), &body).await.unwrap().events();
    events.next().await.unwrap();
    drop(events);
    fixture.go.notify_one();
    // A repeated request has all of it.
    assert_eq!(fixture.say(headers, "grow").await, "first second\n\nthird");
    let tasks = fixture.tasks(None).await;
    assert_eq!((tasks.len(), tasks[0].status.state), (1, State::Completed));
}

#[tokio::test]
async fn a_question_ends_the_stream_and_its_answer_continues() {
    let fixture = OpenAiFixture::new().await;
    let events = fixture.stream(IN_CONTEXT, user("permission")).await;
    assert!(text_of(&events).contains("may I?"), "{events:?}");
    assert_eq!(events.last().unwrap(), "[DONE]");
    let events = fixture.stream(IN_CONTEXT, user("yes")).await;
    assert!(text_of(&events).starts_with("answered: yes "), "{events:?}");
}
