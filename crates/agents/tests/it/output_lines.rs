//! Output formats on made-up lines, for what no recording shows.

use sabir_agents::adapter::Adapter;
use sabir_agents::adapter::{Exit, Step};
use sabir_agents::output_formats::generic::Generic;
use sabir_agents::output_formats::{Approval, one_shot};
use sabir_agents::program::settings::Kind;
use sabir_agents::prompt::{Approve, Prompt};
use sabir_agents::update::{Choice, ChoiceKind, Question, Reply};

use crate::step_rows::{read_output, rows};

fn check(kind: Kind, lines: &[&str], exit: Exit, expected: &[&str]) {
    let (_, mut adapter) = one_shot(kind, &Prompt::default());
    let rows_read = read_output(&mut *adapter, &lines.join("\n"), exit);
    assert_eq!(rows_read.lines().collect::<Vec<_>>(), expected, "{lines:#?}");
}

#[test]
fn cursor() {
    check(
        Kind::Cursor,
        &[
            r#"{"type":"system","subtype":"init","apiKeySource":"login","cwd":"/w","session_id":"s1","model":"M","permissionMode":"default"}"#,
            r#"{"type":"user","message":{"role":"user","content":[{"type":"text","text":"read it"}]},"session_id":"s1"}"#,
            r#"{"type":"thinking","subtype":"delta","text":"Hm.","session_id":"s1"}"#,
            r#"{"type":"assistant","message":{"role":"assistant","content":[{"type":"text","text":"I will read it."}]},"session_id":"s1"}"#,
            r#"{"type":"tool_call","subtype":"started","call_id":"c1","tool_call":{"readToolCall":{"args":{"path":"a.txt"}}},"session_id":"s1"}"#,
            r#"{"type":"tool_call","subtype":"completed","call_id":"c1","tool_call":{"readToolCall":{"args":{"path":"a.txt"},"result":{"success":{"content":"one\n","totalLines":1}}}}}"#,
            r#"{"type":"tool_call","subtype":"started","call_id":"c2","tool_call":{"writeToolCall":{"args":{"path":"b.txt","fileText":"x"}}}}"#,
            r#"{"type":"tool_call","subtype":"completed","call_id":"c2","tool_call":{"writeToolCall":{"args":{"path":"b.txt"},"result":{"success":{"path":"/w/b.txt","fileSize":1}}}}}"#,
            r#"{"type":"tool_call","subtype":"started","call_id":"c3","tool_call":{"function":{"name":"grep","arguments":"{}"}}}"#,
            r#"{"type":"tool_call","subtype":"completed","call_id":"c3","tool_call":{"function":{"name":"grep","result":{"rejected":{"reason":"no"}}}}}"#,
            r#"{"type":"result","subtype":"success","duration_ms":12.5,"is_error":false,"result":"I read it.","session_id":"s1","usage":{"inputTokens":10,"outputTokens":2,"cacheReadTokens":5,"cacheWriteTokens":0}}"#,
        ],
        Exit::Code(0),
        &[
            "init s1 M",
            r#"thought "Hm.""#,
            r#"text "I will read it.""#,
            r#"tool c1 read {"path":"a.txt"}"#,
            r#"result c1 read ok "one\n""#,
            r#"tool c2 write {"path":"b.txt","fileText":"x"}"#,
            r#"result c2 write ok "{\"success\":{\"path\":\"/w/b.txt\",\"fileSize\":1}}""#,
            "file /w/b.txt",
            r#"tool c3 grep "{}""#,
            r#"result c3 grep error "{\"rejected\":{\"reason\":\"no\"}}""#,
            "spent 15 2",
            r#"done "I read it.""#,
        ],
    );
    check(Kind::Cursor, &[], Exit::Code(0), &[]);
    check(
        Kind::Cursor,
        &[r#"{"type":"result","subtype":"success","is_error":true,"result":"no credit"}"#],
        Exit::Code(1),
        &[r#"failed "no credit""#],
    );
}

#[test]
fn the_simple_lines_of_old() {
    for kind in [Kind::Generic, Kind::ClaudeCode, Kind::Cursor] {
        check(
            kind,
            &[
                r#"{"type":"system/init","model":"m","sessionId":"s"}"#,
                r#"{"type":"assistant","message":{"content":[{"type":"text","text":"Let me "},{"type":"text","text":"see."}]}}"#,
                r#"{"type":"assistant","message":{"content":[{"type":"text","text":""}]}}"#,
                r#"{"type":"tool_use","name":"shell","input":{"command":"ls"}}"#,
                r#"{"type":"tool_result","content":"a.txt"}"#,
                r#"{"type":"tool_use","name":"read","input":{}}"#,
                r#"{"type":"tool_result","content":[{"type":"text","text":"one"},{"type":"image"},{"type":"text","text":"two"}]}"#,
                r#"{"type":"result","cost":{"input_tokens":12,"output_tokens":3}}"#,
                r#"{"type":"assistant","message":{"content":[{"type":"text","text":"too late"}]}}"#,
            ],
            Exit::Code(0),
            &[
                "init s m",
                r#"text in 2 pieces "Let me see.""#,
                r#"tool call-1 shell {"command":"ls"}"#,
                r#"result call-1 - ok "a.txt""#,
                "tool call-2 read {}",
                r#"result call-2 - ok "one\ntwo""#,
                "spent 12 3",
                "done -",
                "close input",
            ][..if kind == Kind::Generic { 9 } else { 8 }],
        );
    }
}

#[test]
fn how_a_generic_program_ends() {
    for (line, exit, expected) in [
        (r#"{"type":"system","subtype":"init","session_id":"s"}"#, Exit::Code(0), &["init s -"][..]),
        (r#"{"type":"system","subtype":"init","session_id":"s"}"#, Exit::Code(1), &["init s -"]),
        (r#"{"type":"system","subtype":"init","session_id":"s"}"#, Exit::Signal(15), &["init s -"]),
        (r#"{"type":"error","error":{"message":"no"}}"#, Exit::Code(0), &[r#"failed "no""#, "close input"]),
        (r#"{"type":"error","message":"no"}"#, Exit::Code(0), &[r#"failed "no""#, "close input"]),
        (r#"{"type":"error","error":"no"}"#, Exit::Code(0), &[r#"failed "no""#, "close input"]),
        (r#"{"type":"result","summary":"all"}"#, Exit::Code(1), &[r#"done "all""#, "close input"]),
        (r#"{"type":"result","result":"no","is_error":true}"#, Exit::Code(0), &[r#"failed "no""#, "close input"]),
    ] {
        check(Kind::Generic, &[line], exit, expected);
    }
}

#[test]
fn a_generic_program_asks_in_plain_text_only() {
    let asking = r#"ask question-1 "Delete build? [y/N]" [yes AllowOnce, no RejectOnce]"#;
    for (line, approve, expected) in [
        ("Delete build? [y/N] ", Approve::Ask, asking),
        ("Delete build? [y/N] ", Approve::All, r#"not understood "Delete build? [y/N] ""#),
        ("Delete build? [y/N] ", Approve::None, r#"not understood "Delete build? [y/N] ""#),
        (
            r#"{"type":"note","text":"say [Y/n]"}"#,
            Approve::Ask,
            r#"not understood "{\"type\":\"note\",\"text\":\"say [Y/n]\"}""#,
        ),
        (r#"{"type":"note","t":"cut [Y/n]"#, Approve::Ask, r#"not understood "{\"type\":\"note\",\"t\":\"cut [Y/n]""#),
        ("no question", Approve::Ask, r#"not understood "no question""#),
        (" ", Approve::Ask, ""),
    ] {
        let (_, mut adapter) = one_shot(Kind::Generic, &Prompt { approve, ..Prompt::default() });
        assert_eq!(rows(&adapter.on_line(line)).trim_end(), expected, "{line} {approve:?}");
    }
}

/// A `generic` program's author sees lines that are not understood; other programs may print anything.
#[test]
fn a_generic_program_hears_which_of_its_lines_mean_nothing() {
    for (line, is_understood) in [
        (r#"{"type":"assistant","message":{"content":"hi"}}"#, true),
        (r#"{"type":"assistant","message":{"content":[{"type":"text","text":"hi"}]}}"#, true),
        (r#"{"type":"assistant","text":"hi"}"#, false),
        (r#"{"type":"weather","text":"fine"}"#, false),
        (r#"{"text":"hi"}"#, false),
        ("[1]", false),
        ("starting up", false),
        ("", true),
        (r#"{"type":"system","subtype":"status"}"#, true),
        (r#"{"type":"user","message":{"content":"echo"}}"#, true),
    ] {
        for kind in [Kind::Generic, Kind::ClaudeCode] {
            let (_, mut adapter) = one_shot(kind, &Prompt::default());
            let rows_read = rows(&adapter.on_line(line));
            let is_reported = rows_read.starts_with("not understood");
            assert_eq!(is_reported, kind == Kind::Generic && !is_understood, "{kind:?} {line}: {rows_read}");
        }
        let (_, mut adapter) = one_shot(Kind::Generic, &Prompt::default());
        adapter.on_line(r#"{"type":"result"}"#);
        assert_eq!(rows(&adapter.on_line(line)), "", "after the end: {line}");
    }
}

#[test]
fn a_generic_program_that_prints_more_does_not_wait_for_its_answer() {
    let first = r#"ask question-1 "One? [y/N]" [yes AllowOnce, no RejectOnce]"#;
    let second = first.replace("question-1", "question-2").replace("One", "Two");
    let withdrawn =
        "withdraw question-1\nprogress \"The program printed more after its question, which withdraws the question\"";
    for (line, expected) in [
        ("going on", format!("{withdrawn}\nnot understood \"going on\"")),
        (r#"{"type":"system/init"}"#, format!("{withdrawn}\ninit - -")),
        ("Two? [y/N]", format!("{withdrawn}\n{second}")),
        ("", String::new()),
        ("  ", String::new()),
        ("> ", String::new()),
    ] {
        let mut generic = Generic::new(&Prompt::default(), Approval::default());
        assert!(!generic.continues_without_answer(line));
        assert_eq!(rows(&generic.on_line("One? [y/N]")).trim_end(), first);
        assert_eq!(generic.continues_without_answer(line), !expected.is_empty(), "{line}");
        assert_eq!(rows(&generic.on_line(line)).trim_end(), expected, "{line}");
        let Step::Ask(question) = &Generic::new(&Prompt::default(), Approval::default()).on_line("One? [y/N]")[0]
        else {
            panic!()
        };
        let answered = generic.answer(question, &Reply::Chosen { choice: "yes".to_owned(), comment: None });
        assert_eq!(answered.is_empty(), !expected.is_empty(), "an answer that nobody waits for is not written: {line}");
    }
}

#[test]
fn answers_of_a_generic_program() {
    let question = Question {
        id: "question-1".to_owned(),
        text: "Delete?".to_owned(),
        tool: None,
        input: None,
        choices: vec![Choice { id: "yes".to_owned(), name: "Yes".to_owned(), kind: ChoiceKind::AllowOnce }],
    };
    let chosen = |choice: &str| Reply::Chosen { choice: choice.to_owned(), comment: None };
    for (reply, expected) in [
        (chosen("yes"), r#"write "sure""#),
        (chosen("no"), r#"write "n""#),
        (chosen("other"), r#"write "n""#),
        (Reply::Text("only\nthe first".to_owned()), r#"write "only the first""#),
        (Reply::Text(" \n".to_owned()), r#"write "n""#),
        (Reply::Unanswered, r#"write "n""#),
    ] {
        let mut generic = Generic::new(&Prompt::default(), Approval::of(None, "sure"));
        assert_eq!(generic.answer(&question, &reply), [], "before it asks");
        generic.on_line("Delete? [y/N]");
        assert_eq!(rows(&generic.answer(&question, &reply)).trim_end(), expected, "{reply:?}");
    }
}

#[test]
fn any_program() {
    check(
        Kind::Command,
        &["one", "", r#"{"type":"error"}"#],
        Exit::Code(0),
        &[r#"text in 3 pieces "one\n\n{\"type\":\"error\"}""#, "done -"],
    );
    check(Kind::Command, &["one"], Exit::Code(2), &[r#"text "one""#]);
    check(Kind::Command, &["one"], Exit::Signal(9), &[r#"text "one""#]);
    check(Kind::Command, &[], Exit::Code(0), &["done -"]);
    check(Kind::Command, &["", "", "x"], Exit::Code(0), &[r#"text in 2 pieces "\n\nx""#, "done -"]);
}

#[test]
fn what_the_recordings_do_not_show() {
    for (kind, line, expected) in [
        (
            Kind::ClaudeCode,
            r#"{"type":"assistant","parent_tool_use_id":"t1","message":{"content":[{"type":"text","text":"for the other"}]}}"#,
            r#"thought "for the other""#,
        ),
        (
            Kind::ClaudeCode,
            r#"{"type":"stream_event","parent_tool_use_id":"t1","event":{"delta":{"type":"text_delta","text":"for"}}}"#,
            "",
        ),
        (Kind::ClaudeCode, r#"{"type":"assistant","message":{"content":"as a text"}}"#, r#"text "as a text""#),
        (Kind::ClaudeCode, r#"{"type":"result","usage":{"input_tokens":1e3}}"#, "spent 1000 0\ndone -"),
        (
            Kind::ClaudeCode,
            r#"{"type":"result","usage":7,"is_error":true}"#,
            "spent 0 0\nfailed \"it ended with an error\"",
        ),
        (
            Kind::Codex,
            r#"{"type":"item.completed","item":{"id":"item_3","type":"file_change","changes":[{"path":"/w/a","kind":"add"}],"status":"completed"}}"#,
            "tool item_3 file_change {\"changes\":[{\"path\":\"/w/a\",\"kind\":\"add\"}]}\nresult item_3 file_change ok \"\"\nfile /w/a",
        ),
        (
            Kind::Codex,
            r#"{"type":"item.completed","item":{"id":"item_4","type":"mcp_tool_call","server":"s","tool":"t","arguments":{"q":1},"result":{"content":[{"type":"text","text":"found"}]},"status":"completed"}}"#,
            "tool item_4 s.t {\"q\":1}\nresult item_4 s.t ok \"found\"",
        ),
        (Kind::Codex, r#"{"type":"error","message":"Reconnecting... 1/5"}"#, r#"progress "Reconnecting... 1/5""#),
        (
            Kind::Gemini,
            r#"{"type":"tool_result","tool_id":"t","status":"error","error":{"message":"no"}}"#,
            r#"result t - error "no""#,
        ),
        (Kind::Gemini, r#"{"type":"result"}"#, r#"failed "it ended with an error""#),
        (Kind::Goose, r#"{"type":"error","error":"no"}"#, r#"failed "no""#),
        (
            Kind::Goose,
            r#"{"type":"message","message":{"id":"m","role":"assistant","content":[{"type":"text","text":"Ran into this error: x. Please retry if you think this is a transient or recoverable error."}]}}"#,
            r#"text "Ran into this error: x. Please retry if you think this is a transient or recoverable error.""#,
        ),
        (Kind::Vibe, r#"{"type":"message","role":"user","content":[{"type":"text","text":"echo"}]}"#, ""),
    ] {
        let (_, mut adapter) = one_shot(kind, &Prompt::default());
        assert_eq!(rows(&adapter.on_line(line)).trim_end(), expected, "{kind:?} {line}");
    }
}
