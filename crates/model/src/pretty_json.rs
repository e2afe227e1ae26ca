//! JSON for people to read.

/// The same JSON on several lines. Numbers, texts and the order of members stay as they are.
pub fn pretty_json(json: &str) -> String {
    let mut out = String::with_capacity(json.len() * 2);
    let (mut depth, mut in_text, mut is_escaped) = (0_usize, false, false);
    let mut letters = json.chars().peekable();
    let line = |out: &mut String, depth: usize| {
        out.push('\n');
        out.extend(std::iter::repeat_n("  ", depth));
    };
    while let Some(letter) = letters.next() {
        if in_text {
            out.push(letter);
            in_text = is_escaped || letter != '"';
            is_escaped = !is_escaped && letter == '\\';
            continue;
        }
        match letter {
            letter if letter.is_ascii_whitespace() => {}
            '"' => {
                out.push('"');
                in_text = true;
            }
            '{' | '[' => {
                while letters.next_if(|next| next.is_ascii_whitespace()).is_some() {}
                out.push(letter);
                match letters.next_if(|next| matches!(next, '}' | ']')) {
                    Some(end) => out.push(end),
                    None => {
                        depth += 1;
                        line(&mut out, depth);
                    }
                }
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                line(&mut out, depth);
                out.push(letter);
            }
            ',' => {
                out.push(',');
                line(&mut out, depth);
            }
            ':' => out.push_str(": "),
            letter => out.push(letter),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_gets_lines_and_stays_the_same() {
        for (json, expected) in [
            ("5.0", "5.0"),
            (
                r#"{"b":[1,{}, [ ] ],"a":"x{\",:\\"}"#,
                "{\n  \"b\": [\n    1,\n    {},\n    []\n  ],\n  \"a\": \"x{\\\",:\\\\\"\n}",
            ),
            ("[ ]", "[]"),
        ] {
            assert_eq!(pretty_json(json), expected);
            let same: serde_json::Value = serde_json::from_str(json).unwrap();
            assert_eq!(serde_json::from_str::<serde_json::Value>(&pretty_json(json)).unwrap(), same);
        }
    }
}
