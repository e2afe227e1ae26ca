//! The parts of a message on the command line: flags that may be repeated, and whose order counts.
//!
//! `clap` gathers the values of each flag by itself, so their places are asked for here.

use clap::error::ErrorKind;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, Error, FromArgMatches};

/// In the order of the command line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PartOptions(pub Vec<PartOption>);

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartOption {
    pub source: PartSource,
    pub value: String,
    pub media_type: Option<String>,
}

/// What the value of a flag is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PartSource {
    Text,
    /// A path, or a URL that the agent fetches.
    File,
    /// The path of a file with JSON.
    Data,
}

const TEXT: &str = "text";
const FILE: &str = "file";
const DATA: &str = "data";
const MEDIA_TYPE: &str = "media-type";

impl Args for PartOptions {
    fn augment_args(command: Command) -> Command {
        let flag = |name: &'static str, value: &'static str, help: &'static str| {
            Arg::new(name).long(name).value_name(value).help(help).action(ArgAction::Append).help_heading("Parts")
        };
        command
            .arg(flag(TEXT, "TEXT", "A part that is text; - reads the standard input"))
            .arg(flag(FILE, "PATH|URL", "A part that is a file: a path is sent along, a URL is for the agent to fetch"))
            .arg(flag(DATA, "PATH", "A part that is JSON, from a file; - reads the standard input"))
            .arg(flag(MEDIA_TYPE, "TYPE", "The media type of the part before it, such as application/pdf"))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for PartOptions {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let mut flags: Vec<(usize, &str, &String)> = Vec::new();
        for name in [TEXT, FILE, DATA, MEDIA_TYPE] {
            let values = matches.get_many(name).into_iter().flatten();
            let places = matches.indices_of(name).into_iter().flatten();
            flags.extend(places.zip(values).map(|(place, value)| (place, name, value)));
        }
        flags.sort_by_key(|(place, ..)| *place);
        let mut parts: Vec<PartOption> = Vec::new();
        for (_, name, value) in flags {
            let source = match name {
                TEXT => PartSource::Text,
                FILE => PartSource::File,
                DATA => PartSource::Data,
                _ => match parts.last_mut() {
                    Some(part) if part.media_type.is_none() => {
                        part.media_type = Some(value.clone());
                        continue;
                    }
                    _ => {
                        let why = "--media-type belongs behind the --text, --file or --data that it is about\n";
                        return Err(Error::raw(ErrorKind::ArgumentConflict, why));
                    }
                },
            };
            parts.push(PartOption { source, value: value.clone(), media_type: None });
        }
        Ok(PartOptions(parts))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(words: &str) -> Result<String, String> {
        let command = PartOptions::augment_args(Command::new("x").no_binary_name(true));
        let matches = command.try_get_matches_from(words.split_whitespace()).map_err(|error| error.to_string())?;
        let PartOptions(parts) = PartOptions::from_arg_matches(&matches).map_err(|error| error.to_string())?;
        let part = |part: &PartOption| {
            let media_type = part.media_type.as_ref().map(|name| format!(" as {name}")).unwrap_or_default();
            format!("{:?} {}{media_type}", part.source, part.value)
        };
        Ok(parts.iter().map(part).collect::<Vec<_>>().join(", "))
    }

    #[test]
    fn parts_keep_their_order_and_their_types() {
        for (words, expected) in [
            ("", Ok("")),
            ("--file a --text b --file c", Ok("File a, Text b, File c")),
            ("--data a --media-type x/y --file b --text c --media-type z", Ok("Data a as x/y, File b, Text c as z")),
            ("--data=- --text -", Ok("Data -, Text -")),
            ("--media-type x --file b", Err("belongs behind")),
            ("--file b --media-type x --media-type y", Err("belongs behind")),
        ] {
            match (read(words), expected) {
                (Ok(parts), Ok(expected)) => assert_eq!(parts, expected, "{words}"),
                (Err(error), Err(expected)) => assert!(error.contains(expected), "{words}: {error}"),
                (other, _) => panic!("{words}: {other:?}"),
            }
        }
    }
}
