//! `[[agent]]` tables, with their skills and extensions.

use super::*;

#[test]
fn agents_come_from_the_file_from_one_word_or_by_default() {
    let list = "[[agent]]\nid = 'b'\nkind = 'demo'\ntimeout = '20m'\n[[agent]]\nid = 'a'\nkind = 'conformance'\n";
    let by_flag = CliOptions { agent: Some("conformance".to_owned()), ..CliOptions::default() };
    let none = CliOptions::default();
    for (options, variables, file, expected) in [
        (&none, &[][..], "", "demo Demo None"),
        (&none, &[], list, "b Demo Some(1200s), a Conformance None"),
        (&by_flag, &[("SABIR_AGENT", "demo")], list, "conformance Conformance None"),
        (&none, &[("SABIR_AGENT", "conformance")], list, "conformance Conformance None"),
        (&none, &[("AGENT_ADAPTER", "conformance")], "", "conformance Conformance None"),
        (&none, &[("AGENT_ADAPTER", "cursor"), ("AGENT_TIMEOUT_MS", "1500")], "", "cursor Program(Cursor) Some(1.5s)"),
        (&none, &[("SABIR_AGENT", "codex")], list, "codex Program(Codex) Some(1200s)"),
        (&none, &[("AGENT_ADAPTER", "codex"), ("AGENT_TIMEOUT_MS", "0")], "", "codex Program(Codex) None"),
        (&none, &[("AGENT_TIMEOUT_MS", "0")], "", "demo Demo None"),
        (
            &none,
            &[("AGENT_ADAPTER", "demo"), ("AGENT_TIMEOUT_MS", "9")],
            list,
            "b Demo Some(1200s), a Conformance None",
        ),
    ] {
        let agents = load_text(options, variables, file).unwrap().config.agents;
        let result = agents.iter().map(|agent| format!("{} {:?} {:?}", agent.id, agent.kind, agent.timeout));
        assert_eq!(result.collect::<Vec<_>>().join(", "), expected, "{variables:?} {file:?}");
    }
}

#[test]
fn wrong_agent_tables_are_refused() {
    for (file, expected) in [
        ("[[agent]]\nkind = 'demo'", "sabir.toml:1: this [[agent]] has no id"),
        ("\n[[agent]]\nid = 'x'", "sabir.toml:2: this [[agent]] has no kind"),
        (
            "[[agent]]\nid = 'x'\nkind = 'demo'\n[[agent]]\nid = 'x'\nkind = 'demo'",
            "sabir.toml:5: there are two agents with the id \"x\"",
        ),
        (
            "[[agent]]\nid = 'x'\nkind = 'demo'\ndefault = true\n[[agent]]\nid = 'y'\nkind = 'demo'\ndefault = true",
            "sabir.toml:8: there are two default agents; \"x\" is one",
        ),
        (
            "[[agent]]\nid = 'x'\nkind = 'demo'\nmax_concurrent = 0",
            "sabir.toml:4: max_concurrent is 0; expected a number from 1 to 1000000",
        ),
        (
            "[[agent]]\nid = 'x'\nkind = 'command'\ncommand = 'cat'\nstored_first = true",
            "sabir.toml:5: stored_first is for the demo agent; an agent of kind command has no use for it",
        ),
    ] {
        assert_eq!(outcome(&CliOptions::default(), &[], file, ""), expected, "{file:?}");
    }
}

