//! Canonical JSON (RFC 8785): one text for all spellings of a value, so that a signature over it survives every parser.
//!
//! Members are sorted by the UTF-16 units of their names, numbers are written as ECMAScript writes a double, and strings
//! escape only what they must. A name that an object has twice is refused: two parsers would read two values.
//!
//! The text is read here and not by serde: serde_json rounds some numbers to a neighbour of the nearest double.

use std::borrow::Cow;

use sabir_model::Error;
use serde_json::value::RawValue;

use crate::excerpt::excerpt;
use crate::{json, work};

/// A JSON value whose objects have each name once.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Tree<'a> {
    Null,
    Flag(bool),
    Number(f64),
    Text(Cow<'a, str>),
    List(Vec<Tree<'a>>),
    /// Sorted as RFC 8785 demands.
    Object(Vec<(Cow<'a, str>, Tree<'a>)>),
}

/// How characters beyond ASCII are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Charset {
    /// As they are: RFC 8785.
    Utf8,
    /// As `\u00e9`, which is what Python's `json.dumps` does unless it is told otherwise.
    Ascii,
}

/// The canonical form of a JSON text.
pub fn canonical_json(bytes: &[u8]) -> Result<String, Error> {
    Ok(Tree::read(bytes)?.canonical(Charset::Utf8))
}

impl<'a> Tree<'a> {
    pub(crate) fn read(bytes: &'a [u8]) -> Result<Self, Error> {
        // Nothing below is deeper than what this allows, so recursion is safe.
        let text = json::check_text(bytes)?;
        let text = json::read::<&RawValue>(text)?.get();
        work::visit(text.len());
        Reader { text, place: 0 }.value()
    }

    pub(crate) fn canonical(&self, charset: Charset) -> String {
        let mut out = String::new();
        self.write(charset, &mut out);
        work::visit(out.len());
        out
    }

    fn write(&self, charset: Charset, out: &mut String) {
        match self {
            Tree::Null => out.push_str("null"),
            Tree::Flag(flag) => out.push_str(if *flag { "true" } else { "false" }),
            Tree::Number(number) => write_number(*number, out),
            Tree::Text(text) => write_text(text, charset, out),
            Tree::List(items) => {
                out.push('[');
                for (place, item) in items.iter().enumerate() {
                    if place > 0 {
                        out.push(',');
                    }
                    item.write(charset, out);
                }
                out.push(']');
            }
            Tree::Object(members) => {
                out.push('{');
                for (place, (name, value)) in members.iter().enumerate() {
                    if place > 0 {
                        out.push(',');
                    }
                    write_text(name, charset, out);
                    out.push(':');
                    value.write(charset, out);
                }
                out.push('}');
            }
        }
    }
}

/// Sorts members as RFC 8785 demands; an error names a member that is there twice.
pub(crate) fn sort_members<V>(members: &mut [(Cow<'_, str>, V)]) -> Result<(), Error> {
    members.sort_by(|(one, _), (other, _)| one.encode_utf16().cmp(other.encode_utf16()));
    match members.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        Some(pair) => Err(Error::invalid(excerpt(&pair[0].0), "is given twice")),
        None => Ok(()),
    }
}

/// Reads a text that is known to be JSON.
struct Reader<'a> {
    text: &'a str,
    place: usize,
}

