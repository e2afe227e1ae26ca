//! The message that a command sends, made of words, files and the standard input.

use std::fs;
use std::io::Read;
use std::path::Path;

use sabir_model::{ContextId, IdempotencyKey, Json, Message, MessageId, Part, QUESTION_ID, Role, Send, Status, TaskId};
use sabir_outbound::remote::Discovered;
use sabir_wire::NEWEST_BIRTH;
use uuid::Uuid;

use super::failure::Failure;
use super::media_type;
use crate::cli::{PartOption, PartOptions, PartSource};

/// More is not for a command line, and few servers take it.
const LARGEST_INPUT: u64 = 256 << 20;
/// Reads the standard input.
const STDIN: &str = "-";

/// The parts of a message, the words first. `input` is the standard input, which can be read once.
pub fn parts(words: &[String], options: &PartOptions, input: &mut dyn Read) -> Result<Vec<Part>, Failure> {
    let readers = words.iter().filter(|word| *word == STDIN).count()
        + options.0.iter().filter(|part| part.value == STDIN && part.source != PartSource::File).count();
    if readers > 1 {
        return Err(Failure::usage("the standard input can be read once, but `-` is there several times"));
    }
    let mut parts = Vec::new();
    match words {
        [] => {}
        [only] if only == STDIN => parts.push(Part::text(read_text(input)?)),
        words if words.iter().any(|word| word == STDIN) => {
            return Err(Failure::usage("`-` reads the text from the standard input, so no other words can be there"));
        }
        words => parts.push(Part::text(words.join(" "))),
    }
    for option in &options.0 {
        parts.push(part(option, input)?);
    }
    Ok(parts)
}

fn part(option: &PartOption, input: &mut dyn Read) -> Result<Part, Failure> {
    let PartOption { source, value, media_type } = option;
    let mut part = match source {
        PartSource::Text if value == STDIN => Part::text(read_text(input)?),
        PartSource::Text => Part::text(value.as_str()),
        PartSource::File if value.contains("://") => {
            let name = value.split(['?', '#']).next().and_then(|path| path.rsplit('/').next());
            let filename = name.filter(|name| !name.is_empty()).map(str::to_owned);
            let media_type = filename.as_deref().map(|name| media_type::of_name(name).to_owned());
            Part { filename, media_type, ..Part::url(value.as_str()) }
        }
        PartSource::File => {
            let bytes = read_file(Path::new(value))?;
            let name = Path::new(value).file_name().map(|name| name.to_string_lossy().into_owned());
            let name = name.unwrap_or_else(|| value.clone());
            let media_type = media_type::of_name(&name);
            Part::file(name, media_type, &bytes)
        }
        PartSource::Data => {
            let bytes = if value == STDIN { read_all(input)? } else { read_file(Path::new(value))? };
            let text = String::from_utf8(bytes).map_err(|_| Failure::usage(format!("{value} is not JSON: no text")))?;
            let json = Json::parse(text.trim());
            Part::data(json.map_err(|error| Failure::usage(format!("{value} is not JSON: {error}")))?)
        }
    };
    if media_type.is_some() {
        part.media_type.clone_from(media_type);
    }
    Ok(part)
}

/// A line end at the end belongs to the shell.
fn read_text(input: &mut dyn Read) -> Result<String, Failure> {
    let text = String::from_utf8(read_all(input)?);
    let text = text.map_err(|_| Failure::usage("the standard input is not text in UTF-8; send it with --file"))?;
    let text = text.strip_suffix('\n').unwrap_or(&text);
    Ok(text.strip_suffix('\r').unwrap_or(text).to_owned())
}

fn read_all(input: &mut dyn Read) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    let read = input.take(LARGEST_INPUT + 1).read_to_end(&mut bytes);
    read.map_err(|error| Failure::local(format!("cannot read the standard input: {error}")))?;
    limited(bytes, "the standard input")
}

fn read_file(path: &Path) -> Result<Vec<u8>, Failure> {
    let failure = |error| Failure::usage(format!("cannot read {}: {error}", path.display()));
    let mut bytes = Vec::new();
    let file = fs::File::open(path).map_err(failure)?;
    file.take(LARGEST_INPUT + 1).read_to_end(&mut bytes).map_err(failure)?;
    limited(bytes, &path.display().to_string())
}

fn limited(bytes: Vec<u8>, what: &str) -> Result<Vec<u8>, Failure> {
    match bytes.len() as u64 > LARGEST_INPUT {
        true => {
            Err(Failure::usage(format!("{what} is larger than {} MB; send its URL with --file", LARGEST_INPUT >> 20)))
        }
        false => Ok(bytes),
    }
}

