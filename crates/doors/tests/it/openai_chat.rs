//! Requests, what the agent gets of them, and what comes back.

use proptest::prelude::*;
use sabir_doors::openai::ChatHeaders;
use sabir_model::{Caller, Owner};
use serde_json::{Value, json};

use crate::openai_fixture::{IN_CONTEXT, OpenAiFixture, content, refused, user};

/// With no name: the owner of what callers without credentials do.
pub fn somebody(name: &str, scopes: &[&str]) -> Caller {
    let mut caller = Caller::anonymous();
    if !name.is_empty() {
        caller.owner = Owner::new("", name);
    }
    caller.scopes = Some(scopes.iter().map(ToString::to_string).collect::<Vec<_>>().into());
    caller
}

#[tokio::test]
async fn an_agent_is_a_model() {
    let fixture = OpenAiFixture::new().await;
    let list: Value = serde_json::from_slice(&fixture.door.models(&Caller::anonymous())).unwrap();
    let ids: Vec<&str> = list["data"].as_array().unwrap().iter().map(|model| model["id"].as_str().unwrap()).collect();
    assert_eq!((&list["object"], ids), (&json!("list"), vec!["echo", "guarded", "hidden"]));
    let stranger = somebody("", &[]);
    let list: Value = serde_json::from_slice(&fixture.door.models(&stranger)).unwrap();
    assert_eq!(list["data"].as_array().unwrap().len(), 2, "an agent that is not listed: {list}");
    let model: Value = serde_json::from_slice(&fixture.door.model(&stranger, "sabir/echo").unwrap()).unwrap();
    assert_eq!(
        (&model["id"], &model["object"], &model["owned_by"]),
        (&json!("echo"), &json!("model"), &json!("sabir"))
    );
    assert!(model["created"].as_u64().is_some_and(|created| created > 1_700_000_000));
    for name in ["hidden", "sabir/", "", "ECHO", "echo/"] {
        assert_eq!(refused(fixture.door.model(&stranger, name)), (404, "model_not_found".into()), "{name}");
    }
}