impl<'a> Reader<'a> {
    fn value(&mut self) -> Result<Tree<'a>, Error> {
        match self.next_byte() {
            b'{' => self.object(),
            b'[' => self.list(),
            b'"' => Ok(Tree::Text(self.string()?)),
            b't' => Ok(self.word("true", Tree::Flag(true))),
            b'f' => Ok(self.word("false", Tree::Flag(false))),
            b'n' => Ok(self.word("null", Tree::Null)),
            _ => self.number(),
        }
    }

    fn object(&mut self) -> Result<Tree<'a>, Error> {
        let mut members = Vec::new();
        self.place += 1;
        while self.next_byte() != b'}' {
            let name = self.string()?;
            self.expect(b':');
            members.push((name, self.value()?));
            self.skip_comma();
        }
        self.place += 1;
        sort_members(&mut members)?;
        Ok(Tree::Object(members))
    }

    fn list(&mut self) -> Result<Tree<'a>, Error> {
        let mut items = Vec::new();
        self.place += 1;
        while self.next_byte() != b']' {
            items.push(self.value()?);
            self.skip_comma();
        }
        self.place += 1;
        Ok(Tree::List(items))
    }

    fn string(&mut self) -> Result<Cow<'a, str>, Error> {
        self.next_byte();
        let start = self.place;
        let mut bytes = self.text.as_bytes()[start + 1..].iter().enumerate();
        let mut has_escapes = false;
        while let Some((offset, byte)) = bytes.next() {
            match byte {
                b'"' => {
                    self.place = start + 1 + offset + 1;
                    break;
                }
                b'\\' => {
                    has_escapes = true;
                    bytes.next();
                }
                _ => {}
            }
        }
        let quoted = &self.text[start..self.place];
        match has_escapes {
            true => json::read::<String>(quoted).map(Cow::Owned),
            false => Ok(Cow::Borrowed(&quoted[1..quoted.len() - 1])),
        }
    }

    fn number(&mut self) -> Result<Tree<'a>, Error> {
        let rest = &self.text[self.place..];
        let length = rest.find(|letter: char| !letter.is_ascii_digit() && !"+-.eE".contains(letter));
        let digits = &rest[..length.unwrap_or(rest.len())];
        self.place += digits.len();
        // The standard library rounds to the nearest double.
        let number = digits.parse().ok().filter(|number: &f64| number.is_finite());
        number.map(Tree::Number).ok_or_else(|| Error::invalid(excerpt(digits), "is a number that no double can hold"))
    }

    fn word(&mut self, word: &str, value: Tree<'a>) -> Tree<'a> {
        self.place += word.len();
        value
    }

    fn skip_comma(&mut self) {
        if self.next_byte() == b',' {
            self.place += 1;
        }
    }

    fn expect(&mut self, byte: u8) {
        debug_assert_eq!(self.next_byte(), byte, "the text is JSON");
        self.next_byte();
        self.place += 1;
    }

    /// The first byte that is no white space, which is not taken.
    fn next_byte(&mut self) -> u8 {
        let rest = &self.text.as_bytes()[self.place..];
        let spaces = rest.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        self.place += spaces;
        rest[spaces]
    }
}

/// `Number::toString` of ECMAScript.
fn write_number(number: f64, out: &mut String) {
    if number == 0.0 {
        // Also of -0.
        out.push('0');
        return;
    }
    if number < 0.0 {
        out.push('-');
    }
    let scientific = shortest(number.abs());
    let (mantissa, exponent) = scientific.split_once('e').expect("that is the format");
    let digits = mantissa.replace('.', "");
    let exponent: i32 = exponent.parse().expect("that is the format");
    // The number is 0.DIGITS times ten to the power of `point`.
    let (count, point) = (digits.len() as i32, exponent + 1);
    let zeros = |count: i32| "0".repeat(count as usize);
    match point {
        1..=21 if count <= point => out.push_str(&(digits + &zeros(point - count))),
        1..=21 => {
            let (whole, rest) = digits.split_at(point as usize);
            out.push_str(&format!("{whole}.{rest}"));
        }
        -5..=0 => out.push_str(&format!("0.{}{digits}", zeros(-point))),
        _ => {
            let (first, rest) = digits.split_at(1);
            let dot = if rest.is_empty() { "" } else { "." };
            out.push_str(&format!("{first}{dot}{rest}e{exponent:+}"));
        }
    }
}

/// The shortest digits that are read back as the same double; of several, the nearest; of two nearest, the even one. Rust
/// takes the larger one of two.
fn shortest(number: f64) -> String {
    let shortest = format!("{number:e}");
    let digits = shortest.bytes().take_while(|byte| *byte != b'e').filter(u8::is_ascii_digit).count();
    let rounded = format!("{number:.*e}", digits - 1);
    // Below a power of two the nearest digits may belong to the neighbour.
    if rounded.parse() == Ok(number) { rounded } else { shortest }
}

