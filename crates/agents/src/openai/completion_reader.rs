//! Puts the pieces of an answer together, as the servers out there cut them.
//!
//! Servers differ: tool calls come whole or in pieces, with or without an index or an id; thoughts have two names; usage
//! comes last, in a piece without choices, or in every piece. What cannot be read is passed over, since the rest of the
//! answer still counts.

use crate::lenient_json::Object;

/// What of an answer is complete.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Completion {
    pub(super) text: String,
    pub(super) calls: Vec<RequestedCall>,
    /// Why the model stopped, in the server's words.
    pub(super) finish: Option<String>,
    pub(super) usage: Option<TokenCounts>,
}

/// A tool that the model wants to use.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct RequestedCall {
    /// Empty where the server gives none.
    pub(super) id: String,
    pub(super) name: String,
    /// JSON, if the model wrote it well.
    pub(super) arguments: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct TokenCounts {
    pub(super) input: u64,
    pub(super) output: u64,
}

/// What one piece brought.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Piece {
    Text(String),
    /// The model thinks, or writes the arguments of a tool.
    Life,
    /// The server failed in the middle, for this reason.
    Error(String),
    /// The answer is larger than anybody can want.
    TooLarge,
    Nothing,
    /// Nothing follows.
    End,
}

#[derive(Debug, Default)]
pub(super) struct CompletionReader {
    completion: Completion,
    /// The index that the server gave to each call.
    indices: Vec<Option<u64>>,
    bytes: usize,
    has_ended: bool,
}

/// Bytes of text and of arguments in one answer.
pub(super) const LARGEST_ANSWER: usize = 8 * 1024 * 1024;
/// A model that wants more tools at once has lost its way.
const MOST_CALLS: usize = 32;

impl CompletionReader {
    /// Takes the data of one event.
    pub(super) fn feed(&mut self, data: &str) -> Piece {
        let data = data.trim();
        if data == "[DONE]" {
            self.has_ended = true;
            return Piece::End;
        }
        let Some(chunk) = Object::parse(data) else { return Piece::Nothing };
        if chunk.has("error") {
            return Piece::Error(error_message(&chunk).unwrap_or_default());
        }
        if chunk.is_object("usage") {
            let usage = chunk.object("usage");
            let (input, output) = (usage.count("prompt_tokens"), usage.count("completion_tokens"));
            self.completion.usage = Some(TokenCounts { input, output });
        }
        let choices = chunk.objects("choices");
        let Some(choice) = choices.first() else { return Piece::Nothing };
        if let Some(finish) = choice.non_empty_text("finish_reason") {
            self.completion.finish = Some(finish);
        }
        // An answer that was not streamed has a whole message.
        let delta = if choice.is_object("delta") { choice.object("delta") } else { choice.object("message") };
        let calls = delta.objects("tool_calls");
        for call in &calls {
            self.take_call(call);
        }
        let text = delta.content("content") + &delta.text("refusal").unwrap_or_default();
        self.bytes += text.len();
        if self.bytes > LARGEST_ANSWER || self.completion.calls.len() > MOST_CALLS {
            return Piece::TooLarge;
        }
        if !text.is_empty() {
            self.completion.text.push_str(&text);
            return Piece::Text(text);
        }
        let thinks = delta.has("reasoning_content") || delta.has("reasoning");
        if thinks || !calls.is_empty() { Piece::Life } else { Piece::Nothing }
    }

    /// Whether the answer is complete. A stream that ends before that is broken.
    pub(super) fn is_complete(&self) -> bool {
        self.has_ended || self.completion.finish.is_some()
    }

    pub(super) fn finish(self) -> Completion {
        let Completion { calls, .. } = self.completion;
        let calls = calls.into_iter().filter(|call| !call.name.is_empty()).collect();
        Completion { calls, ..self.completion }
    }

