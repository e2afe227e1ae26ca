//! `sabir man`: the manual pages, made of the same words as `--help`.
//!
//! What `--help` has below the flags is told apart here: examples become a section that keeps its lines, and paragraphs
//! become the description.

use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::Path;

use anyhow::Context;
use clap::{Command, CommandFactory};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, roman};

use crate::cli::Cli;

/// A page of the manual.
pub struct ManPage {
    /// Such as `sabir-serve.1`.
    pub file_name: String,
    /// In the language of `man`.
    pub text: String,
}

pub fn page_of_sabir() -> ManPage {
    page(&sabir())
}

/// Writes the pages of all commands into this folder.
pub fn write_pages(folder: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("cannot make the folder {}", folder.display()))?;
    let mut pages = Vec::new();
    collect(&sabir(), &mut pages);
    for page in pages {
        let file = folder.join(&page.file_name);
        replace(folder, &page).with_context(|| format!("cannot write {}", file.display()))?;
    }
    Ok(())
}

/// A new file in the place of the old one. Where that is a link, the link goes, and the file that it leads to stays as it is.
fn replace(folder: &Path, page: &ManPage) -> io::Result<()> {
    let new = folder.join(format!(".{}.new", page.file_name));
    match fs::remove_file(&new) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).open(&new)?;
    let written = file.write_all(page.text.as_bytes()).and_then(|()| fs::rename(&new, folder.join(&page.file_name)));
    if written.is_err() {
        // The first error is the one to tell.
        let _ = fs::remove_file(&new);
    }
    written
}

fn sabir() -> Command {
    let mut command = Cli::command().disable_help_subcommand(true);
    // Now each command knows its whole name, such as `sabir push list`.
    command.build();
    command
}

/// The page of a command, and those of the commands below it.
fn collect(command: &Command, pages: &mut Vec<ManPage>) {
    pages.push(page(command));
    for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
        collect(below, pages);
    }
}

fn page(command: &Command) -> ManPage {
    let man = Man::new(command.clone()).source(concat!("sabir ", env!("CARGO_PKG_VERSION"))).manual("Sabir");
    let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let (lists, paragraphs): (Vec<Block<'_>>, Vec<Block<'_>>) =
        help.split("\n\n").map(Block::read).partition(|block| block.title.is_some());
    let mut text = Vec::new();
    let mut write = || {
        man.render_title(&mut text)?;
        man.render_name_section(&mut text)?;
        man.render_synopsis_section(&mut text)?;
        man.render_description_section(&mut text)?;
        roff_of(&paragraphs).to_writer(&mut text)?;
        man.render_options_section(&mut text)?;
        if command.has_subcommands() {
            man.render_subcommands_section(&mut text)?;
        }
        roff_of(&lists).to_writer(&mut text)
    };
    write().expect("memory takes what is written");
    let text = String::from_utf8(text).expect("help is text");
    ManPage { file_name: man.get_filename(), text }
}

/// What stands between two empty lines of the help.
struct Block<'a> {
    /// `Examples:` over indented lines.
    title: Option<&'a str>,
    lines: Vec<&'a str>,
}

impl<'a> Block<'a> {
    fn read(text: &'a str) -> Self {
        let mut lines = text.lines();
        let title = lines.next().and_then(|first| first.strip_suffix(':'));
        if title.is_some() && lines.clone().all(|line| line.starts_with("  ")) {
            return Self { title, lines: lines.map(|line| &line[2..]).collect() };
        }
        Self { title: None, lines: text.lines().collect() }
    }
}

fn roff_of(blocks: &[Block<'_>]) -> Roff {
    let mut roff = Roff::new();
    for Block { title, lines } in blocks {
        match title {
            Some(title) => roff.control("SH", [title.to_uppercase().as_str()]).control("nf", []),
            None => roff.control("PP", []),
        };
        for line in lines {
            roff.text([roman(*line)]);
        }
        if title.is_some() {
            roff.control("fi", []);
        }
    }
    roff
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pages() -> Vec<ManPage> {
        let mut pages = Vec::new();
        collect(&sabir(), &mut pages);
        pages
    }

    fn text_of<'a>(pages: &'a [ManPage], file_name: &str) -> &'a str {
        &pages.iter().find(|page| page.file_name == file_name).expect("the page is there").text
    }

    #[test]
    fn every_flag_of_every_command_is_on_its_page() {
        fn check(command: &Command, pages: &[ManPage]) {
            let name = command.get_display_name().unwrap_or("sabir");
            let text = text_of(pages, &format!("{name}.1"));
            // Hyphens that are no places to break a line are escaped.
            let has = |words: String| text.contains(&words.replace('-', "\\-"));
            let shown = command.get_arguments().filter(|flag| !flag.is_hide_set());
            for flag in shown.filter_map(|flag| flag.get_long()) {
                assert!(has(format!("--{flag}")), "--{flag} of {name}");
            }
            for below in command.get_subcommands() {
                assert!(has(format!("{name}-{}(1)", below.get_name())), "{} of {name}", below.get_name());
                check(below, pages);
            }
        }
        check(&sabir(), &pages());
    }

    #[test]
    fn help_below_the_flags_is_told_apart() {
        for (help, title, lines) in [
            ("Examples:\n  sabir man\n    more", Some("Examples"), &["sabir man", "  more"][..]),
            ("Two lines\nof a paragraph.", None, &["Two lines", "of a paragraph."]),
            ("A paragraph:\nnot a list", None, &["A paragraph:", "not a list"]),
        ] {
            let block = Block::read(help);
            assert_eq!((block.title, block.lines.as_slice()), (title, lines), "{help}");
        }
        let pages = pages();
        let serve = text_of(&pages, "sabir-serve.1");
        let order =
            [".SH NAME", ".SH SYNOPSIS", ".SH DESCRIPTION", "Without \\-\\-config", ".SH OPTIONS", ".SH EXAMPLES"];
        let places = order.map(|words| serve.find(words).unwrap_or_else(|| panic!("no {words} in {serve}")));
        assert!(places.is_sorted(), "{serve}");
        assert!(text_of(&pages, "sabir-bench.1").contains(".SH WORKLOADS"));
    }
}
