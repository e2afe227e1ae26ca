//! The page of settings and the example file list every setting and no other.

use sabir_outbound::jose::{CardKey, KeyAlgorithm};
use sabir_outbound::webhooks::{SealKey, SigningKey};

use super::*;

/// A missing row is printed as it should stand in the document.
#[test]
fn the_documentation_lists_every_setting_and_no_other() {
    let mut rows: Vec<(String, String)> = Vec::new();
    for setting in SETTINGS.iter() {
        rows.push((format!("[{}]", setting.section()), row(setting, &[setting.variable()])));
    }
    rows.extend(AGENT_SETTINGS.iter().map(|setting| ("[[agent]]".to_owned(), row(setting, &[]))));
    rows.extend(SKILL_SETTINGS.iter().map(|setting| ("[[agent.skill]]".to_owned(), short_row(setting))));
    rows.extend(EXTENSION_SETTINGS.iter().map(|setting| ("[[agent.extension]]".to_owned(), short_row(setting))));
    for list in auth::LISTS {
        let settings = auth::credential_settings(list);
        rows.extend(settings.iter().map(|setting| (format!("[[auth.{list}]]"), short_row(setting))));
    }
    rows.extend(ISSUER_SETTINGS.iter().map(|setting| ("[[auth.issuer]]".to_owned(), short_row(setting))));
    for (header, row) in &rows {
        assert!(chapter(header).contains(&row.as_str()), "docs/reference/settings.md lacks in {header}\n{row}");
    }
    for (header, _) in &rows {
        let expected = rows.iter().filter(|(known, _)| known == header).count();
        let found = chapter(header).into_iter().filter(|line| line.starts_with("| `")).count();
        assert_eq!(found, expected, "docs/reference/settings.md has a row too much in {header}");
    }
    for EnvAlias { name, .. } in ENV_ALIASES {
        assert!(DOCUMENT.contains(&format!("`{name}`")), "docs/reference/settings.md lacks {name}");
    }
}

/// The lines of the document below this header.
fn chapter(header: &str) -> Vec<&'static str> {
    let title = format!("## `{header}`");
    let below = DOCUMENT.lines().skip_while(|line| *line != title).skip(1);
    below.take_while(|line| !line.starts_with("## ")).collect()
}

fn row<T>(setting: &Setting<T>, variables: &[String]) -> String {
    let short = setting.short_variable.map(code);
    let variables = short
        .into_iter()
        .chain(variables.iter().filter(|name| setting.short_variable != Some(name)).map(|name| code(name)));
    let port = (setting.key == "server.listen").then_some("--port");
    let flags = setting.flag.into_iter().chain(port).map(code);
    cells(&[
        code(setting.key),
        default(setting),
        variables.collect::<Vec<_>>().join(", "),
        flags.collect::<Vec<_>>().join(", "),
        setting.help.to_owned(),
    ])
}

/// Of a table that nothing but the file can set.
fn short_row<T>(setting: &Setting<T>) -> String {
    cells(&[code(setting.key), default(setting), setting.help.to_owned()])
}

fn default<T>(setting: &Setting<T>) -> String {
    match (setting.is_required, setting.default) {
        (true, _) => "required".to_owned(),
        (false, "") => String::new(),
        (false, text) => code(text),
    }
}

fn code(text: &str) -> String {
    format!("`{text}`")
}

fn cells(cells: &[String]) -> String {
    let cells = cells.iter().map(|cell| if cell.is_empty() { " ".to_owned() } else { format!(" {cell} ") });
    format!("|{}|", cells.collect::<Vec<_>>().join("|"))
}

const DOCUMENT: &str = include_str!("../../../../../docs/reference/settings.md");

#[test]
fn the_example_file_is_right_as_it_is_and_with_everything_switched_on() {
    let loaded = load_text(&CliOptions::default(), &[], EXAMPLE).unwrap();
    assert_eq!(loaded.config.agents.len(), 1);

    let everything = example_with_everything();
    let loaded = load_text(&CliOptions::default(), &[], &everything).unwrap();
    let [demo, _, remote, model] = loaded.config.agents.as_slice() else { panic!("four agents") };
    assert!(remote.remote.url.is_some());
    assert_eq!(model.openai.mcp_servers.len(), 2);
    assert_eq!((demo.skills.len(), demo.extensions.len()), (1, 1));
    // The same key in the table of another agent will do.
    let leaf =
        |key: &str| key.strip_prefix("agent.").and_then(|rest| rest.split_once('.')).map(|(_, leaf)| leaf.to_owned());
    let name = |key: &str| leaf(key).unwrap_or_else(|| key.to_owned());
    let set = loaded.values.iter().filter(|shown| shown.origin != ValueOrigin::Default).map(|shown| name(&shown.key));
    let set: Vec<String> = set.collect();
    // What contradicts a setting of the example stands beside it as a comment: `# key = value`.
    let is_alternative = |key: &str| EXAMPLE.lines().any(|line| line.starts_with(&format!("# {key} = ")));
    for shown in &loaded.values {
        let key = name(&shown.key);
        assert!(set.contains(&key) || is_alternative(&key), "{} is not in the example", shown.key);
    }
}

/// `#key = value` is a setting to switch on, `# words` is a comment, `#:schema` is for editors.
pub fn example_with_everything() -> String {
    let lines = EXAMPLE.lines().map(|line| match line.strip_prefix('#') {
        Some(setting) if !setting.starts_with([' ', ':']) => setting,
        _ => line,
    });
    // An example key would end up in use, so the example has none.
    let (store_key, signing_key) = (SealKey::generate().to_text(), SigningKey::generate().to_text());
    let card_key = CardKey::generate(KeyAlgorithm::Es256).to_text();
    let keys = [
        ("what `sabir key new` prints", store_key),
        ("what `sabir key new --signing` prints", signing_key),
        ("what `sabir key new --card` prints", card_key),
    ];
    let text = lines.collect::<Vec<_>>().join("\n");
    keys.into_iter().fold(text, |text, (placeholder, key)| text.replace(placeholder, &key))
}

const EXAMPLE: &str = include_str!("../../../../../sabir.example.toml");