    fn take_call(&mut self, call: &Object<'_>) {
        let (index, id) = (call.integer("index"), call.id("id").unwrap_or_default());
        let function = call.object("function");
        let name = function.text("name").unwrap_or_default();
        // Arguments are a text with JSON; some servers write the object itself.
        let arguments = function.text("arguments");
        let arguments = arguments.or_else(|| Some(function.json("arguments")?.as_str().to_owned())).unwrap_or_default();
        self.bytes += name.len() + arguments.len();
        let continues = |at: &usize| {
            let known = &self.completion.calls[*at];
            let is_same_id = id.is_empty() || known.id.is_empty() || known.id == id;
            let is_same_index = index.is_none() || self.indices[*at].is_none() || self.indices[*at] == index;
            is_same_id && is_same_index
        };
        // Without an id and an index a piece with a name begins a call, and one without continues the last.
        let is_unmarked_start = id.is_empty() && index.is_none() && !name.is_empty();
        let place = (0..self.completion.calls.len()).rev().find(continues).filter(|_| !is_unmarked_start);
        match place {
            Some(at) => {
                let known = &mut self.completion.calls[at];
                if known.id.is_empty() {
                    known.id = id;
                }
                // The name comes once; some servers repeat it in every piece.
                if known.name.is_empty() {
                    known.name = name;
                }
                known.arguments.push_str(&arguments);
            }
            None => {
                self.completion.calls.push(RequestedCall { id, name, arguments });
                self.indices.push(index);
            }
        }
    }
}

