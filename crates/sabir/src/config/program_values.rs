//! How the values of programs are read: commands, folders, environments, routes.

use std::path::PathBuf;

use sabir_agents::program::settings::Mode;
use sabir_agents::protocol::Approve;
use serde_json::{Value, json};

use super::kinds::{Read, choice, optional_text, said, text, texts, wrong};
use super::raw::Raw;
use super::sections::Route;

pub fn mode(raw: &Raw) -> Read<Mode> {
    choice(raw, &[Mode::Acp, Mode::Duplex, Mode::OneShot].map(|mode| (mode.name(), mode)))
}

pub fn approve(raw: &Raw) -> Read<Approve> {
    choice(raw, &[("ask", Approve::Ask), ("all", Approve::All), ("none", Approve::None)])
}

/// A program and its first arguments.
pub fn command(raw: &Raw) -> Read<Vec<String>> {
    let (words, shown) = arguments(raw)?;
    match words.first() {
        Some(program) if !program.is_empty() => Ok((words, shown)),
        _ => Err("names no program; expected a list such as [\"my-agent\", \"--verbose\"]".to_owned()),
    }
}

/// Arguments to the letter, blanks and commas included; a text alone is one argument.
pub fn arguments(raw: &Raw) -> Read<Vec<String>> {
    let list = match raw {
        Raw::List(list) => list.as_slice(),
        single => std::slice::from_ref(single),
    };
    let mut words = Vec::new();
    for part in list {
        match part {
            Raw::Text(word) | Raw::Word(word) if !word.contains('\0') => words.push(word.clone()),
            other => return Err(format!("holds {other}; expected texts")),
        }
    }
    Ok((words.clone(), json!(words)))
}

pub fn folder(raw: &Raw) -> Read<PathBuf> {
    let (path, shown) = text(raw).map_err(|_| wrong(raw, "a folder"))?;
    if path.starts_with('~') {
        return Err(format!("is {raw}; ~ is not understood here, write the directory out"));
    }
    Ok((PathBuf::from(path), shown))
}

pub fn folders(raw: &Raw) -> Read<Vec<PathBuf>> {
    let (paths, shown) = texts(raw)?;
    for path in &paths {
        folder(&Raw::Text(path.clone()))?;
    }
    Ok((paths.into_iter().map(PathBuf::from).collect(), shown))
}

/// Variables and their values, which may be secrets and are not shown.
pub fn variables(raw: &Raw) -> Read<Vec<(String, String)>> {
    let Raw::Table(members) = raw else {
        return Err(wrong(raw, "a table of texts"));
    };
    let mut variables = Vec::new();
    for (name, value) in members {
        if !is_variable(name) {
            return Err(format!("holds the name {}, which no variable can have", Raw::Text(name.clone())));
        }
        let Raw::Text(value) = value else {
            return Err(format!("holds {name}, which is no text; put its value in quotes"));
        };
        if value.contains('\0') {
            return Err(format!("holds {name}, whose value has a zero byte"));
        }
        variables.push((name.clone(), value.clone()));
    }
    let shown: Value = variables.iter().map(|(name, _)| (name.clone(), json!("(not shown)"))).collect();
    Ok((variables, shown))
}

/// Names, or beginnings of names with a star behind.
pub fn variable_names(raw: &Raw) -> Read<Vec<String>> {
    let (names, shown) = texts(raw)?;
    for name in &names {
        if !is_variable(name.strip_suffix('*').unwrap_or(name)) {
            let expected = "names such as \"HTTPS_PROXY\" or \"AWS_*\"";
            return Err(format!("holds {}; expected {expected}", Raw::Text(name.clone())));
        }
    }
    Ok((names, shown))
}

fn is_variable(name: &str) -> bool {
    !name.is_empty() && !name.contains(|letter: char| letter == '=' || letter == '*' || letter.is_control())
}

/// `{ agent = "id", model = "name" }`, or the id alone; in the environment `id` or `id model`.
pub fn route(raw: &Raw) -> Read<Option<Route>> {
    let route = match raw {
        Raw::Table(members) => route_table(members)?,
        raw => {
            let words = said(raw).filter(|words| !words.is_empty()).ok_or_else(|| wrong(raw, ROUTE))?;
            let (agent, model) = words.split_once(char::is_whitespace).unwrap_or((words, ""));
            let model = Some(model.trim()).filter(|model| !model.is_empty());
            Route { agent: agent.to_owned(), model: model.map(str::to_owned) }
        }
    };
    let mut shown = json!({"agent": route.agent});
    if let Some(model) = &route.model {
        shown["model"] = json!(model);
    }
    Ok((Some(route), shown))
}