#[test]
fn skills_belong_to_the_agent_above() {
    let agent = "[[agent]]\nid = 'a'\nkind = 'demo'\n";
    let skill = "[[agent.skill]]\nid = 'x'\nname = 'X'\ndescription = 'does x'\n";
    let other = agent.replace("'a'", "'b'");
    let file = format!("{agent}{skill}tags = ['one', 'two']\n{other}{}", skill.replace("'x'", "'y z'"));
    let agents = load_text(&CliOptions::default(), &[], &file).unwrap().config.agents;
    let result = agents.iter().map(|agent| {
        let skills = agent.skills.iter().map(|skill| format!("{} {} {:?}", skill.id, skill.name, skill.tags));
        format!("{}: {}", agent.id, skills.collect::<Vec<_>>().join(", "))
    });
    assert_eq!(result.collect::<Vec<_>>(), [r#"a: x X ["one", "two"]"#, "b: y z X []"]);

    for (key, expected) in [
        ("agent.a.skill.x.tags", r#"["one","two"] # sabir.toml:8"#),
        ("agent.b.skill.\"y z\".name", "\"X\" # sabir.toml:14"),
        ("agent.b.skill.\"y z\".examples", "null # default"),
    ] {
        assert_eq!(outcome(&CliOptions::default(), &[], &file, key), expected);
    }
}

#[test]
fn wrong_skill_tables_are_refused() {
    let skill = "[[agent.skill]]\nid = 'x'\nname = 'X'\ndescription = 'does x'\n";
    for (rest, expected) in [
        ("[[agent.skill]]\nid = 'x'\nname = 'X'", "sabir.toml:4: this [[agent.skill]] has no description"),
        (&format!("{skill}{skill}"), "sabir.toml:9: there are two skills with the id \"x\""),
        (&format!("{skill}[[agent]]\nid = 'b'\nkind = 'demo'\n{skill}"), "nothing"),
        (
            &format!("{skill}exampels = []"),
            "sabir.toml:8: unknown key \"exampels\" in [[agent.skill]]; did you mean \"examples\"?",
        ),
        (
            &format!("{skill}timeout = 3"),
            "sabir.toml:8: unknown key \"timeout\" in [[agent.skill]]; did you mean \"timeout\" in [[agent]]?",
        ),
        (&format!("{skill}tags = [1]"), "sabir.toml:8: tags holds 1; expected a text that is not empty"),
        (
            &format!("{skill}input_modes = ['text']"),
            "sabir.toml:8: input_modes holds \"text\"; \
             expected a media type such as \"text/plain\", \"image/*\" or \"*/*\"",
        ),
        ("[agent.skill]\nid = 'x'", "sabir.toml:4: skills are a list; write [[agent.skill]] for each"),
        ("skill = ['x']", "sabir.toml:4: skill holds \"x\"; expected [[agent.skill]] tables"),
        ("skills = ['x']", "sabir.toml:4: unknown key \"skills\" in [[agent]]; did you mean [[agent.skill]]?"),
        ("[[agent.skil]]", "sabir.toml:4: unknown section [[agent.skil]]; did you mean [[agent.skill]]?"),
    ] {
        let file = format!("[[agent]]\nid = 'a'\nkind = 'demo'\n{rest}");
        assert_eq!(outcome(&CliOptions::default(), &[], &file, ""), expected, "{rest:?}");
    }
}

#[test]
fn extensions_pass_their_params_on_as_json() {
    let file = "[[agent]]\nid = 'a'\nkind = 'demo'\n[[agent.extension]]\nuri = 'urn:x:1'\nrequired = true\n\
                params.limits = {size = 5, ratio = 0.5}\n[agent.extension.params.more]\nsince = 2024-05-01\n";
    let extension = &load_text(&CliOptions::default(), &[], file).unwrap().config.agents[0].extensions[0];
    let params = r#"{"limits":{"ratio":0.5,"size":5},"more":{"since":"2024-05-01"}}"#;
    assert_eq!((extension.uri.as_str(), extension.required), ("urn:x:1", true));
    assert_eq!(extension.params.as_ref().unwrap().as_str(), params);
    for (key, expected) in [
        ("agent.a.extension.\"urn:x:1\".params", format!("{params} # sabir.toml:7")),
        ("agent.a.extension.\"urn:x:1\".required", "true # sabir.toml:6".to_owned()),
        ("agent.a.extension.\"urn:x:1\".description", "null # default".to_owned()),
    ] {
        assert_eq!(outcome(&CliOptions::default(), &[], file, key), expected);
    }
}

#[test]
fn wrong_extension_tables_are_refused() {
    let extension = "[[agent.extension]]\nuri = 'urn:x'\n";
    for (rest, expected) in [
        ("[[agent.extension]]", "sabir.toml:4: this [[agent.extension]] has no uri"),
        (&format!("{extension}{extension}"), "sabir.toml:7: there are two extensions with the uri \"urn:x\""),
        (
            &format!("{extension}url = 'x'"),
            "sabir.toml:6: unknown key \"url\" in [[agent.extension]]; did you mean \"uri\"?",
        ),
        (
            &format!("{extension}[agent.extension.parms]\na = 1"),
            "sabir.toml:6: unknown key \"parms\" in [[agent.extension]]; did you mean \"params\"?",
        ),
        (&format!("{extension}params = 'x'"), "sabir.toml:6: params is \"x\"; expected a table"),
        (
            &format!("{extension}params.a = nan"),
            "sabir.toml:6: params holds the number NaN, which does not fit into JSON",
        ),
        (
            "[[agent.extension]]\nuri = 'x'",
            "sabir.toml:5: uri is \"x\"; expected a URI without commas, such as \"https://example.com/ext/v1\"",
        ),
        ("[agent.extension]", "sabir.toml:4: extensions are a list; write [[agent.extension]] for each"),
    ] {
        let file = format!("[[agent]]\nid = 'a'\nkind = 'demo'\n{rest}");
        assert_eq!(outcome(&CliOptions::default(), &[], &file, ""), expected, "{rest:?}");
    }
}

#[test]
fn an_approver_is_a_scope_that_is_no_other_right() {
    let refused = "; expected the name of a scope: at most 128 visible characters without quotes and commas";
    for (value, expected) in [
        ("'approve'", "\"approve\" # sabir.toml:4".to_owned()),
        ("'https://idp.example/ops'", "\"https://idp.example/ops\" # sabir.toml:4".to_owned()),
        (
            "'run'",
            "sabir.toml:4: approver is \"run\", which callers have for other reasons; use a scope of its own, \
             such as approve"
                .to_owned(),
        ),
        ("'two words'", format!("sabir.toml:4: approver is \"two words\"{refused}")),
        ("''", format!("sabir.toml:4: approver is \"\"{refused}")),
    ] {
        let file = format!("[[agent]]\nid = 'a'\nkind = 'demo'\napprover = {value}\n");
        assert_eq!(outcome(&CliOptions::default(), &[], &file, "agent.a.approver"), expected);
    }
}
