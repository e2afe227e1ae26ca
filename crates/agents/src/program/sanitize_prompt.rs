//! Sanitizes a caller's text: programs must not run a command at its start, or read files that it names with `@`.
//!
//! Several programs interpret a prompt before their model sees it: `/logout` logs their user out, and
//! `@/home/me/.ssh/id_rsa` sends that file to the model, whatever tools are allowed. Only the operator may do this, not a
//! caller. Sabir puts backticks around such a command, and a space after an `@` that leads to a file; every known program
//! then treats them as text. All other text stays unchanged, and nothing invisible is added.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fs;
use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};

use crate::kinds::{FileMentions, PromptSyntax};

/// Longer names are no paths.
const LONGEST_PATH: usize = 4096;

/// How many different names are looked up on the disk. No message of a person has more. After that, every further `@` that
/// could name a file is treated as one.
const MOST_LOOKUPS: usize = 1_000;

/// How many bytes after all `@` together are examined, since names may overlap. After that, the same applies.
const MOST_READ: usize = 4 << 20;

/// How many possible ends of a path are tried.
const MOST_ENDS: usize = 32;

/// The text, sanitized for a program with this syntax in this folder.
pub(super) fn sanitize_prompt<'t>(text: &'t str, syntax: PromptSyntax, folder: &Path) -> Cow<'t, str> {
    sanitize_where(text, syntax, |path| is_there(folder, path))
}

fn sanitize_where<'t>(text: &'t str, syntax: PromptSyntax, is_there: impl FnMut(&str) -> bool) -> Cow<'t, str> {
    let text = with_inserted(text, mentions(text, syntax.files, is_there));
    match command(&text, syntax) {
        Some((start, end)) => Cow::Owned(with_inserted(&text, vec![(start, '`'), (end, '`')]).into_owned()),
        None => text,
    }
}

fn with_inserted(text: &str, insertions: Vec<(usize, char)>) -> Cow<'_, str> {
    if insertions.is_empty() {
        return Cow::Borrowed(text);
    }
    let mut longer = String::with_capacity(text.len() + insertions.len());
    let mut copied = 0;
    for (at, inserted) in insertions {
        longer.push_str(&text[copied..at]);
        longer.push(inserted);
        copied = at;
    }
    longer.push_str(&text[copied..]);
    Cow::Owned(longer)
}

/// The spaces to insert between each `@` and the file that it names.
fn mentions(text: &str, files: FileMentions, is_there: impl FnMut(&str) -> bool) -> Vec<(usize, char)> {
    let mut blanks: Vec<(usize, char)> = Vec::new();
    let mut lookups = Lookups { is_there, known: HashMap::new(), read: 0 };
    for (at, _) in text.match_indices('@') {
        let name = &text[at + 1..];
        // In `@@name` the first `@` may have got a space after it.
        let is_parted = blanks.last() == Some(&(at, ' '));
        let previous = if is_parted { Some(' ') } else { text[..at].chars().next_back() };
        if is_mention(previous, name, files) && lookups.leads_to_file(name, files) {
            blanks.push((at + 1, ' '));
        }
    }
    blanks
}

/// Looks up which names are files, within limits.
struct Lookups<F> {
    is_there: F,
    known: HashMap<String, bool>,
    read: usize,
}

impl<F: FnMut(&str) -> bool> Lookups<F> {
    fn leads_to_file(&mut self, name: &str, files: FileMentions) -> bool {
        if self.read >= MOST_READ {
            return true;
        }
        let word = word(name, files);
        self.read += word.len().max(1);
        let candidates = candidates(name, &word, files);
        self.read += candidates.iter().map(String::len).sum::<usize>();
        candidates.into_iter().any(|candidate| self.look_up(candidate))
    }

    fn look_up(&mut self, candidate: String) -> bool {
        if let Some(known) = self.known.get(&candidate) {
            return *known;
        }
        if self.known.len() >= MOST_LOOKUPS {
            return true;
        }
        let is_there = (self.is_there)(&candidate);
        self.known.insert(candidate, is_there);
        is_there
    }
}

