//! `sabir.toml`: found, read and taken apart, with the line of every key.
//!
//! This knows which keys exist and nothing about their values. Unknown keys are errors: a misspelt setting that
//! is silently skipped is worse than a server that does not start.

use std::path::Path;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::environment::{self, Environment};
use super::nearest::nearest;
use super::origin::Problem;
use super::raw::Raw;
use super::sections::{Agent, Config};
use super::settings::{AGENT_SETTINGS, SETTINGS, Setting};

/// The file that is read when nobody names one, if it is there.
const USUAL: &str = "sabir.toml";

/// What a file sets. Keys are known ones; values are not looked at yet.
#[derive(Default)]
pub struct File {
    pub name: String,
    pub entries: Vec<Entry<Config>>,
    pub agents: Vec<AgentTable>,
    pub problems: Vec<Misfit>,
}

pub struct Entry<T: 'static> {
    pub setting: &'static Setting<T>,
    pub line: usize,
    pub raw: Raw,
}

pub struct AgentTable {
    /// The line of its `[[agent]]`.
    pub line: usize,
    pub entries: Vec<Entry<Agent>>,
}

/// Something that does not belong.
pub struct Misfit {
    pub line: usize,
    pub words: String,
}

/// Name and content of the file that a flag or the environment names, or of the usual one if it exists.
pub fn find(flag: Option<&Path>, environment: &Environment) -> Result<Option<(String, Vec<u8>)>, Problem> {
    let variable = environment.path(environment::FILE);
    let (path, who) = match (flag, &variable) {
        (Some(path), _) => (path, "--config"),
        (None, Some(path)) => (path.as_path(), environment::FILE),
        (None, None) if !Path::new(USUAL).exists() => return Ok(None),
        (None, None) => (Path::new(USUAL), "the working directory"),
    };
    let name = path.display().to_string();
    match std::fs::read(path) {
        Ok(bytes) => Ok(Some((name, bytes))),
        Err(error) => {
            let text = format!("{name}: cannot read the configuration file from {who}: {error}");
            Err(Problem::outside(text))
        }
    }
}

pub fn parse(name: &str, bytes: &[u8]) -> File {
    let mut file = File { name: name.to_owned(), ..File::default() };
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => {
            let good = bytes[..error.valid_up_to()].iter();
            let line = 1 + good.filter(|byte| **byte == b'\n').count();
            file.complain(line, "the file is not UTF-8 text".to_owned());
            return file;
        }
    };
    let (table, errors) = DeTable::parse_recoverable(text);
    let lines = Lines { text };
    for error in &errors {
        let line = lines.at(error.span().map_or(0, |span| span.start));
        // One slip often gives several errors; the first of a line is the one to read.
        if !file.problems.iter().any(|problem| problem.line == line) {
            file.complain(line, error.message().replace('\n', " "));
        }
    }
    if errors.is_empty() {
        file.take(&lines, table.get_ref());
    }
    file.problems.sort_by_key(|problem| problem.line);
    file
}

impl File {
    fn complain(&mut self, line: usize, words: String) {
        self.problems.push(Misfit { line, words });
    }

    fn take(&mut self, lines: &Lines, table: &DeTable) {
        for (key, value) in table {
            let (name, line) = (key.get_ref().as_ref(), lines.of(key));
            let section = SETTINGS.iter().find(|setting| setting.section() == name);
            match (name, section, value.get_ref()) {
                (_, Some(section), DeValue::Table(table)) => self.take_section(lines, section.section(), table),
                (_, Some(_), value) => {
                    let words = format!("{name} is {}; expected a section [{name}]", raw(value));
                    self.complain(line, words);
                }
                ("agent", _, DeValue::Array(agents)) => self.take_agents(lines, agents),
                ("agent", _, DeValue::Table(_)) => {
                    self.complain(line, "agents are a list; write [[agent]] for each".to_owned());
                }
                ("agent", _, value) => {
                    let words = format!("agent is {}; expected [[agent]] tables", raw(value));
                    self.complain(line, words);
                }
                (_, None, value) => self.complain(line, unknown_at_top(name, value)),
            }
        }
    }

