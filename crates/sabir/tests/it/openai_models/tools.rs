//! Models that use the tools of MCP servers.

use serde_json::{Value, json};

use super::fixture::{Front, Model, at_once, calls, frames, says, until};
use crate::program_fixture::{ProgramFixture, answer, message, reason, send, state};
use crate::server_fixture::ServerFixture;

/// An MCP server with four tools. It works in the folder of the server and leaves notes there.
pub const TOOLS: &str = r#"echo $$ > pid
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  say() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
  case "$line" in
    *'"method":"initialize"'*)
      echo 'not json at all'
      printf '{"jsonrpc":"2.0","id":"ours","method":"ping"}\n'
      say '{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"t","version":"1"}}' ;;
    *'"method":"tools/list"'*'"cursor":"2"'*)
      say '{"tools":[{"name":"hang","inputSchema":{"type":"object"}},{"name":"die"},{"name":""}]}' ;;
    *'"method":"tools/list"'*)
      say '{"nextCursor":"2","tools":[{"name":"work","description":"Does it","inputSchema":{"type":"object","properties":{"n":{"type":"integer"}}}},{"name":"fail"}]}' ;;
    *'"method":"tools/call"'*'"name":"work"'*)
      printf '%s\n' "$line" >> calls
      say '{"content":[{"type":"text","text":"worked"}]}' ;;
    *'"method":"tools/call"'*'"name":"fail"'*)
      say '{"content":[{"type":"text","text":"no luck"}],"isError":true}' ;;
    *'"method":"tools/call"'*'"name":"hang"'*) touch hangs ;;
    *'"method":"tools/call"'*'"name":"die"'*) echo 'gone for good' >&2; exit 3 ;;
    *'"id":"ours"'*) touch answered-ping ;;
    *'notifications/cancelled'*) touch cancelled ;;
  esac
done
"#;

struct Scene {
    model: Model,
    front: Front,
    _program: ProgramFixture,
}

impl Scene {
    fn new(script: Vec<super::fixture::Reply>, more: &str) -> Self {
        let program = ProgramFixture::new(TOOLS);
        let model = Model::new(script);
        let front = Front::new(&model, &format!("{more}\nmcp_servers.t = {{ command = [{:?}] }}", program.program()));
        Self { model, front, _program: program }
    }

    fn note(&self, name: &str) -> String {
        std::fs::read_to_string(self.front.folder.path().join(name)).unwrap_or_default()
    }
}

/// What the model was told last of its call.
fn last_result(model: &Model) -> String {
    model.last_messages().last().unwrap().strip_prefix("tool: ").expect("a result").to_owned()
}