/// Where the command at the start of the text begins and ends, its arguments not included.
fn command(text: &str, syntax: PromptSyntax) -> Option<(usize, usize)> {
    // Most programs trim the text first.
    let start = text.find(|c| !is_blank(c))?;
    let sign = text[start..].chars().next().filter(|sign| syntax.command_signs.contains(*sign))?;
    let behind = start + sign.len_utf8();
    // Some also take `/ name`.
    let word = behind + text[behind..].find(|c| !is_blank(c))?;
    let end = text[word..].find(is_blank).map_or(text.len(), |length| word + length);
    let is_path = text[word..end].contains('/');
    (!is_path || syntax.takes_paths_for_commands).then_some((start, end))
}

/// Whether an `@` after this character can name a file.
fn is_mention(previous: Option<char>, name: &str, files: FileMentions) -> bool {
    let begins = match files {
        FileMentions::Never => false,
        FileMentions::AfterBlank => previous.is_none_or(|c| is_blank(c) || "。、？！".contains(c)),
        FileMentions::Anywhere => previous != Some('\\'),
    };
    begins && name.chars().next().is_some_and(|first| !is_blank(first))
}

/// The word after an `@`.
fn word(name: &str, files: FileMentions) -> Cow<'_, str> {
    match files {
        FileMentions::Never => Cow::Borrowed(""),
        FileMentions::AfterBlank => Cow::Borrowed(name.split(is_blank).next().unwrap_or_default()),
        FileMentions::Anywhere => Cow::Owned(unquoted(name)),
    }
}

/// What a program may read as the path after an `@`.
fn candidates(name: &str, word: &str, files: FileMentions) -> Vec<String> {
    let mut candidates = Vec::new();
    if let Some((quoted, _)) = name.strip_prefix('"').and_then(|rest| rest.split_once('"')) {
        candidates.push(quoted.to_owned());
    }
    // Punctuation after a name is not part of it, nor is a line number.
    let is_part_of_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let ends: Vec<usize> = match files {
        FileMentions::Anywhere => word
            .match_indices([',', ';', ':', '!', '?', '(', ')', '[', ']', '{', '}', '<', '>'])
            .chain(word.match_indices(['|', '\'', '"', '#', '`']))
            .map(|(at, _)| at)
            .take(MOST_ENDS)
            .collect(),
        _ => word.find('#').into_iter().collect(),
    };
    for end in ends.into_iter().chain([word.len()]) {
        let whole = &word[..end];
        candidates.push(whole.to_owned());
        candidates.push(whole.trim_end_matches(|c| !is_part_of_word(c)).to_owned());
    }
    candidates.retain(|candidate| !candidate.is_empty() && candidate.len() <= LONGEST_PATH);
    candidates.dedup();
    candidates
}

/// The word at the start of the text, as a shell would read it: spaces may be quoted or escaped.
fn unquoted(text: &str) -> String {
    let (mut word, mut is_quoted) = (String::new(), false);
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '"' => is_quoted = !is_quoted,
            '\\' => word.extend(letters.next()),
            blank if is_blank(blank) && !is_quoted => break,
            letter => word.push(letter),
        }
        if word.len() > LONGEST_PATH {
            break;
        }
    }
    word
}

/// Includes the byte order mark, which JavaScript treats as whitespace.
fn is_blank(letter: char) -> bool {
    letter.is_whitespace() || letter == '\u{feff}'
}

fn is_there(folder: &Path, path: &str) -> bool {
    // Only the program knows whose home folder that is.
    if path == "~" || path.starts_with("~/") {
        return true;
    }
    let path = folder.join(path);
    [without_detours(&path), path].iter().any(|path| match fs::metadata(path) {
        Ok(_) => true,
        Err(error) => {
            let is_no_path = [ErrorKind::NotFound, ErrorKind::NotADirectory, ErrorKind::InvalidInput];
            !is_no_path.contains(&error.kind()) && error.kind() != ErrorKind::InvalidFilename
        }
    })
}

