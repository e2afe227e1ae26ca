//! What a tool gave back, as text that a model can read.

use crate::lenient_json::Object;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ToolResult {
    pub(crate) text: String,
    pub(crate) is_error: bool,
}

/// A longer result would push the conversation out of the model's memory.
const LONGEST_RESULT: usize = 64 * 1024;

impl ToolResult {
    pub(crate) fn error(text: impl Into<String>) -> Self {
        ToolResult { text: cut(text.into()), is_error: true }
    }

    /// Of a `tools/call` result. What is no text is named.
    pub(super) fn read(result: &Object<'_>) -> Self {
        let texts: Vec<String> = result.objects("content").iter().map(|block| text_of(block)).collect();
        let mut text = texts.join("\n");
        if text.is_empty() {
            text = result.json("structuredContent").map(|json| json.as_str().to_owned()).unwrap_or_default();
        }
        let is_error = result.is_true("isError");
        if text.is_empty() {
            text =
                if is_error { "the tool failed and does not say why" } else { "the tool returned nothing" }.to_owned();
        }
        ToolResult { text: cut(text), is_error }
    }
}

fn text_of(block: &Object<'_>) -> String {
    match block.kind().as_str() {
        "text" => block.text("text").unwrap_or_default(),
        "resource_link" => block.text("uri").unwrap_or_default(),
        "resource" => {
            let resource = block.object("resource");
            let uri = resource.text("uri").unwrap_or_default();
            resource.text("text").unwrap_or_else(|| format!("[{uri}, which is no text]"))
        }
        kind => {
            let media_type = block.text("mimeType").unwrap_or_default();
            format!("[{kind} {media_type}, which cannot be shown as text]")
        }
    }
}

fn cut(mut text: String) -> String {
    if text.len() > LONGEST_RESULT {
        let end = (0..=LONGEST_RESULT).rev().find(|end| text.is_char_boundary(*end)).unwrap_or_default();
        text.truncate(end);
        text.push_str("\n[the rest of the result is left out, since it is too long]");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_become_text() {
        for (result, expected, is_error) in [
            (r#"{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}"#, "a\nb", false),
            (r#"{"content":[{"type":"text","text":"no"}],"isError":true}"#, "no", true),
            (r#"{"content":[],"structuredContent":{"n":1e3}}"#, r#"{"n":1e3}"#, false),
            (
                r#"{"content":[{"type":"image","data":"aGk=","mimeType":"image/png"}]}"#,
                "[image image/png, which cannot be shown as text]",
                false,
            ),
            (r#"{"content":[{"type":"resource","resource":{"uri":"file:///a","text":"inside"}}]}"#, "inside", false),
            (
                r#"{"content":[{"type":"resource","resource":{"uri":"file:///a","blob":"aGk="}}]}"#,
                "[file:///a, which is no text]",
                false,
            ),
            (r#"{"content":[{"type":"resource_link","uri":"file:///a"}]}"#, "file:///a", false),
            ("{}", "the tool returned nothing", false),
            (r#"{"isError":true,"content":"odd"}"#, "the tool failed and does not say why", true),
        ] {
            let expected = ToolResult { text: expected.to_owned(), is_error };
            assert_eq!(ToolResult::read(&Object::parse(result).unwrap()), expected, "{result}");
        }
    }

    #[test]
    fn long_results_are_cut_between_characters() {
        let result = ToolResult::error("€".repeat(LONGEST_RESULT));
        assert!(result.text.len() < LONGEST_RESULT + 100);
        assert!(result.text.ends_with("since it is too long]"));
    }
}
