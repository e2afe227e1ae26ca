//! Kinds of values: how each is read, and how the JSON Schema of the file describes it.
//!
//! A kind turns a raw value into a typed one and into the JSON that `sabir config` shows. If the value does not fit, it
//! answers in words that follow the name of the setting: `is "soon"; expected a duration ...`.

use std::ops::RangeInclusive;
use std::time::Duration;

use bytesize::{ByteSize, GB, GIB, KB, KIB, MB, MIB};
use serde_json::{Value, json};

use super::raw::Raw;

pub struct ValueKind<V> {
    pub schema: Value,
    /// What error messages ask for.
    expected: String,
    read: Box<Reader<V>>,
}

type Reader<V> = dyn Fn(&Raw) -> Read<V> + Send + Sync;

/// The value, and how it is shown.
pub type Read<V> = Result<(V, Value), String>;

impl<V: 'static> ValueKind<V> {
    /// A kind that finds its own words for what does not fit.
    pub fn new(schema: Value, read: impl Fn(&Raw) -> Read<V> + Send + Sync + 'static) -> Self {
        ValueKind { schema, expected: String::new(), read: Box::new(read) }
    }

    /// A kind whose values either fit or do not.
    pub fn expecting(
        expected: &str,
        schema: Value,
        parse: impl Fn(&Raw) -> Option<(V, Value)> + Send + Sync + 'static,
    ) -> Self {
        let words = expected.to_owned();
        let read = move |raw: &Raw| parse(raw).ok_or_else(|| raw.unexpected(&words));
        ValueKind { schema, expected: expected.to_owned(), read: Box::new(read) }
    }

    /// A kind that is written as text.
    pub fn of_text(expected: &str, parse: impl Fn(&str) -> Option<V> + Send + Sync + 'static) -> Self
    where
        V: Clone + Into<Value>,
    {
        ValueKind::expecting(expected, json!({"type": "string"}), move |raw| {
            let value = parse(raw.as_text()?)?;
            Some((value.clone(), value.into()))
        })
    }

    /// What a list of these expects.
    pub fn called(self, expected: &str) -> Self {
        ValueKind { expected: expected.to_owned(), ..self }
    }

    pub fn read(&self, raw: &Raw) -> Read<V> {
        (self.read)(raw)
    }

    pub fn map<W: 'static>(self, convert: fn(V) -> W) -> ValueKind<W> {
        let ValueKind { schema, expected, read } = self;
        ValueKind {
            schema,
            expected,
            read: Box::new(move |raw| read(raw).map(|(value, shown)| (convert(value), shown))),
        }
    }
}

/// Something that may be left out.
pub fn optional<V: 'static>(kind: ValueKind<V>) -> ValueKind<Option<V>> {
    kind.map(Some)
}

/// Something that the word `off` switches off.
pub fn or_off<V: 'static>(kind: ValueKind<V>) -> ValueKind<Option<V>> {
    ValueKind::new(json!({"anyOf": [kind.schema, {"enum": ["off"]}]}), move |raw| match raw.as_text() {
        Some(text) if text.eq_ignore_ascii_case("off") => Ok((None, json!("off"))),
        _ => match kind.read(raw) {
            Ok((value, shown)) => Ok((Some(value), shown)),
            Err(words) => Err(format!("{words}, or \"off\"")),
        },
    })
}

/// A list, or a single member. A message names the member that does not fit.
pub fn list<V: 'static>(member: ValueKind<V>) -> ValueKind<Vec<V>> {
    let schema = json!({"anyOf": [{"type": "array", "items": member.schema}, member.schema]});
    let expected = member.expected.clone();
    let read = move |raw: &Raw| {
        let (mut values, mut shown) = (Vec::new(), Vec::new());
        for part in raw.members() {
            let (value, show) = member.read(&part).map_err(|_| match part == *raw {
                true => raw.unexpected(&member.expected),
                false => format!("holds {part}; expected {}", member.expected),
            })?;
            values.push(value);
            shown.push(show);
        }
        Ok((values, Value::Array(shown)))
    };
    ValueKind { schema, expected, read: Box::new(read) }
}