    fn take_section(&mut self, lines: &Lines, section: &'static str, table: &DeTable) {
        for (key, value) in table {
            let (name, line) = (key.get_ref().as_ref(), lines.of(key));
            let mut known = SETTINGS.iter().filter(|setting| setting.section() == section);
            match known.clone().find(|setting| setting.leaf() == name) {
                Some(setting) => {
                    let raw = raw(value.get_ref());
                    self.entries.push(Entry { setting, line, raw });
                }
                None => {
                    let known: Vec<&str> = known.by_ref().map(Setting::leaf).collect();
                    self.complain(line, unknown_key(name, &format!("in [{section}]"), &known));
                }
            }
        }
    }

    fn take_agents(&mut self, lines: &Lines, agents: &[Spanned<DeValue>]) {
        for value in agents {
            let line = lines.at(value.span().start);
            let DeValue::Table(table) = value.get_ref() else {
                let words = format!("agent holds {}; expected [[agent]] tables", raw(value.get_ref()));
                self.complain(line, words);
                continue;
            };
            let entries = self.take_agent(lines, table);
            self.agents.push(AgentTable { line, entries });
        }
    }

    fn take_agent(&mut self, lines: &Lines, table: &DeTable) -> Vec<Entry<Agent>> {
        let mut entries = Vec::new();
        for (key, value) in table {
            let (name, line) = (key.get_ref().as_ref(), lines.of(key));
            match AGENT_SETTINGS.iter().find(|setting| setting.key == name) {
                Some(setting) => {
                    let raw = raw(value.get_ref());
                    entries.push(Entry { setting, line, raw });
                }
                None => {
                    let known: Vec<&str> = AGENT_SETTINGS.iter().map(|setting| setting.key).collect();
                    self.complain(line, unknown_key(name, "in [[agent]]", &known));
                }
            }
        }
        entries
    }
}

fn unknown_at_top(name: &str, value: &DeValue) -> String {
    let mut sections: Vec<&str> = SETTINGS.iter().map(Setting::section).collect();
    sections.dedup();
    sections.push("agent");
    let is_list_of_tables =
        |list: &[Spanned<DeValue>]| list.first().is_some_and(|first| matches!(first.get_ref(), DeValue::Table(_)));
    let section = match value {
        DeValue::Table(_) => format!("[{}]", short(name)),
        DeValue::Array(list) if is_list_of_tables(list) => format!("[[{}]]", short(name)),
        _ => return unknown_key(name, "at the top level", &sections),
    };
    let spell = |section: &str| match section {
        "agent" => "[[agent]]".to_owned(),
        other => format!("[{other}]"),
    };
    match nearest(name, sections.iter().copied()) {
        Some(near) => format!("unknown section {section}; did you mean {}?", spell(near)),
        None => {
            let sections: Vec<String> = sections.into_iter().map(spell).collect();
            format!("unknown section {section}; known sections: {}", sections.join(", "))
        }
    }
}

fn unknown_key(name: &str, place: &str, known: &[&str]) -> String {
    let unknown = format!("unknown key {} {place}", Raw::Text(name.to_owned()));
    if let Some(near) = nearest(name, known.iter().copied()) {
        return format!("{unknown}; did you mean \"{near}\"?");
    }
    // A key that is right and stands in the wrong place.
    if let Some(setting) = SETTINGS.iter().find(|setting| setting.leaf() == name) {
        return format!("{unknown}; did you mean \"{name}\" in [{}]?", setting.section());
    }
    format!("{unknown}; known keys: {}", known.join(", "))
}

/// A key in a message, kept to one short line.
fn short(name: &str) -> String {
    name.chars().take(80).map(|letter| if letter.is_control() { '?' } else { letter }).collect()
}