/// A message on its way.
pub fn send(parts: Vec<Part>, task: Option<TaskId>, context: Option<ContextId>, known: &Discovered) -> Send {
    let id = MessageId::parse(Uuid::now_v7().to_string()).expect("a UUID is an id");
    let mut message = Message::new(id.clone(), Role::User, parts);
    (message.task, message.context) = (task, context);
    let mut send = Send::new(message, NEWEST_BIRTH);
    // A server that knows the key takes a message that comes twice for one.
    send.idempotency = IdempotencyKey::parse(id.as_str()).ok();
    send.extensions = extensions(known);
    send
}

/// The extensions that are shown here and that the agent has.
fn extensions(known: &Discovered) -> Vec<String> {
    let declared = known.card.iter().flat_map(|card| &card.card.capabilities.extensions);
    let shown = declared.filter(|extension| extension.uri == sabir_model::TOOL_CALL);
    shown.map(|extension| extension.uri.clone()).collect()
}

/// The answer to the question of a task that waits. It names the question, so that it cannot answer another one.
pub fn answer(
    parts: Vec<Part>,
    task: TaskId,
    context: Option<ContextId>,
    question: &Status,
    known: &Discovered,
) -> Send {
    let name = question_name(&task, question);
    let mut send = send(parts, Some(task), context, known);
    let value = name.map(|name| Json::of(&name).expect("text is JSON"));
    send.message.metadata = value.map(|name| Json::with_member(None, QUESTION_ID, &name));
    send
}

/// By Sabir's own rules, or else whatever the server calls the question.
fn question_name(task: &TaskId, status: &Status) -> Option<String> {
    let message = status.message.as_deref()?;
    let named = message.parts.iter().find_map(|part| match &part.content {
        sabir_model::Content::Data(data) => data.text_of(QUESTION_ID),
        _ => None,
    });
    status.question_id(task).map(|id| id.to_string()).or(named)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(words: &[&str], options: &[(PartSource, &str)], input: &str) -> String {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let option = |(source, value): &(PartSource, &str)| PartOption {
            source: *source,
            value: (*value).to_owned(),
            media_type: None,
        };
        let options = PartOptions(options.iter().map(option).collect());
        match parts(&words, &options, &mut input.as_bytes()) {
            Ok(parts) => parts.iter().map(|part| format!("{:?} ", part.content)).collect(),
            Err(failure) => failure.message,
        }
    }

    #[test]
    fn what_is_sent_by_words_flags_and_standard_input() {
        use PartSource::{Data, File, Text};
        for (words, options, input, expected) in [
            (&["a", "b"][..], &[][..], "", "Text(\"a b\") "),
            (&["-"], &[], "from a pipe\r\n", "Text(\"from a pipe\") "),
            (&["-"], &[], "a\n\n", "Text(\"a\\n\") "),
            (&["x"], &[(Text, "y"), (Data, "-")], " {\"a\": 1}\n", "Text(\"x\") Text(\"y\") Data({\"a\": 1}) "),
            (&[], &[(File, "https://x/a.pdf?q")], "", "Url(\"https://x/a.pdf?q\") "),
            (&["-", "x"], &[], "", "`-` reads the text from the standard input, so no other words can be there"),
            (&["-"], &[(Data, "-")], "", "the standard input can be read once, but `-` is there several times"),
            (&[], &[(Data, "-")], "{", "- is not JSON: EOF while parsing an object at line 1 column 1"),
            (&[], &[(File, "/nowhere/x")], "", "cannot read /nowhere/x: No such file or directory (os error 2)"),
        ] {
            assert_eq!(read(words, options, input), expected);
        }
        let parts = parts(&["-".into()], &PartOptions::default(), &mut &[0xff_u8][..]);
        assert!(parts.unwrap_err().message.contains("UTF-8"));
    }

    #[test]
    fn files_have_a_name_and_a_type() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.md");
        fs::write(&path, "x").unwrap();
        for (value, media_type, expected) in [
            (path.to_str().unwrap(), None, (Some("a.md"), Some("text/markdown"))),
            (path.to_str().unwrap(), Some("x/y"), (Some("a.md"), Some("x/y"))),
            ("https://x/b.png", None, (Some("b.png"), Some("image/png"))),
            ("https://x/", None, (None, None)),
        ] {
            let option =
                PartOption { source: PartSource::File, value: value.into(), media_type: media_type.map(str::to_owned) };
            let part = part(&option, &mut &b""[..]).unwrap();
            assert_eq!((part.filename.as_deref(), part.media_type.as_deref()), expected, "{value}");
        }
    }
}