/// A list without repetitions. `is_same` says what a repetition is.
pub fn set<V: 'static>(member: ValueKind<V>, is_same: fn(&V, &V) -> bool) -> ValueKind<Vec<V>> {
    let ValueKind { schema, expected, read } = list(member);
    let distinct = move |raw: &Raw| {
        let (all, shown) = read(raw)?;
        let Value::Array(all_shown) = shown else { unreachable!("a list is shown as a list") };
        let (mut values, mut shown) = (Vec::new(), Vec::new());
        for (value, show) in all.into_iter().zip(all_shown) {
            if !values.iter().any(|known| is_same(known, &value)) {
                values.push(value);
                shown.push(show);
            }
        }
        Ok((values, Value::Array(shown)))
    };
    ValueKind { schema, expected, read: Box::new(distinct) }
}

/// A list of at least one.
pub fn not_empty<V: 'static>(list: ValueKind<Vec<V>>) -> ValueKind<Vec<V>> {
    ValueKind::new(list.schema.clone(), move |raw| match list.read(raw)? {
        (values, _) if values.is_empty() => Err(format!("is empty; expected {}", list.expected)),
        read => Ok(read),
    })
}

pub fn switch() -> ValueKind<bool> {
    ValueKind::expecting("true or false", json!({"type": "boolean"}), |raw| {
        let value = match raw {
            Raw::Boolean(value) => *value,
            Raw::Untyped(word) => truth(word)?,
            _ => return None,
        };
        Some((value, json!(value)))
    })
}

/// A switch whose value depends on the rest of the configuration unless it is set: `auto` is `None`.
pub fn switch_or_auto() -> ValueKind<Option<bool>> {
    let switch = switch();
    ValueKind::new(json!({"anyOf": [switch.schema, {"enum": ["auto"]}]}), move |raw| match raw.as_text() {
        Some(text) if text.eq_ignore_ascii_case("auto") => Ok((None, json!("auto"))),
        _ => match switch.read(raw) {
            Ok((value, shown)) => Ok((Some(value), shown)),
            Err(words) => Err(format!("{words}, or \"auto\"")),
        },
    })
}

/// What a word means as a switch.
pub fn truth(word: &str) -> Option<bool> {
    match word.to_ascii_lowercase().as_str() {
        "true" | "1" | "yes" | "on" => Some(true),
        "false" | "0" | "no" | "off" => Some(false),
        _ => None,
    }
}

/// Any text but an empty one; who wants none leaves the key out.
pub fn text() -> ValueKind<String> {
    ValueKind::of_text("a text that is not empty", |text| (!text.is_empty()).then(|| text.to_owned()))
}

pub fn choice<V: Copy + Send + Sync + 'static>(words: &[(&'static str, V)]) -> ValueKind<V> {
    let words = words.to_vec();
    let known: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
    ValueKind::new(json!({"enum": known}), move |raw| {
        if let Some((word, value)) = words.iter().find(|(word, _)| raw.as_text() == Some(word)) {
            return Ok((*value, json!(word)));
        }
        let near = raw.as_text().and_then(|text| nearest(text, known.iter().copied()));
        let hint = near.map_or(String::new(), |word| format!("; did you mean \"{word}\"?"));
        Err(raw.unexpected(&known.join(" or ")) + &hint)
    })
}

/// A whole number of this range.
pub fn count<V: TryFrom<u64> + 'static>(range: RangeInclusive<u64>) -> ValueKind<V> {
    let (least, most) = (*range.start(), *range.end());
    let (expected, schema) = match most {
        u64::MAX => (format!("a number from {least}"), json!({"type": "integer", "minimum": least})),
        _ => {
            (format!("a number from {least} to {most}"), json!({"type": "integer", "minimum": least, "maximum": most}))
        }
    };
    ValueKind::expecting(&expected, schema, move |raw| {
        let number = match raw {
            Raw::Integer(number) => u64::try_from(*number).ok()?,
            Raw::Untyped(text) => text.trim().parse().ok()?,
            _ => return None,
        };
        if !range.contains(&number) {
            return None;
        }
        Some((V::try_from(number).ok()?, json!(number)))
    })
}

/// A duration as people write it: `20m`, `500ms`, `1h30m`, `7 days`; a bare number is seconds.
pub fn duration() -> ValueKind<Duration> {
    let expected = "a duration such as \"20m\", \"1h30m\", \"500ms\" or 30 (seconds), at most 36500d";
    ValueKind::expecting(expected, text_or_number("20m"), |raw| {
        let value = parse_duration(&text_of_number(raw)?)?;
        Some((value, json!(spell_duration(value))))
    })
}