#[test]
fn a_tool_is_called_and_its_result_goes_back() {
    let scene = Scene::new(vec![calls("work", &json!({"n": 1})), says("all done")], "");
    let server = scene.front.start();
    let task = send(&server, message("do it"));
    assert_eq!((state(&task), answer(&task)), ("COMPLETED", "all done"), "{task}");
    let asked = scene.model.asked();
    let names: Vec<&str> = asked[0].body["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["function"]["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["work", "fail", "hang", "die"]);
    assert_eq!(asked[0].body["tools"][0]["function"]["description"], "Does it");
    assert_eq!(asked[0].body["tools"][0]["function"]["parameters"]["properties"]["n"]["type"], "integer");
    let said = asked[1].body["messages"].as_array().unwrap();
    assert_eq!(said[2]["tool_calls"][0]["function"], json!({"name": "work", "arguments": "{\"n\":1}"}));
    assert_eq!((&said[3]["role"], &said[3]["tool_call_id"]), (&json!("tool"), &json!("c1")));
    assert_eq!(last_result(&scene.model), "worked");
    assert!(scene.note("calls").contains(r#""params":{"name":"work","arguments":{"n":1}}"#), "{}", scene.note("calls"));
    assert!(scene.front.folder.path().join("answered-ping").exists());
    // The next turn knows of the call.
    scene.model.answers_next(vec![says("again")]);
    let mut params = message("and now?");
    params["message"]["contextId"] = task["contextId"].clone();
    send(&server, params);
    let roles: Vec<Value> =
        scene.model.asked()[2].body["messages"].as_array().unwrap().iter().map(|said| said["role"].clone()).collect();
    assert_eq!(roles, ["system", "user", "assistant", "tool", "assistant", "user"]);
}

#[test]
fn tool_calls_are_shown_like_those_of_programs() {
    let scene = Scene::new(vec![calls("work", &json!({"n": 1})), calls("fail", &json!({})), says("done")], "");
    let server = scene.front.start();
    let shown = frames(&server, &message("do it"));
    for expected in [r#""phase":"started""#, r#""phase":"completed""#, r#""phase":"failed""#, "no luck", r#""n":1"#] {
        assert!(shown.contains(expected), "{expected}: {shown}");
    }
}

#[test]
fn whatever_goes_wrong_with_a_tool_is_told_to_the_model() {
    for (tool, arguments, expected) in [
        ("fail", json!({}), "no luck"),
        ("die", json!({}), "the tool server t failed: it has ended"),
        ("hang", json!({}), "the tool server t failed: it did not answer within 0.5 s"),
        ("unknown", json!({}), "there is no tool \"unknown\""),
        ("work", json!([1]), "the arguments are no JSON object; call the tool again with valid arguments"),
    ] {
        let scene = Scene::new(vec![calls(tool, &arguments), says("so be it")], "tool_timeout = \"500ms\"");
        let server = scene.front.start();
        let task = send(&server, message("do it"));
        assert_eq!((state(&task), answer(&task)), ("COMPLETED", "so be it"), "{tool}: {task}");
        assert_eq!(last_result(&scene.model), expected, "{tool}");
        if tool == "hang" {
            crate::program_fixture::wait_for("the notice", || scene.front.folder.path().join("cancelled").exists());
        }
    }
}

#[test]
fn a_server_that_cannot_be_used_costs_its_tools_and_no_more() {
    let program = ProgramFixture::new("echo 'I do not speak MCP'; exit 1");
    let model = Model::new(vec![says("without tools")]);
    let front = Front::new(
        &model,
        &format!(
            "mcp_servers.broken = {{ command = [{:?}] }}\nmcp_servers.away = {{ url = \"http://127.0.0.1:9/mcp\" }}",
            program.program()
        ),
    );
    let shown = frames(&front.start(), &message("hi"));
    assert!(shown.contains("TASK_STATE_COMPLETED") && shown.contains("without "), "{shown}");
    assert_eq!(model.asked()[0].body["tools"], Value::Null);
    for name in ["broken", "away"] {
        assert!(shown.contains(&format!("the tools of {name} are not available")), "{shown}");
    }
}

#[test]
fn a_model_that_calls_tools_for_ever_is_stopped() {
    let scene = Scene::new(vec![calls("work", &json!({}))], "max_tool_rounds = 2");
    let task = send(&scene.front.start(), message("go"));
    assert_eq!(state(&task), "FAILED", "{task}");
    assert!(reason(&task).contains("called tools more than 2 times in a row"), "{task}");
    let asked = scene.model.asked();
    assert_eq!(asked.len(), 3);
    assert_eq!((&asked[1].body["tool_choice"], &asked[2].body["tool_choice"]), (&Value::Null, &json!("none")));
    assert_eq!(scene.note("calls").lines().count(), 2);
}

#[test]
fn the_caller_may_be_asked_before_each_call() {
    for (words, expected, calls_made) in [("yes", "worked", 1), ("no", "the user did not permit this call", 0)] {
        let scene = Scene::new(vec![calls("work", &json!({"n": 7})), says("done")], "approve_tools = true");
        let server = scene.front.start();
        let task = send(&server, at_once(message("go")));
        let waiting = until(&server, &task["id"], "INPUT_REQUIRED");
        assert_eq!(scene.note("calls"), "");
        let question = waiting["status"]["message"]["parts"][1]["data"].clone();
        assert_eq!((&question["type"], &question["tool"]), (&json!("permission"), &json!("work")), "{waiting}");
        assert_eq!(question["input"], json!({"n": 7}));
        let mut params = message(words);
        params["message"]["taskId"] = task["id"].clone();
        server.rpc("SendMessage", params);
        until(&server, &task["id"], "COMPLETED");
        assert_eq!(last_result(&scene.model), expected);
        assert_eq!(scene.note("calls").lines().count(), calls_made);
    }
}

#[test]
fn the_agents_of_another_server_are_tools() {
    let other = ServerFixture::with_agents(&["demo"]);
    let arguments = json!({"agent": "demo", "message": "hi there"});
    let model = Model::new(vec![calls("ask_agent", &arguments), says("it echoes")]);
    let url = format!("http://{}/mcp", other.server.address);
    let front = Front::new(&model, &format!("mcp_servers.agents = {{ url = {url:?} }}"));
    let server = front.start();
    let task = send(&server, message("ask the demo agent"));
    assert_eq!((state(&task), answer(&task)), ("COMPLETED", "it echoes"), "{task}");
    assert!(last_result(&model).contains("echo: hi there"), "{}", last_result(&model));
}