#[tokio::test]
async fn a_message_is_answered() {
    let fixture = OpenAiFixture::new().await;
    let mut body = user("hello");
    body["model"] = json!("sabir/echo");
    let chat = fixture.begin(&Caller::anonymous(), ChatHeaders::default(), &body).await.unwrap();
    let place = chat.place().unwrap().clone();
    let completion: Value = serde_json::from_slice(&chat.whole().await.unwrap()).unwrap();
    assert_eq!(completion["object"], "chat.completion");
    assert_eq!(completion["model"], "sabir/echo");
    assert_eq!(completion["id"], format!("chatcmpl-{}", place.task));
    assert_eq!(
        completion["choices"][0]["message"],
        json!({"role": "assistant", "content": "echo: hello", "refusal": null})
    );
    assert_eq!(completion["usage"], json!({"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}));
    let tasks = fixture.tasks(Some(&place.context)).await;
    assert_eq!(tasks.iter().map(|task| task.id.as_str()).collect::<Vec<_>>(), [place.task]);
}

#[tokio::test]
async fn a_request_without_a_context_is_a_task_of_its_own_with_the_conversation() {
    let fixture = OpenAiFixture::new().await;
    let body = json!({"model": "echo", "messages": [
        {"role": "system", "content": "be brief"}, {"role": "user", "content": "one"},
        {"role": "assistant", "content": "two"}, {"role": "user", "content": "three"}]});
    let said = content(&fixture.ask(ChatHeaders::default(), &body).await.unwrap());
    let expected = "echo: <instructions>\nbe brief\n</instructions>\n\nWhat was said in this conversation so far:\n<conversation>\n\
                    <user>\none\n</user>\n<assistant>\ntwo\n</assistant>\n</conversation>\n\nThe message to answer now:\n three";
    assert_eq!(said, expected);
    assert_eq!(fixture.say(ChatHeaders::default(), "again").await, "echo: again");
    let tasks = fixture.tasks(None).await;
    assert_eq!(tasks.len(), 2);
    assert_ne!(tasks[0].context, tasks[1].context);
    // Where programs have no id, they send an empty one.
    let empty = ChatHeaders { context: Some(" "), ..ChatHeaders::default() };
    assert_eq!(fixture.say(empty, "third").await, "echo: third");
    assert_eq!(fixture.tasks(None).await.len(), 3);
}

#[tokio::test]
async fn in_a_context_the_agent_gets_the_last_message_alone() {
    let fixture = OpenAiFixture::new().await;
    assert_eq!(fixture.say(IN_CONTEXT, "one").await, "echo: one");
    let body = json!({"model": "echo", "messages": [
        {"role": "user", "content": "one"}, {"role": "assistant", "content": "echo: one"}, {"role": "user", "content": "two"}]});
    assert_eq!(content(&fixture.ask(IN_CONTEXT, &body).await.unwrap()), "echo: two");
    let tasks = fixture.tasks(Some("c1")).await;
    assert_eq!(tasks.len(), 2, "each request is a task of the same context");
}

#[tokio::test]
async fn files_of_the_agent_are_markdown() {
    let fixture = OpenAiFixture::new().await;
    let expected = "see\n\n![a.png](data:image/png;base64,UE5H)\n\n[a.zip, application/zip, 3 bytes]";
    assert_eq!(fixture.say(ChatHeaders::default(), "artifact").await, expected);
}

#[tokio::test]
async fn a_file_for_an_agent_that_takes_none_is_refused() {
    let fixture = OpenAiFixture::new().await;
    let body = json!({"model": "echo", "messages": [{"role": "user", "content": [
        {"type": "text", "text": "look"}, {"type": "image_url", "image_url": {"url": "data:image/png;base64,UE5H"}}]}]});
    assert_eq!(refused(fixture.ask(ChatHeaders::default(), &body).await), (400, "unsupported_content".into()));
    assert!(fixture.tasks(None).await.is_empty());
}

#[tokio::test]
async fn wrong_requests_begin_nothing() {
    let fixture = OpenAiFixture::new().await;
    let runs_nothing = somebody("", &["read"]);
    let long = "x".repeat(2000);
    for (caller, headers, body, expected) in [
        (Caller::anonymous(), ChatHeaders::default(), json!({"model": "echo", "messages": []}), (400, "invalid_value")),
        (
            Caller::anonymous(),
            ChatHeaders::default(),
            json!({"model": "nobody", "messages": [{"role": "user", "content": "x"}]}),
            (404, "model_not_found"),
        ),
        (
            Caller::anonymous(),
            ChatHeaders { context: Some(&long), ..ChatHeaders::default() },
            user("x"),
            (400, "invalid_value"),
        ),
        (
            Caller::anonymous(),
            ChatHeaders { context: Some("\0"), ..ChatHeaders::default() },
            user("x"),
            (400, "invalid_value"),
        ),
        (
            Caller::anonymous(),
            ChatHeaders { idempotency_key: Some(&long), ..ChatHeaders::default() },
            user("x"),
            (400, "invalid_value"),
        ),
        (runs_nothing, ChatHeaders::default(), user("x"), (403, "permission_denied")),
    ] {
        let answered = fixture.begin(&caller, headers, &body).await;
        assert_eq!(refused(answered), (expected.0, expected.1.into()), "{body}");
    }
    assert!(fixture.tasks(None).await.is_empty());
}

#[tokio::test]
async fn what_the_agent_did_not_do_is_an_error_that_nobody_retries() {
    let fixture = OpenAiFixture::new().await;
    let refusal = fixture.ask(ChatHeaders::default(), &user("fail no\nluck")).await.unwrap_err();
    let body: Value = serde_json::from_slice(&refusal.body()).unwrap();
    assert_eq!((refusal.status, refusal.may_be_repeated()), (422, Some(false)));
    assert_eq!((&body["error"]["type"], &body["error"]["code"]), (&json!("agent_error"), &json!("agent_failed")));
    let message = body["error"]["message"].as_str().unwrap();
    let task = &fixture.tasks(None).await[0];
    assert_eq!(message, format!("task {} failed: no luck", task.id));
    assert_eq!(refusal.place.unwrap().task, task.id.as_str());
}

#[tokio::test]
async fn a_repeated_request_joins_its_task() {
    let fixture = OpenAiFixture::new().await;
    let headers = ChatHeaders { idempotency_key: Some("k1"), ..ChatHeaders::default() };
    for _ in 0..3 {
        assert_eq!(fixture.say(headers.clone(), "once").await, "echo: once");
    }
    assert_eq!(fixture.tasks(None).await.len(), 1);
}

#[tokio::test]
async fn two_at_once_in_one_context_take_turns() {
    let fixture = OpenAiFixture::new().await;
    let first = fixture.begin(&Caller::anonymous(), IN_CONTEXT, &user("wait one")).await.unwrap();
    let second = fixture.begin(&Caller::anonymous(), IN_CONTEXT, &user("two")).await.unwrap();
    fixture.go.notify_one();
    let (first, second) = tokio::join!(first.whole(), second.whole());
    let said = |body: Vec<u8>| content(&serde_json::from_slice(&body).unwrap());
    assert_eq!((said(first.unwrap()), said(second.unwrap())), ("waited".into(), "echo: two".into()));
}

#[tokio::test]
async fn a_context_of_somebody_else_is_another_one() {
    let fixture = OpenAiFixture::new().await;
    let alice = somebody("alice", &["run"]);
    assert!(fixture.say(IN_CONTEXT, "permission").await.contains("may I?"));
    let chat = fixture.begin(&alice, IN_CONTEXT, &user("yes")).await.unwrap();
    let said: Value = serde_json::from_slice(&chat.whole().await.unwrap()).unwrap();
    assert_eq!(content(&said), "echo: yes");
    // An admin sees the tasks of everybody, and answers none of them by talking.
    let admin = somebody("alice", &["admin"]);
    let chat = fixture.begin(&admin, IN_CONTEXT, &user("yes")).await.unwrap();
    let said: Value = serde_json::from_slice(&chat.whole().await.unwrap()).unwrap();
    assert_eq!(content(&said), "echo: yes");
    let open = fixture.tasks(Some("c1")).await;
    assert!(open.iter().any(|task| task.open_question().is_some()), "{open:?}");
}

#[tokio::test]
async fn titles_and_tags_start_no_run() {
    let fixture = OpenAiFixture::new().await;
    let prompt = "### Task:\nGenerate a concise title.\n### Output:\nJSON format: { \"title\": \"a\" }\n### Chat History:\n\
                  <chat_history>\nUSER: bake bread\nASSISTANT: gladly\n</chat_history>";
    for headers in [ChatHeaders::default(), IN_CONTEXT] {
        let chat = fixture.begin(&Caller::anonymous(), headers.clone(), &user(prompt)).await.unwrap();
        assert_eq!(chat.place(), None);
        assert_eq!(fixture.say(headers.clone(), prompt).await, r#"{"title":"bake bread"}"#);
        let events = fixture.stream(headers, user(prompt)).await;
        assert_eq!(crate::openai_fixture::text_of(&events), r#"{"title":"bake bread"}"#);
    }
    assert!(fixture.tasks(None).await.is_empty());
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[a-zé\\\\\"/ ]{0,12}".prop_map(Value::from),
        prop::sample::select(vec!["user", "assistant", "text", "image_url", "file", "data:,x", "yes"])
            .prop_map(Value::from),
    ];
    let known = prop::sample::select(vec![
        "role",
        "content",
        "type",
        "text",
        "image_url",
        "url",
        "file",
        "file_data",
        "input_audio",
        "tool_calls",
        "name",
    ]);
    leaf.prop_recursive(4, 32, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(known.clone().prop_map(str::to_owned), inner, 0..5)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn every_request_is_answered(messages in any_json(), options in any_json(), stream in any::<bool>()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let fixture = OpenAiFixture::new().await;
            let messages = if messages.is_array() { messages } else { json!([{"role": "user", "content": messages}]) };
            let mut body = json!({"model": "echo", "messages": messages, "stream_options": options});
            if stream {
                body["stream"] = json!(true);
            }
            match fixture.begin(&Caller::anonymous(), ChatHeaders::default(), &body).await {
                Ok(chat) => assert!(chat.whole().await.is_ok() || !fixture.tasks(None).await.is_empty(), "{body}"),
                Err(refusal) => {
                    assert!((400..500).contains(&refusal.status), "{body}");
                    assert!(fixture.tasks(None).await.is_empty(), "{body}");
                }
            }
        });
    }
}
