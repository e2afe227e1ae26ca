//! `sabir.toml`: found, read and taken apart, with the line of every key.
//!
//! This knows which keys exist and nothing about their values. Unknown keys are errors: a misspelt setting that
//! is silently skipped is worse than a server that does not start.

use std::borrow::Cow;
use std::path::Path;

use sabir_model::{Extension, Skill};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::agent_settings::{AGENT_SETTINGS, EXTENSION_SETTINGS, SKILL_SETTINGS};
use super::environment::{self, Environment};
use super::origin::Problem;
use super::raw::Raw;
use super::sections::{Agent, Config};
use super::setting::Setting;
use super::settings::SETTINGS;
use super::unknown::{Place, unknown};

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

/// One table of a list.
pub struct Table<T: 'static> {
    /// Such as `[[agent]]`.
    pub header: String,
    /// Where the header is.
    pub line: usize,
    pub entries: Vec<Entry<T>>,
}

/// An `[[agent]]` table and the tables below it.
pub struct AgentTable {
    pub agent: Table<Agent>,
    pub skills: Vec<Table<Skill>>,
    pub extensions: Vec<Table<Extension>>,
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
    let file = File { name: name.to_owned(), ..File::default() };
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => {
            let good = bytes[..error.valid_up_to()].iter();
            let line = 1 + good.filter(|byte| **byte == b'\n').count();
            let words = "the file is not UTF-8 text".to_owned();
            return File { problems: vec![Misfit { line, words }], ..file };
        }
    };
    let (table, errors) = DeTable::parse_recoverable(text);
    let mut reader = Reader { lines: Lines { text }, file };
    for error in &errors {
        let line = reader.lines.at(error.span().map_or(0, |span| span.start));
        // One slip often gives several errors; the first of a line is the one to read.
        if !reader.file.problems.iter().any(|problem| problem.line == line) {
            reader.complain(line, error.message().replace('\n', " "));
        }
    }
    if errors.is_empty() {
        reader.take(table.get_ref());
    }
    reader.file.problems.sort_by_key(|problem| problem.line);
    reader.file
}

/// Takes the text apart.
struct Reader<'a> {
    lines: Lines<'a>,
    file: File,
}

type Key<'a> = Spanned<Cow<'a, str>>;

impl Reader<'_> {
    fn complain(&mut self, line: usize, words: String) {
        self.file.problems.push(Misfit { line, words });
    }

    fn take(&mut self, table: &DeTable) {
        let place = top();
        for (key, value) in table {
            let (name, line) = (key.get_ref().as_ref(), self.lines.of(key));
            let section = SETTINGS.iter().find(|setting| setting.section() == name);
            match (section, value.get_ref()) {
                (Some(first), DeValue::Table(table)) => self.take_section(first.section(), table),
                (Some(_), value) => {
                    let words = format!("{name} is {}; expected a section [{name}]", Raw::from(value));
                    self.complain(line, words);
                }
                (None, value) if name == "agent" => {
                    for (line, table) in self.tables("agent", line, value) {
                        let agent = self.take_agent(line, table);
                        self.file.agents.push(agent);
                    }
                }
                (None, value) => self.complain(line, unknown(&place, name, value)),
            }
        }
    }

    fn take_section(&mut self, section: &str, table: &DeTable) {
        let settings: Vec<_> = SETTINGS.iter().filter(|setting| setting.section() == section).collect();
        let place = place(format!("[{section}]"), &settings);
        for (key, value) in table {
            let entry = self.take_entry(&place, &settings, key, value);
            self.file.entries.extend(entry);
        }
    }

    fn take_agent(&mut self, line: usize, table: &DeTable) -> AgentTable {
        let settings: Vec<_> = AGENT_SETTINGS.iter().collect();
        let mut place = place("[[agent]]".to_owned(), &settings);
        place.tables = vec!["[[agent.skill]]".to_owned(), "[[agent.extension]]".to_owned()];
        let agent = Table { header: place.header.clone(), line, entries: Vec::new() };
        let mut taken = AgentTable { agent, skills: Vec::new(), extensions: Vec::new() };
        for (key, value) in table {
            let (line, list) = (self.lines.of(key), value.get_ref());
            match key.get_ref().as_ref() {
                "skill" => taken.skills = self.take_list("agent.skill", SKILL_SETTINGS, line, list),
                "extension" => taken.extensions = self.take_list("agent.extension", EXTENSION_SETTINGS, line, list),
                _ => taken.agent.entries.extend(self.take_entry(&place, &settings, key, value)),
            }
        }
        taken
    }

    /// The tables of a list, which has this path in the file.
    fn take_list<T>(
        &mut self,
        path: &str,
        settings: &'static [Setting<T>],
        line: usize,
        value: &DeValue,
    ) -> Vec<Table<T>> {
        let settings: Vec<_> = settings.iter().collect();
        let place = place(format!("[[{path}]]"), &settings);
        let mut list = Vec::new();
        for (line, table) in self.tables(path, line, value) {
            let mut entries = Vec::new();
            for (key, value) in table {
                entries.extend(self.take_entry(&place, &settings, key, value));
            }
            list.push(Table { header: place.header.clone(), line, entries });
        }
        list
    }

    fn take_entry<T>(
        &mut self,
        place: &Place,
        settings: &[&'static Setting<T>],
        key: &Key,
        value: &Spanned<DeValue>,
    ) -> Option<Entry<T>> {
        let (name, line) = (key.get_ref().as_ref(), self.lines.of(key));
        let setting = settings.iter().find(|setting| setting.leaf() == name);
        if setting.is_none() {
            self.complain(line, unknown(place, name, value.get_ref()));
        }
        Some(Entry { setting: setting?, line, raw: Raw::from(value.get_ref()) })
    }

    /// Each table of a list with its line.
    fn tables<'t>(&mut self, path: &str, line: usize, value: &'t DeValue<'t>) -> Vec<(usize, &'t DeTable<'t>)> {
        let name = path.rsplit('.').next().unwrap_or_default();
        let mut tables = Vec::new();
        match value {
            DeValue::Array(list) => {
                for value in list {
                    let line = self.lines.of(value);
                    match value.get_ref() {
                        DeValue::Table(table) => tables.push((line, table)),
                        other => {
                            let words = format!("{name} holds {}; expected [[{path}]] tables", Raw::from(other));
                            self.complain(line, words);
                        }
                    }
                }
            }
            DeValue::Table(_) => self.complain(line, format!("{name}s are a list; write [[{path}]] for each")),
            other => self.complain(line, format!("{name} is {}; expected [[{path}]] tables", Raw::from(other))),
        }
        tables
    }
}

fn top() -> Place {
    let mut tables: Vec<String> = SETTINGS.iter().map(|setting| format!("[{}]", setting.section())).collect();
    tables.dedup();
    tables.push("[[agent]]".to_owned());
    Place { header: String::new(), keys: Vec::new(), tables }
}

fn place<T>(header: String, settings: &[&'static Setting<T>]) -> Place {
    Place { header, keys: settings.iter().map(|setting| setting.leaf()).collect(), tables: Vec::new() }
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
        let server_keys =
            "listen, public_url, body_limit, memory, cors_origins, allowed_hosts, allow_open, grace, drain, keep_alive";
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
