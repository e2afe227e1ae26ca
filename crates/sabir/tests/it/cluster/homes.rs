//! The home of a context: where a program keeps its sessions.

use serde_json::{Value, json};

use super::fixture::{ClusterFixture, id_of, status_text};
use crate::program_fixture::ProgramFixture;

/// Prints which node it runs on, and names a session.
const SESSION: &str = r#"cat > /dev/null
echo '{"type":"system","subtype":"init","session_id":"s1"}'
echo "{\"type\":\"result\",\"subtype\":\"success\",\"result\":\"ran in $HOME\",\"session_id\":\"s1\"}"
"#;

fn with_sessions(more: &str) -> Option<(ClusterFixture, ProgramFixture)> {
    let program = ProgramFixture::new(SESSION);
    let agent =
        program.agent("prog", "generic", &format!("shared_workspace = \"parallel\"\nprompt = \"stdin\"\n{more}"));
    let cluster = ClusterFixture::with_cluster(2, &agent, "home_timeout = \"3s\"")?;
    Some((cluster, program))
}

fn where_it_ran(task: &Value) -> String {
    let text = task["artifacts"].to_string();
    let place = text.find("ran in ").unwrap_or_else(|| panic!("{task}"));
    text[place..].split(['"', '\\']).next().unwrap().rsplit('/').next().unwrap().to_owned()
}

#[test]
fn later_turns_run_on_the_node_of_the_session() {
    let Some((mut cluster, _program)) = with_sessions("") else { return };
    let in_context = json!({"message": {"contextId": "c1"}});
    assert_eq!(where_it_ran(&cluster.send(0, "hello", in_context.clone())), "n0");
    assert_eq!(where_it_ran(&cluster.send(1, "hello again", in_context.clone())), "n0");
    assert_eq!(where_it_ran(&cluster.send(1, "elsewhere", Value::Null)), "n1");
    cluster.kill(0);
    let later = json!({"message": {"contextId": "c1"}, "configuration": {"returnImmediately": true}});
    let id = id_of(&cluster.send(1, "and again", later));
    cluster.until_state(1, &id, "TASK_STATE_FAILED");
    let task = cluster.rpc(1, "GetTask", json!({"id": id}))["result"].clone();
    assert!(status_text(&task).contains("node n0, which is gone"), "{task}");
}

#[test]
fn a_portable_agent_goes_on_elsewhere() {
    let Some((mut cluster, _program)) = with_sessions("portable = true") else { return };
    let in_context = json!({"message": {"contextId": "c1"}});
    assert_eq!(where_it_ran(&cluster.send(0, "hello", in_context.clone())), "n0");
    cluster.kill(0);
    assert_eq!(where_it_ran(&cluster.send(1, "and again", in_context)), "n1");
}