/// A duration longer than zero: something is repeated after it, or ends with it.
pub fn interval() -> ValueKind<Duration> {
    let duration = duration();
    ValueKind::new(duration.schema.clone(), move |raw| match duration.read(raw)? {
        (Duration::ZERO, _) => Err(raw.unexpected("a duration longer than 0")),
        read => Ok(read),
    })
}

/// A duration that may be switched off. Zero is refused, since some people mean "at once" and some "never".
pub fn limit() -> ValueKind<Option<Duration>> {
    or_off(interval())
}

/// A number of bytes: `16MiB`, `500kB`, `1.5 GB`; a bare number is bytes.
pub fn size() -> ValueKind<usize> {
    let expected = "a size from 1 byte, such as \"16MiB\", \"500kB\" or 65536 (bytes)";
    ValueKind::expecting(expected, text_or_number("16MiB"), |raw| {
        let value = parse_size(&text_of_number(raw)?).filter(|value| *value > 0)?;
        Some((value, json!(spell_size(value))))
    })
}

/// A media type as cards list them. A family (`image/*`) or everything (`*/*`) may be named too. Parameters are refused:
/// a part is compared by its type alone, so `text/plain; charset=utf-8` would never be met.
pub fn media_type() -> ValueKind<String> {
    let is_name = |text: &str| {
        let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$&^_.+-".contains(&byte);
        !text.is_empty() && text.bytes().all(is_letter)
    };
    ValueKind::of_text("a media type such as \"text/plain\", \"image/*\" or \"*/*\"", move |text| {
        let (family, name) = text.split_once('/')?;
        let fits = is_name(family) && (name == "*" || is_name(name));
        (fits || text == "*/*").then(|| text.to_owned())
    })
}

/// A log level, or levels per module. The logging library takes any word for the name of a module, so `inof` would
/// silence everything without a word. Here a word without `=` must be a level.
pub fn log_filter() -> ValueKind<String> {
    let expected = "off, error, warn, info, debug or trace, also per module: \"info,sabir=debug\"";
    let is_module = |name: &str| {
        let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b':';
        !name.is_empty() && name.bytes().all(is_letter)
    };
    ValueKind::of_text(expected, move |text| {
        let mut directives = Vec::new();
        for directive in text.split(',') {
            let (module, level) = directive.rsplit_once('=').map_or((None, directive), |(m, level)| (Some(m), level));
            let level = level.trim().to_ascii_lowercase();
            if !["off", "error", "warn", "info", "debug", "trace"].contains(&level.as_str()) {
                return None;
            }
            directives.push(match module.map(str::trim) {
                Some(module) if is_module(module) => format!("{module}={level}"),
                Some(_) => return None,
                None => level,
            });
        }
        Some(directives.join(","))
    })
}

/// The nearest of the known words, if one is near enough to be worth a hint.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // No key is longer than 64 letters; the distance to a longer word is large enough anyway.
    let word: String = word.to_lowercase().chars().take(64).collect();
    let distances = known.into_iter().map(|candidate| {
        let letters = word.chars().count().max(candidate.chars().count());
        (strsim::osa_distance(&word, &candidate.to_lowercase()), letters, candidate)
    });
    let near_enough = distances.filter(|(distance, letters, _)| *distance <= (letters / 3).max(1));
    near_enough.min_by_key(|(distance, ..)| *distance).map(|(.., candidate)| candidate)
}

fn text_or_number(example: &str) -> Value {
    json!({"type": ["string", "integer"], "examples": [example]})
}

/// What is written, where a number may stand without quotes.
fn text_of_number(raw: &Raw) -> Option<String> {
    match raw {
        Raw::Integer(number) => Some(number.to_string()),
        other => other.as_text().map(str::to_owned),
    }
}

/// There is a longest one, so that adding a duration to a clock can never overflow.
pub fn parse_duration(text: &str) -> Option<Duration> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let duration = match text {
        number if is_number => Duration::from_secs(number.parse().ok()?),
        // humantime reads `M` as months; whoever writes `20M` means minutes.
        text if text.contains('M') => return None,
        text => humantime::parse_duration(text).ok()?,
    };
    (duration <= Duration::from_secs(36_500 * 24 * 60 * 60)).then_some(duration)
}