fn write_text(text: &str, charset: Charset, out: &mut String) {
    out.push('"');
    for letter in text.chars() {
        match letter {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{8}' => out.push_str("\\b"),
            '\t' => out.push_str("\\t"),
            '\n' => out.push_str("\\n"),
            '\u{c}' => out.push_str("\\f"),
            '\r' => out.push_str("\\r"),
            '\0'..='\u{1f}' => out.push_str(&format!("\\u{:04x}", letter as u32)),
            '\u{80}'.. if charset == Charset::Ascii => {
                for unit in letter.encode_utf16(&mut [0; 2]) {
                    out.push_str(&format!("\\u{unit:04x}"));
                }
            }
            _ => out.push(letter),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn canonical(text: &str) -> String {
        canonical_json(text.as_bytes()).unwrap_or_else(|error| error.to_string())
    }

    #[test]
    fn the_examples_of_the_rfc() {
        let arrays = r#"{"numbers":[333333333.33333329,1E30,4.50,2e-3,0.000000000000000000000000001],
            "string":"\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/","literals":[null,true,false]}"#;
        let expected = "{\"literals\":[null,true,false],\"numbers\":[333333333.3333333,1e+30,4.5,0.002,1e-27],\
            \"string\":\"€$\\u000f\\nA'B\\\"\\\\\\\\\\\"/\"}";
        assert_eq!(canonical(arrays), expected);
        let names = r#"{"\u20ac":"Euro Sign","\r":"Carriage Return","\ufb33":"Hebrew Letter Dalet With Dagesh","1":"One",
            "\ud83d\ude00":"Emoji: Grinning Face","\u0080":"Control","\u00f6":"Latin Small Letter O With Diaeresis"}"#;
        let expected = "{\"\\r\":\"Carriage Return\",\"1\":\"One\",\"\u{80}\":\"Control\",\
            \"ö\":\"Latin Small Letter O With Diaeresis\",\"€\":\"Euro Sign\",\"😀\":\"Emoji: Grinning Face\",\
            \"\u{fb33}\":\"Hebrew Letter Dalet With Dagesh\"}";
        assert_eq!(canonical(names), expected);
    }

    #[test]
    fn numbers_as_ecmascript_writes_them() {
        // The samples of RFC 8785, appendix B, and the edges of each layout.
        for (bits, expected) in [
            (0x0000000000000000u64, "0"),
            (0x8000000000000000, "0"),
            (0x0000000000000001, "5e-324"),
            (0x8000000000000001, "-5e-324"),
            (0x7fefffffffffffff, "1.7976931348623157e+308"),
            (0xffefffffffffffff, "-1.7976931348623157e+308"),
            (0x4340000000000000, "9007199254740992"),
            (0xc340000000000000, "-9007199254740992"),
            (0x4430000000000000, "295147905179352830000"),
            (0x44b52d02c7e14af5, "9.999999999999997e+22"),
            (0x44b52d02c7e14af6, "1e+23"),
            (0x44b52d02c7e14af7, "1.0000000000000001e+23"),
            (0x444b1ae4d6e2ef4e, "999999999999999700000"),
            (0x444b1ae4d6e2ef4f, "999999999999999900000"),
            (0x444b1ae4d6e2ef50, "1e+21"),
            (0x3eb0c6f7a0b5ed8c, "9.999999999999997e-7"),
            (0x3eb0c6f7a0b5ed8d, "0.000001"),
            (0x41b3de4355555553, "333333333.3333332"),
            (0x41b3de4355555554, "333333333.33333325"),
            (0x41b3de4355555555, "333333333.3333333"),
            (0x41b3de4355555556, "333333333.3333334"),
            (0x41b3de4355555557, "333333333.33333343"),
            (0xbecbf647612f3696, "-0.0000033333333333333333"),
            (0x43143ff3c1cb0959, "1424953923781206.2"),
        ] {
            let mut out = String::new();
            write_number(f64::from_bits(bits), &mut out);
            assert_eq!(out, expected, "{bits:x}");
        }
        for (text, expected) in [
            ("-0", "0"),
            ("-0.0e5", "0"),
            ("10", "10"),
            ("1e-7", "1e-7"),
            ("1.5e-7", "1.5e-7"),
            ("9007199254740993", "9007199254740992"),
            // serde_json alone reads this as the double below.
            ("1.0715086071862673e301", "1.0715086071862673e+301"),
            ("51.24817837550540", "51.2481783755054"),
            ("1e400", "invalid parameters: 1e400 is a number that no double can hold"),
        ] {
            assert_eq!(canonical(text), expected, "{text}");
        }
    }

    #[test]
    fn what_has_no_canonical_form_is_refused() {
        let deep = "[".repeat(129) + &"]".repeat(129);
        for (text, expected) in [
            (r#"{"a":1,"a":1}"#, "invalid parameters: a is given twice"),
            (r#"{"a":1,"\u0061":2}"#, "invalid parameters: a is given twice"),
            (r#"[{"b":{"":1,"":2}}]"#, "invalid parameters:  is given twice"),
            (r#""\ud800""#, "invalid parameters: params must not hold half of a surrogate pair"),
            (r#"{"\udc00":1}"#, "invalid parameters: params must not hold half of a surrogate pair"),
            ("[1,]", "the body is not JSON: expected value"),
            ("", "the body is not JSON: EOF while parsing a value"),
            ("01", "the body is not JSON: invalid number"),
            ("NaN", "the body is not JSON: expected value"),
            ("{} {}", "the body is not JSON: trailing characters"),
            (&deep, "nested deeper than 128 levels"),
        ] {
            assert_eq!(canonical(text), expected, "{text}");
        }
        assert!(matches!(canonical_json(b"\"\xff\""), Err(Error::NotJson(_))));
    }

    #[test]
    fn ascii_is_for_python() {
        let tree = Tree::read("{\"é\":\"😀\u{7f}\"}".as_bytes()).unwrap();
        assert_eq!(tree.canonical(Charset::Ascii), "{\"\\u00e9\":\"\\ud83d\\ude00\u{7f}\"}");
    }

    #[test]
    fn the_work_grows_with_the_text() {
        let text = |count: usize| {
            let members: Vec<String> =
                (0..count).map(|place| format!(r#""k\u0041{place}":["{place}",{place}]"#)).collect();
            format!("{{{}}}", members.join(","))
        };
        let per_byte = |count: usize| {
            let text = text(count);
            work::count(|| drop(canonical_json(text.as_bytes()).unwrap())) / text.len() as u64
        };
        assert!(per_byte(10_000) <= per_byte(10) + 1, "{} and {}", per_byte(10_000), per_byte(10));
    }

    /// A value, and a text of it with white space and with members in any order.
    fn value() -> impl Strategy<Value = serde_json::Value> {
        let leaf = prop_oneof![
            Just(serde_json::Value::Null),
            any::<bool>().prop_map(Into::into),
            any::<f64>().prop_map(|number| serde_json::Number::from_f64(number).map_or(0.into(), Into::into)),
            any::<i64>().prop_map(Into::into),
            ".*".prop_map(Into::into),
        ];
        leaf.prop_recursive(4, 64, 8, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Into::into),
                prop::collection::vec((".*", inner), 0..6)
                    .prop_map(|members| serde_json::Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn a_canonical_text_is_its_own_canonical_form(value in value()) {
            let once = canonical(&value.to_string());
            prop_assert_eq!(&canonical(&once), &once);
            prop_assert_eq!(canonical(&serde_json::to_string_pretty(&value).unwrap()), once);
        }

        #[test]
        fn the_order_of_members_is_nothing(
            names in prop::collection::btree_set(".*", 0..8).prop_map(|names| names.into_iter().collect::<Vec<_>>()),
            seed in any::<u64>(),
        ) {
            let text = |names: &[String]| {
                let each = names.iter().map(|name| format!(" {} :\t1.50", serde_json::Value::from(name.as_str())));
                format!("{{{}}}", each.collect::<Vec<_>>().join(",\n"))
            };
            let mut shuffled = names.clone();
            shuffled.sort_by_key(|name| name.len() as u64 ^ seed);
            shuffled.rotate_left((seed % 8) as usize % names.len().max(1));
            prop_assert_eq!(canonical(&text(&names)), canonical(&text(&shuffled)));
        }

        #[test]
        fn numbers_are_read_back(bits in any::<u64>()) {
            let number = f64::from_bits(bits);
            prop_assume!(number.is_finite());
            let mut out = String::new();
            write_number(number, &mut out);
            prop_assert_eq!(out.parse::<f64>().unwrap(), number);
        }

        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..64), text in r#"[\[\]{}",:0-9a-f\\u .eE+-]*"#) {
            let _ = (canonical_json(&bytes), canonical_json(text.as_bytes()));
        }
    }
}
