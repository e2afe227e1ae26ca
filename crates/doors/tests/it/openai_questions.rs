//! Questions of the agent in a conversation: with a context they are text that the next message answers, without one a permission
//! is refused.

use futures_util::StreamExt;
use sabir_doors::openai::ChatHeaders;
use sabir_model::{Birth, Call, Delivery, IncomingMessage, Part, QuestionId, Role, Send, State, TaskId};
use serde_json::json;

use crate::openai_chat::somebody;
use crate::openai_fixture::{IN_CONTEXT, OpenAiFixture, content, refused, text_of, user};

/// The id in the words of a question.
fn id_in(words: &str) -> String {
    let mut ids = words.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '-');
    let id = ids.rfind(|word| QuestionId::parse(word).is_some());
    id.unwrap_or_else(|| panic!("no id: {words}")).to_owned()
}

#[tokio::test]
async fn a_permission_is_granted_by_a_clear_yes_alone() {
    for (answer, granted) in [
        ("yes", true),
        ("Y", true),
        ("ok", true),
        ("approve", true),
        ("allow", true),
        ("no", false),
        ("n", false),
        ("deny", false),
        ("please do something else", false),
        ("yes, but not that folder", false),
        ("is it ok to say yes here?", false),
    ] {
        let fixture = OpenAiFixture::new().await;
        let question = fixture.say(IN_CONTEXT, "permission").await;
        assert!(question.contains("rm -rf build") && question.contains("may I?"), "{question}");
        assert!(question.contains("- Allow once (`yes1`)") && question.contains("Answer yes or no"), "{question}");
        let said = fixture.say(IN_CONTEXT, answer).await;
        assert!(said.starts_with("answered: "), "the reply has only what is new: {said}");
        let task = fixture.tasks(Some("c1")).await.remove(0);
        let message = task.history.last().unwrap();
        let choices = [("yes1", "allow_once"), ("no1", "reject_once")].map(|(id, kind)| sabir_model::Choice {
            id: id.into(),
            name: id.into(),
            kind: sabir_model::ChoiceKind::parse(kind),
        });
        let read = sabir_model::QuestionAnswer::read(message, &choices);
        assert_eq!(read.choice == Some(0), granted, "{answer}: {read:?}");
        assert_eq!(fixture.tasks(None).await.len(), 1, "an answer begins nothing");
    }
}

#[tokio::test]
async fn an_answer_may_name_its_question() {
    let fixture = OpenAiFixture::new().await;
    let question = fixture.say(IN_CONTEXT, "permission").await;
    let id = id_in(&question);
    let said = fixture.say(IN_CONTEXT, &format!("{id} yes")).await;
    assert!(said.starts_with("answered: yes ") && said.contains(&id), "{said}");
    // It is closed now.
    for late in [format!("{id} yes"), format!("yes `{id}`")] {
        assert_eq!(refused(fixture.ask(IN_CONTEXT, &user(&late)).await), (400, "question_closed".into()));
    }
    let other = QuestionId::issue(&TaskId::parse("t").unwrap(), 3);
    fixture.say(IN_CONTEXT, "permission").await;
    let answered = fixture.ask(IN_CONTEXT, &user(&format!("yes {other}"))).await;
    assert_eq!(refused(answered), (400, "question_closed".into()));
    let open = fixture.tasks(Some("c1")).await.iter().filter(|task| task.open_question().is_some()).count();
    assert_eq!(open, 1, "an answer to another question answers none");
}

#[tokio::test]
async fn words_answer_a_question_for_words() {
    let fixture = OpenAiFixture::new().await;
    let question = fixture.say(IN_CONTEXT, "ask Which day?").await;
    assert!(question.starts_with("Which day?") && question.contains("Answer it in the next message"), "{question}");
    assert!(fixture.say(IN_CONTEXT, "on Monday").await.starts_with("answered: on Monday"));
    // Nothing is open any more, so the next message is a turn.
    assert_eq!(fixture.say(IN_CONTEXT, "yes").await, "echo: yes");
}

#[tokio::test]
async fn instructions_are_no_part_of_an_answer() {
    let fixture = OpenAiFixture::new().await;
    let question = fixture.say(IN_CONTEXT, "permission").await;
    let body = serde_json::json!({"model": "echo", "messages": [
        {"role": "system", "content": "never say no"}, {"role": "user", "content": "permission"},
        {"role": "assistant", "content": question}, {"role": "user", "content": "yes"}]});
    let said = content(&fixture.ask(IN_CONTEXT, &body).await.unwrap());
    assert!(said.starts_with("answered: yes "), "{said}");
}

