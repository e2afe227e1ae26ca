//! Questions of agents: as forms where the client has them, as text where it has none.

use sabir_doors::mcp::McpHeaders;
use sabir_engine::Answer;
use sabir_model::{
    AgentId, Birth, Call, Caller, Get, IncomingMessage, OnUnknown, Part, QuestionId, Role, Send, State, TaskId, Wanted,
};
use serde_json::{Value, json};

use crate::mcp_fixture::{DoorFixture, SESSION_WITH_FORMS, finish, next_request};

fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_default()
}

#[tokio::test]
async fn without_forms_a_question_is_text_and_a_tool_answers_it() {
    let fixture = DoorFixture::new().await;
    let asked = fixture.tool("ask_agent", json!({"message": "ask which day?"})).await;
    assert!(text(&asked).starts_with("The agent asks: which day?\nCall answer_task"), "{asked}");
    let (task, question) = (&asked["structuredContent"]["task"], &asked["structuredContent"]["question"]["id"]);
    for wrong in ["q999-0000000000000000", "q999", "x"] {
        let wrong = json!({"task": task, "answer": "Monday", "question": wrong});
        assert_eq!(fixture.tool("answer_task", wrong.clone()).await["isError"], true, "{wrong}");
    }
    let answer = json!({"task": task, "answer": "Monday", "question": question});
    assert_eq!(text(&fixture.tool("answer_task", answer.clone()).await), "answered: Monday");
    assert_eq!(fixture.tool("answer_task", answer).await["isError"], true, "it is answered");
}

#[tokio::test]
async fn a_form_is_shown_in_the_middle_of_a_call() {
    let fixture = DoorFixture::new().await;
    for (message, content, expected) in [
        ("ask which day?", json!({"answer": "Monday"}), "answered: Monday"),
        ("permission", json!({"choice": "yes1"}), "\"optionId\":\"yes1\""),
        ("permission", json!({"choice": "no1"}), "\"optionId\":\"no1\""),
    ] {
        let mut call = fixture.begin("ask_agent", json!({"message": message})).await;
        let answered = async {
            let request = next_request(&mut call.messages).await;
            assert_eq!(request["method"], "elicitation/create");
            let property = content.as_object().unwrap().keys().next().unwrap();
            assert_eq!(request["params"]["requestedSchema"]["required"], json!([property]), "{request}");
            fixture.respond(&request["id"], json!({"action": "accept", "content": content})).await;
            while call.messages.recv().await.is_some() {}
        };
        let (response, ()) = tokio::join!(call.response, answered);
        let response: Value = serde_json::from_slice(&response).unwrap();
        assert!(text(&response["result"]).contains(expected), "{message}: {response}");
    }
}

#[tokio::test]
async fn permission_is_asked_for_all_that_a_tool_gets() {
    let fixture = DoorFixture::new().await;
    let input = format!("\"command\": \"ls {}; rm -rf /\u{fffd}\"", "x".repeat(1000));
    let expected = format!("tool Bash with {{\n  {input}\n}}\nRun it?\u{fffd}");

    let mut call = fixture.begin("ask_agent", json!({"message": "tool"})).await;
    let request = tokio::select! {
        request = next_request(&mut call.messages) => request,
        _ = &mut call.response => panic!("the call waits for its answer"),
    };
    assert_eq!(request["params"]["message"], *expected, "{request}");
    assert!(request["params"].to_string().contains("Allow\u{fffd}"), "{request}");

    let asked = fixture.tool("ask_agent", json!({"message": "tool"})).await;
    assert!(text(&asked).starts_with(&format!("The agent asks: {expected}\n- Allow\u{fffd} (yes1)\n")), "{asked}");
    assert_eq!(asked["structuredContent"]["question"]["text"], *expected, "{asked}");
}

