//! How values are read, one function per kind of setting.
//!
//! Each answers with the typed value and with the value as `sabir config` shows it, or with words that follow
//! the setting's name: what was found, and what is expected.

use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::time::Duration;

use sabir_server::HostName;
use serde_json::{Value, json};

use super::raw::Raw;
use super::{addresses as address, duration as time, log_filter, media_type, nearest, size as bytes, web_url as web};

pub use super::agents::{agent_id, agent_kind};
pub use super::carried::table;

pub type Read<V> = Result<(V, Value), String>;

pub fn switch(raw: &Raw) -> Read<bool> {
    let value = match raw {
        Raw::Boolean(value) => Some(*value),
        Raw::Word(word) => match word.to_ascii_lowercase().as_str() {
            "true" | "1" | "yes" | "on" => Some(true),
            "false" | "0" | "no" | "off" => Some(false),
            _ => None,
        },
        _ => None,
    };
    let value = value.ok_or_else(|| wrong(raw, "true or false"))?;
    Ok((value, json!(value)))
}

/// Any text but an empty one; who wants none leaves the key out.
pub fn text(raw: &Raw) -> Read<String> {
    match said(raw) {
        Some(text) if !text.is_empty() => Ok((text.to_owned(), json!(text))),
        _ => Err(wrong(raw, TEXT)),
    }
}

pub fn optional_text(raw: &Raw) -> Read<Option<String>> {
    text(raw).map(|(text, shown)| (Some(text), shown))
}

pub fn texts(raw: &Raw) -> Read<Vec<String>> {
    let mut texts = Vec::new();
    for part in parts(raw) {
        let (text, _) = text(&part).map_err(|_| misfit(raw, &part, TEXT))?;
        texts.push(text);
    }
    Ok((texts.clone(), json!(texts)))
}

/// Media types. A list of none would say that nothing is taken; who means the usual ones leaves the key out.
pub fn modes(raw: &Raw) -> Read<Vec<String>> {
    let mut modes = Vec::new();
    for part in parts(raw) {
        let mode = said(&part).and_then(media_type::parse);
        let mode = mode.ok_or_else(|| misfit(raw, &part, media_type::EXPECTED))?;
        if !modes.contains(&mode) {
            modes.push(mode);
        }
    }
    if modes.is_empty() {
        return Err(format!("is empty; expected {}", media_type::EXPECTED));
    }
    Ok((modes.clone(), json!(modes)))
}

pub fn web_url(raw: &Raw) -> Read<Option<String>> {
    let url = said(raw).and_then(web::parse);
    let url = url.ok_or_else(|| {
        let expected = "an absolute address without query and user, such as \"https://agents.example.com\"";
        wrong(raw, expected)
    })?;
    Ok((Some(url.clone()), json!(url)))
}

/// The name of something by an address that need not lead anywhere.
pub fn uri(raw: &Raw) -> Read<String> {
    let uri = said(raw).and_then(web::parse_uri);
    let uri = uri.ok_or_else(|| wrong(raw, "a URI without commas, such as \"https://example.com/ext/v1\""))?;
    Ok((uri.clone(), json!(uri)))
}

pub fn addresses(raw: &Raw) -> Read<Vec<SocketAddr>> {
    let mut listen: Vec<SocketAddr> = Vec::new();
    for part in parts(raw) {
        let address = match &part {
            Raw::Integer(port) => address::parse(&port.to_string()),
            other => said(other).and_then(address::parse),
        };
        let address = address.ok_or_else(|| misfit(raw, &part, address::EXPECTED))?;
        // Port 0 asks for a free port, so two of them are two ports.
        if address.port() == 0 || !listen.contains(&address) {
            listen.push(address);
        }
    }
    if listen.is_empty() {
        return Err(format!("is empty; expected {}", address::EXPECTED));
    }
    let shown: Vec<String> = listen.iter().map(SocketAddr::to_string).collect();
    Ok((listen, json!(shown)))
}

pub fn origins(raw: &Raw) -> Read<Vec<String>> {
    let expected = "\"*\" or an origin such as \"https://app.example.com\"";
    let mut origins = Vec::new();
    for part in parts(raw) {
        let origin = said(&part).and_then(web::parse_origin);
        origins.push(origin.ok_or_else(|| misfit(raw, &part, expected))?);
    }
    Ok((origins.clone(), json!(origins)))
}

/// Host names without ports, or `*`.
pub fn hosts(raw: &Raw) -> Read<Vec<String>> {
    let expected = "\"*\" or a host name without a port, such as \"agents.example.com\"";
    let mut hosts = Vec::new();
    for part in parts(raw) {
        let host = said(&part).and_then(|text| match text {
            "*" => Some(text.to_owned()),
            name => HostName::parse(name).map(|name| name.as_str().to_owned()),
        });
        let host = host.ok_or_else(|| misfit(raw, &part, expected))?;
        if !hosts.contains(&host) {
            hosts.push(host);
        }
    }
    Ok((hosts.clone(), json!(hosts)))
}

