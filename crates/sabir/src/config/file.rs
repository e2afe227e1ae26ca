//! `sabir.toml`: found, read, and taken apart into tables with the line of every key.
//!
//! This knows nothing about settings, except what to say of a key that does not exist: a misspelt setting that is
//! silently skipped is worse than a server that does not start.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::agent_settings::AGENT_SETTINGS;
use super::environment::{self, Environment};
use super::origin::Problem;
use super::paths::expand_home;
use super::raw::{Raw, RawEntry, RawTable, shortened};
use super::settings::{SETTINGS, Setting};
use super::values::nearest;

/// The file that is read when nobody names one, if it is there.
const USUAL: &str = "sabir.toml";

#[derive(Default)]
pub struct File {
    /// In messages.
    pub name: String,
    pub path: PathBuf,
    /// Empty if the file is not TOML.
    pub root: RawTable,
    pub problems: Vec<Problem>,
}

impl File {
    /// Where its relative paths begin; empty is the working directory.
    /// What stands in a section.
    pub fn entries_of(&self, section: &str) -> impl Iterator<Item = &RawEntry> {
        let tables = self.root.entries.iter().filter(move |entry| entry.key == section);
        tables.flat_map(|entry| match &entry.value {
            Raw::Table(table) => table.entries.as_slice(),
            _ => &[],
        })
    }

    pub fn folder(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new(""))
    }

    /// The folder that the server belongs to, and the name of its file there. Without a file, or with one that is not kept
    /// anywhere (a pipe), that is the working directory.
    pub fn home_of_server(&self) -> (PathBuf, Option<&OsStr>) {
        let (folder, name) = match self.path.is_file() {
            true => (self.folder(), self.path.file_name()),
            false => (Path::new(""), None),
        };
        let folder = if folder == Path::new("") { Path::new(".") } else { folder };
        // One folder has one name, however it is reached.
        (folder.canonicalize().or_else(|_| std::path::absolute(folder)).unwrap_or_default(), name)
    }
}

/// Path and content of the file that a flag or the environment names, or of the usual one if it exists.
pub fn find(flag: Option<&Path>, environment: &Environment) -> Result<Option<(PathBuf, Vec<u8>)>, Problem> {
    let variable = environment.path(environment::FILE);
    let (path, named_by) = match (flag, &variable) {
        (Some(path), _) => (path, "--config"),
        (None, Some(path)) => (path.as_path(), environment::FILE),
        (None, None) if !Path::new(USUAL).exists() => return Ok(None),
        (None, None) => (Path::new(USUAL), "the working directory"),
    };
    let unreadable = |words: &str| {
        let name = path.display();
        Problem::outside(format!("{name}: cannot read the configuration file from {named_by}: {words}"))
    };
    let path = expand_home(path, environment.path("HOME").as_deref()).map_err(|words| unreadable(&words))?;
    match std::fs::read(&path) {
        Ok(bytes) => Ok(Some((path, bytes))),
        Err(error) => Err(unreadable(&error.to_string())),
    }
}

pub fn parse(path: &Path, bytes: &[u8]) -> File {
    let parsed = match std::str::from_utf8(bytes) {
        Ok(text) => parse_toml(text),
        Err(error) => {
            let line = 1 + bytes[..error.valid_up_to()].iter().filter(|byte| **byte == b'\n').count();
            Err(vec![(line, "the file is not UTF-8 text".to_owned())])
        }
    };
    let (name, path) = (path.display().to_string(), path.to_owned());
    match parsed {
        Ok(root) => File { name, path, root, problems: Vec::new() },
        Err(errors) => {
            let problems = errors.iter().map(|(line, words)| Problem::in_file(&name, *line, words)).collect();
            File { name, path, root: RawTable::default(), problems }
        }
    }
}

