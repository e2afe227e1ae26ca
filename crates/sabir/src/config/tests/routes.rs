//! `[routing]`: routes lead to agents that exist.

use super::*;

#[test]
fn routes_lead_to_agents_that_exist() {
    let agents = "[[agent]]\nid = 'coder'\nkind = 'codex'\n[[agent]]\nid = 'demo'\nkind = 'demo'\n[routing]\n";
    for (rest, variables, expected) in [
        (
            "complex = { agent = 'coder', model = 'big' }",
            &[][..],
            "{\"agent\":\"coder\",\"model\":\"big\"} # sabir.toml:8",
        ),
        ("complex = 'demo'", &[], "{\"agent\":\"demo\"} # sabir.toml:8"),
        ("[routing.complex]\nagent = 'demo'", &[], "{\"agent\":\"demo\"} # sabir.toml:8"),
        (
            "",
            &[("SABIR_ROUTING_COMPLEX", "coder big")],
            "{\"agent\":\"coder\",\"model\":\"big\"} # SABIR_ROUTING_COMPLEX",
        ),
        (
            "complex = 'demo'",
            &[("ROUTING__COMPLEX__ADAPTER", "codex"), ("ROUTING__COMPLEX__MODEL", "m")],
            "{\"agent\":\"coder\",\"model\":\"m\"} # ROUTING__COMPLEX__ADAPTER, ROUTING__COMPLEX__MODEL",
        ),
        (
            "complex = 'codr'",
            &[],
            "sabir.toml:8: routing.complex names the agent \"codr\", which does not exist; there are coder, demo; \
             did you mean \"coder\"?",
        ),
        (
            "complex = { agent = 'demo', model = 'm' }",
            &[],
            "sabir.toml:8: routing.complex has a model, but the agent demo of kind demo has none",
        ),
        ("complx = 'demo'", &[], "sabir.toml:8: unknown key \"complx\" in [routing]; did you mean \"complex\"?"),
    ] {
        assert_eq!(
            outcome(&CliOptions::default(), variables, &format!("{agents}{rest}"), "routing.complex"),
            expected,
            "{rest}"
        );
    }
}

#[test]
fn routes_of_a_file_whose_agents_do_not_run_are_ignored() {
    let file = "[[agent]]\nid = 'coder'\nkind = 'codex'\n[routing]\ncomplex = 'coder'\n";
    let options = CliOptions { agent: Some("demo".to_owned()), ..CliOptions::default() };
    assert_eq!(outcome(&options, &[], file, "routing.complex"), "null # default");
    let loaded = load_text(&options, &[], file).unwrap();
    assert_eq!(loaded.config.routing, Routing::default());
    let expected = "sabir.toml:5: routing.complex is ignored, since other agents run than the file lists";
    assert_eq!(loaded.warnings, [expected]);
}