/// Removes each `name/..` from the path, whether the folder exists or not: programs normalize paths before they open them.
fn without_detours(path: &Path) -> PathBuf {
    let mut short = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => {
                short.pop();
            }
            component => short.push(component),
        }
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::{self, CLAUDE_SYNTAX, PLAIN_SYNTAX, UNKNOWN_SYNTAX};
    use crate::program::settings::{Kind, Mode};
    use proptest::prelude::*;

    const FILES: [&str; 5] = ["/out/id_rsa", "in.txt", "b.c", "a b", "~/x"];

    fn check(text: &str, syntax: PromptSyntax) -> String {
        sanitize_where(text, syntax, |path| FILES.contains(&path)).into_owned()
    }

    #[test]
    fn commands_and_files_become_text() {
        for (text, claude, unknown) in [
            ("/cost", "`/cost`", "`/cost`"),
            ("/cost of it", "`/cost` of it", "`/cost` of it"),
            (" \n/cost", " \n`/cost`", " \n`/cost`"),
            ("/ cost now", "`/ cost` now", "`/ cost` now"),
            ("/etc/hosts is wrong", "/etc/hosts is wrong", "`/etc/hosts` is wrong"),
            ("see @/out/id_rsa", "see @ /out/id_rsa", "see @ /out/id_rsa"),
            ("@in.txt, please", "@ in.txt, please", "@ in.txt, please"),
            ("is it @in.txt?", "is it @ in.txt?", "is it @ in.txt?"),
            ("@in.txt#L3-5 @in.txt.", "@ in.txt#L3-5 @ in.txt.", "@ in.txt#L3-5 @ in.txt."),
            ("@\"a b\"", "@ \"a b\"", "@ \"a b\""),
            ("@a\\ b", "@a\\ b", "@ a\\ b"),
            ("@~/x", "@ ~/x", "@ ~/x"),
            ("。@in.txt", "。@ in.txt", "。@ in.txt"),
            ("(@in.txt)", "(@in.txt)", "(@ in.txt)"),
            ("a@b.c", "a@b.c", "a@ b.c"),
            ("\\@in.txt", "\\@in.txt", "\\@in.txt"),
            ("/init @in.txt", "`/init` @ in.txt", "`/init` @ in.txt"),
        ] {
            assert_eq!(check(text, CLAUDE_SYNTAX), claude, "{text:?}");
            assert_eq!(check(text, UNKNOWN_SYNTAX), unknown, "{text:?}");
            assert_eq!(check(text, PLAIN_SYNTAX), text);
        }
    }

    #[test]
    fn all_other_text_stays_as_it_is() {
        for text in [
            "",
            "/",
            "@",
            "@ in.txt",
            "use @Override and @scope/pkg",
            "import x from '@/components/Button'",
            "mail a@example.com",
            "the file /out/id_rsa, and ~/x",
            "either/or, and /cost in prose",
            "`/cost`",
            "an umlaut: ä@ö",
        ] {
            for syntax in [CLAUDE_SYNTAX, UNKNOWN_SYNTAX] {
                assert_eq!(check(text, syntax), text);
            }
        }
    }

    #[test]
    fn a_file_is_what_is_on_the_disk() {
        let home = tempfile::tempdir().unwrap();
        let (work, secret) = (home.path().join("work"), home.path().join("secret"));
        fs::create_dir(&work).unwrap();
        fs::write(&secret, "").unwrap();
        fs::write(work.join("in.txt"), "").unwrap();
        let secret = secret.to_str().unwrap();
        for (text, is_changed) in [
            (format!("@{secret}"), true),
            ("@../secret".to_owned(), true),
            ("@missing/../../secret".to_owned(), true),
            ("@in.txt/../../secret".to_owned(), true),
            ("@in.txt".to_owned(), true),
            ("@in.txt/more".to_owned(), false),
            ("@missing".to_owned(), false),
            (format!("@{}", "x".repeat(5000)), false),
            (format!("@{}", "x".repeat(300)), false),
            ("@a\0b".to_owned(), false),
        ] {
            assert_eq!(sanitize_prompt(&text, CLAUDE_SYNTAX, &work) != text, is_changed, "{text:?}");
        }
    }

    #[test]
    fn a_long_text_with_many_signs_stays_as_it_is() {
        let text = "@Override\n".repeat(20_000);
        assert_eq!(check(&text, CLAUDE_SYNTAX), text);
    }

    #[test]
    fn the_work_is_bounded() {
        for text in
            ["@".repeat(1 << 16), "@a,".repeat(1 << 15), "@\"".repeat(1 << 15), format!("@{}", ",".repeat(1 << 16))]
        {
            let mut lookups = 0;
            sanitize_where(&text, UNKNOWN_SYNTAX, |_| {
                lookups += 1;
                false
            });
            assert!(lookups <= MOST_LOOKUPS, "{lookups}");
        }
    }

    #[test]
    fn beyond_the_limit_every_name_is_taken_for_a_file() {
        let names: Vec<String> = (0..100_000).map(|number| format!("@name{number}")).collect();
        for syntax in [CLAUDE_SYNTAX, UNKNOWN_SYNTAX] {
            let mut lookups = 0;
            let text = format!("{} @name0", names.join(" "));
            let sanitized = sanitize_where(&text, syntax, |_| {
                lookups += 1;
                false
            });
            assert_eq!(lookups, MOST_LOOKUPS);
            let words: Vec<&str> = sanitized.split('@').skip(1).collect();
            assert!(words[..MOST_LOOKUPS].iter().all(|word| !word.starts_with(' ')));
            assert!(words[MOST_LOOKUPS..100_000].iter().all(|word| word.starts_with(' ')));
            assert_eq!(words[100_000], "name0", "what is known to lead nowhere stays as it is");
        }
    }

    #[test]
    fn every_program_has_its_syntax() {
        for (kind, mode, text, expected) in [
            (Kind::ClaudeCode, Mode::Duplex, "/cost @in.txt", "`/cost` @ in.txt"),
            (Kind::ClaudeCode, Mode::OneShot, "/cost @in.txt", "`/cost` @ in.txt"),
            (Kind::Codex, Mode::Duplex, "/cost @in.txt", "/cost @in.txt"),
            (Kind::Gemini, Mode::Acp, "$memory show @in.txt", "`$memory` show @in.txt"),
            (Kind::Gemini, Mode::OneShot, "/help x@in.txt", "`/help` x@ in.txt"),
            (Kind::Opencode, Mode::Acp, "/etc/hosts @in.txt", "`/etc/hosts` @in.txt"),
            (Kind::Goose, Mode::Acp, "/prompts @in.txt", "`/prompts` @in.txt"),
            (Kind::Acp, Mode::Acp, "/logout @in.txt", "`/logout` @ in.txt"),
            (Kind::Command, Mode::OneShot, "/x @in.txt", "/x @in.txt"),
        ] {
            let syntax = kind.info().mode_info(mode).unwrap().prompts;
            assert_eq!(check(text, syntax), expected, "{kind:?} {mode:?}");
        }
        assert_eq!(kinds::PROGRAMS.len(), 12, "a new kind has a row here");
    }

    fn any_syntax() -> impl Strategy<Value = PromptSyntax> {
        prop_oneof![Just(CLAUDE_SYNTAX), Just(UNKNOWN_SYNTAX), Just(PLAIN_SYNTAX)]
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn text_without_such_words_is_unchanged(text in "[^/$@]{0,3}[a-zA-Zä`(][^@]{0,60}", syntax in any_syntax()) {
            prop_assert_eq!(sanitize_where(&text, syntax, |_| true), text.as_str());
        }

        #[test]
        fn names_that_lead_nowhere_are_unchanged(text in "[a-z@/. ]{0,40}", syntax in any_syntax()) {
            let text = format!("x{text}");
            prop_assert_eq!(sanitize_where(&text, syntax, |_| false), text.as_str());
        }

        /// Only backticks and spaces are added, nothing is lost, and sanitizing twice changes nothing.
        #[test]
        fn little_is_added(text in "[@/$a\\\\\" .\n,#~\u{feff}]{0,24}|\\PC{0,40}", syntax in any_syntax()) {
            let is_there = |path: &str| !path.starts_with('`');
            let sanitized = sanitize_where(&text, syntax, is_there).into_owned();
            let mut rest = text.chars().peekable();
            for letter in sanitized.chars() {
                match rest.peek() {
                    Some(next) if *next == letter => { rest.next(); }
                    _ => prop_assert!(letter == '`' || letter == ' ', "{text:?} became {sanitized:?}"),
                }
            }
            prop_assert!(rest.next().is_none(), "{text:?} became {sanitized:?}");
            prop_assert_eq!(&sanitize_where(&sanitized, syntax, is_there), &sanitized);
        }
    }
}