/// The tables of the text, or what is wrong with it, by line.
pub fn parse_toml(text: &str) -> Result<RawTable, Vec<(usize, String)>> {
    let lines = LineIndex { text };
    let (table, errors) = DeTable::parse_recoverable(text);
    if errors.is_empty() {
        return Ok(lines.table(0, 1, table.get_ref()));
    }
    let mut problems: Vec<(usize, String)> = Vec::new();
    for error in &errors {
        let line = lines.at(error.span().map_or(0, |span| span.start));
        // One slip often gives several errors; the first of a line is the one to read.
        if !problems.iter().any(|(known, _)| *known == line) {
            problems.push((line, error.message().replace('\n', " ")));
        }
    }
    Err(problems)
}

/// Turns values into ours, and places in the text into line numbers.
struct LineIndex<'a> {
    text: &'a str,
}

impl LineIndex<'_> {
    fn at(&self, offset: usize) -> usize {
        1 + self.text.bytes().take(offset).filter(|byte| *byte == b'\n').count()
    }

    fn table(&self, level: usize, line: usize, table: &DeTable) -> RawTable {
        let entries = table.iter().map(|(key, value)| {
            let line = self.at(key.span().start);
            RawEntry { key: key.get_ref().to_string(), line, value: self.value(level + 1, value) }
        });
        RawTable { line, entries: entries.collect() }
    }

    fn value(&self, level: usize, value: &Spanned<DeValue>) -> Raw {
        let unfit = |number: &str| Raw::Other(format!("the number {}", shortened(number)));
        match value.get_ref() {
            DeValue::String(text) => Raw::Text(text.to_string()),
            DeValue::Boolean(value) => Raw::Boolean(*value),
            DeValue::Integer(number) => {
                let parsed = i64::from_str_radix(number.as_str(), number.radix());
                parsed.map_or_else(|_| unfit(number.as_str()), Raw::Integer)
            }
            DeValue::Float(number) => number.as_str().parse().map_or_else(|_| unfit(number.as_str()), Raw::Float),
            DeValue::Datetime(date) => Raw::Date(date.to_string()),
            DeValue::Array(_) | DeValue::Table(_) if level >= DEEPEST => {
                Raw::Other(format!("a value more than {DEEPEST} levels deep"))
            }
            DeValue::Array(list) => Raw::List(list.iter().map(|value| self.value(level + 1, value)).collect()),
            DeValue::Table(table) => Raw::Table(self.table(level, self.at(value.span().start), table)),
        }
    }
}

/// What is deeper than this is not looked into. Nobody writes it by hand, and readers of JSON give up at 128.
const DEEPEST: usize = 64;

/// The tables of a list, whose path in the file is `path`: `[[agent]]`, `[[agent.skill]]`.
pub fn tables_of<'a>(file: &str, path: &str, list: &'a RawEntry, problems: &mut Vec<Problem>) -> Vec<&'a RawTable> {
    let name = path.rsplit('.').next().unwrap_or_default();
    let mut problem = |words: String| problems.push(Problem::in_file(file, list.line, &words));
    let mut tables = Vec::new();
    match &list.value {
        Raw::List(list) => {
            for value in list {
                match value {
                    Raw::Table(table) => tables.push(table),
                    other => problem(format!("{name} holds {other}; expected [[{path}]] tables")),
                }
            }
        }
        Raw::Table(_) => problem(format!("{name}s are a list; write [[{path}]] for each")),
        other => problem(format!("{name} is {other}; expected [[{path}]] tables")),
    }
    tables
}

/// The lists of tables in a section, beside its settings.
pub fn lists_in(section: &str) -> &'static [&'static str] {
    match section {
        "auth" => &["token", "api_key", "issuer"],
        _ => &[],
    }
}

/// A level of the file, and what may stand there.
pub struct TableKeys {
    /// Such as `[server]`; empty at the top.
    pub header: String,
    keys: Vec<&'static str>,
    /// The headers of tables below.
    tables: Vec<String>,
}