#[tokio::test]
async fn a_form_that_is_closed_leaves_the_question_open() {
    let fixture = DoorFixture::new().await;
    for (message, result) in [
        ("ask which day?", json!({"action": "cancel"})),
        ("ask which day?", json!({"action": "decline"})),
        ("permission", json!({"action": "cancel"})),
    ] {
        let mut call = fixture.begin("ask_agent", json!({"message": message})).await;
        let closed = async {
            let request = next_request(&mut call.messages).await;
            fixture.respond(&request["id"], result).await;
            while call.messages.recv().await.is_some() {}
        };
        let (response, ()) = tokio::join!(call.response, closed);
        let response: Value = serde_json::from_slice(&response).unwrap();
        let data = &response["result"]["structuredContent"];
        assert_eq!(data["next"], "answer_task", "{response}");
        // Words and data say it both: hosts show their model one of them.
        let words = response["result"]["content"][0]["text"].as_str().unwrap();
        for told in [words, data["note"].as_str().unwrap()] {
            assert!(told.starts_with("The user closed the question without an answer."), "{response}");
        }
    }
}

#[tokio::test]
async fn a_permission_that_is_declined_is_denied() {
    let fixture = DoorFixture::new().await;
    let mut call = fixture.begin("ask_agent", json!({"message": "permission"})).await;
    let declined = async {
        let request = next_request(&mut call.messages).await;
        fixture.respond(&request["id"], json!({"action": "decline"})).await;
        while call.messages.recv().await.is_some() {}
    };
    let (response, ()) = tokio::join!(call.response, declined);
    let response: Value = serde_json::from_slice(&response).unwrap();
    assert!(text(&response["result"]).contains("\"approved\":false"), "{response}");
}

#[tokio::test]
async fn an_answer_that_comes_after_its_call_counts() {
    let fixture = DoorFixture::new().await;
    let mut call = fixture.begin("ask_agent", json!({"message": "ask which day?"})).await;
    let request = tokio::select! {
        request = next_request(&mut call.messages) => request,
        _ = &mut call.response => panic!("the call waits for its answer"),
    };
    // The host has gone, and comes back with the answer.
    drop(call);
    fixture.respond(&request["id"], json!({"action": "accept", "content": {"answer": "Monday"}})).await;
    let task = task_of(&request["id"]);
    assert_eq!(text(&fixture.tool("wait_task", json!({"task": task})).await), "answered: Monday");
}

#[tokio::test]
async fn a_modern_client_comes_back_with_the_answer() {
    let fixture = DoorFixture::new().await;
    let forms = json!({"elicitation": {}});
    let call = |more: Value| {
        let mut params = json!({"name": "ask_agent", "arguments": {"message": "ask which day?"}});
        for (name, value) in more.as_object().unwrap() {
            params[name] = value.clone();
        }
        params
    };
    let (_, asked) = fixture.ask_modern(forms.clone(), "tools/call", call(json!({}))).await;
    let result = &asked["result"];
    assert_eq!(result["resultType"], "input_required", "{asked}");
    let state = &result["requestState"];
    let requests = result["inputRequests"].as_object().unwrap();
    let name = requests.keys().next().unwrap();
    assert_eq!(requests[name]["method"], "elicitation/create");
    // Without the answer it is asked again; nothing is begun anew.
    let (_, again) = fixture.ask_modern(forms.clone(), "tools/call", call(json!({"requestState": state}))).await;
    assert_eq!(again["result"]["requestState"], *state, "{again}");
    let response = json!({"action": "accept", "content": {"answer": "Monday"}});
    let answered = call(json!({"requestState": state, "inputResponses": {name: response}}));
    let (_, done) = fixture.ask_modern(forms.clone(), "tools/call", answered).await;
    assert_eq!((text(&done["result"]), &done["result"]["resultType"]), ("answered: Monday", &json!("complete")));
    for forged in ["sabir-question.q1-0000000000000000.ZWNobw.eA", "x", ""] {
        let (_, refused) = fixture.ask_modern(forms.clone(), "tools/call", call(json!({"requestState": forged}))).await;
        assert!(text(&refused["result"]).contains("requestState"), "{refused}");
    }
}

/// The task of which a request of the server speaks.
fn task_of(id: &Value) -> String {
    let encoded = id.as_str().unwrap().split('.').nth(3).unwrap();
    String::from_utf8(sabir_model::from_base64url(encoded).unwrap()).unwrap()
}