pub fn duration(raw: &Raw) -> Read<Duration> {
    let value = length(raw).ok_or_else(|| wrong(raw, time::EXPECTED))?;
    Ok((value, json!(time::spell(value))))
}

/// A duration that something is repeated after, so zero would never rest.
pub fn interval(raw: &Raw) -> Read<Duration> {
    match duration(raw)? {
        (Duration::ZERO, _) => Err(wrong(raw, "a duration longer than 0")),
        read => Ok(read),
    }
}

/// A duration that may be switched off. Zero is refused, since some people mean "at once" and some "never".
pub fn limit(raw: &Raw) -> Read<Option<Duration>> {
    if is_off(raw) {
        return Ok((None, json!("off")));
    }
    match length(raw) {
        Some(Duration::ZERO) => Err(wrong(raw, "a duration longer than 0, or \"off\"")),
        Some(value) => Ok((Some(value), json!(time::spell(value)))),
        None => Err(wrong(raw, &format!("{} or \"off\"", time::EXPECTED))),
    }
}

pub fn size(raw: &Raw) -> Read<usize> {
    let value = match raw {
        Raw::Integer(number) => usize::try_from(*number).ok(),
        other => said(other).and_then(bytes::parse),
    };
    match value {
        Some(value) if value > 0 => Ok((value, json!(bytes::spell(value)))),
        _ => Err(wrong(raw, bytes::EXPECTED)),
    }
}

pub fn count(raw: &Raw, range: RangeInclusive<usize>) -> Read<usize> {
    let value = whole(raw).and_then(|number| usize::try_from(number).ok());
    match value {
        Some(value) if range.contains(&value) => Ok((value, json!(value))),
        _ => {
            let (least, most) = range.into_inner();
            Err(wrong(raw, &format!("a number from {least} to {most}")))
        }
    }
}

pub fn optional_count(raw: &Raw) -> Read<Option<u64>> {
    if is_off(raw) {
        return Ok((None, json!("off")));
    }
    match whole(raw) {
        Some(value) if value > 0 => Ok((Some(value), json!(value))),
        _ => Err(wrong(raw, "a number from 1, or \"off\"")),
    }
}