impl TableKeys {
    pub fn top() -> Self {
        let mut tables: Vec<String> = SETTINGS.iter().map(|setting| format!("[{}]", setting.section())).collect();
        tables.dedup();
        tables.extend(["[[agent]]"].map(str::to_owned));
        TableKeys { header: String::new(), keys: Vec::new(), tables }
    }

    pub fn section(name: &str) -> Self {
        let settings = SETTINGS.iter().filter(|setting| setting.section() == name);
        let tables = lists_in(name).iter().map(|list| format!("[[{name}.{list}]]")).collect();
        TableKeys { header: format!("[{name}]"), keys: settings.map(Setting::leaf).collect(), tables }
    }

    /// A table of the list with this path, and the lists below it.
    pub fn list<T>(path: &str, settings: &[Setting<T>], below: &[&str]) -> Self {
        let tables = below.iter().map(|name| format!("[[{path}.{name}]]")).collect();
        TableKeys { header: format!("[[{path}]]"), keys: settings.iter().map(Setting::leaf).collect(), tables }
    }

    /// What to say of a key that does not exist here: the one that was most likely meant, or all that are known.
    pub fn unknown(&self, name: &str, value: &Raw) -> String {
        let brackets = match value {
            Raw::Table(_) => Some(("[", "]")),
            Raw::List(list) if list.iter().any(|item| matches!(item, Raw::Table(_))) => Some(("[[", "]]")),
            _ => None,
        };
        let Some((open, close)) = brackets.filter(|_| !self.tables.is_empty()) else {
            return self.unknown_key(name);
        };
        // Kept to one short line.
        let shown = shortened(name).replace(char::is_control, "?");
        let path = match path_of(&self.header) {
            "" => shown,
            path => format!("{path}.{shown}"),
        };
        match nearest(name, self.tables.iter().map(|table| leaf_of(table))) {
            Some(near) => format!("unknown section {open}{path}{close}; did you mean {}?", self.spell(near)),
            None => format!("unknown section {open}{path}{close}; known sections: {}", self.tables.join(", ")),
        }
    }

    fn unknown_key(&self, name: &str) -> String {
        let here = match self.header.as_str() {
            "" => "at the top level".to_owned(),
            header => format!("in {header}"),
        };
        let unknown = format!("unknown key {} {here}", Raw::Text(name.to_owned()));
        let known = self.keys.iter().copied().chain(self.tables.iter().map(|table| leaf_of(table)));
        if let Some(near) = nearest(name, known) {
            return format!("{unknown}; did you mean {}?", self.spell(near));
        }
        if let Some(header) = self.elsewhere(name) {
            return format!("{unknown}; did you mean \"{name}\" in {header}?");
        }
        match self.keys.as_slice() {
            [] => format!("{unknown}; known sections: {}", self.tables.join(", ")),
            keys => format!("{unknown}; known keys: {}", keys.join(", ")),
        }
    }

    /// A key that is right and stands in the wrong place. What follows a table of an agent belongs to that table, so
    /// the agent is the first to ask there.
    fn elsewhere(&self, name: &str) -> Option<String> {
        let section = SETTINGS.iter().find(|setting| setting.leaf() == name);
        let section = section.map(|setting| format!("[{}]", setting.section()));
        let agent = AGENT_SETTINGS.iter().any(|setting| setting.key == name).then(|| "[[agent]]".to_owned());
        if path_of(&self.header).starts_with("agent") { agent.or(section) } else { section.or(agent) }
    }

    /// A known name as it is written: a key in quotes, a table with its brackets.
    fn spell(&self, name: &str) -> String {
        match self.tables.iter().find(|table| leaf_of(table) == name) {
            Some(header) => header.clone(),
            None => format!("\"{name}\""),
        }
    }
}

fn path_of(header: &str) -> &str {
    header.trim_matches(['[', ']'])
}

fn leaf_of(header: &str) -> &str {
    path_of(header).rsplit('.').next().unwrap_or_default()
}