#[tokio::test]
async fn only_the_tool_that_asked_takes_the_answer() {
    let fixture = DoorFixture::new().await;
    let forms = json!({"elicitation": {}});
    let asking = json!({"name": "ask_echo", "arguments": {"message": "permission"}});
    let (_, asked) = fixture.ask_modern(forms.clone(), "tools/call", asking).await;
    let state = asked["result"]["requestState"].as_str().unwrap().to_owned();
    let task = task_of(&json!(state));
    let accept = json!({"action": "accept", "content": {"choice": "yes1"}});
    for (tool, arguments) in [
        ("list_agents", json!({})),
        ("get_task", json!({"task": task})),
        ("wait_task", json!({"task": "other"})),
        ("ask_hidden", json!({"message": "x"})),
        ("coding_agent_info", json!({})),
    ] {
        let retry =
            json!({"name": tool, "arguments": arguments, "requestState": state, "inputResponses": {&state: accept}});
        let (_, refused) = fixture.ask_modern(forms.clone(), "tools/call", retry).await;
        assert_eq!(refused["result"]["isError"], true, "{tool}: {refused}");
    }
    let look = fixture.tool("get_task", json!({"task": task})).await;
    assert_eq!(look["structuredContent"]["state"], "input-required");
    let retry = json!({"name": "wait_task", "arguments": {"task": task}, "requestState": state, "inputResponses": {&state: accept}});
    let (_, done) = fixture.ask_modern(forms, "tools/call", retry).await;
    assert_eq!(done["result"]["structuredContent"]["state"], "completed", "{done}");
}

/// Callers of 0.1 choose ids, so tasks of two agents may have the same.
#[tokio::test]
async fn an_answer_goes_to_the_agent_that_asked() {
    let fixture = DoorFixture::new().await;
    for agent in ["echo", "hidden"] {
        let mut message = IncomingMessage::new(None, Role::User, vec![Part::text("ask which day?")]);
        message.task = Some(TaskId::parse("same").unwrap());
        let mut send = Send::new(message, Birth(1));
        send.on_unknown = OnUnknown::Create;
        send.agent = Some(AgentId::parse(agent).unwrap());
        fixture.engine.call(&Caller::anonymous(), Call::Send(Box::new(send))).await.unwrap();
    }
    // The message answers the first question, and the task is done: that of the other agent still asks.
    let response = finish(fixture.begin("ask_hidden", json!({"message": "ask again", "task": "same"})).await).await;
    assert_eq!(text(&response["result"]), "answered: ask again");
    let question = QuestionId::issue(&TaskId::parse("same").unwrap(), 3);
    let name = |agent: &str| {
        let encoded = |text: &str| sabir_model::base64url(text.as_bytes());
        json!(format!("sabir-question.{question}.{}.{}", encoded(agent), encoded("same")))
    };
    let accept = json!({"action": "accept", "content": {"answer": "Monday"}});
    fixture.respond(&name("hidden"), accept.clone()).await;
    assert_eq!(state_at(&fixture, "echo").await, State::InputRequired);
    fixture.respond(&name("echo"), accept).await;
    let waited = fixture.tool("wait_task", json!({"task": "same"})).await;
    assert_eq!(text(&waited), "answered: Monday", "{waited}");
}

async fn state_at(fixture: &DoorFixture, agent: &str) -> State {
    let get = Get {
        agent: Some(AgentId::parse(agent).unwrap()),
        task: TaskId::parse("same").unwrap(),
        history: None,
        earlier: Wanted::No,
    };
    match fixture.engine.call(&Caller::anonymous(), Call::Get(get)).await.unwrap() {
        Answer::Task(task) => task.status.state,
        _ => panic!("a task"),
    }
}

#[tokio::test]
async fn without_the_right_to_answer_nobody_is_asked() {
    let fixture = DoorFixture::new().await;
    let ann = || Caller::new("", "ann");
    let body = |tool: &str, arguments: Value| {
        let params = json!({"name": tool, "arguments": arguments});
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string()
    };
    let ask = body("ask_agent", json!({"message": "ask which day?"}));
    let (_, asked) = fixture.post(&ann().with_scopes(["run"]), Default::default(), &ask).await;
    let task = &asked["result"]["structuredContent"]["task"];
    let forms = || McpHeaders { session: Some(SESSION_WITH_FORMS), ..McpHeaders::default() };
    let wait = body("wait_task", json!({"task": task}));
    let (_, looked) = fixture.post(&ann().with_scopes(["read"]), forms(), &wait).await;
    assert_eq!(looked["result"]["structuredContent"]["next"], "wait_task", "{looked}");
    assert!(text(&looked["result"]).contains("may not answer"), "{looked}");
}