fn raw(value: &DeValue) -> Raw {
    match value {
        DeValue::String(text) => Raw::Text(text.to_string()),
        DeValue::Boolean(value) => Raw::Boolean(*value),
        DeValue::Integer(number) => match i64::from_str_radix(number.as_str(), number.radix()) {
            Ok(number) => Raw::Integer(number),
            Err(_) => Raw::Other(format!("the number {}", short(number.as_str()))),
        },
        DeValue::Float(number) => Raw::Other(format!("the number {}", short(number.as_str()))),
        DeValue::Datetime(date) => Raw::Other(format!("the date {date}")),
        DeValue::Array(list) => Raw::List(list.iter().map(|value| raw(value.get_ref())).collect()),
        DeValue::Table(_) => Raw::Other("a table".to_owned()),
    }
}

/// Turns places in the text into line numbers.
struct Lines<'a> {
    text: &'a str,
}

impl Lines<'_> {
    fn of<T>(&self, spanned: &Spanned<T>) -> usize {
        self.at(spanned.span().start)
    }

    fn at(&self, offset: usize) -> usize {
        let before = self.text.bytes().take(offset);
        1 + before.filter(|byte| *byte == b'\n').count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(text: &[u8]) -> String {
        let file = parse("sabir.toml", text);
        let lines = file.problems.iter().map(|problem| format!("{}: {}", problem.line, problem.words));
        lines.collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn what_is_not_known_is_named_with_its_line() {
        let server_keys = "listen, public_url, body_limit, cors_origins, allow_open, grace, keep_alive";
        for (text, expected) in [
            ("", ""),
            ("\u{feff}[server]\ngrace = 1\n", ""),
            ("[server]\n\nlisen = 1\n", "3: unknown key \"lisen\" in [server]; did you mean \"listen\"?"),
            ("server.lisen = 1\n", "1: unknown key \"lisen\" in [server]; did you mean \"listen\"?"),
            ("[server]\nbanana = 1", &format!("2: unknown key \"banana\" in [server]; known keys: {server_keys}")),
            ("listen = 1", "1: unknown key \"listen\" at the top level; did you mean \"listen\" in [server]?"),
            ("[store]\nlisten = 1", "2: unknown key \"listen\" in [store]; did you mean \"listen\" in [server]?"),
            ("[[agent]]\nid = 'a'\nkidn = 'x'", "3: unknown key \"kidn\" in [[agent]]; did you mean \"kind\"?"),
            ("[[agents]]\nid = 'a'", "1: unknown section [[agents]]; did you mean [[agent]]?"),
            ("[sevrer]", "1: unknown section [sevrer]; did you mean [server]?"),
            ("[agent]\nid = 'a'", "1: agents are a list; write [[agent]] for each"),
            ("agent = 3", "1: agent is 3; expected [[agent]] tables"),
            ("agent = ['demo']", "1: agent holds \"demo\"; expected [[agent]] tables"),
            ("server = 3", "1: server is 3; expected a section [server]"),
            ("[server]\ngrace = \n", "2: string values must be quoted, expected literal string"),
            ("[log]\nlevel = 'a'\nlevel = 'b'\n", "3: duplicate key"),
        ] {
            assert_eq!(problems(text.as_bytes()), expected, "{text:?}");
        }
    }

    #[test]
    fn several_problems_come_in_the_order_of_the_lines() {
        let text = b"[zebra]\n[[agent]]\nkidn = 1\n[server]\nlisen = 1\n[log]\nlevle = 1\n";
        let lines: Vec<String> = problems(text).lines().map(|line| line[..2].to_owned()).collect();
        assert_eq!(lines, ["1:", "3:", "5:", "7:"]);
    }

    #[test]
    fn a_file_in_another_encoding_is_named_with_the_line() {
        assert_eq!(problems(b"[server]\n# gr\xfc\xdfe\n"), "2: the file is not UTF-8 text");
    }
}
