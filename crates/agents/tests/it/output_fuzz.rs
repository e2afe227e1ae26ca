//! Output formats on random input: nothing panics, and a turn ends once.

use proptest::collection::{hash_map, vec};
use proptest::prelude::*;
use sabir_agents::adapter::Exit;
use sabir_agents::output_formats::one_shot;
use sabir_agents::program::settings::Kind;
use sabir_agents::prompt::Prompt;
use serde_json::{Map, Value, json};

use crate::step_rows::read_output;

const KINDS: [Kind; 12] = [
    Kind::ClaudeCode,
    Kind::Codex,
    Kind::Gemini,
    Kind::Opencode,
    Kind::Goose,
    Kind::Copilot,
    Kind::Qwen,
    Kind::Vibe,
    Kind::Cursor,
    Kind::Acp,
    Kind::Generic,
    Kind::Command,
];

/// Values of `type`, and of similar members deeper in the line.
const WORDS: &str = "\
    system|system/init|init|permission_denied|api_retry|stream_event|assistant|user|tool_use|tool_result|result|\
    error|text|thinking|text_delta|thinking_delta|message_start|thread.started|item.started|item.completed|\
    turn.failed|turn.completed|agent_message|reasoning|command_execution|file_change|mcp_tool_call|web_search|\
    message|success|step_finish|stop|complete|toolRequest|toolResponse|session.tools_updated|\
    assistant.message_start|assistant.message_delta|assistant.reasoning_delta|assistant.message|\
    assistant.reasoning|tool.execution_start|tool.execution_complete|session.error|effect|callback|approval|\
    tool_call|started|completed|failed|write|edit|file_write|Ran into this error: x|20261115_3|{||[y/n]|\
    {\"message\":\"é\"}";

const NAMES: &str = "\
    type|subtype|message|content|event|delta|text|thinking|id|name|input|session_id|sessionId|sessionID|model|\
    is_error|usage|cost|result|errors|error|terminal_reason|input_tokens|output_tokens|total_cost_usd|\
    total_tokens|parent_tool_use_id|tool_use_id|tool_use_result|filePath|item|thread_id|command|\
    aggregated_output|exit_code|status|changes|path|role|tool_id|tool_name|parameters|output|stats|part|state|\
    tool|callID|tokens|cache|reason|toolCall|toolResult|value|data|deltaContent|toolCallId|exitCode|tool_call|\
    readToolCall";

fn one_of(words: &'static str) -> impl Strategy<Value = &'static str> + Clone {
    proptest::sample::select(words.split('|').collect::<Vec<_>>())
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(|number| json!(number)),
        one_of(WORDS).prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 64, 6, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            hash_map(one_of(NAMES), inner, 0..8).prop_map(object),
        ]
    })
}

fn object(members: std::collections::HashMap<&'static str, Value>) -> Value {
    members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect::<Map<_, _>>().into()
}

/// An object with a known type, so that the reader looks deeper.
fn line() -> impl Strategy<Value = String> {
    let members = hash_map(one_of(NAMES), value(), 0..8).prop_map(object);
    (members, one_of(WORDS)).prop_map(|(mut line, kind)| {
        line["type"] = kind.into();
        line.to_string()
    })
}

fn listen(lines: &[String], exit: Exit) {
    for kind in KINDS {
        let (_, mut adapter) = one_shot(kind, &Prompt::default());
        adapter.begin();
        read_output(&mut *adapter, &lines.join("\n"), exit);
    }
}

proptest! {
    #[test]
    fn any_text(lines in vec(any::<String>(), 0..6), code in any::<i32>()) {
        listen(&lines, Exit::Code(code));
    }

    #[test]
    fn any_line_of_a_known_type(lines in vec(line(), 0..6), code in -1i32..2) {
        listen(&lines, if code < 0 { Exit::Signal(-code) } else { Exit::Code(code) });
    }
}