#[tokio::test]
async fn a_form_that_nobody_can_show_is_not_waited_for() {
    let fixture = DoorFixture::new().await;
    let call = fixture.begin("ask_agent", json!({"message": "ask which day?"})).await;
    drop(call.messages);
    let response: Value = serde_json::from_slice(&call.response.await).unwrap();
    assert_eq!(response["result"]["structuredContent"]["next"], "answer_task", "{response}");
}

#[tokio::test]
async fn a_form_of_somebody_else_closes_nothing() {
    let fixture = DoorFixture::new().await;
    let mut call = fixture.begin("ask_agent", json!({"message": "ask which day?"})).await;
    let talk = async {
        let request = next_request(&mut call.messages).await;
        // Another owner names it, and it is none of theirs.
        let close = json!({"jsonrpc": "2.0", "id": request["id"], "result": {"action": "cancel"}}).to_string();
        let bob = Caller::new("", "bob").with_scopes(["run"]);
        assert_eq!(fixture.post(&bob, Default::default(), &close).await.0, 202);
        fixture.respond(&request["id"], json!({"action": "accept", "content": {"answer": "Monday"}})).await;
        while call.messages.recv().await.is_some() {}
    };
    let (response, ()) = tokio::join!(call.response, talk);
    let response: Value = serde_json::from_slice(&response).unwrap();
    assert_eq!(text(&response["result"]), "answered: Monday");
}

#[tokio::test]
async fn a_modern_client_is_asked_once() {
    let fixture = DoorFixture::new().await;
    let forms = json!({"elicitation": {}});
    for (message, response, expected) in [
        ("permission", json!({"action": "accept", "content": {"choice": "yes1"}}), "\"optionId\":\"yes1\""),
        ("permission", json!({"action": "decline"}), "\"approved\":false"),
        ("permission", json!({"action": "cancel"}), "Call answer_task"),
        ("ask which day?", json!({"action": "decline"}), "Call answer_task"),
        ("ask which day?", json!({"action": "cancel"}), "Call answer_task"),
        ("ask which day?", json!({"action": "accept", "content": {"answer": "Monday"}}), "answered: Monday"),
    ] {
        let call = json!({"name": "ask_agent", "arguments": {"message": message}});
        let (_, asked) = fixture.ask_modern(forms.clone(), "tools/call", call.clone()).await;
        let state = asked["result"]["requestState"].as_str().unwrap().to_owned();
        let mut retry = call;
        retry["requestState"] = json!(state);
        retry["inputResponses"] = json!({state: response});
        let (_, done) = fixture.ask_modern(forms.clone(), "tools/call", retry).await;
        assert_eq!(done["result"]["resultType"], "complete", "{message} {response}: {done}");
        assert!(text(&done["result"]).contains(expected), "{message} {response}: {done}");
    }
}

#[tokio::test]
async fn without_forms_a_modern_client_gets_text() {
    let fixture = DoorFixture::new().await;
    let call = json!({"name": "ask_agent", "arguments": {"message": "ask which day?"}});
    let (_, asked) = fixture.ask_modern(json!({}), "tools/call", call).await;
    assert_eq!(asked["result"]["resultType"], "complete");
    assert!(text(&asked["result"]).contains("Call answer_task"), "{asked}");
}

#[tokio::test]
async fn hints_do_not_delay_a_call_whose_client_reads_nothing() {
    let fixture = DoorFixture::new().await;
    let call = fixture.begin("ask_agent", json!({"message": "hi"})).await;
    drop(call.messages);
    let response: Value = serde_json::from_slice(&call.response.await).unwrap();
    assert_eq!(text(&response["result"]), "echo: hi");
    let _ = finish(fixture.begin("ask_agent", json!({"message": "hi"})).await).await;
}