pub fn choice<V: Copy>(raw: &Raw, words: &[(&'static str, V)]) -> Read<V> {
    for (word, value) in words {
        if said(raw) == Some(word) {
            return Ok((*value, json!(word)));
        }
    }
    let known: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
    let hint = said(raw).and_then(|text| nearest::nearest(text, known.iter().copied()));
    Err(match hint {
        Some(word) => format!("{}; did you mean \"{word}\"?", wrong(raw, &known.join(" or "))),
        None => wrong(raw, &known.join(" or ")),
    })
}

pub fn log_level(raw: &Raw) -> Read<String> {
    let level = said(raw).and_then(log_filter::parse);
    let level = level.ok_or_else(|| wrong(raw, log_filter::EXPECTED))?;
    Ok((level.clone(), json!(level)))
}

const TEXT: &str = "a text that is not empty";

/// What the value says as text, if it is text.
pub fn said(raw: &Raw) -> Option<&str> {
    match raw {
        Raw::Word(text) | Raw::Text(text) => Some(text.trim()),
        _ => None,
    }
}

/// Names the value and what it should be. A value that may hold a password is not repeated.
pub fn wrong(raw: &Raw, expected: &str) -> String {
    let has_user = said(raw).is_some_and(|text| text.contains("://") && text.contains('@'));
    if has_user {
        return format!("does not fit; expected {expected}");
    }
    format!("is {raw}; expected {expected}")
}

/// As `wrong`, for one part of a list.
fn misfit(whole: &Raw, part: &Raw, expected: &str) -> String {
    match whole {
        Raw::List(_) => format!("holds {part}; expected {expected}"),
        Raw::Word(_) if whole != part => format!("holds {part}; expected {expected}"),
        _ => wrong(part, expected),
    }
}

/// The members of a list. Plain text separates them by commas; a single value is a list of one.
fn parts(raw: &Raw) -> Vec<Raw> {
    match raw {
        Raw::List(list) => list.clone(),
        Raw::Word(text) => {
            let words = text.split(',').map(str::trim);
            let words = words.filter(|word| !word.is_empty());
            words.map(|word| Raw::Word(word.to_owned())).collect()
        }
        single => vec![single.clone()],
    }
}

fn length(raw: &Raw) -> Option<Duration> {
    match raw {
        Raw::Integer(seconds) => time::parse(&seconds.to_string()),
        other => said(other).and_then(time::parse),
    }
}

fn whole(raw: &Raw) -> Option<u64> {
    match raw {
        Raw::Integer(number) => u64::try_from(*number).ok(),
        Raw::Word(text) => text.trim().parse().ok(),
        _ => None,
    }
}

fn is_off(raw: &Raw) -> bool {
    said(raw).is_some_and(|text| text.eq_ignore_ascii_case("off"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(text: &str) -> Raw {
        Raw::Word(text.to_owned())
    }

    fn text_value(value: &str) -> Raw {
        Raw::Text(value.to_owned())
    }

    fn say<V>(read: Read<V>) -> String {
        match read {
            Ok((_, shown)) => shown.to_string(),
            Err(words) => words,
        }
    }

    #[test]
    fn switches_are_words_outside_files_only() {
        for (raw, expected) in [
            (word("yes"), "true"),
            (word("OFF"), "false"),
            (Raw::Boolean(true), "true"),
            (text_value("true"), "is \"true\"; expected true or false"),
            (Raw::Integer(1), "is 1; expected true or false"),
        ] {
            assert_eq!(say(switch(&raw)), expected, "{raw:?}");
        }
    }

    #[test]
    fn listen_takes_one_or_many_and_names_the_wrong_one() {
        let wrong_part = format!("holds \"nowhere\"; expected {}", address::EXPECTED);
        for (raw, expected) in [
            (word("7870, 0.0.0.0:80"), r#"["127.0.0.1:7870","0.0.0.0:80"]"#),
            (Raw::Integer(7870), r#"["127.0.0.1:7870"]"#),
            (word(":1,:1"), r#"["127.0.0.1:1"]"#),
            (word(":0,:0"), r#"["127.0.0.1:0","127.0.0.1:0"]"#),
            (Raw::List(vec![word("1"), text_value("nowhere")]), &wrong_part),
            (word("1,nowhere"), &wrong_part),
            (Raw::List(vec![]), &format!("is empty; expected {}", address::EXPECTED)),
        ] {
            assert_eq!(say(addresses(&raw)), expected, "{raw:?}");
        }
    }

    #[test]
    fn lists_name_the_part_that_does_not_fit() {
        let list = |texts: &[&str]| Raw::List(texts.iter().map(|text| text_value(text)).collect());
        for (read, expected) in [
            (texts(&list(&["a", "b, c"])), r#"["a","b, c"]"#),
            (texts(&text_value("a")), r#"["a"]"#),
            (texts(&list(&[])), "[]"),
            (texts(&list(&["a", " "])), "holds \" \"; expected a text that is not empty"),
            (texts(&Raw::List(vec![Raw::Integer(1)])), "holds 1; expected a text that is not empty"),
            (modes(&list(&["text/plain", "image/*", "text/plain"])), r#"["text/plain","image/*"]"#),
            (modes(&list(&["text"])), &format!("holds \"text\"; expected {}", media_type::EXPECTED)),
            (modes(&list(&[])), &format!("is empty; expected {}", media_type::EXPECTED)),
        ] {
            assert_eq!(say(read), expected);
        }
    }

    #[test]
    fn hosts_are_names_without_ports() {
        let expected = "expected \"*\" or a host name without a port, such as \"agents.example.com\"";
        for (raw, expected) in [
            (word("Agents.example.com., 10.0.0.1,10.0.0.1"), r#"["agents.example.com","10.0.0.1"]"#.to_owned()),
            (word("*"), r#"["*"]"#.to_owned()),
            (Raw::List(vec![]), "[]".to_owned()),
            (word("a.example,*.example"), format!("holds \"*.example\"; {expected}")),
            (text_value("a.example:80"), format!("is \"a.example:80\"; {expected}")),
            (text_value("https://a.example"), format!("is \"https://a.example\"; {expected}")),
            (Raw::List(vec![text_value("")]), format!("holds \"\"; {expected}")),
            (Raw::Integer(1), format!("is 1; {expected}")),
        ] {
            assert_eq!(say(hosts(&raw)), expected, "{raw:?}");
        }
    }

    #[test]
    fn zero_is_not_a_limit() {
        for (raw, expected) in [
            (word("off"), "\"off\""),
            (word("90"), "\"1m30s\""),
            (Raw::Integer(0), "is 0; expected a duration longer than 0, or \"off\""),
        ] {
            assert_eq!(say(limit(&raw)), expected, "{raw:?}");
        }
    }

    #[test]
    fn choices_name_the_nearest_word() {
        let words = [("auto", 1), ("error", 2)];
        for (raw, expected) in [
            (word("error"), "\"error\""),
            (text_value("eror"), "is \"eror\"; expected auto or error; did you mean \"error\"?"),
            (Raw::Boolean(true), "is true; expected auto or error"),
        ] {
            assert_eq!(say(choice(&raw, &words)), expected, "{raw:?}");
        }
    }
}