/// The reason in an error object, or in a text in its place.
pub(super) fn error_message(body: &Object<'_>) -> Option<String> {
    let error = body.object("error");
    error.non_empty_text("message").or_else(|| body.non_empty_text("error")).or_else(|| body.non_empty_text("message"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(pieces: &[&str]) -> (String, Completion) {
        let mut reader = CompletionReader::default();
        let said: Vec<String> = pieces.iter().map(|piece| format!("{:?}", reader.feed(piece))).collect();
        let end = if reader.is_complete() { "" } else { " (incomplete)" };
        (said.join(" ") + end, reader.finish())
    }

    fn delta(delta: &str) -> String {
        format!(r#"{{"choices":[{{"index":0,"delta":{delta},"finish_reason":null}}]}}"#)
    }

    fn calls(pieces: &[&str]) -> String {
        let pieces: Vec<String> = pieces.iter().map(|piece| delta(&format!(r#"{{"tool_calls":[{piece}]}}"#))).collect();
        let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
        let calls = read(&pieces).1.calls;
        calls.iter().map(|call| format!("{}:{}({})", call.id, call.name, call.arguments)).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn an_answer_comes_in_pieces() {
        let (said, completion) = read(&[
            &delta(r#"{"role":"assistant","content":""}"#),
            &delta(r#"{"reasoning_content":"hm"}"#),
            &delta(r#"{"content":"Hel"}"#),
            &delta(r#"{"content":"lo"}"#),
            r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#,
            r#"{"choices":[],"usage":{"prompt_tokens":12,"completion_tokens":3}}"#,
            "[DONE]",
        ]);
        assert_eq!(said, r#"Nothing Life Text("Hel") Text("lo") Nothing Nothing End"#);
        let usage = Some(TokenCounts { input: 12, output: 3 });
        assert_eq!(completion, Completion { text: "Hello".into(), calls: vec![], finish: Some("stop".into()), usage });
    }

    #[test]
    fn answers_that_are_odd() {
        for (pieces, expected) in [
            (vec![], " (incomplete)"),
            (vec!["nonsense"], "Nothing (incomplete)"),
            (vec!["[]", "1", "null", "{}"], "Nothing Nothing Nothing Nothing (incomplete)"),
            (vec![r#"{"choices":[{"delta":{"content":"a"}}]}"#], r#"Text("a") (incomplete)"#),
            (vec![r#"{"choices":[{"message":{"content":"whole"},"finish_reason":"stop"}]}"#], r#"Text("whole")"#),
            (vec![r#"{"choices":[{"delta":{"content":[{"type":"text","text":"a"}]}}]}"#, "[DONE]"], r#"Text("a") End"#),
            (vec![r#"{"choices":[{"delta":{"refusal":"no"}}]}"#, "[DONE]"], r#"Text("no") End"#),
            (vec![r#"{"choices":[{"delta":null,"finish_reason":"stop"}]}"#], "Nothing"),
            (vec![r#"{"error":{"message":"out of memory"}}"#], r#"Error("out of memory") (incomplete)"#),
            (vec![r#"{"error":"gone"}"#], r#"Error("gone") (incomplete)"#),
            (vec![r#"{"error":{}}"#], r#"Error("") (incomplete)"#),
        ] {
            assert_eq!(read(&pieces).0, expected, "{pieces:?}");
        }
    }

    #[test]
    fn tool_calls_of_every_server() {
        for (pieces, expected) in [
            (
                vec![
                    r#"{"index":0,"id":"c1","function":{"name":"add","arguments":""}}"#,
                    r#"{"index":0,"function":{"arguments":"{\"a\":"}}"#,
                    r#"{"index":0,"function":{"arguments":"1}"}}"#,
                    r#"{"index":1,"id":"c2","function":{"name":"sub","arguments":"{}"}}"#,
                ],
                r#"c1:add({"a":1}) c2:sub({})"#,
            ),
            // Pieces of two calls in turns.
            (
                vec![
                    r#"{"index":0,"id":"a","function":{"name":"x","arguments":"["}},{"index":1,"id":"b","function":{"name":"y","arguments":"{"}}"#,
                    r#"{"index":0,"function":{"arguments":"]"}},{"index":1,"function":{"arguments":"}"}}"#,
                ],
                "a:x([]) b:y({})",
            ),
            // All with the same index.
            (
                vec![
                    r#"{"index":0,"id":"a","function":{"name":"x","arguments":"{}"}}"#,
                    r#"{"index":0,"id":"b","function":{"name":"y","arguments":"{}"}}"#,
                ],
                "a:x({}) b:y({})",
            ),
            // Neither index nor id.
            (
                vec![
                    r#"{"function":{"name":"x","arguments":"{"}}"#,
                    r#"{"function":{"arguments":"}"}}"#,
                    r#"{"function":{"name":"y","arguments":"{}"}}"#,
                ],
                ":x({}) :y({})",
            ),
            // Arguments as an object, and the id and the name in every piece.
            (vec![r#"{"index":0,"id":7,"function":{"name":"x","arguments":{"n":1e3}}}"#], r#"7:x({"n":1e3})"#),
            (
                vec![
                    r#"{"index":0,"id":"a","function":{"name":"x","arguments":"{"}}"#,
                    r#"{"index":0,"id":"a","function":{"name":"x","arguments":"}"}}"#,
                ],
                "a:x({})",
            ),
            // A call without a name is none.
            (vec![r#"{"index":0,"id":"a","function":{"arguments":"{}"}}"#], ""),
            (vec![r#""odd""#, "{}", r#"{"function":"x"}"#], ""),
        ] {
            assert_eq!(calls(&pieces), expected, "{pieces:?}");
        }
    }

    #[test]
    fn an_endless_answer_is_stopped() {
        let mut reader = CompletionReader::default();
        let piece = delta(&format!(r#"{{"content":"{}"}}"#, "x".repeat(1024 * 1024)));
        let last = (0..20).map(|_| reader.feed(&piece)).find(|piece| *piece == Piece::TooLarge);
        assert_eq!(last, Some(Piece::TooLarge));
        let mut reader = CompletionReader::default();
        let piece = |at: usize| delta(&format!(r#"{{"tool_calls":[{{"index":{at},"function":{{"name":"x"}}}}]}}"#));
        assert!((0..500).any(|at| reader.feed(&piece(at)) == Piece::TooLarge));
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn no_text_makes_the_reader_panic(pieces in proptest::collection::vec(".{0,80}", 0..8)) {
            let mut reader = CompletionReader::default();
            for piece in &pieces {
                reader.feed(piece);
                reader.feed(&delta(piece));
                reader.feed(&delta(&format!(r#"{{"tool_calls":[{piece}]}}"#)));
            }
            reader.finish();
        }

        #[test]
        fn where_an_answer_is_cut_changes_nothing(text in "[a-z\u{e9}\u{1f600} ]{1,60}", cuts in proptest::collection::vec(1usize..9, 1..9)) {
            let letters: Vec<char> = text.chars().collect();
            let mut reader = CompletionReader::default();
            let mut call = CompletionReader::default();
            let (mut from, mut sizes) = (0, cuts.iter().cycle());
            while from < letters.len() {
                let to = (from + sizes.next().unwrap()).min(letters.len());
                let piece: String = letters[from..to].iter().collect();
                let piece = serde_json::to_string(&piece).unwrap();
                reader.feed(&delta(&format!(r#"{{"content":{piece}}}"#)));
                call.feed(&delta(&format!(r#"{{"tool_calls":[{{"index":0,"id":"a","function":{{"name":"x","arguments":{piece}}}}}]}}"#)));
                from = to;
            }
            prop_assert_eq!(reader.finish().text, text.clone());
            let expected = RequestedCall { id: "a".into(), name: "x".into(), arguments: text };
            prop_assert_eq!(call.finish().calls, vec![expected]);
        }
    }
}