/// The shortest spelling that is read back. humantime's own has months and years of odd lengths.
fn spell_duration(duration: Duration) -> String {
    const SECOND: u128 = 1_000_000_000;
    let units = [("d", 86_400 * SECOND), ("h", 3600 * SECOND), ("m", 60 * SECOND), ("s", SECOND)];
    let mut rest = duration.as_nanos();
    let mut spelled = String::new();
    for (unit, length) in units.into_iter().chain([("ms", 1_000_000), ("us", 1000), ("ns", 1)]) {
        if rest >= length {
            spelled += &format!("{}{unit}", rest / length);
            rest %= length;
        }
    }
    if spelled.is_empty() { "0s".to_owned() } else { spelled }
}

fn parse_size(text: &str) -> Option<usize> {
    let ByteSize(bytes) = text.parse().ok()?;
    // bytesize answers with the largest number there is when the real one does not fit.
    usize::try_from(bytes).ok().filter(|bytes| *bytes < usize::MAX)
}

/// The shortest spelling that is read back; that of bytesize is rounded.
fn spell_size(size: usize) -> String {
    let size = size as u64;
    let units = [("GiB", GIB), ("GB", GB), ("MiB", MIB), ("MB", MB), ("KiB", KIB), ("kB", KB), ("B", 1)];
    let (unit, factor) = units.into_iter().find(|(_, factor)| size.is_multiple_of(*factor)).unwrap_or(("B", 1));
    format!("{}{unit}", size / factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(texts: &[&str]) -> Raw {
        Raw::List(texts.iter().map(|text| Raw::Text((*text).to_owned())).collect())
    }

    /// How the value is shown, or what is wrong with it.
    fn outcome<V: 'static>(kind: &ValueKind<V>, raw: &Raw) -> String {
        kind.read(raw).map_or_else(|words| words, |(_, shown)| shown.to_string())
    }

    /// The same of untyped text, without the words.
    fn shown<V: 'static>(kind: &ValueKind<V>, text: &str) -> Option<String> {
        let (_, shown) = kind.read(&Raw::untyped(text)).ok()?;
        Some(shown.as_str().unwrap().to_owned())
    }

    #[test]
    fn switches_are_words_outside_files_only() {
        for (raw, expected) in [
            (Raw::untyped("yes"), "true"),
            (Raw::untyped("OFF"), "false"),
            (Raw::Boolean(true), "true"),
            (Raw::Text("true".to_owned()), "is \"true\"; expected true or false"),
            (Raw::Integer(1), "is 1; expected true or false"),
        ] {
            assert_eq!(outcome(&switch(), &raw), expected, "{raw:?}");
        }
    }

    #[test]
    fn lists_name_the_member_that_does_not_fit() {
        let expected = "a media type such as \"text/plain\", \"image/*\" or \"*/*\"";
        let modes = || not_empty(set(media_type(), String::eq));
        for (result, expected) in [
            (outcome(&list(text()), &texts(&["a", "b, c"])), r#"["a","b, c"]"#.to_owned()),
            (outcome(&list(text()), &Raw::Text("a".to_owned())), r#"["a"]"#.to_owned()),
            (outcome(&list(text()), &Raw::untyped("a, b")), r#"["a","b"]"#.to_owned()),
            (outcome(&list(text()), &texts(&[])), "[]".to_owned()),
            (outcome(&list(text()), &texts(&["a", " "])), "holds \" \"; expected a text that is not empty".to_owned()),
            (
                outcome(&list(text()), &Raw::List(vec![Raw::Integer(1)])),
                "holds 1; expected a text that is not empty".to_owned(),
            ),
            (
                outcome(&modes(), &texts(&["text/plain", "image/*", "text/plain"])),
                r#"["text/plain","image/*"]"#.to_owned(),
            ),
            (outcome(&modes(), &texts(&["text"])), format!("holds \"text\"; expected {expected}")),
            (outcome(&modes(), &Raw::untyped("text")), format!("is \"text\"; expected {expected}")),
            (outcome(&modes(), &texts(&[])), format!("is empty; expected {expected}")),
        ] {
            assert_eq!(result, expected);
        }
    }

    #[test]
    fn zero_is_not_a_limit() {
        for (raw, expected) in [
            (Raw::untyped("off"), "\"off\""),
            (Raw::untyped("90"), "\"1m30s\""),
            (Raw::Integer(0), "is 0; expected a duration longer than 0, or \"off\""),
        ] {
            assert_eq!(outcome(&limit(), &raw), expected, "{raw:?}");
        }
    }

    #[test]
    fn choices_name_the_nearest_word() {
        for (raw, expected) in [
            (Raw::untyped("error"), "\"error\""),
            (Raw::Text("eror".to_owned()), "is \"eror\"; expected auto or error; did you mean \"error\"?"),
            (Raw::Boolean(true), "is true; expected auto or error"),
        ] {
            assert_eq!(outcome(&choice(&[("auto", 1), ("error", 2)]), &raw), expected, "{raw:?}");
        }
    }

    #[test]
    fn durations_in_every_spelling() {
        for (text, expected) in [
            ("20m", Some("20m")),
            ("500ms", Some("500ms")),
            ("1h30m", Some("1h30m")),
            ("90", Some("1m30s")),
            ("1500ms", Some("1s500ms")),
            ("0", Some("0s")),
            ("36500d", Some("36500d")),
            ("36501d", None),
            ("99999999999999999999", None),
            ("30m1h", Some("1h30m")),
            ("1.5h", Some("1h30m")),
            ("5 m", Some("5m")),
            ("2 weeks", Some("14d")),
            ("20M", None),
            ("-5s", None),
            ("+5", None),
            ("m", None),
            ("5x", None),
            ("", None),
        ] {
            assert_eq!(shown(&duration(), text).as_deref(), expected, "{text:?}");
        }
    }

    #[test]
    fn sizes_in_every_spelling() {
        for (text, expected) in [
            ("16MiB", Some("16MiB")),
            ("16 mib", Some("16MiB")),
            ("65536", Some("64KiB")),
            ("500KB", Some("500kB")),
            ("1234", Some("1234B")),
            ("1.5MiB", Some("1536KiB")),
            ("16M", Some("16MB")),
            ("99999999999GiB", None),
            ("0", None),
            ("MiB", None),
            ("-1", None),
            ("", None),
        ] {
            assert_eq!(shown(&size(), text).as_deref(), expected, "{text:?}");
        }
    }

    #[test]
    fn media_types_are_types_families_or_everything() {
        for text in ["text/plain", "image/*", "*/*", "application/vnd.example.plan-v1+json"] {
            assert_eq!(shown(&media_type(), text).as_deref(), Some(text));
        }
        for text in ["", "text", "/", "text/", "*/plain", "text/plain; charset=utf-8", "a/b/c", "text /plain", "té/x"]
        {
            assert_eq!(shown(&media_type(), text), None, "{text:?}");
        }
    }

    #[test]
    fn log_filters_are_levels_and_directives() {
        for (text, expected) in [
            ("info", Some("info")),
            ("WARN", Some("warn")),
            ("info, sabir=debug", Some("info,sabir=debug")),
            ("sabir_engine::run=Trace", Some("sabir_engine::run=trace")),
            ("inof", None),
            ("sabir=loud", None),
            ("=debug", None),
            ("info,", None),
            ("", None),
        ] {
            assert_eq!(shown(&log_filter(), text).as_deref(), expected, "{text:?}");
        }
    }

    #[test]
    fn the_nearest_word_is_found_for_slips_only() {
        let known = ["listen", "public_url", "grace", "id"];
        for (word, expected) in [
            ("lisen", Some("listen")),
            ("lsiten", Some("listen")),
            ("publicUrl", Some("public_url")),
            ("public-url", Some("public_url")),
            ("ID", Some("id")),
            ("port", None),
            ("", None),
        ] {
            assert_eq!(nearest(word, known), expected, "{word:?}");
        }
    }

    proptest::proptest! {
        #[test]
        fn durations_that_are_spelled_are_read_back(nanoseconds in 0..=3_153_600_000_000_000_000u64) {
            let duration = Duration::from_nanos(nanoseconds);
            assert_eq!(parse_duration(&spell_duration(duration)), Some(duration));
        }

        #[test]
        fn sizes_that_are_spelled_are_read_back(size in 1..1usize << 53) {
            assert_eq!(parse_size(&spell_size(size)), Some(size));
        }

        #[test]
        fn no_text_panics(text in ".*") {
            let _ = (duration().read(&Raw::untyped(text.clone())), size().read(&Raw::untyped(text)));
        }
    }
}