fn route_table(members: &[(String, Raw)]) -> Result<Route, String> {
    let (mut agent, mut model) = (None, None);
    for (name, value) in members {
        let read =
            |value| optional_text(value).map(|(text, _)| text).map_err(|words| format!("has {name}, which {words}"));
        match name.as_str() {
            "agent" => agent = read(value)?,
            "model" => model = read(value)?,
            _ => return Err(format!("holds the unknown key {}; expected {ROUTE}", Raw::Text(name.clone()))),
        }
    }
    let agent = agent.ok_or_else(|| format!("has no agent; expected {ROUTE}"))?;
    Ok(Route { agent, model })
}

const ROUTE: &str = "{ agent = \"id\", model = \"name\" }, the model if you like";

#[cfg(test)]
mod tests {
    use toml::de::{DeTable, DeValue};

    use super::*;

    fn say<V>(read: Read<V>) -> String {
        read.map_or_else(|words| words, |(_, shown)| shown.to_string())
    }

    /// The value of `a` in this text.
    fn value(text: &str) -> Raw {
        let parsed = DeTable::parse(text).unwrap().into_inner();
        let Raw::Table(members) = Raw::from(&DeValue::Table(parsed)) else { panic!("a table") };
        members.into_iter().next().unwrap().1
    }

    #[test]
    fn commands_begin_with_a_program() {
        for (raw, expected) in [
            (value("a = ['npx', 'x']"), r#"["npx","x"]"#),
            (value("a = 'my agent'"), r#"["my agent"]"#),
            (Raw::Word("/opt/a, b".to_owned()), r#"["/opt/a, b"]"#),
            (value("a = ['x', '', ' y ']"), r#"["x",""," y "]"#),
            (value("a = []"), "names no program; expected a list such as [\"my-agent\", \"--verbose\"]"),
            (value("a = ['']"), "names no program; expected a list such as [\"my-agent\", \"--verbose\"]"),
            (value("a = ['x', 1]"), "holds 1; expected texts"),
        ] {
            assert_eq!(say(command(&raw)), expected, "{raw:?}");
        }
    }

    #[test]
    fn values_of_variables_are_not_shown() {
        for (text, expected) in [
            ("a = { KEY = 'secret' }", r#"{"KEY":"(not shown)"}"#),
            ("a = {}", "{}"),
            ("a = { KEY = 1 }", "holds KEY, which is no text; put its value in quotes"),
            ("a = { 'K=Y' = 'x' }", "holds the name \"K=Y\", which no variable can have"),
            ("a = { K = \"a\\u0000\" }", "holds K, whose value has a zero byte"),
            ("a = 'KEY=x'", "is \"KEY=x\"; expected a table of texts"),
        ] {
            assert_eq!(say(variables(&value(text))), expected, "{text}");
        }
    }

    #[test]
    fn names_of_variables_may_end_with_a_star() {
        for (text, expected) in [
            ("a = ['HTTPS_PROXY', 'AWS_*']", r#"["HTTPS_PROXY","AWS_*"]"#),
            ("a = ['A*B']", "holds \"A*B\"; expected names such as \"HTTPS_PROXY\" or \"AWS_*\""),
            ("a = ['*']", "holds \"*\"; expected names such as \"HTTPS_PROXY\" or \"AWS_*\""),
        ] {
            assert_eq!(say(variable_names(&value(text))), expected, "{text}");
        }
    }

    #[test]
    fn routes_in_every_spelling() {
        for (raw, expected) in [
            (value("a = { agent = 'x' }"), r#"{"agent":"x"}"#.to_owned()),
            (value("a = { model = 'm', agent = 'x' }"), r#"{"agent":"x","model":"m"}"#.to_owned()),
            (value("a = 'x'"), r#"{"agent":"x"}"#.to_owned()),
            (Raw::Word("x provider/m".to_owned()), r#"{"agent":"x","model":"provider/m"}"#.to_owned()),
            (value("a = { model = 'm' }"), format!("has no agent; expected {ROUTE}")),
            (
                value("a = { agent = 'x', adapter = 'y' }"),
                format!("holds the unknown key \"adapter\"; expected {ROUTE}"),
            ),
            (value("a = { agent = 1 }"), "has agent, which is 1; expected a text that is not empty".to_owned()),
            (value("a = 3"), format!("is 3; expected {ROUTE}")),
        ] {
            assert_eq!(say(route(&raw)), expected, "{raw:?}");
        }
    }

    #[test]
    fn folders_are_written_out() {
        for (text, expected) in [
            ("a = '/srv/repo'", "\"/srv/repo\""),
            ("a = '~/repo'", "is \"~/repo\"; ~ is not understood here, write the directory out"),
            ("a = ''", "is \"\"; expected a folder"),
        ] {
            assert_eq!(say(folder(&value(text))), expected, "{text}");
        }
    }
}