#[tokio::test]
async fn of_several_questions_one_must_be_named() {
    let fixture = OpenAiFixture::new().await;
    let first = fixture.say(IN_CONTEXT, "ask one?").await;
    let task = fixture.tasks(Some("c1")).await.remove(0);
    assert_eq!(task.status.state, State::InputRequired);
    // A second task of the context waits until the first has its answer, so a second question is of another agent.
    let mut other = user("ask two?");
    other["model"] = serde_json::json!("hidden");
    let second = content(&fixture.ask(IN_CONTEXT, &other).await.unwrap());
    assert_ne!(id_in(&first), id_in(&second));
    assert!(fixture.say(IN_CONTEXT, "for one").await.starts_with("answered: for one"), "each agent has its own");
}

#[tokio::test]
async fn without_a_context_a_permission_is_refused() {
    let fixture = OpenAiFixture::new().await;
    let said = fixture.say(ChatHeaders::default(), "permission").await;
    assert!(said.starts_with("[Refused, since this request names no context: rm -rf build"), "{said}");
    assert!(said.contains("X-Sabir-Context") && said.contains("answered: "), "{said}");
    let task = fixture.tasks(None).await.remove(0);
    assert_eq!(task.status.state, State::Completed);
    assert!(said.contains(r#""approved":false"#), "{said}");
    let streamed = text_of(&fixture.stream(ChatHeaders::default(), user("permission")).await);
    assert!(streamed.starts_with("[Refused") && streamed.contains(r#""approved":false"#), "{streamed}");
}

#[tokio::test]
async fn without_a_context_other_questions_say_how_to_answer() {
    let fixture = OpenAiFixture::new().await;
    let chat = fixture
        .begin(&sabir_model::Caller::anonymous(), ChatHeaders::default(), &user("ask Which day?"))
        .await
        .unwrap();
    let context = chat.place().unwrap().context.clone();
    let body: serde_json::Value = serde_json::from_slice(&chat.whole().await.unwrap()).unwrap();
    let said = content(&body);
    assert!(said.starts_with("Which day?") && said.contains(&format!("X-Sabir-Context: {context}")), "{said}");
    let headers = ChatHeaders { context: Some(&context), ..ChatHeaders::default() };
    assert!(fixture.say(headers, "Monday").await.starts_with("answered: Monday"));
}

#[tokio::test]
async fn a_question_for_an_approver_is_waited_for() {
    for headers in [ChatHeaders::default(), IN_CONTEXT] {
        let fixture = OpenAiFixture::new().await;
        let (alice, approver) = (somebody("alice", &["run"]), somebody("olga", &["ops"]));
        let mut body = user("permission");
        body["model"] = json!("guarded");
        body["stream"] = json!(true);
        let chat = fixture.begin(&alice, headers.clone(), &body).await.unwrap();
        let place = chat.place().unwrap().clone();
        let mut events = chat.events();
        let mut said = String::new();
        while !said.contains("only callers with the scope ops may answer") {
            said.push_str(&text_of(&[String::from_utf8(events.next().await.expect("it waits")).unwrap()]));
        }
        // Whoever asked cannot approve it by talking.
        let own = ChatHeaders { context: Some(&place.context), ..ChatHeaders::default() };
        let mut yes = user("yes");
        yes["model"] = json!("guarded");
        assert_eq!(refused(fixture.begin(&alice, own, &yes).await), (403, "permission_denied".into()));
        let mut answer = IncomingMessage::new(None, Role::User, vec![Part::text("yes")]);
        answer.task = Some(TaskId::parse(place.task).unwrap());
        let send = Send { delivery: Delivery::Immediately, ..Send::new(answer, Birth(10)) };
        fixture.engine.call(&approver, Call::Send(Box::new(send))).await.unwrap();
        let rest: Vec<String> = events.map(|data| String::from_utf8(data).unwrap()).collect().await;
        assert!(text_of(&rest).trim_start().starts_with("answered: yes"), "{rest:?}");
        assert_eq!(rest.last().unwrap(), "[DONE]");
    }
}

#[tokio::test]
async fn a_repeated_yes_answers_no_later_question() {
    let fixture = OpenAiFixture::new().await;
    let first = fixture.say(IN_CONTEXT, "permission twice").await;
    let conversation = |shown: &str| {
        json!({"model": "echo", "messages": [{"role": "user", "content": "permission twice"},
            {"role": "assistant", "content": shown}, {"role": "user", "content": "yes"}]})
    };
    let second = content(&fixture.ask(IN_CONTEXT, &conversation(&first)).await.unwrap());
    assert_ne!(id_in(&first), id_in(&second), "{second}");
    // The library repeats what was lost on the way, with the conversation and without.
    let repeated = ChatHeaders { retries: Some("1"), ..IN_CONTEXT };
    for again in
        [content(&fixture.ask(IN_CONTEXT, &conversation(&first)).await.unwrap()), fixture.say(repeated, "yes").await]
    {
        assert!(again.contains("was not taken as an answer") && id_in(&again) == id_in(&second), "{again}");
    }
    let task = fixture.tasks(Some("c1")).await.remove(0);
    assert!(task.open_question().is_some(), "{task:?}");
    let said = fixture.ask(IN_CONTEXT, &conversation(&second)).await.unwrap();
    assert!(content(&said).starts_with("answered: yes"), "{said}");
}

#[tokio::test]
async fn a_repeated_answer_with_a_key_joins() {
    let fixture = OpenAiFixture::new().await;
    for (key, names_question) in [("k1", false), ("k2", true)] {
        let id = id_in(&fixture.say(IN_CONTEXT, "permission").await);
        let headers = ChatHeaders { idempotency_key: Some(key), retries: Some("0"), ..IN_CONTEXT };
        let answer = if names_question { format!("{id} yes") } else { "yes".to_owned() };
        for _ in 0..3 {
            let said = fixture.say(headers.clone(), &answer).await;
            assert!(said.starts_with("answered: yes"), "{said}");
        }
    }
    assert_eq!(fixture.tasks(None).await.len(), 2);
}

#[tokio::test]
async fn a_repeated_request_with_a_key_shows_the_open_question_again() {
    let fixture = OpenAiFixture::new().await;
    // The message that began the task, and an answer behind which there is another question.
    let mut shown = Vec::new();
    for (key, message) in [("k1", "permission twice"), ("k2", "yes")] {
        let headers = ChatHeaders { idempotency_key: Some(key), ..IN_CONTEXT };
        for _ in 0..2 {
            shown.push(id_in(&fixture.say(headers.clone(), message).await));
        }
    }
    assert_eq!((&shown[0], &shown[2]), (&shown[1], &shown[3]));
    assert_ne!(shown[0], shown[2], "one yes answers one question");
    let open = fixture.tasks(None).await.remove(0).open_question().map(|id| id.to_string());
    assert_eq!(open.as_ref(), Some(&shown[2]));
}

#[tokio::test]
async fn a_yes_to_something_else_grants_no_permission() {
    let fixture = OpenAiFixture::new().await;
    let question = fixture.say(IN_CONTEXT, "permission").await;
    // The program left before the question came, and its user reads another one.
    let conversation = |shown: &str| {
        json!({"model": "echo", "messages": [{"role": "user", "content": "permission"},
            {"role": "assistant", "content": shown}, {"role": "user", "content": "yes"}]})
    };
    let again = content(&fixture.ask(IN_CONTEXT, &conversation("Shall I tell you more?")).await.unwrap());
    assert!(again.contains("was not taken as an answer") && id_in(&again) == id_in(&question), "{again}");
    assert!(fixture.tasks(None).await.remove(0).open_question().is_some());
    let said = content(&fixture.ask(IN_CONTEXT, &conversation(&again)).await.unwrap());
    assert!(said.starts_with("answered: yes"), "{said}");
}

#[tokio::test]
async fn a_repeated_message_is_no_answer_to_its_own_question() {
    let fixture = OpenAiFixture::new().await;
    let question = fixture.say(IN_CONTEXT, "ask Which day?").await;
    let repeated = ChatHeaders { retries: Some("1"), ..IN_CONTEXT };
    let again = fixture.say(repeated, "ask Which day?").await;
    assert!(again.contains("was not taken as an answer") && id_in(&again) == id_in(&question), "{again}");
    assert!(fixture.say(IN_CONTEXT, "Monday").await.starts_with("answered: Monday"));
}
